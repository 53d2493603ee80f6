//! The audit: the only writer of decision rows.
//!
//! A check hands its decision over and gets a [`Ticket`]. The request goes on, and waits for the
//! ticket before anything that the decision allows is committed or answered
//! (`audit-before-commit`). One thread at a time writes all waiting decisions as one batch. That is
//! `audit-writer`, or a request thread that has nothing else to do.
//!
//! Guarantees: a ticket that succeeded stands for a row on disk, and nothing that a failed ticket
//! was to allow has taken effect. A ticket succeeds or fails within `patience`, whatever the
//! database does. Each writer's decisions form a hash chain, so a later change is detected.
//!
//! Not here: the checks (`authz`), and who may read decisions (`api::audit`).

mod anchor;
mod batch;
mod chain;
mod decision;
mod keeper;
mod queue;
mod record;
mod stats;
mod ticket;
pub mod verify;
mod wake;
mod writer;

pub use decision::{Check, Decision, Outcome, Stage};
pub use record::{CheckRecord, Record};
pub use stats::Stats;
pub use ticket::Ticket;

use crate::config::Settings;
use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::store::{self, Store};
use crate::threads;
use batch::Entry;
use crossbeam_channel::{Receiver, bounded};
use keeper::Keeper;
use queue::Queue;
use stats::{Counters, Decided};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
pub use wake::Retention;
use wake::{Wake, lock};
use writer::Writer;

/// Statement timeout of the writer, at most.
const STATEMENT: Duration = Duration::from_secs(5);

/// Statements in one attempt, including the time to cancel one.
const ATTEMPT: u32 = 4;

/// How decisions are written.
#[derive(Clone)]
pub struct Options {
    /// Decisions that may wait in the queue.
    pub queue_length: usize,
    /// How long a decision may wait for its commit. Then its request fails.
    pub patience: Duration,
    /// After this time without renewal, another writer may take over the slot.
    pub lease: Duration,
    /// None: keep everything.
    pub retention: Option<Retention>,
}

impl Options {
    /// As the settings say.
    pub fn from_settings(settings: &Settings) -> Self {
        // The one word of the setting is `shipped`.
        let purges = settings.values.is_given("SVC_COMPLIANCE_CLASSIFIER");
        Self {
            queue_length: settings.values.number("SVC_AUDIT_QUEUE_LENGTH"),
            retention: purges.then(|| Retention {
                key: settings.audit_signing_key.as_deref().cloned(),
            }),
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue_length: 10_000,
            patience: Duration::from_secs(5),
            lease: Duration::from_secs(60),
            retention: None,
        }
    }
}

/// Records decisions. Cheap to clone.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

#[cfg_attr(feature = "bench", derive(Clone))]
struct Inner {
    /// Reports decisions as written without writing them.
    #[cfg(feature = "bench")]
    discards: bool,
    queue: Arc<Queue>,
    /// Dropped when the writer's thread ends.
    writer: Weak<writer::Shared>,
    counters: Arc<Counters>,
    decided: Arc<Decided>,
    clock: Clock,
    patience: Duration,
    /// Upper bound on one attempt of the writer.
    attempt: Duration,
    keeper: Wake,
}

/// The threads behind an [`Audit`].
pub struct Running {
    queue: Arc<Queue>,
    stop_by: Arc<Mutex<Option<Instant>>>,
    /// Disconnected when the writer has ended.
    ended: Receiver<()>,
    keeper: Wake,
}

impl Audit {
    /// Records a decision, and starts writing it immediately.
    ///
    /// # Errors
    /// `audit-unavailable`: the queue is full, or the server is stopping.
    pub fn record(&self, decision: Decision) -> Result<Ticket> {
        let ticket = self.enqueue(decision)?;
        self.wake_writer();
        Ok(ticket)
    }

    /// Wakes the thread `audit-writer` to write the waiting decisions.
    pub fn wake_writer(&self) {
        self.0.queue.call();
    }

    /// Writes the waiting decisions on this thread, unless another thread is writing. Makes one
    /// attempt; `audit-writer` finishes what the attempt leaves open.
    pub fn write_waiting(&self) {
        writer::lead(&self.0.writer);
    }

    /// Records a decision without starting to write it. It is written with the next one, or after
    /// [`Audit::wake_writer`] or [`Audit::write_waiting`]; the caller must call one of these.
    ///
    /// # Errors
    /// As [`Audit::record`].
    pub fn enqueue(&self, decision: Decision) -> Result<Ticket> {
        let inner = &*self.0;
        let ticket = Ticket::new(inner.patience);
        #[cfg(feature = "bench")]
        if inner.discards {
            ticket.resolve(ticket::Resolution::Committed);
            return Ok(ticket);
        }
        let (stage, outcome) = (decision.stage, decision.outcome);
        inner.queue.push(Entry {
            row: decision.into_row(&inner.clock),
            ticket: ticket.clone(),
        })?;
        inner.decided.count(stage, outcome);
        Ok(ticket)
    }

