//! The loop that makes monthly partitions ahead of time, and drops those past their retention.
//!
//! A round runs at the start, every hour, in a new month (a clock that jumped may have no
//! partitions there), and half a minute after a failed round. It runs on every replica, so a round
//! must be safe to run concurrently.

use crate::error::{Error, Result};
use crate::ids::Clock;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use time::{Date, Month, OffsetDateTime, Time};

const PERIOD: Duration = Duration::from_secs(3600);
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// How often it looks at the clock.
const LOOK: Duration = Duration::from_secs(1);

/// Runs rounds until `woken` disconnects; a message there brings one at once. `look` is called after each look at the
/// clock, once a second.
pub fn keep(
    clock: &Clock,
    woken: &Receiver<()>,
    mut round: impl FnMut() -> Result<()>,
    mut look: impl FnMut(),
    failed: impl Fn(&Error),
) {
    let mut next_round = Instant::now();
    let mut seen = None;
    let mut wait = Duration::ZERO;
    loop {
        match woken.recv_timeout(wait) {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) => next_round = Instant::now(),
        }
        wait = LOOK;
        let month = clock.month();
        if Instant::now() >= next_round || seen != Some(month) {
            seen = Some(month);
            next_round = Instant::now() + PERIOD;
            if let Err(error) = round() {
                next_round = Instant::now() + AFTER_FAILURE;
                failed(&error);
            }
        }
        look();
    }
}

/// The end of the month that begins on this day.
pub fn end_of(month: Date) -> OffsetDateTime {
    let (year, next) = match month.month() {
        Month::December => (month.year() + 1, Month::January),
        other => (month.year(), other.next()),
    };
    let first = Date::from_calendar_date(year, next, 1).unwrap_or(Date::MAX);
    OffsetDateTime::new_utc(first, Time::MIDNIGHT)
}
