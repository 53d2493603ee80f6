//! What this process knows of the tenants' stores, between those who ask and the keeper; and the
//! permits of those who apply.
//!
//! Guarantees: every wait has a deadline; what is kept of a tenant is bounded by its number.

use super::sync::{self, Fault};
use crate::error::{Code, Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Tenants that may be asked for before the keeper comes to them.
const MAX_WANTED: usize = 10_000;

#[derive(Default)]
pub(super) struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The store of each tenant that was compared with Postgres.
    ready: HashMap<Uuid, String>,
    /// Why the last try at a tenant failed.
    failed: HashMap<Uuid, String>,
    /// Tenants that somebody waits for.
    wanted: BTreeSet<Uuid>,
    /// Why nothing will do at this time.
    outage: Option<String>,
    /// Somebody met an outage that the keeper may not have seen.
    is_suspected: bool,
    is_stopped: bool,
}

impl Board {
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
            .is_some_and(|ready| ready == store_id)
    }

    /// Waits until the tenant's store was compared; the one of this id, if one is named.
    pub(super) fn await_ready(
        &self,
        tenant_id: Uuid,
        store_id: Option<&str>,
        deadline: Instant,
    ) -> Result<(), Fault> {
        let mut state = self.lock();
        // One that was ready before it was looked for again is not what is waited for.
        if state.ready.get(&tenant_id).map(String::as_str) != store_id || store_id.is_none() {
            state.ready.remove(&tenant_id);
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_stopped {
                return Err(Error::new(Code::ShuttingDown, "The server is stopping.").into());
            }
            if state.ready.contains_key(&tenant_id) {
                return Ok(());
            }
            let failure = state.outage.as_ref().or(state.failed.get(&tenant_id));
            if let Some(failure) = failure {
                return Err(sync::unavailable(failure).into());
            }
            if left.is_zero() {
                return Err(sync::unavailable(
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

    /// The tenant's store is not what it was: it is looked for and compared again.
    pub(super) fn doubt(&self, tenant_id: Uuid) {
        self.change(|state| {
            state.ready.remove(&tenant_id);
        });
    }

    /// OpenFGA was away, perhaps for less than the keeper sees.
    pub(super) fn suspect_outage(&self) {
        self.lock().is_suspected = true;
    }

    pub(super) fn take_suspicion(&self) -> bool {
        std::mem::take(&mut self.lock().is_suspected)
    }

    /// The tenant's store was compared, or why it could not be.
    pub(super) fn say(&self, tenant_id: Uuid, outcome: Result<String, String>) {
        self.change(|state| {
            state.wanted.remove(&tenant_id);
            match outcome {
                Ok(store_id) => {
                    state.failed.remove(&tenant_id);
                    state.ready.insert(tenant_id, store_id);
                }
                Err(why) => {
                    state.failed.insert(tenant_id, why);
                }
            }
        });
    }

    /// The tenant is gone.
    pub(super) fn forget(&self, tenant_id: Uuid) {
        self.change(|state| {
            state.wanted.remove(&tenant_id);
            state.failed.remove(&tenant_id);
            state.ready.remove(&tenant_id);
        });
    }

    /// The tenants at which the last try failed.
    pub(super) fn failed(&self) -> Vec<Uuid> {
        self.lock().failed.keys().copied().collect()
    }

    pub(super) fn has(&self, tenant_id: Uuid) -> bool {
        self.lock().ready.contains_key(&tenant_id)
    }

    /// The ready tenant after this one in some fixed order, and its store.
    pub(super) fn ready_after(&self, tenant_id: Uuid) -> Option<(Uuid, String)> {
        let state = self.lock();
        let later = state.ready.iter().filter(|(id, _)| **id > tenant_id).min();
        let found = later.or(state.ready.iter().min());
        found.map(|(id, store_id)| (*id, store_id.clone()))
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

    /// Waits so long, or until the stop, or, if `for_wanted`, until somebody waits for a tenant.
    pub(super) fn rest(&self, time: Duration, for_wanted: bool) {
        let state = self.lock();
        let waits =
            |state: &mut State| !(state.is_stopped || for_wanted && !state.wanted.is_empty());
        // Whatever ended it, the keeper looks at everything.
        drop(self.changed.wait_timeout_while(state, time, waits));
    }
}

/// So many at once.
pub(super) struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

/// One of them. Dropping it gives it back.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    /// # Errors
    /// `overloaded`: none came free in time.
    pub(super) fn take(&self, deadline: Instant) -> Result<Permit<'_>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(free, left, |free| *free == 0);
        let mut free = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *free == 0 {
            return Err(Error::new(
                Code::Overloaded,
                "Too many changes of permissions wait to be applied. Try again shortly.",
            ));
        }
        *free -= 1;
        Ok(Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
