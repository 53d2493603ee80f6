//! Claims a run, loads it, and writes the row of its next step or its end, in one transaction; the
//! first time of a turn in one statement. A step whose wait was over before the claim ends in it.

use super::compose::{Composer, add_done, add_end, first_step, if_not_cancelled, lost_attempt};
use super::plan::{self, Plan, failed};
use super::publish::{announce, makes_others_due};
use super::state::{JobEnd, State};
use crate::error::{Code, Error, Result};
use crate::failure::{Authored, Failure};
use crate::runtime::counts::CountedCall;
use crate::runtime::job::Advance;
use crate::runtime::program::Program;
use crate::runtime::progress::events::Event;
use crate::runtime::report_ends;
use crate::runtime::services::Services;
use crate::runtime::steps;
use crate::runtime::steps::attempt::{self, Performed};
use crate::runtime::steps::kind::has_lost_span;
use crate::runtime::turn::definition::AGENT_TURN;
use crate::store::Tx;
use crate::store::retry::retry_while_away;
use crate::store::runs::{self, End, EndedRun, HeldJob, Outcome, StepCommit};
use crate::store::steps::{Begun, StepKind, end_of_step_under_way};
use crate::traces::Span;
use jobs::Claimed;
use std::time::Duration;
use time::OffsetDateTime;

/// What a claim came to.
pub(super) enum ClaimOutcome {
    /// There is nothing to perform.
    Done(JobEnd),
    /// This attempt is to be performed. Its row is written.
    Begun(Box<State>, Begun),
    /// The run ends with this commit, once the many runs below it have ended. Nothing is written but the claim.
    Ends(Box<State>, Box<StepCommit>),
}

/// Claims a run.
///
/// # Errors
/// The database's; internal, when it holds what cannot be read; `conflict`, when the job is another's.
pub(super) fn claim(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    job: &Advance,
) -> Result<ClaimOutcome> {
    let now = services.clock.now();
    // Only a turn's first step is known before anything is read.
    if claimed.attempt() == 1
        && job.agent_id.is_some()
        && let Some((state, begun)) = claim_first(services, claimed, job, now)?
    {
        return Ok(ClaimOutcome::Begun(Box::new(state), begun));
    }
    let mut tried = None;
    let confirmed = services.store.transact(|tx| {
        tried = Some(claim_in(tx, services, claimed, job, now)?);
        Ok(())
    });
    let (taken, wrote) = match (confirmed, tried) {
        (Ok(()), Some(tried)) => tried,
        (Err(error), Some(tried)) if was_written(services, claimed, &tried, &error)? => tried,
        (Err(error), _) => return Err(error),
        (Ok(()), None) => return Err(Error::internal("a claim was written that was not made")),
    };
    report(services, log, job, &wrote);
    match taken {
        ClaimOutcome::Begun(mut state, begun) => {
            let events = state.committed(&wrote.commit, now);
            services.feed.events(job.run_id, events);
            Ok(ClaimOutcome::Begun(state, begun))
        }
        ClaimOutcome::Ends(..) => Ok(taken),
        ClaimOutcome::Done(end) => {
            services.faults.forget(job.run_id);
            services.feed.changed(job.run_id);
            Ok(ClaimOutcome::Done(end))
        }
    }
}

/// Whether a claim that begins a step was written, though its commit was not confirmed. The next claim could not tell that the
/// step's call was never made, and would not make it.
fn was_written(
    services: &Services,
    claimed: &Claimed,
    (taken, wrote): &(ClaimOutcome, Wrote),
    error: &Error,
) -> Result<bool> {
    match taken {
        ClaimOutcome::Begun(state, _)
            if error.code() == Code::DatabaseUnavailable && wrote.commit.begun.is_some() =>
        {
            retry_while_away(
                || claimed.lost(),
                |_| runs::is_claimed(&mut services.store.session()?, &state.held.lease),
            )
        }
        _ => Ok(false),
    }
}

