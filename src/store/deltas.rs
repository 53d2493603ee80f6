//! Text and reasoning that are being streamed, for readers on other replicas and for those who join in the middle.
//!
//! The tables are not logged: a crash of the database empties them, which costs nothing, because the
//! step's whole message is written when it is done, and the pieces are dropped then.

use super::{Columns, Sql};
use crate::error::Result;
use crate::sql;
use crate::store::runs::Lease;
use uuid::Uuid;

/// What a piece is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The attempt's text.
    Text,
    /// The attempt's reasoning.
    Reasoning,
}

impl Stream {
    pub(super) fn of_column(is_reasoning: bool) -> Self {
        match is_reasoning {
            true => Self::Reasoning,
            false => Self::Text,
        }
    }
}

/// A piece of text or reasoning, at `offset` Unicode code points from the beginning of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelta {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The run.
    pub run_id: Uuid,
    /// The step that streams.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// What it is of.
    pub stream: Stream,
    /// Where the piece begins, in Unicode code points.
    pub offset: i32,
    /// The piece.
    pub text: String,
    /// Where a tail goes on.
    pub position: i64,
}

/// A piece to be added, under the lease of whoever streams it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelta {
    /// The hold on the run.
    pub lease: Lease,
    /// The step that streams.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// What it is of.
    pub stream: Stream,
    /// Where the piece begins, in Unicode code points.
    pub offset: i32,
    /// The piece.
    pub text: String,
}

/// Adds pieces of many runs at once; those of a run or a step that has gone on are left out.
pub fn insert(sql: &mut impl Sql, deltas: &[NewDelta]) -> Result<u64> {
    let tenants: Vec<Uuid> = deltas.iter().map(|delta| delta.lease.tenant_id()).collect();
    let runs: Vec<Uuid> = deltas.iter().map(|delta| delta.lease.run_id()).collect();
    let epochs: Vec<i64> = deltas.iter().map(|delta| delta.lease.epoch()).collect();
    let steps: Vec<i32> = deltas.iter().map(|delta| delta.step).collect();
    let attempts: Vec<i32> = deltas.iter().map(|delta| delta.attempt).collect();
    let offsets: Vec<i32> = deltas.iter().map(|delta| delta.offset).collect();
    let texts: Vec<&str> = deltas.iter().map(|delta| delta.text.as_str()).collect();
    let of_reasoning = deltas.iter().map(|delta| delta.stream == Stream::Reasoning);
    let of_reasoning: Vec<bool> = of_reasoning.collect();
    sql.execute(
        sql!("deltas/insert"),
        &[
            &tenants,
            &runs,
            &epochs,
            &steps,
            &attempts,
            &offsets,
            &texts,
            &of_reasoning,
        ],
    )
}

/// The pieces of every run after a position, `limit` at most: for the tail of this process.
pub fn since_position(sql: &mut impl Sql, position: i64, limit: i64) -> Result<Vec<StoredDelta>> {
    let rows = sql.query(sql!("deltas/since_position"), &[&position, &limit])?;
    rows.iter()
        .map(|row| {
            Ok(StoredDelta {
                tenant_id: row.column("tenant_id")?,
                run_id: row.column("run_id")?,
                step: row.column("step")?,
                attempt: row.column("attempt")?,
                stream: Stream::of_column(row.column("is_reasoning")?),
                offset: row.column("text_offset")?,
                text: row.column("text")?,
                position: row.column("position")?,
            })
        })
        .collect()
}

/// The newest position given out: where a tail begins.
pub fn last_position(sql: &mut impl Sql) -> Result<i64> {
    sql.query_one(sql!("deltas/last_position"), &[])?
        .column("position")
}

/// Deletes text that a process wrote after it had lost its run; says how much.
pub fn sweep(sql: &mut impl Sql, limit: i64) -> Result<u64> {
    sql.execute(sql!("deltas/sweep"), &[&limit])
}
