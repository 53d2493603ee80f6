//! Commits the result of an attempt together with what follows from it: the next step's row, a
//! wait, or the run's end with its job. One commit a step.

use super::end_below::end_below;
use super::recover::{self, Plan, Planned, failed};
use super::state::{JobEnd, State};
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::ids::rfc3339;
use crate::runtime::active_runs::Reason;
use crate::runtime::ends;
use crate::runtime::flow;
use crate::runtime::job::{Advance, CHILD_JOB, StartedBy};
use crate::runtime::journal::call::StepFailure;
use crate::runtime::journal::decision::ChildRun;
use crate::runtime::journal::wait::{self, ChildrenRequest, REFUSED};
use crate::runtime::progress::events::{Event, StepAnswer};
use crate::runtime::services::Services;
use crate::runtime::steps;
use crate::runtime::steps::attempt::{Outcome, Performed};
use crate::runtime::steps::kind::{UNKNOWN, unanswered};
use crate::runtime::steps::outcome::outcome;
use crate::store::Tx;
use crate::store::approvals::Opening;
use crate::store::retry::retry_while_away;
use crate::store::runs::{
    self, ConversationTurn, End, Held, NewChild, Origin, Refusal, Run, StepCommit, Wait, WaitingFor,
};
use crate::store::steps::{Begun, Ended, StepOutcome, StepStatus};
use jobs::Claimed;
use serde_json::{Value, json};
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
        events: performed.events.iter().map(Event::row).collect(),
        ended: Some(ended(begun, StepStatus::Failed, None, begun.failures)),
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

/// Adds what comes next.
///
/// # Errors
/// Internal.
pub(super) fn add_plan(
    services: &Services,
    state: &State,
    planned: &Planned,
    mut commit: StepCommit,
) -> Result<StepCommit> {
    commit.events.extend(planned.events.iter().map(Event::row));
    match &planned.plan {
        Plan::Begin {
            begun,
            children,
            asked,
            flow_state,
            ..
        } => {
            let step = steps::step_ref(&state.journal, begun);
            commit.events.push(Event::StepStarted(step).row());
            // A dry run asks nobody.
            for asked in asked.iter().filter(|_| !state.run.dry_run) {
                let opening = Opening {
                    approval_id: services.clock.new_id(),
                    step: asked.step,
                    path: asked.path.clone(),
                    new: asked.new.clone(),
                    needs_role: services.options.reviewers_need_roles,
                };
                let requested = Event::requested(&opening, asked.call_id.as_deref());
                commit.events.push(requested.row());
                commit.approvals.push(opening);
            }
            commit.begun = Some(begun.clone());
            commit.flow_state = flow_state.as_deref().cloned();
            if !children.is_empty() {
                add_children(services, state, begun, &mut commit, (None, children))?;
            }
            Ok(commit)
        }
        Plan::Resume(_) => Ok(commit),
        Plan::End(end) => Ok(add_end(&state.run, commit, end.clone())),
    }
}

/// Adds the run's end, with the event that says so.
pub(super) fn add_end(run: &Run, mut commit: StepCommit, end: End) -> StepCommit {
    commit.events.push(Event::ended(&end, &run.labels).row());
    if let End::Failed {
        error: Some(error), ..
    } = &end
        && run.parent.is_some()
    {
        commit.flow_error = Some(error.clone());
    }
    commit.end = Some(end);
    commit
}

/// Emits the webhook events of a run's end or of its approvals, last in the transaction that writes it: an endpoint's row may be
/// held from here to the commit.
pub(super) fn announce(
    services: &Services,
    run: &Run,
    commit: &StepCommit,
    tx: &mut Tx<'_>,
) -> Result<()> {
    let webhooks = &services.webhooks;
    if commit.end.is_some() {
        return webhooks.run_finished(tx, run.tenant_id, run.run_id);
    }
    let mut opened = commit.approvals.iter();
    opened
        .try_for_each(|opening| webhooks.approval_requested(tx, run.tenant_id, opening.approval_id))
}

