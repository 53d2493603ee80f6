//! Roles of teams on projects.
//!
//! Guarantee: a lock on the project's row serializes the changes of its grants, so each answers as
//! if it had been alone. A team that is being deleted is granted nothing.

use super::page::Request;
use super::project_memberships::Role;
use super::projects::{self, Project};
use super::teams::{self, Team};
use super::{Find, Parameter, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Kind, May, Read, Write};
use crate::{from_row, list_sql, sql};
use time::OffsetDateTime;
use uuid::Uuid;

/// A team's role on a project.
#[derive(Debug, Clone)]
pub struct TeamGrant {
    /// The project.
    pub project_id: Uuid,
    /// Its name.
    pub project_name: String,
    /// The team.
    pub team_id: Uuid,
    /// Its name.
    pub team_name: String,
    /// The role that every member of the team has by it: never owner.
    pub role: Role,
    /// Who gave it first.
    pub created_by: Uuid,
    /// When it was given first.
    pub created_at: OffsetDateTime,
    /// When its role was last changed.
    pub updated_at: OffsetDateTime,
}

from_row!(TeamGrant {
    project_id,
    project_name,
    team_id,
    team_name,
    role,
    created_by,
    created_at,
    updated_at
});

/// Gives the team a role on the project. A grant of this role stays as it is.
///
/// # Errors
/// `project-archived`. `not-found`: the team was deleted meanwhile. `team-grant-exists`: it has another role.
/// `database-unavailable`.
pub fn add(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    team: &impl May<Read, Team>,
    creator: &Caller,
    role: Role,
    now: OffsetDateTime,
) -> Result<TeamGrant> {
    let (tenant_id, project_id) = (may.tenant_id(), may.object_id());
    let team_id = team.object_id();
    projects::lock_open(tx, tenant_id, project_id)?;
    teams::keep(tx, tenant_id, team_id)?;
    if let Some(held) = find(tx, tenant_id, project_id, team_id)? {
        return if held.role == role {
            Ok(held)
        } else {
            Err(exists(held.role))
        };
    }
    tx.execute(
        sql!("team_grants/insert"),
        &[
            &tenant_id,
            &project_id,
            &team_id,
            &role,
            &creator.user_id,
            &now,
        ],
    )?;
    known(tx, tenant_id, project_id, team_id)
}

/// Gives the team another role.
///
/// # Errors
/// `not-found`: no grant. `database-unavailable`.
pub fn change(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    team_id: Uuid,
    role: Role,
    now: OffsetDateTime,
) -> Result<TeamGrant> {
    let (tenant_id, project_id) = (may.tenant_id(), may.object_id());
    projects::lock(tx, tenant_id, project_id)?;
    tx.execute(
        sql!("team_grants/update"),
        &[&tenant_id, &project_id, &team_id, &role, &now],
    )?;
    known(tx, tenant_id, project_id, team_id)
}

/// Takes the team's role.
///
/// # Errors
/// `not-found`: no such team; one without a grant is as wanted. `database-unavailable`.
pub fn remove(tx: &mut Tx<'_>, may: &impl May<Admin, Project>, team_id: Uuid) -> Result<()> {
    let (tenant_id, project_id) = (may.tenant_id(), may.object_id());
    projects::lock(tx, tenant_id, project_id)?;
    let removed = tx.execute(
        sql!("team_grants/delete"),
        &[&tenant_id, &project_id, &team_id],
    )?;
    if removed == 0 && Team::find(tx, tenant_id, team_id)?.is_none() {
        return Err(Error::not_found(Team::NAME, team_id));
    }
    Ok(())
}

/// A page of the project's grants, by their teams' ids.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Write, Project>,
    page: &Request,
) -> Result<Vec<TeamGrant>> {
    let statement = list_sql!("team_grants/list").by(page.order);
    let of: [Parameter<'_>; 2] = [&may.tenant_id(), &may.object_id()];
    sql.fetch_all(statement, &[of[0], of[1], &page.after, &page.rows()])
}

/// A page of the team's grants, by their projects' ids.
pub fn list_of_team(
    sql: &mut impl Sql,
    may: &impl May<Admin, Team>,
    page: &Request,
) -> Result<Vec<TeamGrant>> {
    let statement = list_sql!("team_grants/list_team").by(page.order);
    let of: [Parameter<'_>; 2] = [&may.tenant_id(), &may.object_id()];
    sql.fetch_all(statement, &[of[0], of[1], &page.after, &page.rows()])
}

fn find(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    project_id: Uuid,
    team_id: Uuid,
) -> Result<Option<TeamGrant>> {
    sql.fetch_optional(
        sql!("team_grants/find"),
        &[&tenant_id, &project_id, &team_id],
    )
}

fn known(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    project_id: Uuid,
    team_id: Uuid,
) -> Result<TeamGrant> {
    find(sql, tenant_id, project_id, team_id)?.ok_or_else(|| unknown(team_id))
}

fn unknown(team_id: Uuid) -> Error {
    Error::not_found("grant of team", team_id)
}

fn exists(held: Role) -> Error {
    let role = held.text();
    Error::new(
        Code::TeamGrantExists,
        format!("The team has the role {role} already. Change the role of that grant instead."),
    )
    .detail("role", role)
}
