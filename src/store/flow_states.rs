//! Where runs of flows stand: one row a run.
//!
//! A row is written in the transaction that begins a step ([`super::runs::commit`]), so it is always the state in
//! which the journal's newest step began. A row that a later version of this program wrote is not read. A run that failed before
//! its first step has a row with its error alone, which the run that began it reads ([`super::runs::children`]).
//!
//! Not here: what stands in it (`runtime`).

use super::runs::{Parent, Run, Status, WaitingFor};
use super::{Columns, Sql};
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use postgres::Row;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// The newest form of [`FlowState::frames`] that this program reads.
pub const FORMAT: i16 = 3;

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

/// The state of a run; none before its first step.
///
/// # Errors
/// `newer-format`, when a later version of this program wrote it; the database's.
pub fn find(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Option<FlowState>> {
    find_of(sql, may.tenant_id(), may.object_id())
}

/// The flow that a run below another is, or is a part of.
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

/// The flow that a run is a part of; none of a run that no other began.
///
/// # Errors
/// As [`find`].
pub fn scope(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    parent: Option<Parent>,
) -> Result<Option<Scope>> {
    let Some(parent) = parent else {
        return Ok(None);
    };
    let (tenant_id, run_id) = (may.tenant_id(), may.object_id());
    let row = sql.query_one(sql!("flow_states/scope"), &[&tenant_id, &run_id])?;
    let branch: Option<String> = row.column("branch")?;
    let parent = match branch {
        Some(_) => find_of(sql, tenant_id, parent.run_id)?,
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

/// Where a run stands: its row, its newest step, and of a flow its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Stands {
    /// The run's status.
    pub status: Status,
    /// What it waits for, while it waits.
    pub waiting_for: Option<WaitingFor>,
    /// Since when, while it waits.
    pub waiting_since: Option<OffsetDateTime>,
    /// When it goes on at the latest, while it waits.
    pub wake_at: Option<OffsetDateTime>,
    /// The newest step.
    pub step: Option<i32>,
    /// Where that stands in the program; empty in an agent's turn.
    pub path: String,
    /// When its newest attempt began.
    pub step_started_at: Option<OffsetDateTime>,
    /// Of a flow that has begun a step.
    pub state: Option<FlowState>,
}

/// Where a run stands.
///
/// # Errors
/// `not-found`; `newer-format`, when a later version of this program wrote the state; the database's.
pub fn stands(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Stands> {
    let run = (may.tenant_id(), may.object_id());
    let row = sql.query_opt(sql!("flow_states/stands"), &[&run.0, &run.1])?;
    let row = row.ok_or_else(|| Error::not_found("run", run.1))?;
    let waiting_for: Option<WaitingFor> = row.column("waiting_for")?;
    let parked_at: Option<OffsetDateTime> = row.column("parked_at")?;
    // A wait for a retry begins with the end of an attempt.
    let waiting_since = match waiting_for {
        Some(WaitingFor::Retry) => row.column("step_completed_at")?,
        _ => parked_at,
    };
    Ok(Stands {
        status: row.column("status")?,
        waiting_for,
        waiting_since,
        wake_at: row.column("wake_at")?,
        step: row.column("step")?,
        path: row.column::<Option<String>>("path")?.unwrap_or_default(),
        step_started_at: row.column("step_started_at")?,
        state: match row.column("has_state")? {
            true => Some(state_of(&row)?),
            false => None,
        },
    })
}

fn find_of(sql: &mut impl Sql, tenant_id: Uuid, run_id: Uuid) -> Result<Option<FlowState>> {
    let found = sql.query_opt(sql!("flow_states/find"), &[&tenant_id, &run_id])?;
    found.as_ref().map(state_of).transpose()
}

fn state_of(row: &Row) -> Result<FlowState> {
    let format = row.column("format")?;
    if format > FORMAT {
        return Err(Error::newer_format("the state of the flow's run"));
    }
    Ok(FlowState {
        format,
        frames: row.column("frames")?,
        data: row.column("data")?,
        context: row.column("context")?,
        tasks: row.column("tasks")?,
        slots: row.column("slots")?,
    })
}
