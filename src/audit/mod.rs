//! The audit: the only writer of decision rows.
//!
//! A decision is handed over at check time and gives a [`Ticket`]; the request goes on meanwhile,
//! and waits for the ticket before anything that the decision allows commits or leaves (invariant
//! 2). One thread at a time writes whatever waits as one batch: one of the audit's own, or, where it
//! has nothing else to do and nobody writes, the request's.
//!
//! Guarantees: a ticket that was settled with success stands for a row on disk; one that failed
//! stands for nothing that took effect. A ticket is settled within the patience, whatever the
//! database does. What one writer commits is chained, so that a change is found.
//!
//! Not here: what is decided (`authz`), and who may read it (`api::audit`).

mod anchor;
mod chain;
mod decision;
mod keeper;
mod queue;
mod record;
mod stats;
mod ticket;
pub mod verify;
mod writer;

pub use decision::{Check, Decision, Outcome, Stage};
pub use record::{CheckRecord, Record};
pub use stats::Stats;
pub use ticket::Ticket;

use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::store::{self, Store};
use crossbeam_channel::{Receiver, Sender, bounded};
use ed25519_dalek::SigningKey;
use keeper::Keeper;
use queue::{Entry, Queue};
use stats::{Counters, Decided};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use writer::Writer;

/// The longest statement of the writer.
const STATEMENT: Duration = Duration::from_secs(5);

/// Statements in one attempt, with the time that it takes to cancel one.
const ATTEMPT: u32 = 4;

/// How decisions are written.
#[derive(Clone)]
pub struct Options {
    /// Decisions that may wait at once.
    pub queue_length: usize,
    /// How long a decision waits for its commit before its request fails.
    pub patience: Duration,
    /// After it the slot of a dead process is taken again.
    pub lease: Duration,
    /// Purge what section 8 says, and sign what was purged.
    pub retention: Option<SigningKey>,
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

/// Takes decisions. Cheap to clone.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

#[cfg_attr(feature = "bench", derive(Clone))]
struct Inner {
    /// Decisions are taken as written, and are not.
    #[cfg(feature = "bench")]
    discards: bool,
    queue: Arc<Queue>,
    /// It ends with its thread.
    writer: Weak<writer::Shared>,
    counters: Arc<Counters>,
    decided: Arc<Decided>,
    clock: Clock,
    patience: Duration,
    /// No attempt of the writer takes longer.
    attempt: Duration,
    keeper: Wake,
}

/// Wakes the keeper; gone once it is to end.
type Wake = Arc<Mutex<Option<Sender<()>>>>;

/// The threads behind an [`Audit`].
pub struct Running {
    queue: Arc<Queue>,
    stop_by: Arc<Mutex<Option<Instant>>>,
    /// Disconnected when the writer has ended.
    ended: Receiver<()>,
    keeper: Wake,
}

impl Audit {
    /// Hands a decision over, to be written at once.
    ///
    /// # Errors
    /// `audit-unavailable`: too many wait, or the server is stopping.
    pub fn record(&self, decision: Decision) -> Result<Ticket> {
        let ticket = self.leave(decision)?;
        self.hurry();
        Ok(ticket)
    }

    /// Has what waits written at once by the audit's own thread.
    pub fn hurry(&self) {
        self.0.queue.call();
    }

    /// Writes what waits on this thread, unless another is at it. It takes no longer than one attempt: what that does not
    /// settle is left to the audit's own thread.
    pub fn write_waiting(&self) {
        writer::lead(&self.0.writer);
    }

    /// Hands a decision over, to be written with the next one, or once somebody calls [`Audit::hurry`] or
    /// [`Audit::write_waiting`]: whoever leaves it calls one of them.
    ///
    /// # Errors
    /// As [`Audit::record`].
    pub fn leave(&self, decision: Decision) -> Result<Ticket> {
        let inner = &*self.0;
        let ticket = Ticket::new(inner.patience);
        #[cfg(feature = "bench")]
        if inner.discards {
            ticket.settle(ticket::Settlement::Committed);
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

    /// This one, but that it discards what it takes: what the benchmark of the audit measures
    /// against. No build of the service has it.
    #[cfg(feature = "bench")]
    pub fn discarding(&self) -> Self {
        Self(Arc::new(Inner {
            discards: true,
            ..(*self.0).clone()
        }))
    }

    /// The schema is there: partitions are made ahead from now on, and old decisions purged. Called
    /// again, it looks at once whether there is something to do.
    pub fn keep_up(&self) {
        if let Some(keeper) = lock(&self.0.keeper).as_ref() {
            // One that is full is awake.
            let _ = keeper.try_send(());
        }
    }

    /// Whether whoever writes is held up in an attempt whose statements should all have ended long
    /// ago, or the writer's thread is gone. Attempts that fail are none of this.
    pub fn is_stuck(&self) -> bool {
        self.0.counters.turn.is_longer_than(self.0.attempt)
    }

    /// The figures so far.
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

/// Starts the threads `audit-writer`, `audit-watch` and `audit-keeper`. The database need not be up.
/// Their connections are their own, made from `database`.
///
/// # Errors
/// The connection string is none, or the system gives no thread.
pub fn start(
    options: &Options,
    database: &store::Options,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<(Audit, Running)> {
    let own = store::Options {
        // The writer's and the keeper's.
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
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(1024 * 1024)
        .spawn(work)
        .map_err(Error::internal)?;
    Ok(())
}

impl Running {
    /// Takes no more decisions, writes those that wait, and gives the slot back. Call it after
    /// everything that records. False: something could not be written by then, and has failed.
    pub fn stop(self, deadline: Instant) -> bool {
        *lock(&self.stop_by) = Some(deadline);
        self.queue.close();
        // Nothing is sent: it ends by being disconnected.
        let left = self.ended.recv_deadline(deadline);
        let in_time = left == Err(crossbeam_channel::RecvTimeoutError::Disconnected);
        drop(self);
        in_time
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.keeper).take();
        // What a writer on a database that stands still holds has failed.
        self.queue.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
