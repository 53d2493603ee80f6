//! Admission control before the authorization server: a limit on checks in flight, a circuit breaker,
//! and a limit on denials of one credential. A session counts as the token from which it came, or else as its person.
//!
//! Guarantees (`bounded-everything`, `bulkheads`): a bounded number of requests asks the
//! authorization server at once, and none while it is known to be unreachable. When all permits are
//! taken, callers queue briefly (`concurrency_limit`). A caller that gets no permit is told why: the
//! authorization server hangs, or this process is overloaded.
//!
//! Not here: the question (`check`), and how it is asked (`sync::permissions`).

use super::fga::Failure;
use super::permissions::{self, Answer, Asked, Permissions};
use crate::audit::Audit;
use crate::concurrency_limit::{BRIEFLY, Limiter};
use crate::error::{Code, Error, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Failures in a row that open the circuit breaker.
const FAILURES: u32 = 5;

/// How long it stays open; then one request probes. Until a probe is answered nobody is, so this is what an
/// authorization server that comes back is noticed late by.
const PAUSE: Duration = Duration::from_millis(250);

/// Credentials whose denials are counted at once. One that was forgotten begins anew.
const COUNTED: usize = 10_000;

/// How often it is recorded that a credential is refused without a decision.
const RECORDED_EVERY: Duration = Duration::from_secs(60);

/// The bounds.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Requests that may ask at once.
    pub checks_in_flight: usize,
    /// How often a credential may be denied in a minute, and at once.
    pub denials_per_minute: u32,
}

/// Figures for `/metrics`, since the start where they are not of this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that ask.
    pub checks_in_flight: usize,
    /// Requests that wait for a permit.
    pub checks_waiting: usize,
    /// Requests that got no permit.
    pub checks_refused: u64,
    /// Checks without an answer, also those that were not asked because of it.
    pub checks_failed: u64,
    /// The circuit breaker is open: no request asks, or one probes.
    pub is_breaker_open: bool,
    /// Credentials that are not served because they were denied too often.
    pub credentials_limited: usize,
    /// Requests that came with one.
    pub requests_limited: u64,
}

/// What stands between the requests and the authorization server, while authorization is on.
pub struct Admission {
    permissions: Permissions,
    pub(super) audit: Audit,
    checks: Limiter,
    breaker: Breaker,
    denials: Denials,
    refused: AtomicU64,
    failed: AtomicU64,
    limited: AtomicU64,
}

impl Admission {
    /// Asks nothing yet.
    pub fn new(permissions: Permissions, audit: Audit, options: &Options) -> Self {
        Self {
            permissions,
            audit,
            checks: Limiter::new(options.checks_in_flight.max(1)),
            breaker: Breaker::default(),
            denials: Denials::new(options.denials_per_minute),
            refused: AtomicU64::default(),
            failed: AtomicU64::default(),
            limited: AtomicU64::default(),
        }
    }

    /// The figures so far.
    pub fn stats(&self) -> Stats {
        let (checks_in_flight, checks_waiting) = self.checks.load();
        Stats {
            checks_in_flight,
            checks_waiting,
            checks_refused: self.refused.load(Ordering::Relaxed),
            checks_failed: self.failed.load(Ordering::Relaxed),
            is_breaker_open: self.breaker.is_open(),
            credentials_limited: self.denials.spent_now(Instant::now()),
            requests_limited: self.limited.load(Ordering::Relaxed),
        }
    }

    /// Asks for a request.
    ///
    /// # Errors
    /// `overloaded`: too many ask already, and get their answers. `authorization-unavailable`: there
    /// is no answer, or none is expected. Those of the database.
    pub(super) fn ask(&self, tenant_id: Uuid, asked: &Asked) -> Result<Answer> {
        let permit = self.checks.acquire_briefly();
        let _permit = permit.ok_or_else(|| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.counted(no_permit(self.permissions.silent_for()))
        })?;
        self.ask_unlimited(tenant_id, asked)
    }

    /// Whether the authorization server failed several times in a row: no answer is expected of it.
    pub fn is_away(&self) -> bool {
        self.breaker.is_open()
    }

    /// Counts a check without an answer.
    fn counted(&self, error: Error) -> Error {
        if error.code() == Code::AuthorizationUnavailable {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        error
    }

    /// Asks without a permit, on a thread that serves no requests.
    ///
    /// # Errors
    /// As [`Admission::ask`], without `overloaded`.
    pub(super) fn ask_unlimited(&self, tenant_id: Uuid, asked: &Asked) -> Result<Answer> {
        let answer = self
            .breaker
            .call(Instant::now, || self.permissions.ask(tenant_id, asked));
        answer.map_err(|error| self.counted(error))
    }

    /// Whether the credential is refused because it was denied too often.
    pub(super) fn limited(&self, key_id: Uuid) -> Option<Limited> {
        let limited = self.denials.limited(key_id, Instant::now());
        if limited.is_some() {
            self.limited.fetch_add(1, Ordering::Relaxed);
        }
        limited
    }

    /// Counts a denial.
    pub(super) fn denied(&self, key_id: Uuid) {
        self.denials.count(key_id, Instant::now());
    }
}

