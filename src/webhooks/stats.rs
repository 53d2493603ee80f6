//! The metrics of webhooks in this process.

use super::Inner;
use super::job::Deliver;
use super::reason::Reason;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of webhooks in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Deliveries that were committed.
    pub queued: u64,
    /// Deliveries that were delivered: the attempts that succeeded.
    pub delivered: u64,
    /// Deliveries that failed for good although their endpoint was registered.
    pub failed: u64,
    /// Deliveries that failed because their endpoint was unregistered.
    pub unregistered: u64,
    /// Attempts that failed, by why.
    pub failures: [(Reason, u64); Reason::ALL.len()],
    /// Attempts in flight.
    pub in_flight: u64,
    /// Deliveries that are due and wait for a thread or for their endpoint, in all processes: as it was
    /// within the last minute.
    pub due: u64,
    /// Endpoints with no success and a delivery that failed for an hour, in all processes: as it was within the last minute.
    pub failing: u64,
}

impl Default for Stats {
    /// Before anything has happened.
    fn default() -> Self {
        Self {
            queued: 0,
            delivered: 0,
            failed: 0,
            unregistered: 0,
            failures: Reason::ALL.map(|reason| (reason, 0)),
            in_flight: 0,
            due: 0,
            failing: 0,
        }
    }
}

impl Inner {
    pub(super) fn stats(&self) -> Stats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let queue = self.queue.get();
        let queue = queue.and_then(|queue| queue.stats(<Deliver as jobs::Job>::QUEUE));
        let mut failures = Reason::ALL.map(|reason| (reason, 0));
        for ((_, figure), count) in failures.iter_mut().zip(&self.counts.failures) {
            *figure = read(count);
        }
        Stats {
            queued: read(&self.counts.queued),
            delivered: read(&self.counts.delivered),
            failed: read(&self.counts.failed),
            unregistered: read(&self.counts.unregistered),
            failures,
            in_flight: queue.map_or(0, |queue| queue.running),
            due: read(&self.counts.due),
            failing: read(&self.counts.failing),
        }
    }
}
