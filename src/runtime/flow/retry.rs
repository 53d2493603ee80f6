//! Where a run goes on that takes up a failed run of a flow: at the newest step of that, which is done, or begins again, or
//! waits for runs of which some are done.
//!
//! Guarantees: a step that is done is not done again. It is not done if it has no answer, or if its answer was an error. A call
//! without a recorded answer is made again with its key, so that whoever got it before knows it again. What was left of the
//! times of tasks when the step began is left again; the time of the whole flow counts from the new run's begin.
//!
//! Not here: the rows of the new run (`runtime::retry`).

use super::Flow;
use super::machine::Machine;
use super::state::{At, State};
use crate::error::{Error, Result};
use crate::runtime::journal::call::StepFailure;
use crate::runtime::journal::read;
use crate::store::flow_states::FlowState;
use crate::store::steps::{Step, StepKind, StepStatus};
use crate::tools::idempotency_key;
use time::OffsetDateTime;
use uuid::Uuid;

/// Where the new run stands.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runtime) enum Stand {
    /// After the newest step, which is done.
    After(FlowState),
    /// Before the task of the newest step.
    Again(FlowState),
    /// In the newest step, which waits for runs.
    Waits(FlowState),
}

impl Flow {
    /// Where the run stands with its newest step. `waits`: that waits for runs which can be taken up.
    pub(in crate::runtime) fn stand(
        &self,
        run_id: Uuid,
        newest: &Step,
        waits: bool,
        now: OffsetDateTime,
    ) -> Result<Stand> {
        let Some(row) = &self.state else {
            return Err(Error::internal("a flow that has begun a step has no state"));
        };
        let mut state = State::of_row(row)?;
        let is_done = self.is_done(state.clone(), newest);
        let ended = newest.completed_at.filter(|_| is_done);
        state.move_deadlines(now - ended.unwrap_or(newest.started_at));
        if !is_done && !waits {
            let innermost = state.frames.last_mut();
            let innermost = innermost.ok_or_else(|| Error::internal("a flow has no task"))?;
            innermost.at = At::Again {
                key: unanswered_key(run_id, newest),
            };
        }
        let moved = state.row(&newest.path);
        let moved = moved.map_err(|raised| Error::internal(raised.sentence()))?;
        Ok(match (is_done, waits) {
            (true, _) => Stand::After(moved),
            (false, true) => Stand::Waits(moved),
            (false, false) => Stand::Again(moved),
        })
    }

    /// Whether a step has an answer that is no error.
    fn is_done(&self, state: State, newest: &Step) -> bool {
        if newest.status == StepStatus::Running || newest.result.is_none() {
            return false;
        }
        let then = newest.completed_at.unwrap_or(newest.started_at);
        let mut machine = Machine::new(&self.known.definition, &self.about, state, then);
        machine.resume(newest).is_ok()
    }
}

/// Whether nobody knows what became of a step.
pub(in crate::runtime) fn is_unknown(newest: &Step) -> bool {
    match &newest.result {
        None => true,
        Some(result) if newest.status == StepStatus::Failed => {
            let failure: Result<StepFailure, String> = read(Some(result));
            failure.is_ok_and(|failure| failure.is_unknown)
        }
        Some(_) => false,
    }
}

/// The key of a call that has no recorded answer.
fn unanswered_key(run_id: Uuid, newest: &Step) -> Option<String> {
    let is_call = matches!(newest.kind, StepKind::Tool | StepKind::Http);
    let is_answered = newest.status == StepStatus::Completed;
    let own = newest.request["idempotencyKey"].as_str();
    let key = || match own {
        Some(own) => own.to_owned(),
        None => idempotency_key(run_id, newest.step),
    };
    (is_call && !is_answered).then(key)
}
