//! Agents, their versions, and which of them a turn runs.
//!
//! A version is never changed or deleted. An agent's latest version is its highest by the precedence
//! of Semantic Versioning 2.0.0, and a release is above every pre-release; it is kept with the agent
//! under its row lock.

use super::conversations::Conversation;
use super::page::{Order, Request};
use super::projects::Project;
use super::readable::{Readable, readable};
use super::{Find, Finding, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Authorized, Caller, Kind, Listing, May, Read, Scope, Write};
use crate::store::runs::Via;
use crate::{find_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use semver::Version;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

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
}

/// A version of an agent.
#[derive(Debug, Clone)]
pub struct AgentVersion {
    /// The agent.
    pub agent_id: Uuid,
    /// The semantic version.
    pub version: String,
    /// What the model is told first.
    pub instructions: String,
    /// Whose model it is.
    pub model_provider_id: Uuid,
    /// The model's name.
    pub model: String,
    /// How the model is asked.
    pub parameters: Value,
    /// Where a turn ends.
    pub limits: Value,
    /// The tools that the model may call, in order.
    pub tool_ids: Vec<Uuid>,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// A version in the list of its agent's.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The agent.
    pub agent_id: Uuid,
    /// The semantic version.
    pub version: String,
    /// Its number in the order of making, from 1.
    pub position: i64,
    /// Whose model it is.
    pub model_provider_id: Uuid,
    /// The model's name.
    pub model: String,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// A version to make.
#[derive(Debug)]
pub struct NewVersion<'a> {
    /// The semantic version; the next patch if left out.
    pub version: Option<Version>,
    /// See [`AgentVersion`].
    pub instructions: &'a str,
    /// See [`AgentVersion`].
    pub model_provider_id: Uuid,
    /// See [`AgentVersion`].
    pub model: &'a str,
    /// See [`AgentVersion`].
    pub parameters: &'a Value,
    /// See [`AgentVersion`].
    pub limits: &'a Value,
    /// See [`AgentVersion`].
    pub tool_ids: &'a [Uuid],
}

/// What a version refers to and may not.
#[derive(Debug)]
pub struct References {
    /// The tenant has the provider.
    pub has_provider: bool,
    /// The provider has the model.
    pub has_model: bool,
    /// Tools that are not the project's.
    pub foreign_tools: Vec<Uuid>,
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
    const FINDING: Finding = find_sql!("agents/find");
    fn read(row: &Row) -> Result<Option<Self>> {
        Ok(Some(agent(row)))
    }
}

fn agent(row: &Row) -> Agent {
    Agent {
        agent_id: row.get(0),
        project_id: row.get(1),
        name: row.get(2),
        description: row.get(3),
        latest_version: row.get(4),
        live_version: row.get(5),
        created_by: row.get(6),
        created_at: row.get(7),
        updated_at: row.get(8),
    }
}

fn agent_version(row: &Row) -> AgentVersion {
    AgentVersion {
        agent_id: row.get(0),
        version: row.get(1),
        instructions: row.get(2),
        model_provider_id: row.get(3),
        model: row.get(4),
        parameters: row.get(5),
        limits: row.get(6),
        tool_ids: row.get(7),
        created_by: row.get(8),
        created_at: row.get(9),
    }
}

fn name_taken(name: &str) -> Error {
    Error::new(
        Code::AlreadyExists,
        format!("The project has an agent named {name} already. Choose another name."),
    )
}

/// Registers an agent in the project.
///
/// # Errors
/// `already-exists`: the project has an agent of this name. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    creator: &Caller,
    agent_id: Uuid,
    name: &str,
    description: &str,
    now: OffsetDateTime,
) -> Result<Agent> {
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
    Ok(agent(&row))
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
    Ok(agent(&row))
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
    Ok(agent(&row))
}

fn no_version(version: &str) -> Error {
    Error::not_found(
        "agent version",
        version.chars().take(64).collect::<String>(),
    )
}

