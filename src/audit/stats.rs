//! The audit's figures for `/metrics`.

use super::decision::{Outcome, Stage};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Figures for `/metrics`, since the start where they are not of this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Decisions taken, by what decided and how.
    pub decided: Vec<(Stage, Outcome, u64)>,
    /// Decisions that wait.
    pub queued: usize,
    /// Decisions that the writer has taken and that are not on disk yet.
    pub writing: usize,
    /// Decisions committed.
    pub rows_written: u64,
    /// Transactions committed.
    pub batches_written: u64,
    /// Decisions that the database refused.
    pub rows_refused: u64,
    /// Decisions that were given up because they were not on disk in time.
    pub rows_late: u64,
    /// Decisions that found the queue full.
    pub rows_overflowed: u64,
    /// How long the last transaction took.
    pub last_commit: Duration,
    /// How long all of them took.
    pub commits: Duration,
}

impl Default for Stats {
    /// Before anything has happened.
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

/// What the writer is at.
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

    /// It waits for something to do, unless its thread has ended.
    pub(super) fn rest(&self) {
        let mut at = self.lock();
        at.since = at.since.filter(|_| at.has_ended);
    }

    /// It begins one more attempt.
    pub(super) fn begin(&self) {
        self.lock().since = Some(Instant::now());
    }

    /// Whether it has been at one attempt for longer than this.
    pub(super) fn is_longer_than(&self, time: Duration) -> bool {
        let since = self.lock().since;
        since.is_some_and(|since| since.elapsed() > time)
    }
}

/// A thread that ends, by a panic too, is not at rest.
pub(super) struct Ending<'a>(pub(super) &'a Turn);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.begin();
        self.0.lock().has_ended = true;
    }
}

/// What the writer has done.
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

/// How many decisions each stage made, each way.
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