/// A credential is refused without a decision, because it was denied too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limited {
    /// That is to be recorded.
    Now,
    /// It was recorded within the last minute.
    Still,
}

/// Why there is no permit. As long as callers queue for one, a server that serves has answered
/// somebody. The call that was first to wait may have begun after a caller queued, on a busy machine long after.
fn no_permit(silent_for: Duration) -> Error {
    if silent_for >= BRIEFLY / 2 {
        return permissions::silent(silent_for);
    }
    Error::new(
        Code::Overloaded,
        "Too many requests wait for the authorization server. Try again shortly.",
    )
}

/// A circuit breaker: opens after several failures in a row, and lets one request probe after a pause.
#[derive(Default)]
struct Breaker(Mutex<Failures>);

#[derive(Default)]
struct Failures {
    in_a_row: u32,
    /// Open until then.
    until: Option<Instant>,
    /// A probe is under way.
    probing: bool,
    /// The message of the last failure.
    said: String,
}

impl Breaker {
    fn call<T>(&self, now: impl Fn() -> Instant, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        let probe = self.enter(now())?;
        let answer = ask();
        let mut failures = self.lock();
        match &answer {
            Ok(_) => {
                failures.in_a_row = 0;
                failures.until = None;
            }
            Err(error) if is_outage(error) => {
                failures.in_a_row = failures.in_a_row.saturating_add(1);
                error.message().clone_into(&mut failures.said);
                if failures.in_a_row >= FAILURES {
                    failures.until = Some(now() + PAUSE);
                }
            }
            // It says nothing of the authorization server.
            Err(_) => {}
        }
        drop(failures);
        drop(probe);
        answer
    }

    fn enter(&self, now: Instant) -> Result<Option<Probe<'_>>> {
        let mut failures = self.lock();
        let Some(until) = failures.until else {
            return Ok(None);
        };
        if now < until || failures.probing {
            return Err(
                Error::new(Code::AuthorizationUnavailable, failures.said.clone())
                    .because("not asked: it failed several times in a row a moment ago"),
            );
        }
        failures.probing = true;
        Ok(Some(Probe(self)))
    }

    fn is_open(&self) -> bool {
        self.lock().until.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the authorization server itself gave no answer. One tenant's store that is not in place
/// yet says nothing of the others'.
fn is_outage(error: &Error) -> bool {
    let failure = error
        .cause()
        .and_then(|cause| cause.downcast_ref::<Failure>());
    failure.is_some_and(Failure::is_transient)
}

/// The probe. When it is dropped, however it ended, another request may probe.
struct Probe<'a>(&'a Breaker);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.lock().probing = false;
    }
}

/// How often each credential was denied of late: a bucket that a denial empties and time fills.
struct Denials {
    most: f64,
    spent: Mutex<HashMap<Uuid, Spent>>,
}

#[derive(Clone, Copy)]
struct Spent {
    denials: f64,
    at: Instant,
    /// When it was last recorded that the credential is refused.
    recorded_at: Option<Instant>,
}

impl Denials {
    fn new(per_minute: u32) -> Self {
        Self {
            most: f64::from(per_minute.max(1)),
            spent: Mutex::default(),
        }
    }

    fn left_of(&self, spent: Spent, now: Instant) -> f64 {
        let forgiven = now.saturating_duration_since(spent.at).as_secs_f64() * self.most / 60.0;
        (spent.denials - forgiven).max(0.0)
    }

    fn is_at_most(&self, spent: Spent, now: Instant) -> bool {
        self.left_of(spent, now) > self.most - 1.0
    }

    fn limited(&self, key_id: Uuid, now: Instant) -> Option<Limited> {
        let mut all = self.lock();
        let spent = all.get_mut(&key_id)?;
        if !self.is_at_most(*spent, now) {
            return None;
        }
        let recorded_at = spent.recorded_at;
        if recorded_at.is_some_and(|at| now.saturating_duration_since(at) < RECORDED_EVERY) {
            return Some(Limited::Still);
        }
        spent.recorded_at = Some(now);
        Some(Limited::Now)
    }

    /// How many are spent.
    fn spent_now(&self, now: Instant) -> usize {
        let all = self.lock();
        all.values()
            .filter(|spent| self.is_at_most(**spent, now))
            .count()
    }

