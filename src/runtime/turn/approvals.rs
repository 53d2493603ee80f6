//! Calls of a turn that ask a reviewer first.
//!
//! Each call that asks has two steps: one that waits for its approval, and one that makes the call or says why not. So the
//! numbers of the steps are known when the model has answered, and all of its calls are asked for together: reviewers decide
//! in any order, while the calls are made in the model's.

use super::definition::{Definition, tool_of};
use crate::failure::{Authored, Failure, Summary};
use crate::guardrails::{Blocked, OnBlock};
use crate::runtime::flow::end_of_refusal;
use crate::runtime::journal::decision::Asked;
use crate::runtime::journal::wait::ApprovalResult;
use crate::runtime::journal::{CallDecision, ModelResult, ToolRequest, UnansweredCall, call_of};
use crate::runtime::progress::events::ToolCall;
use crate::runtime::steps::outcome::outcome;
use crate::runtime::{tool_approvals, tool_children};
use crate::store::approvals::{ApprovalStatus, EarlierCall, NewApproval};
use crate::store::runs::End;
use crate::store::steps::{Step, StepKind, StepOutcome};
use crate::store::tool_approvals::{OnReject, ToolApproval};
use crate::text::beginning;
use serde_json::{Value, json};

/// How often a model may ask for the same call that nobody approved.
const SAME_CALLS: usize = 3;

/// Of what the model said beside its calls, what reviewers are shown, in bytes.
const SAID_BYTES: usize = 8 * 1024;

/// Which call comes next, with the step of its approval if that has ended. `done`: the steps after the model's.
pub(super) fn place(done: &[Step], calls: usize) -> Option<(usize, Option<&Step>)> {
    let mut place = (0, None);
    for step in done {
        place = match step.kind {
            StepKind::Approval => (place.0, Some(step)),
            _ => (place.0 + 1, None),
        };
    }
    (place.0 < calls).then_some(place)
}

/// What the tool or a guardrail has a reviewer asked before a call: the tool's own settings count for both. None: nothing.
pub(super) fn settings<'a>(
    definition: &'a Definition,
    said: &'a ModelResult,
    index: usize,
) -> Option<&'a ToolApproval> {
    let call = said.tool_calls.get(index)?;
    let tool = tool_of(definition, &call.name)?;
    let of_check = said
        .checked
        .call(index)
        .and_then(|one| one.approval.as_ref());
    tool.approval.as_ref().or(of_check)
}

/// What a call asks. None: nothing.
pub(super) fn of_call(
    definition: &Definition,
    said: &ModelResult,
    index: usize,
) -> Option<NewApproval> {
    let call = said.tool_calls.get(index)?;
    let tool = tool_of(definition, &call.name)?;
    let is_blocked = said
        .checked
        .call(index)
        .is_some_and(|one| one.blocked.is_some());
    if is_blocked || tool_children::is_too_deep(tool, definition.turn.levels) {
        return None;
    }
    let asks = settings(definition, said, index)?;
    let said = beginning(&said.text, SAID_BYTES);
    let context = (!said.is_empty()).then(|| json!({"said": said}));
    tool_approvals::of_call((tool, asks), &call.arguments, context)
}

/// What the step of an approval is asked.
pub(super) fn request(asks: &NewApproval, (model_step, call): (i32, usize)) -> Value {
    json!({"title": asks.title, "requiredRole": asks.required_role, "modelStep": model_step, "call": call})
}

/// Where the step of an approval stands in a turn.
pub(super) fn path(model_step: i32, call: usize) -> String {
    format!("/{model_step}/calls/{call}")
}

/// The earlier call with the same content that may have taken effect: that of the failed run, or one of this turn.
fn earlier(
    journal: &[Step],
    (call, index): (&ToolCall, usize),
    unanswered: Option<&UnansweredCall>,
) -> Option<EarlierCall> {
    if let Some(before) = unanswered.filter(|before| before.call == index) {
        return before.made.for_reviewer();
    }
    let is_same = |step: &&Step| {
        let is_unknown = outcome(step.kind, step.status, step.result.as_ref());
        is_unknown == Some(StepOutcome::Unknown)
            && call_of(journal, &step.request).is_ok_and(|other| is_same_call(&other, call))
    };
    let mut made = journal.iter().filter(|step| step.kind == StepKind::Tool);
    let made = made.rfind(is_same)?;
    let decided = CallDecision::of(&made.request);
    let decided = decided.as_ref();
    Some(EarlierCall {
        approval_id: decided.and_then(CallDecision::approval_id),
        is_edited: decided.and_then(CallDecision::edited).is_some(),
    })
}

