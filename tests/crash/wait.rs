//! Waiting for what must come, without guessing how long it takes.

use std::time::{Duration, Instant};

/// How long a test waits for what must come: longer than the longest lease whose end a test waits for, which a server that was
/// held up while it stopped may leave behind, and the next look for such.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `look` gives something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, look)
}

#[track_caller]
pub(crate) fn eventually_within<T>(
    limit: Duration,
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        moment();
    }
}

/// Between two looks of a loop that has a deadline or is told to end, and between two requests of a load.
pub(crate) fn moment() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Keeps up the pace of a load: its next part is due then.
pub(crate) fn until_due(due: Instant) {
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}
