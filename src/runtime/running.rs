//! The runs that this process carries on, and how to interrupt one.
//!
//! A run is interrupted at once when its cancel comes through this process. One that comes through
//! another replica is found by a thread that asks the database for all held runs in one query. A
//! blocked read is cut, not waited for.

use crate::outbound::CancelHandle;
use crate::store::runs::Lease;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Why a run was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It was asked to cancel, or another holds it: the database says which.
    Asked,
    /// Its job is no longer this process's: nothing may be written.
    Lost,
}

/// A run's switch.
#[derive(Default)]
pub(super) struct Switch(Mutex<State>);

#[derive(Default)]
struct State {
    why: Option<Why>,
    handles: Vec<CancelHandle>,
}

impl Switch {
    /// Interrupts the run: cuts what its thread is blocked on.
    pub(super) fn interrupt(&self, why: Why) {
        let mut state = self.lock();
        // A lost job stays lost, whatever else is said.
        if state.why != Some(Why::Lost) {
            state.why = Some(why);
        }
        for handle in &state.handles {
            handle.cancel();
        }
    }

    /// Lets an interrupt reach these exchanges too.
    pub(super) fn cover(&self, handle: CancelHandle) {
        let mut state = self.lock();
        if state.why.is_some() {
            handle.cancel();
        }
        state.handles.push(handle);
    }

    /// Whether it was interrupted, and why.
    pub(super) fn why(&self) -> Option<Why> {
        self.lock().why
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs that this process carries on.
#[derive(Default)]
pub(super) struct Running(Mutex<HashMap<Uuid, (Lease, Arc<Switch>)>>);

/// Takes the run off the list when dropped.
pub(super) struct Listed<'a> {
    running: &'a Running,
    lease: Lease,
    pub(super) switch: Arc<Switch>,
}

impl Running {
    pub(super) fn list(&self, lease: Lease) -> Listed<'_> {
        let switch = Arc::new(Switch::default());
        self.lock().insert(lease.run_id(), (lease, switch.clone()));
        Listed {
            running: self,
            lease,
            switch,
        }
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.lock().values().map(|(lease, _)| *lease).collect()
    }

    /// Interrupts a run if it is here.
    pub(super) fn interrupt(&self, run_id: Uuid) {
        let switch = self.lock().get(&run_id).map(|(_, switch)| switch.clone());
        if let Some(switch) = switch {
            switch.interrupt(Why::Asked);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, (Lease, Arc<Switch>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        // A later claim of the same run in this process has its own entry.
        if running.get(&self.lease.run_id()).is_some_and(|(lease, _)| *lease == self.lease) {
            running.remove(&self.lease.run_id());
        }
    }
}
