//! The audit: the only writer of decision rows.
//!
//! A decision is handed over at check time and gives a [`Ticket`]; the request goes on meanwhile,
//! and waits for the ticket before anything that the decision allows commits or leaves (invariant
//! 2). One thread writes whatever waits as one batch.
//!
//! Guarantees: a ticket that was settled with success stands for a row on disk; one that failed
//! stands for nothing that took effect. A ticket is settled within the patience, whatever the
//! database does. What one writer commits is chained, so that a change is found.
//!
//! Not here: what is decided (`authz`), and who may read it (`api::audit`).

mod chain;
mod decision;
mod queue;
mod ticket;
mod writer;

pub use decision::{Check, Decision, Outcome, Stage};
pub use ticket::Ticket;

use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::store::{self, Store};
use crossbeam_channel::{Receiver, bounded};
use queue::{Entry, Queue};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use writer::{Counters, Writer};

/// The longest statement of the writer.
const STATEMENT: Duration = Duration::from_secs(5);

/// How decisions are written.
#[derive(Debug, Clone)]
pub struct Options {
    /// Decisions that may wait at once.
    pub queue_length: usize,
    /// How long a decision waits for its commit before its request fails.
    pub patience: Duration,
    /// After it the slot of a dead process is taken again.
    pub lease: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue_length: 10_000,
            patience: Duration::from_secs(5),
            lease: Duration::from_secs(60),
        }
    }
}

/// Figures for `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Decisions that wait.
    pub queued: usize,
    /// Decisions committed.
    pub rows_written: u64,
    /// Transactions committed.
    pub batches_written: u64,
    /// Decisions that the database refused.
    pub rows_refused: u64,
    /// How long the last transaction took.
    pub last_commit: Duration,
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
    counters: Arc<Counters>,
    clock: Clock,
    patience: Duration,
}

/// The threads behind an [`Audit`].
pub struct Running {
    queue: Arc<Queue>,
    stop_by: Arc<Mutex<Option<Instant>>>,
    /// Disconnected when the writer has ended.
    ended: Receiver<()>,
}

impl Audit {
    /// Hands a decision over.
    ///
    /// # Errors
    /// `audit-unavailable`: too many wait, or the server is stopping.
    pub fn record(&self, decision: Decision) -> Result<Ticket> {
        let inner = &*self.0;
        let ticket = Ticket::new(inner.patience);
        #[cfg(feature = "bench")]
        if inner.discards {
            ticket.settle(ticket::Settlement::Committed);
            return Ok(ticket);
        }
        inner.queue.push(Entry {
            row: decision.into_row(&inner.clock),
            ticket: ticket.clone(),
        })?;
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

    /// The figures so far.
    pub fn stats(&self) -> Stats {
        let counters = &self.0.counters;
        Stats {
            queued: self.0.queue.len(),
            rows_written: counters.rows.load(Ordering::Relaxed),
            batches_written: counters.batches.load(Ordering::Relaxed),
            rows_refused: counters.failed.load(Ordering::Relaxed),
            last_commit: Duration::from_micros(counters.last_commit_us.load(Ordering::Relaxed)),
        }
    }
}

/// Starts the threads `audit-writer` and `audit-watch`. The database need not be up. The writer's
/// connection is its own, made from `database`.
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
        pool_size: 1,
        statement_timeout: database.statement_timeout.min(STATEMENT),
        ..database.clone()
    };
    let queue = Arc::new(Queue::new(options.queue_length));
    let counters = Arc::new(Counters::default());
    let stop_by = Arc::default();
    let writer = Writer {
        queue: Arc::clone(&queue),
        store: Store::open(&own, log.clone())?,
        counters: Arc::clone(&counters),
        lease: options.lease,
        stop_by: Arc::clone(&stop_by),
        log: log.clone(),
        held: writer::Held::default(),
    };
    let (alive, ended) = bounded(0);
    spawn("audit-writer", move || {
        let _alive: crossbeam_channel::Sender<()> = alive;
        writer.run();
    })?;
    let running = Running {
        queue: Arc::clone(&queue),
        stop_by,
        ended,
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
        counters,
        clock: clock.clone(),
        patience: options.patience,
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
        *self.stop_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
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
        // What a writer on a database that stands still holds has failed.
        self.queue.end();
    }
}
