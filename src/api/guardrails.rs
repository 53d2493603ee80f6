//! `/v1/guardrails/try`: what guardrails make of a text, for those who write them. Nothing is kept.

use super::guardrail_fields::{guardrails_fault, stored};
use super::request_parts::{SOME_ID, invalid_body};
use crate::error::Result;
use crate::guardrails::{
    Cache, CheckOrigin, GUARDRAILS_MOST, Guardrail, Guards, Made, OnError, Outcome, Point, Policy,
    Streaming, Subject, Verdict,
};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::input::Nothing;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::Id;
use crate::proof::Write;
use crate::store::policies;
use crate::store::projects::Project;
use crate::tools::is_tool_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest text, in bytes.
const TEXT_MOST_BYTES: usize = 1024 * 1024;

/// The longest text with each character escaped, and guardrails.
const BODY_BYTES: u64 = 6 * TEXT_MOST_BYTES as u64 + 2 * 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Post,
            "/v1/guardrails/try",
            "guardrails.try",
            "Have guardrails judge a text: those of the policies that stand, then the ones given; nothing is kept",
            try_text,
        )
        .takes(BODY_BYTES),
    ]
}

/// A text, and what is to judge it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "projectId": SOME_ID,
    "point": "output",
    "text": "The card is 4111 1111 1111 1111.",
    "guardrails": [{"builtin": "pii", "at": ["output"], "action": "redact"}],
}))]
struct TryGuardrails {
    /// The project whose policy applies, after the tenant's.
    project_id: Id,
    /// Where the text would stand.
    point: Point,
    /// At most 1 MiB of UTF-8 without NUL; at `tool.arguments` JSON.
    #[schemars(length(max = TEXT_MOST_BYTES))]
    text: String,
    /// At `tool.arguments` and `tool.result`: the tool.
    #[schemars(length(min = 1, max = 64))]
    tool: Option<String>,
    /// Guardrails that judge after the policies', as those of an agent's version.
    #[serde(default)]
    #[schemars(length(max = GUARDRAILS_MOST))]
    guardrails: Vec<Guardrail>,
    /// False: the policies that stand do not judge.
    #[serde(default = "yes")]
    with_policies: bool,
}

fn yes() -> bool {
    true
}

impl Names<Project> for TryGuardrails {
    fn named(&self) -> Uuid {
        self.project_id.0
    }
}

/// What the checks of a text come to.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TriedVerdict {
    /// It goes on as it is.
    Allow,
    /// It goes no further.
    Block,
    /// It goes on with something replaced.
    Redact,
    /// A reviewer decides on the call.
    Approve,
}

/// What guardrails make of a text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TriedGuardrails {
    /// What the checks came to: a block counts more than an approval, and that more than a redaction.
    verdict: TriedVerdict,
    /// The text that goes on; left out if it was blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The guardrail that blocked it; left out if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<String>,
    /// Each check that was made, in order. None is made after a block.
    checks: Vec<TriedCheck>,
}

/// A check that was made of a text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TriedCheck {
    /// The guardrail's name.
    name: String,
    /// Whose it is; `agent` for one that the request gave.
    origin: CheckOrigin,
    /// The version of the policy; null for a guardrail that the request gave.
    policy_version: Option<i32>,
    /// What judged, such as `builtin:pii`.
    evaluator: String,
    verdict: Verdict,
    /// What was found, in a word; `failed` if the check itself failed; null if nothing was found.
    code: Option<String>,
    /// What was found, or why the check failed, in a sentence that never quotes the text; null if nothing was found.
    reason: Option<String>,
    /// Of a check that failed: what becomes of the text. Otherwise null.
    on_error: Option<OnError>,
    /// Microseconds that it took.
    duration_us: u64,
}

impl From<Made> for TriedCheck {
    fn from(made: Made) -> Self {
        Self {
            name: made.name,
            origin: made.origin,
            policy_version: made.policy_version,
            evaluator: made.evaluator,
            verdict: made.verdict,
            code: made.code,
            reason: made.reason,
            on_error: made.on_error,
            duration_us: made.duration_us.unsigned_abs(),
        }
    }
}

impl TriedGuardrails {
    fn new(outcome: Outcome, text: String) -> Self {
        let verdict = match &outcome {
            Outcome {
                blocked: Some(_), ..
            } => TriedVerdict::Block,
            Outcome {
                approval: Some(_), ..
            } => TriedVerdict::Approve,
            Outcome { text: Some(_), .. } => TriedVerdict::Redact,
            _ => TriedVerdict::Allow,
        };
        let goes_on = verdict != TriedVerdict::Block;
        Self {
            verdict,
            text: goes_on.then(|| outcome.text.unwrap_or(text)),
            blocked_by: outcome.blocked.map(|blocked| blocked.name),
            checks: outcome.made.into_iter().map(TriedCheck::from).collect(),
        }
    }
}

/// What the schema does not say.
fn check(body: &TryGuardrails) -> Result<()> {
    if body.text.len() > TEXT_MOST_BYTES {
        let expected = format!("at most {TEXT_MOST_BYTES} bytes");
        return Err(invalid_body("$.text", expected));
    }
    let is_of_tool = matches!(body.point, Point::ToolArguments | Point::ToolResult);
    match &body.tool {
        Some(_) if !is_of_tool => {
            let expected = "nothing, unless point is tool.arguments or tool.result";
            return Err(invalid_body("$.tool", expected));
        }
        Some(tool) if !is_tool_name(tool) => {
            let expected = "the name of a tool: 1 to 64 letters, digits, underscores and hyphens";
            return Err(invalid_body("$.tool", expected));
        }
        _ => {}
    }
    match guardrails_fault(&body.guardrails, "$.guardrails") {
        Some((path, expected)) => Err(invalid_body(&path, expected)),
        None => Ok(()),
    }
}

fn try_text(
    cx: &Cx<'_>,
    access: BodyOn<TryGuardrails, Project, Write>,
    _: Nothing,
) -> Result<Found<TriedGuardrails>> {
    let BodyOn { body, on } = access;
    check(&body)?;
    let standing = match body.with_policies {
        true => policies::standing(
            &mut cx.store().session()?,
            on.caller().tenant_id,
            on.row().project_id,
        )?,
        false => Vec::new(),
    };
    let given = stored(&body.guardrails)?;
    let given = Policy::own(&given, Streaming::held());
    let guards = Guards::new(&Cache::default(), &Policy::all(&standing, given));
    let outcome = guards.judge(&Subject {
        point: body.point,
        text: &body.text,
        tool: body.tool.as_deref(),
    });
    Ok(Found(TriedGuardrails::new(outcome, body.text)))
}
