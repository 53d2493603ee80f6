//! Something outside that the service needs: one warning when it goes away, one record when it is
//! back.
//!
//! Whoever talks to it says how each try went. What others say of the same outage in the meantime
//! is theirs: they ask [`Outage::is_on`], and write at level debug.
//!
//! Guarantees: a dependency that now answers and now does not is one outage, as long as it fails at
//! least once in [`HOLD`]. It is not over while new connections to it fail. A kept connection that may
//! have died in an outage, and is found dead after it, is not another outage. A try that succeeds costs
//! one comparison.

use super::failure::ErrorValue;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long after the newest failure a success is believed.
const HOLD: Duration = Duration::from_secs(2);

/// How long after its newest failure a place counts as away: nobody may ever ask it again. Shorter than the alerts wait, so
/// that a single failure raises none.
const COUNTED: Duration = Duration::from_secs(4 * 60);

/// How long after its newest failure a place may be forgotten that others need the room of.
const STALE: Duration = Duration::from_secs(3600);

/// Outages of one kind that are kept apart. Those beyond are one.
const PLACES_MAX: usize = 256;

/// The place of those beyond. Nobody knows which they are, so it is over once none of them has failed for [`COUNTED`].
const OTHERS: &str = "others";

/// One dependency.
#[derive(Debug)]
pub struct Outage {
    log: slog::Logger,
    what: &'static str,
    /// Host and port, or what else says where it is.
    place: String,
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// None: it is not away.
    times: Option<Times>,
    /// When it was last known to be away. Older connections may have died then.
    known_at: Option<Instant>,
    /// The newest attempt to connect failed.
    cannot_connect: bool,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    began: Instant,
    failed: Instant,
    failures: u64,
}

