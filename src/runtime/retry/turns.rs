//! What is taken over of the journal of an agent's turn, or of a built-in program, and what is refused.
//!
//! Guarantees: a call without a recorded answer is made again with the key that it had.
//!
//! Not here: flows (`tree`).

use crate::error::{Code, Error, Result};
use crate::proof::{May, Read};
use crate::runtime::journal::call::Unanswered;
use crate::runtime::journal::{
    CallDecision, ModelResult, ToolRequest, UnansweredCall, read, unreadable,
};
use crate::runtime::steps::kind::{UnknownCall, unknown_call};
use crate::runtime::turn::answer::{self, ModelRequest};
use crate::store::runs::Run;
use crate::store::steps::{Step, StepKind, StepStatus};
use crate::store::{Sql, turns};
use crate::tools::idempotency_key;
use serde_json::{Value, json};

/// The steps that a new run takes over.
pub(super) fn taken_over(journal: &[Step]) -> Result<&[Step], String> {
    let is_done = |step: &&Step| step.status == StepStatus::Completed;
    let done = journal.iter().take_while(is_done).count();
    let is_ended = |step: &Step| step.kind != StepKind::Approval;
    let done = journal[..done].iter().rposition(is_ended);
    let done = &journal[..done.map_or(0, |last| last + 1)];
    let answers = answer::answers(done)?;
    let done = &done[..done.len() - answers];
    // A model is asked again where a guardrail failed the turn for one of its calls.
    match done.split_last() {
        Some((asked, before)) if asked.kind == StepKind::Model => {
            let said: ModelResult = read(asked.result.as_ref())?;
            match said.checked.failing_call() {
                Some(_) => Ok(before),
                None => Ok(done),
            }
        }
        _ => Ok(done),
    }
}

/// A call that was made, and whose answer nobody got.
pub(super) struct Lost<'a> {
    /// The model step that asked for it.
    asked: &'a Step,
    call: UnansweredCall,
    tool: String,
    /// The step that made it, unless an earlier run did, which this one took up.
    step: Option<i32>,
}

impl<'a> Lost<'a> {
    /// The one of a journal: a turn makes one call at a time.
    ///
    /// # Errors
    /// A sentence, when another version of this program wrote the journal.
    pub(super) fn of(failed: &Run, journal: &'a [Step]) -> Result<Option<Self>, String> {
        // Built-in programs call no tools.
        if failed.agent.is_none() {
            return Ok(None);
        }
        let last = journal.last();
        let open =
            last.filter(|last| last.kind == StepKind::Tool && last.status != StepStatus::Completed);
        let Some(open) = open else {
            return Self::before(journal);
        };
        let made: ToolRequest = read(Some(&open.request))?;
        let asked = journal.iter().find(|step| step.step == made.model_step);
        let key = made.idempotency_key;
        let edited = made.decided.as_ref().and_then(CallDecision::edited);
        Ok(Some(Self {
            asked: asked.ok_or_else(unreadable)?,
            call: UnansweredCall {
                call: made.call,
                made: Unanswered {
                    idempotency_key: key
                        .unwrap_or_else(|| idempotency_key(failed.run_id, open.step)),
                    edited: edited.cloned(),
                    is_unsent: false,
                    approval_id: made.decided.as_ref().and_then(CallDecision::approval_id),
                },
            },
            tool: open.name.clone(),
            step: Some(open.step),
        }))
    }

    /// The call of an earlier run that this one did not come to make.
    fn before(journal: &'a [Step]) -> Result<Option<Self>, String> {
        let is_model = |step: &Step| step.kind == StepKind::Model;
        let Some(at) = journal.iter().rposition(is_model) else {
            return Ok(None);
        };
        let asked = &journal[at];
        let request: ModelRequest = read(Some(&asked.request))?;
        let calls = journal[at + 1..].iter();
        let is_call = |step: &&Step| matches!(step.kind, StepKind::Tool | StepKind::Child);
        let made = calls.filter(is_call).count();
        let Some(call) = request.unanswered.filter(|one| made <= one.call) else {
            return Ok(None);
        };
        let said: ModelResult = read(asked.result.as_ref())?;
        let tool = said.tool_calls.into_iter().nth(call.call);
        Ok(Some(Self {
            asked,
            call,
            tool: tool.ok_or_else(unreadable)?.name,
            step: None,
        }))
    }

    /// The model step that asked for it, and what stands there as asked in the new run: that names the call with its key.
    ///
    /// # Errors
    /// As [`Lost::of`].
    pub(super) fn request(self) -> Result<(i32, Value), String> {
        let mut request: ModelRequest = read(Some(&self.asked.request))?;
        request.unanswered = Some(self.call);
        Ok((self.asked.step, json!(request)))
    }

    /// Refuses to make it again if it may have taken effect and may not be made twice.
    ///
    /// # Errors
    /// `outcome-unknown`; the database's.
    pub(super) fn refuse(
        &self,
        sql: &mut impl Sql,
        may: &impl May<Read, Run>,
        failed: &Run,
    ) -> Result<()> {
        let Some(agent) = failed.agent.as_ref() else {
            return Ok(());
        };
        if turns::is_idempotent(sql, may, agent, &self.tool)? != Some(false) {
            return Ok(());
        }
        let words = unknown_call(StepKind::Tool, &self.tool);
        Err(outcome_unknown(self.step, &self.tool, words))
    }
}

/// Why a call is not made again unless the caller says so. Without a step: an earlier run made it.
pub(super) fn outcome_unknown(step: Option<i32>, tool: &str, words: UnknownCall) -> Error {
    let UnknownCall { during, why, .. } = words;
    let ended = match step {
        Some(step) => format!("The run ended while {during} in step {step}."),
        None => format!("The run that this one took up ended while {during}."),
    };
    let error = Error::new(
        Code::OutcomeUnknown,
        format!(
            "{ended} Nobody knows whether the call took effect, and {why}. Look there first; then say repeatUnknownCall to have \
             it called again."
        ),
    );
    let error = error.detail("tool", tool);
    match step {
        Some(step) => error.detail("step", step),
        None => error,
    }
}
