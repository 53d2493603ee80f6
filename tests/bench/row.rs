//! A row of the suite: what was done beside what, the figure, its spread, and the target.
//!
//! A row is kept as JSON (`docs/benchmarks/NAME.json`), so that the page is made from all rows although a run of the
//! suite may measure some of them again.

use serde::{Deserialize, Serialize};

/// What the figure has to be.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub(crate) fn is_met_by(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::AtMost(bound) => figure <= bound,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(out, "at least {bound}"),
            Self::AtMost(bound) => write!(out, "at most {bound}"),
        }
    }
}

/// What a row says of itself before anything is measured.
pub(crate) struct About {
    /// Lower case with dashes: what its files are called.
    pub(crate) name: &'static str,
    /// What our side does.
    pub(crate) work: &'static str,
    /// What it stands beside.
    pub(crate) beside: &'static str,
    /// Of both sides.
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
    /// What the comparison does not say.
    pub(crate) says_not: &'static str,
}

/// The middle of a figure's rounds, and how far they lie apart.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |place: usize| figures.get(place).copied().unwrap_or(f64::NAN);
        Self {
            median: at(figures.len() / 2),
            least: at(0),
            most: at(figures.len().saturating_sub(1)),
        }
    }
}

/// How a figure grows with something.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Growth {
    /// What grows: `clients`, `rows`.
    pub(crate) over: String,
    /// Of the figures.
    pub(crate) unit: String,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) label: String,
    /// How much of what grows, and the figure there.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A measured row.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) name: String,
    /// The day, UTC.
    pub(crate) measured_on: String,
    pub(crate) work: String,
    pub(crate) beside: String,
    pub(crate) unit: String,
    pub(crate) target: Target,
    pub(crate) says_not: String,
    /// What the target is about: the ratio of the two sides; without another side, ours.
    pub(crate) figure: Spread,
    pub(crate) ours: Spread,
    pub(crate) baseline: Option<Spread>,
    pub(crate) rounds: usize,
    /// The part of the processors that others used, in the worst round that counts.
    pub(crate) others: f64,
    /// The part of the processors that was busy while our side was measured.
    pub(crate) busy: f64,
    /// Names and versions of the other side.
    pub(crate) versions: Vec<String>,
    /// What the machine itself can do at most, where that bounds the row.
    pub(crate) limit: Option<String>,
    pub(crate) growth: Vec<Growth>,
}

impl Row {
    pub(crate) fn is_met(&self) -> bool {
        self.target.is_met_by(self.figure.median)
    }

    /// What stands behind the figure and the target: a ratio has no unit.
    pub(crate) fn figure_unit(&self) -> String {
        match self.baseline {
            Some(_) => String::new(),
            None => format!(" {}", self.unit),
        }
    }

    /// The row's last line.
    pub(crate) fn line(&self) -> String {
        let Spread {
            median,
            least,
            most,
        } = self.figure;
        let unit = self.figure_unit();
        format!(
            "{}: {}{unit} ({} to {} over {} rounds), target {}{unit}: {}",
            self.name,
            rounded(median),
            rounded(least),
            rounded(most),
            self.rounds,
            self.target,
            if self.is_met() { "met" } else { "missed" },
        )
    }
}

/// With as many digits as say something.
pub(crate) fn rounded(figure: f64) -> String {
    let digits = match figure.abs() {
        small if small < 10.0 => 2,
        middle if middle < 1000.0 => 1,
        _ => 0,
    };
    format!("{figure:.digits$}")
}
