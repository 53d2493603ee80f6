//! The runs that this process carries on, and how to interrupt one.
//!
//! A run is interrupted at once when its cancel comes through this process. One that comes through
//! another replica is found by a thread that asks the database for all held runs in one query. A
//! blocked read is cut, not waited for.

use super::Inner;
use crate::outbound::CancelHandle;
use crate::store::runs::{self, Lease};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often the database is asked.
const PERIOD: Duration = Duration::from_millis(500);

/// Why a run was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It was asked to cancel, or another holds it: the database says which.
    Asked,
    /// Its turn has taken too long.
    TimedOut,
    /// Its job is no longer this process's: nothing may be written.
    Lost,
}

/// A run's switch.
#[derive(Default)]
pub(super) struct Switch(Mutex<State>);

#[derive(Default)]
struct State {
    why: Option<Why>,
    /// Of the exchange that runs, or the last one.
    handle: Option<CancelHandle>,
}

impl Switch {
    /// Interrupts the run: cuts what its thread is blocked on.
    pub(super) fn interrupt(&self, why: Why) {
        let mut state = self.lock();
        // A lost job stays lost, whatever else is said; of the others, the first counts.
        if state.why.is_none() || why == Why::Lost {
            state.why = Some(why);
        }
        if let Some(handle) = &state.handle {
            handle.cancel();
        }
    }

    /// Lets an interrupt reach this exchange.
    pub(super) fn cover(&self, handle: CancelHandle) {
        let mut state = self.lock();
        if state.why.is_some() {
            handle.cancel();
        }
        state.handle = Some(handle);
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
pub(super) struct Running(Mutex<HashMap<Uuid, Entry>>);

struct Entry {
    lease: Lease,
    deadline: Option<Instant>,
    switch: Arc<Switch>,
}

/// Takes the run off the list when dropped.
pub(super) struct Listed<'a> {
    running: &'a Running,
    lease: Lease,
    pub(super) switch: Arc<Switch>,
}

impl Running {
    /// Puts a run on the list; it may go on for `time_left`.
    pub(super) fn list(&self, lease: Lease, time_left: Duration) -> Listed<'_> {
        let switch = Arc::new(Switch::default());
        let entry = Entry {
            lease,
            deadline: Instant::now().checked_add(time_left),
            switch: switch.clone(),
        };
        let mut running = self.lock();
        // Of two claims of one run in this process, the later one counts.
        let held = running.get(&lease.run_id());
        if held.is_none_or(|held| held.lease.epoch() < lease.epoch()) {
            running.insert(lease.run_id(), entry);
        }
        drop(running);
        Listed {
            running: self,
            lease,
            switch,
        }
    }

    fn leases(&self) -> Vec<Lease> {
        self.lock().values().map(|entry| entry.lease).collect()
    }

    fn interrupt_overdue(&self) {
        let now = Instant::now();
        for entry in self.lock().values() {
            if entry.deadline.is_some_and(|deadline| deadline <= now) {
                entry.switch.interrupt(Why::TimedOut);
            }
        }
    }

    /// Interrupts a run if it is here.
    pub(super) fn interrupt(&self, run_id: Uuid) {
        let switch = self.lock().get(&run_id).map(|entry| entry.switch.clone());
        if let Some(switch) = switch {
            switch.interrupt(Why::Asked);
        }
    }

    /// Interrupts a run if it is here under this very lease: a later claim of it has another.
    fn interrupt_lease(&self, lease: &Lease) {
        let running = self.lock();
        if let Some(entry) = running.get(&lease.run_id())
            && entry.lease == *lease
        {
            entry.switch.interrupt(Why::Asked);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        // A later claim of the same run in this process has its own entry.
        if running
            .get(&self.lease.run_id())
            .is_some_and(|entry| entry.lease == self.lease)
        {
            running.remove(&self.lease.run_id());
        }
    }
}

/// The thread `runs-watch`. Ends when `stop` disconnects.
pub(super) fn watch(inner: &Inner, stop: &Receiver<()>) {
    while stop.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        inner.running.interrupt_overdue();
        let held = inner.running.leases();
        if held.is_empty() {
            continue;
        }
        let asked = inner
            .store
            .session()
            .and_then(|mut session| runs::interrupted(&mut session, &held));
        match asked {
            Ok(interrupted) => {
                for lease in interrupted {
                    inner.running.interrupt_lease(&lease);
                }
            }
            Err(error) => {
                slog::debug!(inner.log, "Running runs were not checked for cancels"; "error" => %error);
            }
        }
    }
}
