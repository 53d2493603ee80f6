//! Input and output of runs, beside their rows: retention may drop them.

use super::rows::Run;
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use crate::store::{Columns, Sql};
use serde_json::Value;

/// Input and output of a run.
#[derive(Debug, Clone)]
pub struct Payload {
    /// What the run was given.
    pub input: Value,
    /// What it answered, once it is completed.
    pub output: Option<Value>,
}

/// Input and output.
///
/// # Errors
/// `not-found` when the payload was dropped by retention.
pub fn payload(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Payload> {
    let row = sql.query_opt(sql!("runs/payload"), &[&may.tenant_id(), &may.object_id()])?;
    let row = row.ok_or_else(|| Error::not_found("payload of run", may.object_id()))?;
    Ok(Payload {
        input: row.column("input")?,
        output: row.column("output")?,
    })
}