/// A page of the agents that the caller may read, of one project if given.
///
/// # Errors
/// `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Agent>,
    project_id: Option<Uuid>,
    page: &Request,
) -> Result<Vec<Agent>> {
    let tenant_id = listing.caller().tenant_id;
    let project_id = match readable(sql, listing, project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::OfProject(project_id) => Some(project_id),
        Readable::All => None,
        Readable::By(user_id) => {
            let statement = match page.order {
                Order::Asc => sql!("agents/list_reader_asc"),
                Order::Desc => sql!("agents/list_reader_desc"),
            };
            let rows = sql.query(
                statement,
                &[&tenant_id, &user_id, &page.after, &page.rows()],
            )?;
            return Ok(rows.iter().map(agent).collect());
        }
    };
    let statement = match page.order {
        Order::Asc => sql!("agents/list_asc"),
        Order::Desc => sql!("agents/list_desc"),
    };
    let rows = sql.query(
        statement,
        &[&tenant_id, &project_id, &page.after, &page.rows()],
    )?;
    Ok(rows.iter().map(agent).collect())
}

/// Whether a version may refer to what it refers to.
///
/// # Errors
/// `database-unavailable`.
pub fn references(
    sql: &mut impl Sql,
    may: &impl May<Write, Agent>,
    project_id: Uuid,
    new: &NewVersion<'_>,
) -> Result<References> {
    let row = sql.query_one(
        sql!("agents/references"),
        &[
            &may.tenant_id(),
            &project_id,
            &new.model_provider_id,
            &new.model,
            &new.tool_ids,
        ],
    )?;
    Ok(References {
        has_provider: row.get(0),
        has_model: row.get(1),
        foreign_tools: row.get(2),
    })
}

/// Makes a version, and makes it the latest if it is the highest.
///
/// # Errors
/// `already-exists`: the agent has this version. `conflict`: no version can follow the latest by
/// itself, or a tool or model was removed meanwhile. `database-unavailable`.
pub fn insert_version(
    tx: &mut Tx<'_>,
    may: &impl May<Write, Agent>,
    creator: &Caller,
    new: &NewVersion<'_>,
    now: OffsetDateTime,
) -> Result<AgentVersion> {
    let (tenant_id, agent_id) = (may.tenant_id(), may.object_id());
    let locked = agent(&tx.query_one(sql!("agents/lock"), &[&tenant_id, &agent_id])?);
    let latest = locked
        .latest_version
        .as_deref()
        .map(Version::parse)
        .transpose()
        .map_err(Error::internal)?;
    let version = match &new.version {
        Some(version) => version.clone(),
        None => next_after(latest.as_ref()).ok_or_else(|| {
            Error::new(
                Code::Conflict,
                "No patch version can follow the latest. Name the version.",
            )
        })?,
    };
    let becomes_latest = latest.is_none_or(|latest| is_above(&version, &latest));
    let text = version.to_string();
    let inserted = tx.execute(
        sql!("agents/insert_version"),
        &[
            &tenant_id,
            &agent_id,
            &text,
            &new.instructions,
            &new.model_provider_id,
            &new.model,
            &new.parameters,
            &new.limits,
            &new.tool_ids,
            &creator.user_id,
            &now,
            &becomes_latest,
        ],
    );
    let inserted = on_violation(inserted, &SqlState::UNIQUE_VIOLATION, || {
        Error::new(
            Code::AlreadyExists,
            format!(
                "The agent has a version {text} already, and versions are never changed. Choose another."
            ),
        )
    });
    on_violation(inserted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        Error::new(
            Code::Conflict,
            "A tool or a model that the version uses was removed meanwhile. Look again.",
        )
    })?;
    find_version(tx, tenant_id, agent_id, &text)
}

fn find_version(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    agent_id: Uuid,
    version: &str,
) -> Result<AgentVersion> {
    sql.query_opt(
        sql!("agents/find_version"),
        &[&tenant_id, &agent_id, &version],
    )?
    .map(|row| agent_version(&row))
    .ok_or_else(|| no_version(version))
}

/// A version of the agent.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn version(
    sql: &mut impl Sql,
    may: &impl May<Read, Agent>,
    version: &str,
) -> Result<AgentVersion> {
    find_version(sql, may.tenant_id(), may.object_id(), version)
}

