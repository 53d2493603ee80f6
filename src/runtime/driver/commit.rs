//! Commits what an attempt came to, with what follows from it, and publishes it: one commit a step. A run that ends after the many
//! runs below it is committed here too.
//!
//! Not here: what is written (`compose`), and the commit of a claim, which is written in its transaction (`claim`).

use super::compose::{
    Composer, FailedStep, add_done, add_end, add_failed, ended_without, unknown_outcome,
    waits_for_retry,
};
use super::end_below::end_below;
use super::plan::{self, Plan, failed};
use super::publish::{announce, makes_others_due};
use super::state::{JobEnd, State};
use crate::error::Result;
use crate::failure::Failure;
use crate::runtime::active_runs::Reason;
use crate::runtime::journal::call::StepFailure;
use crate::runtime::journal::decision::ChildRun;
use crate::runtime::journal::wait::{self, REFUSED};
use crate::runtime::progress::events::Event;
use crate::runtime::report_ends;
use crate::runtime::services::Services;
use crate::runtime::steps;
use crate::runtime::steps::attempt::{Outcome, Performed};
use crate::runtime::steps::kind::{UNKNOWN, unanswered};
use crate::store::Tx;
use crate::store::retry::retry_while_away;
use crate::store::runs::{self, End, StepCommit, Wait};
use crate::store::steps::{Begun, Ended, StepOutcome};
use jobs::Claimed;
use serde_json::json;
use std::time::Duration;
use time::OffsetDateTime;

/// What a commit came to.
pub(super) enum Committed {
    /// This attempt is to be performed. Its row is written.
    Next(Begun),
    /// The run has ended, waits, or is another's.
    Done(JobEnd),
}

/// Writes what an attempt came to.
///
/// # Errors
/// The database's; `conflict`, when the job is another's.
pub(super) fn commit(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    state: &mut State,
    begun: &Begun,
    performed: Performed,
    interrupted: Option<Reason>,
) -> Result<Committed> {
    let run_id = state.run.run_id;
    let commit = StepCommit {
        call: performed.call,
        has_text: performed.has_text,
        taken: performed.taken,
        checks: performed.checks,
        events: performed.events.iter().map(Event::row).collect(),
        ended: Some(ended_without(begun, begun.failures)),
        ..StepCommit::default()
    };
    if !matches!(performed.outcome, Outcome::Waits(_)) {
        let duration = state.last_duration(services.clock.now());
        services.counts.step(begun.kind, duration);
    }
    let mut writer = Writer {
        services,
        log,
        claimed,
        state,
        begun,
    };
    let committed = match performed.outcome {
        Outcome::Done { result, answer } => {
            let now = services.clock.now();
            let commit = add_done(writer.state, begun, commit, (result, answer));
            writer.go_on(commit, now)
        }
        Outcome::Failed {
            failure,
            retryable,
            retry_after,
            is_unknown,
        } => {
            let attempts = steps::attempts(begun.kind, &writer.state.program, &services.options);
            let wait = services
                .options
                .wait(begun.failures, attempts, retry_after)
                .filter(|_| retryable);
            writer.failed(commit, (failure, is_unknown), wait)
        }
        Outcome::Refused(why) => writer.refused(commit, why),
        Outcome::Waits(wait) => writer.park(commit, wait, performed.begins),
        Outcome::Interrupted => writer.interrupted(commit, interrupted),
    };
    if committed.is_err() {
        // It may have been written all the same.
        services.feed.changed(run_id);
    }
    committed
}

/// Writes about one attempt.
struct Writer<'a> {
    services: &'a Services,
    log: &'a slog::Logger,
    claimed: &'a Claimed,
    state: &'a mut State,
    begun: &'a Begun,
}

