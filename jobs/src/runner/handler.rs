//! The threads that call handlers, and what a handler may answer.

use super::claimer::Claims;
use super::crew::Crew;
use super::settler::Finished;
use super::start::thread;
use super::{Core, Queue};
use crate::Result;
use crate::claimed::{Batch, Beside, CancelToken, Claimed, Slot, Stage};
use crate::protocol::{ClaimedRow, Ending};
use crossbeam_channel::Sender;
use slog::{debug, warn};
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) type Handler = Arc<dyn Fn(&Claimed) -> Outcome + Send + Sync>;

/// Of one queue, by the names of its jobs. They are the threads' own and end with them: what a handler holds may well
/// hold a handle of this runner.
pub(crate) type Handlers = HashMap<String, Handler>;

/// What a handler says of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The attempt failed. With no `after`, the queue's backoff says when to try again.
    Retry {
        after: Option<Duration>,
        reason: String,
    },
    /// Not now; the attempt does not count.
    Snooze {
        after: Duration,
    },
    /// It cannot succeed.
    Dead {
        reason: String,
    },
    /// The handler settled the job in a transaction of its own, which it committed. If the job turns out to be still
    /// under its lease (the commit failed), that counts as a failed attempt.
    Settled,
    /// As [`Outcome::Settled`], by a statement that said that it completed the job, and whose commit was answered: the job
    /// is not looked at again.
    Completed,
}

impl Outcome {
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry {
            after: None,
            reason: reason.into(),
        }
    }

    pub fn dead(reason: impl Into<String>) -> Self {
        Self::Dead {
            reason: reason.into(),
        }
    }
}

/// A claimed job on its way to a thread.
pub(super) struct Work {
    pub(super) row: ClaimedRow,
    pub(super) batch: Arc<Batch>,
    pub(super) place: usize,
    /// What was read beside its claim, or whoever enqueued it as claimed gave with it.
    pub(super) beside: Option<Beside>,
}

impl Work {
    /// Jobs that were claimed together, with what their handlers are given.
    pub(super) fn of(
        batch: &Arc<Batch>,
        jobs: impl Iterator<Item = (ClaimedRow, Option<Beside>)>,
    ) -> impl Iterator<Item = Self> {
        jobs.enumerate().map(|(place, (row, beside))| Self {
            row,
            batch: Arc::clone(batch),
            place,
            beside,
        })
    }
}

/// How long a job that this process has no handler for waits for a process that has.
const NO_HANDLER: Duration = Duration::from_secs(15);

/// What the threads that handle a queue's jobs share.
pub(crate) struct Hands {
    pub(super) core: Arc<Core>,
    pub(super) queue: Arc<Queue>,
    pub(super) crew: Crew,
    pub(super) claims: Mutex<Claims>,
    pub(super) handlers: Handlers,
    pub(super) finished: Sender<Finished>,
    /// Dropped with the last of them.
    pub(super) alive: Sender<()>,
}

impl Hands {
    /// Starts the thread of a number.
    pub(super) fn start(self: &Arc<Self>, number: usize) -> Result<()> {
        let options = &self.queue.options;
        let prefix = options.thread_name.as_deref().unwrap_or(&self.queue.name);
        let stack = Some(options.stack_bytes);
        let hands = Arc::clone(self);
        thread(
            format!("{prefix}-{number}"),
            stack,
            &self.alive,
            move || {
                run(&hands, number);
            },
        )
    }

    /// Puts jobs that were claimed together among those in hand, which `outstanding` counts already.
    pub(super) fn enlist(&self, rows: &[ClaimedRow], asked_at: Instant) -> Arc<Batch> {
        let (core, queue) = (&*self.core, &*self.queue);
        let lease_id = rows.first().map_or(0, |row| row.lease_id);
        let ids = rows.iter().map(|row| row.id);
        let batch = Batch::new(lease_id, ids, asked_at, core.lease);
        let batch = Arc::new(batch.with_cuts(queue.options.cut_counts));
        core.batches().insert(lease_id, Arc::clone(&batch));
        let serial = rows.iter().filter(|row| row.is_serial()).count();
        queue.serial.fetch_add(serial, Ordering::AcqRel);
        queue
            .counts
            .claimed
            .fetch_add(rows.len() as u64, Ordering::Relaxed);
        batch
    }

    /// Hands jobs to the crew; so many are outstanding with them.
    pub(super) fn hand_out(self: &Arc<Self>, jobs: impl Iterator<Item = Work>, outstanding: usize) {
        let start = |number| self.start(number);
        if let Err(error) = self.crew.hand_out(jobs, outstanding, start) {
            warn!(self.core.log, "no further thread, jobs wait for those that there are"; "queue" => &self.queue.name,
                "error" => %error);
        }
    }

    pub(super) fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a job's handler and passes on how it ended. False: nobody settles any more.
    pub(super) fn handle(self: &Arc<Self>, work: Work) -> bool {
        let (core, queue) = (&*self.core, &*self.queue);
        let Work {
            row,
            batch,
            place,
            beside,
        } = work;
        let serial = row.is_serial();
        let told = Told::of(&row, Arc::clone(&batch), place);
        let token = CancelToken::new(Arc::clone(&batch), place);
        let mut is_later = false;
        let outcome = if core.stopping() || token.is_too_late_to_begin() {
            None
        } else {
            let slot = &batch.slots[place];
            Some(match self.handlers.get(&row.name) {
                Some(handler) => {
                    let stopping = Arc::clone(&core.stopping);
                    let hands = Arc::clone(self);
                    let claimed = Claimed::new(row, token.clone(), stopping, beside, hands);
                    let outcome = call(core, queue, handler, &claimed, slot);
                    is_later = claimed.is_later();
                    outcome
                }
                None => unknown(core, queue, &row),
            })
        };
        queue
            .serial
            .fetch_sub(usize::from(serial), Ordering::AcqRel);
        if is_later {
            queue.through();
            return true;
        }
        // Told by a stop to end: the job goes on elsewhere, whatever the handler makes of that.
        let cut = outcome.is_some() && core.stopping() && token.lost();
        batch.slots[place].set_stage(Stage::Finished);
        queue.through();
        self.end(told, outcome, cut)
    }

