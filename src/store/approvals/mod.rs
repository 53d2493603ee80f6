//! Approvals: questions of runs to people, and their outcomes.
//!
//! ```text
//! waiting ──► approved | rejected        a reviewer decided
//!    ├──────► escalated ──► another one  a reviewer, or its time to be escalated has come
//!    ├──────► expired                    nobody decided in time; never an approval
//!    └──────► voided                     its run has ended
//! ```
//!
//! Guarantees: a closed approval never changes. Each transition is one statement that requires the state `waiting`, by
//! PostgreSQL's clock. Locks go from the run to the approval to the job (`locks-from-root-to-leaf`).
//!
//! What a run asks is in `opening`, what reviewers read and assign in [`for_reviewers`]. Not here: who may decide, and what webhook events say.

pub mod for_reviewers;
pub mod log;
mod opening;

pub(super) use opening::open;
pub use opening::{
    AskedCall, EarlierCall, Escalation, NewApproval, Opening, assign_named, is_assignee, is_title,
};

use super::reviewers;
use super::runs::{Lease, storable};
use super::{Columns, Sql};
use crate::error::Result;
use crate::{from_row, sql, texts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// The longest title, in characters.
pub const TITLE_MOST: usize = 200;

/// The longest time that an approval may wait.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The most that a reviewer is shown beside a tool call, in bytes of JSON.
pub const CONTEXT_BYTES: usize = 64 * 1024;

/// The longest form, in bytes of JSON.
pub const FORM_BYTES: usize = 16 * 1024;

/// The most that the arguments of a tool call may be, in bytes of JSON.
pub const ARGUMENTS_BYTES: usize = 256 * 1024;

texts! {
    /// What asks for an approval.
    ApprovalSource {
        /// A step of a flow.
        Flow = "flow",
        /// A tool call of an agent.
        Tool = "tool",
    }
}

texts! {
    /// How an approval stands.
    ApprovalStatus {
        /// Nobody has decided.
        Waiting = "waiting",
        /// A reviewer agreed.
        Approved = "approved",
        /// A reviewer refused.
        Rejected = "rejected",
        /// Another approval took its place.
        Escalated = "escalated",
        /// Its time was over before anybody decided.
        Expired = "expired",
        /// Its run ended before.
        Voided = "voided",
    }
}

impl ApprovalStatus {
    /// How a decision closes an approval.
    pub const fn of_decision(is_approved: bool) -> Self {
        match is_approved {
            true => Self::Approved,
            false => Self::Rejected,
        }
    }
}

/// What a webhook event says of an approval.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its project.
    pub project_id: Uuid,
    /// The role that may decide.
    pub required_role: String,
    /// What a reviewer reads first.
    pub title: String,
    /// Whom it is assigned to.
    pub assigned_to: Option<Uuid>,
    /// When it began to wait.
    pub created_at: OffsetDateTime,
    /// Until when it waits.
    pub expires_at: OffsetDateTime,
}

from_row!(Opened {
    project_id,
    required_role,
    title,
    assigned_to,
    created_at,
    expires_at
});

/// What a webhook event says of an approval that this transaction has opened.
pub fn opened(sql: &mut impl Sql, tenant_id: Uuid, approval_id: Uuid) -> Result<Opened> {
    sql.fetch_one(sql!("approvals/event"), &[&tenant_id, &approval_id])
}

/// The approval of a step, as the run that waits for it reads it.
#[derive(Debug, Clone)]
pub struct OfStep {
    /// The step.
    pub step: i32,
    /// The approval.
    pub approval_id: Uuid,
    /// How it stands; `waiting` also if its time is over and nobody has written that yet.
    pub status: ApprovalStatus,
    /// Who decided.
    pub decided_by: Option<Uuid>,
    /// What the reviewer said.
    pub comment: Option<String>,
    /// The role that is asked in its place.
    pub escalate_role: Option<String>,
    /// Whom the approval in its place is assigned to, by id or email.
    pub escalate_assignee: Option<String>,
    /// What the reviewer answered.
    pub answer: Option<Value>,
    /// Of a tool call: what the reviewer was shown.
    pub arguments: Option<Value>,
    /// What the reviewer put in place of the arguments.
    pub edited_arguments: Option<Value>,
    /// Until its time is over, by PostgreSQL's clock.
    pub expires_in_ms: i64,
    /// Until another role is asked in its place.
    pub escalates_in_ms: Option<i64>,
}

from_row!(OfStep {
    step,
    approval_id,
    status,
    decided_by,
    comment,
    escalate_role,
    escalate_assignee,
    answer,
    arguments,
    edited_arguments,
    expires_in_ms,
    escalates_in_ms
});

/// The approvals of a held run's steps from this one on: of each step the newest, if it was escalated.
pub fn of_steps(sql: &mut impl Sql, lease: &Lease, first: i32) -> Result<Vec<OfStep>> {
    let run = (lease.tenant_id(), lease.run_id());
    sql.fetch_all(sql!("approvals/of_steps"), &[&run.0, &run.1, &first])
}

/// The steps of a held run for which an approval was opened.
pub fn asked_steps(sql: &mut impl Sql, lease: &Lease) -> Result<BTreeSet<i32>> {
    let run = (lease.tenant_id(), lease.run_id());
    let row = sql.query_one(sql!("approvals/asked_steps"), &[&run.0, &run.1])?;
    let steps: Vec<i32> = row.only()?;
    Ok(steps.into_iter().collect())
}

