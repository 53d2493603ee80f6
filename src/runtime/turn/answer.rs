//! The answer of a turn whose agent's version has an output schema: JSON that fits it.
//!
//! A model whose answer does not fit is asked again, in another step of the turn whose request says why the one before did not
//! fit. After [`TRIES`] answers in a row that do not fit the turn fails. What it says then names a place in the schema and
//! nothing of the answer, because a webhook event has it.

use crate::failure::{Authored, Failure};
use crate::json::{SENT_NESTING_MOST, is_nested_deeper};
use crate::runtime::journal::{self, ModelResult, UnansweredCall};
use crate::store::steps::{Step, StepKind};
use crate::text::{beginning, sentence};
use crate::tools::schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How often a model may answer before its turn fails.
pub(super) const TRIES: usize = 3;

/// The longest answer in which JSON is looked for beside other text, in bytes, and in how many places.
const SEARCHED_BYTES_MOST: usize = 1024 * 1024;
const SEARCHED_PLACES_MOST: usize = 100;

/// How much of a refusal a failure quotes, in bytes.
const REFUSAL_BYTES: usize = 500;

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

/// Why a turn fails whose answer does not fit and would not if it was asked for again.
pub(super) fn lasting(said: &ModelResult) -> Option<Failure> {
    if said.is_refusal {
        let quoted = beginning(&said.text, REFUSAL_BYTES);
        let whole = format!("The model refused to answer: {}", sentence(quoted));
        return Some(Failure::quoting(whole, "The model refused to answer."));
    }
    said.is_cut().then(|| {
        Failure::of(&[
            &"The model's answer reached its maximum length (finish_reason length) before its JSON was complete. Raise \
              maxOutputTokens of the version's limits or maxTokens of its parameters, have the model reason less, or ask for \
              a shorter answer.",
        ])
    })
}

/// Reads an answer: JSON, which may be fenced, in tags, or have text around it.
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
    let answer = value_in(text).map_err(|why| {
        misfit(
            &format!("it is not JSON ({why})"),
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

/// The one JSON value of a text.
fn value_in(text: &str) -> Result<Value, String> {
    let text = text.trim_ascii();
    let error = match serde_json::from_str(text) {
        // Some models write the JSON as a string.
        Ok(Value::String(inner)) => {
            return match serde_json::from_str(&inner) {
                Ok(value @ Value::Object(_)) => Ok(value),
                _ => Ok(Value::String(inner)),
            };
        }
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    if text.len() > SEARCHED_BYTES_MOST {
        return Err(error);
    }
    let (mut found, mut at) = (None, 0);
    for _ in 0..SEARCHED_PLACES_MOST {
        let Some(next) = text[at..].find(['{', '[']) else {
            return found.ok_or(error);
        };
        at += next;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
        let value = values.next().and_then(Result::ok);
        at += value.as_ref().map_or(1, |_| values.byte_offset());
        if let Some(value) = value.filter(is_answer) {
            // Some models and servers say it twice.
            if found.as_ref().is_some_and(|found| *found != value) {
                return Err("it has several JSON values".to_owned());
            }
            found = Some(value);
        }
    }
    Err(error)
}

/// Whether a value beside other text may be the answer: not the `[1]` of a citation.
fn is_answer(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        _ => true,
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

/// How many answers in a row a guardrail has blocked at the end of the journal.
///
/// # Errors
/// As [`answers`].
pub(super) fn blocked_answers(journal: &[Step]) -> Result<usize, String> {
    let mut count = 0;
    for step in journal.iter().rev() {
        if step.kind != StepKind::Model {
            break;
        }
        let result: ModelResult = journal::read(step.result.as_ref())?;
        if result.checked.blocked.is_none() {
            break;
        }
        count += 1;
    }
    Ok(count)
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

    #[test]
    fn what_stands_around_one_value_is_taken_off() {
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
        for text in [
            r#"{"ok":true}"#,
            "\u{feff}\n{\"ok\":true}\n",
            "```json\n{\"ok\":true}\n```",
            "```\n{\"ok\": true}```\n",
            "<answer>{\"ok\":true}</answer>",
            "Here it is:\n{\"ok\":true}",
            "As {they} say [1], it is {\"ok\":true}. [2]",
            "{\"ok\":true}\n{\"ok\": true}",
            r#""{\"ok\": true}""#,
        ] {
            assert_eq!(read(&schema, text), Ok(json!({"ok": true})), "{text}");
        }
        for text in [
            "",
            "I would.",
            "{\"ok\":tr",
            "{\"ok\":true} or {\"ok\":false}",
            "The list: [{\"ok\":true}]",
        ] {
            assert!(read(&schema, text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_search_has_a_bound() {
        for text in [
            "[".repeat(1 << 20),
            "{\"a\":\"".repeat(1 << 17),
            "x{".repeat(1 << 22),
        ] {
            assert!(value_in(&text).is_err());
        }
    }
}
