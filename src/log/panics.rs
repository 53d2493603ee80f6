//! Panics are logged as errors, with their thread and place, whoever catches them.

use super::failure::{Bounded, ErrorValue};
use slog::Logger;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;

/// A panic as an error of the log.
pub(super) struct Panic {
    message: String,
    pub(super) place: String,
    /// The frames, where `RUST_BACKTRACE` asks for them.
    pub(super) frames: Option<String>,
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Panic")
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Panic {}

/// From now on panics of every thread go to this logger instead of to stderr as bare text.
///
/// The logger's own values are formatted inside the hook, where a second panic ends the process:
/// give it a logger whose values are plain.
pub fn install_panic_hook(log: &Logger) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |info| report(&log, info)));
}

fn report(log: &Logger, info: &std::panic::PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let frames = (backtrace.status() == BacktraceStatus::Captured)
        .then(|| Bounded::of(format_args!("{backtrace}")).text);
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    let panic = Panic {
        message: message.to_owned(),
        place: info
            .location()
            .map_or_else(|| "unknown".to_owned(), ToString::to_string),
        frames,
    };
    let thread = std::thread::current();
    slog::error!(log, "a thread panicked";
        "thread" => thread.name().unwrap_or("unnamed"),
        "place" => &panic.place,
        ErrorValue(&panic));
}
