//! What the tables of runs need from time to time: partitions made ahead, old request keys and
//! left-over text deleted. Safe on every replica at once.

use crate::error::Result;
use crate::ids::Clock;
use crate::store::{Store, clock as database_clock, deltas, runs};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often. A month's partitions are made two months ahead.
const PERIOD: Duration = Duration::from_secs(3600);
/// How often it looks whether the clock has come to another month: one that was set far ahead, or
/// back, has no partitions there.
const LOOK: Duration = Duration::from_secs(1);
/// The wait after a round that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// How long a request's key is kept.
const KEY_AGE: time::Duration = time::Duration::hours(24);
/// Rows deleted in one statement.
const BATCH: u32 = 1000;
/// Statements in one round.
const BATCHES: usize = 1000;

/// The thread `runs-upkeep`. Ends when `stop` disconnects.
pub(super) fn repeat(store: &Store, clock: &Clock, log: &slog::Logger, stop: &Receiver<()>) {
    let mut next_round = Instant::now();
    let mut seen = None;
    let mut wait = Duration::ZERO;
    while stop.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = LOOK;
        let month = clock.month();
        if Instant::now() < next_round && seen == Some(month) {
            continue;
        }
        seen = Some(month);
        next_round = Instant::now() + PERIOD;
        if let Err(error) = round(store, clock) {
            next_round = Instant::now() + AFTER_FAILURE;
            slog::warn!(log, "Maintenance of the tables of runs failed; it will be tried again"; "error" => %error);
        }
    }
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