    fn count(&self, key_id: Uuid, now: Instant) {
        let mut all = self.lock();
        if all.len() >= COUNTED && !all.contains_key(&key_id) {
            all.retain(|_, spent| self.left_of(*spent, now) > 0.0);
            if all.len() >= COUNTED {
                // Some other credential begins anew: better than no bound.
                let some = all.keys().next().copied();
                some.map(|some| all.remove(&some));
            }
        }
        let before = all.get(&key_id).copied();
        let left = before.map_or(0.0, |spent| self.left_of(spent, now));
        let spent = Spent {
            denials: (left + 1.0).min(self.most),
            at: now,
            recorded_at: before.and_then(|spent| spent.recorded_at),
        };
        all.insert(key_id, spent);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Spent>> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Result<()> {
        let said = "FGA Error: connection refused";
        let failure = Failure::Unreachable("connection refused".to_owned());
        Err(Error::new(Code::AuthorizationUnavailable, said).because(failure))
    }

    #[test]
    fn after_failures_in_a_row_nobody_asks_until_one_gets_an_answer() {
        let breaker = Breaker::default();
        let start = Instant::now();
        let call = |at: Duration, ask: fn() -> Result<()>| breaker.call(|| start + at, ask);
        for _ in 0..FAILURES - 1 {
            call(Duration::ZERO, away).unwrap_err();
        }
        assert!(!breaker.is_open());
        call(Duration::ZERO, || Ok(())).unwrap();
        for _ in 0..FAILURES {
            call(Duration::ZERO, away).unwrap_err();
        }
        assert!(breaker.is_open());
        let error = call(PAUSE / 2, || panic!("nobody asks")).unwrap_err();
        assert_eq!(error.code(), Code::AuthorizationUnavailable);
        assert_eq!(error.message(), "FGA Error: connection refused");
        // The one that asks for all fails: the pause begins anew.
        call(PAUSE, away).unwrap_err();
        call(PAUSE + PAUSE / 2, || panic!("nobody asks")).unwrap_err();
        // While one asks, no other does.
        let probe = breaker.enter(start + 2 * PAUSE).unwrap();
        assert!(probe.is_some() && breaker.enter(start + 2 * PAUSE).is_err());
        drop(probe);
        call(2 * PAUSE, || Ok(())).unwrap();
        assert!(breaker.enter(start + 2 * PAUSE).unwrap().is_none());
        assert!(!breaker.is_open());
    }

    #[test]
    fn who_finds_no_permit_hears_of_a_server_that_hangs_and_else_of_load() {
        let hangs = no_permit(BRIEFLY);
        assert_eq!(hangs.code(), Code::AuthorizationUnavailable);
        assert!(hangs.message().starts_with("FGA Error: "), "{hangs}");
        for answered in [Duration::ZERO, BRIEFLY / 3] {
            assert_eq!(no_permit(answered).code(), Code::Overloaded);
        }
    }

    #[test]
    fn other_failures_do_not_count() {
        let breaker = Breaker::default();
        for _ in 0..3 * FAILURES {
            let other = || -> Result<()> { Err(Error::database_unavailable("away")) };
            breaker.call(Instant::now, other).unwrap_err();
            let one_tenant = || -> Result<()> {
                let said = "FGA Error: The tenant's permissions are not in place yet.";
                Err(Error::new(Code::AuthorizationUnavailable, said))
            };
            breaker.call(Instant::now, one_tenant).unwrap_err();
        }
        assert!(breaker.enter(Instant::now()).is_ok());
    }

    #[test]
    fn denials_are_forgiven_with_time() {
        let denials = Denials::new(60);
        let (key, other, start) = (Uuid::from_u128(1), Uuid::from_u128(2), Instant::now());
        for _ in 0..60 {
            assert_eq!(denials.limited(key, start), None);
            denials.count(key, start);
        }
        assert!(denials.limited(key, start).is_some());
        assert_eq!(denials.limited(other, start), None);
        assert_eq!(denials.spent_now(start), 1);
        let later = start + Duration::from_secs(1);
        let limited = denials.limited(key, later);
        assert_eq!(limited, None, "one a second is forgiven");
        assert_eq!(denials.spent_now(later), 0);
        denials.count(key, later);
        assert!(denials.limited(key, later).is_some());
    }

    #[test]
    fn a_refused_credential_is_to_be_recorded_once_a_minute() {
        let denials = Denials::new(60);
        let (key, other, start) = (Uuid::from_u128(1), Uuid::from_u128(2), Instant::now());
        let refused = |key: Uuid, after_secs: u64| {
            let now = start + Duration::from_secs(after_secs);
            for _ in 0..60 {
                denials.count(key, now);
            }
            denials.limited(key, now)
        };
        assert_eq!(refused(key, 0), Some(Limited::Now));
        assert_eq!(refused(other, 1), Some(Limited::Now));
        for after_secs in [1, 30, 59] {
            assert_eq!(refused(key, after_secs), Some(Limited::Still));
        }
        assert_eq!(refused(key, 60), Some(Limited::Now));
        assert_eq!(refused(key, 61), Some(Limited::Still));
    }

    #[test]
    fn counted_credentials_have_a_bound() {
        let denials = Denials::new(60);
        let start = Instant::now();
        for key in 0..COUNTED as u128 + 10 {
            denials.count(Uuid::from_u128(key), start);
        }
        assert_eq!(denials.lock().len(), COUNTED);
        denials.count(Uuid::max(), start + Duration::from_secs(3600));
        assert_eq!(denials.lock().len(), 1, "those that were forgiven go");
    }
}
