//! Waiting for what must come, without guessing how long it takes.

use std::time::{Duration, Instant};

/// How long a test waits for what must come: longer than the longest lease that a test sets, which a server that was held up
/// while it stopped may leave behind, and the next look for such.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `look` gives something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
