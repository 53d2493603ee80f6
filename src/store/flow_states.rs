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
use time::OffsetDateTime;
use uuid::Uuid;

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

impl FlowState {
    /// In place of a state, of a run that failed: the error, for the run that began it.
    pub fn of_error(error: &Value) -> Self {
        Self {
            format: FORMAT,
            frames: Value::Null,
            data: error.clone(),
            context: Value::Null,
            tasks: 0,
            slots: 0,
        }
    }
}

/// The state of a run that is held; none before its first step.
///
/// # Errors
/// Internal, when a later version of this program wrote it; the database's.
pub fn find(sql: &mut impl Sql, lease: &Lease) -> Result<Option<FlowState>> {
    find_of(sql, lease.tenant_id(), lease.run_id())
}

/// The flow that a held run below another is, or is a part of.
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
    /// What that was given.
    pub input: Value,
    /// How many flows and turns are nested, from the root to this one.
    pub flows: i64,
}

/// The flow that a held run is a part of; none of a run that no other began.
///
/// # Errors
/// As [`find`].
pub fn scope(sql: &mut impl Sql, lease: &Lease) -> Result<Option<Scope>> {
    let Some(parent) = lease.parent() else {
        return Ok(None);
    };
    let row = sql.query_one(
        sql!("flow_states/scope"),
        &[&lease.tenant_id(), &lease.run_id()],
    )?;
    let branch: Option<String> = row.column("branch")?;
    let parent = match branch {
        Some(_) => find_of(sql, lease.tenant_id(), parent.run_id)?,
        None => None,
    };
    Ok(Some(Scope {
        branch,
        parent,
        run_id: row.column("run_id")?,
        started_at: row.column("started_at")?,
        input: row.column("input")?,
        flows: row.column("flows")?,
    }))
}

fn find_of(sql: &mut impl Sql, tenant_id: Uuid, run_id: Uuid) -> Result<Option<FlowState>> {
    let found = sql.query_opt(sql!("flow_states/find"), &[&tenant_id, &run_id])?;
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