/// Claims a run that nobody has claimed before, where one statement suffices.
fn claim_first(
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    now: OffsetDateTime,
) -> Result<Option<(State, Begun)>> {
    let ids = (job.tenant_id, job.run_id);
    let mut session = services.store.session()?;
    let begun = Program::begin(&mut session, ids, job_of(claimed), &first_step(), now)?;
    drop(session);
    let Some((run, held, loaded)) = begun else {
        return Ok(None);
    };
    let mut state = State::new((run, job), held, loaded, now);
    let planned = plan::first(&state, now);
    let commit = Composer::new(services).first_commit(&state, &planned)?;
    let Plan::Begin { begun, .. } = planned.plan else {
        return Err(Error::internal("a turn has no first step"));
    };
    let events = state.committed(&commit, now);
    services.feed.events(job.run_id, events);
    Ok(Some((state, begun)))
}

fn claim_in(
    tx: &mut Tx<'_>,
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    now: OffsetDateTime,
) -> Result<(ClaimOutcome, Wrote)> {
    let ids = (job.tenant_id, job.run_id);
    let Some((run, held)) = runs::claim(tx, ids, job_of(claimed), now)? else {
        return Ok((ClaimOutcome::Done(JobEnd::Finished), Wrote::default()));
    };
    let loaded = match Program::load(tx, services.programs(), (&run, &held)) {
        // Its definition is beyond a bound that it was not when it was stored.
        Err(error) if error.code() == Code::Conflict => Err(Failure::quoting(
            error.message(),
            "The definition of the flow is beyond a bound of this version of the service.",
        )),
        loaded => loaded?.ok_or_else(|| why_not_loaded(&run)),
    };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => {
            let wrote = end_without_program(tx, services, (&held, &run), failure, now)?;
            return Ok((ClaimOutcome::Done(JobEnd::Committed), wrote));
        }
    };
    let state = State::new((run, job), held, loaded, now);
    let planned = plan::first(&state, now);
    let count = |of, most| runs::count(tx, of, most);
    let planned = plan::within_bounds(services, &state, planned, count)?;
    let commit = Composer::new(services).first_commit(&state, &planned)?;
    let taken = match planned.plan {
        Plan::Resume(begun) => return resume(tx, services, claimed, (state, begun), now),
        Plan::End(_) if runs::has_many_below(tx, &state.held)? => {
            let taken = ClaimOutcome::Ends(Box::new(state), Box::new(commit));
            return Ok((taken, Wrote::default()));
        }
        Plan::End(_) => None,
        Plan::Begin { begun, .. } => Some(begun),
    };
    let mut wrote = write(tx, services, (&state.held, &state.run), commit, now)?;
    wrote.note_lost(&state, now);
    Ok(match taken {
        Some(begun) => (ClaimOutcome::Begun(Box::new(state), begun), wrote),
        None => (ClaimOutcome::Done(JobEnd::Committed), wrote),
    })
}

/// Why the program of a run is not there. A version's own model cannot be removed, so of a turn it is the one that the run sets.
fn why_not_loaded(run: &runs::Run) -> Failure {
    if run.flow_id == AGENT_TURN {
        return Failure::of(&[
            &"The model that the run sets in place of its version's was removed from its provider. Start a run with another one.",
        ]);
    }
    let flow = Authored(&run.flow_id);
    Failure::of(&[
        &"This version of the service cannot run the flow ",
        &flow,
        &".",
    ])
}

