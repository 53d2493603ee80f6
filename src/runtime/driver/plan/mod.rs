//! What a run does next, from its journal alone: what its program decides, or what an unfinished
//! step needs.
//!
//! [`next`] is a pure function, so any process that takes the run over comes to the same decision.
//! A completed step is never repeated, and the journal of every turn ends.
//!
//! Not here: how often a failed step is retried, which is decided when it fails (`commit`).

use super::state::State;
use crate::error::Error;
use crate::failure::{Authored, Failure, Part, Summary};
use crate::runtime::journal::call::{AskedAgain, StepFailure};
use crate::runtime::journal::decision::{Asked, ChildRun, Decision, Family, NewStep, Next};
use crate::runtime::journal::misread;
use crate::runtime::journal::wait::{ChildrenRequest, TimerRequest, free_slot};
use crate::runtime::program::Program;
use crate::runtime::progress::events::Event;
use crate::runtime::services::Services;
use crate::runtime::steps::kind::{UnknownCall, unknown_call};
use crate::runtime::steps::{self, Recovery};
use crate::store::approvals::NewApproval;
use crate::store::flow_states::FlowState;
use crate::store::runs::{CHILDREN_AT_ONCE, Counted, DatabaseAhead, End, WaitingFor};
use crate::store::steps::{Begun, Step, StepKind, StepStatus};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// How many attempts of a step may be lost to dying processes.
pub(super) const LOST_ATTEMPTS: i32 = 50;

/// What a run's steps may answer together: all of it is read at each claim of the run, and
/// sent to a model. The last answer may go beyond.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// An attempt of a step begins. Its row is to be written first.
    Begin {
        /// The row.
        begun: Begun,
        /// The attempt that was lost to a crash, if one was.
        lost_attempt: Option<i32>,
        /// The child runs that begin with it, from the slot that its request says.
        children: Vec<ChildRun>,
        /// The approvals that are opened with it.
        asked: Vec<Asked>,
        /// Of a flow, where its run stands with a new step.
        flow_state: Option<Box<FlowState>>,
    },
    /// An attempt goes on whose row is written.
    Resume(Begun),
    /// The run ends.
    End(End),
}

/// What comes next, and the events that are written before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) events: Vec<Event>,
}

impl From<Plan> for Planned {
    fn from(plan: Plan) -> Self {
        let events = Vec::new();
        Self { plan, events }
    }
}

/// What comes next of a run that was just claimed.
pub(super) fn first(state: &State, now: OffsetDateTime) -> Planned {
    if state.run.cancel_requested_at.is_some() {
        return Plan::End(End::Cancelled).into();
    }
    plan(state, now)
}

/// What comes next, within the run's limits.
pub(super) fn plan(state: &State, now: OffsetDateTime) -> Planned {
    let program = &state.program;
    let clocks = (now, state.held.database_ahead);
    if let Some(last) = state.journal.last()
        && last.status == StepStatus::Running
        && state.held.waited_for == Some(WaitingFor::Model)
    {
        // It waited for its call, so none was made.
        return Plan::Resume(begun_of(last)).into();
    }
    let planned = next(&state.journal, program, clocks);
    match planned.plan {
        Plan::Begin { .. } if state.time_left().is_zero() => fail(program.out_of_time()).into(),
        Plan::Begin { .. } if state.answer_bytes > ANSWER_BYTES => {
            let noun = program.noun();
            let most = ANSWER_BYTES >> 20;
            let failure = Failure::of(&[
                &"The ",
                &noun,
                &"'s steps answered more than ",
                &most,
                &" MiB together, which is as much as a ",
                &noun,
                &" holds.",
            ]);
            fail(failure).into()
        }
        _ => planned,
    }
}

