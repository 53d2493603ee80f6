//! The jobs of one lease in this process: the stage of each, and whether its handler should
//! continue.
//!
//! It imports nothing of the runner, because every thread of the runner works on batches.

use crate::protocol::Ending;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Callback = Box<dyn FnOnce() + Send>;

/// The stage of a claimed job in this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Queued = 0,
    Running = 1,
    /// The handler has returned; the completion is being written.
    Finished = 2,
    Ended = 3,
}

const GOES_ON: u8 = 0;
const LOST: u8 = 1;
const CANCELLED: u8 = 2;

pub(crate) struct Slot {
    pub(crate) id: i64,
    stage: AtomicU8,
    fate: AtomicU8,
    callbacks: Mutex<Vec<Callback>>,
}

/// The jobs of one lease.
pub(crate) struct Batch {
    pub(crate) lease_id: i64,
    /// Whether a job loses its attempt if a stop interrupts its handler.
    cut_counts: bool,
    pub(crate) slots: Box<[Slot]>,
    /// Jobs whose end is not written yet.
    remaining: AtomicUsize,
    /// The end of one could not be written. The lease is left to run out, because otherwise nobody
    /// would rescue that job.
    is_left: AtomicBool,
    pub(crate) claimed_at: Instant,
    /// Milliseconds after `claimed_at` for which the lease is certainly valid, counted from before
    /// its claim or renewal was sent.
    good_for_ms: AtomicU64,
}

impl Batch {
    pub(crate) fn new(
        lease_id: i64,
        ids: impl Iterator<Item = i64>,
        claimed_at: Instant,
        lease: Duration,
    ) -> Self {
        let slot = |id| Slot {
            id,
            stage: AtomicU8::new(Stage::Queued as u8),
            fate: AtomicU8::new(GOES_ON),
            callbacks: Mutex::new(Vec::new()),
        };
        let slots: Box<[Slot]> = ids.map(slot).collect();
        let batch = Self {
            lease_id,
            cut_counts: false,
            remaining: AtomicUsize::new(slots.len()),
            is_left: AtomicBool::new(false),
            slots,
            claimed_at,
            good_for_ms: AtomicU64::new(0),
        };
        batch.renewed(claimed_at, lease);
        batch
    }

    pub(crate) fn with_cuts(self, cut_counts: bool) -> Self {
        Self { cut_counts, ..self }
    }

    /// The outcome of a job whose handler a stop interrupted.
    pub(crate) fn cut(&self) -> Ending {
        match self.cut_counts {
            true => Ending::Retry {
                after: Duration::ZERO,
                reason: "the process stopped".to_owned(),
            },
            false => Ending::HandBack,
        }
    }

    pub(crate) fn renewed(&self, asked_at: Instant, lease: Duration) {
        let good_for = asked_at.saturating_duration_since(self.claimed_at) + lease;
        self.good_for_ms
            .store(good_for.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn has_run_out(&self) -> bool {
        self.claimed_at.elapsed().as_millis() as u64 >= self.good_for_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.remaining.load(Ordering::Acquire) == 0
    }

    pub(crate) fn ended(&self, index: usize) {
        self.slots[index].set_stage(Stage::Ended);
        if let Ok(mut callbacks) = self.slots[index].callbacks.lock() {
            callbacks.clear();
        }
        self.remaining.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether its lease is left to run out.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// The end of this job cannot be written: it is rescued once the lease has run out.
    pub(crate) fn leave(&self, index: usize) {
        self.is_left.store(true, Ordering::Release);
        self.ended(index);
    }

    pub(crate) fn lose_all(&self) {
        for slot in &self.slots {
            slot.end(false);
        }
    }
}

impl Slot {
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    pub(crate) fn is_at(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Acquire) == stage as u8
    }

    /// Notifies the handler to end. The first reason stands.
    pub(crate) fn end(&self, cancelled: bool) {
        let fate = if cancelled { CANCELLED } else { LOST };
        if self.stage.load(Ordering::Acquire) >= Stage::Finished as u8 {
            return;
        }
        let first = self
            .fate
            .compare_exchange(GOES_ON, fate, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            return;
        }
        let callbacks = std::mem::take(
            &mut *self
                .callbacks
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for callback in callbacks {
            // A callback that panics must not take the thread that renews everybody's lease with it.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback));
        }
    }
}

/// Says whether a job should continue. It may be kept, and used from any thread.
#[derive(Clone)]
pub struct CancelToken {
    batch: Arc<Batch>,
    index: usize,
}

impl CancelToken {
    pub(crate) fn new(batch: Arc<Batch>, index: usize) -> Self {
        Self { batch, index }
    }

    fn slot(&self) -> &Slot {
        &self.batch.slots[self.index]
    }

    /// The job was cancelled, handed back, or is under another lease: its handler cannot complete
    /// it any more. A lease that was not renewed in time, because the database is unreachable, may
    /// still be valid, and does not count as lost until the database says so.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.slot().fate.load(Ordering::Acquire) != GOES_ON
    }

    /// Whether the job must not start: it is lost, or may be, because its lease was not renewed in
    /// time.
    pub(crate) fn is_too_late_to_begin(&self) -> bool {
        self.lost() || self.batch.has_run_out()
    }

    /// The job was cancelled while it ran.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.slot().fate.load(Ordering::Acquire) == CANCELLED
    }

    /// Calls `callback` once when the job is cancelled or lost, or immediately if it is already: to
    /// interrupt a blocked read. It runs on a thread of the runner or of the code that reported the
    /// cancel, so keep it short.
    pub fn on_lost(&self, callback: impl FnOnce() + Send + 'static) {
        let mut callbacks = self
            .slot()
            .callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.slot().fate.load(Ordering::Acquire) == GOES_ON {
            callbacks.push(Box::new(callback));
            return;
        }
        drop(callbacks);
        callback();
    }
}
