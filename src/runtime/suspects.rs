//! The runs that may be what ends one process after the other: in each process they begin one at a time.
//!
//! Guarantees: a suspect is alone until it moves on, and at most for [`TURN`]. So a run that ends the process has taken no other
//! suspect with it, and the others move on in their turn.
//!
//! Not here: which runs are suspect (`driver::deaths`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a suspect is alone, unless it moves on before.
const TURN: Duration = Duration::from_secs(10);

/// The turn of the suspects of a process: the run that has it, and since when.
#[derive(Default)]
pub(super) struct Suspects(Mutex<Option<(Uuid, Instant)>>);

impl Suspects {
    /// Whether a suspect may begin now.
    pub(super) fn begins(&self, run_id: Uuid, now: Instant) -> bool {
        let mut turn = self.lock();
        let is_taken = turn.is_some_and(|(holder, since)| {
            holder != run_id && now.saturating_duration_since(since) < TURN
        });
        if !is_taken {
            *turn = Some((run_id, now));
        }
        !is_taken
    }

    /// The run moved on, so it is the next one's turn.
    pub(super) fn forget(&self, run_id: Uuid) {
        let mut turn = self.lock();
        if turn.is_some_and(|(holder, _)| holder == run_id) {
            *turn = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Uuid, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_begin_one_at_a_time() {
        let suspects = Suspects::default();
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let now = Instant::now();
        assert!(suspects.begins(one, now));
        assert!(!suspects.begins(other, now));
        assert!(suspects.begins(one, now), "it has the turn");
        suspects.forget(other);
        assert!(!suspects.begins(other, now), "it had no turn");
        suspects.forget(one);
        assert!(suspects.begins(other, now));
        assert!(!suspects.begins(one, now + TURN - Duration::from_millis(1)));
        assert!(suspects.begins(one, now + TURN));
    }
}
