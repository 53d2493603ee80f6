//! The roles of one user: in orgs, in teams, and on projects through any role except a tenant
//! admin's.
//!
//! A deactivated user has none.

use super::page::Request;
use super::project_access::Way;
use super::project_memberships::Role;
use super::team_memberships::Role as TeamRole;
use super::{Columns, Sql};
use crate::error::Result;
use crate::{from_row, sql};
use postgres::Row;
use uuid::Uuid;

/// Orgs and teams of one user that are shown at most.
pub const SHOWN_MOST: usize = 1000;

/// An org that the user is an admin of.
#[derive(Debug, Clone)]
pub struct OrgGrant {
    /// The org.
    pub org_id: Uuid,
    /// Its name.
    pub name: String,
}

/// A team that the user is in.
#[derive(Debug, Clone)]
pub struct TeamGrant {
    /// The team.
    pub team_id: Uuid,
    /// Its name.
    pub name: String,
    /// The user's role in it.
    pub role: TeamRole,
}

/// A project that the user has ways into.
#[derive(Debug, Clone)]
pub struct ProjectGrant {
    /// The project.
    pub project_id: Uuid,
    /// Its name.
    pub name: String,
    /// The highest role that any way gives.
    pub role: Role,
    /// Every way.
    pub ways: Vec<Way>,
}

from_row!(OrgGrant { org_id, name });
from_row!(TeamGrant {
    team_id,
    name,
    role
});

/// The first [`SHOWN_MOST`] orgs, and one more where there are more.
pub fn orgs(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Vec<OrgGrant>> {
    sql.fetch_all(sql!("grants/orgs"), &[&tenant_id, &user_id, &most()])
}

/// The first [`SHOWN_MOST`] teams, and one more where there are more.
pub fn teams(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Vec<TeamGrant>> {
    sql.fetch_all(sql!("grants/teams"), &[&tenant_id, &user_id, &most()])
}

fn most() -> i64 {
    i64::try_from(SHOWN_MOST)
        .unwrap_or(i64::MAX)
        .saturating_add(1)
}

/// A page of the projects that the user has ways into, each with all of them; of the one project
/// alone, where it is named.
pub fn projects(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    user_id: Uuid,
    project_id: Option<Uuid>,
    page: &Request,
) -> Result<Vec<ProjectGrant>> {
    let rows = sql.query(
        sql!("grants/projects"),
        &[&tenant_id, &user_id, &project_id, &page.after, &page.rows()],
    )?;
    let mut grants: Vec<ProjectGrant> = Vec::new();
    for row in &rows {
        let (project_id, role) = (row.column("project_id")?, row.column("role")?);
        let way = way(row, role)?;
        match grants
            .last_mut()
            .filter(|last| last.project_id == project_id)
        {
            Some(grant) => {
                // The highest role is the first.
                grant.role = grant.role.min(role);
                grant.ways.push(way);
            }
            None => grants.push(ProjectGrant {
                project_id,
                name: row.column("name")?,
                role,
                ways: vec![way],
            }),
        }
    }
    Ok(grants)
}

fn way(row: &Row, role: Role) -> Result<Way> {
    Ok(match row.column("via")? {
        "direct" => Way::Direct {
            role,
            joined_at: row.column("joined_at")?,
        },
        "team" => Way::Team {
            team_id: row.column("team_id")?,
            team_name: row.column("team_name")?,
            role,
        },
        _ => Way::OrgAdmin,
    })
}
