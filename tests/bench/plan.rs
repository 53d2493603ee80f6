//! How much is measured: the whole suite for the page of figures, or the short form that shows each row once more in
//! minutes.

/// Rounds that count in the whole suite. One more goes before them, to warm up.
const ROUNDS: usize = 7;
/// Rounds measured at most; the least disturbed of them count.
const TRIES: usize = 3 * ROUNDS;
/// Rounds of the short form, whatever else the machine does.
const SHORT_ROUNDS: usize = 3;

/// What this run of the suite is for.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// The short form: fewer rounds, smaller data, no growth.
    pub(crate) short: bool,
}

impl Plan {
    /// Rounds that count.
    pub(crate) fn rounds(self) -> usize {
        self.pick(SHORT_ROUNDS, ROUNDS)
    }

    /// Rounds measured at most.
    pub(crate) fn tries(self) -> usize {
        self.pick(SHORT_ROUNDS, TRIES)
    }

    /// A size in the short form, and in the whole suite.
    pub(crate) fn pick<T>(self, short: T, whole: T) -> T {
        if self.short { short } else { whole }
    }
}
