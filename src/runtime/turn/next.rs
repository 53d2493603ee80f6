//! What a turn does next, decided from its journal alone.
//!
//! [`next`] is a pure function: whoever takes a turn up, at whatever moment the one before died,
//! comes to the same decision. A finished step is never done again, and every journal ends.
//!
//! Not here: doing it (`driver`), and how often a step that failed is tried again, which is decided
//! when it fails.

use super::definition::{Definition, tool_of};
use crate::runtime::journal::decision::Next;
use crate::runtime::journal::{ModelResult, ToolRequest, read, unreadable};
use crate::store::runs::End;
use crate::store::steps::{Begun, Step, StepKind, StepStatus};
use serde_json::{Value, json};

/// How many attempts of a step may be lost to dying processes.
pub(in crate::runtime) const LOST_ATTEMPTS: i32 = 50;

/// Decides what comes next.
pub(in crate::runtime) fn next(journal: &[Step], definition: &Definition) -> Next {
    let Some(last) = journal.last() else {
        return begin(journal, definition, model_step(definition));
    };
    match last.status {
        StepStatus::Running => again_after_crash(last, definition),
        StepStatus::Failed => again(last, None),
        StepStatus::Completed => match following(journal) {
            Ok(Following::Tool(request, name)) => {
                begin(journal, definition, (StepKind::Tool, name, json!(request)))
            }
            Ok(Following::Model) => begin(journal, definition, model_step(definition)),
            Ok(Following::Nothing(text)) => Next::End(End::Completed {
                output: json!({ "text": text }),
                message: Some(text),
            }),
            Err(unreadable) => fail(unreadable),
        },
    }
}

fn fail(failure_message: impl Into<String>) -> Next {
    Next::End(End::Failed {
        failure_message: failure_message.into(),
    })
}

fn model_step(definition: &Definition) -> (StepKind, String, Value) {
    (StepKind::Model, definition.turn.model.clone(), json!({}))
}

fn begin(
    journal: &[Step],
    definition: &Definition,
    (kind, name, request): (StepKind, String, Value),
) -> Next {
    let step = journal.last().map_or(0, |last| last.step) + 1;
    let max = definition.limits.max_steps;
    if i64::from(step) > i64::from(max) {
        return fail(format!(
            "The turn reached its limit of {max} steps (maxSteps) before the model gave an answer."
        ));
    }
    Next::Begin {
        begun: Begun {
            step,
            kind,
            name,
            path: String::new(),
            attempt: 1,
            failures: 0,
            request,
        },
        lost_attempt: None,
    }
}

fn again_after_crash(last: &Step, definition: &Definition) -> Next {
    let lost = last.attempt - last.failures;
    if lost > LOST_ATTEMPTS {
        return fail(format!(
            "The server stopped {lost} times during step {} ({}).",
            last.step, last.name
        ));
    }
    let may_be_called_again = match last.kind {
        StepKind::Model => true,
        // A tool that the version does not have is not called at all.
        StepKind::Tool => tool_of(definition, &last.name).is_none_or(|tool| tool.idempotent),
    };
    if !may_be_called_again {
        return fail(format!(
            "The server stopped while the tool {} was being called in step {}. Nobody knows whether the call took \
             effect, and the tool is not declared idempotent, so it was not called again.",
            last.name, last.step
        ));
    }
    again(last, Some(last.attempt))
}

fn again(last: &Step, lost_attempt: Option<i32>) -> Next {
    Next::Begin {
        begun: Begun {
            step: last.step,
            kind: last.kind,
            name: last.name.clone(),
            path: last.path.clone(),
            attempt: last.attempt + 1,
            failures: last.failures,
            request: last.request.clone(),
        },
        lost_attempt,
    }
}

enum Following {
    Model,
    Tool(ToolRequest, String),
    Nothing(String),
}

/// What follows a completed step: the calls of the newest model step one after another, then the
/// model again; nothing when it asked for none.
fn following(journal: &[Step]) -> Result<Following, String> {
    let newest = journal
        .iter()
        .rposition(|step| step.kind == StepKind::Model);
    let at = newest.ok_or_else(unreadable)?;
    let asked: ModelResult = read(journal[at].result.as_ref())?;
    if asked.tool_calls.is_empty() {
        return Ok(Following::Nothing(asked.text));
    }
    let call = journal.len() - at - 1;
    Ok(match asked.tool_calls.into_iter().nth(call) {
        None => Following::Model,
        Some(wanted) => Following::Tool(
            ToolRequest {
                model_step: journal[at].step,
                call,
            },
            wanted.name,
        ),
    })
}

#[cfg(test)]
mod tests;
