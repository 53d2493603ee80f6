//! Interleaved rounds of a figure and its baseline, and the row that they make.

use super::Outcome;
use super::machine::{Moment, Used};
use super::plan::Plan;
use super::row::{About, Growth, Line, Row, Spread, rounded};
use agent_runtime::ids::Clock;

/// A round during which others used more of the processors than this is measured again.
const OTHERS_MOST: f64 = 0.1;

/// A round.
struct Round {
    ours: Figure,
    baseline: Option<Figure>,
}

impl Round {
    /// What the target is about.
    fn figure(&self) -> f64 {
        match &self.baseline {
            Some(baseline) => self.ours.value / baseline.value,
            None => self.ours.value,
        }
    }

    /// The part of all processors that others used meanwhile.
    fn others(&self) -> f64 {
        let baseline = self.baseline.as_ref();
        baseline.map_or(self.ours.used.others, |baseline| {
            baseline.used.others.max(self.ours.used.others)
        })
    }
}

/// A figure and what it took.
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) used: Used,
    /// What else the round's line says.
    pub(crate) note: String,
}

impl Figure {
    /// Measures, and notes what the processors did meanwhile.
    pub(crate) fn of(measure: impl FnOnce() -> Outcome<f64>) -> Outcome<Self> {
        let before = Moment::now();
        let value = measure()?;
        Ok(Self {
            value,
            used: before.until_now(),
            note: String::new(),
        })
    }
}

/// Measures both sides in turn, the other one first in every other round: the row of their ratios.
pub(crate) fn compare(
    plan: Plan,
    about: &About,
    mut ours: impl FnMut() -> Outcome<Figure>,
    mut baseline: impl FnMut() -> Outcome<Figure>,
) -> Outcome<Row> {
    ours()?;
    baseline()?;
    rounds(plan, about, |number| {
        let (mine, base);
        if number % 2 == 1 {
            mine = ours()?;
            base = baseline()?;
        } else {
            base = baseline()?;
            mine = ours()?;
        }
        Ok(Round {
            ours: mine,
            baseline: Some(base),
        })
    })
}

/// Measures both sides at once: what is compared are parts of the same.
pub(crate) fn compare_parts(
    plan: Plan,
    about: &About,
    mut parts: impl FnMut() -> Outcome<(Figure, Figure)>,
) -> Outcome<Row> {
    parts()?;
    rounds(plan, about, |_| {
        let (ours, baseline) = parts()?;
        Ok(Round {
            ours,
            baseline: Some(baseline),
        })
    })
}

/// Measures what has a bound and no other side.
pub(crate) fn alone(
    plan: Plan,
    about: &About,
    mut ours: impl FnMut() -> Outcome<Figure>,
) -> Outcome<Row> {
    ours()?;
    rounds(plan, about, |_| {
        Ok(Round {
            ours: ours()?,
            baseline: None,
        })
    })
}

fn rounds(
    plan: Plan,
    about: &About,
    mut round: impl FnMut(usize) -> Outcome<Round>,
) -> Outcome<Row> {
    let mut rounds: Vec<Round> = Vec::new();
    let quiet = |rounds: &[Round]| {
        rounds
            .iter()
            .filter(|round| round.others() <= OTHERS_MOST)
            .count()
    };
    while quiet(&rounds) < plan.rounds() && rounds.len() < plan.tries() {
        let this = round(rounds.len())?;
        rounds.push(this);
        if let Some(this) = rounds.last() {
            say(rounds.len(), about, this);
        }
    }
    rounds.sort_by(|one, other| one.others().total_cmp(&other.others()));
    rounds.truncate(plan.rounds());
    Ok(row(about, &rounds))
}

fn say(number: usize, about: &About, round: &Round) {
    let side = |figure: &Figure| format!("{} {}{}", rounded(figure.value), about.unit, figure.note);
    let beside = round
        .baseline
        .as_ref()
        .map_or_else(String::new, |baseline| {
            format!(
                ", baseline {}, ratio {}",
                side(baseline),
                rounded(round.figure())
            )
        });
    println!(
        "  round {number}: ours {}{beside}; others used {:.0} %",
        side(&round.ours),
        round.others() * 100.0
    );
}

fn row(about: &About, rounds: &[Round]) -> Row {
    let others = rounds.iter().map(Round::others).fold(0.0, f64::max);
    if others > OTHERS_MOST {
        println!(
            "{}: this machine is not quiet (others used up to {:.0} % of it): the figure says little",
            about.name,
            others * 100.0
        );
    }
    let spread = |figure: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(figure).collect());
    let has_baseline = rounds.iter().all(|round| round.baseline.is_some());
    let baseline = |round: &Round| round.baseline.as_ref().map_or(f64::NAN, |side| side.value);
    Row {
        name: about.name.to_owned(),
        measured_on: Clock::system().now().date().to_string(),
        work: about.work.to_owned(),
        beside: about.beside.to_owned(),
        unit: about.unit.to_owned(),
        target: about.target,
        says_not: about.says_not.to_owned(),
        figure: spread(&Round::figure),
        ours: spread(&|round| round.ours.value),
        baseline: has_baseline.then(|| spread(&baseline)),
        rounds: rounds.len(),
        others,
        busy: spread(&|round| round.ours.used.busy).median,
        versions: Vec::new(),
        limit: None,
        growth: Vec::new(),
    }
}

/// The clients that rows about clients grow over.
pub(crate) const CLIENTS: [usize; 4] = [1, 4, 16, 64];

/// A figure at one place of what grows.
pub(crate) type Measure<'a> = &'a dyn Fn(usize) -> Outcome<f64>;

/// Measures each line once at each place. One that cannot be measured at a place beyond its first ends there, and its
/// label says why: that is where it stops.
pub(crate) fn grow(
    over: &str,
    unit: &str,
    places: &[usize],
    lines: &[(&str, Measure<'_>)],
) -> Outcome<Growth> {
    let line = |(label, measure): &(&str, Measure<'_>)| -> Outcome<Line> {
        let mut line = Line {
            label: (*label).to_owned(),
            points: Vec::new(),
        };
        for place in places {
            match measure(*place) {
                Ok(figure) => line.points.push((*place as f64, figure)),
                Err(error) if line.points.is_empty() => return Err(error),
                Err(error) => {
                    line.label = format!("{label} (stops before {place} {over}: {error})");
                    break;
                }
            }
        }
        Ok(line)
    };
    Ok(Growth {
        over: over.to_owned(),
        unit: unit.to_owned(),
        lines: lines.iter().map(line).collect::<Outcome<_>>()?,
    })
}

/// The middle one; of an even number, the upper of the two.
pub(crate) fn median(figures: Vec<f64>) -> f64 {
    Spread::of(figures).median
}

/// The figure that this part of them, 0 to 1, stays at or below.
pub(crate) fn percentile(mut figures: Vec<f64>, part: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place among figures that fit into memory"
    )]
    let place = ((figures.len() as f64 * part).ceil() as usize).saturating_sub(1);
    figures.get(place).copied().unwrap_or(f64::NAN)
}
