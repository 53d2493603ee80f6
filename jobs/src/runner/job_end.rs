//! Passes a job's outcome to the completer: from the thread that ran its handler, or later from the
//! code that writes the end.

use super::outcome::Outcome;
use super::state::QueueState;
use crate::batch::{Batch, Stage};
use crate::protocol::{ClaimedRow, Ending};
use crossbeam_channel::Sender;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A job that is through its handler, on its way to the completer.
pub(crate) struct Finished {
    pub(super) batch: Arc<Batch>,
    pub(super) index: usize,
    pub(super) ending: Ending,
    pub(super) keyed: bool,
    pub(super) ended_by_handler: bool,
}

impl Finished {
    pub(super) fn id(&self) -> i64 {
        self.batch.slots[self.index].id
    }
}

/// How the end of one job reaches the completer.
#[derive(Clone)]
pub(crate) struct JobEnd {
    queue: Arc<QueueState>,
    completer: Sender<Finished>,
    batch: Arc<Batch>,
    index: usize,
    attempt: u32,
    keyed: bool,
}

impl JobEnd {
    pub(super) fn new(
        queue: &Arc<QueueState>,
        completer: &Sender<Finished>,
        row: &ClaimedRow,
        batch: &Arc<Batch>,
        index: usize,
    ) -> Self {
        Self {
            queue: Arc::clone(queue),
            completer: completer.clone(),
            batch: Arc::clone(batch),
            index,
            attempt: row.attempt,
            keyed: row.key.is_some(),
        }
    }

    /// Passes on what the handler said. False: the completer has ended, and the lease will run out.
    pub(super) fn outcome(self, outcome: Outcome) -> bool {
        if outcome == Outcome::Completed {
            self.batch.ended(self.index);
            self.queue.counts.done.fetch_add(1, Ordering::Relaxed);
            if self.keyed {
                self.queue.wake();
            }
            return true;
        }
        let ended_by_handler = outcome == Outcome::EndedByHandler;
        let backoff = &self.queue.options.backoff;
        let ending = outcome.into_ending(backoff, self.attempt);
        self.send(ending, ended_by_handler)
    }

    /// As [`JobEnd::outcome`], of a job whose handler a stop cut off.
    pub(super) fn cut(self) -> bool {
        let ending = self.batch.cut();
        self.send(ending, false)
    }

    /// As [`JobEnd::outcome`], of a job that did not start.
    pub(super) fn hand_back(self) -> bool {
        self.send(Ending::HandBack, false)
    }

    fn send(self, ending: Ending, ended_by_handler: bool) -> bool {
        let finished = Finished {
            batch: self.batch,
            index: self.index,
            ending,
            keyed: self.keyed,
            ended_by_handler,
        };
        self.completer.send(finished).is_ok()
    }
}

/// A job whose handler has returned, or is about to, while its end is still being written: its lease is kept until the
/// outcome is known. Dropped without one it counts as [`Outcome::EndedByHandler`]: the job is looked at.
pub struct Later {
    end: Option<JobEnd>,
}

impl Later {
    pub(crate) fn new(end: JobEnd) -> Self {
        Self { end: Some(end) }
    }

    /// How it ended, as a handler says it.
    pub fn ended(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(end) = self.end.take() {
            end.batch.slots[end.index].set_stage(Stage::Finished);
            end.outcome(outcome);
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.end(Outcome::EndedByHandler);
    }
}
