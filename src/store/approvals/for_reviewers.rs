//! Approvals for reviewers: reading, listing, assigning.
//!
//! Guarantees: an approval whose time is over is shown as expired, even before this was written. Lists and the inbox contain
//! only approvals of the reviewer's roles.
//!
//! Not here: who is a reviewer (`authz`).

use super::{Actor, ApprovalSource, ApprovalStatus, Handed, has_lost_role};
use crate::error::{Code, Error, Result};
use crate::proof::{Kind, May, Read, Scope};
use crate::store::page::{Request, TextRequest};
use crate::store::principals::{Named, person};
use crate::store::reviewers;
use crate::store::{Columns, FromRow, Sql, Tx};
use crate::{from_row, list_sql, sql};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// An approval, without what it is about.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Its id.
    pub approval_id: Uuid,
    /// The run's project.
    pub project_id: Uuid,
    /// The run that waits for it.
    pub run_id: Uuid,
    /// The run at the top of that run's tree.
    pub root_run_id: Uuid,
    /// What asks.
    pub source: ApprovalSource,
    /// Where its step stands in the run's program.
    pub path: String,
    /// The role that may decide.
    pub required_role: String,
    /// What a reviewer reads first.
    pub title: String,
    /// How it stands.
    pub status: ApprovalStatus,
    /// Who started the run at the top of the tree.
    pub requested_by: Uuid,
    /// Whom it is assigned to.
    pub assigned_to: Option<Uuid>,
    /// When it began to wait.
    pub created_at: OffsetDateTime,
    /// Until when it waits.
    pub expires_at: OffsetDateTime,
    /// When another role is asked in its place.
    pub escalate_at: Option<OffsetDateTime>,
    /// Which.
    pub escalate_role: Option<String>,
    /// Whom the approval in its place is assigned to then, by id or email.
    pub escalate_assignee: Option<String>,
    /// The approval whose place it took.
    pub escalated_from: Option<Uuid>,
    /// The approval that took its place.
    pub escalated_to: Option<Uuid>,
    /// SHA-256 of what it is about.
    pub subject_digest: Vec<u8>,
    /// Who closed it.
    pub decided_by: Option<Uuid>,
    /// What that person said.
    pub comment: Option<String>,
    /// When it was closed.
    pub closed_at: Option<OffsetDateTime>,
}

from_row!(Approval {
    approval_id,
    project_id,
    run_id,
    root_run_id,
    source,
    path,
    required_role,
    title,
    status,
    requested_by,
    assigned_to,
    created_at,
    expires_at,
    escalate_at,
    escalate_role,
    escalate_assignee,
    escalated_from,
    escalated_to,
    subject_digest,
    decided_by,
    comment,
    closed_at,
});

impl Kind for Approval {
    const NAME: &'static str = "approval";
    fn id(&self) -> Uuid {
        self.approval_id
    }
    fn scope(&self) -> Scope {
        Scope::InProject(self.project_id)
    }
}

/// An approval, and who started its run and those that this run retries.
#[derive(Debug)]
pub struct WithStarters {
    /// The approval.
    pub approval: Approval,
    /// Who started them.
    pub starters: Vec<Uuid>,
}

/// An approval as it stands now.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn find(sql: &mut impl Sql, tenant_id: Uuid, approval_id: Uuid) -> Result<Approval> {
    Ok(with_starters(sql, tenant_id, approval_id)?.approval)
}

/// An approval as it stands now, with what it takes to say who may decide.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn with_starters(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    approval_id: Uuid,
) -> Result<WithStarters> {
    let row = sql.query_opt(sql!("approvals/find"), &[&tenant_id, &approval_id])?;
    let row = row.ok_or_else(|| Error::not_found(Approval::NAME, approval_id))?;
    Ok(WithStarters {
        approval: Approval::from_row(&row)?,
        starters: row.column("starters")?,
    })
}

/// What an approval is about, and what its reviewer gave. All of it is null once it was erased.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// What reviewers are shown.
    pub context: Option<Value>,
    /// Of a tool call: the tool's name.
    pub tool: Option<String>,
    /// Of a tool call: the arguments.
    pub arguments: Option<Value>,
    /// What the reviewer put in their place.
    pub edited_arguments: Option<Value>,
    /// The JSON Schema of the answer.
    pub form: Option<Value>,
    /// What the reviewer answered.
    pub answer: Option<Value>,
    /// Of a tool call: an earlier one that may have taken effect, an [`EarlierCall`](super::EarlierCall).
    pub earlier_call: Option<Value>,
}

