//! Why an answer cannot be used, and the sentence that says so.

use super::super::ModelFailure;
use crate::failure::Failure;

/// Why an answer cannot be assembled.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::model) enum Unfit {
    /// It has too much of something.
    TooLarge(&'static str),
    /// It does not have the shape of a chat completion.
    Malformed(&'static str),
    /// The provider's content filter stopped it.
    Filtered,
    /// It ended early.
    Cut,
    /// It ended before it began.
    Silent,
    /// It ended with a reason that is no end of an answer: the provider's word.
    Ended(String),
    /// It has neither text nor a call, and why.
    Empty(&'static str),
}

/// Why an answer may be empty.
pub(super) const NOTHING: &str = "it has neither text nor a call of a tool";
pub(super) const REASONING_ALONE: &str = "it has reasoning, and neither text nor a call of a tool";
pub(super) const CUT_REASONING: &str = "it reached its maximum length before any text or call of a tool. Raise maxTokens, if it is set";
pub(super) const MALFORMED_CALL: &str =
    "the model called a tool, and its server could not read the call";

impl Unfit {
    /// The failure of the call. Another try may help against all but bounds and filters.
    pub(in crate::model) fn failure(&self) -> ModelFailure {
        ModelFailure {
            is_silent: matches!(self, Self::Silent | Self::Empty(NOTHING)),
            ..self.said()
        }
    }

    fn said(&self) -> ModelFailure {
        match self {
            Self::TooLarge(what) => ModelFailure::new(
                Failure::of(&[&"The model provider's answer is too large: ", what, &"."]),
                false,
            ),
            Self::Malformed(what) => ModelFailure::new(
                Failure::of(&[
                    &"The model provider's answer is not a chat completion: ",
                    what,
                    &".",
                ]),
                true,
            ),
            Self::Filtered => ModelFailure::new(
                "The model provider's content filter stopped the answer.",
                false,
            ),
            Self::Cut | Self::Silent => {
                ModelFailure::new("The model provider's answer was cut off.", true)
            }
            Self::Ended(reason) => ModelFailure::new(
                Failure::quoting(
                    format!(
                        "The model provider broke the answer off: its finish_reason is \"{reason}\"."
                    ),
                    "The model provider broke the answer off.",
                ),
                true,
            ),
            Self::Empty(why) => ModelFailure::new(
                Failure::of(&[&"The model gave an empty answer: ", why, &"."]),
                true,
            ),
        }
    }
}
