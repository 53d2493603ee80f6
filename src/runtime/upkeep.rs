//! What the tables of runs need from time to time: partitions made ahead, old request keys and
//! left-over text deleted. Safe on every replica at once.

use super::Inner;
use crate::error::Result;
use crate::store::{deltas, runs};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often. A month's partitions are made two months ahead.
const PERIOD: Duration = Duration::from_secs(3600);
/// The wait after a round that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// How long a request's key is kept.
const KEY_AGE: time::Duration = time::Duration::hours(24);
/// Rows deleted in one statement.
const BATCH: u32 = 1000;
/// Statements in one round.
const BATCHES: usize = 1000;

/// The thread `runs-upkeep`. Ends when `stop` disconnects.
pub(super) fn keep_up(inner: &Inner, stop: &Receiver<()>) {
    let mut wait = Duration::ZERO;
    while stop.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = PERIOD;
        if let Err(error) = round(inner) {
            wait = AFTER_FAILURE;
            slog::warn!(inner.log, "The upkeep of the tables of runs failed; it will be tried again"; "error" => %error);
        }
    }
}

/// One round.
pub(super) fn round(inner: &Inner) -> Result<()> {
    let now = inner.clock.now();
    let mut session = inner.store.session()?;
    runs::attach_partitions(&mut session, now.date())?;
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
