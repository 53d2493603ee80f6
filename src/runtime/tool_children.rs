//! Calls of tools that are agents and flows of the project: each call is a run below the caller's.
//!
//! Guarantees: a call whose arguments do not fit the tool's schema begins nothing. Runs that call each other are at most
//! [`LEVELS_MOST`] levels deep, so a circle of calls ends, and whoever made the last one is told why.
//!
//! Not here: waiting for the run (`steps::child`), and which version runs (the function `tool_child` of the database).

use super::journal::decision::{ChildRun, LEVELS_MOST};
use super::journal::wait::ChildResult;
use super::turn::definition;
use crate::store::runs::{Agent, ChildState};
use crate::store::tools::TargetKind;
use crate::store::turns::{Target, Tool};
use crate::text::beginning;
use crate::tools::{Answer, Schemas};
use serde_json::Value;

/// How much of why a run failed its caller gets, in bytes.
const ERROR_BYTES: usize = 4 * 1024;

/// What a call begins, made by a run at this level. None: an HTTP server is called, or the call is not to be made at all,
/// which performing it says.
pub(super) fn of_call(tool: &Tool, level: i64, arguments: &str) -> Option<ChildRun> {
    if !tool.target.is_run() || !is_within(level) {
        return None;
    }
    let checked = Schemas::default().check(&tool.name, &tool.arguments_schema, arguments);
    let arguments = checked.ok()?;
    match &tool.target {
        Target::Http(_) => None,
        Target::Agent { runs } => runs.as_ref().map(|runs| {
            let agent = Agent {
                id: runs.id,
                version: runs.version.clone(),
                conversation_id: None,
                via: runs.via,
            };
            definition::child(agent, &arguments["message"])
        }),
        Target::Flow { runs } => runs.as_ref().map(|runs| ChildRun {
            flow_id: runs.flow_id.clone(),
            flow_version: runs.version.clone(),
            agent: None,
            input: arguments,
            branch: None,
        }),
    }
}

/// Whether a run at this level may begin others.
fn is_within(level: i64) -> bool {
    level < LEVELS_MOST
}

/// Whether a run at this level may not call the tool, whatever its arguments are, and nobody is to be asked.
pub(super) fn is_too_deep(tool: &Tool, level: i64) -> bool {
    tool.target.is_run() && !is_within(level)
}

/// Why a call is not made, as a sentence for the model. None: an HTTP server is called, or its arguments may be at fault.
pub(super) fn refusal(tool: &Tool, level: i64) -> Option<String> {
    let is_there = match &tool.target {
        Target::Http(_) => return None,
        Target::Agent { runs } => runs.is_some(),
        Target::Flow { runs } => runs.is_some(),
    };
    let (what, name) = (noun(tool.target.kind()), &tool.name);
    if is_too_deep(tool, level) {
        return Some(format!(
            "The tool {name} was not called: runs call each other at most {LEVELS_MOST} levels deep, and this one is at level \
             {level}. Go on without it."
        ));
    }
    (!is_there).then(|| {
        format!("The tool {name} cannot be called: its {what} is archived or has no version. Go on without it.")
    })
}

/// What a call of the tool reaches, in a sentence.
fn noun(target: TargetKind) -> &'static str {
    match target {
        TargetKind::Http => "server",
        TargetKind::Agent => "agent",
        TargetKind::Flow => "flow",
    }
}

/// What the caller gets of the run, in `most` bytes: of an agent its text, or its JSON where its version has an output schema;
/// of a flow its output as JSON.
pub(super) fn answer(target: TargetKind, ended: &ChildResult, most: u64) -> Answer {
    let what = noun(target);
    if ended.status != ChildState::Completed.text() {
        let said = match &ended.failure_message {
            Some(why) => format!("The {what} failed: {}", beginning(why, ERROR_BYTES)),
            None => format!("The {what} was cancelled."),
        };
        let status = ended.error.as_ref().map(|error| &error["status"]);
        let status = status.and_then(Value::as_u64);
        return Answer {
            status: status.and_then(|status| u16::try_from(status).ok()),
            ..Answer::error(said)
        };
    }
    let output = ended.output.clone().unwrap_or_default();
    let text = match (target, output.get("json")) {
        (TargetKind::Agent, None) => output["text"].as_str().unwrap_or_default().to_owned(),
        (TargetKind::Agent, Some(json)) => json.to_string(),
        (TargetKind::Flow | TargetKind::Http, _) => output.to_string(),
    };
    let bytes = text.len();
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > most) {
        return Answer::error(format!(
            "The {what} answered with {bytes} bytes, and at most {most} are taken."
        ));
    }
    Answer::of(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    fn ended(status: &str, output: Value) -> ChildResult {
        ChildResult {
            run_id: Uuid::nil(),
            status: status.to_owned(),
            output: Some(output),
            failure_message: None,
            error: None,
            usage: None,
        }
    }

    #[test]
    fn what_a_run_answered_is_the_tools_answer() {
        let of = |target, output| answer(target, &ended("completed", output), 20);
        let text = of(TargetKind::Agent, json!({"text": "sunny"}));
        assert_eq!((text.is_error, text.output.as_str()), (false, "sunny"));
        let fitting = of(TargetKind::Agent, json!({"text": "{ }", "json": {"a": 1}}));
        assert_eq!(fitting.output, r#"{"a":1}"#);
        // A flow may answer with the same fields, and they are its own.
        let flow = of(TargetKind::Flow, json!({"json": 1}));
        assert_eq!(flow.output, r#"{"json":1}"#);
        assert_eq!(of(TargetKind::Flow, json!("5")).output, r#""5""#);
        assert_eq!(of(TargetKind::Flow, Value::Null).output, "null");
        let long = of(TargetKind::Agent, json!({"text": "a".repeat(21)}));
        assert!(long.is_error, "{long:?}");
        assert_eq!(
            long.output,
            "The agent answered with 21 bytes, and at most 20 are taken."
        );
    }

    #[test]
    fn the_caller_is_told_why_a_run_failed() {
        let failed = ChildResult {
            failure_message: Some("No order.".to_owned()),
            error: Some(json!({"status": 404})),
            ..ended("failed", Value::Null)
        };
        let said = answer(TargetKind::Flow, &failed, 1000);
        assert_eq!(said.status, Some(404));
        assert_eq!(said.output, "The flow failed: No order.");
        let cancelled = answer(TargetKind::Agent, &ended("cancelled", Value::Null), 1000);
        assert_eq!(cancelled, Answer::error("The agent was cancelled."));
    }
}
