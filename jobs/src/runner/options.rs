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
    /// If set, no more jobs are prefetched than got through their handlers within so much time of late: what takes long
    /// is left to other processes, and waits for no thread here. Default zero: not set.
    pub prefetch_time: Duration,
    /// Claimed jobs of serial keys at most, from 1: keys whose cap is 1. Where a cap of 1 means that a key's jobs are slow
    /// or fail, many such keys leave the other threads to the rest. Default `None`: any number.
    pub serial_most: Option<usize>,
    /// Jobs in a claim or a completion, 1 to 10,000. Default 500.
    pub batch: usize,
    /// Stack of a handler's thread. Default 256 KiB.
    pub stack_bytes: usize,
    /// How often an idle queue looks for jobs of other processes and retries that are due, jittered by a fifth; at least
    /// 1 ms. Default 200 ms.
    pub poll: Duration,
    /// The least time between two claims while jobs are in hand: claimed, or through their handlers with an end that is
    /// still being written. A claim then takes more jobs at once. Default zero.
    pub pace: Duration,
    /// Whether a stop that cuts a handler off uses up its job's attempt, because what it did outside may have happened.
    /// Default false: the job is as if it had never been claimed.
    pub cut_counts: bool,
    /// A lease stands for this long at least, even if it is longer than the runner's. Default zero.
    pub lease_at_least: Duration,
    /// Waits after failures that name none of their own.
    pub backoff: Backoff,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            prefetch: 0,
            prefetch_time: Duration::ZERO,
            serial_most: None,
            batch: 500,
            stack_bytes: 256 * 1024,
            poll: Duration::from_millis(200),
            pace: Duration::ZERO,
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
            && (1..=10_000).contains(&self.batch)
            && self.poll >= Duration::from_millis(1)
        {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "queue {queue}: threads 1 to 4096, prefetch to 100,000, serial_most from 1, batch 1 to 10,000, poll from 1 ms"
        )))
    }
}
