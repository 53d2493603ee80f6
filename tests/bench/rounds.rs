//! Interleaved rounds of a figure and its baseline, and the ratio with its spread.

use super::Outcome;
use super::machine::{Moment, Used};

/// Rounds that count. One more goes before them, to warm up.
pub(crate) const ROUNDS: usize = 7;
/// A round during which others used more of the processors than this is measured again.
const OTHERS_MOST: f64 = 0.1;
/// Rounds measured at most; the least disturbed of them count.
const TRIES: usize = 3 * ROUNDS;

/// One figure of each kind, from the same round.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) ours: f64,
    pub(crate) baseline: f64,
}

/// A round.
struct Round {
    pair: Pair,
    /// The part of all processors that others used meanwhile.
    others: f64,
}

impl Pair {
    fn ratio(self) -> f64 {
        self.ours / self.baseline
    }
}

/// What the median ratio has to be.
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
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

/// Measures both sides in turn, the other one first in every other round, and says whether the
/// target was met in the last line.
pub(crate) fn compare(
    name: &str,
    unit: &str,
    target: &Target,
    mut ours: impl FnMut() -> Outcome<Figure>,
    mut baseline: impl FnMut() -> Outcome<Figure>,
) -> Outcome<bool> {
    ours()?;
    baseline()?;
    let mut rounds: Vec<Round> = Vec::new();
    let quiet = |rounds: &[Round]| {
        rounds
            .iter()
            .filter(|round| round.others <= OTHERS_MOST)
            .count()
    };
    while quiet(&rounds) < ROUNDS && rounds.len() < TRIES {
        let (first, second);
        let swapped = rounds.len() % 2 == 1;
        let (mine, base) = if swapped {
            first = ours()?;
            second = baseline()?;
            (&first, &second)
        } else {
            first = baseline()?;
            second = ours()?;
            (&second, &first)
        };
        let round = Round {
            pair: Pair {
                ours: mine.value,
                baseline: base.value,
            },
            others: mine.used.others.max(base.used.others),
        };
        println!(
            "  round {}: ours {:.*} {unit}{}, baseline {:.*} {unit}{}, ratio {:.2}; others used {:.0} %",
            rounds.len() + 1,
            decimals(mine.value),
            mine.value,
            mine.note,
            decimals(base.value),
            base.value,
            base.note,
            round.pair.ratio(),
            round.others * 100.0
        );
        rounds.push(round);
    }
    Ok(conclude(name, rounds, target))
}

fn decimals(figure: f64) -> usize {
    if figure < 1000.0 { 2 } else { 0 }
}

/// Prints the last line, and says whether the target was met.
fn conclude(name: &str, mut rounds: Vec<Round>, target: &Target) -> bool {
    rounds.sort_by(|one, other| one.others.total_cmp(&other.others));
    rounds.truncate(ROUNDS);
    let others = rounds.last().map_or(0.0, |round| round.others);
    if others > OTHERS_MOST {
        println!(
            "{name}: this machine is not quiet (others used up to {:.0} % of it): the ratio says little",
            others * 100.0
        );
    }
    let ratios: Vec<f64> = rounds.iter().map(|round| round.pair.ratio()).collect();
    let ratio = median(ratios.clone());
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let (met, wanted) = match *target {
        Target::AtLeast(bound) => (ratio >= bound, format!("at least {bound}")),
        Target::AtMost(bound) => (ratio <= bound, format!("at most {bound}")),
    };
    println!(
        "{name}: ratio {ratio:.2} ({least:.2} to {most:.2} over {} rounds), target {wanted}: {}",
        rounds.len(),
        if met { "met" } else { "missed" }
    );
    met
}

/// The middle one; of an even number, the upper of the two.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
