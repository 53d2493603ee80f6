//! What this process knows of each tenant's store, shared by checks and the reconciler; and the
//! permits for applies.
//!
//! Guarantees: every wait has a deadline, and memory is proportional to the number of tenants.

use super::error::{self, Fault};
use crate::error::{Code, Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Tenants that may be asked for before the reconciler comes to them.
const MAX_WANTED: usize = 10_000;

/// Until a tenant that failed by itself is tried again, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Status {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: HashMap<Uuid, Compared>,
    failed: HashMap<Uuid, Failed>,
    /// Tenants that somebody waits for.
    wanted: BTreeSet<Uuid>,
    /// Why nothing will do at this time.
    outage: Option<String>,
    /// Somebody met an absence of OpenFGA that the reconciler may not have seen.
    is_suspected: bool,
    /// Objects that could not be applied, as of the reconciler's last look.
    unapplied: usize,
    is_stopped: bool,
}

/// A store that was compared with Postgres.
struct Compared {
    store_id: String,
    /// When that began.
    since: Instant,
}

/// A tenant at which the last try failed, by itself.
struct Failed {
    why: String,
    next: Instant,
    pause: Duration,
}

/// How many tenants are in which state, and what is not applied.
#[derive(Debug, Clone, Copy, Default)]
pub struct TenantCounts {
    /// Their stores were compared with Postgres, and answer.
    pub compared: usize,
    /// Something that is theirs alone keeps them from it.
    pub failed: usize,
    /// Changed objects that could not be applied for such a reason.
    pub unapplied: usize,
}

impl Status {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    /// Whether the tenant's store is this one and was compared.
    pub(super) fn is_ready(&self, tenant_id: Uuid, store_id: &str) -> bool {
        self.lock()
            .ready
            .get(&tenant_id)
            .is_some_and(|ready| ready.store_id == store_id)
    }

