//! Tools of a project: HTTP servers, and agents and flows of the same project.
//!
//! A tool never changes, so what a version of an agent or of a flow calls stays the same. A tool that a version calls
//! cannot be deleted.

use super::page::Request;
use super::projects::{self, Project};
use super::readable::{Readable, readable};
use super::tool_approvals::ToolApproval;
use super::{Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Kind, Listing, May, Scope};
use crate::{find_sql, from_row, list_sql, sql, texts};
use postgres::error::SqlState;
use postgres::{Client, Row};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// What calls of a tool go to, by its name. What follows from it is decided in [`Target`](super::turns::Target), and in
    /// matches that name each.
    TargetKind {
        /// An HTTP server.
        Http = "http",
        /// An agent: a call is a turn in a run below the caller's.
        Agent = "agent",
        /// A flow: a call is a run below the caller's.
        Flow = "flow",
    }
}

texts! {
    /// What a dry run does with a call of an HTTP server.
    ToolDryRun {
        /// Makes it: it says that the run is dry, and the tool is to change nothing.
        Call = "call",
        /// Does not make it. An agent's model is told so; a flow goes by a fixture or its definition.
        Simulate = "simulate",
    }
}

/// A tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its id.
    pub tool_id: Uuid,
    /// The project whose agents may call it.
    pub project_id: Uuid,
    /// Its name, as the model sees it; unique in the project.
    pub name: String,
    /// What it does, as the model sees it.
    pub description: String,
    /// The JSON Schema of its arguments object.
    pub arguments_schema: Value,
    /// What its calls go to.
    pub target: TargetKind,
    /// Of an HTTP server: where it is called; else empty.
    pub url: String,
    /// Of an HTTP server: how long a call may take.
    pub timeout_ms: i32,
    /// The agent that a call runs.
    pub agent_id: Option<Uuid>,
    /// Its version; none: the live one, else the latest.
    pub agent_version: Option<String>,
    /// The flow that a call runs, `namespace.name`.
    pub flow_id: Option<String>,
    /// Its version; none: the live one, else the latest.
    pub flow_version: Option<String>,
    /// It may be called again after a crash.
    pub idempotent: bool,
    /// Of an HTTP server: what a dry run does with its calls.
    pub dry_run: ToolDryRun,
    /// Headers of its calls whose values are secrets: name, secret's name, prefix.
    pub secret_headers: Value,
    /// The name of the secret that signs its calls.
    pub signing_secret: Option<String>,
    /// What its calls ask a reviewer first: see [`ToolApproval`](super::tool_approvals::ToolApproval).
    pub approval: Option<Value>,
    /// Who registered it.
    pub created_by: Uuid,
    /// When it was registered.
    pub created_at: OffsetDateTime,
}

/// A tool to register.
#[derive(Debug)]
pub struct New<'a> {
    /// See [`Tool`].
    pub tool_id: Uuid,
    /// See [`Tool`].
    pub name: &'a str,
    /// See [`Tool`].
    pub description: &'a str,
    /// See [`Tool`].
    pub arguments_schema: &'a Value,
    /// See [`Tool`].
    pub approval: Option<&'a ToolApproval>,
    /// See [`Tool`].
    pub target: NewTarget<'a>,
}

/// What calls of a tool are to go to. See [`Tool`].
#[derive(Debug)]
pub enum NewTarget<'a> {
    /// An HTTP server.
    Http {
        /// Absolute.
        url: &'a str,
        /// How long a call may take.
        timeout_ms: i32,
        /// It may be called again after a crash.
        idempotent: bool,
        /// What a dry run does with its calls.
        dry_run: ToolDryRun,
        /// Headers whose values are secrets.
        secret_headers: &'a Value,
        /// The secret that signs its calls.
        signing_secret: Option<&'a str>,
    },
    /// An agent of the project.
    Agent {
        /// Which.
        agent_id: Uuid,
        /// Its version, if one is named.
        version: Option<String>,
    },
    /// A flow of the project.
    Flow {
        /// `namespace.name`.
        flow_id: &'a str,
        /// Its version, if one is named.
        version: Option<String>,
    },
}

/// What a tool's row has in place of the time of a call, of one that is no HTTP server.
const NO_TIMEOUT_MS: i32 = 1;

impl Kind for Tool {
    const NAME: &'static str = "tool";
    fn id(&self) -> Uuid {
        self.tool_id
    }
    fn scope(&self) -> Scope {
        Scope::InProject(self.project_id)
    }
}

impl Find for Tool {
    const FINDING: Finding = find_sql!("tools/find", "project", "project_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Tool {
    tool_id,
    project_id,
    name,
    description,
    arguments_schema,
    url,
    timeout_ms,
    idempotent,
    dry_run,
    secret_headers,
    signing_secret,
    approval,
    target,
    agent_id,
    agent_version,
    flow_id,
    flow_version,
    created_by,
    created_at
});

/// An agent that a tool may call.
#[derive(Debug)]
pub struct AgentTarget {
    /// It starts nothing.
    pub is_archived: bool,
    /// It has the version that is named, or none is.
    pub has_version: bool,
}