/// Adds child runs that begin: from a slot on, or from the first one of their step.
fn add_children(
    services: &Services,
    state: &State,
    begun: &Begun,
    commit: &mut StepCommit,
    (first_slot, children): (Option<i32>, &[ChildRun]),
) -> Result<()> {
    let request: ChildrenRequest =
        serde_json::from_value(begun.request.clone()).map_err(Error::internal)?;
    let first_slot = first_slot.unwrap_or(request.first_slot);
    let children = new_children(services, state, begun, (first_slot, children))?;
    if state.program.writes_child_events() {
        let started = children.iter().map(|child| Event::ChildStarted {
            step: begun.step,
            path: begun.path.clone(),
            index: request.index(child.slot),
            run_id: child.run_id,
            flow_id: child.flow_id.clone(),
        });
        commit.events.extend(started.map(|event| event.row()));
    }
    commit.children = Some((children, CHILD_JOB));
    Ok(())
}

/// The rows of child runs. Whoever created the parent created them.
fn new_children(
    services: &Services,
    state: &State,
    begun: &Begun,
    (first_slot, children): (i32, &[ChildRun]),
) -> Result<Vec<NewChild>> {
    let parent = &state.run;
    let attempt = state.trace.of_attempt(begun.step, begun.attempt);
    (first_slot..)
        .zip(children)
        .map(|(slot, child)| {
            let job = Advance {
                tenant_id: parent.tenant_id,
                run_id: services.clock.new_id(),
                project_id: parent.project_id,
                agent_id: child.agent.as_ref().map(|agent| agent.id),
                started_by: StartedBy {
                    traceparent: attempt.traceparent(),
                    ..state.started_by.clone()
                },
            };
            Ok(NewChild {
                run_id: job.run_id,
                slot,
                path: begun.path.clone(),
                parent_step: Some(begun.step),
                branch: child.branch.clone(),
                flow_id: child.flow_id.clone(),
                flow_version: child.flow_version.clone(),
                agent: child.agent.clone(),
                turn: turn_of(parent, child),
                input: child.input.clone(),
                first: created(parent, child).row(),
                job_payload: job.payload()?,
            })
        })
        .collect()
}

/// Of a child that is a turn in a conversation: what it says there, and how it fails if it cannot.
fn turn_of(parent: &Run, child: &ChildRun) -> Option<ConversationTurn> {
    let conversation_id = child.agent.as_ref()?.conversation_id?;
    let [busy, gone] = flow::refusals(conversation_id).map(|end| Refusal {
        event: Event::ended(&end, &parent.labels).row(),
        end,
    });
    Some(ConversationTurn {
        message: child.input["message"].as_str()?.to_owned(),
        busy,
        gone,
    })
}

fn created(parent: &Run, child: &ChildRun) -> Event {
    Event::RunCreated {
        flow_id: child.flow_id.clone(),
        flow_version: child.flow_version.clone(),
        origin: Origin::Run,
        dry_run: parent.dry_run,
        agent: child.agent.clone(),
        labels: parent.labels.clone(),
    }
}

fn ended(begun: &Begun, status: StepStatus, result: Option<Value>, failures: i32) -> Ended {
    Ended {
        step: begun.step,
        status,
        result,
        failures,
    }
}

/// Whether a commit makes jobs of other runs due: of children that begin, of a parent that waits, of children that are cancelled.
pub(super) fn makes_others_due((held, run): (&Held, &Run), commit: &StepCommit) -> bool {
    let is_alone = run.parent.is_none() && !held.has_children;
    commit.children.is_some() || commit.end.is_some() && !is_alone
}

