//! One attempt of a step: performed, and what came of it. Nothing here writes to the journal.
//!
//! The only match on a step's kind that says what is done.

mod model;
mod tool;

pub(super) use model::lost_call;

use super::active_runs::Interrupt;
use super::clients::Clients;
use super::progress::events::StepAnswer;
use super::services::Services;
use super::turn::definition::Definition;
use crate::store::runs::{Lease, Run};
use crate::store::steps::{Begun, ModelCall, Step, StepKind};
use crate::tools::{Origin, Schemas};
use serde_json::Value;
use std::time::Duration;

/// What came of an attempt.
pub(super) struct Performed {
    /// The model call that it was.
    pub(super) call: Option<ModelCall>,
    /// Text of it may have been written.
    pub(super) has_text: bool,
    /// How it ended.
    pub(super) outcome: Outcome,
}

/// How an attempt ended.
pub(super) enum Outcome {
    /// With an answer.
    Done {
        /// For the journal.
        result: Value,
        /// For readers.
        answer: StepAnswer,
    },
    /// With a fault of the other side.
    Failed {
        /// A sentence.
        reason: String,
        /// Whether another try may help.
        retryable: bool,
        /// How long the other side asks to wait.
        retry_after: Option<Duration>,
    },
    /// It was interrupted.
    Interrupted,
}

/// What an attempt needs.
pub(super) struct Attempt<'a> {
    pub(super) services: &'a Services,
    pub(super) run: &'a Run,
    pub(super) lease: Lease,
    pub(super) definition: &'a Definition,
    pub(super) interrupt: &'a Interrupt,
    pub(super) clients: &'a mut Clients,
    pub(super) schemas: &'a mut Schemas,
}

impl Attempt<'_> {
    /// Performs the attempt that `begun` says, over the finished steps of `journal`.
    pub(super) fn perform(&mut self, journal: &[Step], begun: &Begun) -> Performed {
        match begun.kind {
            StepKind::Model => model::perform(self, journal, begun),
            StepKind::Tool => tool::perform(self, journal, begun).into(),
        }
    }

    fn origin(&self, begun: &Begun) -> Origin {
        Origin {
            run_id: self.run.run_id,
            step: begun.step,
            attempt: begun.attempt,
            dry_run: self.run.dry_run,
        }
    }
}

impl From<Outcome> for Performed {
    /// No model was called.
    fn from(outcome: Outcome) -> Self {
        Self {
            call: None,
            has_text: false,
            outcome,
        }
    }
}

impl Outcome {
    /// A fault that no other try mends, met before anything was sent.
    fn refused(reason: String) -> Self {
        Self::Failed {
            reason,
            retryable: false,
            retry_after: None,
        }
    }
}
