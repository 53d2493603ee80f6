//! Who has access to a project, and through which roles (section 2.4).
//!
//! Guarantee: a page holds each principal once, with every role that gives access. The order is:
//! highest role first, then name without regard to case, then id.
//!
//! Not here: access checks (`authz`).

use super::page::TextRequest;
use super::principals::PrincipalKind;
use super::project_memberships::Role;
use super::projects::Project;
use super::{Columns, Sql};
use crate::error::Result;
use crate::proof::{Authorized, KeyRole, May, Write};
use crate::sql;
use postgres::Row;
use time::OffsetDateTime;
use uuid::Uuid;

/// Somebody with access to a project.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Who.
    pub user_id: Uuid,
    /// What they are.
    pub kind: PrincipalKind,
    /// Their name.
    pub display_name: String,
    /// A person's email.
    pub primary_email: Option<String>,
    place: String,
    /// Every way in; at least one.
    pub ways: Vec<Way>,
}

impl Entry {
    /// Their place in the list's order.
    pub fn key(&self) -> (&str, Uuid) {
        (&self.place, self.user_id)
    }

    /// The highest role that a way gives.
    pub fn role(&self) -> Role {
        let roles = self.ways.iter().map(Way::role);
        roles.min().unwrap_or(Role::Viewer)
    }
}

/// A way into a project.
#[derive(Debug, Clone)]
pub enum Way {
    /// A role of one's own.
    Direct {
        /// The role, as it is stored.
        role: Role,
        /// Since when; none where no membership stands behind it.
        joined_at: Option<OffsetDateTime>,
    },
    /// Admin of the tenant.
    TenantAdmin,
    /// Admin of the project's org.
    OrgAdmin,
    /// A role of a team that one is in.
    Team {
        /// The team.
        team_id: Uuid,
        /// Its name.
        team_name: String,
        /// Its role.
        role: Role,
    },
}

impl Way {
    fn role(&self) -> Role {
        match self {
            Self::Direct { role, .. } | Self::Team { role, .. } => *role,
            Self::TenantAdmin | Self::OrgAdmin => Role::Admin,
        }
    }
}

fn way(row: &Row) -> Result<Way> {
    let role = row.column("role")?;
    Ok(match row.column("via")? {
        "tenant-admin" => Way::TenantAdmin,
        "org-admin" => Way::OrgAdmin,
        "team" => Way::Team {
            team_id: row.column("team_id")?,
            team_name: row.column("team_name")?,
            role,
        },
        _ => Way::Direct {
            role,
            joined_at: row.column("joined_at")?,
        },
    })
}

/// A page of everybody who has access to the project.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Write, Project>,
    page: &TextRequest,
) -> Result<Vec<Entry>> {
    let (after_place, after_id) = page.after.clone().unzip();
    let rows = sql.query(
        sql!("project_access/list"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &after_place,
            &after_id,
            &page.rows(),
        ],
    )?;
    let mut entries: Vec<Entry> = Vec::new();
    for row in &rows {
        let user_id = row.column("user_id")?;
        match entries.last_mut().filter(|last| last.user_id == user_id) {
            Some(entry) => entry.ways.push(way(row)?),
            None => entries.push(Entry {
                user_id,
                kind: row.column("kind")?,
                display_name: row.column("display_name")?,
                primary_email: row.column("primary_email")?,
                place: row.column("place")?,
                ways: vec![way(row)?],
            }),
        }
    }
    Ok(entries)
}

/// Whether the caller is an admin of the project by any way, with a member key by any but that of a
/// tenant admin: what tells who sees emails.
pub fn administers(sql: &mut impl Sql, project: &Authorized<Project, Write>) -> Result<bool> {
    let caller = project.caller();
    let row = sql.query_one(
        sql!("project_access/administers"),
        &[
            &caller.tenant_id,
            &project.row().project_id,
            &caller.user_id,
            &(caller.key.role == KeyRole::Admin),
        ],
    )?;
    row.only()
}
