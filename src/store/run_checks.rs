//! The checks that guardrails made of a run. A row says what was decided, and never the text.
//!
//! Not here: writing them, which a commit of the run does (`runs::commit`).

use crate::{from_row, texts};
use serde::Serialize;
use time::OffsetDateTime;

texts! {
    /// Where a check stands.
    Point {
        /// What the run is asked, before a model is.
        Input = "input",
        /// The arguments of a call, before the tool gets them.
        ToolArguments = "tool.arguments",
        /// What a tool answers, before the model reads it.
        ToolResult = "tool.result",
        /// Each text that a model writes.
        Output = "output",
    }
}

texts! {
    /// Whose a check is.
    CheckOrigin {
        /// The tenant's.
        Tenant = "tenant",
        /// The project's.
        Project = "project",
        /// Of the agent's version, or of the task of a flow.
        Agent = "agent",
    }
}

texts! {
    /// What a check decided.
    Verdict {
        /// Nothing was found.
        Allow = "allow",
        /// What was found goes no further.
        Block = "block",
        /// What was found was replaced.
        Redact = "redact",
        /// A reviewer decides.
        Approve = "approve",
        /// The check itself failed: see `onError`.
        Failed = "failed",
    }
}

texts! {
    /// What becomes of a text if its check fails.
    OnError {
        /// It is blocked.
        Block = "block",
        /// It goes on unchecked.
        AllowUnsafely = "allow-unsafely",
    }
}

/// A check to record, as the commit's statement reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewCheck {
    /// The step that it belongs to.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// Which of the attempt's checks, from 0.
    pub ordinal: i32,
    /// Where.
    pub point: Point,
    /// Of the arguments of a call: which of the answer's, from 0.
    pub call: Option<i32>,
    /// What the check is called.
    pub name: String,
    /// What judged.
    pub evaluator: String,
    /// Whose check it is.
    pub origin: CheckOrigin,
    /// The version of the policy that it is part of.
    pub policy_version: Option<i32>,
    /// What it decided.
    pub verdict: Verdict,
    /// What was found, in a word.
    pub code: Option<String>,
    /// What was found, or why the check failed, in a sentence.
    pub reason: Option<String>,
    /// Of a check that failed: what became of the text.
    pub on_error: Option<OnError>,
    /// Microseconds that it took.
    pub duration_us: i64,
    /// SHA-256 of the text, in hexadecimal.
    pub digest: String,
}

/// What guardrails decided in an attempt of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// The checks that were made.
    pub made: Vec<NewCheck>,
    /// What became of the run's input, if they judged it.
    pub input: Option<CheckedInput>,
}

/// What checks made of the run's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedInput {
    /// What takes its place.
    pub text: Option<String>,
    /// No model is told it, now or later.
    pub is_refused: bool,
}

/// A check that was made.
#[derive(Debug, Clone)]
pub struct RunCheck {
    /// The step that it belongs to.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// Which of the attempt's checks, from 0.
    pub ordinal: i32,
    /// Where.
    pub point: Point,
    /// Of the arguments of a call: which of the answer's, from 0.
    pub call: Option<i32>,
    /// What the check is called.
    pub name: String,
    /// What judged.
    pub evaluator: String,
    /// Whose check it is.
    pub origin: CheckOrigin,
    /// The version of the policy that it is part of.
    pub policy_version: Option<i32>,
    /// What it decided.
    pub verdict: Verdict,
    /// What was found, in a word.
    pub code: Option<String>,
    /// What was found, or why the check failed, in a sentence. None where the run was erased.
    pub reason: Option<String>,
    /// Of a check that failed: what became of the text.
    pub on_error: Option<OnError>,
    /// Microseconds that it took.
    pub duration_us: i64,
    /// SHA-256 of the text, in hexadecimal.
    pub digest: String,
    /// When it was written.
    pub created_at: OffsetDateTime,
}

from_row!(RunCheck {
    step,
    attempt,
    ordinal,
    point,
    call,
    name,
    evaluator,
    origin,
    policy_version,
    verdict,
    code,
    reason,
    on_error,
    duration_us,
    digest,
    created_at
});
