//! `GET /v1/audit/authz` of ten million decisions, by actor, by resource and by run, in either order, the first page and the
//! thousandth: beside the same of ten thousand decisions, in another database of the same settings. The latency that
//! ninety-nine of a hundred requests of one client stay below; of the four kinds of page, the worst.
//!
//! Authorization is off: neither a check nor its record hides what a page costs. What is in the tables: `audit_rows`.

use super::audit_rows::{Filter, fill};
use super::machine::Moment;
use super::plan::Plan;
use super::rounds::{Figure, compare, percentile};
use super::row::{About, Growth, Line, Row, Target, rounded};
use super::world::World;
use super::{Done, Outcome};
use serde_json::Value;
use std::time::Instant;
use uuid::Uuid;

/// Decisions of the other side.
const FEW: usize = 10_000;
/// Decisions between the two, for how it grows.
const BETWEEN: usize = 1_000_000;
/// Rows of a page.
const PAGE: usize = 10;
/// The late page. Where a filter finds fewer, the last one that is full.
const LATE: usize = 1000;
/// Rows asked for at once on the way to the late page.
const STRIDE: usize = 200;

/// The orders, and whether it is the late page.
const KINDS: [(&str, bool); 4] = [
    ("asc", false),
    ("asc", true),
    ("desc", false),
    ("desc", true),
];

/// The service with so many decisions.
struct Side {
    world: World,
    rows: usize,
    /// Of each kind in each round.
    requests: usize,
}

/// A page, and what is answered.
struct Page {
    path: String,
    body: String,
}

/// Pages of each kind, each of another value of the filter.
struct Pages([Vec<Page>; 4]);

impl Side {
    fn of(plan: Plan, rows: usize) -> Outcome<Self> {
        let world = World::start()?;
        fill(&world, rows)?;
        Ok(Self {
            world,
            rows,
            requests: plan.pick(100, 400),
        })
    }

    fn get(&self, path: &str) -> Outcome<String> {
        self.world.client.send("GET", path, "")
    }

    /// Asks for each page once, and holds the first of each kind against the tables.
    fn pages(&self, filter: Filter) -> Outcome<Pages> {
        let mut database = self.world.database()?;
        let values = filter.often(&mut database)?;
        let mut pages = Pages(Default::default());
        for (kind, (order, is_late)) in KINDS.into_iter().enumerate() {
            for value in &values {
                let path = format!(
                    "/v1/audit/authz?{}={value}&order={order}",
                    filter.parameter()
                );
                let found = filter.count(&mut database, value, PAGE * LATE)?;
                let pages_before = if is_late { found / PAGE - 1 } else { 0 };
                let before = pages_before * PAGE;
                let cursor = self.cursor_after(&path, before)?;
                let path = format!("{path}&limit={PAGE}{cursor}");
                let body = self.get(&path)?;
                let page = &mut pages.0[kind];
                if page.is_empty() {
                    let ids = filter.ids(&mut database, value, order, before, PAGE)?;
                    if ids_of(&body)? != ids || ids.len() != PAGE {
                        return Err(format!("{path}: not these decisions").into());
                    }
                }
                page.push(Page { path, body });
            }
        }
        Ok(pages)
    }

    /// The parameter of the page that comes after so many rows.
    fn cursor_after(&self, path: &str, rows: usize) -> Outcome<String> {
        let (mut left, mut cursor) = (rows, String::new());
        while left > 0 {
            let limit = left.min(STRIDE);
            let page: Value =
                serde_json::from_str(&self.get(&format!("{path}&limit={limit}{cursor}"))?)?;
            let next = page["nextCursor"].as_str().ok_or("the list ended")?;
            cursor = format!("&cursor={next}");
            left -= limit;
        }
        Ok(cursor)
    }

    /// The p99 of each kind, in milliseconds.
    fn p99(&self, pages: &Pages) -> Outcome<[f64; 4]> {
        let mut figures = [0.0; 4];
        for (pages, figure) in pages.0.iter().zip(&mut figures) {
            let mut took = Vec::with_capacity(self.requests);
            for page in pages.iter().cycle().take(self.requests) {
                let began = Instant::now();
                let body = self.get(&page.path)?;
                took.push(began.elapsed().as_secs_f64() * 1000.0);
                if body != page.body {
                    return Err(format!("{}: another page", page.path).into());
                }
            }
            *figure = percentile(took, 0.99);
        }
        Ok(figures)
    }

