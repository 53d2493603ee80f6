//! Structured records of everything the service does (specification section 1.5), on `slog`.
//!
//! Loggers are passed down, never global: [`open`] makes the root, [`subsystem`] names the part
//! that logs, `log.new(slog::o!("runId" => …))` adds what is known of the work at hand.
//!
//! What it guarantees: a value under a telling key, a token, a bearer credential or a URL password
//! is not written, in either format; every JSON line is one object with unique keys; a text cannot
//! forge a record; a record is bounded; logging neither panics nor fails, whatever a value's own
//! code or the sink does. A disabled record costs a comparison, or, where some subsystem is more
//! talkative than this one, a walk over the logger's keys.
//!
//! Not here: files and their rotation (the service manager's work), a queue before the sink (a
//! record is on its way when the call returns, so that none is lost in a crash), the reading of
//! the environment (`config`), and where requests get their trace from (`http`).

mod collect;
mod drain;
mod failure;
mod format;
mod nested;
mod options;
mod panics;
mod redact;
mod subsystem;
pub mod trace;

#[cfg(test)]
mod tests;

pub use failure::ErrorValue;
pub use options::{Fault, Format, Given, Level, Options, Problem, Setting};
pub use panics::install_panic_hook;
pub use subsystem::Subsystem;

use crate::ids::Clock;
use slog::Logger;
use std::io::Write;

/// A logger that writes to this sink. Records are written one at a time, each in one piece; a sink
/// that fails is ignored. The sink must not log.
pub fn open(options: &Options, clock: Clock, sink: impl Write + Send + 'static) -> Logger {
    Logger::root(drain::Log::new(options, clock, Box::new(sink)), slog::o!())
}

/// The same logger for a subsystem: its name is in the records, its level filters them.
pub fn subsystem(log: &Logger, subsystem: Subsystem) -> Logger {
    log.new(slog::o!(collect::SUBSYSTEM => subsystem.name()))
}
