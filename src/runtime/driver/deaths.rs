//! Runs whose holders die.
//!
//! A run that ends the process that takes it up would end every process, one after the other. So the deaths of a run's holders
//! are counted before anything of the run is read, and at the bound the run is failed unread.
//!
//! Guarantees:
//!
//! - What counts is in the database before a run is taken up: its job counts the claims that were not handed back. Each commit
//!   that ends a step or parks the run notes how many claims there had been before. The difference is the number of deaths in
//!   a row without progress in between.
//!
//! - A failure that the process outlives hands the job back, and so is none. A panic counts as a death.
//!
//! - Halfway to the bound a run is suspect, and begins alone: no other suspect begins until it has moved on, or for ten seconds.
//!   Runs that only happened to be in the process with the one that ends it move on in their turn, and are not failed with it.
//!
//! A claim without so many deaths before it costs nothing.

use super::claim::{attempts_before, end_unread};
use super::state::JobEnd;
use crate::error::Result;
use crate::failure::Failure;
use crate::runtime::job::Advance;
use crate::runtime::services::Services;
use crate::store::runs;
use jobs::Claimed;
use std::time::Instant;

/// Looks at the deaths of a run's holders before the run is taken up. `None`: it goes on.
pub(super) fn look(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    job: &Advance,
) -> Result<Option<JobEnd>> {
    let most = services.options.deaths_most;
    let before = attempts_before(claimed);
    if before < suspect_from(most) {
        return Ok(None);
    }
    let run = (job.tenant_id, job.run_id);
    let deaths = runs::deaths_in_a_row(&mut services.store.session()?, run, before)?;
    if deaths >= most {
        return end((services, log), claimed, job, deaths).map(Some);
    }
    if deaths < suspect_from(most) {
        return Ok(None);
    }
    if !services.suspects.begins(job.run_id, Instant::now()) {
        return Ok(Some(JobEnd::Later));
    }
    slog::warn!(log, "The processes that carried a run on died one after the other; it begins alone"; "deaths" => deaths);
    Ok(None)
}

fn suspect_from(most: i32) -> i32 {
    most / 2
}

fn end(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    job: &Advance,
    deaths: i32,
) -> Result<JobEnd> {
    let failure = Failure::of(&[
        &"The server died ",
        &deaths,
        &" times in a row while it carried this run on, and no step was done in between. So the run was ended \
          (SVC_MAX_RUN_DEATHS). The server's log may have the cause.",
    ]);
    let (end, is_failed) = end_unread((services, log), claimed, job, &failure)?;
    if is_failed {
        services.counts.run_given_up();
        slog::error!(log, "A run was ended, because the processes that carried it on died one after the other"; "deaths" => deaths);
    }
    Ok(end)
}
