//! Interleaved rounds of a figure and its baseline, and the ratio with its spread.

use super::Outcome;

/// Rounds that count. One more goes before them, to warm up.
pub(crate) const ROUNDS: usize = 7;

/// One figure of each kind, from the same round.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) ours: f64,
    pub(crate) baseline: f64,
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

/// Measures both sides in turn, the other one first in every other round.
pub(crate) fn alternate(
    unit: &str,
    mut ours: impl FnMut() -> Outcome<f64>,
    mut baseline: impl FnMut() -> Outcome<f64>,
) -> Outcome<Vec<Pair>> {
    ours()?;
    baseline()?;
    let mut pairs = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let pair = if round % 2 == 0 {
            let baseline = baseline()?;
            Pair {
                ours: ours()?,
                baseline,
            }
        } else {
            let ours = ours()?;
            Pair {
                ours,
                baseline: baseline()?,
            }
        };
        say(round, pair, unit);
        pairs.push(pair);
    }
    Ok(pairs)
}

/// One round's line.
pub(crate) fn say(round: usize, pair: Pair, unit: &str) {
    println!(
        "  round {}: ours {:.*} {unit}, baseline {:.*} {unit}, ratio {:.2}",
        round + 1,
        decimals(pair.ours),
        pair.ours,
        decimals(pair.baseline),
        pair.baseline,
        pair.ratio()
    );
}

fn decimals(figure: f64) -> usize {
    if figure < 1000.0 { 2 } else { 0 }
}

/// Prints the last line, and says whether the target was met.
pub(crate) fn conclude(name: &str, pairs: &[Pair], target: &Target) -> bool {
    let ratios: Vec<f64> = pairs.iter().map(|pair| pair.ratio()).collect();
    let ratio = median(ratios.clone());
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let (met, wanted) = match *target {
        Target::AtLeast(bound) => (ratio >= bound, format!("at least {bound}")),
        Target::AtMost(bound) => (ratio <= bound, format!("at most {bound}")),
    };
    println!(
        "{name}: ratio {ratio:.2} ({least:.2} to {most:.2} over {} rounds), target {wanted}: {}",
        pairs.len(),
        if met { "met" } else { "missed" }
    );
    met
}

/// The middle one; of an even number, the upper of the two.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
