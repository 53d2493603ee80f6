//! `GET /v1/projects`, the first page of ten thousand projects: as the tenant's admin, and as a member who may read them all
//! through a team's grant on each. Beside the store's own statement for that page and one check of the standing on the
//! tenant, one after another with the same libraries. The latency that half of the requests of one client stay below.
//!
//! The projects are not made one by one over HTTP: their rows and their tuples are written many at once, as the service would
//! have left them. It says itself that nothing differs.

use super::client::agent;
use super::load::{Load, Work};
use super::openfga;
use super::plan::Plan;
use super::reader::Reader;
use super::rounds::{Figure, compare};
use super::row::{About, Growth, Line, Row, Target, rounded};
use super::world::World;
use super::{Done, Outcome};
use agent_runtime::authz::fga::{self, Pinned, Question, Tuple};
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::store::Ordered;
use agent_runtime::store::page::Order;
use serde_json::Value;
use uuid::Uuid;

/// Readable projects at which the page is measured, the first ones only where it is shown how it grows.
const SIZES: [usize; 4] = [100, 1000, 10_000, 100_000];
/// Projects whose rows are written in one transaction.
const BATCH: usize = 1000;
/// Of a page, unless asked otherwise.
const PAGE: usize = 50;

const LIST: &str = include_str!("../../sql/queries/projects/list.sql");
const LIST_READER: &str = include_str!("../../sql/queries/projects/list_reader.sql");

/// A project as `projects/insert` leaves it, with a grant as `team_grants/insert` does, both told: each change marked the
/// project once.
const FILL: &str = "with made as (
  insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
  select $1, project_id, 'project ' || place, $2, $5, $5
  from unnest($4::uuid[]) with ordinality as given (project_id, place)
  returning project_id
), owner as (
  insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
  select $1, project_id, $2, 'owner', $5 from made
), granted as (
  insert into team_grants (tenant_id, project_id, team_id, role, created_by, created_at, updated_at)
  select $1, project_id, $3, 'viewer', $2, $5, $5 from made
)
insert into authz_objects (tenant_id, object, desired, applied)
select $1, 'project:' || project_id, 2, 2 from made";

/// Whose page it is.
#[derive(Clone, Copy)]
enum Who {
    Admin,
    Member,
}

/// The service with its projects, and what it cannot do without.
struct Side {
    world: World,
    reader: Reader,
    team_id: Uuid,
    client: fga::Client,
    on: Pinned,
    projects: usize,
    /// In each round.
    reads: usize,
}

impl Side {
    fn start(plan: Plan) -> Outcome<Self> {
        let world = World::start_authorized()?;
        let reader = Reader::of(&world)?;
        let mut database = world.database()?;
        let team = database.query_one("select team_id from teams", &[])?;
        let store = database.query_one("select store_id, model_id from authz_stores", &[])?;
        let authorization = world.authorization()?;
        let options = fga::Options {
            url: authorization.url,
            timeout: authorization.timeout,
            connections: authorization.connections,
        };
        Ok(Self {
            client: fga::Client::new(&Outbound::new(outbound::Options::default())?, &options)?,
            on: Pinned {
                store_id: store.get(0),
                model_id: store.get(1),
            },
            team_id: team.get(0),
            projects: 1,
            reads: plan.pick(100, 400),
            world,
            reader,
        })
    }

    /// Adds projects until there are so many.
    fn fill(&mut self, projects: usize) -> Outcome {
        let mut database = self.world.database()?;
        while self.projects < projects {
            let count = BATCH.min(projects - self.projects);
            let ids: Vec<Uuid> = (0..count).map(|_| self.world.clock.new_id()).collect();
            let tuples: Vec<Tuple> = ids.iter().flat_map(|id| self.tuples(*id)).collect();
            let told = self.client.write(&self.on, &[], &tuples);
            told.map_err(|failure| failure.to_string())?;
            let seeds = &self.world.seeds;
            let now = self.world.clock.now();
            let (tenant_id, user_id) = (&seeds.tenant_id, &seeds.user_id);
            database.execute(FILL, &[tenant_id, user_id, &self.team_id, &ids, &now])?;
            self.projects += count;
        }
        database.batch_execute("vacuum analyze")?;
        self.check()
    }

