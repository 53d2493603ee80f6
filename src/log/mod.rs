//! Structured logging of the whole service (specification section 1.5), on `slog`.
//!
//! Loggers are passed down, never global. [`open`] makes the root, [`subsystem`] names the part
//! that logs, and `log.new(slog::o!("runId" => …))` adds what is known about the present work.
//!
//! Guarantees: a value under a sensitive key, a token, a bearer credential and a URL password are
//! never written. Every JSON line is one object with unique keys. No text can forge a record. A
//! record is bounded. Logging neither panics nor fails, whatever a value's code or the sink does. A
//! disabled record costs one comparison; if some subsystem is more verbose, it costs a walk over
//! the logger's keys.
//!
//! Not here: files and their rotation (the service manager), a queue before the sink (a record is
//! written when the call returns, so a crash loses none), the environment (`config`), the trace of
//! a request (`http`).

mod collect;
mod drain;
mod failure;
mod format;
mod level;
mod nested;
mod options;
mod outage;
mod panic;
mod panics;
mod redact;
mod subsystem;
pub mod trace;

#[cfg(test)]
mod tests;

pub use failure::ErrorValue;
pub use level::Level;
pub use options::{Fault, Format, Given, Options, Problem, Setting};
pub use outage::{Outage, Outages};
pub use panic::Panic;
pub use panics::install_panic_hook;
pub use subsystem::Subsystem;

use crate::ids::Clock;
use slog::Logger;
use std::io::Write;

/// Writes a warning, or at level debug what follows from an outage that the log has already told of.
#[macro_export]
macro_rules! warn_unless {
    ($is_known:expr, $($record:tt)*) => {
        match $is_known {
            true => slog::debug!($($record)*),
            false => slog::warn!($($record)*),
        }
    };
}

/// A logger that writes to this sink, one record at a time. Errors of the sink are ignored. The
/// sink must not log.
pub fn open(options: &Options, clock: Clock, sink: impl Write + Send + 'static) -> Logger {
    Logger::root(drain::Log::new(options, clock, Box::new(sink)), slog::o!())
}

/// The same logger for a subsystem. Its name appears in the records, and its level filters them.
pub fn subsystem(log: &Logger, subsystem: Subsystem) -> Logger {
    log.new(slog::o!(collect::SUBSYSTEM => subsystem.name()))
}