    /// A copy that reports decisions as written without writing them: the baseline of the audit's
    /// benchmark. It exists only with the feature `bench`.
    #[cfg(feature = "bench")]
    pub fn discarding(&self) -> Self {
        Self(Arc::new(Inner {
            discards: true,
            ..(*self.0).clone()
        }))
    }

    /// Call it once the schema exists: from then on the keeper makes partitions and purges. Later
    /// calls start a round immediately.
    pub fn keep_up(&self) {
        if let Some(keeper) = lock(&self.0.keeper).as_ref() {
            // A full channel means that the keeper is already awake.
            let _ = keeper.try_send(());
        }
    }

    /// Whether the writer is stuck: its attempt runs for longer than all of its statement timeouts
    /// together, or its thread has ended. Failed attempts do not count.
    pub fn is_stuck(&self) -> bool {
        self.0.counters.turn.is_longer_than(self.0.attempt)
    }

    /// The metrics so far.
    pub fn stats(&self) -> Stats {
        let counters = &self.0.counters;
        let load = self.0.queue.load();
        Stats {
            decided: self.0.decided.all(),
            queued: load.waiting,
            writing: load.taken,
            rows_written: counters.rows.load(Ordering::Relaxed),
            batches_written: counters.batches.load(Ordering::Relaxed),
            rows_refused: counters.failed.load(Ordering::Relaxed),
            rows_late: load.late,
            rows_overflowed: load.overflowed,
            last_commit: Duration::from_micros(counters.last_commit_us.load(Ordering::Relaxed)),
            commits: Duration::from_micros(counters.commits_us.load(Ordering::Relaxed)),
        }
    }
}

/// Starts the threads `audit-writer`, `audit-watch` and `audit-keeper`. They open their own
/// connections to `database`, which need not be reachable yet.
///
/// # Errors
/// The connection string is malformed, or the system refuses a thread.
pub fn start(
    options: &Options,
    database: &store::Options,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<(Audit, Running)> {
    let own = store::Options {
        // One for the writer, one for the keeper.
        pool_size: 2,
        statement_timeout: database.statement_timeout.min(STATEMENT),
        ..database.clone()
    };
    let queue = Arc::new(Queue::new(options.queue_length));
    let counters = Arc::new(Counters::default());
    let stop_by = Arc::default();
    let store = Store::open(&own, log.clone())?;
    let (wake, woken) = bounded(1);
    let wake: Wake = Arc::new(Mutex::new(Some(wake)));
    let keeper = Keeper {
        store: store.clone(),
        clock: clock.clone(),
        retention: options.retention.clone(),
        wake: Arc::clone(&wake),
        log: log.clone(),
    };
    let writer = Writer {
        queue: Arc::clone(&queue),
        store,
        counters: Arc::clone(&counters),
        lease: options.lease,
        stop_by: Arc::clone(&stop_by),
        log: log.clone(),
        held: writer::Held::default(),
    };
    let (alive, ended) = bounded(0);
    let writer = Arc::new(writer::Shared::new(writer));
    let led = Arc::downgrade(&writer);
    spawn("audit-writer", move || {
        let _alive: crossbeam_channel::Sender<()> = alive;
        writer.run();
    })?;
    spawn("audit-keeper", move || keeper.run(&woken))?;
    let running = Running {
        queue: Arc::clone(&queue),
        stop_by,
        ended,
        keeper: Arc::clone(&wake),
    };
    let (watched, log) = (Arc::clone(&queue), log.clone());
    spawn("audit-watch", move || {
        while let Some(panics) = watched.give_up_late() {
            if panics > 0 {
                slog::error!(log, "Callbacks of the audit panicked"; "panics" => panics);
            }
        }
    })?;
    let audit = Audit(Arc::new(Inner {
        #[cfg(feature = "bench")]
        discards: false,
        queue,
        writer: led,
        counters,
        decided: Arc::default(),
        clock: clock.clone(),
        patience: options.patience,
        attempt: ATTEMPT * (own.statement_timeout + own.checkout_timeout),
        keeper: wake,
    }));
    Ok((audit, running))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    threads::start(name, Some(1024 * 1024), work).map_err(Error::internal)?;
    Ok(())
}

impl Running {
    /// Accepts no more decisions, writes the waiting ones, and frees the slot. Call it after
    /// everything that records decisions has stopped. False: some decisions were not written by
    /// `deadline`, and failed.
    pub fn stop(self, deadline: Instant) -> bool {
        *lock(&self.stop_by) = Some(deadline);
        self.queue.close();
        // Nothing is ever sent here; the channel disconnects when the writer ends.
        let left = self.ended.recv_deadline(deadline);
        let in_time = left == Err(crossbeam_channel::RecvTimeoutError::Disconnected);
        drop(self);
        in_time
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.keeper).take();
        // If the writer hangs on the database, the decisions that it holds have failed.
        self.queue.end();
    }
}
