//! Errors that tasks raise: the fields of RFC 7807, with the types that the Open Workflow DSL names.
//!
//! Not here: who catches one (`unwind`).

use crate::failure::{Authored, Failure, Summary};
use crate::runtime::journal::call::StepFailure;
use crate::runtime::journal::decision::Next;
use crate::runtime::journal::read;
use crate::runtime::steps::kind::UNKNOWN;
use crate::store::runs::End;
use crate::store::steps::{Step, StepStatus};
use crate::text::beginning;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where the types of DSL 1.0.3 live.
const TYPES: &str = "https://serverlessworkflow.io/spec/1.0.0/errors/";

/// Of what an author says in an error, what is kept, in bytes.
const SAID_BYTES: usize = 16 * 1024;

/// Title of an error after which nobody knows whether a call took effect.
const UNKNOWN_TITLE: &str = "The outcome of the call is unknown";

/// An error that a task raised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Raised {
    /// Its type, a URI.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: u16,
    pub(super) title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    /// The JSON pointer of the task in the definition.
    pub(super) instance: String,
    /// Of a call that may have taken effect, or of the time that cut it. Absent: nothing is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<CallOutcome>,
    /// The title is the service's, or a literal of the author's: it is no data of the run. Expressions do not see this field.
    #[serde(
        default,
        rename = "titleIsLiteral",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub(super) is_title_literal: bool,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum CallOutcome {
    /// Nobody knows.
    Unknown,
}

impl Raised {
    /// An error of one of the DSL's own types.
    pub(super) fn of(
        (kind, status, title): (&str, u16, &'static str),
        detail: impl Into<String>,
        path: &str,
    ) -> Self {
        Self {
            kind: format!("{TYPES}{kind}"),
            status,
            title: title.to_owned(),
            detail: Some(detail.into()),
            instance: path.to_owned(),
            outcome: None,
            is_title_literal: true,
        }
    }

    /// Data does not fit its schema.
    pub(super) fn validation(detail: impl Into<String>, path: &str) -> Self {
        let kind = ("validation", 400, "The data does not fit its schema");
        Self::of(kind, detail, path)
    }

    /// An expression failed.
    pub(super) fn expression(detail: impl Into<String>, path: &str) -> Self {
        let kind = ("expression", 400, "The expression failed");
        Self::of(kind, detail, path)
    }

    /// Time is over.
    pub(super) fn timeout(detail: impl Into<String>, path: &str) -> Self {
        Self::of(("timeout", 408, "The time is over"), detail, path)
    }

    /// A call failed.
    pub(super) fn communication(status: u16, detail: impl Into<String>, path: &str) -> Self {
        Self::of(("communication", status, "The call failed"), detail, path)
    }

    /// A bound of the service is reached.
    pub(super) fn too_large(detail: impl Into<String>, path: &str) -> Self {
        let kind = ("runtime", 413, "The flow holds too much");
        Self::of(kind, detail, path)
    }

    /// The same, where nobody knows whether a call took effect: its detail says so, too.
    pub(super) fn with_unknown_outcome(self) -> Self {
        let detail = self.detail.as_deref().unwrap_or(&self.title);
        Self {
            outcome: Some(CallOutcome::Unknown),
            detail: Some(format!("{}. {UNKNOWN}", detail.trim_end_matches('.'))),
            ..self
        }
    }

    /// The error of another run, such as one below this one, as it was raised there.
    pub(super) fn of_value(error: &Value, path: &str) -> Option<Self> {
        let raised = Self::deserialize(error).ok()?;
        let instance = path.to_owned();
        Some(Self { instance, ..raised })
    }

    /// An error that the author of a flow raises. A missing text, or one of another type, is a default. Of long texts the
    /// beginning is kept: the error stands in the run, in its events, and with that of others in a loop around it. A title that
    /// an expression gave is data.
    ///
    /// # Errors
    /// The status is none of an error.
    pub(super) fn by_author(
        (kind, status): (&Value, &Value),
        (title, detail): (&Value, &Value),
        (path, is_title_literal): (&str, bool),
    ) -> std::result::Result<Self, Self> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(beginning(text, SAID_BYTES).to_owned()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        let status = match status {
            Value::Null => Some(500),
            // `404.0` is one, too.
            status => status
                .as_f64()
                .filter(|status| (400.0..=599.0).contains(status) && status.fract() == 0.0)
                .map(|status| status as u16),
        };
        let Some(status) = status else {
            let said = "The status of the error is no whole number from 400 to 599";
            return Err(Self::validation(said, path));
        };
        Ok(Self {
            kind: text(kind).unwrap_or_else(|| format!("{TYPES}runtime")),
            status,
            title: text(title).unwrap_or_else(|| "The flow raised an error".to_owned()),
            detail: text(detail),
            instance: path.to_owned(),
            outcome: None,
            is_title_literal,
        })
    }

    /// As expressions see it.
    pub(super) fn value(&self) -> Value {
        json!(Self {
            is_title_literal: false,
            ..self.clone()
        })
    }

    /// As it is kept for the run that began this one.
    pub(super) fn kept(&self) -> Value {
        json!(self)
    }

    /// The error of a step that failed for good.
    pub(super) fn of_step(ended: &Step, path: &str) -> Option<Self> {
        if ended.status != StepStatus::Failed {
            return None;
        }
        let failure: std::result::Result<StepFailure, String> = read(ended.result.as_ref());
        Some(match failure {
            Ok(failure) if failure.is_unknown => {
                let status = failure.status.unwrap_or(500);
                let kind = ("communication", status, UNKNOWN_TITLE);
                Self {
                    outcome: Some(CallOutcome::Unknown),
                    ..Self::of(kind, failure.reason, path)
                }
            }
            Ok(failure) => Self::communication(failure.status.unwrap_or(503), failure.reason, path),
            Err(said) => Self::unreadable(said, path),
        })
    }

    /// What a step answered, or the error of one that failed for good.
    pub(super) fn answer<T: DeserializeOwned>(
        ended: &Step,
        path: &str,
    ) -> std::result::Result<T, Self> {
        match Self::of_step(ended, path) {
            Some(raised) => Err(raised),
            None => read(ended.result.as_ref()).map_err(|said| Self::unreadable(said, path)),
        }
    }

    fn unreadable(said: String, path: &str) -> Self {
        Self::of(("runtime", 500, "The answer is unreadable"), said, path)
    }

    /// The end of a run that nothing in it handled.
    pub(super) fn end(&self) -> Next {
        Next::End(End::Failed {
            failure: self.failure(),
            error: Some(self.kept()),
        })
    }

    /// Why a run fails with it. Both texts name the task and the status. The summary has the title if that is no data.
    pub(super) fn failure(&self) -> Failure {
        let said = self.detail.as_deref().unwrap_or(&self.title);
        let said = said.trim_end_matches('.');
        let place = match self.instance.as_str() {
            "" => Summary::from("The flow"),
            path => Summary::of(&[&"The task ", &Authored(path)]),
        };
        let title = match (self.outcome, self.is_title_literal) {
            (Some(CallOutcome::Unknown), _) => Summary::of(&[&": ", &UNKNOWN_TITLE]),
            (None, true) => Summary::of(&[&": ", &Authored(self.title.trim_end_matches('.'))]),
            (None, false) => Summary::from(""),
        };
        let message = format!(
            "{} failed: {said} (status {}).",
            place.as_str(),
            self.status
        );
        let summary = Summary::of(&[
            &place,
            &" failed",
            &title,
            &" (status ",
            &self.status,
            &").",
        ]);
        Failure::quoting(message, summary)
    }
}
