//! Why no connection was made, and how the client library is called.
//!
//! The library unwraps where the system gives it no file descriptor or no thread. Such a panic in a thread of the pool
//! would end all its attempts without an error, so here it is a failure like any other: the pool tries again.

use crate::error;
use crate::log::Panic;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the library opens for a connection (an event loop and a socket), and the look-up of the host's name beside it.
const DESCRIPTORS: usize = 6;

/// Why no connection was made.
#[derive(Debug)]
pub enum Failure {
    /// The host said so, or nothing.
    Postgres(postgres::Error),
    /// No host is a primary, or the newest primary does not answer. What a host said that refuses, if one does.
    NoPrimary(Option<postgres::Error>),
    /// A newer primary was found meanwhile.
    Superseded,
    /// The process has no file descriptors left.
    NoDescriptors(io::Error),
    /// The client library panicked.
    Panicked(Panic),
}

impl Failure {
    /// Whether another attempt may help.
    pub(super) fn is_away(&self) -> bool {
        match self {
            Self::Postgres(error) => error::is_away(error),
            Self::NoPrimary(_) | Self::Superseded | Self::NoDescriptors(_) | Self::Panicked(_) => {
                true
            }
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Postgres(error) => error.fmt(f),
            Self::NoPrimary(_) => {
                f.write_str("no host of SVC_DATABASE_URL answers as the newest primary")
            }
            Self::Superseded => f.write_str("a newer primary was found"),
            Self::NoDescriptors(_) => {
                f.write_str("the process has no file descriptors left for a connection; raise its limit (LimitNOFILE)")
            }
            Self::Panicked(_) => f.write_str("the client library panicked"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Postgres(error) => error.source(),
            Self::NoPrimary(refusal) => refusal.as_ref().map(|error| error as _),
            Self::Superseded => None,
            Self::NoDescriptors(error) => Some(error),
            Self::Panicked(panic) => Some(panic),
        }
    }
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Calls the client library for what opens a connection.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, postgres::Error>) -> Result<T, Failure> {
    // Another thread may take them meanwhile: then it is a panic, which the log has.
    check_descriptors().map_err(Failure::NoDescriptors)?;
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let outcome = outcome.map_err(|panic| Failure::Panicked(Panic::caught(panic.as_ref())))?;
    Ok(outcome?)
}

/// Whether the process has descriptors for one more connection.
fn check_descriptors() -> io::Result<()> {
    let taken: io::Result<Vec<File>> = (0..DESCRIPTORS).map(|_| File::open("/dev/null")).collect();
    match taken {
        Err(error) if is_shortage(&error) => Err(error),
        // Without /dev/null, nothing is known.
        _ => Ok(()),
    }
}

fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortage = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| shortage.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_a_failure_that_is_tried_again() {
        let failure = guarded(|| -> Result<(), postgres::Error> { panic!("no runtime") });
        let failure = failure.unwrap_err();
        assert!(matches!(failure, Failure::Panicked(_)) && failure.is_away());
        let source = std::error::Error::source(&failure);
        assert_eq!(source.unwrap().to_string(), "no runtime");
    }
}