impl Writer<'_> {
    /// The step has ended, and what comes next begins with it.
    fn go_on(&mut self, commit: StepCommit, now: OffsetDateTime) -> Result<Committed> {
        let planned = plan::plan(self.state, now);
        let count = |of, most| runs::count(&mut self.services.store.session()?, of, most);
        let planned = plan::within_bounds(self.services, self.state, planned, count)?;
        let next = match &planned.plan {
            Plan::End(end) => {
                let mut commit = commit;
                commit.events.extend(planned.events.iter().map(Event::row));
                return self.end(commit, end.clone());
            }
            Plan::Begin { begun, .. } | Plan::Resume(begun) => begun.clone(),
        };
        if self.claimed.stopping() {
            return self.write(
                &commit.clone(),
                commit,
                now,
                Committed::Done(JobEnd::Stopping),
            );
        }
        let composer = Composer::new(self.services);
        let whole = composer.add_plan(self.state, &planned, commit.clone())?;
        self.write(&whole, commit, now, Committed::Next(next))
    }

    /// The step failed: the run waits for another attempt, its program handles that, or it ends.
    fn failed(
        &mut self,
        mut commit: StepCommit,
        (failure, is_unknown): (Failure, bool),
        wait: Option<Duration>,
    ) -> Result<Committed> {
        let (begun, now) = (self.begun, self.services.clock.now());
        let was_made = steps::was_made_before(begun, &self.state.program);
        let failure = unanswered(begun.kind, &begun.name, &failure, (is_unknown, was_made));
        let is_unknown = is_unknown || was_made;
        let failures = begun.failures + 1;
        let retry_at = wait
            .filter(|wait| *wait < self.state.time_left())
            .map(|wait| now + wait);
        let failed_step = FailedStep {
            reason: failure.message.clone(),
            outcome: match is_unknown {
                true => StepOutcome::Unknown,
                false => StepOutcome::Failed,
            },
            will_retry: retry_at.is_some(),
            result: None,
            failures,
        };
        add_failed(self.state, begun, &mut commit, failed_step);
        let Some(retry_at) = retry_at else {
            let failure = match failures {
                1 => failure,
                _ => failure.then(&[&"It was tried ", &failures, &" times."]),
            };
            if !self.state.program.is_flow() {
                return self.end(commit, failed(failure));
            }
            let failure = json!(StepFailure {
                reason: failure.message,
                is_unknown,
                status: Some(503),
            });
            self.state.fail(failure.clone());
            commit.ended = Some(Ended {
                result: Some(failure),
                ..ended_without(begun, failures)
            });
            return self.go_on(commit, now);
        };
        let wait = wait::retry(retry_at);
        let whole = waits_for_retry(begun, commit.clone(), (failure, wait));
        self.write(&whole, commit, now, Committed::Done(JobEnd::Committed))
    }

    /// The step's child runs may not begin, which the run's program handles.
    fn refused(&mut self, mut commit: StepCommit, why: String) -> Result<Committed> {
        let (begun, now) = (self.begun, self.services.clock.now());
        let failure = json!(StepFailure {
            reason: why.clone(),
            is_unknown: false,
            status: Some(REFUSED),
        });
        let failed_step = FailedStep {
            reason: why,
            outcome: StepOutcome::Failed,
            will_retry: false,
            result: Some(failure.clone()),
            failures: begun.failures + 1,
        };
        add_failed(self.state, begun, &mut commit, failed_step);
        self.state.fail(failure);
        self.go_on(commit, now)
    }

    /// The attempt was cut, and the run ends with it. The step says so if its call may have taken effect.
    fn interrupted(
        &mut self,
        mut commit: StepCommit,
        interrupted: Option<Reason>,
    ) -> Result<Committed> {
        let begun = self.begun;
        let mut failure = self.state.program.out_of_time();
        if let Some(unknown) = steps::interrupted(begun) {
            failure = failure.then(&[&UNKNOWN]);
            let failed_step = unknown_outcome(unknown, begun.failures);
            add_failed(self.state, begun, &mut commit, failed_step);
        }
        let end = match interrupted {
            Some(Reason::TimedOut) => failed(failure),
            _ => End::Cancelled,
        };
        self.end(commit, end)
    }

    /// The attempt is not done: the run is parked with it, and children of its step begin from a slot on. If what it waits for
    /// has come meanwhile, it goes on.
    fn park(
        &mut self,
        commit: StepCommit,
        wait: Wait,
        (first_slot, children): (i32, Vec<ChildRun>),
    ) -> Result<Committed> {
        let parked = (wait, first_slot, children.as_slice());
        let composer = Composer::new(self.services);
        let whole = composer.parked(self.state, self.begun, commit.clone(), parked)?;
        let now = self.services.clock.now();
        self.write(&whole, commit, now, Committed::Done(JobEnd::Committed))
    }

    /// Ends the run. A run that was asked to cancel ends so, whatever `end` says.
    fn end(&mut self, commit: StepCommit, end: End) -> Result<Committed> {
        let now = self.services.clock.now();
        let is_cancelled = end == End::Cancelled;
        let whole = add_end(&self.state.run, commit.clone(), end);
        if runs::has_many_below(&mut self.services.store.session()?, &self.state.held)? {
            let services = (self.services, self.log);
            end_below(services, self.state, &whole, || self.claimed.lost())?;
        }
        let services = (self.services, self.log);
        let Persisted {
            outcome,
            is_overtaken,
        } = persist(services, self.claimed, self.state, (&whole, now))?;
        match outcome {
            // The event of the cancel stands among the others, nobody here knows where.
            runs::Outcome::Written if is_cancelled => {
                self.services.feed.changed(self.state.run.run_id);
                self.wake_others(&whole);
                Ok(Committed::Done(JobEnd::Committed))
            }
            runs::Outcome::Written => {
                self.show(&whole, now, is_overtaken);
                Ok(Committed::Done(JobEnd::Committed))
            }
            runs::Outcome::CancelAsked if !is_cancelled => self.end(commit, End::Cancelled),
            _ => Ok(self.lost()),
        }
    }

    /// Writes `whole` and goes on with `then`. A run that was asked to cancel ends instead, with what `commit`
    /// says of the attempt.
    fn write(
        &mut self,
        whole: &StepCommit,
        commit: StepCommit,
        now: OffsetDateTime,
        then: Committed,
    ) -> Result<Committed> {
        let services = (self.services, self.log);
        let Persisted {
            outcome,
            is_overtaken,
        } = persist(services, self.claimed, self.state, (whole, now))?;
        match outcome {
            runs::Outcome::Written => {
                self.show(whole, now, is_overtaken);
                Ok(then)
            }
            runs::Outcome::NewsArrived => Ok(Committed::Next(self.begun.clone())),
            runs::Outcome::CancelAsked => self.end(commit, End::Cancelled),
            runs::Outcome::Lost => Ok(self.lost()),
        }
    }

    /// A commit is written. Of one that was overtaken nobody here knows the numbers of its events.
    fn show(&mut self, commit: &StepCommit, now: OffsetDateTime, is_overtaken: bool) {
        let events = self.state.committed(commit, now);
        let (feed, run_id) = (&self.services.feed, self.state.run.run_id);
        match is_overtaken {
            true => feed.changed(run_id),
            false => feed.events(run_id, events),
        }
        self.wake_others(commit);
    }

    /// Lets jobs of other runs that the commit made due begin at once.
    fn wake_others(&self, commit: &StepCommit) {
        if makes_others_due((&self.state.held, &self.state.run), commit) {
            self.services.wake_queue();
        }
    }

    fn lost(&self) -> Committed {
        self.services.feed.changed(self.state.run.run_id);
        Committed::Done(JobEnd::Lost)
    }
}

