//! Tasks that ask a person.

use super::machine::{Machine, Move, Moved};
use super::raised::Raised;
use crate::failure::{Authored, Failure, Summary};
use crate::flows::definition::tree::{ApprovalCall, OnRefusal, Task};
use crate::runtime::journal::call::AskedAgain;
use crate::runtime::journal::decision::Next;
use crate::runtime::journal::wait::ApprovalResult;
use crate::store::approvals::{ApprovalSource, ApprovalStatus, Escalation, NewApproval};
use crate::store::runs::End;
use crate::store::steps::Step;
use crate::tools::forms;
use serde_json::json;
use std::time::Duration;

impl<'a> Machine<'a> {
    pub(super) fn begin_approval(&mut self, task: &'a Task, call: &'a ApprovalCall) -> Moved<'a> {
        let context = self.of_innermost(task, |scope, input, budget| {
            let template = call.context.as_ref();
            let context = template.map(|template| scope.fill(template, input, budget));
            context.transpose()
        })?;
        let escalation = call.escalation.as_ref();
        let approval = self.within_time(NewApproval {
            source: ApprovalSource::Flow,
            required_role: call.required_role.clone(),
            assigned_to: call.assigned_to.clone(),
            title: call.title.clone(),
            expires_after: call.expires_after,
            escalation: escalation.map(|escalation| Escalation {
                after: escalation.after,
                required_role: escalation.required_role.clone(),
                assigned_to: escalation.assigned_to.clone(),
            }),
            context,
            form: call.form.clone(),
            call: None,
            earlier: None,
        });
        if let Some(fault) = approval.fault() {
            let said = format!("The approval cannot be opened: {fault}");
            return Err(Raised::validation(said, &task.path));
        }
        Ok(ask(task, approval, None))
    }

    /// The approval within the time of its task. Where that is over before, nobody else is asked.
    pub(super) fn within_time(&self, approval: NewApproval) -> NewApproval {
        let expires_after = self.within_deadlines(approval.expires_after);
        let escalation = approval.escalation;
        NewApproval {
            expires_after: expires_after.max(Duration::from_millis(1)),
            escalation: escalation.filter(|escalation| escalation.after < expires_after),
            ..approval
        }
    }
}

/// The step that asks. `again`: the call that is made again once it is approved.
pub(super) fn ask(task: &Task, approval: NewApproval, again: Option<AskedAgain>) -> Move<'_> {
    let next = Next::Ask {
        path: task.path.clone(),
        approval: Box::new(approval),
        again: again.map(Box::new),
    };
    Move::Effect(task, next)
}

/// What the task answers with the decision, or the error of one that was not given.
pub(super) fn decided<'a>(task: &Task, call: &ApprovalCall, ended: &Step) -> Moved<'a> {
    let result: ApprovalResult = Raised::answer(ended, &task.path)?;
    let on_refusal = match result.decision {
        ApprovalStatus::Approved => OnRefusal::Continue,
        ApprovalStatus::Rejected => call.on_reject,
        _ => call.on_expire,
    };
    if on_refusal == OnRefusal::Continue {
        // A dry run asks nobody: it goes on with what the form begins with.
        let form = call.form.as_ref();
        let form = form.filter(|_| result.approval_id.is_none());
        let answer = result.answer.or_else(|| form.map(forms::defaults));
        let output = json!({
            "decision": result.decision,
            "comment": result.comment,
            "decidedBy": result.decided_by,
            "answer": answer,
            "approvalId": result.approval_id,
        });
        return Ok(Move::Leave { output, then: None });
    }
    let is_rejected = result.decision == ApprovalStatus::Rejected;
    let said = match &result.comment {
        Some(comment) if is_rejected => format!("A reviewer rejected it: {comment}"),
        _ if is_rejected => "A reviewer rejected it".to_owned(),
        _ => "Nobody decided in time".to_owned(),
    };
    Err(refused(is_rejected, said, &task.path))
}

/// The error of an approval that was not given.
pub(super) fn refused(is_rejected: bool, said: impl Into<String>, path: &str) -> Raised {
    let kind = match is_rejected {
        true => ("authorization", 403, "The approval was rejected"),
        false => ("timeout", 408, "The approval expired"),
    };
    Raised::of(kind, said, path)
}

/// How a turn ends with the same, which a flow around it may catch.
pub(in crate::runtime) fn end_of_refusal(is_rejected: bool, tool: &str, said: String) -> End {
    let raised = refused(is_rejected, said.clone(), "");
    let why = match is_rejected {
        true => "A reviewer rejected the call of the tool ",
        false => "Nobody approved in time the call of the tool ",
    };
    End::Failed {
        failure: Failure::quoting(said, Summary::of(&[&why, &Authored(tool), &"."])),
        error: Some(raised.kept()),
    }
}
