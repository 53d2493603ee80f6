//! What an agent's turn does next, decided from its journal alone.
//!
//! [`next`] is a pure function of a journal whose steps are all completed. The model is asked; each
//! tool that it calls is called, one after another; then the model is asked again, until it calls
//! no tool. An answer that does not fit the version's output schema is asked for again (`answer`).
//!
//! Not here: an unfinished step (`driver::recover`), and performing steps (`steps`).

use super::answer::{self, Misfit, ModelRequest, TRIES};
use super::definition::Definition;
use crate::runtime::journal::decision::{NewStep, Next};
use crate::runtime::journal::{ModelResult, ToolRequest, read, unreadable};
use crate::store::runs::End;
use crate::store::steps::{Step, StepKind};
use serde_json::json;

/// Decides what comes next.
pub(in crate::runtime) fn next(journal: &[Step], definition: &Definition) -> Next {
    let following = match journal.is_empty() {
        true => Ok(Following::Model),
        false => following(journal),
    };
    match following {
        Ok(Following::Model) => {
            let name = definition.turn.model.clone();
            begin(journal, definition, (StepKind::Model, name, json!({})))
        }
        Ok(Following::Tool(request, name)) => {
            begin(journal, definition, (StepKind::Tool, name, json!(request)))
        }
        Ok(Following::Nothing(text)) => answered(journal, definition, text),
        Err(unreadable) => fail(unreadable),
    }
}

/// The end of the turn, or the same question again where the answer does not fit the schema that it has to fit.
fn answered(journal: &[Step], definition: &Definition, text: String) -> Next {
    let schema = definition.turn.output_schema.as_ref();
    let output = match schema.map(|schema| answer::read(schema, &text)) {
        None => json!({ "text": text }),
        Some(Ok(value)) => json!({ "text": text, "json": value }),
        Some(Err(misfit)) => return corrected(journal, definition, misfit),
    };
    Next::End(End::Completed {
        output,
        message: Some(text),
    })
}

fn corrected(journal: &[Step], definition: &Definition, misfit: Misfit) -> Next {
    match answer::answers(journal) {
        Ok(answers) if answers < TRIES => {
            let request = ModelRequest {
                correction: Some(misfit.correction),
            };
            let name = definition.turn.model.clone();
            begin(journal, definition, (StepKind::Model, name, json!(request)))
        }
        Ok(_) => fail(misfit.failure()),
        Err(unreadable) => fail(unreadable),
    }
}

fn fail(failure_message: String) -> Next {
    Next::End(End::Failed {
        failure_message,
        error: None,
    })
}

fn begin(
    journal: &[Step],
    definition: &Definition,
    (kind, name, request): (StepKind, String, serde_json::Value),
) -> Next {
    let max = definition.limits.max_steps;
    if journal.len() >= usize::from(max) {
        return fail(format!(
            "The turn reached its limit of {max} steps (maxSteps) before the model gave an answer."
        ));
    }
    Next::Begin(NewStep {
        kind,
        name,
        path: String::new(),
        request,
    })
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
