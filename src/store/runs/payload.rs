//! Input and output of runs, beside their rows: they may be erased.

use super::rows::Run;
use super::start_options::StartOptions;
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use crate::store::{Columns, Sql};
use serde_json::Value;
use time::OffsetDateTime;

/// Input and output of a run.
#[derive(Debug, Clone)]
pub struct Payload {
    /// What the run was given.
    pub input: Value,
    /// What it answered, once it is completed.
    pub output: Option<Value>,
    /// How it was started; as without options of a run that another began.
    pub options: StartOptions,
    /// When all was erased: input and output are null since.
    pub erased_at: Option<OffsetDateTime>,
}

/// Input and output.
///
/// # Errors
/// `not-found` when there is no such run.
pub fn payload(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Payload> {
    let row = sql.query_opt(sql!("runs/payload"), &[&may.tenant_id(), &may.object_id()])?;
    let row = row.ok_or_else(|| Error::not_found("run", may.object_id()))?;
    Ok(Payload {
        input: row.column::<Option<Value>>("input")?.unwrap_or_default(),
        output: row.column("output")?,
        options: StartOptions::of_column(row.column("options")?)?,
        erased_at: row.column("payload_erased_at")?,
    })
}
