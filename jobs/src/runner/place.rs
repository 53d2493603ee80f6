//! A place in this process for a job that is enqueued as claimed already (the SQL function `job_enqueue_claimed`): it
//! begins with the commit of whoever enqueues it, and no claim has to find it.
//!
//! Guarantees: a queue has no more such places than threads, and no more than are free; claims count with those that are
//! taken when they begin. One that is not filled is free again. There is none within half of the queue's pace after one
//! was filled: what comes faster is cheaper claimed together. What is filled in while the runner stops goes back as any
//! claimed job does; what was enqueued and is never filled in is rescued when its lease runs out.

use super::Queue;
use super::handler::{Hands, Work};
use crate::claimed::Beside;
use crate::protocol::ClaimedRow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A job that was enqueued as claimed.
pub struct Taken {
    pub row: ClaimedRow,
    /// What its handler is given with it.
    pub beside: Option<Beside>,
}

/// Kept until it is filled or dropped.
pub struct Place {
    hands: Arc<Hands>,
    since: Instant,
    is_filled: bool,
}

impl Place {
    pub(super) fn of(hands: Arc<Hands>) -> Option<Self> {
        let since = Instant::now();
        let Queue {
            outstanding,
            options,
            ..
        } = &*hands.queue;
        let filled_at = *hands.queue.filled_at();
        if hands.core.stopping() || filled_at.is_some_and(|at| since < at + options.pace / 2) {
            return None;
        }
        let one_more = |count: usize| (count < options.threads).then_some(count + 1);
        let taken = outstanding.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        taken.ok().map(|_| Self {
            hands,
            since,
            is_filled: false,
        })
    }

    /// This process: for people, and for the count of processes.
    #[must_use]
    pub fn worker(&self) -> &str {
        &self.hands.core.worker
    }

    /// For how long the job's lease is to stand at least.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.hands.core.lease
    }

    /// Before the job's lease was written.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Hands the job to a thread. To be called after the commit of the transaction that enqueued it.
    pub fn fill(mut self, Taken { row, beside }: Taken) {
        self.is_filled = true;
        *self.hands.queue.filled_at() = Some(Instant::now());
        let batch = self.hands.enlist(std::slice::from_ref(&row), self.since);
        let jobs = Work::of(&batch, std::iter::once((row, beside)));
        let outstanding = self.hands.queue.outstanding.load(Ordering::Acquire);
        self.hands.hand_out(jobs, outstanding);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_filled {
            self.hands.queue.free();
        }
    }
}
