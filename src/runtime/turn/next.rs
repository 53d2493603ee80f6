//! What an agent's turn does next, decided from its journal, and from the steps for which approvals were opened.
//!
//! [`next`] is a pure function of a journal whose steps are all completed. The model is asked. The tools that it calls are
//! called one after another: some only after a reviewer has approved the call (`approvals`), some by a run of an agent or a
//! flow (`tool_children`). Then the model is asked again, until it calls no tool. An answer that does not fit the version's
//! output schema is asked for again (`answer`).
//!
//! Not here: an unfinished step (`driver::plan`), and performing steps (`steps`).

use super::answer::{self, Misfit, ModelRequest, TRIES};
use super::approvals;
use super::definition::{Definition, tool_of};
use crate::failure::{Authored, Failure};
use crate::guardrails::{Blocked, OnBlock, Point};
use crate::runtime::journal::decision::{Decision, Family, FamilyCall, NewStep, Next};
use crate::runtime::journal::{
    CallDecision, ModelResult, ToolRequest, UnansweredCall, misread, read, unreadable,
};
use crate::runtime::tool_children;
use crate::store::runs::End;
use crate::store::steps::{Step, StepKind};
use serde_json::{Value, json};

/// Decides what comes next.
pub(in crate::runtime) fn next(journal: &[Step], definition: &Definition) -> Decision {
    let following = match journal.is_empty() {
        true => Ok(Following::Model),
        false => following(journal, definition),
    };
    match following {
        Ok(Following::Model) => {
            let name = definition.turn.model.clone();
            begin(journal, definition, (StepKind::Model, name, json!({}))).into()
        }
        Ok(Following::Call(decision)) => *decision,
        Ok(Following::Nothing(said)) => answered(journal, definition, *said).into(),
        Err(unreadable) => fail(misread(unreadable)).into(),
    }
}

/// The end of the turn, or the same question again where the answer does not fit the schema that it has to fit. A refusal, and
/// an answer that was cut off, would only come again.
fn answered(journal: &[Step], definition: &Definition, said: ModelResult) -> Next {
    if let Some((point, blocked)) = said.checked.blocked {
        return refused(journal, definition, (point, blocked));
    }
    let schema = definition.turn.output_schema.as_ref();
    let text = &said.text;
    let mut output = match schema.map(|schema| answer::read(schema, text)) {
        None => json!({ "text": text }),
        Some(Ok(value)) => json!({ "text": text, "json": value }),
        Some(Err(misfit)) => {
            return match answer::lasting(&said) {
                Some(failure) => fail(failure),
                None => corrected(journal, definition, misfit),
            };
        }
    };
    if said.is_cut() {
        output["answerCut"] = json!(true);
    }
    Next::End(End::Completed {
        output,
        message: Some(said.text),
    })
}

/// What follows an input or an answer that a guardrail blocks.
fn refused(journal: &[Step], definition: &Definition, (point, blocked): (Point, Blocked)) -> Next {
    let name = &blocked.name;
    match blocked.on_block {
        OnBlock::Answer => {
            let text = blocked.answer.clone().unwrap_or_default();
            return Next::End(End::Completed {
                output: json!({ "text": text, "blockedBy": name }),
                message: Some(text),
            });
        }
        OnBlock::Retry => match answer::blocked_answers(journal) {
            Ok(times) if times <= usize::from(blocked.retries) => {
                let request = ModelRequest {
                    correction: Some(format!(
                        "The guardrail {name} refused your answer, and nobody has seen it. Answer again in another way."
                    )),
                    ..ModelRequest::default()
                };
                let model = definition.turn.model.clone();
                return begin(
                    journal,
                    definition,
                    (StepKind::Model, model, json!(request)),
                );
            }
            Ok(_) => {}
            Err(unreadable) => return fail(misread(unreadable)),
        },
        OnBlock::Fail | OnBlock::Tell => {}
    }
    let what = match point {
        Point::Input => "input",
        Point::Output | Point::ToolArguments | Point::ToolResult => "model's answer",
    };
    fail(Failure::of(&[
        &"The guardrail ",
        &Authored(name),
        &" refused the ",
        &what,
        &".",
    ]))
}

fn corrected(journal: &[Step], definition: &Definition, misfit: Misfit) -> Next {
    match answer::answers(journal) {
        Ok(answers) if answers < TRIES => {
            let request = ModelRequest {
                correction: Some(misfit.correction),
                ..ModelRequest::default()
            };
            let name = definition.turn.model.clone();
            begin(journal, definition, (StepKind::Model, name, json!(request)))
        }
        Ok(_) => fail(misfit.failure()),
        Err(unreadable) => fail(misread(unreadable)),
    }
}

fn fail(failure: Failure) -> Next {
    Next::End(End::Failed {
        failure,
        error: None,
    })
}

fn begin(
    journal: &[Step],
    definition: &Definition,
    (kind, name, request): (StepKind, String, Value),
) -> Next {
    if calls_left(journal, definition) == 0 {
        let max = definition.limits.max_steps;
        return fail(Failure::of(&[
            &"The turn reached its limit of ",
            &max,
            &" steps (maxSteps) before the model gave an answer.",
        ]));
    }
    Next::Begin(NewStep {
        kind,
        name,
        path: String::new(),
        request,
    })
}

/// How many steps the turn may begin yet. Those that wait for approvals do not count.
fn calls_left(journal: &[Step], definition: &Definition) -> usize {
    let calls = journal
        .iter()
        .filter(|step| step.kind != StepKind::Approval);
    usize::from(definition.limits.max_steps).saturating_sub(calls.count())
}

