//! Projects, and their creators' memberships.
//!
//! Nothing new is made in an archived project. Whoever makes something there locks the project's row and looks; a run's and a
//! conversation's start is too frequent for a lock, and looks in the statement that writes it.

use super::orgs::Org;
use super::page::{Order, Request};
use super::readable::{Readable, readable};
use super::tenants::Tenant;
use super::{Columns, Find, Finding, FromRow, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Kind, Listing, May, Scope, Write};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use time::OffsetDateTime;
use uuid::Uuid;

/// Rows of each further look for readable projects.
const READ_ON: i64 = 500;

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
    /// Since when it is archived.
    pub archived_at: Option<OffsetDateTime>,
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
    updated_at,
    archived_at
});

/// Makes a project. Its creator becomes its owner, or its admin where that is a service account.
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
    lock_row(tx, tenant_id, project_id).map(|_| ())
}

/// As [`lock`], before something new is made in the project: it is not archived until the transaction ends.
///
/// # Errors
/// `not-found`, `project-archived`, `database-unavailable`.
pub(super) fn lock_open(tx: &mut Tx<'_>, tenant_id: Uuid, project_id: Uuid) -> Result<()> {
    match lock_row(tx, tenant_id, project_id)? {
        None => Ok(()),
        Some(_) => Err(archived(project_id)),
    }
}

fn lock_row(tx: &mut Tx<'_>, tenant_id: Uuid, project_id: Uuid) -> Result<Option<OffsetDateTime>> {
    tx.query_opt(sql!("projects/lock"), &[&tenant_id, &project_id])?
        .ok_or_else(|| Error::not_found(Project::NAME, project_id))?
        .only()
}

pub(super) fn archived(project_id: Uuid) -> Error {
    Error::new(
        Code::ProjectArchived,
        format!(
            "The project {project_id} is archived: nothing new is made in it. Bring it back first: POST /v1/projects/{project_id}/unarchive."
        ),
    )
}

/// Archives it, or brings it back. One that stands so already stays as it is.
pub fn set_archived(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    is_archived: bool,
    now: OffsetDateTime,
) -> Result<Project> {
    tx.fetch_one(
        sql!("projects/archive"),
        &[&may.tenant_id(), &may.object_id(), &is_archived, &now],
    )
}

/// Renames it.
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

/// A page of the projects that the caller may read: of those that are archived, or of the others.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Project>,
    is_archived: bool,
    page: &Request,
) -> Result<Vec<Project>> {
    let tenant_id = listing.caller().tenant_id;
    match readable(sql, listing, None)? {
        Readable::Nothing => Ok(Vec::new()),
        Readable::OfProject(project_id) => {
            let is_after = page.after.is_none_or(|after| match page.order {
                Order::Asc => project_id > after,
                Order::Desc => project_id < after,
            });
            let found = match is_after {
                true => Project::find(sql, tenant_id, project_id)?,
                false => None,
            };
            Ok(found
                .filter(|project| project.archived_at.is_some() == is_archived)
                .into_iter()
                .collect())
        }
        Readable::By(user_id) => list_reader(sql, (tenant_id, user_id), is_archived, page),
        Readable::All => {
            let statement = list_sql!("projects/list").by(page.order);
            let rows = page.rows();
            sql.fetch_all(statement, &[&tenant_id, &page.after, &rows, &is_archived])
        }
    }
}

/// The ways into projects do not say which of them are archived: those of the other kind are left out, and where the page
/// has room for more, the list is read on.
fn list_reader(
    sql: &mut impl Sql,
    (tenant_id, user_id): (Uuid, Uuid),
    is_archived: bool,
    page: &Request,
) -> Result<Vec<Project>> {
    let statement = list_sql!("projects/list_reader").by(page.order);
    let (mut after, mut most) = (page.after, page.rows());
    let mut found: Vec<Project> = Vec::new();
    loop {
        let read: Vec<Project> =
            sql.fetch_all(statement, &[&tenant_id, &user_id, &after, &most])?;
        let is_last = read.len() < usize::try_from(most).unwrap_or(usize::MAX);
        after = read.last().map(|project| project.project_id);
        let fits = |project: &Project| project.archived_at.is_some() == is_archived;
        found.extend(read.into_iter().filter(fits));
        if is_last || found.len() > usize::from(page.limit) {
            found.truncate(usize::from(page.limit) + 1);
            return Ok(found);
        }
        most = READ_ON;
    }
}
