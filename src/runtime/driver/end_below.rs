//! Ends the many runs below one that is about to end, in batches, before it ends.
//!
//! A run with few runs below it ends with them in one transaction (`commit`).

use super::state::State;
use crate::error::Result;
use crate::runtime::report_ends;
use crate::runtime::services::Services;
use crate::store::runs::{self, End, StepCommit};

/// Ends the many runs below one that is about to end, in batches. False: `is_stopped` said so, and some are left.
pub(super) fn end_below(
    (services, log): (&Services, &slog::Logger),
    state: &State,
    commit: &StepCommit,
    is_stopped: impl Fn() -> bool,
) -> Result<bool> {
    let is_cancelled = commit.end == Some(End::Cancelled);
    while !is_stopped() {
        let now = services.clock.now();
        let batch = services
            .store
            .transact(|tx| runs::cancel_batch(tx, &state.held, is_cancelled, now))?;
        let Some(ended) = batch else {
            return Ok(true);
        };
        report_ends::report(services, log, None, &ended);
        for one in &ended {
            services.feed.changed(one.run.run_id);
        }
    }
    Ok(false)
}
