//! What the threads of a runner share: the state of the runner, and of each queue.
//!
//! Threads share data only through this file, and it imports none of them.

use super::options::QueueOptions;
use super::shares::Shares;
use crate::Database;
use crate::batch::{Batch, Stage};
use crossbeam_channel::{Receiver, Sender};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A warning, or a record at level debug while the database is known to be away.
macro_rules! warn_unless_away {
    ($runner:expr, $($record:tt)*) => {
        match ($runner.is_quiet)() {
            true => slog::debug!($runner.log, $($record)*),
            false => slog::warn!($runner.log, $($record)*),
        }
    };
}
pub(super) use warn_unless_away;

/// What a caller says of itself when it is asked.
pub(super) type Condition = Box<dyn Fn() -> bool + Send + Sync>;

pub(super) struct RunnerState {
    pub(super) database: Database,
    /// For what keeps leases, which must not wait for work.
    pub(super) lease_database: Database,
    pub(super) log: slog::Logger,
    /// Whether the database is known to be away.
    pub(super) is_quiet: Condition,
    pub(super) worker: String,
    pub(super) lease: Duration,
    pub(super) watch: Duration,
    pub(super) stopping: Arc<AtomicBool>,
    /// Every lease with unfinished jobs of this process.
    pub(super) batches: Mutex<BTreeMap<i64, Arc<Batch>>>,
    pub(super) queues: Vec<Arc<QueueState>>,
    pub(super) handed_back: AtomicU64,
    pub(super) leases_left: AtomicBool,
    /// Disconnected when the deadline of a stop has passed: whoever still waits for the database gives up.
    pub(super) giving_up: Receiver<()>,
}

impl RunnerState {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn tell_to_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        for queue in &self.queues {
            queue.poke();
        }
    }

    pub(super) fn batches(&self) -> MutexGuard<'_, BTreeMap<i64, Arc<Batch>>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue(&self, name: &str) -> Option<&Arc<QueueState>> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// Tells a job that it was cancelled, if it runs here; whether it does.
    pub(super) fn cancelled(&self, id: i64) -> bool {
        let batches: Vec<Arc<Batch>> = self.batches().values().cloned().collect();
        let slots = batches.iter().flat_map(|batch| batch.slots.iter());
        let mut found = false;
        for slot in slots.filter(|slot| {
            slot.id == id && (slot.is_at(Stage::Running) || slot.is_at(Stage::Queued))
        }) {
            slot.end(true);
            found = true;
        }
        found
    }

    /// Jobs that were claimed since the start.
    pub(super) fn claimed(&self) -> u64 {
        let claimed = self.queues.iter().map(|queue| &queue.counts.claimed);
        claimed.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

pub(super) struct QueueState {
    pub(super) name: String,
    pub(super) options: QueueOptions,
    /// Claimed and not yet through their handlers.
    pub(super) outstanding: AtomicUsize,
    /// How many of them may wait for a thread now.
    pub(super) prefetch: AtomicUsize,
    /// Through their handlers since the start.
    pub(super) through: AtomicU64,
    /// Of the outstanding ones, those of serial keys.
    pub(super) serial: AtomicUsize,
    pub(super) running: AtomicUsize,
    pub(super) woken: AtomicBool,
    pub(super) shares: Shares,
    poke: Sender<()>,
    pub(super) counts: Counts,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) claimed: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) snoozed: AtomicU64,
    pub(super) dead: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) merged: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) handed_back: AtomicU64,
}

/// What a queue's threads in this process have done since the start, and have in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub claimed: u64,
    /// Completed, by the runner or by the handler itself.
    pub done: u64,
    /// Failed and waiting for another attempt.
    pub retried: u64,
    pub snoozed: u64,
    pub dead: u64,
    pub cancelled: u64,
    /// Gone because another job of the same unique key waited.
    pub merged: u64,
    /// No longer under their lease when they were to be ended.
    pub lost: u64,
    pub handed_back: u64,
    /// In a handler now.
    pub running: u64,
    /// Claimed and waiting for a thread now.
    pub queued: u64,
}

impl QueueState {
    /// `poke` wakes the claimer.
    pub(super) fn new(name: String, options: QueueOptions, poke: Sender<()>) -> Self {
        Self {
            name,
            outstanding: AtomicUsize::new(0),
            prefetch: AtomicUsize::new(options.prefetch),
            through: AtomicU64::new(0),
            options,
            serial: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            woken: AtomicBool::new(false),
            shares: Shares::default(),
            poke,
            counts: Counts::default(),
        }
    }

    /// Makes the claimer look at the queue's state.
    fn poke(&self) {
        // A poke that waits already says the same.
        let _ = self.poke.try_send(());
    }

    /// There may be something to claim.
    pub(super) fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        self.poke();
    }

    /// So many outstanding jobs that no more are claimed. With prefetch, half of it has to be used up first, so that
    /// batches stay large; without, a thread is to be free.
    pub(super) fn enough(&self) -> usize {
        match self.prefetch.load(Ordering::SeqCst) {
            0 => self.options.threads,
            prefetch => self.options.threads + prefetch / 2 + 1,
        }
    }

    /// A job is through its handler.
    pub(super) fn through(&self, fairness_key: Option<&str>) {
        let is_next = self.options.fair && self.shares.give_back(fairness_key);
        self.through.fetch_add(1, Ordering::Relaxed);
        // Before what says how many are enough: the claimer says that, then looks how many there are.
        let outstanding = self.outstanding.fetch_sub(1, Ordering::SeqCst);
        // With this one there is room again; with others there was.
        if is_next {
            self.wake();
        } else if outstanding == self.enough() {
            self.poke();
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let running = self.running.load(Ordering::Relaxed) as u64;
        Stats {
            claimed: read(&self.counts.claimed),
            done: read(&self.counts.done),
            retried: read(&self.counts.retried),
            snoozed: read(&self.counts.snoozed),
            dead: read(&self.counts.dead),
            cancelled: read(&self.counts.cancelled),
            merged: read(&self.counts.merged),
            lost: read(&self.counts.lost),
            handed_back: read(&self.counts.handed_back),
            running,
            queued: (self.outstanding.load(Ordering::Relaxed) as u64).saturating_sub(running),
        }
    }
}
