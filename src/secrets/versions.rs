//! Versions of a secret: how long the previous one counts, and what became of wrapping them anew.

use time::Duration;

/// How long the previous value still signs after it was replaced.
pub const OVERLAP: Duration = Duration::hours(24);

/// The result of wrapping data keys anew.
#[derive(Debug, Default, serde::Serialize)]
pub struct Rewrapped {
    /// Versions examined.
    pub versions: u64,
    /// Versions already wrapped by the present key. In a dry run they were read as well.
    pub current: u64,
    /// Versions wrapped anew; in a dry run, those that would be.
    pub rewrapped: u64,
    /// One sentence for each version that could not be read.
    pub unreadable: Vec<String>,
}
