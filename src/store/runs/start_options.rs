//! How a run was started, with the variables of the environment as they were then. The runs below it go by these and by the options
//! of a dry run too, and not by what the run sets in place of its agent's version.
//!
//! Not here: whether the options suit what is started (`api`), and what comes of a dry run's (`runtime::flow`).

use super::rows::Run;
use super::storable;
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use crate::store::{Columns, Sql};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

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
    /// Of an agent's turn: what it sets in place of the version's own.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
    /// The variables of the environment that was served, as they were. The statement that creates the run adds them
    /// (`run_options`).
    #[serde(default, skip_serializing)]
    pub env: Map<String, Value>,
}

/// What a run sets in place of what its agent's version has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overrides {
    /// The model's provider. Set if the model is, and only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_provider_id: Option<Uuid>,
    /// The model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Parameters for the model, each in place of the version's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Limits, each in place of the version's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub limits: Map<String, Value>,
}

impl Overrides {
    /// Whether it sets nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(in crate::store) fn of_column(column: Option<Value>) -> Result<Self> {
        let read = column.map(Self::deserialize).transpose();
        Ok(read.map_err(Error::internal)?.unwrap_or_default())
    }
}

/// Fields of a version with those of a run in their places.
pub(in crate::store) fn overridden(mut of_version: Value, by: &Map<String, Value>) -> Value {
    if let Some(fields) = of_version.as_object_mut() {
        fields.extend(by.clone());
    }
    of_version
}

/// What a run sets in place of its agent's version.
pub fn overrides(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Overrides> {
    let row = sql.query_opt(
        sql!("runs/overrides"),
        &[&may.tenant_id(), &may.object_id()],
    )?;
    let column = row.map(|row| row.column("overrides")).transpose()?;
    Overrides::of_column(column.flatten())
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
