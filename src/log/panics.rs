//! Logs each panic as an error, with its thread and location, even if the panic is caught.

use super::failure::{Bounded, ErrorValue};
use super::panic::Panic;
use slog::Logger;
use std::backtrace::{Backtrace, BacktraceStatus};

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
