//! The roles that one user has: in orgs, in teams, and every way into projects that is not a tenant
//! admin's.
//!
//! A user who was deactivated has none.

use super::Sql;
use super::page::Request;
use super::project_access::Way;
use super::project_memberships::Role;
use super::team_memberships::Role as TeamRole;
use crate::error::Result;
use crate::sql;
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

/// The first [`SHOWN_MOST`] orgs, and one more where there are more.
///
/// # Errors
/// `database-unavailable`.
pub fn orgs(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Vec<OrgGrant>> {
    let rows = sql.query(sql!("grants/orgs"), &[&tenant_id, &user_id, &most()])?;
    let org = |row: &Row| OrgGrant {
        org_id: row.get(0),
        name: row.get(1),
    };
    Ok(rows.iter().map(org).collect())
}

/// The first [`SHOWN_MOST`] teams, and one more where there are more.
///
/// # Errors
/// `database-unavailable`.
pub fn teams(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Vec<TeamGrant>> {
    let rows = sql.query(sql!("grants/teams"), &[&tenant_id, &user_id, &most()])?;
    let team = |row: &Row| TeamGrant {
        team_id: row.get(0),
        name: row.get(1),
        role: TeamRole::stored(row.get(2)),
    };
    Ok(rows.iter().map(team).collect())
}

fn most() -> i64 {
    i64::try_from(SHOWN_MOST)
        .unwrap_or(i64::MAX)
        .saturating_add(1)
}

/// A page of the projects that the user has ways into, each with all of them; of the one project
/// alone, where it is named.
///
/// # Errors
/// `database-unavailable`.
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
        let (project_id, role) = (row.get(0), Role::stored(row.get(3)));
        let way = way(row, role);
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
                name: row.get(1),
                role,
                ways: vec![way],
            }),
        }
    }
    Ok(grants)
}

fn way(row: &Row, role: Role) -> Way {
    match row.get(2) {
        "direct" => Way::Direct {
            role,
            joined_at: row.get(4),
        },
        "team" => Way::Team {
            team_id: row.get(5),
            team_name: row.get(6),
            role,
        },
        _ => Way::OrgAdmin,
    }
}
