//! Logs each panic as an error, with its thread and location, even if the panic is caught.

use super::failure::{Bounded, ErrorValue};
use slog::Logger;
use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;

/// A panic as an error of the log.
pub struct Panic {
    message: String,
    /// Where it began, if that is known.
    pub(super) place: Option<String>,
    /// The stack frames, if `RUST_BACKTRACE` is set.
    pub(super) frames: Option<String>,
}

impl Panic {
    /// A panic that was caught. Its place is in the record of the panic hook.
    pub fn caught(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a message");
        Self {
            message: message.to_owned(),
            place: None,
            frames: None,
        }
    }
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

/// Logs the panics of every thread from now on, instead of printing them to stderr.
///
/// The logger's own values are formatted inside the panic hook, where a second panic aborts the
/// process. Pass a logger with plain values only.
pub fn install_panic_hook(log: &Logger) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |info| report(&log, info)));
}

fn report(log: &Logger, info: &std::panic::PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let frames = (backtrace.status() == BacktraceStatus::Captured)
        .then(|| Bounded::of(format_args!("{backtrace}")).text);
    let place = info
        .location()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let panic = Panic {
        place: Some(place.clone()),
        frames,
        ..Panic::caught(info.payload())
    };
    let thread = std::thread::current();
    slog::error!(log, "a thread panicked";
        "thread" => thread.name().unwrap_or("unnamed"),
        "place" => place,
        ErrorValue(&panic));
}