/// What comes next, of a run without limits. `clocks`: the time here, and how far PostgreSQL's clock is ahead of it.
pub(super) fn next(
    journal: &[Step],
    program: &Program,
    clocks: (OffsetDateTime, DatabaseAhead),
) -> Planned {
    let (now, _) = clocks;
    match journal.last() {
        Some(last) if last.status == StepStatus::Running => match steps::recover(last, program) {
            Recovery::Unknown if program.is_flow() => {
                let journal = [Step {
                    status: StepStatus::Failed,
                    result: Some(json!(unknown(last))),
                    ..last.clone()
                }];
                decided(&journal, program.next(&journal, now), clocks)
            }
            recovery => go_on(last, recovery).into(),
        },
        // A failed step with a result has failed for good, and its program handles that.
        Some(last) if last.status == StepStatus::Failed && last.result.is_none() => {
            again(last, None).into()
        }
        _ => decided(journal, program.next(journal, now), clocks),
    }
}

/// What a program's decision comes to.
fn decided(
    journal: &[Step],
    decision: Decision,
    clocks: (OffsetDateTime, DatabaseAhead),
) -> Planned {
    let mut plan = match decision.next {
        Next::Begin(step) => begin(journal, step, Vec::new()),
        Next::Wait { path, duration } => {
            let request = TimerRequest::new(clocks, duration);
            let step = step_of(StepKind::Wait, path, json!(request));
            begin(journal, step, Vec::new())
        }
        Next::Spawn(family) => {
            let children = family.children.len() + family.later;
            let first_slot = first_slot(journal, decision.flow_state.as_ref(), children);
            spawn(journal, family, first_slot)
        }
        Next::Ask {
            path,
            approval,
            again,
        } => ask(journal, path, approval, again.as_deref()),
        Next::End(end) => Plan::End(end),
    };
    if let Plan::Begin {
        flow_state, asked, ..
    } = &mut plan
    {
        *flow_state = decision.flow_state.map(Box::new);
        asked.extend(decision.asked);
    }
    let events = decision.events;
    Planned { plan, events }
}

/// Lets the children of a plan begin, if the bounds on the number of runs leave room for them. Otherwise their step begins
/// without them, and says why.
pub(super) fn within_bounds(
    services: &Services,
    state: &State,
    mut planned: Planned,
    count: impl FnMut(Counted, u64) -> Result<u64, Error>,
) -> Result<Planned, Error> {
    if let Plan::Begin {
        begun, children, ..
    } = &mut planned.plan
        && !children.is_empty()
    {
        let run = &state.run;
        let of = (run.tenant_id, Some(run.root_run_id));
        if let Some(reached) = services.bounds.reached(of, children.len(), count)? {
            services.note_reached(run.tenant_id, reached);
            begun.request["refused"] = json!(format!("{reached}."));
            children.clear();
        }
    }
    Ok(planned)
}

/// The end of a run that is failed.
pub(super) fn failed(failure: impl Into<Failure>) -> End {
    End::Failed {
        failure: failure.into(),
        error: None,
    }
}

fn fail(failure: impl Into<Failure>) -> Plan {
    Plan::End(failed(failure))
}

/// The slot of the first of so many children. A flow counts them, since its journal is not read whole.
fn first_slot(
    journal: &[Step],
    flow_state: Option<&FlowState>,
    children: usize,
) -> Result<i32, String> {
    let Some(state) = flow_state else {
        return free_slot(journal);
    };
    Ok(state.slots - i32::try_from(children).unwrap_or(i32::MAX))
}

fn spawn(journal: &[Step], family: Family, first_slot: Result<i32, String>) -> Plan {
    let Family {
        path,
        children,
        call,
        ..
    } = family;
    let all = children.len() + family.later;
    let count = i32::try_from(all).unwrap_or(i32::MAX);
    if children.is_empty() || all > CHILDREN_AT_ONCE {
        return fail(Failure::of(&[
            &"The program began ",
            &count,
            &" child runs at once. A step begins 1 to ",
            &CHILDREN_AT_ONCE,
            &".",
        ]));
    }
    let first_slot = match first_slot {
        Ok(slot) => slot,
        Err(unreadable) => return fail(misread(unreadable)),
    };
    let request = json!(ChildrenRequest {
        first_slot,
        count,
        first_index: family.first_index,
        until: family.until,
        is_fail_fast: family.is_fail_fast,
        places: family.places,
        refused: None,
        target: call.as_ref().map(|call| call.target),
        call: call.as_ref().and_then(|call| call.request.clone()),
    });
    let mut step = step_of(StepKind::Child, path, request);
    if let Some(call) = call {
        step.name = call.tool;
    }
    begin(journal, step, children)
}