from_row!(Subject {
    context,
    tool,
    arguments,
    edited_arguments,
    form,
    answer,
    earlier_call
});

/// What an approval is about.
pub fn subject(sql: &mut impl Sql, may: &impl May<Read, Approval>) -> Result<Subject> {
    let row = sql.query_opt(
        sql!("approvals/subject"),
        &[&may.tenant_id(), &may.object_id()],
    )?;
    row.as_ref()
        .map_or_else(|| Ok(Subject::default()), Subject::from_row)
}

/// The JSON Schema that the answer of a reviewer has to fit. None: any answer does, or what it is about was erased.
pub fn form(sql: &mut impl Sql, may: &impl May<Read, Approval>) -> Result<Option<Value>> {
    let parameters: [_; 2] = [&may.tenant_id() as _, &may.object_id() as _];
    let row = sql.query_opt(sql!("approvals/form"), &parameters)?;
    let form: Option<Option<Value>> = row.map(|row| row.only()).transpose()?;
    Ok(form.flatten())
}

/// The JSON Schema that the arguments of the tool call have to fit which an approval is about. None: it is about no call.
pub fn arguments_schema(
    sql: &mut impl Sql,
    may: &impl May<Read, Approval>,
) -> Result<Option<Value>> {
    let parameters: [_; 2] = [&may.tenant_id() as _, &may.object_id() as _];
    let row = sql.query_opt(sql!("approvals/arguments_schema"), &parameters)?;
    row.map(|row| row.only()).transpose()
}

/// Something that happened to an approval.
#[derive(Debug, Clone)]
pub struct Entry {
    /// `opened`, `assigned`, or as it was closed.
    pub kind: String,
    /// Who did it; none where time or the run's end did.
    pub user_id: Option<Uuid>,
    /// By which key.
    pub token_id: Option<Uuid>,
    /// When.
    pub at: OffsetDateTime,
}

from_row!(Entry {
    kind,
    user_id,
    token_id,
    at
});

/// What happened to an approval, in order.
pub fn log(sql: &mut impl Sql, may: &impl May<Read, Approval>) -> Result<Vec<Entry>> {
    sql.fetch_all(sql!("approvals/log"), &[&may.tenant_id(), &may.object_id()])
}

/// Which approvals a reviewer may see.
#[derive(Debug, Clone)]
pub struct Sight {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The roles; none while authorization is off, when all are seen.
    pub roles: Option<Vec<String>>,
    /// The one project of the key.
    pub project_id: Option<Uuid>,
}

/// Whom an approval that is looked for is assigned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignedTo {
    /// This person.
    User(Uuid),
    /// Nobody.
    Nobody,
}

/// Which approvals are looked for.
#[derive(Debug, Clone)]
pub struct Filters {
    /// That stand so.
    pub status: ApprovalStatus,
    /// In this project.
    pub project_id: Option<Uuid>,
    /// Of this run.
    pub run_id: Option<Uuid>,
    /// Assigned so.
    pub assigned_to: Option<AssignedTo>,
}

/// A page of the approvals that a reviewer may see.
pub fn list(
    sql: &mut impl Sql,
    sight: &Sight,
    filters: &Filters,
    page: &Request,
) -> Result<Vec<Approval>> {
    // A key that is limited to one project sees nothing of another; where a filter names one, the check has seen to it.
    let project_id = sight.project_id.or(filters.project_id);
    let (user_id, is_nobody) = match filters.assigned_to {
        Some(AssignedTo::User(user_id)) => (Some(user_id), false),
        Some(AssignedTo::Nobody) => (None, true),
        None => (None, false),
    };
    let (rows, status) = (page.rows(), filters.status.text());
    let parameters: [&(dyn postgres::types::ToSql + Sync); 9] = [
        &sight.tenant_id,
        &sight.roles,
        &project_id,
        &filters.run_id,
        &user_id,
        &is_nobody,
        &page.after,
        &rows,
        &status,
    ];
    match filters.status {
        ApprovalStatus::Waiting => {
            let statement = list_sql!("approvals/list_waiting").by(page.order);
            sql.fetch_all(statement, &parameters[..8])
        }
        ApprovalStatus::Expired => {
            let statement = list_sql!("approvals/list_expired").by(page.order);
            sql.fetch_all(statement, &parameters[..8])
        }
        _ => sql.fetch_all(
            list_sql!("approvals/list_closed").by(page.order),
            &parameters,
        ),
    }
}