impl Outage {
    /// A dependency that is not known to be away. `what`: its name as the subject of a sentence.
    pub fn new(log: slog::Logger, what: &'static str, place: impl Into<String>) -> Self {
        Self {
            log,
            what,
            place: place.into(),
            is_on: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is away, as far as is known.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// A try failed because it is away.
    pub fn failed(&self, error: &(dyn Error + 'static)) {
        self.failed_at(error, Instant::now());
    }

    /// An attempt to connect failed. The outage is not over before [`Outage::connected`]: a few connections that still
    /// work are not the whole dependency.
    pub fn could_not_connect(&self, error: &(dyn Error + 'static)) {
        self.lock().cannot_connect = true;
        self.failed(error);
    }

    /// An attempt to connect succeeded.
    pub fn connected(&self) {
        self.lock().cannot_connect = false;
    }

    /// A kept connection is dead, which last answered at this time. If it may have died in an outage that was logged, this
    /// is no news.
    pub fn lost(&self, answered_at: Instant, error: &(dyn Error + 'static)) {
        self.lost_at(answered_at, error, Instant::now());
    }

    fn lost_at(&self, answered_at: Instant, error: &(dyn Error + 'static), now: Instant) {
        if self.was_away_since(answered_at) {
            slog::debug!(self.log, "{} ended a connection in an outage", self.what; "address" => &self.place, ErrorValue(error));
        } else {
            self.failed_at(error, now);
        }
    }

    /// Whether it was known to be away at this time or later.
    pub fn was_away_since(&self, time: Instant) -> bool {
        self.lock().known_at.is_some_and(|at| at >= time)
    }

    fn failed_at(&self, error: &(dyn Error + 'static), now: Instant) {
        let mut state = self.lock();
        state.known_at = state.known_at.max(Some(now));
        match &mut state.times {
            Some(times) => {
                times.failed = now;
                times.failures += 1;
                slog::debug!(self.log, "{} is still away", self.what; "address" => &self.place, ErrorValue(error));
            }
            None => {
                state.times = Some(Times {
                    began: now,
                    failed: now,
                    failures: 1,
                });
                self.is_on.store(true, Ordering::Relaxed);
                slog::warn!(self.log, "{} is away", self.what; "address" => &self.place, ErrorValue(error));
            }
        }
    }

    /// Whether a try failed within this time.
    fn has_failed_within(&self, time: Duration, now: Instant) -> bool {
        let times = self.lock().times;
        times.is_some_and(|times| now.saturating_duration_since(times.failed) <= time)
    }

    /// A try succeeded.
    pub fn answered(&self) {
        if self.is_on() {
            self.answered_at(Instant::now());
        }
    }

    fn answered_at(&self, now: Instant) {
        let mut state = self.lock();
        let held = state.times.filter(|times| now - times.failed >= HOLD);
        let Some(away) = held.filter(|_| !state.cannot_connect) else {
            return;
        };
        state.times = None;
        state.known_at = Some(now);
        self.is_on.store(false, Ordering::Relaxed);
        let away_ms = u64::try_from((now - away.began).as_millis()).unwrap_or(u64::MAX);
        slog::info!(self.log, "{} is back", self.what; "address" => &self.place, "awayMs" => away_ms,
            "failures" => away.failures);
    }
}

/// Dependencies of one kind, by where they are: a tenant chooses the place.
#[derive(Debug)]
pub struct Outages {
    log: slog::Logger,
    what: &'static str,
    /// Those that are away.
    away: Mutex<BTreeMap<String, Outage>>,
}

impl Outages {
    /// None is away.
    pub fn new(log: slog::Logger, what: &'static str) -> Self {
        Self {
            log,
            what,
            away: Mutex::default(),
        }
    }

    /// A try at this place failed because it is away.
    pub fn failed(&self, place: impl Display, error: &(dyn Error + 'static)) {
        self.failed_at(place.to_string(), error, Instant::now());
    }

    fn failed_at(&self, place: String, error: &(dyn Error + 'static), now: Instant) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.len() >= PLACES_MAX {
            away.retain(|place, outage| {
                let kept = if place == OTHERS { COUNTED } else { STALE };
                outage.has_failed_within(kept, now)
            });
        }
        let place = match away.contains_key(&place) || away.len() < PLACES_MAX {
            true => place,
            false => OTHERS.to_owned(),
        };
        // Under the lock: one that answers meanwhile would take out what is not marked yet.
        away.entry(place.clone())
            .or_insert_with(|| Outage::new(self.log.clone(), self.what, place))
            .failed_at(error, now);
    }

    /// How many are away: those that failed of late and have not answered since.
    pub fn count(&self) -> usize {
        self.count_at(Instant::now())
    }

    fn count_at(&self, now: Instant) -> usize {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.values()
            .filter(|outage| outage.has_failed_within(COUNTED, now))
            .count()
    }

    /// A try at this place succeeded.
    pub fn answered(&self, place: impl FnOnce() -> String) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.is_empty() {
            return;
        }
        let place = place();
        let Some(outage) = away.get(&place) else {
            return;
        };
        outage.answered();
        if !outage.is_on() {
            away.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Clock;
    use crate::log::{Options, open};
    use serde_json::Value;
    use std::io::{self, Write};
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn log(&self) -> slog::Logger {
            open(&Options::default(), Clock::system(), self.clone())
        }

        /// Level and message of each record, and its address.
        fn said(&self) -> Vec<[String; 3]> {
            let lines = self.0.lock().unwrap();
            let lines = std::str::from_utf8(&lines).unwrap().lines();
            let said = lines.map(|line| {
                let record: Value = serde_json::from_str(line).unwrap();
                ["level", "message", "address"]
                    .map(|name| record[name].as_str().unwrap().to_owned())
            });
            said.collect()
        }
    }

    fn refused() -> io::Error {
        io::ErrorKind::ConnectionRefused.into()
    }

    #[test]
    fn an_outage_is_one_warning_and_one_record_of_its_end() {
        let lines = Lines::default();
        let outage = Outage::new(lines.log(), "The database", "db:5432");
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        outage.answered();
        assert!(!outage.is_on());
        for second in [0, 1, 5] {
            outage.failed_at(&refused(), at(second));
            // It is not back yet: another try may have been on its way.
            outage.answered_at(at(second + 1));
            assert!(outage.is_on());
        }
        outage.answered_at(at(8));
        outage.answered_at(at(9));
        assert!(!outage.is_on());
        outage.failed_at(&refused(), at(20));
        let expected = [
            ["warn", "The database is away", "db:5432"],
            ["info", "The database is back", "db:5432"],
            ["warn", "The database is away", "db:5432"],
        ];
        assert_eq!(lines.said(), expected);
    }

    #[test]
    fn a_connection_that_died_in_an_outage_is_no_other_outage() {
        let lines = Lines::default();
        let outage = Outage::new(lines.log(), "The database", "db:5432");
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        outage.lost_at(at(1), &refused(), at(2));
        // It answered after the first was lost, and ended with it.
        outage.answered_at(at(6));
        assert!(!outage.is_on());
        for answered in [0, 2, 3, 6] {
            outage.lost_at(at(answered), &refused(), at(7));
        }
        assert!(!outage.is_on());
        assert!(outage.was_away_since(at(6)) && !outage.was_away_since(at(7)));
        // It worked after the outage.
        outage.lost_at(at(8), &refused(), at(9));
        let expected = [
            ["warn", "The database is away", "db:5432"],
            ["info", "The database is back", "db:5432"],
            ["warn", "The database is away", "db:5432"],
        ];
        assert_eq!(lines.said(), expected);
    }

    #[test]
    fn an_outage_is_not_over_while_no_connection_can_be_made() {
        let lines = Lines::default();
        let outage = Outage::new(lines.log(), "The database", "db:5432");
        outage.could_not_connect(&refused());
        let later = Instant::now() + 2 * HOLD;
        // On a connection that still works.
        outage.answered_at(later);
        assert!(outage.is_on());
        outage.connected();
        outage.answered_at(later);
        assert!(!outage.is_on());
        assert_eq!(lines.said().len(), 2);
    }

    #[test]
    fn places_are_told_apart_up_to_a_bound() {
        let lines = Lines::default();
        let outages = Outages::new(lines.log(), "A model provider");
        for number in 0..PLACES_MAX + 3 {
            for _ in 0..2 {
                outages.failed(number, &refused());
            }
        }
        outages.answered(|| "0".to_owned());
        let said = lines.said();
        assert_eq!(said.len(), PLACES_MAX + 1);
        assert_eq!(said[0], ["warn", "A model provider is away", "0"]);
        assert_eq!(said[PLACES_MAX][2], "others");
    }

    #[test]
    fn a_place_that_nobody_asks_again_is_away_for_some_minutes_alone() {
        let outages = Outages::new(Lines::default().log(), "A tool");
        let start = Instant::now();
        let failed = |place: &str, at| outages.failed_at(place.to_owned(), &refused(), at);
        failed("a", start);
        failed("b", start + COUNTED / 2);
        assert_eq!(outages.count_at(start + COUNTED), 2);
        assert_eq!(outages.count_at(start + COUNTED + HOLD), 1);
        assert_eq!(outages.count_at(start + 2 * COUNTED), 0);
        failed("a", start + 2 * COUNTED);
        assert_eq!(outages.count_at(start + 2 * COUNTED), 1);
    }

    #[test]
    fn the_group_of_those_beyond_the_bound_is_over_once_none_of_it_fails() {
        let lines = Lines::default();
        let outages = Outages::new(lines.log(), "A tool");
        let start = Instant::now();
        let all_fail = |at| {
            for number in 0..=PLACES_MAX {
                outages.failed_at(number.to_string(), &refused(), at);
            }
        };
        let of_group = || lines.said().iter().filter(|said| said[2] == OTHERS).count();
        all_fail(start);
        all_fail(start + COUNTED);
        assert_eq!(of_group(), 1, "one outage");
        all_fail(start + 3 * COUNTED);
        assert_eq!(of_group(), 2, "another one");
    }
}