    /// The worst kind.
    fn figure(&self, pages: &Pages) -> Outcome<Figure> {
        let before = Moment::now();
        let figures = self.p99(pages)?;
        Ok(Figure {
            value: figures.into_iter().fold(0.0, f64::max),
            used: before.until_now(),
            note: format!(" ({})", figures.map(rounded).join(" ")),
        })
    }

    /// The p99 of a page with nothing on it, in milliseconds.
    fn empty(&self) -> Outcome<f64> {
        let path = format!("/v1/audit/authz?runId={}&limit={PAGE}", Uuid::max());
        let body = self.get(&path)?;
        let page = Page { path, body };
        Ok(self.p99(&Pages([vec![page], vec![], vec![], vec![]]))?[0])
    }

    fn grow(&self, filter: Filter, growth: &mut Growth) -> Outcome {
        let figures = self.p99(&self.pages(filter)?)?;
        for (line, figure) in growth.lines.iter_mut().zip(figures) {
            line.points.push((self.rows as f64, figure));
        }
        Ok(())
    }
}

fn ids_of(body: &str) -> Outcome<Vec<Uuid>> {
    let page: Value = serde_json::from_str(body)?;
    let rows = page["data"].as_array().ok_or("no page")?.iter();
    rows.map(|row| Ok(row["id"].as_str().ok_or("no id")?.parse()?))
        .collect()
}

fn growth() -> Growth {
    let labels = [
        "oldest first, page 1",
        "oldest first, page 1000",
        "newest first, page 1",
        "newest first, page 1000",
    ];
    Growth {
        over: "rows".to_owned(),
        unit: "ms".to_owned(),
        lines: labels
            .map(|label| Line {
                label: label.to_owned(),
                points: Vec::new(),
            })
            .into(),
    }
}

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "the same of 10 thousand decisions, whose last full page stands for the thousandth",
        unit: "ms",
        target: Target::AtMost(3.0),
        says_not: "Ten rows a page, one client, authorization off, each page asked for before: what is read is in memory, of the system if not of the database. A record is without the question asked of the model; the months were loaded whole, so their indexes are as dense as they get.",
    }
}

const ABOUT: [(Filter, About); 3] = [
    (
        Filter::Actor,
        about(
            "audit-page-actor",
            "a page of an actor's decisions, of 10 million, oldest or newest first, the first or the thousandth, whichever is slowest: p99",
        ),
    ),
    (
        Filter::Resource,
        about(
            "audit-page-resource",
            "a page of the decisions on a project, of 10 million, oldest or newest first, the first or the thousandth, whichever is slowest: p99",
        ),
    ),
    (
        Filter::Run,
        about(
            "audit-page-run",
            "a page of the decisions about a run, of 10 million, oldest or newest first, the first or the thousandth, whichever is slowest: p99",
        ),
    ),
];

fn row(plan: Plan, (filter, about): &(Filter, About), many: &Side, few: &Side) -> Outcome<Row> {
    let (ours, baseline) = (many.pages(*filter)?, few.pages(*filter)?);
    let mut row = compare(plan, about, || many.figure(&ours), || few.figure(&baseline))?;
    let version = many
        .world
        .database()?
        .query_one("show server_version", &[])?;
    row.versions = vec![format!("PostgreSQL {}", version.get::<_, &str>(0))];
    row.limit = Some(format!(
        "A page with nothing on it, p99: {} ms of {} decisions, {} ms of {}.",
        rounded(many.empty()?),
        many.rows,
        rounded(few.empty()?),
        few.rows,
    ));
    Ok(row)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let mut growths = [growth(), growth(), growth()];
    let mut grow = |side: &Side| -> Outcome {
        for ((filter, _), growth) in ABOUT.iter().zip(&mut growths) {
            side.grow(*filter, growth)?;
        }
        Ok(())
    };
    let few = Side::of(plan, FEW)?;
    if !plan.short {
        grow(&few)?;
        grow(&Side::of(plan, BETWEEN)?)?;
    }
    let many = Side::of(plan, plan.pick(200_000, 10_000_000))?;
    if !plan.short {
        grow(&many)?;
    }
    for (one, growth) in ABOUT.iter().zip(growths) {
        let mut row = row(plan, one, &many, &few)?;
        if !plan.short {
            row.growth.push(growth);
        }
        done(row)?;
    }
    Ok(())
}
