//! What an evaluation may use, and how it can end without a value.
//!
//! A spent budget is no error that a program could catch: neither `try` nor `//` sees it. Steps stand for
//! time and for memory: whatever is copied or made costs its share, so an evaluation whose steps are bounded
//! is bounded in both.

use std::fmt;

/// The weight of a value, in bytes that it takes about.
pub const MAX_WEIGHT: usize = 4 * 1024 * 1024;
/// How deep a value may nest. Readers of JSON stop at 128, and what keeps a value may wrap it.
pub const MAX_DEPTH: usize = 100;

/// Steps for one evaluation, and for several together.
#[derive(Debug, Clone)]
pub struct Budget {
    each: u64,
    total: u64,
    left: u64,
}

impl Budget {
    /// A budget of `each` steps for one evaluation, and of `total` for all that draw from it.
    #[must_use]
    pub fn new(each: u64, total: u64) -> Self {
        Self {
            each,
            total,
            left: total,
        }
    }

    /// The steps that all evaluations used so far.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.total - self.left
    }

    pub(crate) fn for_one(&self) -> u64 {
        self.each.min(self.left)
    }

    pub(crate) fn draw(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    /// What ran out when an evaluation used all its steps.
    pub(crate) fn spent(&self) -> Error {
        match self.each <= self.left {
            true => Error::Steps(self.each),
            false => Error::TotalSteps(self.total),
        }
    }
}

/// How an evaluation ended without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The expression or its data are wrong: what `try` would have caught.
    Raised(String),
    /// One evaluation used all its steps.
    Steps(u64),
    /// The evaluations of one budget together used all its steps.
    TotalSteps(u64),
    /// A value became too large.
    Weight,
    /// A value nested too deep.
    Depth,
}

impl Error {
    /// What the author can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Raised(_) => {
                "Check the data that the expression reads. `?` and `try` catch an error, `//` gives a default for null."
            }
            Self::Steps(_) | Self::TotalSteps(_) => {
                "Read fewer items, or spread the work over several tasks."
            }
            Self::Weight => "Keep only the fields that are needed.",
            Self::Depth => "Keep the data flatter.",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(message) => f.write_str(message),
            Self::Steps(most) => {
                write!(f, "The expression used more than {} steps.", grouped(*most))
            }
            Self::TotalSteps(most) => {
                write!(
                    f,
                    "The expressions together used more than {} steps.",
                    grouped(*most)
                )
            }
            Self::Weight => write!(
                f,
                "A value became larger than {} MiB.",
                MAX_WEIGHT / 1024 / 1024
            ),
            Self::Depth => write!(f, "A value nests more than {MAX_DEPTH} levels."),
        }
    }
}

impl std::error::Error for Error {}

/// "1,000,000"
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