from_row!(AgentTarget {
    is_archived,
    has_version
});

/// The agent of the project. `None`: the project has no such agent.
pub fn agent_target(
    sql: &mut impl Sql,
    may: &impl May<Admin, Project>,
    agent_id: Uuid,
    version: Option<&str>,
) -> Result<Option<AgentTarget>> {
    sql.fetch_optional(
        sql!("tools/agent_target"),
        &[&may.tenant_id(), &may.object_id(), &agent_id, &version],
    )
}

/// Registers a tool in the project.
///
/// # Errors
/// `already-exists`: the project has a tool of this name. `project-archived`. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    creator: &Caller,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Tool> {
    projects::lock_open(tx, may.tenant_id(), may.object_id())?;
    let none = json!([]);
    let (url, timeout_ms, idempotent, dry_run, secret_headers, signing_secret) = match &new.target {
        NewTarget::Http {
            url,
            timeout_ms,
            idempotent,
            dry_run,
            secret_headers,
            signing_secret,
        } => (
            *url,
            *timeout_ms,
            *idempotent,
            *dry_run,
            *secret_headers,
            *signing_secret,
        ),
        NewTarget::Agent { .. } | NewTarget::Flow { .. } => {
            let dry_run = ToolDryRun::Simulate;
            ("", NO_TIMEOUT_MS, false, dry_run, &none, None)
        }
    };
    let (target, agent, flow) = match &new.target {
        NewTarget::Http { .. } => (TargetKind::Http, None, None),
        NewTarget::Agent { agent_id, version } => {
            (TargetKind::Agent, Some((*agent_id, version)), None)
        }
        NewTarget::Flow { flow_id, version } => (TargetKind::Flow, None, Some((*flow_id, version))),
    };
    let inserted = tx.query_one(
        sql!("tools/insert"),
        &[
            &may.tenant_id(),
            &new.tool_id,
            &may.object_id(),
            &new.name,
            &new.description,
            &new.arguments_schema,
            &url,
            &timeout_ms,
            &idempotent,
            &secret_headers,
            &signing_secret,
            &new.approval.map(|approval| json!(approval)),
            &target.text(),
            &agent.map(|(id, _)| id),
            &agent.and_then(|(_, version)| version.as_deref()),
            &flow.map(|(id, _)| id),
            &flow.and_then(|(_, version)| version.as_deref()),
            &dry_run,
            &creator.user_id,
            &now,
        ],
    );
    let row = on_violation(inserted, &SqlState::UNIQUE_VIOLATION, || {
        Error::new(
            Code::AlreadyExists,
            format!(
                "The project has a tool named {} already. Choose another name.",
                new.name
            ),
        )
    })?;
    Tool::from_row(&row)
}

/// Deletes it.
///
/// # Errors
/// `conflict`: a version of an agent or of a flow calls it. `database-unavailable`.
pub fn delete(tx: &mut Tx<'_>, may: &impl May<Admin, Tool>) -> Result<()> {
    let deleted = tx.execute(sql!("tools/delete"), &[&may.tenant_id(), &may.object_id()]);
    on_violation(deleted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        Error::new(
            Code::Conflict,
            "A version of an agent or of a flow calls this tool, and versions are kept. The tool cannot be deleted.",
        )
    })?;
    Ok(())
}

/// A secret that a tool names.
#[derive(Debug)]
pub struct NamedSecret {
    /// The tenant of both.
    pub tenant_id: Uuid,
    /// The tool's project.
    pub project_id: Uuid,
    /// Its name.
    pub project: String,
    /// The tool's name.
    pub tool: String,
    /// Where it is called.
    pub url: String,
    /// The secret's name.
    pub secret: String,
    /// The database has it under the environment that was asked for.
    pub is_stored: bool,
}

from_row!(NamedSecret {
    tenant_id,
    project_id,
    project,
    tool,
    url,
    secret,
    is_stored
});

/// The secrets that tools name, of all tenants, the newest tools first: for the operator. The schema is the
/// program's.
pub fn named_secrets(
    client: &mut Client,
    environment: Option<&str>,
    most: i64,
) -> Result<Vec<NamedSecret>> {
    let rows = client.query(sql!("tools/named_secrets"), &[&environment, &most])?;
    rows.iter().map(NamedSecret::from_row).collect()
}

/// A page of the tools that the caller may read, of one project if given.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Tool>,
    project_id: Option<Uuid>,
    page: &Request,
) -> Result<Vec<Tool>> {
    let tenant_id = listing.caller().tenant_id;
    let project_id = match readable(sql, listing, project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::OfProject(project_id) => Some(project_id),
        Readable::All => None,
        Readable::By(user_id) => {
            let statement = list_sql!("tools/list_reader").by(page.order);
            return sql.fetch_all(
                statement,
                &[&tenant_id, &user_id, &page.after, &page.rows()],
            );
        }
    };
    let statement = list_sql!("tools/list").by(page.order);
    sql.fetch_all(
        statement,
        &[&tenant_id, &project_id, &page.after, &page.rows()],
    )
}