    fn tuples(&self, project_id: Uuid) -> [Tuple; 3] {
        let seeds = &self.world.seeds;
        let of = |user: String, relation: &str| Tuple {
            user,
            relation: relation.to_owned(),
            object: format!("project:{project_id}"),
        };
        [
            of(format!("tenant:{}", seeds.tenant_id), "tenant"),
            of(format!("user:{}", seeds.user_id), "owner"),
            of(format!("team:{}#member", self.team_id), "viewer"),
        ]
    }

    /// The service finds nothing to tell the authorization server, and both readers all projects.
    fn check(&self) -> Outcome {
        let shared = self.world.server()?.shared();
        let permissions = shared.permissions.as_ref().ok_or("authorization is off")?;
        let report = permissions.verify(self.world.seeds.tenant_id, 1, &mut |_| {})?;
        let unapplied = "select count(*) from authz_objects where applied <> desired";
        let unapplied: i64 = self.world.database()?.query_one(unapplied, &[])?.get(0);
        if !report.is_equal() || unapplied > 0 {
            return Err(format!("the permissions differ: {report:?}").into());
        }
        for who in [Who::Admin, Who::Member] {
            let (mut seen, mut cursor) = (0, String::new());
            loop {
                let page = self.page(who, &format!("?limit=200{cursor}"))?;
                seen += page["data"].as_array().map_or(0, Vec::len);
                match page["nextCursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            if seen != self.projects {
                return Err(format!("{seen} of {} projects", self.projects).into());
            }
        }
        Ok(())
    }

    fn page(&self, who: Who, query: &str) -> Outcome<Value> {
        let body = self.body(&agent(), who, query)?;
        Ok(serde_json::from_slice(&body)?)
    }

    fn body(&self, agent: &ureq::Agent, who: Who, query: &str) -> Outcome<Vec<u8>> {
        let url = format!("http://{}/v1/projects{query}", self.world.client.address());
        let request = agent.get(&url).header("authorization", self.bearer(who));
        Ok(request.call()?.body_mut().read_to_vec()?)
    }

    fn bearer(&self, who: Who) -> String {
        let token = match who {
            Who::Admin => self.world.token(),
            Who::Member => &self.reader.token,
        };
        format!("Bearer {token}")
    }

    fn decisions(&self) -> Outcome<i64> {
        let count = "select count(*) from audit_decisions";
        Ok(self.world.database()?.query_one(count, &[])?.get(0))
    }

    /// Milliseconds of the service's page.
    fn ours(&self, who: Who) -> Outcome<f64> {
        let page = self.page(who, "")?;
        if page["data"].as_array().map(Vec::len) != Some(PAGE) || page["hasMore"] != true {
            return Err("the page is not full".into());
        }
        let before = self.decisions()?;
        let p50 = Load::of(1, self.reads, &|_| self.read(who))?.p50();
        match usize::try_from(self.decisions()? - before)? {
            decided if decided > self.reads => Ok(p50),
            decided => Err(format!("{decided} decisions of {} pages", self.reads).into()),
        }
    }

    fn read(&self, who: Who) -> Outcome<Work<'_>> {
        let agent = agent();
        let expected = self.body(&agent, who, "")?;
        Ok(Box::new(move || {
            match self.body(&agent, who, "")? == expected {
                true => Ok(()),
                false => Err("another page".into()),
            }
        }))
    }

    /// Milliseconds of a check, of the page's statement, or of both one after another.
    fn parts(&self, who: Who, check: bool, page: bool) -> Outcome<f64> {
        let client = |_| self.part(who, check, page);
        Ok(Load::of(1, self.reads, &client)?.p50())
    }

