//! Calling an HTTP tool.
//!
//! The request is a POST of `{"tool", "arguments", "runId", "step", "dryRun"}` with the headers
//! `Idempotency-Key: <runId>-<step>`, the same for every attempt of the step, and `traceparent`.
//! The body of a 2xx answer, as text, is what the model is told. Everything else that the model
//! can mend or work around (a tool that does not exist, arguments that do not fit, another
//! status, an answer that is too long) is told to it as an error; it never fails the run.
//!
//! The tenant chose the host, so the deployment's host-access mode judges it (section 1.4).

use super::events::ToolCall;
use super::journal::ToolResult;
use super::schemas;
use crate::outbound::{Client, Failure, Kind};
use crate::store::turns::Tool;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// Of an error's body, what the model is told, in bytes.
const ERROR_BYTES: usize = 4 * 1024;

/// How a call went.
pub(super) enum Called {
    /// The model is told this.
    Answered(ToolResult),
    /// The tool was not reached, or its answer did not arrive; another try may help.
    Unreachable(String),
    /// The call was interrupted.
    Interrupted,
}

/// What a call is part of.
pub(super) struct Place {
    pub(super) run_id: Uuid,
    pub(super) step: i32,
    pub(super) attempt: i32,
    pub(super) dry_run: bool,
}

/// The schemas of a turn's tools, each compiled at its first use.
#[derive(Default)]
pub(super) struct Schemas(HashMap<String, Option<Validator>>);

/// What the model is told when it made a mistake.
pub(super) fn mistake(output: impl Into<String>) -> ToolResult {
    ToolResult {
        is_error: true,
        output: output.into(),
    }
}

impl Schemas {
    /// The call's arguments, if they fit the tool.
    pub(super) fn check(&mut self, tool: &Tool, call: &ToolCall) -> Result<Value, ToolResult> {
        let text = match call.arguments.trim() {
            "" => "{}",
            text => text,
        };
        let arguments: Value = serde_json::from_str(text)
            .map_err(|error| mistake(format!("The arguments are not JSON: {error}.")))?;
        let compiled = || schemas::compile(&tool.arguments_schema).ok();
        let validator = self.0.entry(tool.name.clone()).or_insert_with(compiled);
        let Some(validator) = validator else {
            return Err(mistake(
                "The tool cannot be called: the schema of its arguments is not valid.",
            ));
        };
        let faults: Vec<String> = validator
            .iter_errors(&arguments)
            .take(5)
            .map(|fault| {
                let shown: String = fault.to_string().chars().take(300).collect();
                format!("at {:?}: {shown}", fault.instance_path().to_string())
            })
            .collect();
        if faults.is_empty() {
            return Ok(arguments);
        }
        Err(mistake(format!(
            "The arguments do not fit the tool's schema: {}.",
            faults.join("; ")
        )))
    }
}

/// Calls the tool, and takes an answer of at most `answer_bytes`.
pub(super) fn call(
    client: &mut Client,
    tool: &Tool,
    arguments: &Value,
    place: &Place,
    answer_bytes: u64,
) -> Called {
    let body = json!({
        "tool": tool.name,
        "arguments": arguments,
        "runId": place.run_id,
        "step": place.step,
        "dryRun": place.dry_run,
    });
    let key = format!("{}-{}", place.run_id, place.step);
    let trace = traceparent(place);
    let headers = [
        ("idempotency-key", key.as_str()),
        ("traceparent", trace.as_str()),
    ];
    match client.post_json(
        &tool.url,
        &headers,
        body.to_string().as_bytes(),
        answer_bytes,
    ) {
        Ok(answer) if (200..300).contains(&answer.status) => Called::Answered(ToolResult {
            is_error: false,
            output: storable(&answer.body),
        }),
        Ok(answer) => {
            let end = answer.body.len().min(ERROR_BYTES);
            let said = storable(&answer.body[..end]);
            Called::Answered(mistake(format!(
                "The tool answered with status {}: {said}",
                answer.status
            )))
        }
        Err(failure) => failed(&failure, tool),
    }
}

fn failed(failure: &Failure, tool: &Tool) -> Called {
    if failure.kind() == Kind::Cancelled {
        return Called::Interrupted;
    }
    if failure.is_transient() && tool.idempotent {
        return Called::Unreachable(failure.message().to_owned());
    }
    Called::Answered(mistake(format!("The tool could not be called: {failure}")))
}

/// The trace of a run is its id; each attempt of a step is a span.
pub(super) fn traceparent(place: &Place) -> String {
    format!(
        "00-{}-{:08x}{:08x}-01",
        place.run_id.simple(),
        place.step,
        place.attempt
    )
}

/// Text that Postgres takes.
fn storable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: Value) -> Tool {
        Tool {
            name: "search".to_owned(),
            description: String::new(),
            arguments_schema: schema,
            url: "http://127.0.0.1:1/".to_owned(),
            timeout_ms: 1000,
            idempotent: true,
        }
    }

    fn check(schema: Value, arguments: &str) -> Result<Value, String> {
        let call = ToolCall {
            id: "1".to_owned(),
            name: "search".to_owned(),
            arguments: arguments.to_owned(),
        };
        let checked = Schemas::default().check(&tool(schema), &call);
        checked.map_err(|told| {
            assert!(told.is_error);
            told.output
        })
    }

    #[test]
    fn arguments_are_checked_against_the_schema() {
        let schema = json!({"type": "object", "required": ["q"], "additionalProperties": false,
            "properties": {"q": {"type": "string", "pattern": "^[a-z]+$"}}});
        assert_eq!(
            check(schema.clone(), r#"{"q": "a"}"#),
            Ok(json!({"q": "a"}))
        );
        for bad in [
            "{",
            "[]",
            "{}",
            r#"{"q": 1}"#,
            r#"{"q": "A"}"#,
            r#"{"q": "a", "x": 1}"#,
        ] {
            check(schema.clone(), bad).unwrap_err();
        }
        assert_eq!(check(json!({"type": "object"}), ""), Ok(json!({})));
        let told = check(schema, r#"{"q": 1}"#).unwrap_err();
        assert!(told.contains("/q"), "{told}");
    }

    #[test]
    fn a_schema_that_is_none_is_told_to_the_model() {
        let told = check(json!({"type": "no such type"}), "{}").unwrap_err();
        assert!(told.contains("not valid"), "{told}");
        let remote = check(json!({"$ref": "http://127.0.0.1:1/schema"}), "{}").unwrap_err();
        assert!(remote.contains("not valid"), "{remote}");
    }

    /// A run thread's stack has a bound, and a stack that overflows ends the process.
    #[test]
    fn the_deepest_arguments_fit_a_run_threads_stack() {
        let arguments = r#"{"a":"#.repeat(126) + "1" + &"}".repeat(126);
        let check = move || {
            let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
            let told = check(schema, &arguments).unwrap_err();
            assert!(told.contains("/a"), "{told}");
        };
        let thread = std::thread::Builder::new()
            .name("run-0".to_owned())
            .stack_size(crate::runtime::STACK_BYTES);
        thread.spawn(check).unwrap().join().unwrap();
    }

    #[test]
    fn text_is_made_fit_for_the_database() {
        assert_eq!(storable(b"a\0b\xff"), "a\u{fffd}b\u{fffd}");
    }
}
