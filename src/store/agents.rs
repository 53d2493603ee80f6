//! Agents of a project.
//!
//! An archived agent starts nothing and gets no versions; its name stays taken.
//!
//! Not here: their versions (`agent_versions`).

use super::flows;
use super::page::Request;
use super::projects::{self, Project};
use super::readable::{Readable, readable};
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Kind, Listing, May, Scope};
use crate::{find_sql, from_row, list_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use time::OffsetDateTime;
use uuid::Uuid;

/// Said of what found its agent, its flow or its project archived, and is told so too late.
pub(super) const BACK_AGAIN: &str = "The agent, the flow or its project was archived, and was brought back meanwhile. Send the request again.";

/// An agent.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its id.
    pub agent_id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// Its name; unique in the project.
    pub name: String,
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

impl Kind for Agent {
    const NAME: &'static str = "agent";
    fn id(&self) -> Uuid {
        self.agent_id
    }
    fn scope(&self) -> Scope {
        Scope::InProject(self.project_id)
    }
}

impl Find for Agent {
    const FINDING: Finding = find_sql!("agents/find", "project", "project_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Agent {
    agent_id,
    project_id,
    name,
    description,
    latest_version,
    live_version,
    created_by,
    created_at,
    updated_at,
    archived_at
});

fn name_taken(name: &str) -> Error {
    Error::new(
        Code::AlreadyExists,
        format!("The project has an agent named {name} already. Choose another name."),
    )
}

/// Registers an agent in the project.
///
/// # Errors
/// `already-exists`: the project has an agent of this name. `project-archived`. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    creator: &Caller,
    agent_id: Uuid,
    name: &str,
    description: &str,
    now: OffsetDateTime,
) -> Result<Agent> {
    projects::lock_open(tx, may.tenant_id(), may.object_id())?;
    let inserted = tx.query_one(
        sql!("agents/insert"),
        &[
            &may.tenant_id(),
            &agent_id,
            &may.object_id(),
            &name,
            &description,
            &creator.user_id,
            &now,
        ],
    );
    let row = on_violation(inserted, &SqlState::UNIQUE_VIOLATION, || name_taken(name))?;
    Agent::from_row(&row)
}

/// Changes its name or its description; what is left out stays.
///
/// # Errors
/// `already-exists`: the project has another agent of this name. `database-unavailable`.
pub fn update(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Agent>,
    name: Option<&str>,
    description: Option<&str>,
    now: OffsetDateTime,
) -> Result<Agent> {
    let updated = tx.query_one(
        sql!("agents/update"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &name,
            &description,
            &now,
        ],
    );
    let row = on_violation(updated, &SqlState::UNIQUE_VIOLATION, || {
        name_taken(name.unwrap_or_default())
    })?;
    Agent::from_row(&row)
}

/// Makes a version the live one of the agent's project, or leaves none live.
///
/// # Errors
/// `not-found`: the agent has no such version. `database-unavailable`.
pub fn promote(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Agent>,
    version: Option<&str>,
    now: OffsetDateTime,
) -> Result<Agent> {
    let promoted = tx.query_one(
        sql!("agents/promote"),
        &[&may.tenant_id(), &may.object_id(), &version, &now],
    );
    let row = on_violation(promoted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        no_version(version.unwrap_or_default())
    })?;
    Agent::from_row(&row)
}

/// Archives it, or brings it back. One that stands so already stays as it is.
pub fn set_archived(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Agent>,
    is_archived: bool,
    now: OffsetDateTime,
) -> Result<Agent> {
    tx.fetch_one(
        sql!("agents/archive"),
        &[&may.tenant_id(), &may.object_id(), &is_archived, &now],
    )
}

/// Why nothing started in this project with this agent, or with the flow of this id: one of them is archived, or else what
/// `otherwise` says.
pub(super) fn not_started(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    (project_id, agent_id, flow_id): (Uuid, Option<Uuid>, Option<&str>),
    otherwise: &str,
) -> Result<Error> {
    let row = sql.query_one(
        sql!("agents/archived"),
        &[&tenant_id, &project_id, &agent_id, &flow_id],
    )?;
    if row.column("is_project_archived")? {
        return Ok(projects::archived(project_id));
    }
    let is_agent_archived: bool = row.column("is_agent_archived")?;
    let archived_flow: Option<Uuid> = row.column("archived_flow")?;
    Ok(match (agent_id, flow_id, archived_flow) {
        (Some(agent_id), ..) if is_agent_archived => archived(agent_id),
        (_, Some(flow_id), Some(id)) => flows::archived(flow_id, id),
        _ => Error::new(Code::Conflict, otherwise),
    })
}

/// The agent is archived.
pub fn archived(agent_id: Uuid) -> Error {
    Error::new(
        Code::AgentArchived,
        format!(
            "The agent {agent_id} is archived: it starts nothing and gets no versions. Bring it back first: POST /v1/agents/{agent_id}/unarchive."
        ),
    )
}

pub(super) fn no_version(version: &str) -> Error {
    Error::not_found(
        "agent version",
        version.chars().take(64).collect::<String>(),
    )
}

/// A page of the agents that the caller may read, of one project if given: of those that are archived or whose project is, or
/// of the others.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Agent>,
    project_id: Option<Uuid>,
    is_archived: bool,
    page: &Request,
) -> Result<Vec<Agent>> {
    let tenant_id = listing.caller().tenant_id;
    let project_id = match readable(sql, listing, project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::OfProject(project_id) => Some(project_id),
        Readable::All => None,
        Readable::By(user_id) => {
            let statement = list_sql!("agents/list_reader").by(page.order);
            return sql.fetch_all(
                statement,
                &[
                    &tenant_id,
                    &user_id,
                    &page.after,
                    &page.rows(),
                    &is_archived,
                ],
            );
        }
    };
    let statement = list_sql!("agents/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &tenant_id,
            &project_id,
            &page.after,
            &page.rows(),
            &is_archived,
        ],
    )
}
