//! The audit's figures for `/metrics`.

use super::decision::{Outcome, Stage};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// What the writer has done.
#[derive(Default)]
pub(super) struct Counters {
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
