//! Wakes whoever waits for an attempt of this process to end.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes whoever waits for an attempt of this process to end.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) turn: Mutex<u64>,
    pub(super) moved: Condvar,
}

impl Ended {
    pub(super) fn notify(&self) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.moved.notify_all();
    }

    pub(super) fn turn(&self) -> u64 {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an attempt that ends after `turn`.
    pub(super) fn wait(&self, turn: u64, most: Duration) {
        let now = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever woke it, the database is asked.
        let _ = self.moved.wait_timeout_while(now, most, |now| *now == turn);
    }
}
