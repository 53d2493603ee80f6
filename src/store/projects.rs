//! Projects, and their creators' memberships.

use super::orgs::Org;
use super::page::{Order, Request};
use super::readable::{Readable, readable};
use super::tenants::Tenant;
use super::{Find, Finding, FromRow, Sql, Tx};
use crate::error::{Error, Result};
use crate::proof::{Admin, Caller, Kind, Listing, May, Scope, Write};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use time::OffsetDateTime;
use uuid::Uuid;

/// A project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its id.
    pub project_id: Uuid,
    /// Its name.
    pub name: String,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
}

impl Kind for Project {
    const NAME: &'static str = "project";
    fn id(&self) -> Uuid {
        self.project_id
    }
    fn scope(&self) -> Scope {
        Scope::Itself
    }
}

impl Find for Project {
    const FINDING: Finding = find_sql!("projects/find", "project", "project_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Project {
    project_id,
    name,
    created_by,
    created_at,
    updated_at
});

/// Makes a project. Its creator becomes its owner, or its admin where that is a service account.
///
/// # Errors
/// `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Write, Tenant>,
    creator: &Caller,
    project_id: Uuid,
    name: &str,
    now: OffsetDateTime,
) -> Result<Project> {
    insert_in(tx, may.tenant_id(), None, creator, project_id, name, now)
}

/// Makes a project in an org, as [`insert`].
///
/// # Errors
/// `database-unavailable`.
pub fn insert_in_org(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Org>,
    creator: &Caller,
    project_id: Uuid,
    name: &str,
    now: OffsetDateTime,
) -> Result<Project> {
    let org_id = Some(may.object_id());
    insert_in(tx, may.tenant_id(), org_id, creator, project_id, name, now)
}

fn insert_in(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    org_id: Option<Uuid>,
    creator: &Caller,
    project_id: Uuid,
    name: &str,
    now: OffsetDateTime,
) -> Result<Project> {
    let row = tx.query_one(
        sql!("projects/insert"),
        &[
            &tenant_id,
            &project_id,
            &name,
            &creator.user_id,
            &now,
            &org_id,
        ],
    )?;
    Project::from_row(&row)
}

/// Makes the changes of who has access to a project come one after another: each waits here for the
/// transaction of the one before it.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub(super) fn lock(tx: &mut Tx<'_>, tenant_id: Uuid, project_id: Uuid) -> Result<()> {
    tx.query_opt(sql!("projects/lock"), &[&tenant_id, &project_id])?
        .map(|_| ())
        .ok_or_else(|| Error::not_found(Project::NAME, project_id))
}

/// Renames it.
///
/// # Errors
/// `database-unavailable`.
pub fn rename(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    name: &str,
    now: OffsetDateTime,
) -> Result<Project> {
    let row = tx.query_one(
        sql!("projects/rename"),
        &[&may.tenant_id(), &may.object_id(), &name, &now],
    )?;
    Project::from_row(&row)
}

/// A page of the projects that the caller may read.
///
/// # Errors
/// `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Project>,
    page: &Request,
) -> Result<Vec<Project>> {
    let tenant_id = listing.caller().tenant_id;
    let rows = match readable(sql, listing, None)? {
        Readable::Nothing => Vec::new(),
        Readable::OfProject(project_id) => {
            let is_after = page.after.is_none_or(|after| match page.order {
                Order::Asc => project_id > after,
                Order::Desc => project_id < after,
            });
            if is_after {
                sql.query(sql!("projects/find"), &[&tenant_id, &project_id])?
            } else {
                Vec::new()
            }
        }
        Readable::By(user_id) => {
            let statement = list_sql!("projects/list_reader").by(page.order);
            sql.query(
                statement,
                &[&tenant_id, &user_id, &page.after, &page.rows()],
            )?
        }
        Readable::All => {
            let statement = list_sql!("projects/list").by(page.order);
            sql.query(statement, &[&tenant_id, &page.after, &page.rows()])?
        }
    };
    rows.iter().map(Project::from_row).collect()
}
