//! How often a run met a fault of the service's own in this process since it last moved: when it was taken
//! up, or when a step was to be written.
//!
//! The attempts of its job do not say that: they count leases that ran out, and times at which the
//! database was away, and neither is a reason to give a run up.
//!
//! Not here: giving up (`turn`). Another replica counts for itself, and so does this one after a start.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// How many times in a row, until the run is given up.
const MOST: u32 = 5;

/// Runs that are kept count of, at most. With more, all begin anew.
const RUNS: usize = 10_000;

/// The runs that met such a fault the last time.
#[derive(Default)]
pub(super) struct Patience(Mutex<HashMap<Uuid, u32>>);

impl Patience {
    /// Counts one more such fault. Whether the run is to be given up.
    pub(super) fn is_over(&self, run_id: Uuid) -> bool {
        let mut faults = self.lock();
        if faults.len() >= RUNS && !faults.contains_key(&run_id) {
            faults.clear();
        }
        let times = faults.entry(run_id).or_default();
        *times += 1;
        *times >= MOST
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
        let patience = Patience::default();
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let said: Vec<bool> = (0..MOST).map(|_| patience.is_over(one)).collect();
        assert_eq!(said, [false, false, false, false, true]);
        assert!(!patience.is_over(other));
        patience.forget(one);
        assert!(!patience.is_over(one));
    }

    #[test]
    fn no_more_runs_are_kept_than_there_is_room_for() {
        let patience = Patience::default();
        for number in 0..RUNS + 10 {
            patience.is_over(Uuid::from_u128(number as u128));
        }
        assert_eq!(patience.lock().len(), 10);
    }
}
