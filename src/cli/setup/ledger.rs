//! The steps of a setup, for its report.

use serde::{Deserialize, Serialize};

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It was missing, and was created.
    Made,
    /// It was right already, or is the operator's.
    Kept,
    /// It existed, and was corrected.
    Changed,
}

/// One step. It holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) state: State,
    /// What the step is about.
    pub(super) what: String,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// The steps of one setup.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Nothing is changed; the steps are those that would be done.
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
