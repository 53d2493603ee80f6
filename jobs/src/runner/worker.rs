//! The threads that call handlers, and what those of one queue share.

use super::job_end::{Finished, JobEnd};
use super::outcome::{Fault, Outcome};
use super::state::{QueueState, RunnerState};
use super::thread::{self, Alive};
use super::thread_pool::ThreadPool;
use crate::Result;
use crate::batch::{Batch, CancelToken, Slot, Stage};
use crate::claimed::{Beside, Claimed};
use crate::protocol::ClaimedRow;
use crossbeam_channel::Sender;
use slog::{debug, warn};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

pub(super) type Handler = Arc<dyn Fn(&Claimed) -> Outcome + Send + Sync>;

/// Of one queue, by the names of its jobs. They are the threads' own and end with them: what a handler holds may well
/// hold a handle of this runner.
pub(super) type Handlers = HashMap<String, Handler>;

/// How long a job that this process has no handler for waits for a process that has.
const NO_HANDLER: Duration = Duration::from_secs(15);

/// A claimed job on its way to a thread.
pub(super) struct Work {
    row: ClaimedRow,
    batch: Arc<Batch>,
    index: usize,
    /// What was read beside its claim.
    beside: Option<Beside>,
}

/// What the threads that handle a queue's jobs share.
pub(super) struct WorkerContext {
    pub(super) runner: Arc<RunnerState>,
    pub(super) queue: Arc<QueueState>,
    pub(super) pool: ThreadPool<Work>,
    pub(super) handlers: Handlers,
    pub(super) completer: Sender<Finished>,
    /// Dropped with the last of them.
    pub(super) alive: Alive,
}

impl WorkerContext {
    /// Starts the thread of a number.
    pub(super) fn start(self: &Arc<Self>, number: usize) -> Result<()> {
        let name = format!("{}-{number}", self.queue.name);
        let stack = Some(self.queue.options.stack_bytes);
        let context = Arc::clone(self);
        thread::start(name, stack, &self.alive, move || {
            // After a stop the pool ends; what still waits is given back.
            while let Some(work) = context.pool.next(number) {
                if !context.handle(work) {
                    return;
                }
            }
        })
    }

    /// Counts jobs that were claimed together as in hand: a stop gives them back from then on.
    pub(super) fn enlist(&self, rows: &[ClaimedRow], asked_at: Instant) -> Arc<Batch> {
        let queue = &*self.queue;
        let lease_id = rows.first().map_or(0, |row| row.lease_id);
        let ids = rows.iter().map(|row| row.id);
        let batch = Batch::new(lease_id, ids, asked_at, self.runner.lease);
        let batch = Arc::new(batch.with_cuts(queue.options.cut_counts));
        self.runner.batches().insert(lease_id, Arc::clone(&batch));
        let serial = rows.iter().filter(|row| row.is_serial()).count();
        queue.serial.fetch_add(serial, Ordering::AcqRel);
        if queue.options.fair {
            let keys = rows.iter().map(|row| row.fairness_key.as_deref());
            queue.shares.take(keys);
        }
        let claimed = &queue.counts.claimed;
        claimed.fetch_add(rows.len() as u64, Ordering::Relaxed);
        batch
    }

    /// Hands a batch's jobs to the threads, in order, each with what was read for it. `outstanding` jobs, these included,
    /// are not through their handlers.
    pub(super) fn hand_out(
        self: &Arc<Self>,
        batch: &Arc<Batch>,
        rows: Vec<ClaimedRow>,
        beside: Vec<Option<Beside>>,
        outstanding: usize,
    ) {
        let beside = beside.into_iter().chain(std::iter::repeat_with(|| None));
        let work = rows.into_iter().zip(beside).enumerate();
        let work = work.map(|(index, (row, beside))| Work {
            row,
            batch: Arc::clone(batch),
            index,
            beside,
        });
        let start = |number| self.start(number);
        if let Err(error) = self.pool.hand_out(work, outstanding, start) {
            warn!(self.runner.log, "cannot start another thread; jobs wait for those that run"; "queue" => &self.queue.name,
                "error" => #error);
        }
    }

    /// Calls a job's handler and passes on how it ended. False: the completer has ended.
    fn handle(&self, work: Work) -> bool {
        let queue = &*self.queue;
        let Work {
            row,
            batch,
            index,
            beside,
        } = work;
        let slot = &batch.slots[index];
        let serial = usize::from(row.is_serial());
        let fairness_key = row.fairness_key.clone();
        let through = || queue.through(fairness_key.as_deref());
        let end = JobEnd::new(&self.queue, &self.completer, &row, &batch, index);
        let token = CancelToken::new(Arc::clone(&batch), index);
        let (outcome, is_later) = match self.runner.is_stopping() || token.is_too_late_to_begin() {
            true => (None, false),
            false => {
                let (outcome, is_later) = self.run(row, beside, &token, slot, end.clone());
                (Some(outcome), is_later)
            }
        };
        queue.serial.fetch_sub(serial, Ordering::AcqRel);
        if is_later {
            through();
            return true;
        }
        slot.set_stage(Stage::Finished);
        through();
        match outcome {
            None => end.hand_back(),
            // A stop told it to end: the job goes on elsewhere, whatever the handler makes of that.
            Some(_) if self.runner.is_stopping() && token.lost() => end.cut(),
            Some(outcome) => end.outcome(outcome),
        }
    }

    /// Calls the handler; what it said, and whether the end comes later.
    fn run(
        &self,
        row: ClaimedRow,
        beside: Option<Beside>,
        token: &CancelToken,
        slot: &Slot,
        end: JobEnd,
    ) -> (Outcome, bool) {
        let (log, queue) = (&self.runner.log, &*self.queue);
        let Some(handler) = self.handlers.get(&row.name) else {
            warn!(log, "no handler for a job"; "queue" => &queue.name, "jobName" => &row.name, "jobId" => row.id);
            return (Outcome::Snooze { after: NO_HANDLER }, false);
        };
        let stopping = Arc::clone(&self.runner.stopping);
        let claimed = Claimed::new(row, token.clone(), stopping, beside, end);
        slot.set_stage(Stage::Running);
        // Before anything is asked of its fate (`leases::hand_back`).
        fence(Ordering::SeqCst);
        queue.running.fetch_add(1, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(&claimed)));
        queue.running.fetch_sub(1, Ordering::Relaxed);
        let outcome = outcome.unwrap_or_else(|panic| Outcome::panicked(panic.as_ref()));
        if let Outcome::Retry { reason, .. } | Outcome::Dead { reason } = &outcome {
            debug!(log, "a job failed"; "queue" => &queue.name, "jobName" => claimed.name(), "jobId" => claimed.id(),
                "attempt" => claimed.attempt(), "error" => #Fault::Failed(reason.clone()));
        }
        (outcome, claimed.is_later())
    }
}

/// What is read for jobs that were just claimed, in their order, as far as it goes.
pub(super) type ReadBeside =
    Box<dyn Fn(&[ClaimedRow], Instant) -> Vec<Option<Beside>> + Send + Sync>;

/// Reads for jobs that were just claimed; nothing where that panics.
pub(super) fn read_beside(
    log: &slog::Logger,
    read: &ReadBeside,
    rows: &[ClaimedRow],
    asked_at: Instant,
) -> Vec<Option<Beside>> {
    let read = catch_unwind(AssertUnwindSafe(|| read(rows, asked_at)));
    read.unwrap_or_else(|panic| {
        warn!(log, "reading for claimed jobs panicked"; "error" => #Fault::panicked(panic.as_ref()));
        Vec::new()
    })
}
