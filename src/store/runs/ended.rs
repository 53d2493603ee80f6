//! Runs that have ended, as the log and the metrics tell of them.

use super::rows::{Run, Usage, run_of};
use crate::error::{Error, Result};
use crate::proof::{May, Write};
use crate::sql;
use crate::store::{Columns, Sql};
use postgres::Row;
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a run came to over all its steps.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Totals {
    /// How many steps it had.
    pub steps: i32,
    /// What its model calls used.
    pub usage: Usage,
}

/// A run that has ended, as it stands for ever.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    /// The run.
    pub run: Run,
    /// How many steps it had.
    pub steps: i32,
}

impl EndedRun {
    /// Reads these runs, which ended in this transaction.
    pub(super) fn of(sql: &mut impl Sql, tenant_id: Uuid, run_ids: &[Uuid]) -> Result<Vec<Self>> {
        if run_ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows = sql.query(sql!("runs/ended"), &[&tenant_id, &run_ids])?;
        rows.iter().map(ended_of).collect()
    }
}

/// Of a run and those below it, the runs that a cancel at `now` ended because nobody held them: for a holder whose answer was
/// lost.
pub(super) fn cancelled_at(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    now: OffsetDateTime,
) -> Result<Vec<EndedRun>> {
    let rows = sql.query(
        sql!("runs/cancelled_at"),
        &[&may.tenant_id(), &may.object_id(), &now],
    )?;
    rows.iter().map(ended_of).collect()
}

fn ended_of(row: &Row) -> Result<EndedRun> {
    Ok(EndedRun {
        run: run_of(row)?,
        steps: row.column("steps")?,
    })
}

/// The totals beside a commit that ended a run.
pub(super) fn totals_of(row: &Row) -> Result<Option<Totals>> {
    let totals: Option<Value> = row.column("totals")?;
    let read = totals.map(serde_json::from_value).transpose();
    read.map_err(Error::internal)
}
