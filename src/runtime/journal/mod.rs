//! The journal of a run as programs read it: what its steps were asked and what they answered.
//!
//! The rows are [`Step`](crate::store::steps::Step)s. Here are the forms of what stands in them.
//! A part that another version of this program wrote and that cannot be read is an error with a
//! sentence: the run fails with it.

pub(super) mod call;
pub mod decision;
pub mod judged;
pub mod wait;

use self::call::Unanswered;
use super::progress::events::ToolCall;
use crate::failure::Failure;
use crate::guardrails::{Blocked, OnBlock, Point};
use crate::model::Kept;
use crate::store::steps::Step;
use crate::store::tool_approvals::ToolApproval;
use crate::store::turns::Turn;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Said of a part that is missing or cannot be read.
const UNREADABLE: &str = "The run's journal cannot be read by this version of the service.";

/// What a model step answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelResult {
    /// The text.
    pub text: String,
    /// The tools that it wants called.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish_reason: Option<String>,
    /// Its reasoning, for a person to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// What the provider is handed back within the turn.
    #[serde(default, skip_serializing_if = "Kept::is_empty")]
    pub kept: Kept,
    /// Who gave it: nobody else is handed it back. None: nothing is handed back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for: Option<AskedModel>,
    /// The text is a refusal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refusal: bool,
    /// The size of what it was asked, if the model has a context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptSize>,
    /// What guardrails decided that has a consequence.
    #[serde(default, skip_serializing_if = "Checked::is_empty")]
    pub checked: Checked,
}

/// What guardrails decided of an answer, or of the input before it, where the turn does not go on as it would. What was blocked
/// stands nowhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Checked {
    /// The input, so that no model was asked, or the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<(Point, Blocked)>,
    /// Calls of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CheckedCall>,
}

/// What guardrails decided of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckedCall {
    /// Which call, from 0.
    pub call: usize,
    /// It is not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// A reviewer decides first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolApproval>,
}

impl Checked {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was decided of a call. None: it is as it would be.
    pub(super) fn call(&self, index: usize) -> Option<&CheckedCall> {
        self.calls.iter().find(|one| one.call == index)
    }

    /// The check that lets the turn fail for a call, and which call that is.
    pub(super) fn failing_call(&self) -> Option<(usize, &Blocked)> {
        let blocked = self
            .calls
            .iter()
            .filter_map(|one| Some((one.call, one.blocked.as_ref()?)));
        blocked
            .into_iter()
            .find(|(_, blocked)| blocked.on_block == OnBlock::Fail)
    }
}

/// The model that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedModel {
    /// Its provider.
    pub provider_id: Uuid,
    /// Its name.
    pub model: String,
}

impl AskedModel {
    /// That of a turn.
    pub(super) fn of(turn: &Turn) -> Self {
        Self {
            provider_id: turn.model_provider_id,
            model: turn.model.clone(),
        }
    }
}

impl ModelResult {
    /// Whether the answer was cut at its maximum length.
    pub(super) fn is_cut(&self) -> bool {
        self.finish_reason.as_deref() == Some("length")
    }
}

/// The size of what a model with a context window was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptSize {
    /// In bytes, as it was sent.
    pub bytes: u64,
    /// In the provider's tokens, if it counted them.
    pub tokens: Option<u64>,
    /// The oldest exchanges of the conversation that were left out.
    pub exchanges_left_out: usize,
    /// The newest ones, which were sent. The older ones may be erased while the turn goes on, so these are what the next call
    /// of the turn goes by. Unknown where an older program wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges_sent: Option<usize>,
}

/// What a tool step is asked. The arguments stand in the model step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolRequest {
    /// The model step that asked.
    pub model_step: i32,
    /// Which of its calls, from 0.
    pub call: usize,
    /// What became of the approval of a call that asks a reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<CallDecision>,
    /// What the tool is sent instead of the key of the step: see [`Unanswered`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// The call of a turn that its failed run made, whose answer nobody got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnansweredCall {
    /// Which call of the model step, from 0.
    pub call: usize,
    /// How it was made.
    #[serde(flatten)]
    pub made: Unanswered,
}

/// What became of the approval of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "decision",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub(super) enum CallDecision {
    /// The call may be made.
    Approved {
        /// With these arguments; none in a dry run, which asks nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// They are the reviewer's, not the model's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_edited: bool,
        /// What the reviewer said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        /// The approval; none in a dry run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<Uuid>,
    },
    /// The call is not made.
    Refused {
        /// What the model is told.
        said: String,
    },
}

impl CallDecision {
    /// What became of the approval of the call that a step makes. None: it asked nobody, or the step is no call of a model.
    pub(super) fn of(request: &Value) -> Option<Self> {
        let request = ToolRequest::deserialize(request).ok()?;
        request.decided
    }

    /// The approval that allowed the call.
    pub(super) fn approval_id(&self) -> Option<Uuid> {
        match self {
            Self::Approved { approval_id, .. } => *approval_id,
            Self::Refused { .. } => None,
        }
    }

    /// What the call is made with where that is a reviewer's.
    pub(super) fn edited(&self) -> Option<&Value> {
        match self {
            Self::Approved {
                arguments,
                is_edited: true,
                ..
            } => arguments.as_ref(),
            Self::Approved { .. } | Self::Refused { .. } => None,
        }
    }
}

/// The call that a tool step makes.
///
/// # Errors
/// A sentence, when the journal does not hold it.
pub(super) fn call_of(journal: &[Step], request: &Value) -> Result<ToolCall, String> {
    checked_call_of(journal, request).map(|(call, _)| call)
}

/// The call that a tool step makes, and what guardrails decided of it.
///
/// # Errors
/// As [`call_of`].
pub(super) fn checked_call_of(
    journal: &[Step],
    request: &Value,
) -> Result<(ToolCall, Option<CheckedCall>), String> {
    let request: ToolRequest = read(Some(request))?;
    let asked = journal.iter().find(|step| step.step == request.model_step);
    let asked: ModelResult = read(asked.and_then(|step| step.result.as_ref()))?;
    let checked = asked.checked.call(request.call).cloned();
    let call = asked.tool_calls.into_iter().nth(request.call);
    Ok((call.ok_or_else(unreadable)?, checked))
}

/// What a step answered, in bytes.
pub(super) fn bytes_of(step: &Step) -> usize {
    step.result.as_ref().map_or(0, bytes)
}

/// The text in a value, in bytes.
pub(super) fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(fields) => fields.values().map(bytes).sum(),
        _ => 0,
    }
}

/// Reads a part of the journal.
///
/// # Errors
/// A sentence, when another version of this program wrote it.
pub(super) fn read<T: serde::de::DeserializeOwned>(part: Option<&Value>) -> Result<T, String> {
    let part = part.ok_or_else(unreadable)?;
    T::deserialize(part).map_err(|_| unreadable())
}

/// The sentence for a part that is missing or cannot be read.
pub(super) fn unreadable() -> String {
    UNREADABLE.to_owned()
}

/// Why a run fails with an error of [`read`].
pub(super) fn misread(said: String) -> Failure {
    Failure::quoting(said, UNREADABLE)
}
