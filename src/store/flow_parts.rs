//! What a flow's definition names, as it stands when its run is taken up: tools and agents of the project.
//!
//! Not here: how a name is used (`runtime`).

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

/// The tools with these names. Those that are missing are left out.
///
/// # Errors
/// The database's.
pub fn tools(
    sql: &mut impl Sql,
    (tenant_id, project_id): (Uuid, Uuid),
    names: &[&str],
) -> Result<Vec<Tool>> {
    let row = sql.query_one(sql!("flow_parts/tools"), &[&tenant_id, &project_id, &names])?;
    serde_json::from_value(row.column::<Value>("tools")?).map_err(Error::internal)
}

/// The agents with these names or ids, each with the version that is named beside it. Those that are missing, archived or
/// without such a version are left out.
///
/// # Errors
/// The database's.
pub fn agents(
    sql: &mut impl Sql,
    (tenant_id, project_id): (Uuid, Uuid),
    named: &[(&str, Option<&str>)],
) -> Result<Vec<NamedAgent>> {
    let (names, versions): (Vec<&str>, Vec<Option<&str>>) = named.iter().copied().unzip();
    let rows = sql.query(
        sql!("flow_parts/agents"),
        &[&tenant_id, &project_id, &names, &versions],
    )?;
    rows.iter().map(agent_of).collect()
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
