//! How a run was started, with the variables of the environment as they were then, which the runs below it go by too.
//!
//! Not here: whether the options suit what is started (`api`), and what comes of them (`runtime::flow`).

use super::rows::Run;
use super::storable;
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use crate::store::{Columns, Sql};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How a run was started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartOptions {
    /// Of a dry run: what steps answer that are not performed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fixtures: Map<String, Value>,
    /// Of a dry run: whether models are asked.
    #[serde(default)]
    pub models: Models,
    /// The variables of the environment that was served, as they were. The statement that creates the run adds them
    /// (`run_options`).
    #[serde(default, skip_serializing)]
    pub env: Map<String, Value>,
}

/// Whether a dry run asks models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DryRunModels")]
pub enum Models {
    /// It does.
    #[default]
    Call,
    /// It does not: agents' turns are not begun.
    Skip,
}

impl StartOptions {
    /// As it is kept; none where all is as without options.
    pub(super) fn column(&self) -> Option<Value> {
        (*self != Self::default()).then(|| storable::value(&json!(self)).into_owned())
    }

    pub(super) fn of_column(column: Option<Value>) -> Result<Self> {
        let Some(column) = column else {
            return Ok(Self::default());
        };
        Self::deserialize(column).map_err(Error::internal)
    }
}

/// How the root of a run's tree was started, and what that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Root {
    /// What the root runs.
    pub flow_id: String,
    /// How it was started.
    pub options: StartOptions,
}

/// How the root of a run's tree was started. `may`: of a run of the tree.
///
/// # Errors
/// `not-found`; the database's.
pub fn start_options(sql: &mut impl Sql, may: &impl May<Read, Run>, run: &Run) -> Result<Root> {
    let row = sql.query_opt(
        sql!("runs/start_options"),
        &[&may.tenant_id(), &run.root_run_id],
    )?;
    let row = row.ok_or_else(|| Error::not_found("run", run.root_run_id))?;
    Ok(Root {
        flow_id: row.column("flow_id")?,
        options: StartOptions::of_column(row.column("options")?)?,
    })
}
