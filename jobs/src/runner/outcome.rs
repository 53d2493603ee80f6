//! The outcome that a handler returns, and what the queue does with it.

use crate::Backoff;
use crate::protocol::Ending;
use std::any::Any;
use std::fmt;
use std::time::Duration;

/// A handler's outcome for its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The attempt failed. Without `after`, the queue's backoff decides when to retry.
    Retry {
        after: Option<Duration>,
        reason: String,
    },
    /// Not now; the attempt does not count.
    Snooze {
        after: Duration,
    },
    /// It can never succeed.
    Dead {
        reason: String,
    },
    /// The handler ended the job in its own transaction and committed it. If the job turns out to
    /// be still under its lease, the commit failed, and that counts as a failed attempt.
    EndedByHandler,
    /// As [`Outcome::EndedByHandler`], by a statement that reported the completion and whose commit was
    /// confirmed: the job is not checked again.
    Completed,
}

impl Outcome {
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry {
            after: None,
            reason: reason.into(),
        }
    }

    pub fn dead(reason: impl Into<String>) -> Self {
        Self::Dead {
            reason: reason.into(),
        }
    }

    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::retry(format!("panicked: {}", panic_text(panic)))
    }

    /// How the job ends after this attempt.
    pub(super) fn into_ending(self, backoff: &Backoff, attempt: u32) -> Ending {
        match self {
            Self::Done | Self::Completed => Ending::Done,
            Self::Retry { after, reason } => Ending::Retry {
                after: after.unwrap_or_else(|| backoff.after(attempt)),
                reason,
            },
            Self::Snooze { after } => Ending::Snooze { after },
            Self::Dead { reason } => Ending::Dead { reason },
            Self::EndedByHandler => Ending::Retry {
                after: backoff.after(attempt),
                reason:
                    "the handler said that it ended the job, but its transaction did not commit"
                        .into(),
            },
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with no text")
}

/// What went wrong with a handler, as an error of the log.
#[derive(Debug)]
pub(super) enum Fault {
    /// It said that the job failed, and why.
    Failed(String),
    /// It panicked.
    Panicked(String),
}

impl Fault {
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::Panicked(panic_text(panic).to_owned())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Panicked(text)) = self;
        out.write_str(text)
    }
}

impl std::error::Error for Fault {}
