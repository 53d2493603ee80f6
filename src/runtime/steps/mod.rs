//! Steps: how each kind is performed, reported, retried, and continued after a crash.
//!
//! What the runtime does differently for each kind is decided here and in [`kind`], so a new kind is added to these two files.
//! Elsewhere a program names the kind of a step that it begins, and looks for that kind when it reads its own journal.
//!
//! Nothing here writes to the journal. The driver writes a step's row before the step is performed,
//! and its result afterwards (`journal-before-effect`).

mod approval;
pub(super) mod attempt;
mod checks;
mod child;
mod guardrail;
mod http;
pub(super) mod kind;
mod model;
mod model_calls;
pub(super) mod outcome;
mod tool;
mod wait;

use self::kind::unanswered;
use super::journal;
use super::journal::call::StepFailure;
use super::options::Options;
use super::program::Program;
use super::progress::events::StepRef;
use crate::error::Result;
use crate::failure::Failure;
use crate::store::Sql;
use crate::store::runs::{Lease, Run};
use crate::store::steps::{Begun, ModelCall, Step, StepKind};
use attempt::{Attempt, Performed};
use serde_json::{Value, json};

/// How a run goes on that was claimed with a step under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// The attempt goes on: it had no effect yet.
    Resume,
    /// The attempt was lost. The next one begins.
    Again,
    /// Nobody knows whether the attempt took effect, and it may not be made twice.
    Unknown,
}

/// Performs the attempt that `begun` says, over the steps of `journal` before it.
pub(super) fn perform(
    attempt: &mut Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
) -> Result<Performed> {
    let performed = match begun.kind {
        StepKind::Model => model::perform(attempt, journal, begun)?,
        StepKind::Tool => tool::perform(attempt, journal, begun)?,
        StepKind::Http => http::perform(attempt, begun).into(),
        StepKind::Wait => wait::perform(attempt, begun).into(),
        StepKind::Child => child::perform(attempt, begun)?,
        StepKind::Approval => approval::perform(attempt, journal, begun)?,
        StepKind::Guardrail => guardrail::perform(attempt, begun),
    };
    performed.note(attempt, begun);
    Ok(performed)
}

/// What the step came to with which a run was parked, if what it waits for had come before the run was taken up, and it
/// suffices to read that. To be asked in the transaction that takes the run up. None: the step is to be performed.
pub(super) fn done_while_parked(
    sql: &mut impl Sql,
    (run, lease): (&Run, &Lease),
    begun: &Begun,
) -> Result<Option<Performed>> {
    match begun.kind {
        // A dry run has no approval.
        StepKind::Approval if !run.dry_run => approval::done_while_parked(sql, lease, begun),
        _ => Ok(None),
    }
}

/// How a step goes on whose process died, or which parked its run.
pub(super) fn recover(step: &Step, program: &Program) -> Recovery {
    match step.kind {
        StepKind::Model | StepKind::Guardrail => Recovery::Again,
        StepKind::Tool if tool::is_repeatable(step, program) => Recovery::Again,
        StepKind::Http if http::is_repeatable(step, program) => Recovery::Again,
        StepKind::Tool | StepKind::Http => Recovery::Unknown,
        StepKind::Wait | StepKind::Child | StepKind::Approval => Recovery::Resume,
    }
}

/// Whether a call that failed for good may have taken effect before its newest attempt: in an attempt before, or made for
/// another step with the same key.
pub(super) fn was_made_before(begun: &Begun, program: &Program) -> bool {
    match begun.kind {
        StepKind::Tool => tool::was_made_before(begun, program),
        StepKind::Http => {
            http::has_effect(begun) && (attempt::is_repeated(begun) || begun.attempt > 1)
        }
        StepKind::Model
        | StepKind::Wait
        | StepKind::Child
        | StepKind::Approval
        | StepKind::Guardrail => false,
    }
}

/// How a call failed that was interrupted and may have taken effect. None: the step makes no such call.
pub(super) fn interrupted(begun: &Begun) -> Option<StepFailure> {
    let has_effect = match begun.kind {
        StepKind::Tool => true,
        StepKind::Http => http::has_effect(begun),
        StepKind::Model
        | StepKind::Wait
        | StepKind::Child
        | StepKind::Approval
        | StepKind::Guardrail => false,
    };
    let why = Failure::from("The run was ended during it.");
    has_effect.then(|| StepFailure {
        reason: unanswered(begun.kind, &begun.name, &why, (true, false)).message,
        is_unknown: true,
        status: None,
    })
}

/// What the lost attempt of a step used, if it was a model call: nobody knows how much.
pub(super) fn lost_call(step: &Step, program: &Program) -> Option<ModelCall> {
    match step.kind {
        StepKind::Model => model::lost_call(step, program),
        StepKind::Tool
        | StepKind::Http
        | StepKind::Wait
        | StepKind::Child
        | StepKind::Approval
        | StepKind::Guardrail => None,
    }
}

/// What a step would have sent that a dry run does not perform. The arguments of a call of a model stand in the model's step.
pub(super) fn not_sent(journal: &[Step], begun: &Begun) -> Value {
    let call = journal::call_of(journal, &begun.request).ok();
    let call = call.filter(|_| begun.kind == StepKind::Tool);
    call.map_or_else(
        || begun.request.clone(),
        |call| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            json!({ "arguments": arguments })
        },
    )
}

/// How often a step is tried at most, the first time included.
pub(super) fn attempts(kind: StepKind, program: &Program, options: &Options) -> i32 {
    match kind {
        StepKind::Model => model::tries(program).unwrap_or(options.model_attempts),
        StepKind::Tool | StepKind::Http => options.tool_attempts,
        StepKind::Wait | StepKind::Child | StepKind::Approval | StepKind::Guardrail => 1,
    }
}

/// An attempt as readers see it.
pub(super) fn step_ref(journal: &[Step], begun: &Begun) -> StepRef {
    let call = match begun.kind {
        StepKind::Tool | StepKind::Approval | StepKind::Child => {
            journal::call_of(journal, &begun.request).ok()
        }
        StepKind::Model | StepKind::Http | StepKind::Wait | StepKind::Guardrail => None,
    };
    StepRef {
        step: begun.step,
        attempt: begun.attempt,
        kind: begun.kind,
        name: begun.name.clone(),
        path: begun.path.clone(),
        call_id: call.map(|call| call.id),
        erased: false,
    }
}