/// Goes on with an attempt whose row is written. If what it waits for has come, its end is written here, with what comes next.
fn resume(
    tx: &mut Tx<'_>,
    services: &Services,
    claimed: &Claimed,
    (mut state, begun): (State, Begun),
    now: OffsetDateTime,
) -> Result<(ClaimOutcome, Wrote)> {
    let performed = match claimed.stopping() {
        // The next step is another's.
        true => None,
        false => steps::done_while_parked(tx, (&state.run, &state.held.lease), &begun)?,
    };
    let Some(performed) = performed else {
        let taken = ClaimOutcome::Begun(Box::new(state), begun);
        return Ok((taken, Wrote::default()));
    };
    let duration = state.last_duration(now);
    let span = state.span_of(services, &begun, &performed);
    let Performed {
        events,
        outcome: attempt::Outcome::Done { result, answer },
        ..
    } = performed
    else {
        return Err(Error::internal("a step that is over is not done"));
    };
    let commit = StepCommit {
        events: events.iter().map(Event::row).collect(),
        ..StepCommit::default()
    };
    let commit = add_done(&mut state, &begun, commit, (result, answer));
    let planned = plan::plan(&state, now);
    let count = |of, most| runs::count(tx, of, most);
    let planned = plan::within_bounds(services, &state, planned, count)?;
    let commit = Composer::new(services).add_plan(&state, &planned, commit)?;
    let mut wrote = write(tx, services, (&state.held, &state.run), commit, now)?;
    wrote.span = span;
    wrote.ended_step = Some((begun.kind, duration));
    let taken = match planned.plan {
        Plan::Begin { begun, .. } | Plan::Resume(begun) => {
            ClaimOutcome::Begun(Box::new(state), begun)
        }
        Plan::End(_) => ClaimOutcome::Done(JobEnd::Committed),
    };
    Ok((taken, wrote))
}

/// Writes in the transaction that claimed the run, so that nothing can have come between.
fn write(
    tx: &mut Tx<'_>,
    services: &Services,
    (held, run): (&runs::Held, &runs::Run),
    commit: StepCommit,
    now: OffsetDateTime,
) -> Result<Wrote> {
    let written = runs::commit_in(tx, held, &commit, now, |tx| {
        announce(services, run, &commit, tx)
    })?;
    match written.outcome {
        Outcome::Written => Ok(Wrote {
            ended: report_ends::of_commit(run, &commit, written, now),
            makes_others_due: makes_others_due((held, run), &commit),
            ..Wrote::from(commit)
        }),
        _ => Err(Error::internal("a run that was just claimed took no write")),
    }
}

/// What a claim wrote.
#[derive(Default)]
struct Wrote {
    commit: StepCommit,
    /// Runs that ended with it.
    ended: Vec<EndedRun>,
    /// The attempt that ended with it, or that was under way when the run's holder died.
    span: Option<Span>,
    /// The model call of an attempt that was lost so.
    lost_call: Option<CountedCall>,
    /// The kind of the step that ended with it, and how long that took.
    ended_step: Option<(StepKind, Duration)>,
    /// Jobs of other runs are due with it.
    makes_others_due: bool,
}

impl Wrote {
    /// Notes the attempt that was under way when the run's holder died. It is reported after the commit: a transaction that
    /// fails is done again.
    fn note_lost(&mut self, state: &State, now: OffsetDateTime) {
        let lost = lost_attempt(state).filter(|row| has_lost_span(row.kind));
        self.span = lost.map(|row| state.attempted(row, now).lost());
        let call = self.commit.call.as_ref();
        self.lost_call = call.map(|call| CountedCall::of(state.program.model(), call, None));
    }
}

/// Says what a claim has ended, and lets others go on with that.
fn report(services: &Services, log: &slog::Logger, job: &Advance, wrote: &Wrote) {
    if let Some(span) = &wrote.span {
        services.traces.record(span.clone());
    }
    if let Some(call) = &wrote.lost_call {
        services.counts.model_call(call);
    }
    if let Some((kind, duration)) = wrote.ended_step {
        services.counts.step(kind, duration);
        services.faults.forget(job.run_id);
    }
    if wrote.makes_others_due {
        services.wake_queue();
    }
    let own = (job.run_id, &job.trace());
    report_ends::report(services, log, Some(own), &wrote.ended);
}

