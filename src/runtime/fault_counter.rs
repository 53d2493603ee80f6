//! Counts the internal faults of a run in this process since its last progress: when it was
//! claimed, or when a step was to be written.
//!
//! The attempts of its job cannot serve for that: they also count leases that ran out and times at
//! which the database was unreachable, and neither is a reason to fail a run.
//!
//! Not here: failing the run (`driver`). Each replica counts for itself, and starts again after a
//! restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// How many times in a row, until the run is given up.
const MOST: u32 = 5;

/// Runs that are kept count of, at most. With more, one of them begins anew.
const RUNS: usize = 10_000;

/// The runs that met such a fault the last time.
#[derive(Default)]
pub(super) struct FaultCounter(Mutex<HashMap<Uuid, u32>>);

impl FaultCounter {
    /// Counts one more such fault. Whether the run is to be given up.
    pub(super) fn count_fault(&self, run_id: Uuid) -> bool {
        let mut faults = self.lock();
        if faults.len() >= RUNS && !faults.contains_key(&run_id) {
            let any = faults.keys().next().copied();
            any.and_then(|any| faults.remove(&any));
        }
        let times = faults.entry(run_id).or_default();
        *times = times.saturating_add(1);
        *times >= MOST
    }

    /// How many there were in a row.
    pub(super) fn times(&self, run_id: Uuid) -> u32 {
        self.lock().get(&run_id).copied().unwrap_or_default()
    }

    /// Whether the run was to be given up already, which failed as well.
    pub(super) fn is_spent(&self, run_id: Uuid) -> bool {
        self.times(run_id) >= MOST
    }

    /// The run moved, or is given up.
    pub(super) fn forget(&self, run_id: Uuid) {
        self.lock().remove(&run_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_in_a_row_are_counted_for_each_run() {
        let counter = FaultCounter::default();
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let said: Vec<bool> = (0..MOST).map(|_| counter.count_fault(one)).collect();
        assert_eq!(said, [false, false, false, false, true]);
        assert!(counter.is_spent(one));
        assert!(!counter.count_fault(other));
        counter.forget(one);
        assert!(!counter.is_spent(one) && !counter.count_fault(one));
    }

    #[test]
    fn no_more_runs_are_kept_than_there_is_room_for() {
        let counter = FaultCounter::default();
        for number in 0..RUNS + 10 {
            counter.count_fault(Uuid::from_u128(number as u128));
        }
        assert_eq!(counter.lock().len(), RUNS);
    }
}
