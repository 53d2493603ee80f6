//! Flows of a project.
//!
//! A run names its flow by project, flow id and version, and there is one flow of an id in a project. An archived flow starts
//! nothing and gets no versions; its id stays taken.
//!
//! Not here: their versions (`flow_versions`), and what a definition may say (`crate::flows`).

use super::page::Request;
use super::projects::{self, Project};
use super::readable::{Readable, readable};
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Authorized, Kind, Listing, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use time::OffsetDateTime;
use uuid::Uuid;

/// A flow.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Its row's id.
    pub id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// `namespace.name`; unique in the project.
    pub flow_id: String,
    /// Its name for people.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Its highest version.
    pub latest_version: Option<String>,
    /// The version that was promoted for its project.
    pub live_version: Option<String>,
    /// Who registered it.
    pub created_by: Uuid,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
    /// Since when it is archived itself; its project may be, too.
    pub archived_at: Option<OffsetDateTime>,
}

impl Flow {
    /// The version that runs if none is named: the live one, else the latest.
    pub fn current_version(&self) -> Option<&str> {
        let live = self.live_version.as_deref();
        live.or(self.latest_version.as_deref())
    }
}

/// A flow to register.
#[derive(Debug)]
pub struct New<'a> {
    /// See [`Flow`].
    pub id: Uuid,
    /// See [`Flow`].
    pub flow_id: &'a str,
    /// See [`Flow`].
    pub title: &'a str,
    /// See [`Flow`].
    pub description: &'a str,
}

impl Kind for Flow {
    const NAME: &'static str = "flow";
    fn id(&self) -> Uuid {
        self.id
    }
    fn scope(&self) -> Scope {
        Scope::InProject(self.project_id)
    }
}

impl Find for Flow {
    const FINDING: Finding = find_sql!("flows/find", "project", "project_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Flow {
    id,
    project_id,
    flow_id,
    title,
    description,
    latest_version,
    live_version,
    created_by,
    created_at,
    updated_at,
    archived_at
});

/// Registers a flow in the project, without a version.
///
/// # Errors
/// `already-exists`: the project has a flow of this id. `project-archived`. `database-unavailable`.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    may: &Authorized<Project, Admin>,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<()> {
    let creator = may.caller();
    let (tenant_id, project_id) = (creator.tenant_id, may.row().project_id);
    projects::lock_open(tx, tenant_id, project_id)?;
    let inserted = tx.execute(
        sql!("flows/insert"),
        &[
            &tenant_id,
            &new.id,
            &project_id,
            &new.flow_id,
            &new.title,
            &new.description,
            &creator.user_id,
            &now,
        ],
    );
    on_violation(inserted, &SqlState::UNIQUE_VIOLATION, || {
        Error::new(
            Code::AlreadyExists,
            format!(
                "The project has a flow {} already. Make a version of it: POST /v1/flows/{{id}}/versions.",
                new.flow_id
            ),
        )
    })?;
    Ok(())
}

/// Changes its title or its description; what is left out stays.
pub fn update(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Flow>,
    title: Option<&str>,
    description: Option<&str>,
    now: OffsetDateTime,
) -> Result<Flow> {
    tx.fetch_one(
        sql!("flows/update"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &title,
            &description,
            &now,
        ],
    )
}

/// Makes a version the live one of the flow's project, or leaves none live.
///
/// # Errors
/// `not-found`: the flow has no such version. `database-unavailable`.
pub fn promote(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Flow>,
    version: Option<&str>,
    now: OffsetDateTime,
) -> Result<Flow> {
    let promoted = tx.query_one(
        sql!("flows/promote"),
        &[&may.tenant_id(), &may.object_id(), &version, &now],
    );
    let row = on_violation(promoted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        no_version(version.unwrap_or_default())
    })?;
    Flow::from_row(&row)
}

/// Archives it, or brings it back. One that stands so already stays as it is.
pub fn set_archived(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Flow>,
    is_archived: bool,
    now: OffsetDateTime,
) -> Result<Flow> {
    tx.fetch_one(
        sql!("flows/archive"),
        &[&may.tenant_id(), &may.object_id(), &is_archived, &now],
    )
}

/// Why nothing starts with the flow.
pub fn archived(flow_id: &str, id: Uuid) -> Error {
    Error::new(
        Code::FlowArchived,
        format!(
            "The flow {flow_id} is archived: it starts nothing and gets no versions. Bring it back first: POST /v1/flows/{id}/unarchive."
        ),
    )
}

/// The flow has no such version.
pub fn no_version(version: &str) -> Error {
    Error::not_found("flow version", version.chars().take(64).collect::<String>())
}

/// The flow of this id in the project, for a run of the same project.
pub fn named(
    sql: &mut impl Sql,
    (tenant_id, project_id): (Uuid, Uuid),
    flow_id: &str,
) -> Result<Option<Flow>> {
    sql.fetch_optional(
        sql!("flows/find_named"),
        &[&tenant_id, &project_id, &flow_id],
    )
}

/// The ids of the tenant's flows of this `flowId`, of one project if given: two at most, which tells one from several.
/// Access to the one that is meant is still to be checked.
pub fn of_name(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    flow_id: &str,
    project_id: Option<Uuid>,
) -> Result<Vec<Uuid>> {
    let rows = sql.query(sql!("flows/of_name"), &[&tenant_id, &flow_id, &project_id])?;
    rows.iter().map(|row| row.column("id")).collect()
}

/// Which flows.
#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    /// Of this project.
    pub project_id: Option<Uuid>,
    /// Of this id.
    pub flow_id: Option<&'a str>,
    /// Those that are archived or whose project is, or the others.
    pub is_archived: bool,
}

/// A page of the flows that the caller may read.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Flow>,
    filter: &Filter<'_>,
    page: &Request,
) -> Result<Vec<Flow>> {
    let tenant_id = listing.caller().tenant_id;
    let project_id = match readable(sql, listing, filter.project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::OfProject(project_id) => Some(project_id),
        Readable::All => None,
        Readable::By(user_id) => {
            let statement = list_sql!("flows/list_reader").by(page.order);
            return sql.fetch_all(
                statement,
                &[
                    &tenant_id,
                    &user_id,
                    &page.after,
                    &page.rows(),
                    &filter.is_archived,
                    &filter.flow_id,
                ],
            );
        }
    };
    let statement = list_sql!("flows/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &tenant_id,
            &project_id,
            &page.after,
            &page.rows(),
            &filter.is_archived,
            &filter.flow_id,
        ],
    )
}
