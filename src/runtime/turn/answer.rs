//! The answer of a turn whose agent's version has an output schema: JSON that fits it.
//!
//! A model whose answer does not fit is asked again, in another step of the turn whose request says why the one before did not
//! fit. After [`TRIES`] answers in a row that do not fit the turn fails. What it says then names a place in the schema and
//! nothing of the answer, because a webhook event has it.

use crate::failure::{Authored, Failure};
use crate::json::{SENT_NESTING_MOST, is_nested_deeper};
use crate::runtime::journal::{self, ModelResult, UnansweredCall};
use crate::store::steps::{Step, StepKind};
use crate::tools::schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How often a model may answer before its turn fails.
pub(super) const TRIES: usize = 3;

/// What a model step is asked beside what was said before it.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::runtime) struct ModelRequest {
    /// Why the answer before it did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) correction: Option<String>,
    /// Of a step that was taken over: which of the calls that it asked for is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::runtime) unanswered: Option<UnansweredCall>,
}

/// An answer that does not fit.
#[derive(Debug, PartialEq)]
pub(super) struct Misfit {
    /// For the model.
    pub(super) correction: String,
    /// For readers of the run's end.
    place: String,
}

impl Misfit {
    /// Why the turn fails.
    pub(super) fn failure(&self) -> Failure {
        Failure::of(&[
            &"The model's answer did not fit the output schema (outputSchema) of the agent's version, ",
            &TRIES,
            &" times in a row; ",
            // A place in the author's schema, and nothing of the answer.
            &Authored(&self.place),
            &". Say in the instructions what is wanted, simplify the schema, or use a model that follows schemas.",
        ])
    }
}

/// Reads an answer.
///
/// # Errors
/// It is not JSON, or does not fit.
pub(super) fn read(schema: &Value, text: &str) -> Result<Value, Misfit> {
    let misfit = |why: &str, place: String| Misfit {
        correction: format!(
            "Your answer cannot be used: {why}. Answer again, with JSON alone and no text around it, that fits this JSON Schema: {schema}"
        ),
        place,
    };
    let answer: Value = serde_json::from_str(text.trim_ascii()).map_err(|error| {
        misfit(
            &format!("it is not JSON ({error})"),
            "the last one was not JSON".to_owned(),
        )
    })?;
    if is_nested_deeper(&answer, SENT_NESTING_MOST) {
        return Err(misfit(
            &format!("it nests deeper than {SENT_NESTING_MOST} levels of arrays and objects"),
            format!("the last one nested deeper than {SENT_NESTING_MOST} levels"),
        ));
    }
    let validator = schema::compile(schema).map_err(|fault| {
        let place = format!("the schema is not valid at {:?}", fault.path);
        misfit("its schema is not valid", place)
    })?;
    match schema::faults(&validator, &answer) {
        None => Ok(answer),
        Some(faults) => {
            let broken = validator.iter_errors(&answer).next();
            let broken = broken.map(|fault| fault.schema_path().to_string());
            let place = format!("the last one broke {:?}", broken.unwrap_or_default());
            Err(misfit(
                &format!("it does not fit its schema: {faults}"),
                place,
            ))
        }
    }
}

/// How many answers stand at the end of the journal: steps of the model that called no tool.
///
/// # Errors
/// A sentence, when another version of this program wrote the journal.
pub(in crate::runtime) fn answers(journal: &[Step]) -> Result<usize, String> {
    let mut count = 0;
    for step in journal.iter().rev() {
        if step.kind != StepKind::Model {
            break;
        }
        let result: ModelResult = journal::read(step.result.as_ref())?;
        if !result.tool_calls.is_empty() {
            break;
        }
        count += 1;
    }
    Ok(count)
}

/// What a version's instructions say of the schema where the request does not name it.
pub(super) fn instruction(schema: &Value) -> String {
    format!("Answer with JSON alone and no text around it, that fits this JSON Schema: {schema}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_nests_so_deep_and_no_deeper() {
        let schema = json!({"type": "object"});
        let answer = |levels: usize| {
            let inner = levels - 1;
            format!("{{\"a\": {}{}}}", "[".repeat(inner), "]".repeat(inner))
        };
        assert!(read(&schema, &answer(SENT_NESTING_MOST)).is_ok());
        let misfit = read(&schema, &answer(SENT_NESTING_MOST + 1)).unwrap_err();
        assert!(misfit.correction.contains("64 levels"), "{misfit:?}");
    }
}
