//! How a run ends. Not here: the commit that writes it (`commit`), and what an ended run came to (`ended`).

use super::rows::Status;
use super::storable;
use crate::failure::Failure;
use serde_json::Value;
use std::borrow::Cow;

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With an output, and for an agent's turn with the assistant's message.
    Completed {
        /// The run's output.
        output: Value,
        /// What the assistant said.
        message: Option<String>,
    },
    /// With a failure.
    Failed {
        /// Why.
        failure: Failure,
        /// Of a flow: the error that nothing in it handled, for the run that began it.
        error: Option<Value>,
    },
    /// Because it was asked to.
    Cancelled,
}

/// Failure, output and assistant's message of an end, as Postgres takes them.
pub(super) type EndParts<'a> = (
    Option<Cow<'a, str>>,
    Option<Cow<'a, Value>>,
    Option<Cow<'a, str>>,
);

impl End {
    /// How the run stands with it.
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Failed,
            Self::Cancelled => Status::Cancelled,
        }
    }

    /// Why it failed.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure, .. } => Some(failure),
            Self::Completed { .. } | Self::Cancelled => None,
        }
    }

    /// Failure, output and assistant's message.
    pub(super) fn parts(&self) -> EndParts<'_> {
        match self {
            Self::Completed { output, message } => (
                None,
                Some(storable::value(output)),
                message.as_deref().map(storable::text),
            ),
            Self::Failed { failure, .. } => (Some(storable::text(&failure.message)), None, None),
            Self::Cancelled => (None, None, None),
        }
    }
}
