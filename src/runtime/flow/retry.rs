//! Where a run goes on that takes up a failed run of a flow: at the newest step of that, which is done, or begins again, or
//! waits for runs of which some are done.
//!
//! Guarantees: a step that is done is not done again. It is not done if it has no answer, or if its answer was an error. A call
//! without a recorded answer is made again with its key, so that whoever got it before knows it again. What was left of the
//! times of tasks when the step began is left again; the time of the whole flow counts from the new run's begin.
//!
//! Not here: the rows of the new run (`runtime::retry`).

use super::Flow;
use super::machine::{Machine, Move};
use super::state::{At, State};
use super::unanswered::{self, unanswered};
use crate::error::{Code, Error, Result};
use crate::runtime::journal::call::AskedAgain;
use crate::runtime::journal::decision::Next;
use crate::store::flow_states::FlowState;
use crate::store::steps::{Step, StepKind, StepStatus};
use serde_json::Value;
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
    /// Where the run stands that took up another, and failed before it began a step: as that one did, with the times of its
    /// tasks moved.
    pub(in crate::runtime) fn stands_again(
        &self,
        now: OffsetDateTime,
    ) -> Result<Option<FlowState>> {
        let state = self.state.as_ref().map(State::of_row).transpose()?;
        let Some(mut state) = state.filter(State::begins_again) else {
            return Ok(None);
        };
        state.move_deadlines(now - self.about.started_at);
        self.row_of(&state, "").map(Some)
    }

    /// The call of an earlier run whose answer nobody got, and that the run did not come to make, as its step.
    pub(in crate::runtime) fn not_made_again(&self, newest: Option<&Step>) -> Option<Step> {
        let asked = newest.and_then(|step| Some((step, AskedAgain::of(step)?)));
        if let Some((newest, again)) = asked.filter(|(_, again)| !again.unanswered.is_unsent) {
            return Some(Step {
                kind: StepKind::Tool,
                name: again.tool,
                status: StepStatus::Running,
                result: None,
                ..newest.clone()
            });
        }
        let state = State::of_row(self.state.as_ref()?).ok()?;
        let At::Again { unanswered, .. } = &state.frames.last()?.at else {
            return None;
        };
        unanswered.as_ref().filter(|before| !before.is_unsent)?;
        let (definition, about) = (&self.known.definition, &self.about);
        let mut machine = Machine::new(definition, about, state, about.started_at);
        let Ok(Move::Effect(_, next)) = machine.begin_again() else {
            return None;
        };
        let (kind, name, request) = match next {
            Next::Begin(step) => (step.kind, step.name, step.request),
            Next::Ask { again, .. } => (StepKind::Tool, again?.tool, Value::Null),
            _ => return None,
        };
        Some(Step {
            step: 0,
            kind,
            name,
            path: String::new(),
            status: StepStatus::Running,
            attempt: 1,
            failures: 0,
            request,
            result: None,
            started_at: about.started_at,
            completed_at: None,
        })
    }

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
            let tries = match innermost.at {
                At::Pause(tries) => Some(tries),
                _ => None,
            };
            innermost.at = At::Again {
                unanswered: unanswered(run_id, newest),
                tries,
            };
        }
        let moved = self.row_of(&state, &newest.path)?;
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

    fn row_of(&self, state: &State, path: &str) -> Result<FlowState> {
        let row = state.row(&self.about.limits, path);
        // The operator may allow less than when it failed.
        row.map_err(|raised| Error::new(Code::Conflict, raised.failure().message))
    }
}

/// Whether nobody knows what became of a step.
pub(in crate::runtime) fn is_unknown(newest: &Step) -> bool {
    newest.result.is_none() || unanswered::is_unknown(newest)
}