    /// Passes on how a job ended. False: nobody settles any more.
    fn end(&self, told: Told, outcome: Option<Outcome>, cut: bool) -> bool {
        let queue = &*self.queue;
        let Told {
            batch,
            place,
            attempt,
            keyed,
        } = told;
        if outcome == Some(Outcome::Completed) {
            batch.settled(place);
            queue.counts.done.fetch_add(1, Ordering::Relaxed);
            if keyed {
                queue.wake();
            }
            return true;
        }
        let settled_itself = outcome == Some(Outcome::Settled);
        let ending = match cut {
            true => batch.cut(),
            false => ending(queue, attempt, outcome),
        };
        let finished = Finished {
            batch,
            place,
            ending,
            keyed,
            settled_itself,
        };
        self.finished.send(finished).is_ok()
    }
}

/// A job as its end speaks of it.
struct Told {
    batch: Arc<Batch>,
    place: usize,
    attempt: u32,
    keyed: bool,
}

impl Told {
    fn of(row: &ClaimedRow, batch: Arc<Batch>, place: usize) -> Self {
        Self {
            batch,
            place,
            attempt: row.attempt,
            keyed: row.key.is_some(),
        }
    }
}

/// A job whose handler has returned, or is about to, while somebody still writes how it ended: its lease is kept until
/// that is said. Dropped without a word it is as [`Outcome::Settled`]: the job is looked at.
pub struct Later {
    hands: Arc<Hands>,
    told: Option<Told>,
}

impl Later {
    pub(crate) fn new(hands: &Arc<Hands>, row: &ClaimedRow, token: &CancelToken) -> Self {
        let (batch, place) = token.place();
        hands.queue.later.fetch_add(1, Ordering::AcqRel);
        Self {
            hands: Arc::clone(hands),
            told: Some(Told::of(row, batch, place)),
        }
    }

    /// Leaves the job's place of its key to the next one, from this process's next claim on: its end changes nothing that the
    /// next one has to wait for. Not of a serial key, whose next job begins when this one has ended.
    pub fn vacate(&self) {
        if let Some(Told { batch, place, .. }) = &self.told {
            let id = batch.slots[*place].id;
            self.hands.queue.vacated().insert(id, batch.lease_id);
        }
    }

    /// How it ended, as a handler says it.
    pub fn ended(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(told) = self.told.take() {
            let slot = &told.batch.slots[told.place];
            slot.set_stage(Stage::Finished);
            self.hands.queue.no_longer_later(slot.id);
            // Where nobody settles any more the lease runs out.
            let _ = self.hands.end(told, Some(outcome), false);
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.end(Outcome::Settled);
    }
}

fn run(hands: &Arc<Hands>, number: usize) {
    // After a stop the crew ends; what still waits is given back.
    while let Some(work) = hands.crew.next(number) {
        if !hands.handle(work) {
            return;
        }
    }
}

fn unknown(core: &Core, queue: &Queue, row: &ClaimedRow) -> Outcome {
    warn!(core.log, "no handler for a job"; "queue" => &queue.name, "jobName" => &row.name, "jobId" => row.id);
    Outcome::Snooze { after: NO_HANDLER }
}

fn call(core: &Core, queue: &Queue, handler: &Handler, claimed: &Claimed, slot: &Slot) -> Outcome {
    slot.set_stage(Stage::Running);
    // Before anything is asked of its fate (`keeper::hand_back`).
    fence(Ordering::SeqCst);
    queue.running.fetch_add(1, Ordering::Relaxed);
    let outcome = catch_unwind(AssertUnwindSafe(|| handler(claimed)));
    queue.running.fetch_sub(1, Ordering::Relaxed);
    let outcome = outcome
        .unwrap_or_else(|panic| Outcome::retry(format!("panicked: {}", text(panic.as_ref()))));
    if let Outcome::Retry { reason, .. } | Outcome::Dead { reason } = &outcome {
        debug!(core.log, "a job failed"; "queue" => &queue.name, "jobName" => claimed.name(), "jobId" => claimed.id(),
            "attempt" => claimed.attempt(), "reason" => reason);
    }
    outcome
}

fn ending(queue: &Queue, attempt: u32, outcome: Option<Outcome>) -> Ending {
    let backoff = || queue.options.backoff.after(attempt);
    match outcome {
        None => Ending::HandBack,
        Some(Outcome::Done | Outcome::Completed) => Ending::Done,
        Some(Outcome::Retry { after, reason }) => Ending::Retry {
            after: after.unwrap_or_else(backoff),
            reason,
        },
        Some(Outcome::Snooze { after }) => Ending::Snooze { after },
        Some(Outcome::Dead { reason }) => Ending::Dead { reason },
        Some(Outcome::Settled) => Ending::Retry {
            after: backoff(),
            reason: "the handler said that it settled the job, but its transaction did not commit"
                .into(),
        },
    }
}

pub(super) fn text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with no text")
}