/// Whether two calls ask the same, however the model wrote it.
fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    let arguments = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).ok();
    one.name == other.name && arguments(one) == arguments(other)
}

/// What is to be asked with the next step, for it and for those after it: of the calls from this one on, of which `most` can
/// be made yet, those for which nothing was asked.
pub(super) fn to_ask(
    definition: &Definition,
    (journal, unanswered): (&[Step], Option<&UnansweredCall>),
    said: &ModelResult,
    (model_step, next_step): (i32, i32),
    (first, is_decided): (usize, bool),
    most: usize,
) -> Vec<Asked> {
    let mut step = next_step;
    let mut asked = Vec::new();
    for (index, call) in said.tool_calls.iter().enumerate().skip(first).take(most) {
        let asks = of_call(definition, said, index);
        let asks = asks.filter(|_| !(index == first && is_decided));
        if let Some(mut new) = asks {
            new.earlier = earlier(journal, (call, index), unanswered);
            if !definition.asked.contains(&step) {
                asked.push(Asked {
                    step,
                    path: path(model_step, index),
                    call_id: Some(call.id.clone()),
                    new: Box::new(new),
                });
            }
            step += 1;
        }
        step += 1;
    }
    asked
}

/// What becomes of a call whose approval was closed: the call with that, or the end of the turn.
pub(super) fn decided(
    definition: &Definition,
    journal: &[Step],
    (said, request): (&ModelResult, ToolRequest),
    result: ApprovalResult,
) -> Result<ToolRequest, End> {
    let call = &said.tool_calls[request.call];
    if let Some(blocked) = &result.blocked {
        return match blocked.on_block {
            OnBlock::Fail => Err(blocked_end(blocked, &call.name)),
            _ => Ok(blocked_call(blocked, request)),
        };
    }
    let refusal = tool_approvals::refusal(&call.name, &result);
    if result.decision == ApprovalStatus::Approved {
        let decided = CallDecision::Approved {
            arguments: result.arguments,
            is_edited: result.is_edited,
            comment: result.comment,
            approval_id: result.approval_id,
        };
        let decided = Some(decided);
        return Ok(ToolRequest { decided, ..request });
    }
    let approval = settings(definition, said, request.call);
    let fails = approval.is_some_and(|approval| approval.on_reject == OnReject::Fail);
    if fails || refused_before(journal, call) + 1 >= SAME_CALLS {
        let said = match fails {
            true => refusal,
            false => format!("{refusal} The model asked for it {SAME_CALLS} times."),
        };
        let is_rejected = result.decision == ApprovalStatus::Rejected;
        return Err(end_of_refusal(is_rejected, &call.name, said));
    }
    let said = format!("{refusal} It was not made. Do not ask for the same call again.");
    let decided = Some(CallDecision::Refused { said });
    Ok(ToolRequest { decided, ..request })
}

/// A call that a guardrail blocks is not made, and the model is told so.
pub(super) fn blocked_call(blocked: &Blocked, request: ToolRequest) -> ToolRequest {
    let name = &blocked.name;
    let said = format!(
        "The guardrail {name} refused the call. It was not made. Do not ask for the same call again."
    );
    ToolRequest {
        decided: Some(CallDecision::Refused { said }),
        ..request
    }
}

/// The end of a turn that a guardrail fails for a call.
pub(super) fn blocked_end(blocked: &Blocked, tool: &str) -> End {
    let name = &blocked.name;
    End::Failed {
        failure: Failure::quoting(
            format!("The guardrail {name} refused a call of the tool {tool}."),
            Summary::of(&[
                &"The guardrail ",
                &Authored(name),
                &" refused a call of a tool.",
            ]),
        ),
        error: None,
    }
}

/// How often the same call was asked for and not approved.
fn refused_before(journal: &[Step], call: &ToolCall) -> usize {
    let is_same = |step: &&Step| {
        let decided = CallDecision::of(&step.request);
        matches!(decided, Some(CallDecision::Refused { .. }))
            && call_of(journal, &step.request)
                .is_ok_and(|other| other.name == call.name && other.arguments == call.arguments)
    };
    let calls = journal.iter().filter(|step| step.kind == StepKind::Tool);
    calls.filter(is_same).count()
}
