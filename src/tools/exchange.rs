//! The input and the result of a tool call.

use super::credentials::Credentials;
use crate::log::trace::TraceContext;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The attempt of a step that makes a call.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The run.
    pub run_id: Uuid,
    /// Its step.
    pub step: i32,
    /// The step's attempt.
    pub attempt: i32,
    /// The tool is to change nothing.
    pub dry_run: bool,
    /// The attempt's span.
    pub trace: TraceContext,
}

impl Origin {
    /// The header `traceparent`: the trace of what started the run, the span of this attempt.
    pub fn traceparent(&self) -> String {
        self.trace.traceparent()
    }

    /// The key that a receiver can tell a repeated call by: the same for every attempt of the step.
    pub fn idempotency_key(&self) -> String {
        idempotency_key(self.run_id, self.step)
    }
}

/// The key of the calls that a step of a run makes.
pub fn idempotency_key(run_id: Uuid, step: i32) -> String {
    format!("{run_id}-{step}")
}

/// What a tool is asked.
#[derive(Clone)]
pub struct Input<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// They fit its schema.
    pub arguments: &'a Value,
    /// Where the call comes from.
    pub origin: Origin,
    /// What the tool is sent to tell a repeated call by.
    pub idempotency_key: String,
    /// What the call proves itself with.
    pub credentials: &'a Credentials,
    /// When it is made, in Unix seconds.
    pub timestamp: i64,
    /// The longest answer that is taken, in bytes.
    pub answer_bytes: u64,
}

/// How a call went.
#[derive(Debug)]
pub enum Called {
    /// The tool answered, or cannot be called as it is.
    Answered(Answer),
    /// No answer arrived that can be read.
    Unanswered {
        /// A sentence.
        reason: String,
        /// Whether another try may help.
        is_transient: bool,
        /// Whether the tool may have got the call, so that nobody knows whether it took effect.
        is_unknown: bool,
    },
    /// The switch cut it.
    Interrupted,
}

/// A tool's answer, as the model gets it. The journal keeps it in this form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Whether it is an error.
    pub is_error: bool,
    /// The answer, or what went wrong.
    pub output: String,
    /// Of an error: the HTTP status that the tool answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Of an error: the call was not made, because its arguments do not fit the tool's schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unfit: bool,
    /// Of an error: the tool may have got the call, so that nobody knows whether it took effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

impl Answer {
    /// What the tool answered.
    pub fn of(output: impl Into<String>) -> Self {
        Self {
            is_error: false,
            ..Self::error(output)
        }
    }

    /// An error that the model can mend or work around.
    pub fn error(output: impl Into<String>) -> Self {
        Self {
            is_error: true,
            output: output.into(),
            status: None,
            is_unfit: false,
            is_unknown: false,
        }
    }
}
