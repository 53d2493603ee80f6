//! Steps in which guardrails judge a text for a flow, as the journal keeps them.

use crate::guardrails::{Outcome, Verdict};
use crate::texts;
use serde::{Deserialize, Serialize};

texts! {
    /// What guardrails decided of a text.
    TextVerdict {
        /// It goes on as it is.
        Allow = "allow",
        /// It goes no further.
        Block = "block",
        /// What was found in it was replaced.
        Redact = "redact",
    }
}

/// What the step answers, and the task. The text that was judged is in it only where it goes on as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runtime) struct JudgedText {
    /// What was decided.
    pub verdict: TextVerdict,
    /// What is left. None: it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The check that blocked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What was found, in a word. Of a text that is allowed: `failed`, where a check failed that lets it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl JudgedText {
    /// What the checks of a text came to.
    pub(in crate::runtime) fn of(text: String, outcome: Outcome) -> Self {
        let code_of = |verdict: Verdict| {
            let mut made = outcome.made.iter();
            let first = made.find(|made| made.verdict == verdict);
            first.and_then(|made| made.code.clone())
        };
        if let Some(blocked) = outcome.blocked {
            // The first block ends.
            let code = outcome.made.last().and_then(|made| made.code.clone());
            return Self {
                verdict: TextVerdict::Block,
                text: None,
                name: Some(blocked.name),
                code,
            };
        }
        let (verdict, code) = match outcome.text {
            Some(_) => (TextVerdict::Redact, code_of(Verdict::Redact)),
            None => (TextVerdict::Allow, code_of(Verdict::Failed)),
        };
        Self {
            verdict,
            text: Some(outcome.text.unwrap_or(text)),
            name: None,
            code,
        }
    }
}
