//! Composes commits: what is to be written of a step that ended, with the step that begins after it, a wait, or the run's end.
//!
//! Guarantees: it reads the run as its holder knows it, and nothing else. New ids come from the clock. So what is composed is
//! written whole, or not at all, by whoever writes it: a claim in its transaction, or a commit (`commit`).
//!
//! Not here: what comes next (`plan`), and how a step ends (`steps`).

use super::plan::{self, Plan, Planned, begun_of};
use super::state::State;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::ids::{Clock, rfc3339};
use crate::runtime::flow;
use crate::runtime::job::{Advance, CHILD_JOB, StartedBy};
use crate::runtime::journal::call::StepFailure;
use crate::runtime::journal::decision::{Asked, ChildRun};
use crate::runtime::journal::wait::ChildrenRequest;
use crate::runtime::progress::events::{Event, StepAnswer, StepRef};
use crate::runtime::services::Services;
use crate::runtime::steps::outcome::outcome;
use crate::runtime::steps::{self, Recovery};
use crate::store::approvals::Opening;
use crate::store::runs::{
    ConversationTurn, End, NewChild, Origin, Refusal, Run, StepCommit, Wait, WaitingFor,
};
use crate::store::steps::{Begun, Ended, Step, StepKind, StepOutcome, StepStatus};
use serde_json::{Value, json};

/// What a commit takes that its run does not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Composer<'a> {
    clock: &'a Clock,
    /// Whether reviewers need roles.
    reviewers_need_roles: bool,
}

/// How a step failed, for its event and its row.
pub(super) struct FailedStep {
    pub(super) reason: String,
    pub(super) outcome: StepOutcome,
    pub(super) will_retry: bool,
    /// What its program reads, where it failed for good.
    pub(super) result: Option<Value>,
    pub(super) failures: i32,
}

/// Where child runs of a step begin: at this slot, or at the first one that the step's request says.
#[derive(Debug, Clone, Copy)]
enum FirstSlot {
    OfRequest,
    At(i32),
}

impl<'a> Composer<'a> {
    pub(super) fn new(services: &'a Services) -> Self {
        Self {
            clock: &services.clock,
            reviewers_need_roles: services.options.reviewers_need_roles,
        }
    }

    /// Adds what comes next.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn add_plan(
        self,
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
                if !state.run.dry_run {
                    self.add_approvals(asked, &mut commit);
                }
                commit.begun = Some(begun.clone());
                commit.flow_state = flow_state.as_deref().cloned();
                if !children.is_empty() {
                    let slot = FirstSlot::OfRequest;
                    self.add_children(state, begun, &mut commit, (slot, children))?;
                }
                Ok(commit)
            }
            Plan::Resume(_) => Ok(commit),
            Plan::End(end) => Ok(add_end(&state.run, commit, end.clone())),
        }
    }

    /// What a claim writes when this comes next. Nothing where an attempt goes on.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn first_commit(self, state: &State, planned: &Planned) -> Result<StepCommit> {
        let mut commit = StepCommit::default();
        if let Plan::Resume(_) = planned.plan {
            return Ok(commit);
        }
        if state.held.lease.epoch() == 1 {
            commit.events.push(Event::RunStarted {}.row());
        }
        add_lost_attempt(state, &planned.plan, &mut commit);
        self.add_plan(state, planned, commit)
    }

    /// The run is parked with a step that is not done, and children of the step begin from a slot on.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn parked(
        self,
        state: &State,
        begun: &Begun,
        commit: StepCommit,
        (wait, first_slot, children): (Wait, i32, &[ChildRun]),
    ) -> Result<StepCommit> {
        let mut commit = StepCommit {
            ended: None,
            wait: Some(wait),
            ..commit
        };
        if !children.is_empty() {
            let slot = FirstSlot::At(first_slot);
            self.add_children(state, begun, &mut commit, (slot, children))?;
        }
        let is_timer = wait.on == WaitingFor::Timer;
        let waiting = Event::RunWaiting {
            waiting_for: Some(wait.on),
            reason: None,
            retry_at: None,
            wake_at: is_timer.then(|| rfc3339::text(wait.until)),
            step: Some(begun.step),
            attempt: Some(begun.attempt),
        };
        commit.events.push(waiting.row());
        Ok(commit)
    }

    fn add_approvals(self, asked: &[Asked], commit: &mut StepCommit) {
        for asked in asked {
            let opening = Opening {
                approval_id: self.clock.new_id(),
                step: asked.step,
                path: asked.path.clone(),
                new: asked.new.clone(),
                needs_role: self.reviewers_need_roles,
            };
            let requested = Event::requested(&opening, asked.call_id.as_deref());
            commit.events.push(requested.row());
            commit.approvals.push(opening);
        }
    }

    /// Adds child runs that begin.
    fn add_children(
        self,
        state: &State,
        begun: &Begun,
        commit: &mut StepCommit,
        (first_slot, children): (FirstSlot, &[ChildRun]),
    ) -> Result<()> {
        let request: ChildrenRequest =
            serde_json::from_value(begun.request.clone()).map_err(Error::internal)?;
        let first_slot = match first_slot {
            FirstSlot::OfRequest => request.first_slot,
            FirstSlot::At(slot) => slot,
        };
        let children = self.new_children(state, begun, (first_slot, children))?;
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
        self,
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
                    run_id: self.clock.new_id(),
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
    commit.ended = Some(Ended {
        step: begun.step,
        status: StepStatus::Completed,
        result: Some(result),
        failures: begun.failures,
    });
    commit
}

