//! Calls of tools that a reviewer approves first, of agents and of flows.
//!
//! Guarantees: a call whose arguments do not fit the tool's schema asks nobody, and is not made. What is approved is what was
//! shown: a call is made with the arguments of its approval, or with those that the reviewer put in their place.
//!
//! Not here: waiting for the decision (`steps::approval`), and what a reviewer may put in place of arguments (`api`).

use super::journal::wait::ApprovalResult;
use crate::flows::definition::duration;
use crate::store::approvals::{
    ApprovalSource, ApprovalStatus, AskedCall, Escalation, LONGEST, NewApproval, is_assignee,
    is_title,
};
use crate::store::reviewers::is_role;
use crate::store::tool_approvals::ToolApproval;
use crate::store::turns::Tool;
use crate::text;
use crate::tools::Schemas;
use serde_json::{Value, json};
use std::time::Duration;

/// What is wrong with what a tool asks: where, as the end of a JSON path, and what is expected there.
pub fn faults(asks: &ToolApproval) -> Vec<(&'static str, &'static str)> {
    let mut faults = Vec::new();
    let mut expect = |is_met: bool, path, expected| {
        if !is_met {
            faults.push((path, expected));
        }
    };
    let a_role = "a reviewer role: 1 to 40 lowercase letters, digits and hyphens, no hyphen first";
    let expires = time(&asks.expires_after);
    let title = "1 to 200 characters without control characters";
    expect(is_title(&asks.title), ".title", title);
    expect(is_role(&asks.required_role), ".requiredRole", a_role);
    let a_person = "a user's id or email address";
    let is_person = |named: &Option<String>| named.as_deref().is_none_or(is_assignee);
    expect(is_person(&asks.assigned_to), ".assignedTo", a_person);
    let an_end =
        "an ISO 8601 duration of more than nothing and at most 30 days, such as P1D or PT8H";
    expect(expires.is_some(), ".expiresAfter", an_end);
    expect(asks.escalation.len() <= 1, ".escalation", "one at most");
    if let Some(first) = asks.escalation.first() {
        let after = time(&first.after);
        let is_before = after.is_some_and(|after| expires.is_none_or(|expires| after < expires));
        let a_moment = "an ISO 8601 duration that is shorter than expiresAfter";
        expect(is_before, ".escalation[0].after", a_moment);
        let role = is_role(&first.required_role);
        expect(role, ".escalation[0].requiredRole", a_role);
        let assignee = is_person(&first.assigned_to);
        expect(assignee, ".escalation[0].assignedTo", a_person);
    }
    faults
}

/// A time of an approval.
fn time(text: &str) -> Option<Duration> {
    let found = duration::of(&json!(text)).ok();
    found.filter(|found| !found.is_zero() && *found <= LONGEST)
}

/// What a call of a tool asks, where it `asks` somebody. None: it is not to be made at all, which performing it says.
pub(super) fn of_call(
    (tool, asks): (&Tool, &ToolApproval),
    arguments: &str,
    context: Option<Value>,
) -> Option<NewApproval> {
    let mut schemas = Schemas::default();
    let checked = schemas.check(&tool.name, &tool.arguments_schema, arguments);
    let escalation = asks.escalation.first();
    let asked = NewApproval {
        source: ApprovalSource::Tool,
        required_role: asks.required_role.clone(),
        assigned_to: asks.assigned_to.clone(),
        title: asks.title.clone(),
        expires_after: time(&asks.expires_after)?,
        escalation: escalation.and_then(|escalation| {
            Some(Escalation {
                after: time(&escalation.after)?,
                required_role: escalation.required_role.clone(),
                assigned_to: escalation.assigned_to.clone(),
            })
        }),
        context,
        form: None,
        call: Some(AskedCall {
            tool_id: tool.id,
            tool: tool.name.clone(),
            arguments: checked.ok()?,
        }),
        earlier: None,
    };
    asked.fault().is_none().then_some(asked)
}

/// Why a call is not made that nobody approved, as a sentence.
pub(super) fn refusal(tool: &str, result: &ApprovalResult) -> String {
    match (result.decision, &result.comment) {
        (ApprovalStatus::Rejected, Some(comment)) => {
            let comment = text::sentence(comment);
            format!("A reviewer rejected the call of the tool {tool}: {comment}")
        }
        (ApprovalStatus::Rejected, None) => {
            format!("A reviewer rejected the call of the tool {tool}.")
        }
        _ => format!("Nobody approved the call of the tool {tool} in time."),
    }
}
