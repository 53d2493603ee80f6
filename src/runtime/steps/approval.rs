//! A step that asks a reviewer and waits until its approval is closed.
//!
//! Each time it is performed it looks after the approval's time too: one whose time is over expires, and one that is to be
//! escalated is replaced. Both are written here, since the row alone says whether they are due, whoever writes them.

use super::attempt::{Attempt, Outcome, Performed};
use super::checks::Checker;
use crate::error::{Error, Result};
use crate::guardrails::Blocked;
use crate::runtime::journal;
use crate::runtime::journal::wait::{self, ApprovalResult};
use crate::runtime::progress::events::{Event, StepAnswer};
use crate::store::approvals::{self, ApprovalStatus, EscalatedTo, Handed, OfStep};
use crate::store::runs::Lease;
use crate::store::steps::{Begun, Step};
use crate::store::{Sql, Tx};
use serde_json::json;
use uuid::Uuid;

/// How often a look may find that time has closed an approval: each is escalated once, and expires once.
const LOOKS: usize = 4;

/// Done once the approval is closed.
pub(super) fn perform(attempt: &Attempt<'_>, journal: &[Step], begun: &Begun) -> Result<Performed> {
    if attempt.run.dry_run {
        return Ok(done(simulated()).into());
    }
    let (found, due_in_ms) = close_due(attempt, begun.step)?;
    let own = found.into_iter().find(|one| one.step == begun.step);
    let own = own.ok_or_else(|| Error::internal("a step waits for no approval"))?;
    if own.status != ApprovalStatus::Waiting {
        return match own.edited_arguments {
            Some(_) => checked(attempt, journal, begun, own),
            None => Ok(closed(begun, own)),
        };
    }
    let due_in_ms = due_in_ms.unwrap_or(i64::MAX);
    let wait = wait::approval(attempt.services.clock.now(), own.approval_id, due_in_ms);
    Ok(Outcome::Waits(wait).into())
}

/// Closes the approvals of the steps from this one on whose time is over: those of several calls of a turn wait at the same time.
/// The approvals, and in how many milliseconds time closes the next one.
pub(super) fn close_due(attempt: &Attempt<'_>, first: i32) -> Result<(Vec<OfStep>, Option<i64>)> {
    for _ in 0..LOOKS {
        let mut session = attempt.services.store.session()?;
        let found = approvals::of_steps(&mut session, &attempt.lease, first)?;
        drop(session);
        let is_waiting = |one: &&OfStep| one.status == ApprovalStatus::Waiting;
        let mut due_in_ms = None;
        let mut has_passed = false;
        for one in found.iter().filter(is_waiting) {
            match time_to(attempt, one)? {
                Some(left) => due_in_ms = Some(due_in_ms.unwrap_or(i64::MAX).min(left)),
                None => has_passed = true,
            }
        }
        if !has_passed {
            return Ok((found, due_in_ms));
        }
    }
    Err(Error::internal("an approval does not come to rest"))
}

/// What the step came to, if its approval was closed while its run was parked. None: it still waits, or time is to close one,
/// which [`perform`] sees to.
pub(super) fn done_while_parked(
    sql: &mut impl Sql,
    lease: &Lease,
    begun: &Begun,
) -> Result<Option<Performed>> {
    let found = approvals::of_steps(sql, lease, begun.step)?;
    let is_waiting = |one: &&OfStep| one.status == ApprovalStatus::Waiting;
    let is_due = |one: &OfStep| {
        let escalates = one.escalate_role.as_ref().and(one.escalates_in_ms);
        one.expires_in_ms <= 0 || escalates.is_some_and(|left| left <= 0)
    };
    if found.iter().filter(is_waiting).any(is_due) {
        return Ok(None);
    }
    let own = found.into_iter().find(|one| one.step == begun.step);
    // Guardrails judge what a reviewer put in the place of arguments.
    let own = own.filter(|own| !is_waiting(&own) && own.edited_arguments.is_none());
    Ok(own.map(|own| closed(begun, own)))
}