    /// Waits until the tenant's store was compared.
    pub(super) fn await_ready(&self, tenant_id: Uuid, deadline: Instant) -> Result<(), Fault> {
        let mut state = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_stopped {
                return Err(Error::new(Code::ShuttingDown, "The server is stopping.").into());
            }
            if state.ready.contains_key(&tenant_id) {
                return Ok(());
            }
            let failed = state.failed.get(&tenant_id).map(|failed| &failed.why);
            if let Some(why) = state.outage.as_ref().or(failed) {
                return Err(error::unavailable(why).into());
            }
            if left.is_zero() {
                return Err(error::unavailable(
                    "The tenant's permissions are still being compared. Try again shortly.",
                )
                .into());
            }
            if state.wanted.len() < MAX_WANTED && state.wanted.insert(tenant_id) {
                self.changed.notify_all();
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// At this time the tenant's store was not what it should be: unless it was compared later, it
    /// is looked for and compared again.
    pub(super) fn doubt(&self, tenant_id: Uuid, at: Instant) {
        self.change(|state| {
            let ready = state.ready.get(&tenant_id);
            if ready.is_some_and(|ready| ready.since <= at) {
                state.ready.remove(&tenant_id);
            }
        });
    }

    /// OpenFGA was away, perhaps for less than the reconciler sees: it looks at once.
    pub(super) fn suspect_absence(&self) {
        self.change(|state| state.is_suspected = true);
    }

    pub(super) fn take_suspicion(&self) -> bool {
        std::mem::take(&mut self.lock().is_suspected)
    }

    /// OpenFGA was away: no store answers before it was compared again.
    pub(super) fn doubt_everyone(&self) {
        self.change(|state| state.ready.clear());
    }

    /// How many tenants were last compared before `since`; and those for which that was `period`
    /// ago and whose last try did not fail.
    pub(super) fn compared_before(&self, since: Instant, period: Duration) -> (usize, Vec<Uuid>) {
        let state = self.lock();
        let earlier = state.ready.iter().filter(|(_, ready)| ready.since < since);
        let due = earlier.clone().filter(|(id, ready)| {
            ready.since.elapsed() >= period && !state.failed.contains_key(*id)
        });
        (earlier.count(), due.map(|(id, _)| *id).collect())
    }

    /// The tenant's store was compared, which began at `since`. True: that had failed before.
    pub(super) fn compared(&self, tenant_id: Uuid, store_id: String, since: Instant) -> bool {
        let mut had_failed = false;
        self.change(|state| {
            state.wanted.remove(&tenant_id);
            had_failed = state.failed.remove(&tenant_id).is_some();
            state.ready.insert(tenant_id, Compared { store_id, since });
        });
        had_failed
    }

    /// The tenant's store could not be compared, for a reason of its own. True: that is news.
    pub(super) fn failed(&self, tenant_id: Uuid, why: &str) -> bool {
        let mut is_news = true;
        self.change(|state| {
            state.wanted.remove(&tenant_id);
            let before = state.failed.get(&tenant_id);
            is_news = before.is_none_or(|before| before.why != why);
            let pause = before.map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
            let failed = Failed {
                why: why.to_owned(),
                next: Instant::now() + pause,
                pause,
            };
            state.failed.insert(tenant_id, failed);
        });
        is_news
    }

    /// The tenant is gone.
    pub(super) fn forget(&self, tenant_id: Uuid) {
        self.change(|state| {
            state.wanted.remove(&tenant_id);
            state.failed.remove(&tenant_id);
            state.ready.remove(&tenant_id);
        });
    }

    /// The tenants that failed and are due for another try.
    pub(super) fn due(&self) -> Vec<Uuid> {
        let now = Instant::now();
        let state = self.lock();
        let due = state.failed.iter().filter(|(_, failed)| failed.next <= now);
        due.map(|(id, _)| *id).collect()
    }

    /// Whether the tenant's store was compared and not doubted since.
    pub(super) fn has(&self, tenant_id: Uuid) -> bool {
        self.lock().ready.contains_key(&tenant_id)
    }

    /// Whether the tenant's store was neither compared nor failed to be.
    pub(super) fn is_new(&self, tenant_id: Uuid) -> bool {
        let state = self.lock();
        !state.ready.contains_key(&tenant_id) && !state.failed.contains_key(&tenant_id)
    }

    /// Why nobody is served, if nobody is.
    pub(super) fn nobody(&self) -> Option<String> {
        let state = self.lock();
        let failed = state.failed.values().next();
        failed
            .filter(|_| state.ready.is_empty())
            .map(|failed| failed.why.clone())
    }

    pub(super) fn set_unapplied(&self, count: usize) {
        self.lock().unapplied = count;
    }

    pub(super) fn tenant_counts(&self) -> TenantCounts {
        let state = self.lock();
        TenantCounts {
            compared: state.ready.len(),
            failed: state.failed.len(),
            unapplied: state.unapplied,
        }
    }

    /// The ready tenant after this one in some fixed order, and its store.
    pub(super) fn ready_after(&self, tenant_id: Uuid) -> Option<(Uuid, String)> {
        let state = self.lock();
        let later = state.ready.keys().filter(|id| **id > tenant_id).min();
        let found = later.or(state.ready.keys().min())?;
        Some((*found, state.ready[found].store_id.clone()))
    }

    pub(super) fn set_outage(&self, outage: Option<String>) {
        self.change(|state| state.outage = outage);
    }

    pub(super) fn wanted(&self) -> Option<Uuid> {
        self.lock().wanted.first().copied()
    }

    pub(super) fn stop(&self) {
        self.change(|state| state.is_stopped = true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits so long, or until the stop, or, if all `is_well`, until somebody waits for a tenant or
    /// suspects an absence.
    pub(super) fn rest(&self, time: Duration, is_well: bool) {
        let state = self.lock();
        let waits = |state: &mut State| {
            let is_called = state.is_suspected || !state.wanted.is_empty();
            !(state.is_stopped || is_well && is_called)
        };
        // Whatever ended it, the reconciler looks at everything.
        drop(self.changed.wait_timeout_while(state, time, waits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn after_a_suspicion_a_store_is_compared_again_but_once_a_minute() {
        let status = Status::default();
        let now = Instant::now();
        let (old, young) = (Uuid::from_u128(1), Uuid::from_u128(2));
        status.compared(old, "a".to_owned(), now.checked_sub(MINUTE).unwrap());
        status.compared(young, "b".to_owned(), now.checked_sub(MINUTE / 2).unwrap());
        assert_eq!(status.compared_before(now, MINUTE), (2, vec![old]));
        status.compared(old, "a".to_owned(), now);
        assert_eq!(status.compared_before(now, MINUTE), (1, vec![]));
        status.compared(young, "b".to_owned(), now);
        assert_eq!(status.compared_before(now, MINUTE), (0, vec![]));
    }

    #[test]
    fn a_doubt_from_before_a_comparison_says_nothing_of_it() {
        let status = Status::default();
        let (tenant_id, now) = (Uuid::from_u128(1), Instant::now());
        status.compared(tenant_id, "a".to_owned(), now);
        status.doubt(tenant_id, now.checked_sub(MINUTE).unwrap());
        assert!(status.is_ready(tenant_id, "a"));
        status.doubt(tenant_id, now);
        assert!(!status.is_ready(tenant_id, "a") && status.is_new(tenant_id));
    }

    #[test]
    fn one_tenant_s_fault_is_said_once_and_is_nobody_else_s() {
        let status = Status::default();
        let (ill, well) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(status.failed(ill, "why"));
        assert!(!status.failed(ill, "why") && status.failed(ill, "another"));
        assert_eq!(status.nobody().as_deref(), Some("another"));
        assert!(status.due().is_empty());
        status.compared(well, "a".to_owned(), Instant::now());
        assert_eq!(status.nobody(), None);
        let tenant_counts = status.tenant_counts();
        assert_eq!((tenant_counts.compared, tenant_counts.failed), (1, 1));
        status.compared(ill, "b".to_owned(), Instant::now());
        assert_eq!(status.tenant_counts().failed, 0);
    }
}