/// An approval that waits for a reviewer.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Its id.
    pub approval_id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// What a reviewer reads first.
    pub title: String,
    /// When it began to wait.
    pub created_at: OffsetDateTime,
    /// Until when it waits.
    pub expires_at: OffsetDateTime,
    /// It is assigned to this reviewer; otherwise to nobody.
    pub is_assigned: bool,
    /// Where it stands in the inbox, before its id.
    pub place: String,
}

from_row!(Waiting {
    approval_id,
    project_id,
    title,
    created_at,
    expires_at,
    is_assigned,
    place
});

/// A page of what waits for a reviewer.
pub fn inbox(
    sql: &mut impl Sql,
    sight: &Sight,
    user_id: Uuid,
    page: &TextRequest,
) -> Result<Vec<Waiting>> {
    let after = page.after.as_ref();
    sql.fetch_all(
        sql!("approvals/inbox"),
        &[
            &sight.tenant_id,
            &sight.roles,
            &sight.project_id,
            &user_id,
            &after.map(|(place, _)| place),
            &after.map(|(_, approval_id)| approval_id),
            &page.rows(),
        ],
    )
}

/// How much waits for a reviewer.
#[derive(Debug, Clone, Copy)]
pub struct InboxCounts {
    /// Assigned to this reviewer.
    pub assigned: i64,
    /// Assigned to nobody.
    pub unassigned: i64,
}

from_row!(InboxCounts {
    assigned,
    unassigned
});

/// How much the whole inbox of a reviewer holds.
pub fn inbox_counts(sql: &mut impl Sql, sight: &Sight, user_id: Uuid) -> Result<InboxCounts> {
    sql.fetch_one(
        sql!("approvals/inbox_counts"),
        &[&sight.tenant_id, &sight.roles, &sight.project_id, &user_id],
    )
}

/// How many approvals the whole inbox of a reviewer holds, counted no further than `most`.
pub fn inbox_summary(sql: &mut impl Sql, sight: &Sight, user_id: Uuid, most: i64) -> Result<i64> {
    let (tenant_id, roles) = (&sight.tenant_id, &sight.roles);
    sql.query_one(
        sql!("approvals/inbox_summary"),
        &[tenant_id, roles, &sight.project_id, &user_id, &most],
    )?
    .only()
}

/// Assigns an approval that waits to a person, or to nobody. Where `needs_role`, both the actor and the person have to have
/// the role.
///
/// # Errors
/// `not-found`: there is no such person. `conflict`: the person was deactivated, or lacks the role.
pub fn assign(
    tx: &mut Tx<'_>,
    approval: &Approval,
    tenant_id: Uuid,
    (actor, needs_role): (Actor, bool),
    (named, starters): (Option<&Named>, &[Uuid]),
) -> Result<Handed> {
    let by = (actor, needs_role);
    if has_lost_role(tx, (tenant_id, approval.approval_id), by)? {
        return Ok(Handed::RoleLost);
    }
    let to = named
        .map(|named| {
            let needs = (approval.required_role.as_str(), needs_role);
            holder(tx, tenant_id, named, needs, starters)
        })
        .transpose()?;
    let assigned = tx.execute(
        sql!("approvals/assign"),
        &[
            &tenant_id,
            &approval.approval_id,
            &to,
            &actor.user_id,
            &actor.token_id,
            &needs_role,
        ],
    )?;
    Ok(Handed::of(assigned == 1))
}

/// An active person who, where roles are asked for, has this one, and who is none of `starters`.
///
/// # Errors
/// `not-found`: there is no such person. `conflict`: the person was deactivated, lacks the role, or cannot decide.
pub fn holder(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    named: &Named,
    (role, needs_role): (&str, bool),
    starters: &[Uuid],
) -> Result<Uuid> {
    let user_id = person(tx, tenant_id, named)?;
    if starters.contains(&user_id) {
        let message = format!(
            "user:{user_id} started the run, or one that it retries, and cannot decide about it. Name another reviewer."
        );
        return Err(Error::new(Code::Conflict, message));
    }
    let roles = reviewers::roles(tx, tenant_id, user_id)?;
    if needs_role && !roles.iter().any(|held| held == role) {
        let message = format!(
            "user:{user_id} lacks the reviewer role {role}. Register the person for it first, or name another."
        );
        return Err(Error::new(Code::Conflict, message).detail("requiredRole", role));
    }
    Ok(user_id)
}