/// Writes a commit, again while the database is away, so that its absence costs no finished step. It goes on
/// after the job's lease should have run out: the write is good as long as nobody else has claimed the run, and
/// afterwards the fence refuses it. The store recognises a commit that an earlier try wrote. Reports the ends that it wrote, and counts the events
/// that others wrote meanwhile.
fn persist(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    state: &mut State,
    (commit, now): (&StepCommit, OffsetDateTime),
) -> Result<Persisted> {
    let run = &state.run;
    let announce = |tx: &mut Tx<'_>| announce(services, run, commit, tx);
    let announce: &dyn Fn(&mut Tx<'_>) -> Result<()> = &announce;
    let announce = services.webhooks.is_on().then_some(announce);
    let written = retry_while_away(
        || claimed.lost(),
        |_| runs::commit(&services.store, &state.held, commit, now, announce),
    )?;
    let (outcome, events_beside) = (written.outcome, written.events_beside);
    if outcome == runs::Outcome::Written {
        services.counts.cost(written.cost_usd);
        let ended = report_ends::of_commit(run, commit, written, now);
        let own = (run.run_id, &state.trace);
        report_ends::report(services, log, Some(own), &ended);
    }
    state.held.events_written += events_beside;
    Ok(Persisted {
        outcome,
        is_overtaken: events_beside > 0,
    })
}

/// What became of a commit, and whether others wrote events of the run meanwhile.
struct Persisted {
    outcome: runs::Outcome,
    is_overtaken: bool,
}

/// Ends a run that was just claimed, after the many runs below it. A stop leaves the rest to the next claim.
///
/// # Errors
/// As [`commit`].
pub(super) fn end_after_those_below(
    (services, log): (&Services, &slog::Logger),
    claimed: &Claimed,
    state: &mut State,
    commit: &StepCommit,
) -> Result<JobEnd> {
    let is_stopped = || claimed.stopping() || claimed.lost();
    if !end_below((services, log), state, commit, is_stopped)? {
        return Ok(JobEnd::Stopping);
    }
    let now = services.clock.now();
    let written = persist((services, log), claimed, state, (commit, now))?;
    let is_written = written.outcome == runs::Outcome::Written;
    if is_written {
        services.wake_queue();
    }
    services.feed.changed(state.run.run_id);
    Ok(match is_written {
        true => JobEnd::Committed,
        // Such as by a cancel that came meanwhile: the next claim finds it.
        false => JobEnd::Lost,
    })
}
