//! Policies: the guardrails of a tenant and of its projects, which no agent takes away.
//!
//! A policy never changes: a new version takes its place, and older ones stay for whoever reads what they decided.

use super::run_checks::CheckOrigin;
use super::{Columns, Sql};
use crate::error::{Error, Result};
use crate::{sql, texts};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

texts! {
    /// When readers of a stream see text that a check at `output` applies to.
    Streaming {
        /// After the verdict.
        Held = "held",
        /// As the model writes it, before the verdict.
        Unchecked = "unchecked",
    }
}

/// A policy's guardrails, for a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Standing {
    /// The tenant's or the project's.
    pub origin: CheckOrigin,
    /// Its version.
    pub version: i32,
    /// The list, which is not empty.
    pub guardrails: Value,
    /// When readers see text.
    pub streaming: Streaming,
}

impl Standing {
    /// Reads those of a column.
    pub(super) fn of_column(column: Value) -> Result<Vec<Self>> {
        serde_json::from_value(column).map_err(Error::internal)
    }
}

/// The policies that stand now for a project's runs, of which the tenant's comes first.
pub fn standing(sql: &mut impl Sql, tenant_id: Uuid, project_id: Uuid) -> Result<Vec<Standing>> {
    let row = sql.query_one(sql!("policies/standing"), &[&tenant_id, &project_id])?;
    Standing::of_column(row.column("standing")?)
}
