//! Cancels a run and its descendants.
//!
//! A cancel locks from the root to the leaves, and ends the runs that nobody holds. One transaction
//! handles some hundreds of runs. If there are more below a run, its cancel marks the run alone, and the holder of the run,
//! whose job is due, ends those below it in batches before it ends the run. The descendants of a root read its mark: none
//! of them begins a step after it.

use super::ended::EndedRun;
use super::lease::Held;
use super::rows::Run;
use crate::error::Result;
use crate::proof::{May, Write};
use crate::sql;
use crate::store::{Columns, Sql};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// Runs below the one that is cancelled, at most, in one transaction.
const DESCENDANTS_AT_ONCE: i32 = 200;

/// What a cancel met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// Nobody held it: it ended at once, and its job is gone.
    AtOnce,
    /// Somebody holds it, or there are many runs below it: it was asked to end, and its job is due.
    Asked,
    /// It had finished, or there is none.
    Finished,
}

/// Asks a run and all runs below it to end. Says which of them ended with it.
pub fn cancel(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    now: OffsetDateTime,
) -> Result<(Cancelled, Vec<EndedRun>)> {
    let row = sql.query_one(
        sql!("runs/cancel"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &now,
            &DESCENDANTS_AT_ONCE,
        ],
    )?;
    let cancelled = match row.column("became")? {
        "cancelled" => Cancelled::AtOnce,
        "asked" => Cancelled::Asked,
        _ => Cancelled::Finished,
    };
    let ended: Vec<Uuid> = row.column("ended")?;
    Ok((cancelled, EndedRun::of(sql, may.tenant_id(), &ended)?))
}

/// What the job of a run that has not ended says.
pub fn job_payload(sql: &mut impl Sql, may: &impl May<Write, Run>) -> Result<Option<Value>> {
    let ids = (may.tenant_id(), may.object_id());
    let row = sql.query_opt(sql!("runs/job_payload"), &[&ids.0, &ids.1])?;
    row.map(|row| row.column("payload")).transpose()
}

/// Jobs of other runs that a transaction ends or makes due, and those of the runs that ended. All jobs are written at its end,
/// in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) removed: Vec<i64>,
    pub(super) due: Vec<i64>,
    pub(super) ended: Vec<Uuid>,
}

/// Whether more runs below one that is held are under way than the commit that ends it cancels: see [`cancel_batch`].
pub fn has_many_below(sql: &mut impl Sql, held: &Held) -> Result<bool> {
    if !held.has_children {
        return Ok(false);
    }
    let lease = &held.lease;
    let row = sql.query_one(
        sql!("runs/has_many_below"),
        &[&lease.tenant_id(), &lease.run_id(), &DESCENDANTS_AT_ONCE],
    )?;
    row.only()
}

/// Cancels some of the runs below one that is held and about to end, in a transaction of its own. Says which of them ended.
/// None: there are no more, or the end will not be written.
pub fn cancel_batch(
    sql: &mut impl Sql,
    held: &Held,
    is_cancelled: bool,
    now: OffsetDateTime,
) -> Result<Option<Vec<EndedRun>>> {
    let lease = &held.lease;
    let row = sql.query_one(
        sql!("runs/cancel_batch"),
        &[
            &lease.tenant_id(),
            &lease.run_id(),
            &lease.epoch(),
            &is_cancelled,
            &now,
            &DESCENDANTS_AT_ONCE,
        ],
    )?;
    if !row.column::<bool>("has_more")? {
        return Ok(None);
    }
    let ended: Vec<Uuid> = row.column("ended")?;
    EndedRun::of(sql, lease.tenant_id(), &ended).map(Some)
}

/// Cancels the runs below one that is held, in the transaction that ends it; true where there are more of them. Nothing where
/// the end will not be written.
pub(super) fn cancel_children(
    sql: &mut impl Sql,
    held: &Held,
    is_cancelled: bool,
    now: OffsetDateTime,
    others: &mut Others,
) -> Result<bool> {
    let lease = &held.lease;
    let row = sql.query_one(
        sql!("runs/cancel_children"),
        &[
            &lease.tenant_id(),
            &lease.run_id(),
            &lease.epoch(),
            &is_cancelled,
            &now,
            &DESCENDANTS_AT_ONCE,
        ],
    )?;
    others
        .removed
        .extend(row.column::<Vec<i64>>("removed_jobs")?);
    others.due.extend(row.column::<Vec<i64>>("due_jobs")?);
    others.ended.extend(row.column::<Vec<Uuid>>("ended")?);
    row.column("has_more")
}