/// How long until time closes an approval that waits, in milliseconds. None: it was over, and has closed it.
fn time_to(attempt: &Attempt<'_>, one: &OfStep) -> Result<Option<i64>> {
    let (lease, id) = (&attempt.lease, one.approval_id);
    let role = one.escalate_role.as_deref();
    let assignee = one.escalate_assignee.as_deref();
    match role.zip(one.escalates_in_ms) {
        _ if one.expires_in_ms <= 0 => {
            let services = attempt.services;
            let expire = |tx: &mut Tx<'_>| approvals::expire(tx, lease, id);
            if services.store.transact(expire)? {
                services.counts.approval(ApprovalStatus::Expired, None);
            }
            Ok(None)
        }
        Some((role, ..=0)) => {
            escalate(attempt, (lease.tenant_id(), id), (role, assignee))?;
            Ok(None)
        }
        escalation => {
            let left = escalation.map_or(i64::MAX, |(_, left)| left);
            Ok(Some(left.min(one.expires_in_ms)))
        }
    }
}

fn escalate(
    attempt: &Attempt<'_>,
    approval: (Uuid, Uuid),
    (required_role, assignee): (&str, Option<&str>),
) -> Result<()> {
    let services = attempt.services;
    let is_escalated = services.store.transact(|tx| {
        let to = EscalatedTo {
            approval_id: services.clock.new_id(),
            required_role,
            user_id: None,
        };
        let now = services.clock.now();
        let escalated = approvals::escalate(tx, approval, to, None, None, now)?;
        let is_escalated = escalated == Handed::Written;
        if is_escalated {
            let opened = (approval.0, to.approval_id);
            if let Some(named) = assignee {
                let needs_role = services.options.reviewers_need_roles;
                approvals::assign_named(tx, opened, named, needs_role, now)?;
            }
            let webhooks = &services.webhooks;
            webhooks.approval_requested(tx, opened.0, opened.1)?;
        }
        Ok(is_escalated)
    })?;
    if is_escalated {
        services.feed.changed(attempt.run.run_id);
        services.counts.approval(ApprovalStatus::Escalated, None);
    }
    Ok(())
}

/// The end of an approval whose arguments are the reviewer's, which guardrails judge as they judged the model's. One that asks
/// for an approval has it.
fn checked(
    attempt: &Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
    mut found: OfStep,
) -> Result<Performed> {
    let mut checker = Checker::new(attempt, begun)?;
    let call = journal::call_of(journal, &begun.request).ok();
    let mut blocked = None;
    if let Some((call, edited)) = call.zip(found.edited_arguments.as_mut()) {
        let outcome = checker.check_arguments(&call.name, &edited.to_string(), None);
        if let Some(text) = outcome.text {
            *edited = serde_json::from_str(&text).map_err(Error::internal)?;
        }
        if outcome.blocked.is_some() {
            *edited = json!({});
            blocked = outcome.blocked;
        }
    }
    let mut performed = closed_with(begun, found, blocked);
    performed.events.append(&mut checker.events);
    performed.checks = checker.checks;
    Ok(performed)
}

fn closed(begun: &Begun, found: OfStep) -> Performed {
    closed_with(begun, found, None)
}

fn closed_with(begun: &Begun, found: OfStep, blocked: Option<Blocked>) -> Performed {
    let decided = Event::ApprovalDecided {
        step: begun.step,
        approval_id: found.approval_id,
        status: found.status,
    };
    let is_edited = found.edited_arguments.is_some();
    let arguments = found.edited_arguments.or(found.arguments);
    let result = ApprovalResult {
        decision: found.status,
        comment: found.comment,
        decided_by: found.decided_by,
        answer: found.answer,
        approval_id: Some(found.approval_id),
        arguments: arguments.filter(|_| found.status == ApprovalStatus::Approved),
        is_edited,
        blocked,
    };
    Performed {
        events: vec![decided],
        ..Performed::from(done(result))
    }
}

/// A dry run asks nobody: it goes on as if it was approved.
fn simulated() -> ApprovalResult {
    ApprovalResult {
        decision: ApprovalStatus::Approved,
        comment: None,
        decided_by: None,
        answer: None,
        approval_id: None,
        arguments: None,
        is_edited: false,
        blocked: None,
    }
}

fn done(result: ApprovalResult) -> Outcome {
    Outcome::Done {
        answer: StepAnswer::Approval {
            approval_id: result.approval_id,
            decision: result.decision,
        },
        result: json!(result),
    }
}