/// Of the approvals that a run waits for, the one that expires first, and when.
pub fn waiting_of_run(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    run_id: Uuid,
) -> Result<Option<(Uuid, OffsetDateTime)>> {
    let row = sql.query_opt(sql!("approvals/waiting_of_run"), &[&tenant_id, &run_id])?;
    row.map(|row| Ok((row.column("approval_id")?, row.column("expires_at")?)))
        .transpose()
}

/// Closes an approval whose time is over. False: it does not wait any more.
pub fn expire(sql: &mut impl Sql, lease: &Lease, approval_id: Uuid) -> Result<bool> {
    let expired = sql.execute(
        sql!("approvals/expire"),
        &[&lease.tenant_id(), &approval_id],
    )?;
    Ok(expired == 1)
}

/// What waits in all tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// For the role `standard`.
    pub standard: i64,
    /// For other roles.
    pub other: i64,
    /// Beyond their time, and not closed yet. The others do not count these.
    pub overdue: i64,
    /// How long the oldest has waited.
    pub oldest_seconds: f64,
}

from_row!(Figures {
    standard,
    other,
    overdue,
    oldest_seconds
});

/// What waits in all tenants, for the operator.
pub fn figures(sql: &mut impl Sql) -> Result<Figures> {
    sql.fetch_one(sql!("approvals/figures"), &[])
}

/// Who acts on an approval: a user, by a key.
#[derive(Debug, Clone, Copy)]
pub struct Actor {
    /// The user.
    pub user_id: Uuid,
    /// The key.
    pub token_id: Uuid,
}

/// Whom an approval is given to in its stead.
#[derive(Debug, Clone, Copy)]
pub struct EscalatedTo<'a> {
    /// The new approval.
    pub approval_id: Uuid,
    /// The role that may decide it.
    pub required_role: &'a str,
    /// Whom it is assigned to.
    pub user_id: Option<Uuid>,
}

/// What giving an approval to somebody else came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// It is written.
    Written,
    /// The approval does not wait any more, its time is over, or it was escalated before.
    Closed,
    /// The reviewer does not have the role any more.
    RoleLost,
}

impl Handed {
    pub(super) const fn of(is_written: bool) -> Self {
        match is_written {
            true => Self::Written,
            false => Self::Closed,
        }
    }
}

/// Whether a reviewer has lost the role that an approval requires, once its run is locked. To be asked before a statement that
/// hands it on: the check of the request is older than the lock.
pub(super) fn has_lost_role(
    sql: &mut impl Sql,
    (tenant_id, approval_id): (Uuid, Uuid),
    (actor, needs_role): (Actor, bool),
) -> Result<bool> {
    if !needs_role {
        return Ok(false);
    }
    let row = sql.query_opt(sql!("approvals/lock"), &[&tenant_id, &approval_id])?;
    let role: Option<String> = row.map(|row| row.only()).transpose()?;
    match role {
        Some(role) => Ok(!reviewers::has_role(sql, tenant_id, actor.user_id, &role)?),
        None => Ok(false),
    }
}

/// Closes an approval that waits, and opens another in its place: see `approval_escalate`. Without an actor, only if its
/// time to be escalated has come. With `needs_role`, only while the actor has the role.
pub fn escalate(
    sql: &mut impl Sql,
    (tenant_id, approval_id): (Uuid, Uuid),
    to: EscalatedTo<'_>,
    by: Option<(Actor, bool)>,
    comment: Option<&str>,
    now: OffsetDateTime,
) -> Result<Handed> {
    if let Some(by) = by
        && has_lost_role(sql, (tenant_id, approval_id), by)?
    {
        return Ok(Handed::RoleLost);
    }
    let actor = by.map(|(actor, _)| actor);
    let row = sql.query_one(
        sql!("approvals/escalate"),
        &[
            &tenant_id,
            &approval_id,
            &to.approval_id,
            &to.required_role,
            &to.user_id,
            &actor.map(|actor| actor.user_id),
            &actor.map(|actor| actor.token_id),
            &comment,
            &now,
        ],
    )?;
    row.only().map(Handed::of)
}

/// A reviewer's decision.
#[derive(Debug, Clone)]
pub struct Decision<'a> {
    /// Agreed, or refused.
    pub is_approved: bool,
    /// What the reviewer says.
    pub comment: Option<&'a str>,
    /// In place of the arguments of the tool call.
    pub arguments: Option<&'a Value>,
    /// What the run gets to read.
    pub answer: Option<&'a Value>,
}

/// What a decision came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It is written, and the run goes on.
    Written {
        /// The run.
        run_id: Uuid,
    },
    /// The approval does not wait any more, or its time is over.
    Closed,
    /// The reviewer does not have the role any more.
    RoleLost,
    /// There is none.
    Unknown,
}

/// Decides an approval that waits, and makes its run due. With `needs_role`, only while the actor has the role.
pub fn decide(
    sql: &mut impl Sql,
    (tenant_id, approval_id): (Uuid, Uuid),
    (actor, needs_role): (Actor, bool),
    decision: &Decision<'_>,
) -> Result<Decided> {
    let status = ApprovalStatus::of_decision(decision.is_approved);
    let arguments = decision.arguments.map(storable::value);
    let answer = decision.answer.map(storable::value);
    let row = sql.query_one(
        sql!("approvals/decide"),
        &[
            &tenant_id,
            &approval_id,
            &status.text(),
            &actor.user_id,
            &actor.token_id,
            &needs_role,
            &decision.comment,
            &arguments.as_deref(),
            &answer.as_deref(),
        ],
    )?;
    Ok(match row.column("became")? {
        "decided" => Decided::Written {
            run_id: row.column("of_run_id")?,
        },
        "closed" => Decided::Closed,
        "role-lost" => Decided::RoleLost,
        _ => Decided::Unknown,
    })
}
