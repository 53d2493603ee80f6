//! Memberships of projects.
//!
//! Guarantees: a lock on the project's row serializes the changes of its memberships, so each
//! answers as if it had been alone. No change removes a project's last owner.
//!
//! A role may exist without a membership, as for the creators of old projects (section 2.4). Adding
//! such a user creates a membership, and its role replaces the old one.

use super::page::Request;
use super::principals::{self, Named, PrincipalKind};
use super::projects::{self, Project};
use super::{Columns, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May, Write};
use crate::{from_row, list_sql, sql, texts};
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    // Specification, section 5.2.
    /// A role on a project, the highest first.
    Role {
        /// Also an admin. A person's role only.
        Owner = "owner",
        /// Changes the project and who works in it.
        Admin = "admin",
        /// Works in it.
        Editor = "editor",
        /// Reads it.
        Viewer = "viewer",
        /// What older rows hold. It grants what `viewer` grants, and is given no more.
        Member = "member",
    }
}

/// Somebody's membership of a project.
#[derive(Debug, Clone)]
pub struct Membership {
    /// Who.
    pub user_id: Uuid,
    /// What they are.
    pub kind: PrincipalKind,
    /// Their name.
    pub display_name: String,
    /// A person's email.
    pub primary_email: Option<String>,
    /// Their role.
    pub role: Role,
    /// Since when.
    pub joined_at: OffsetDateTime,
    /// Since when they can do nothing any more.
    pub deactivated_at: Option<OffsetDateTime>,
}

from_row!(Membership {
    user_id,
    kind,
    display_name,
    primary_email,
    role,
    joined_at,
    deactivated_at
});

/// Adds somebody. A member with this role already stays one, as they are.
///
/// # Errors
/// `project-archived`. `not-found`: the tenant has no such user. `conflict`: deactivated. `invalid-body`: a service
/// account as owner. `membership-exists`: a member with another role. `last-owner`: the role that
/// stood without a membership was the last owner's. `database-unavailable`.
pub fn add(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    named: &Named,
    role: Role,
    now: OffsetDateTime,
) -> Result<Membership> {
    let (tenant_id, project_id) = (may.tenant_id(), may.object_id());
    projects::lock_open(tx, tenant_id, project_id)?;
    let principal = principals::active(tx, tenant_id, named)?;
    let user_id = principal.user_id;
    check_owner(principal.kind, role)?;
    if let Some(held) = find(tx, tenant_id, project_id, user_id)? {
        return if held.role == role {
            Ok(held)
        } else {
            Err(exists(held.role))
        };
    }
    let direct = tx.query_opt(
        sql!("project_memberships/delete_direct"),
        &[&tenant_id, &project_id, &user_id],
    )?;
    if let Some(row) = direct {
        keep_an_owner(tx, may, user_id, row.only()?, Some(role))?;
    }
    tx.execute(
        sql!("project_memberships/insert"),
        &[&tenant_id, &project_id, &user_id, &role, &now],
    )?;
    known(tx, tenant_id, project_id, user_id)
}

/// Gives a member another role.
///
/// # Errors
/// `not-found`: no membership. `invalid-body`: a service account as owner. `last-owner`.
/// `database-unavailable`.
pub fn change(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    user_id: Uuid,
    role: Role,
) -> Result<Membership> {
    let (tenant_id, project_id) = (may.tenant_id(), may.object_id());
    projects::lock(tx, tenant_id, project_id)?;
    let held = known(tx, tenant_id, project_id, user_id)?;
    check_owner(held.kind, role)?;
    keep_an_owner(tx, may, user_id, held.role, Some(role))?;
    tx.execute(
        sql!("project_memberships/update"),
        &[&tenant_id, &project_id, &user_id, &role],
    )?;
    known(tx, tenant_id, project_id, user_id)
}

/// Removes a member.
///
/// # Errors
/// `not-found`: no such user, or one whose role stands without a membership; one without a role is as
/// wanted. `last-owner`. `database-unavailable`.
pub fn remove(tx: &mut Tx<'_>, may: &impl May<Admin, Project>, user_id: Uuid) -> Result<()> {
    let (tenant_id, project_id) = (may.tenant_id(), may.object_id());
    projects::lock(tx, tenant_id, project_id)?;
    let Some(held) = find(tx, tenant_id, project_id, user_id)? else {
        // Whoever keeps a role was not removed.
        let direct = tx.query_opt(
            sql!("project_memberships/find_direct"),
            &[&tenant_id, &project_id, &user_id],
        )?;
        return match direct {
            Some(_) => Err(not_found(user_id)),
            None => principals::stands(tx, tenant_id, user_id),
        };
    };
    keep_an_owner(tx, may, user_id, held.role, None)?;
    let parameters: [super::Parameter<'_>; 3] = [&tenant_id, &project_id, &user_id];
    tx.execute(sql!("project_memberships/delete"), &parameters)?;
    // A role that the membership stood before must not come back.
    tx.query(sql!("project_memberships/delete_direct"), &parameters)?;
    Ok(())
}

/// A page of the project's memberships, by their users' ids.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Write, Project>,
    page: &Request,
) -> Result<Vec<Membership>> {
    let statement = list_sql!("project_memberships/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &may.tenant_id(),
            &may.object_id(),
            &page.after,
            &page.rows(),
        ],
    )
}

fn find(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    project_id: Uuid,
    user_id: Uuid,
) -> Result<Option<Membership>> {
    sql.fetch_optional(
        sql!("project_memberships/find"),
        &[&tenant_id, &project_id, &user_id],
    )
}

fn known(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    project_id: Uuid,
    user_id: Uuid,
) -> Result<Membership> {
    find(sql, tenant_id, project_id, user_id)?.ok_or_else(|| not_found(user_id))
}

fn not_found(user_id: Uuid) -> Error {
    Error::not_found("membership of user", user_id)
}

fn exists(held: Role) -> Error {
    let role = held.text();
    Error::new(
        Code::MembershipExists,
        format!(
            "The user is a member with the role {role} already. Change the role of that membership instead."
        ),
    )
    .detail("role", role)
}

fn check_owner(kind: PrincipalKind, role: Role) -> Result<()> {
    if role != Role::Owner || kind == PrincipalKind::User {
        return Ok(());
    }
    let expected = "admin, editor or viewer: a project's owner is a person";
    Err(Error::new(
        Code::InvalidBody,
        format!("The body's $.role: expected {expected}."),
    )
    .detail("path", "$.role")
    .detail("expected", expected))
}

/// Refuses a change that would leave the project without an owner who can act.
fn keep_an_owner(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    user_id: Uuid,
    held: Role,
    given: Option<Role>,
) -> Result<()> {
    if held != Role::Owner || given == Some(Role::Owner) {
        return Ok(());
    }
    let row = tx.query_one(
        sql!("project_memberships/has_other_owner"),
        &[&may.tenant_id(), &may.object_id(), &user_id],
    )?;
    if row.only()? {
        return Ok(());
    }
    Err(Error::new(
        Code::LastOwner,
        "This is the project's last owner. Make another person an owner first.",
    ))
}
