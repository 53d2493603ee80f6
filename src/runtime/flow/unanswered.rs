//! Calls that nobody answered: a call that is made again carries the key that it had, so that whoever got it knows it again.
//!
//! Guarantees: of a list that is tried again, a call whose outcome is unknown keeps its key until somebody has answered it. A
//! call is the same if its task is, and what that asks; with other arguments it is another one.
//!
//! Not here: a retry of the failed run (`retry`); calls of runs below, which begin anew with the list and so have other keys. A
//! key follows from the run that calls, and nobody above a run that was cancelled knows what it had under way.

use super::machine::{Machine, unreadable_state};
use super::raised::Raised;
use super::state::{At, CallBefore, Frame};
use crate::flows::definition::tree::{Call, Task, TaskKind};
use crate::runtime::journal::call::{AskedAgain, StepFailure, Unanswered};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::ChildResult;
use crate::runtime::steps::kind::{OpenCall, open_call};
use crate::store::steps::{Step, StepStatus};
use crate::tools::idempotency_key;
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

impl<'a> Machine<'a> {
    /// Keeps the call of a step that has ended if nobody knows whether it took effect and a list around it may be tried again.
    pub(super) fn keep_unanswered(&mut self, ended: &Step) -> Result<(), Raised> {
        let is_kept = match open_call(ended.kind) {
            OpenCall::Own => is_unknown(ended),
            // Until it is approved, the call is not made again.
            OpenCall::AskedAbout => true,
            OpenCall::OfChildren | OpenCall::None => false,
        };
        let unanswered = unanswered(self.about.own_run_id, ended).filter(|_| is_kept);
        let Some(unanswered) = unanswered else {
            return Ok(());
        };
        let task = self.innermost()?;
        let digest = self.digest(task)?;
        if let Some(frame) = self.outermost_try()? {
            frame.unanswered.push(CallBefore { digest, unanswered });
        }
        Ok(())
    }

    /// The innermost task's call of an earlier try, which is made again.
    pub(super) fn take_unanswered(&mut self, task: &'a Task) -> Result<Option<Unanswered>, Raised> {
        let mut frames = self.state.frames.iter();
        if frames.all(|frame| frame.unanswered.is_empty()) {
            return Ok(None);
        }
        let digest = self.digest(task)?;
        for frame in &mut self.state.frames {
            let mut before = frame.unanswered.iter();
            if let Some(at) = before.position(|before| before.digest == digest) {
                return Ok(Some(frame.unanswered.remove(at).unanswered));
            }
        }
        Ok(None)
    }

    /// The outermost list of this run that may be tried again: it outlasts the others.
    fn outermost_try(&mut self) -> Result<Option<&mut Frame>, Raised> {
        for depth in self.branch_depth()..self.state.frames.len() {
            let is_tried = matches!(self.state.frames[depth].at, At::Try(_));
            if let TaskKind::Try(of) = &self.task_at(depth)?.kind
                && is_tried
                && of.catch.retry.is_some()
            {
                return Ok(self.state.frames.get_mut(depth));
            }
        }
        Ok(None)
    }

    /// Which call the innermost task makes.
    fn digest(&mut self, task: &'a Task) -> Result<String, Raised> {
        let asked = match &task.kind {
            TaskKind::Call(Call::Tool(tool)) => self.tool_request(task, tool)?.arguments,
            TaskKind::Call(Call::Http(http)) => {
                let request = self.http_request(task, http)?;
                json!([request.method, request.url, request.headers, request.body])
            }
            _ => return Err(unreadable_state()),
        };
        let call = json!([task.path, asked]).to_string();
        Ok(BASE64_STANDARD_NO_PAD.encode(Sha256::digest(call)))
    }
}

/// Whether nobody knows if the call of a step that has ended took effect, or one of a run that the step waited for.
pub(super) fn is_unknown(ended: &Step) -> bool {
    if open_call(ended.kind) == OpenCall::OfChildren {
        let results: Vec<ChildResult> = read(ended.result.as_ref()).unwrap_or_default();
        let mut errors = results.iter().filter_map(|result| result.error.as_ref());
        return errors.any(|error| error["outcome"] == "unknown");
    }
    let failure: Result<StepFailure, String> = read(ended.result.as_ref());
    ended.status == StepStatus::Failed && failure.is_ok_and(|failure| failure.is_unknown)
}

/// The call of a step that has no recorded answer: that of an earlier run or try, where the step asks whether it is made again.
pub(super) fn unanswered(run_id: Uuid, step: &Step) -> Option<Unanswered> {
    if let Some(again) = AskedAgain::of(step) {
        return Some(again.unanswered);
    }
    if open_call(step.kind) != OpenCall::Own || step.status == StepStatus::Completed {
        return None;
    }
    let own = step.request["idempotencyKey"].as_str();
    let is_edited = step.request["isEdited"] == true;
    Some(Unanswered {
        idempotency_key: own.map_or_else(|| idempotency_key(run_id, step.step), str::to_owned),
        edited: is_edited.then(|| step.request["arguments"].clone()),
        is_unsent: step.result.is_some() && !is_unknown(step),
        approval_id: Uuid::deserialize(&step.request["approvalId"]).ok(),
    })
}

/// Has a call made with the key of one whose answer nobody got, unless its author names a key, or the other one was made with
/// other arguments. `edited`: the reviewer's, if this call has such.
pub(super) fn keep_key(request: &mut Value, unanswered: Unanswered, edited: Option<&Value>) {
    let is_unsent = unanswered.is_unsent;
    if let Some(key) = unanswered.key_for(edited) {
        if !is_unsent {
            request["isRepeated"] = json!(true);
        }
        if request.get("idempotencyKey").is_none() {
            request["idempotencyKey"] = json!(key);
        }
    }
}
