//! What a setup did, step by step.

use serde::{Deserialize, Serialize};

/// What became of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It was not there.
    Made,
    /// It was as it should be, or is the operator's.
    Kept,
    /// It was there, and something about it was put right.
    Changed,
}

/// One step. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) state: State,
    /// The thing.
    pub(super) what: String,
    /// What there is to know of it beside that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// The steps of one setup.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Nothing is changed; steps say what would be.
    pub(super) dry_run: bool,
    pub(super) steps: Vec<Step>,
}

impl Ledger {
    pub(super) fn enter(&mut self, state: State, what: impl Into<String>, note: Option<&str>) {
        self.steps.push(Step {
            state,
            what: what.into(),
            note: note.map(str::to_owned),
        });
    }
}
