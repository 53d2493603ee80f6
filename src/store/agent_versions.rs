//! Versions of agents, and which of them a turn uses.
//!
//! A version never changes and is never deleted. The latest version is the highest one
//! (`semantic_versions`). It is stored with the agent, under the lock on the agent's row.

use super::agents::{self, Agent, no_version};
use super::conversations::Conversation;
use super::page::Request;
use super::policies::Streaming;
use super::projects;
use super::runs::Via;
use super::semantic_versions;
use super::{Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Authorized, May, Read, Write};
use crate::{from_row, list_sql, sql, texts};
use postgres::error::SqlState;
use semver::Version;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// What a version may let a run set in place of its own.
    Override {
        /// The model and its provider.
        Model = "model",
        /// Parameters for the model.
        Parameters = "parameters",
        /// Limits of a turn.
        Limits = "limits",
    }
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
    /// The JSON Schema that its answers fit; none: they are text.
    pub output_schema: Option<Value>,
    /// What a run may set in its place.
    pub overrides: Vec<Override>,
    /// Its guardrails.
    pub guardrails: Value,
    /// When readers see text that they judge.
    pub streaming: Streaming,
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
    /// Its model and its tools.
    pub refers_to: RefersTo<'a>,
    /// See [`AgentVersion`].
    pub parameters: &'a Value,
    /// See [`AgentVersion`].
    pub limits: &'a Value,
    /// See [`AgentVersion`].
    pub output_schema: Option<&'a Value>,
    /// See [`AgentVersion`].
    pub overrides: &'a [Override],
    /// See [`AgentVersion`].
    pub guardrails: &'a Value,
    /// See [`AgentVersion`].
    pub streaming: Streaming,
}

/// What a version refers to, or what a run sets in its place.
#[derive(Debug, Clone, Copy)]
pub struct RefersTo<'a> {
    /// Whose model it is.
    pub model_provider_id: Uuid,
    /// The model's name.
    pub model: &'a str,
    /// The tools that the model may call, in order.
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

from_row!(References {
    has_provider,
    has_model,
    foreign_tools
});

from_row!(AgentVersion {
    agent_id,
    version,
    instructions,
    model_provider_id,
    model,
    parameters,
    limits,
    output_schema,
    overrides,
    guardrails,
    streaming,
    tool_ids,
    created_by,
    created_at
});

from_row!(Listed {
    agent_id,
    version,
    position,
    model_provider_id,
    model,
    created_by,
    created_at
});

/// Whether a version, or a run in its place, may refer to what it refers to.
pub fn references(
    sql: &mut impl Sql,
    may: &impl May<Write, Agent>,
    project_id: Uuid,
    to: RefersTo<'_>,
) -> Result<References> {
    sql.fetch_one(
        sql!("agent_versions/references"),
        &[
            &may.tenant_id(),
            &project_id,
            &to.model_provider_id,
            &to.model,
            &to.tool_ids,
        ],
    )
}

/// Makes a version, and makes it the latest if it is the highest.
///
/// # Errors
/// `project-archived`, `agent-archived`. `already-exists`: the agent has this version. `conflict`: no version can follow the latest by
/// itself, or a tool or model was removed meanwhile. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &Authorized<Agent, Write>,
    new: &NewVersion<'_>,
    now: OffsetDateTime,
) -> Result<AgentVersion> {
    let creator = may.caller();
    let (tenant_id, agent_id) = (creator.tenant_id, may.row().agent_id);
    projects::lock_open(tx, tenant_id, may.row().project_id)?;
    let locked: Agent = tx.fetch_one(sql!("agents/lock"), &[&tenant_id, &agent_id])?;
    if locked.archived_at.is_some() {
        return Err(agents::archived(agent_id));
    }
    let latest = semantic_versions::parse(locked.latest_version.as_deref())?;
    let version = match &new.version {
        Some(version) => version.clone(),
        None => next_after(latest.as_ref()).ok_or_else(|| {
            Error::new(
                Code::Conflict,
                "No patch version can follow the latest. Name the version.",
            )
        })?,
    };
    let becomes_latest = latest.is_none_or(|latest| semantic_versions::is_above(&version, &latest));
    let text = version.to_string();
    let inserted = tx.execute(
        sql!("agent_versions/insert"),
        &[
            &tenant_id,
            &agent_id,
            &text,
            &new.instructions,
            &new.refers_to.model_provider_id,
            &new.refers_to.model,
            &new.parameters,
            &new.limits,
            &new.refers_to.tool_ids,
            &creator.user_id,
            &now,
            &becomes_latest,
            &new.output_schema,
            &new.overrides,
            &new.guardrails,
            &new.streaming,
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
    find(tx, tenant_id, agent_id, &text)
}

fn find(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    agent_id: Uuid,
    version: &str,
) -> Result<AgentVersion> {
    sql.fetch_optional(
        sql!("agent_versions/find"),
        &[&tenant_id, &agent_id, &version],
    )?
    .ok_or_else(|| no_version(version))
}

/// A version of the agent.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn read(
    sql: &mut impl Sql,
    may: &impl May<Read, Agent>,
    version: &str,
) -> Result<AgentVersion> {
    find(sql, may.tenant_id(), may.object_id(), version)
}

/// A page of the agent's versions, in the order in which they were made.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Read, Agent>,
    page: &Request,
) -> Result<Vec<Listed>> {
    let statement = list_sql!("agent_versions/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &may.tenant_id(),
            &may.object_id(),
            &page.after_position(),
            &page.rows(),
        ],
    )
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
            sql!("agent_versions/has"),
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