fn ask(
    journal: &[Step],
    path: String,
    mut new: Box<NewApproval>,
    again: Option<&AskedAgain>,
) -> Plan {
    if let Some(fault) = new.fault() {
        let summary = Summary::of(&[&"The approval at ", &Authored(&path), &" cannot be opened."]);
        let said = format!("The approval at {path} cannot be opened: {fault}.");
        return fail(Failure::quoting(said, summary));
    }
    let mut request = json!({"title": new.title, "requiredRole": new.required_role});
    if let Some(AskedAgain { tool, unanswered }) = again {
        request["tool"] = json!(tool);
        request["unanswered"] = json!(unanswered);
        new.earlier = unanswered.for_reviewer();
    }
    let step = step_of(StepKind::Approval, path, request);
    let mut plan = begin(journal, step, Vec::new());
    if let Plan::Begin { begun, asked, .. } = &mut plan {
        asked.push(Asked {
            step: begun.step,
            path: begun.path.clone(),
            call_id: None,
            new,
        });
    }
    plan
}

fn step_of(kind: StepKind, path: String, request: Value) -> NewStep {
    NewStep {
        kind,
        name: kind.text().to_owned(),
        path,
        request,
    }
}

fn begin(journal: &[Step], step: NewStep, children: Vec<ChildRun>) -> Plan {
    Plan::Begin {
        begun: Begun {
            step: journal.last().map_or(0, |last| last.step) + 1,
            kind: step.kind,
            name: step.name,
            path: step.path,
            attempt: 1,
            failures: 0,
            request: step.request,
        },
        lost_attempt: None,
        children,
        asked: Vec::new(),
        flow_state: None,
    }
}

/// How a step failed whose process died during it, and that may not be made twice.
pub(super) fn unknown(last: &Step) -> StepFailure {
    let step = last.step;
    let what = unknown_call(last.kind, &last.name).what;
    StepFailure {
        reason: format!(
            "The server stopped during {what} in step {step}. Nobody knows whether it took effect, so it was not made again."
        ),
        is_unknown: true,
        status: None,
    }
}

fn go_on(last: &Step, recovery: Recovery) -> Plan {
    let lost = last.attempt - last.failures;
    match recovery {
        Recovery::Resume => Plan::Resume(begun_of(last)),
        _ if lost > LOST_ATTEMPTS => {
            // The name of a tool that the agent does not have is the model's text.
            let (step, name) = (last.step, &last.name);
            let said = format!("The server stopped {lost} times during step {step} ({name}).");
            let parts: [&dyn Part; 5] = [
                &"The server stopped ",
                &lost,
                &" times during step ",
                &step,
                &".",
            ];
            fail(Failure::quoting(said, Summary::of(&parts)))
        }
        Recovery::Again => again(last, Some(last.attempt)),
        Recovery::Unknown => {
            let UnknownCall { during, why, .. } = unknown_call(last.kind, &last.name);
            let step = last.step;
            let said = format!(
                "The server stopped while {during} in step {step}. Nobody knows whether the call took effect, and {why}, so it \
                 was not called again."
            );
            let parts: [&dyn Part; 3] = [
                &"The server stopped during a call in step ",
                &step,
                &". Nobody knows whether the call took effect, so it was not made again.",
            ];
            fail(Failure::quoting(said, Summary::of(&parts)))
        }
    }
}

fn again(last: &Step, lost_attempt: Option<i32>) -> Plan {
    Plan::Begin {
        begun: Begun {
            attempt: last.attempt + 1,
            ..begun_of(last)
        },
        lost_attempt,
        children: Vec::new(),
        asked: Vec::new(),
        flow_state: None,
    }
}

/// The attempt that a row of the journal says was begun.
pub(super) fn begun_of(step: &Step) -> Begun {
    Begun {
        step: step.step,
        kind: step.kind,
        name: step.name.clone(),
        path: step.path.clone(),
        attempt: step.attempt,
        failures: step.failures,
        request: step.request.clone(),
    }
}

#[cfg(test)]
mod tests;
