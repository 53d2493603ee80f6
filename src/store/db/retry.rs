//! Retries a write while the database is unreachable.
//!
//! ```ignore
//! let written = retry_while_away(
//!     || claimed.lost(),
//!     |is_again| if is_again && was_written()? { Ok(Kept::Yes) } else { write() },
//! );
//! ```
//!
//! Guarantees: the first attempt is immediate. Further ones follow after 50 ms, doubled up to 2 s,
//! for ten minutes at most, and only while the error says that the database is unreachable. Any
//! other result goes to the caller.
//!
//! Not here: whether an attempt without an answer was committed. `write` learns that there was one,
//! and checks.

use crate::error::{Code, Result};
use std::time::{Duration, Instant};

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// Writes, again and again while the database is away, until `is_lost` says that nobody needs it any more. `write` is
/// called with `true` from the second try on: the one before got no answer, so it may have been committed, or may still
/// be under way.
///
/// # Errors
/// Those of the last try.
pub fn retry_while_away<T>(
    is_lost: impl Fn() -> bool,
    mut write: impl FnMut(bool) -> Result<T>,
) -> Result<T> {
    let gives_up_at = Instant::now() + LONGEST_ABSENCE;
    let mut wait = FIRST_WAIT;
    let mut written = write(false);
    while matches!(&written, Err(error) if error.code() == Code::DatabaseUnavailable)
        && !is_lost()
        && Instant::now() < gives_up_at
    {
        std::thread::sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
        written = write(true);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn away() -> Error {
        Error::database_unavailable("as told")
    }

    #[test]
    fn only_a_database_that_is_away_is_tried_again_and_the_writer_is_told_so() {
        let mut tries = Vec::new();
        let written = retry_while_away(
            || false,
            |is_again| {
                tries.push(is_again);
                if is_again { Ok(7) } else { Err(away()) }
            },
        );
        assert_eq!((written.unwrap(), tries), (7, vec![false, true]));
        let refused = retry_while_away(|| false, |_| Err::<(), _>(Error::internal("as told")));
        assert_eq!(refused.unwrap_err().code(), Code::Internal);
    }

    #[test]
    fn nothing_is_tried_again_that_nobody_needs() {
        let mut tries = 0;
        let written = retry_while_away(
            || true,
            |_| {
                tries += 1;
                Err::<(), _>(away())
            },
        );
        assert_eq!(written.unwrap_err().code(), Code::DatabaseUnavailable);
        assert_eq!(tries, 1);
    }
}
