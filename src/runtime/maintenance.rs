//! Maintenance of the tables of runs: makes partitions ahead, deletes old idempotency keys and
//! left-over text. Safe on every replica at once.

use crate::error::Result;
use crate::ids::Clock;
use crate::store::{Store, clock as database_clock, deltas, partitions, runs};
use crossbeam_channel::Receiver;

/// How long a request's key is kept.
const KEY_AGE: time::Duration = time::Duration::hours(24);
/// Rows deleted in one statement.
const BATCH: u32 = 1000;
/// Statements in one round.
const BATCHES: usize = 1000;

/// The thread `runs-upkeep`. Ends when `stop` disconnects.
pub(super) fn repeat(store: &Store, clock: &Clock, log: &slog::Logger, stop: &Receiver<()>) {
    partitions::keep(
        clock,
        stop,
        || round(store, clock),
        || {},
        |error| crate::warn_unless!(store.is_away(), log, "Maintenance of the tables of runs failed; it will be tried again"; crate::log::ErrorValue(error)),
    );
}

/// One round.
pub(super) fn round(store: &Store, clock: &Clock) -> Result<()> {
    let mut session = store.session()?;
    // Ids carry this clock's time, so it says which months there must be.
    runs::attach_partitions(&mut session, clock.now().date())?;
    let now = database_clock::earlier(&mut session, clock)?;
    for _ in 0..BATCHES {
        if runs::forget_keys(&mut session, now - KEY_AGE, i64::from(BATCH))? < u64::from(BATCH) {
            break;
        }
    }
    for _ in 0..BATCHES {
        if deltas::sweep(&mut session, i64::from(BATCH))? == 0 {
            break;
        }
    }
    Ok(())
}