    fn part(&self, who: Who, check: bool, page: bool) -> Outcome<Work<'_>> {
        let mut database = self.world.database()?;
        let seeds = &self.world.seeds;
        let (statement, user_id) = match who {
            Who::Admin => (
                database.prepare(Ordered::of(LIST).by(Order::Desc))?,
                seeds.user_id,
            ),
            Who::Member => (
                database.prepare(Ordered::of(LIST_READER).by(Order::Desc))?,
                self.reader.user_id,
            ),
        };
        let (user, object) = (
            format!("user:{user_id}"),
            format!("tenant:{}", seeds.tenant_id),
        );
        Ok(Box::new(move || {
            let question = Question {
                user: &user,
                relation: "can_read",
                object: &object,
                contextual: &[],
            };
            if check {
                let allowed = self.client.check(&self.on, &question);
                if !allowed.map_err(|failure| failure.to_string())? {
                    return Err("the reader may not list".into());
                }
            }
            if page {
                let (after, rows) = (None::<Uuid>, i64::try_from(PAGE + 1)?);
                let tenant_id = &seeds.tenant_id;
                let found = match who {
                    Who::Admin => database.query(&statement, &[tenant_id, &after, &rows]),
                    Who::Member => {
                        database.query(&statement, &[tenant_id, &user_id, &after, &rows])
                    }
                }?;
                if found.len() != PAGE + 1 {
                    return Err("the page is not full".into());
                }
            }
            Ok(())
        }))
    }

    /// The row, as things stand.
    fn row(&self, plan: Plan, about: &About, who: Who) -> Outcome<Row> {
        let mut row = compare(
            plan,
            about,
            || Figure::of(|| self.ours(who)),
            || Figure::of(|| self.parts(who, true, true)),
        )?;
        let version = self
            .world
            .database()?
            .query_one("show server_version", &[])?;
        row.versions = vec![
            format!("PostgreSQL {}", version.get::<_, &str>(0)),
            format!("OpenFGA {}", openfga::VERSION),
        ];
        row.limit = Some(format!(
            "The check alone: {} ms; the statement alone: {} ms.",
            rounded(self.parts(who, true, false)?),
            rounded(self.parts(who, false, true)?),
        ));
        Ok(row)
    }
}

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "the store's own statement for that page and one check of the standing on the tenant, one after another with the same libraries",
        unit: "ms",
        target: Target::AtMost(1.3),
        says_not: "The baseline is nobody's service: no HTTP of its own, no caller, no pool, no record of the decision. It says nothing of later pages, nor of more clients than one.",
    }
}

const ADMIN: About = about(
    "project-page-admin",
    "the first page of 10,000 projects, as the tenant's admin, p50",
);
const MEMBER: About = about(
    "project-page-member",
    "the first page of 10,000 projects that a member may read through a team's grant on each, p50",
);

/// Adds a figure to the line of this label.
fn point(growth: &mut Growth, label: &str, projects: usize, figure: f64) {
    let point = (projects as f64, figure);
    match growth.lines.iter_mut().find(|line| line.label == label) {
        Some(line) => line.points.push(point),
        None => growth.lines.push(Line {
            label: label.to_owned(),
            points: vec![point],
        }),
    }
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let mut side = Side::start(plan)?;
    let compared_at = plan.pick(1000, 10_000);
    if plan.short {
        side.fill(compared_at)?;
        done(side.row(plan, &ADMIN, Who::Admin)?)?;
        return done(side.row(plan, &MEMBER, Who::Member)?);
    }
    let mut rows = Vec::new();
    let mut growths = [Who::Admin, Who::Member].map(|who| {
        let growth = Growth {
            over: "projects".to_owned(),
            unit: "ms".to_owned(),
            lines: Vec::new(),
        };
        (who, growth)
    });
    for projects in SIZES {
        side.fill(projects)?;
        for (who, growth) in &mut growths {
            point(growth, "agent-runtime", projects, side.ours(*who)?);
            point(growth, "baseline", projects, side.parts(*who, true, true)?);
        }
        if projects == compared_at {
            rows.push(side.row(plan, &ADMIN, Who::Admin)?);
            rows.push(side.row(plan, &MEMBER, Who::Member)?);
        }
    }
    for (row, (_, growth)) in rows.iter_mut().zip(growths) {
        row.growth.push(growth);
    }
    rows.into_iter().try_for_each(done)
}