/// Adds that a step failed.
pub(super) fn add_failed(
    state: &State,
    begun: &Begun,
    commit: &mut StepCommit,
    failed: FailedStep,
) {
    let event = Event::StepFailed {
        step: steps::step_ref(&state.journal, begun),
        reason: failed.reason,
        outcome: Some(failed.outcome),
        will_retry: failed.will_retry,
    };
    commit.events.push(event.row());
    commit.ended = Some(Ended {
        result: failed.result,
        ..ended_without(begun, failed.failures)
    });
}

/// The row of a step that has ended, and not well.
pub(super) fn ended_without(begun: &Begun, failures: i32) -> Ended {
    Ended {
        step: begun.step,
        status: StepStatus::Failed,
        result: None,
        failures,
    }
}

/// The run waits for another attempt of its step.
pub(super) fn waits_for_retry(
    begun: &Begun,
    mut commit: StepCommit,
    (failure, wait): (Failure, Wait),
) -> StepCommit {
    let waiting = Event::RunWaiting {
        waiting_for: Some(WaitingFor::Retry),
        reason: Some(failure.message),
        retry_at: Some(rfc3339::text(wait.until)),
        wake_at: None,
        step: Some(begun.step),
        attempt: Some(begun.attempt),
    };
    commit.events.push(waiting.row());
    commit.wait = Some(wait);
    commit
}

/// What the first claim of an agent's turn writes, but for the model's name.
pub(super) fn first_step() -> StepCommit {
    let begun = Begun {
        step: 1,
        kind: StepKind::Model,
        name: String::new(),
        path: String::new(),
        attempt: 1,
        failures: 0,
        request: json!({}),
    };
    let step = StepRef {
        step: begun.step,
        attempt: begun.attempt,
        kind: begun.kind,
        name: String::new(),
        path: String::new(),
        call_id: None,
        erased: false,
    };
    StepCommit {
        events: vec![Event::RunStarted {}.row(), Event::StepStarted(step).row()],
        begun: Some(begun),
        ..StepCommit::default()
    }
}

/// The attempt that was under way when the run's holder died.
pub(super) fn lost_attempt(state: &State) -> Option<&Step> {
    let last = state.journal.last();
    last.filter(|last| last.status == StepStatus::Running)
}

/// Of the attempt that was under way when the run's holder died: what it used, and what becomes of its step.
fn add_lost_attempt(state: &State, plan: &Plan, commit: &mut StepCommit) {
    let Some(last) = lost_attempt(state) else {
        return;
    };
    commit.call = steps::lost_call(last, &state.program);
    commit.has_text = commit.call.is_some();
    match plan {
        Plan::Begin { begun, .. } if begun.step != last.step => {
            add_unknown(state, last, commit);
        }
        Plan::Begin { begun, .. } => {
            let restarted = Event::StepRestarted {
                step: steps::step_ref(&state.journal, begun),
                lost_attempt: last.attempt,
            };
            commit.events.push(restarted.row());
        }
        Plan::Resume(_) => {}
        Plan::End(_) if steps::recover(last, &state.program) == Recovery::Unknown => {
            add_unknown(state, last, commit);
        }
        Plan::End(_) => commit.ended = Some(ended_without(&begun_of(last), last.failures)),
    }
}

/// The outcome of a step is unknown: a flow has handled that, or the run ends.
fn add_unknown(state: &State, last: &Step, commit: &mut StepCommit) {
    let failed = unknown_outcome(plan::unknown(last), last.failures);
    add_failed(state, &begun_of(last), commit, failed);
}

/// A step of whose call nobody knows whether it took effect.
pub(super) fn unknown_outcome(failure: StepFailure, failures: i32) -> FailedStep {
    FailedStep {
        reason: failure.reason.clone(),
        outcome: StepOutcome::Unknown,
        will_retry: false,
        result: Some(json!(failure)),
        failures,
    }
}

/// The end of a run, or of one that was asked to cancel.
pub(super) fn if_not_cancelled(run: &Run, end: End) -> End {
    match run.cancel_requested_at {
        Some(_) => End::Cancelled,
        None => end,
    }
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
        streaming: None,
    }
}
