//! Steps that call something for a flow, as the journal keeps them.

use crate::ids::rfc3339;
use crate::store::approvals::EarlierCall;
use crate::store::runs::Agent;
use crate::store::steps::{Step, StepKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a tool step of a flow is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct FlowToolRequest {
    /// They may not fit the tool's schema.
    pub arguments: Value,
    /// What the tool is sent instead of the key of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// When its time is over.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub until: Option<OffsetDateTime>,
    /// A reviewer approved a call with these arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_approved: bool,
    /// The arguments are the reviewer's, not the flow's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
    /// It was made before, and nobody got the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
    /// The approval that allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
}

/// A call that an earlier run or an earlier try made, and whose answer nobody got. It is made again with its key, so that whoever got
/// it before knows it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unanswered {
    /// Its key.
    #[serde(rename = "key")]
    pub idempotency_key: String,
    /// Where they were a reviewer's: what it was made with. A call with other arguments is another call, and has another key.
    #[serde(
        default,
        rename = "editedArguments",
        skip_serializing_if = "Option::is_none"
    )]
    pub edited: Option<Value>,
    /// Nobody got it, so it did not take effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsent: bool,
    /// The approval that allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
}

impl Unanswered {
    /// What the reviewer of the same call is told. None: it did not take effect.
    pub(in crate::runtime) fn for_reviewer(&self) -> Option<EarlierCall> {
        (!self.is_unsent).then(|| EarlierCall {
            approval_id: self.approval_id,
            is_edited: self.edited.is_some(),
        })
    }

    /// Its key, for a call that a reviewer gave these arguments, or none: the same call.
    pub(in crate::runtime) fn key_for(self, edited: Option<&Value>) -> Option<String> {
        (self.edited.as_ref() == edited).then_some(self.idempotency_key)
    }
}

/// What the step of an approval is asked that has an [`Unanswered`] call made again. Earlier builds do not look for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedAgain {
    /// The tool's name in the flow.
    pub tool: String,
    /// The call.
    pub unanswered: Unanswered,
}

impl AskedAgain {
    /// What a step was asked. None: its call, if it has one, was not made before.
    pub(in crate::runtime) fn of(step: &Step) -> Option<Self> {
        let asks = step.kind == StepKind::Approval;
        let asked = asks.then(|| Self::deserialize(&step.request));
        asked.and_then(Result::ok)
    }
}

/// What an HTTP step is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct HttpRequest {
    /// In capital letters.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// In the author's order.
    pub headers: Vec<(String, String)>,
    /// Absent: none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What is sent instead of the key of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The answer is kept in base64.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_raw: bool,
    /// Redirects are answers, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_redirects: bool,
    /// A dry run has an answer, and does not make it, even if it reads alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_simulated: bool,
    /// It was made before, and nobody got the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
    /// When its time is over.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub until: Option<OffsetDateTime>,
}

/// What an HTTP step answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct HttpAnswer {
    pub status: u16,
    /// A name that came more than once has its values joined by commas.
    pub headers: Vec<(String, String)>,
    /// Text, or base64.
    pub body: String,
    /// The task takes it for an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// What a step answered that a dry run did not perform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::runtime) struct Simulated {
    /// Always true.
    pub simulated: bool,
}

/// What a step of a dry run is asked that would begin a run, and does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::runtime) struct UnbegunRun {
    /// What would run.
    pub flow_id: String,
    /// Its version.
    pub flow_version: String,
    /// Of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// What it would be given.
    pub input: Value,
}

/// Why a step failed for good, where its program handles that: the result of a failed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct StepFailure {
    /// A sentence.
    pub reason: String,
    /// Nobody knows whether the call took effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
    /// The status of the flow's error. Absent: 500 where the outcome is unknown, else 503.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Whether a task that makes an HTTP request takes an answer with this status for an error.
pub(in crate::runtime) fn is_http_error(status: u16, takes_redirects: bool) -> bool {
    let most = if takes_redirects { 399 } else { 299 };
    !(200..=most).contains(&status)
}

impl HttpRequest {
    /// Whether it may be made again when nobody knows whether it was.
    pub(in crate::runtime) fn is_repeatable(&self) -> bool {
        matches!(
            self.method.as_str(),
            "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS"
        )
    }

    /// Whether it reads alone.
    pub(in crate::runtime) fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}