impl From<StepCommit> for Wrote {
    fn from(commit: StepCommit) -> Self {
        Self {
            commit,
            ended: Vec::new(),
            span: None,
            lost_call: None,
            ended_step: None,
            makes_others_due: false,
        }
    }
}

fn job_of(claimed: &Claimed) -> HeldJob {
    HeldJob {
        job_id: claimed.id(),
        lease_id: claimed.lease_id(),
        attempts_before: attempts_before(claimed),
    }
}

/// Fails a run that was just claimed and whose program was not read, with the step that is under way.
fn end_without_program(
    tx: &mut Tx<'_>,
    services: &Services,
    (held, run): (&runs::Held, &runs::Run),
    failure: Failure,
    now: OffsetDateTime,
) -> Result<Wrote> {
    let commit = StepCommit {
        ended: end_of_step_under_way(tx, &held.lease)?,
        has_text: true,
        ..StepCommit::default()
    };
    let commit = add_end(run, commit, if_not_cancelled(run, failed(failure)));
    write(tx, services, (held, run), commit, now)
}

/// How often the run's job was claimed before; claims that were handed back do not count.
pub(super) fn attempts_before(claimed: &Claimed) -> i32 {
    i32::try_from(claimed.attempt().saturating_sub(1)).unwrap_or(i32::MAX)
}

/// Ends a run of which nothing may be read any more, since its holders died of it. Returns whether this failed it.
pub(super) fn end_unread(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    job: &Advance,
    failure: &Failure,
) -> Result<(JobEnd, bool)> {
    let now = services.clock.now();
    let (end, wrote) = services.store.transact(|tx| {
        let ids = (job.tenant_id, job.run_id);
        let Some((run, held)) = runs::claim(tx, ids, job_of(claimed), now)? else {
            return Ok((JobEnd::Finished, Wrote::default()));
        };
        let wrote = end_without_program(tx, services, (&held, &run), failure.clone(), now)?;
        Ok((JobEnd::Committed, wrote))
    })?;
    report(services, log, job, &wrote);
    services.feed.changed(job.run_id);
    let is_failed = matches!(wrote.commit.end, Some(End::Failed { .. }));
    Ok((end, is_failed))
}

/// Ends a run that the service cannot continue through a fault of its own. Its last step ends with it, if its
/// program can be read.
pub(super) fn give_up(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    job: &Advance,
) -> Result<JobEnd> {
    let (end, wrote) = match give_up_with(services, claimed, job, true) {
        Err(error) if error.code() == Code::Internal => {
            give_up_with(services, claimed, job, false)?
        }
        end => end?,
    };
    report(services, log, job, &wrote);
    services.faults.forget(job.run_id);
    services.feed.changed(job.run_id);
    Ok(end)
}

fn give_up_with(
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    is_loaded: bool,
) -> Result<(JobEnd, Wrote)> {
    let now = services.clock.now();
    services.store.transact(|tx| {
        let ids = (job.tenant_id, job.run_id);
        let Some((run, held)) = runs::claim(tx, ids, job_of(claimed), now)? else {
            return Ok((JobEnd::Finished, Wrote::default()));
        };
        let end = failed("The server met a fault of its own. Its log has the cause.");
        let end = if_not_cancelled(&run, end);
        let loaded = match is_loaded {
            true => Program::load(tx, services.programs(), (&run, &held))?,
            false => None,
        };
        let Some(loaded) = loaded else {
            let commit = add_end(&run, StepCommit::default(), end);
            let wrote = write(tx, services, (&held, &run), commit, now)?;
            return Ok((JobEnd::Committed, wrote));
        };
        let state = State::new((run, job), held, loaded, now);
        let commit = Composer::new(services).first_commit(&state, &Plan::End(end).into())?;
        let mut wrote = write(tx, services, (&state.held, &state.run), commit, now)?;
        wrote.note_lost(&state, now);
        Ok((JobEnd::Committed, wrote))
    })
}
