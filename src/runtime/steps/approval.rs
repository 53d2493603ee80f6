//! A step that asks a reviewer and waits until its approval is closed.
//!
//! Each time it is performed it looks after the approval's time too: one whose time is over expires, and one that is to be
//! escalated is replaced. Both are written here, since the row alone says whether they are due, whoever writes them.

use super::attempt::{Attempt, Outcome, Performed};
use crate::error::{Error, Result};
use crate::runtime::journal::wait::{self, ApprovalResult};
use crate::runtime::progress::events::{Event, StepAnswer};
use crate::store::approvals::{self, ApprovalStatus, EscalatedTo, OfStep};
use crate::store::steps::Begun;
use serde_json::json;
use uuid::Uuid;

/// How often a look may find that time has closed the approval: it is escalated once, and expires once.
const LOOKS: usize = 4;

/// Done once the approval is closed.
pub(super) fn perform(attempt: &Attempt<'_>, begun: &Begun) -> Result<Performed> {
    if attempt.run.dry_run {
        return Ok(done(simulated()).into());
    }
    let services = attempt.services;
    let (lease, tenant_id) = (attempt.lease, attempt.run.tenant_id);
    for _ in 0..LOOKS {
        let mut session = services.store.session()?;
        let found = approvals::of_step(&mut session, &lease, begun.step)?;
        drop(session);
        if found.status != ApprovalStatus::Waiting {
            return Ok(closed(begun, found));
        }
        let to = found.escalate_role.as_deref().zip(found.escalates_in_ms);
        match to {
            _ if found.expires_in_ms <= 0 => services
                .store
                .transact(|tx| approvals::expire(tx, &lease, found.approval_id))?,
            Some((role, ..=0)) => escalate(attempt, (tenant_id, found.approval_id), role)?,
            _ => {
                let due = found.escalates_in_ms.unwrap_or(i64::MAX);
                let due = due.min(found.expires_in_ms);
                let wait = wait::approval(services.clock.now(), found.approval_id, due);
                return Ok(Outcome::Waits(wait).into());
            }
        }
    }
    Err(Error::internal("an approval does not come to rest"))
}

fn escalate(attempt: &Attempt<'_>, approval: (Uuid, Uuid), required_role: &str) -> Result<()> {
    let services = attempt.services;
    services.store.transact(|tx| {
        let to = EscalatedTo {
            approval_id: services.clock.new_id(),
            required_role,
            user_id: None,
        };
        if approvals::escalate(tx, approval, to, None, None)? {
            let webhooks = &services.webhooks;
            webhooks.approval_requested(tx, approval.0, to.approval_id)?;
        }
        Ok(())
    })
}

fn closed(begun: &Begun, found: OfStep) -> Performed {
    let told = Event::ApprovalDecided {
        step: begun.step,
        approval_id: found.approval_id,
        status: found.status,
    };
    let result = ApprovalResult {
        decision: found.status,
        comment: found.comment,
        decided_by: found.decided_by,
        answer: found.answer,
        approval_id: Some(found.approval_id),
        arguments: found.edited_arguments,
    };
    Performed {
        told: vec![told],
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
