//! How one queue is served in this process.

use crate::{Backoff, Error, Result};
use std::time::Duration;

/// How one queue is served in this process.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// Handlers at once, 1 to 4096. Their threads start when they are first needed, and end when they were idle for a
    /// minute. Default 1.
    pub threads: usize,
    /// Claimed jobs that may wait here for a thread, at most 100,000. 0 for long jobs: never claim what cannot start.
    /// Thousands for short ones: batches are what makes them fast. Default 0.
    pub prefetch: usize,
    /// If set, no more jobs are prefetched than handlers finished within this time recently. So
    /// slow jobs are left to other processes. Default zero: not set.
    pub prefetch_time: Duration,
    /// Claimed jobs of serial keys (keys whose cap is 1), at most; at least 1. If a cap of 1 means
    /// that a key's jobs are slow or fail, this leaves the other threads to the rest. Default
    /// `None`: any number.
    pub serial_most: Option<usize>,
    /// Shares the threads among the fairness keys of the queue's jobs ([`crate::NewJob::fairness_key`]): a job begins only
    /// while fewer threads of this process hold jobs of its key than are free. So one key holds half of the threads at
    /// most, the next one half of the rest, and so on. Without prefetch. Default false.
    pub fair: bool,
    /// Jobs in a claim or a completion, 1 to 10,000. Default 500.
    pub batch: usize,
    /// Stack of a handler's thread. Default 256 KiB.
    pub stack_bytes: usize,
    /// How often an idle queue looks for jobs of other processes and retries that are due, jittered by a fifth; at least
    /// 1 ms. Default 200 ms.
    pub poll: Duration,
    /// Whether a job loses its attempt if a stop interrupts its handler, because its effect may
    /// have happened. Default false: as if it had never been claimed.
    pub cut_counts: bool,
    /// A lease is valid for at least this long, even if the runner's is shorter. Default zero.
    pub lease_at_least: Duration,
    /// Waits after failures without a wait of their own.
    pub backoff: Backoff,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            prefetch: 0,
            prefetch_time: Duration::ZERO,
            serial_most: None,
            fair: false,
            batch: 500,
            stack_bytes: 256 * 1024,
            poll: Duration::from_millis(200),
            cut_counts: false,
            lease_at_least: Duration::ZERO,
            backoff: Backoff::default(),
        }
    }
}

impl QueueOptions {
    pub(super) fn check(&self, queue: &str) -> Result<()> {
        if (1..=4096).contains(&self.threads)
            && self.prefetch <= 100_000
            && self.serial_most != Some(0)
            && !(self.fair && self.prefetch > 0)
            && (1..=10_000).contains(&self.batch)
            && self.poll >= Duration::from_millis(1)
        {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "queue {queue}: threads 1 to 4096, prefetch to 100,000, serial_most from 1, fair without prefetch, batch 1 to 10,000, poll from 1 ms"
        )))
    }
}
