//! The driver carries a run on: claim → load → next → perform → commit, until the run ends or is
//! parked.
//!
//! 1. `claim`: loads the run and its program, and writes the row of the next step
//! 2. `plan`: decides what comes next, from the journal alone
//! 3. `steps`: performs the step
//! 4. `commit`: writes the result, with the row of the next step, a wait, or the run's end, and publishes it
//!
//! What 1 and 4 write is composed by `compose`, from what 2 and 3 say.
//!
//! 1 and 4 are one transaction each, and mostly one statement, so a step costs one commit. Every
//! write is fenced by the claim: if another worker has claimed the run, the write changes nothing,
//! and this thread stops (`fenced-run`).

mod claim;
mod commit;
mod compose;
mod deaths;
mod end_below;
mod plan;
mod publish;
mod state;

use super::active_runs::{ActiveRun, Reason};
use super::job::Advance;
use super::services::Services;
use super::steps;
use super::steps::attempt::Attempt;
use crate::error::{Code, Result};
use crate::store::steps::Begun;
use crate::store::working_for;
use crate::tools::Schemas;
use claim::{ClaimOutcome, claim, give_up};
use commit::{Committed, commit, end_after_those_below};
use jobs::Claimed;
use state::{JobEnd, State};
use std::time::Duration;

/// How long a run is left to replicas that read its state, before this one looks again.
const NEWER_PAUSE: Duration = Duration::from_secs(10);

/// The wait after a failure that this process outlived.
const AFTER_FAULT: jobs::Backoff = jobs::Backoff {
    first: Duration::from_millis(500),
    most: Duration::from_secs(15),
};

/// Which wait it is after a failure that is not the service's own, such as a database that is away: 2 s.
const FAULT_ELSEWHERE: u32 = 3;

/// How long a suspect waits for its turn before it asks again.
const TURN_PAUSE: Duration = Duration::from_secs(1);

/// Handles a job. A failure that this process outlives hands the job back: only a death or a panic leaves the claim counted.
pub(super) fn advance(services: &Services, claimed: &Claimed, job: &Advance) -> jobs::Outcome {
    let log = job.log(&services.log);
    let end = working_for(job.tenant_id, || carry_on(services, claimed, job, &log));
    match end {
        Ok(JobEnd::Committed) => jobs::Outcome::EndedByHandler,
        Ok(JobEnd::Finished) => jobs::Outcome::Done,
        Ok(JobEnd::Lost) => {
            slog::debug!(log, "The run is another's now");
            jobs::Outcome::retry("the run was lost to another claim")
        }
        Ok(JobEnd::Stopping) => jobs::Outcome::Snooze {
            after: Duration::ZERO,
        },
        Ok(JobEnd::Later) => jobs::Outcome::Snooze { after: TURN_PAUSE },
        Err(error) if error.code() == Code::Conflict => {
            slog::debug!(log, "The run's job is another's now");
            jobs::Outcome::retry(error.to_string())
        }
        Err(error) if error.code() == Code::NewerFormat => {
            slog::info!(
                log,
                "A later version of this program wrote the run's state: it is left to a replica that reads it"
            );
            jobs::Outcome::Snooze { after: NEWER_PAUSE }
        }
        Err(error) => {
            crate::warn_unless!(services.store.is_away(), log, "A run could not be continued; it will be tried again"; crate::log::ErrorValue(&error));
            let faults = services.faults.times(job.run_id);
            let wait = if faults == 0 { FAULT_ELSEWHERE } else { faults };
            jobs::Outcome::Snooze {
                after: AFTER_FAULT.after(wait),
            }
        }
    }
}

fn carry_on(
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    log: &slog::Logger,
) -> Result<JobEnd> {
    if services.faults.is_spent(job.run_id) {
        // Its end could not be written either. Until it can be, no model is asked again.
        return give_up((services, log), claimed, job);
    }
    if let Some(end) = deaths::look((services, log), claimed, job)? {
        return Ok(end);
    }
    match run(services, claimed, job, log) {
        Err(error) if error.code() == Code::Internal && services.faults.count_fault(job.run_id) => {
            // After so many failures another try will not succeed either, and each may cost a model call.
            slog::error!(log, "A run cannot be continued"; crate::log::ErrorValue(&error));
            give_up((services, log), claimed, job)
        }
        end => end,
    }
}

fn run(
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    log: &slog::Logger,
) -> Result<JobEnd> {
    let (mut state, begun) = match claim((services, log), claimed, job)? {
        ClaimOutcome::Done(end) => return Ok(end),
        ClaimOutcome::Begun(state, begun) => (state, begun),
        ClaimOutcome::Ends(mut state, commit) => {
            return end_after_those_below((services, log), claimed, &mut state, &commit);
        }
    };
    let active = services.active.add(state.held.lease, state.time_left());
    let interrupt = active.interrupt.clone();
    claimed.token().on_lost(move || interrupt.set(Reason::Lost));
    run_steps((services, log), claimed, &active, &mut state, begun)
}

fn run_steps(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    active: &ActiveRun<'_>,
    state: &mut State,
    mut begun: Begun,
) -> Result<JobEnd> {
    let mut clients = services
        .idle_clients
        .take(&services.outbound, &services.options);
    let mut schemas = Schemas::default();
    let end = loop {
        let mut attempt = Attempt {
            services,
            log,
            run: &state.run,
            lease: state.held.lease,
            database_ahead: state.held.database_ahead,
            trace: &state.trace,
            program: &state.program,
            interrupt: &active.interrupt,
            ends_by: state.ends_by,
            clients: &mut clients,
            schemas: &mut schemas,
        };
        let performed = steps::perform(&mut attempt, &state.journal, &begun)?;
        let span = state.span_of(services, &begun, &performed);
        let interrupted = active.interrupt.reason();
        if interrupted == Some(Reason::Lost) {
            break JobEnd::Lost;
        }
        let committed = commit(
            (services, log),
            claimed,
            state,
            &begun,
            performed,
            interrupted,
        )?;
        services.faults.forget(state.run.run_id);
        services.suspects.forget(state.run.run_id);
        if !matches!(committed, Committed::Done(JobEnd::Lost)) {
            span.into_iter()
                .for_each(|span| services.traces.record(span));
        }
        match committed {
            Committed::Next(next) => begun = next,
            Committed::Done(end) => break end,
        }
    };
    services.idle_clients.give_back(clients);
    Ok(end)
}
