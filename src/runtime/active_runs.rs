//! The runs that this process holds, and how to interrupt one.
//!
//! A cancel that comes through this process interrupts the run immediately. A thread finds those
//! that come through other replicas, by one query for all held runs. A blocked read is cut, not
//! waited for.

use crate::outbound::Switch;
use crate::store::Store;
use crate::store::runs::{self, Lease};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often the database is asked.
const PERIOD: Duration = Duration::from_millis(500);

/// Why a run was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It was asked to cancel, or another process holds it: the database says which.
    Asked,
    /// Its time is over.
    TimedOut,
    /// Its job is no longer this process's: nothing may be written.
    Lost,
}

/// Interrupts one run.
#[derive(Default)]
pub(super) struct Interrupt {
    reason: Mutex<Option<Reason>>,
    is_set: Condvar,
    /// Of the exchange that the run's thread is blocked on.
    pub(super) switch: Switch,
}

impl Interrupt {
    /// Interrupts the run: cuts what its thread is blocked on.
    pub(super) fn set(&self, reason: Reason) {
        let mut first = self.lock();
        // A lost job stays lost; of the other reasons, the first counts.
        if first.is_none() || reason == Reason::Lost {
            *first = Some(reason);
        }
        drop(first);
        self.is_set.notify_all();
        self.switch.cut();
    }

    /// Waits for this time; `true`: the run was interrupted meanwhile.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let waited = self
            .is_set
            .wait_timeout_while(self.lock(), time, |reason| reason.is_none());
        let (reason, _) = waited.unwrap_or_else(PoisonError::into_inner);
        reason.is_some()
    }

    /// Whether it was interrupted, and why.
    pub(super) fn reason(&self) -> Option<Reason> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs that this process carries on.
#[derive(Default)]
pub(super) struct ActiveRuns(Mutex<HashMap<Uuid, Entry>>);

struct Entry {
    lease: Lease,
    deadline: Option<Instant>,
    interrupt: Arc<Interrupt>,
}

/// Removes the run when dropped.
pub(super) struct ActiveRun<'a> {
    runs: &'a ActiveRuns,
    lease: Lease,
    pub(super) interrupt: Arc<Interrupt>,
}

impl ActiveRuns {
    /// Adds a run; it may go on for `time_left`.
    pub(super) fn add(&self, lease: Lease, time_left: Duration) -> ActiveRun<'_> {
        let interrupt = Arc::new(Interrupt::default());
        let entry = Entry {
            lease,
            deadline: Instant::now().checked_add(time_left),
            interrupt: interrupt.clone(),
        };
        let mut runs = self.lock();
        // Of two claims of one run in this process, the later one counts.
        let held = runs.get(&lease.run_id());
        if held.is_none_or(|held| held.lease.epoch() < lease.epoch()) {
            runs.insert(lease.run_id(), entry);
        }
        drop(runs);
        ActiveRun {
            runs: self,
            lease,
            interrupt,
        }
    }

    fn leases(&self) -> Vec<Lease> {
        self.lock().values().map(|entry| entry.lease).collect()
    }

    fn interrupt_overdue(&self) {
        let now = Instant::now();
        for entry in self.lock().values() {
            if entry.deadline.is_some_and(|deadline| deadline <= now) {
                entry.interrupt.set(Reason::TimedOut);
            }
        }
    }

    /// Interrupts a run if it is here.
    pub(super) fn interrupt(&self, run_id: Uuid) {
        let found = self
            .lock()
            .get(&run_id)
            .map(|entry| entry.interrupt.clone());
        if let Some(interrupt) = found {
            interrupt.set(Reason::Asked);
        }
    }

    /// Interrupts a run if it is here under this very lease: a later claim of it has another.
    fn interrupt_lease(&self, lease: &Lease) {
        let runs = self.lock();
        if let Some(entry) = runs.get(&lease.run_id())
            && entry.lease == *lease
        {
            entry.interrupt.set(Reason::Asked);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveRun<'_> {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        // A later claim of the same run in this process has its own entry.
        if runs
            .get(&self.lease.run_id())
            .is_some_and(|entry| entry.lease == self.lease)
        {
            runs.remove(&self.lease.run_id());
        }
    }
}

/// The thread `runs-watch`. Ends when `stop` disconnects.
pub(super) fn watch(active: &ActiveRuns, store: &Store, log: &slog::Logger, stop: &Receiver<()>) {
    while stop.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        active.interrupt_overdue();
        let held = active.leases();
        if held.is_empty() {
            continue;
        }
        let asked = store
            .session()
            .and_then(|mut session| runs::interrupted(&mut session, &held));
        match asked {
            Ok(interrupted) => {
                for lease in interrupted {
                    active.interrupt_lease(&lease);
                }
            }
            Err(error) => {
                slog::debug!(log, "Active runs were not checked for cancels"; crate::log::ErrorValue(&error));
            }
        }
    }
}