enum Following {
    Model,
    /// A call of a tool, or its approval.
    Call(Box<Decision>),
    /// The answer.
    Nothing(Box<ModelResult>),
}

/// What follows a completed step: the calls of the newest model step one after another, each after its approval if it asks
/// for one, then the model again; nothing when it asked for none.
fn following(journal: &[Step], definition: &Definition) -> Result<Following, String> {
    let newest = journal
        .iter()
        .rposition(|step| step.kind == StepKind::Model);
    let at = newest.ok_or_else(unreadable)?;
    let said: ModelResult = read(journal[at].result.as_ref())?;
    if let Some((index, blocked)) = said.checked.failing_call() {
        let name = said.tool_calls.get(index).map_or("", |call| &call.name);
        let end = Next::End(approvals::blocked_end(blocked, name));
        return Ok(Following::Call(Box::new(end.into())));
    }
    if said.tool_calls.is_empty() {
        return Ok(Following::Nothing(Box::new(said)));
    }
    let done = &journal[at + 1..];
    let Some((index, approval)) = approvals::place(done, said.tool_calls.len()) else {
        return Ok(Following::Model);
    };
    let model_step = journal[at].step;
    let before = unanswered(&journal[at])?;
    let unanswered = before.clone().filter(|one| one.call == index);
    let request = request_of(&said, model_step, index);
    let asks = match approval {
        None => approvals::of_call(definition, &said, index),
        Some(_) => None,
    };
    let next = match (approval, asks) {
        (Some(approval), _) => {
            let result = read(approval.result.as_ref())?;
            match approvals::decided(definition, journal, (&said, request), result) {
                Ok(request) => begin_call(journal, definition, &said, (request, unanswered)),
                Err(end) => Next::End(end),
            }
        }
        (None, None) => begin_call(journal, definition, &said, (request, unanswered)),
        (None, Some(asks)) => {
            let kind = StepKind::Approval;
            let name = kind.text().to_owned();
            let request = approvals::request(&asks, (model_step, index));
            match begin(journal, definition, (kind, name, request)) {
                Next::Begin(step) => Next::Begin(NewStep {
                    path: approvals::path(model_step, index),
                    ..step
                }),
                next => next,
            }
        }
    };
    let asked = match &next {
        Next::Begin(_) | Next::Spawn(_) => {
            let steps = (model_step, journal[journal.len() - 1].step + 1);
            let left = calls_left(journal, definition);
            let from = (index, approval.is_some());
            let before = (journal, before.as_ref());
            approvals::to_ask(definition, before, &said, steps, from, left)
        }
        _ => Vec::new(),
    };
    Ok(Following::Call(Box::new(Decision {
        asked,
        ..next.into()
    })))
}

/// What the step of a call is asked, which is not made where a guardrail blocks it.
fn request_of(said: &ModelResult, model_step: i32, call: usize) -> ToolRequest {
    let request = ToolRequest {
        model_step,
        call,
        decided: None,
        idempotency_key: None,
    };
    let checked = said.checked.call(call);
    match checked.and_then(|one| one.blocked.as_ref()) {
        Some(blocked) => approvals::blocked_call(blocked, request),
        None => request,
    }
}

/// The call that the failed run made before, if nobody got its answer.
fn unanswered(asked: &Step) -> Result<Option<UnansweredCall>, String> {
    let asked: ModelRequest = read(Some(&asked.request))?;
    Ok(asked.unanswered)
}

/// The call of an HTTP server, with the key of the one that was made before if that had the same arguments; or the run that
/// the call is. A call that is not to be made is a step as well, which says why.
fn begin_call(
    journal: &[Step],
    definition: &Definition,
    said: &ModelResult,
    (request, unanswered): (ToolRequest, Option<UnansweredCall>),
) -> Next {
    let call = &said.tool_calls[request.call];
    let edited = request.decided.as_ref().and_then(CallDecision::edited);
    let idempotency_key = unanswered.and_then(|one| one.made.key_for(edited));
    let request = ToolRequest {
        idempotency_key,
        ..request
    };
    let step = (StepKind::Tool, call.name.clone(), json!(request));
    match begin(journal, definition, step) {
        Next::Begin(step) => match family(definition, said, request) {
            Some(family) => Next::Spawn(family),
            None => Next::Begin(step),
        },
        end => end,
    }
}

/// The run that a call is, of a tool that is an agent or a flow.
fn family(definition: &Definition, said: &ModelResult, request: ToolRequest) -> Option<Family> {
    let call = &said.tool_calls[request.call];
    let tool = tool_of(definition, &call.name)?;
    let asks = approvals::settings(definition, said, request.call);
    let approved = match (asks, &request.decided) {
        (None, None) => None,
        (_, Some(CallDecision::Approved { arguments, .. })) => arguments.as_ref(),
        // It is not to be made.
        _ => return None,
    };
    let approved = approved.map(Value::to_string);
    let arguments = approved.as_ref().unwrap_or(&call.arguments);
    let child = tool_children::of_call(tool, definition.turn.levels, arguments)?;
    Some(Family {
        path: approvals::path(request.model_step, request.call),
        children: vec![child],
        call: Some(FamilyCall {
            tool: tool.name.clone(),
            target: tool.target.kind(),
            request: Some(request),
        }),
        ..Family::default()
    })
}
