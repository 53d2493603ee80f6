//! The members of teams.
//!
//! Guarantee: a lock on the team's row serializes the changes of its memberships, so each answers
//! as if it had been alone.

use super::page::Request;
use super::principals::{self, Named, PrincipalKind};
use super::teams::{self, Team};
use super::{Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May};
use crate::{from_row, list_sql, sql, texts};
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    // Specification, section 5.2.
    /// A role in a team.
    #[schemars(rename = "TeamRole")]
    Role {
        /// Decides who is in it.
        Admin = "admin",
        /// Has the roles that the team has.
        Member = "member",
    }
}

/// Somebody's membership of a team.
#[derive(Debug, Clone)]
pub struct TeamMembership {
    /// The team.
    pub team_id: Uuid,
    /// Who.
    pub user_id: Uuid,
    /// What they are.
    pub kind: PrincipalKind,
    /// Their name.
    pub display_name: String,
    /// Their role.
    pub role: Role,
    /// Since when.
    pub joined_at: OffsetDateTime,
    /// Since when they can do nothing any more.
    pub deactivated_at: Option<OffsetDateTime>,
}

from_row!(TeamMembership {
    team_id,
    user_id,
    kind,
    display_name,
    role,
    joined_at,
    deactivated_at
});

/// Adds somebody. A member with this role already stays one, as they are.
///
/// # Errors
/// `not-found`: the tenant has no such user, or the team was deleted meanwhile. `conflict`:
/// deactivated. `membership-exists`: a member with the other role. `database-unavailable`.
pub fn add(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Team>,
    named: &Named,
    role: Role,
    now: OffsetDateTime,
) -> Result<TeamMembership> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    teams::lock(tx, tenant_id, team_id)?;
    let user_id = principals::active(tx, tenant_id, named)?.user_id;
    if let Some(held) = find(tx, tenant_id, team_id, user_id)? {
        return if held.role == role {
            Ok(held)
        } else {
            Err(exists(held.role))
        };
    }
    tx.execute(
        sql!("team_memberships/insert"),
        &[&tenant_id, &team_id, &user_id, &role, &now],
    )?;
    known(tx, tenant_id, team_id, user_id)
}

/// Gives a member the other role.
///
/// # Errors
/// `not-found`: no membership. `database-unavailable`.
pub fn change(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Team>,
    user_id: Uuid,
    role: Role,
) -> Result<TeamMembership> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    teams::lock(tx, tenant_id, team_id)?;
    tx.execute(
        sql!("team_memberships/update"),
        &[&tenant_id, &team_id, &user_id, &role],
    )?;
    known(tx, tenant_id, team_id, user_id)
}

/// Removes a member.
///
/// # Errors
/// `not-found`: no such user; one without a membership is as wanted. `database-unavailable`.
pub fn remove(tx: &mut Tx<'_>, may: &impl May<Admin, Team>, user_id: Uuid) -> Result<()> {
    let (tenant_id, team_id) = (may.tenant_id(), may.object_id());
    teams::lock(tx, tenant_id, team_id)?;
    let removed = tx.execute(
        sql!("team_memberships/delete"),
        &[&tenant_id, &team_id, &user_id],
    )?;
    if removed == 0 {
        return principals::stands(tx, tenant_id, user_id);
    }
    Ok(())
}

/// A page of the team's memberships, by their users' ids.
///
/// # Errors
/// `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, Team>,
    page: &Request,
) -> Result<Vec<TeamMembership>> {
    let statement = list_sql!("team_memberships/list").by(page.order);
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
    team_id: Uuid,
    user_id: Uuid,
) -> Result<Option<TeamMembership>> {
    sql.fetch_optional(
        sql!("team_memberships/find"),
        &[&tenant_id, &team_id, &user_id],
    )
}

fn known(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    team_id: Uuid,
    user_id: Uuid,
) -> Result<TeamMembership> {
    find(sql, tenant_id, team_id, user_id)?.ok_or_else(|| unknown(user_id))
}

fn unknown(user_id: Uuid) -> Error {
    Error::not_found("membership of user", user_id)
}

fn exists(held: Role) -> Error {
    let role = held.text();
    Error::new(
        Code::MembershipExists,
        format!(
            "The user is in the team with the role {role} already. Change the role of that membership instead."
        ),
    )
    .detail("role", role)
}
