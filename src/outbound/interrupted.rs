//! Calls of a socket that end before their deadline.

use std::io;

/// A socket timeout or a signal can end a call early; the deadline decides whether to continue.
pub(super) fn is_retry(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
