//! What is counted of webhooks in this process.

use super::reason::Reason;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Counts {
    pub(super) queued: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) unregistered: AtomicU64,
    pub(super) failures: [AtomicU64; Reason::ALL.len()],
    pub(super) due: AtomicU64,
    pub(super) failing: AtomicU64,
}

impl Counts {
    pub(super) fn queued(&self, count: usize) {
        add(&self.queued, count);
    }

    /// An attempt ended; `failed`: and with it its delivery.
    pub(super) fn attempt(&self, reason: Option<Reason>, failed: bool) {
        match reason {
            None => add(&self.delivered, 1),
            Some(reason) => self.failure(reason),
        }
        if failed {
            add(&self.failed, 1);
        }
    }

    pub(super) fn failure(&self, reason: Reason) {
        let known = Reason::ALL.iter().zip(&self.failures);
        for (_, count) in known.filter(|(one, _)| **one == reason) {
            add(count, 1);
        }
    }

    pub(super) fn unregistered(&self, count: usize) {
        add(&self.unregistered, count);
    }

    pub(super) fn set_failing(&self, failing: u64) {
        self.failing.store(failing, Ordering::Relaxed);
    }

    pub(super) fn set_due(&self, due: u64) {
        self.due.store(due, Ordering::Relaxed);
    }
}

pub(super) fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(u64::try_from(more).unwrap_or(0), Ordering::Relaxed);
}
