//! What a version of a flow names, as it stands when its run is taken up: tools, agents and flows.
//!
//! Their rows were found when the version was made. What is left out of the answers is archived or has no such version.
//!
//! Not here: how a name is used (`runtime`).

use super::flow_versions::Use;
use super::runs::Via;
use super::turns::Tool;
use super::{Columns, Sql};
use crate::error::{Error, Result};
use crate::sql;
use postgres::Row;
use serde_json::Value;
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

/// The tools, under the names that the definition has for them.
///
/// # Errors
/// The database's.
pub fn tools(sql: &mut impl Sql, tenant_id: Uuid, uses: &[&Use]) -> Result<Vec<Tool>> {
    let (names, ids, _) = columns(uses);
    let row = sql.query_one(sql!("flow_parts/tools"), &[&tenant_id, &names, &ids])?;
    serde_json::from_value(row.column::<Value>("tools")?).map_err(Error::internal)
}

/// The tools of a version of an agent.
///
/// # Errors
/// The database's.
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
///
/// # Errors
/// The database's.
pub fn agents(sql: &mut impl Sql, tenant_id: Uuid, uses: &[&Use]) -> Result<Vec<NamedAgent>> {
    let (names, ids, versions) = columns(uses);
    let parameters: [_; 4] = [&tenant_id as _, &names as _, &ids as _, &versions as _];
    let rows = sql.query(sql!("flow_parts/agents"), &parameters)?;
    rows.iter().map(agent_of).collect()
}

/// The flows, each with the version that is named, else the live one, else the latest.
///
/// # Errors
/// The database's.
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

/// Names, rows, and versions where they are named.
fn columns<'a>(uses: &[&'a Use]) -> (Vec<&'a str>, Vec<Uuid>, Vec<Option<&'a str>>) {
    let names = uses.iter().map(|used| used.name.as_str()).collect();
    let ids = uses.iter().map(|used| used.id).collect();
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
