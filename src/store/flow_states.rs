//! Where runs of flows stand: one row a run.
//!
//! A row is written in the transaction that begins a step ([`super::runs::commit`]), so it is always the state in
//! which the journal's newest step began. A row that a later version of this program wrote is not read. A run that failed before
//! its first step has a row with its error alone, which the run that began it reads ([`super::runs::children`]).
//!
//! Not here: what stands in it (`runtime`).

use super::runs::{Run, Status, WaitingFor};
use super::{Columns, Sql};
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use postgres::Row;
use serde_json::Value;
use time::OffsetDateTime;

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
            true => state_of(&row, "")?,
            false => None,
        },
    })
}

/// A state, in columns whose names begin so. None: the row has none.
pub(super) fn state_of(row: &Row, prefix: &str) -> Result<Option<FlowState>> {
    let name = |column: &str| format!("{prefix}{column}");
    let Some(format) = row.column::<Option<i16>>(&name("format"))? else {
        return Ok(None);
    };
    if format > FORMAT {
        return Err(Error::newer_format("the state of the flow's run"));
    }
    Ok(Some(FlowState {
        format,
        frames: row.column(&name("frames"))?,
        data: row.column(&name("data"))?,
        context: row.column(&name("context"))?,
        tasks: row.column(&name("tasks"))?,
        slots: row.column(&name("slots"))?,
    }))
}
