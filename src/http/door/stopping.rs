//! The door's stop: whether it has begun, and its deadline.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The stop, as the door's thread and every connection see it.
#[derive(Default)]
pub(super) struct Stopping {
    begun: AtomicBool,
    deadline: Mutex<Option<Instant>>,
    pub(super) begins: Notify,
    pub(super) one_left: Notify,
}

impl Stopping {
    pub(super) fn begin(&self, deadline: Instant) {
        *self.lock() = Some(deadline);
        self.begun.store(true, Ordering::Release);
        self.begins.notify_waiters();
    }

    /// To be asked after `begins` has been polled, so that no beginning is missed.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Until when connections may be answered: now, where no stop has begun.
    pub(super) fn deadline(&self) -> Instant {
        self.lock().unwrap_or_else(Instant::now)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