/// A page of the agent's versions, in the order in which they were made.
///
/// # Errors
/// `database-unavailable`.
pub fn list_versions(
    sql: &mut impl Sql,
    may: &impl May<Read, Agent>,
    page: &Request,
) -> Result<Vec<Listed>> {
    let statement = match page.order {
        Order::Asc => sql!("agents/list_versions_asc"),
        Order::Desc => sql!("agents/list_versions_desc"),
    };
    let rows = sql.query(
        statement,
        &[
            &may.tenant_id(),
            &may.object_id(),
            &page.after_position(),
            &page.rows(),
        ],
    )?;
    let listed = |row: &Row| Listed {
        agent_id: row.get(0),
        version: row.get(1),
        position: row.get(2),
        model_provider_id: row.get(3),
        model: row.get(4),
        created_by: row.get(5),
        created_at: row.get(6),
    };
    Ok(rows.iter().map(listed).collect())
}

/// Which version a turn of the agent runs, and why (section 2.7): the one that the caller named, else the
/// conversation's own, else the live one, else the latest, as the agent was when `may` was given.
///
/// # Errors
/// `not-found`: the agent has no version of the name that the caller gave, or the conversation is
/// with another agent. `conflict`: the agent has no version. `database-unavailable`.
pub fn resolve(
    sql: &mut impl Sql,
    may: &Authorized<Agent, Write>,
    explicit: Option<&str>,
    conversation: Option<&Conversation>,
) -> Result<(String, Via)> {
    let agent = may.row();
    let (tenant_id, agent_id) = (may.caller().tenant_id, agent.agent_id);
    if let Some(conversation) = conversation.filter(|with| with.agent_id != agent_id) {
        return Err(Error::not_found(
            "conversation with this agent",
            conversation.conversation_id,
        ));
    }
    if let Some(version) = explicit {
        sql.query_opt(
            sql!("agents/has_version"),
            &[&tenant_id, &agent_id, &version],
        )?
        .ok_or_else(|| no_version(version))?;
        return Ok((version.to_owned(), Via::Explicit));
    }
    if let Some(version) = conversation.and_then(|with| with.version.clone()) {
        return Ok((version, Via::Conversation));
    }
    let live = agent.live_version.clone();
    live.map(|version| (version, Via::Live))
        .or_else(|| {
            let latest = agent.latest_version.clone();
            latest.map(|version| (version, Via::Latest))
        })
        .ok_or_else(|| {
            Error::new(
                Code::Conflict,
                "The agent has no version yet. Make one first: POST /v1/agents/{agentId}/versions.",
            )
        })
}

/// A release is above every pre-release; otherwise precedence decides.
fn is_above(version: &Version, other: &Version) -> bool {
    let rank = |version: &Version| version.pre.is_empty();
    match rank(version).cmp(&rank(other)) {
        std::cmp::Ordering::Equal => version.cmp_precedence(other).is_gt(),
        decided => decided.is_gt(),
    }
}

/// The version that follows the latest by itself: the release of a pre-release, or the next patch.
fn next_after(latest: Option<&Version>) -> Option<Version> {
    match latest {
        None => Some(Version::new(0, 1, 0)),
        Some(latest) if !latest.pre.is_empty() => {
            Some(Version::new(latest.major, latest.minor, latest.patch))
        }
        Some(latest) => {
            let patch = latest.patch.checked_add(1)?;
            Some(Version::new(latest.major, latest.minor, patch))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn the_latest_is_the_highest_release_or_else_the_highest_pre_release() {
        for (higher, lower) in [
            ("1.0.1", "1.0.0"),
            ("1.10.0", "1.9.9"),
            ("1.0.0", "1.0.0-rc.1"),
            ("1.0.0", "2.0.0-rc.1"),
            ("1.0.0-rc.11", "1.0.0-rc.2"),
            ("1.0.0-rc.1", "1.0.0-beta"),
        ] {
            assert!(is_above(&parse(higher), &parse(lower)), "{higher} {lower}");
            assert!(!is_above(&parse(lower), &parse(higher)), "{lower} {higher}");
            assert!(!is_above(&parse(lower), &parse(lower)), "{lower}");
        }
    }

    #[test]
    fn the_next_version_follows_the_latest() {
        let next = |latest: Option<&str>| {
            next_after(latest.map(parse).as_ref()).map(|version| version.to_string())
        };
        assert_eq!(next(None).as_deref(), Some("0.1.0"));
        assert_eq!(next(Some("1.2.9")).as_deref(), Some("1.2.10"));
        assert_eq!(next(Some("2.0.0-rc.1")).as_deref(), Some("2.0.0"));
        assert_eq!(next(Some("0.0.18446744073709551615")), None);
    }
}
