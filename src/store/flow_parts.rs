//! What a version of a flow names, as it stands when its run is taken up: tools, agents and flows. And what the run itself
//! stands on then.
//!
//! Their rows were found when the version was made. What is left out of the answers is archived or has no such version.
//!
//! Not here: how a name is used (`runtime`).

use super::flow_states::{FlowState, state_of};
use super::flow_versions::Use;
use super::runs::{Run, Via};
use super::steps::{self, Step};
use super::turns::Tool;
use super::{Columns, Parameter, Sql};
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use postgres::Row;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// An agent with the version that is to run.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedAgent {
    /// As the definition names it: by its name or its id.
    pub name: String,
    /// The version that the definition names.
    pub named: Option<String>,
    /// The agent.
    pub agent_id: Uuid,
    /// The version.
    pub version: String,
    /// Why that one.
    pub via: Via,
}

/// A flow with the version that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFlow {
    /// `namespace.name`.
    pub flow_id: String,
    /// The version that the definition names.
    pub named: Option<String>,
    /// The version.
    pub version: String,
}

/// The flow that a run is, or is a part of.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// The branch of its parent's flow that the run is.
    pub branch: Option<String>,
    /// Where the parent of a branch stands. That waits for the branch, so nothing changes it.
    pub parent: Option<FlowState>,
    /// The run of the flow itself, which is this one without a branch.
    pub run_id: Uuid,
    /// When that began.
    pub started_at: OffsetDateTime,
    /// What that was given; null once it was erased.
    pub input: Value,
    /// How many flows and turns are nested, from the root to this one.
    pub levels: i64,
}

/// What a run of a flow stands on when it is taken up.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Where it stands; none before its first step.
    pub state: Option<FlowState>,
    /// Its newest step.
    pub newest: Option<Step>,
    /// The flow that it is, or is a part of.
    pub scope: Scope,
    /// The tools that its definition names, under the names that it has for them.
    pub tools: Vec<Tool>,
}

/// What a run of a flow stands on, in one statement. `has_begun`: it may have steps.
///
/// # Errors
/// `newer-format`, when a later version of this program wrote its state or its newest step; the database's.
pub fn load(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    has_begun: bool,
    tools: &[&Use],
) -> Result<Loaded> {
    let (names, ids) = names_and_ids(tools);
    let parameters: [Parameter<'_>; 5] =
        [&may.tenant_id(), &may.object_id(), &has_begun, &names, &ids];
    let row = sql.query_one(sql!("flow_parts/load"), &parameters)?;
    let step: Option<i32> = row.column("step")?;
    let tools: Option<Value> = row.column("named_tools")?;
    let tools = tools.map(serde_json::from_value).transpose();
    Ok(Loaded {
        state: state_of(&row, "state_")?,
        newest: step.map(|_| steps::step_of(&row)).transpose()?,
        scope: Scope {
            branch: row.column("branch")?,
            parent: state_of(&row, "parent_")?,
            run_id: row.column("own_run_id")?,
            started_at: row.column("own_started_at")?,
            input: row
                .column::<Option<Value>>("own_input")?
                .unwrap_or_default(),
            levels: row.column("levels")?,
        },
        tools: tools.map_err(Error::internal)?.unwrap_or_default(),
    })
}

/// The tools, under the names that the definition has for them.
pub fn tools(sql: &mut impl Sql, tenant_id: Uuid, uses: &[&Use]) -> Result<Vec<Tool>> {
    let (names, ids) = names_and_ids(uses);
    let row = sql.query_one(sql!("flow_parts/tools"), &[&tenant_id, &names, &ids])?;
    serde_json::from_value(row.column::<Value>("tools")?).map_err(Error::internal)
}

/// The tools of a version of an agent.
pub fn agent_tools(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    agent_id: Uuid,
    version: &str,
) -> Result<Vec<Tool>> {
    let row = sql.query_one(
        sql!("flow_parts/agent_tools"),
        &[&tenant_id, &agent_id, &version],
    )?;
    serde_json::from_value(row.column::<Value>("tools")?).map_err(Error::internal)
}

/// The agents, each with the version that is named, else the live one, else the latest.
pub fn agents(sql: &mut impl Sql, tenant_id: Uuid, uses: &[&Use]) -> Result<Vec<NamedAgent>> {
    let (names, ids, versions) = columns(uses);
    let parameters: [_; 4] = [&tenant_id as _, &names as _, &ids as _, &versions as _];
    let rows = sql.query(sql!("flow_parts/agents"), &parameters)?;
    rows.iter().map(agent_of).collect()
}

/// The flows, each with the version that is named, else the live one, else the latest.
pub fn flows(sql: &mut impl Sql, tenant_id: Uuid, uses: &[&Use]) -> Result<Vec<NamedFlow>> {
    let (names, ids, versions) = columns(uses);
    let parameters: [_; 4] = [&tenant_id as _, &names as _, &ids as _, &versions as _];
    let rows = sql.query(sql!("flow_parts/flows"), &parameters)?;
    let flow_of = |row: &Row| {
        Ok(NamedFlow {
            flow_id: row.column("name")?,
            named: row.column("named")?,
            version: row.column("version")?,
        })
    };
    rows.iter().map(flow_of).collect()
}

/// Names and rows.
fn names_and_ids<'a>(uses: &[&'a Use]) -> (Vec<&'a str>, Vec<Uuid>) {
    let names = uses.iter().map(|used| used.name.as_str()).collect();
    let ids = uses.iter().map(|used| used.id).collect();
    (names, ids)
}

/// Names, rows, and versions where they are named.
fn columns<'a>(uses: &[&'a Use]) -> (Vec<&'a str>, Vec<Uuid>, Vec<Option<&'a str>>) {
    let (names, ids) = names_and_ids(uses);
    let versions = uses.iter().map(|used| used.version.as_deref()).collect();
    (names, ids, versions)
}

fn agent_of(row: &Row) -> Result<NamedAgent> {
    let named: Option<String> = row.column("named")?;
    let via = match (&named, row.column("is_live")?) {
        (Some(_), _) => Via::Explicit,
        (None, true) => Via::Live,
        (None, false) => Via::Latest,
    };
    Ok(NamedAgent {
        name: row.column("name")?,
        named,
        agent_id: row.column("agent_id")?,
        version: row.column("version")?,
        via,
    })
}
