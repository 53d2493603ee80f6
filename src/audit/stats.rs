//! The audit's metrics.

use super::decision::{Outcome, Stage};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Values for `/metrics`: counters since the start, and gauges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Decisions recorded, by stage and outcome.
    pub decided: Vec<(Stage, Outcome, u64)>,
    /// Decisions in the queue.
    pub queued: usize,
    /// Decisions in the batch that is being written.
    pub writing: usize,
    /// Decisions committed.
    pub rows_written: u64,
    /// Transactions committed.
    pub batches_written: u64,
    /// Decisions that the database refused.
    pub rows_refused: u64,
    /// Decisions that failed because they were not on disk in time.
    pub rows_late: u64,
    /// Decisions that found the queue full.
    pub rows_overflowed: u64,
    /// How long the last transaction took.
    pub last_commit: Duration,
    /// How long all transactions took.
    pub commits: Duration,
}

impl Default for Stats {
    /// The state before anything has happened.
    fn default() -> Self {
        Self {
            decided: Decided::default().all(),
            queued: 0,
            writing: 0,
            rows_written: 0,
            batches_written: 0,
            rows_refused: 0,
            rows_late: 0,
            rows_overflowed: 0,
            last_commit: Duration::ZERO,
            commits: Duration::ZERO,
        }
    }
}

/// What the writer is doing, for the watchdog.
#[derive(Default)]
pub(super) struct Turn(Mutex<At>);

#[derive(Default)]
struct At {
    since: Option<Instant>,
    has_ended: bool,
}

impl Turn {
    fn lock(&self) -> MutexGuard<'_, At> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer is idle, unless its thread has ended.
    pub(super) fn rest(&self) {
        let mut at = self.lock();
        at.since = at.since.filter(|_| at.has_ended);
    }

    /// The writer starts an attempt.
    pub(super) fn begin(&self) {
        self.lock().since = Some(Instant::now());
    }

    /// Whether the present attempt runs for longer than this.
    pub(super) fn is_longer_than(&self, time: Duration) -> bool {
        let since = self.lock().since;
        since.is_some_and(|since| since.elapsed() > time)
    }
}

/// A thread that ended, even by a panic, is not idle.
pub(super) struct Ending<'a>(pub(super) &'a Turn);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.begin();
        self.0.lock().has_ended = true;
    }
}

/// What the writer has done so far.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) turn: Turn,
    pub(super) rows: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) last_commit_us: AtomicU64,
    pub(super) commits_us: AtomicU64,
}

impl Counters {
    pub(super) fn took(&self, commit: Duration) {
        let took_us = u64::try_from(commit.as_micros()).unwrap_or(u64::MAX);
        self.last_commit_us.store(took_us, Ordering::Relaxed);
        self.commits_us.fetch_add(took_us, Ordering::Relaxed);
    }

    pub(super) fn committed(&self, rows: u64) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Decisions by stage and outcome.
#[derive(Default)]
pub(super) struct Decided([[AtomicU64; Outcome::ALL.len()]; Stage::ALL.len()]);

impl Decided {
    pub(super) fn count(&self, stage: Stage, outcome: Outcome) {
        if let Some(own) = self.of(stage, outcome) {
            own.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn all(&self) -> Vec<(Stage, Outcome, u64)> {
        let kinds = Stage::ALL
            .into_iter()
            .flat_map(|stage| Outcome::ALL.map(|outcome| (stage, outcome)));
        kinds
            .filter_map(|(stage, outcome)| {
                let own = self.of(stage, outcome)?;
                Some((stage, outcome, own.load(Ordering::Relaxed)))
            })
            .collect()
    }

    fn of(&self, stage: Stage, outcome: Outcome) -> Option<&AtomicU64> {
        self.0.get(stage as usize)?.get(outcome as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_stuck_in_an_attempt_or_when_it_has_ended_and_never_at_rest() {
        let turn = Turn::default();
        assert!(!turn.is_longer_than(Duration::ZERO));
        turn.begin();
        assert!(turn.is_longer_than(Duration::ZERO));
        assert!(!turn.is_longer_than(Duration::from_secs(60)));
        turn.rest();
        assert!(!turn.is_longer_than(Duration::ZERO));
        drop(Ending(&turn));
        assert!(turn.is_longer_than(Duration::ZERO));
    }

    #[test]
    fn each_stage_and_outcome_has_a_count_of_its_own() {
        let decided = Decided::default();
        let kinds = Stage::ALL
            .into_iter()
            .flat_map(|stage| Outcome::ALL.map(|outcome| (stage, outcome)));
        let mut expected = Vec::new();
        for (times, (stage, outcome)) in (1..).zip(kinds) {
            for _ in 0..times {
                decided.count(stage, outcome);
            }
            expected.push((stage, outcome, times));
        }
        assert_eq!(decided.all(), expected);
    }
}
