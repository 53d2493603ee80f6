//! Where runs of flows stand: one row a run.
//!
//! A row is written in the transaction that begins a step ([`super::runs::commit`]), so it is always the state in
//! which the journal's newest step began. A row that a later version of this program wrote is not read.
//!
//! Not here: what stands in it (`runtime`).

use super::runs::Lease;
use super::{Columns, Sql};
use crate::error::{Error, Result};
use crate::sql;
use serde_json::Value;

/// The newest form of [`FlowState::frames`] that this program reads.
pub const FORMAT: i16 = 1;

/// Where a run of a flow stands.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowState {
    /// The version of the form of `frames`.
    pub format: i16,
    /// The tasks under way, outermost first.
    pub frames: Value,
    /// What the task under way was given.
    pub data: Value,
    /// What tasks have exported.
    pub context: Value,
    /// Tasks entered so far.
    pub tasks: i32,
    /// Slots given to child runs so far.
    pub slots: i32,
}

/// The state of a run that is held; none before its first step.
///
/// # Errors
/// Internal, when a later version of this program wrote it; the database's.
pub fn find(sql: &mut impl Sql, lease: &Lease) -> Result<Option<FlowState>> {
    let found = sql.query_opt(
        sql!("flow_states/find"),
        &[&lease.tenant_id(), &lease.run_id()],
    )?;
    let Some(row) = found else { return Ok(None) };
    let format = row.column("format")?;
    if format > FORMAT {
        return Err(Error::internal(
            "a later version of this program wrote the state of the flow's run",
        ));
    }
    Ok(Some(FlowState {
        format,
        frames: row.column("frames")?,
        data: row.column("data")?,
        context: row.column("context")?,
        tasks: row.column("tasks")?,
        slots: row.column("slots")?,
    }))
}