/// Adds that the step of the journal's last row is done. What comes next is to be planned after it.
pub(super) fn add_done(
    state: &mut State,
    begun: &Begun,
    mut commit: StepCommit,
    (result, answer): (Value, StepAnswer),
) -> StepCommit {
    let step = steps::step_ref(&state.journal, begun);
    if let StepAnswer::Simulated { .. } = answer {
        let not_sent = steps::not_sent(&state.journal, begun);
        let simulated = Event::simulated(step.clone(), not_sent);
        commit.events.push(simulated.row());
    }
    let completed = Event::StepCompleted {
        step,
        outcome: outcome(begun.kind, StepStatus::Completed, Some(&result)),
        answer,
    };
    commit.events.push(completed.row());
    state.complete(result.clone());
    commit.ended = Some(ended(
        begun,
        StepStatus::Completed,
        Some(result),
        begun.failures,
    ));
    commit
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
        let planned = recover::plan(self.state, now);
        let count = |of, most| runs::count(&mut self.services.store.session()?, of, most);
        let planned = recover::within_bounds(self.services, self.state, planned, count)?;
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
        let whole = add_plan(self.services, self.state, &planned, commit.clone())?;
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
        commit.ended = Some(ended(begun, StepStatus::Failed, None, failures));
        let failed_event = Event::StepFailed {
            step: steps::step_ref(&self.state.journal, begun),
            reason: failure.message.clone(),
            outcome: Some(match is_unknown {
                true => StepOutcome::Unknown,
                false => StepOutcome::Failed,
            }),
            will_retry: retry_at.is_some(),
        };
        commit.events.push(failed_event.row());
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
            commit.ended = Some(ended(begun, StepStatus::Failed, Some(failure), failures));
            return self.go_on(commit, now);
        };
        let mut whole = commit.clone();
        let waiting = Event::RunWaiting {
            waiting_for: Some(WaitingFor::Retry),
            reason: Some(failure.message),
            retry_at: Some(rfc3339::text(retry_at)),
            wake_at: None,
            step: Some(begun.step),
            attempt: Some(begun.attempt),
        };
        whole.events.push(waiting.row());
        whole.wait = Some(wait::retry(retry_at));
        self.write(&whole, commit, now, Committed::Done(JobEnd::Committed))
    }

    /// The step's child runs may not begin, which the run's program handles.
    fn refused(&mut self, mut commit: StepCommit, why: String) -> Result<Committed> {
        let (begun, now) = (self.begun, self.services.clock.now());
        let failed = Event::StepFailed {
            step: steps::step_ref(&self.state.journal, begun),
            reason: why.clone(),
            outcome: Some(StepOutcome::Failed),
            will_retry: false,
        };
        commit.events.push(failed.row());
        let failure = json!(StepFailure {
            reason: why,
            is_unknown: false,
            status: Some(REFUSED),
        });
        self.state.fail(failure.clone());
        let failures = begun.failures + 1;
        commit.ended = Some(ended(begun, StepStatus::Failed, Some(failure), failures));
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
            let failed = Event::StepFailed {
                step: steps::step_ref(&self.state.journal, begun),
                reason: unknown.reason.clone(),
                outcome: Some(StepOutcome::Unknown),
                will_retry: false,
            };
            commit.events.push(failed.row());
            let result = Some(json!(unknown));
            commit.ended = Some(ended(begun, StepStatus::Failed, result, begun.failures));
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
        let is_timer = wait.on == WaitingFor::Timer;
        let waiting = Event::RunWaiting {
            waiting_for: Some(wait.on),
            reason: None,
            retry_at: None,
            wake_at: is_timer.then(|| rfc3339::text(wait.until)),
            step: Some(self.begun.step),
            attempt: Some(self.begun.attempt),
        };
        let mut whole = StepCommit {
            ended: None,
            wait: Some(wait),
            ..commit.clone()
        };
        if !children.is_empty() {
            let next = (Some(first_slot), children.as_slice());
            add_children(self.services, self.state, self.begun, &mut whole, next)?;
        }
        whole.events.push(waiting.row());
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
        let (outcome, is_overtaken) = self.persist(&whole, now)?;
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
        let (outcome, is_overtaken) = self.persist(whole, now)?;
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

    /// Writes a commit, again while the database is away, so that its absence costs no finished step. It goes on
    /// after the job's lease should have run out: the write is good as long as nobody else has claimed the run, and
    /// afterwards the fence refuses it. The store recognises a commit that an earlier try wrote. Says too whether others
    /// wrote events of the run meanwhile.
    fn persist(
        &mut self,
        commit: &StepCommit,
        now: OffsetDateTime,
    ) -> Result<(runs::Outcome, bool)> {
        let (services, run) = (self.services, &self.state.run);
        let announce = |tx: &mut Tx<'_>| announce(services, run, commit, tx);
        let announce: &dyn Fn(&mut Tx<'_>) -> Result<()> = &announce;
        let announce = services.webhooks.is_on().then_some(announce);
        let written = retry_while_away(
            || self.claimed.lost(),
            |_| runs::commit(&services.store, &self.state.held, commit, now, announce),
        )?;
        let (outcome, beside) = (written.outcome, written.events_beside);
        if outcome == runs::Outcome::Written {
            services.counts.cost(written.cost_usd);
            let ended = ends::of_commit(run, commit, written, now);
            let own = (run.run_id, &self.state.trace);
            ends::report(services, self.log, Some(own), &ended);
        }
        self.state.held.events_written += beside;
        Ok((outcome, beside > 0))
    }
}
