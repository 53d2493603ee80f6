//! What the event of a step's end says of its answer. Not here: the events (`events`).

use crate::runtime::journal::judged::TextVerdict;
use crate::store::approvals::ApprovalStatus;
use crate::store::steps::{Counts, StepKind};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// What a step answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StepAnswer {
    /// What a model answered.
    #[serde(rename_all = "camelCase")]
    #[schemars(title = "ModelStepAnswer", transform = of_kind(StepKind::Model))]
    Model {
        /// The whole text; it replaces what was streamed.
        text: String,
        /// The tools that it wants called.
        tool_calls: Vec<ToolCall>,
        /// Why it stopped: `stop`, `length` (the answer was cut at its maximum length) or `tool_calls`.
        finish_reason: Option<String>,
        /// The model's reasoning can be read with the run's steps; absent without any.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_reasoning: bool,
        /// What the provider counted; null where it counted nothing.
        tokens: TokenCounts,
    },
    /// What a tool answered.
    #[serde(rename_all = "camelCase")]
    #[schemars(title = "ToolStepAnswer", transform = of_kind(StepKind::Tool))]
    Tool {
        /// Whether the model was told of an error.
        is_error: bool,
        /// What the model was told, cut after 16 KiB.
        output: String,
        /// Whether it was cut.
        output_truncated: bool,
    },
    /// How child runs ended.
    #[schemars(title = "ChildStepAnswer", transform = of_kind(StepKind::Child))]
    Child {
        /// In the order in which they were begun.
        children: Vec<ChildEnd>,
    },
    /// How an approval was closed.
    #[serde(rename_all = "camelCase")]
    #[schemars(title = "ApprovalStepAnswer", transform = of_kind(StepKind::Approval))]
    Approval {
        /// Null in a dry run, which opens none.
        approval_id: Option<Uuid>,
        /// How it was closed.
        decision: ApprovalStatus,
    },
    /// What guardrails decided of a text, which the event does not have.
    #[serde(rename_all = "camelCase")]
    #[schemars(title = "GuardrailStepAnswer", transform = of_kind(StepKind::Guardrail))]
    Guardrail {
        /// What they decided.
        verdict: TextVerdict,
        /// The check that blocked the text; absent otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blocked_by: Option<String>,
        /// What was found, in a word; absent if that is nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// What a server answered to an HTTP request.
    #[serde(rename_all = "camelCase")]
    #[schemars(title = "HttpStepAnswer", transform = of_kind(StepKind::Http))]
    Http {
        /// The status that the server answered with.
        status_code: u16,
    },
    /// What a dry run did not perform.
    #[schemars(title = "SimulatedStepAnswer", transform = of_call)]
    Simulated {
        /// Always true.
        simulated: bool,
    },
    /// A wait is over. Last, since it reads from anything.
    #[schemars(title = "WaitStepAnswer", transform = of_kind(StepKind::Wait))]
    Wait {},
}

/// Calls, and runs that are begun, are left out in a dry run. Guardrails are if it was started with an answer for them.
fn of_call(answer: &mut Schema) {
    let kinds = [
        StepKind::Tool,
        StepKind::Http,
        StepKind::Child,
        StepKind::Guardrail,
    ];
    let kinds = kinds.map(StepKind::text);
    put_kind(answer, json!({"type": "string", "enum": kinds}));
}

/// The step's own `type` tells its answers apart, so each names the one that it belongs to.
fn of_kind(kind: StepKind) -> impl FnMut(&mut Schema) {
    move |answer| put_kind(answer, json!({"type": "string", "const": kind.text()}))
}

fn put_kind(answer: &mut Schema, kind: Value) {
    let fields = answer.ensure_object().entry("properties");
    let fields = fields.or_insert_with(|| json!({})).as_object_mut();
    fields.and_then(|fields| fields.insert("type".to_owned(), kind));
}

/// How a child run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildEnd {
    /// The child.
    pub run_id: Uuid,
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The model's id of the call.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, if it did well.
    pub arguments: String,
}

/// What a provider counted in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCounts {
    /// What the model read.
    pub prompt: Option<i64>,
    /// What it wrote.
    pub completion: Option<i64>,
    /// Of the prompt: read from a cache.
    pub cache_read: Option<i64>,
    /// Of the prompt: written to a cache.
    pub cache_write: Option<i64>,
    /// Of the completion: reasoning.
    pub reasoning: Option<i64>,
}

impl From<Counts> for TokenCounts {
    fn from(counts: Counts) -> Self {
        Self {
            prompt: counts.prompt_tokens,
            completion: counts.completion_tokens,
            cache_read: counts.cache_read_tokens,
            cache_write: counts.cache_write_tokens,
            reasoning: counts.reasoning_tokens,
        }
    }
}
