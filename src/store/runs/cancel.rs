//! Cancels a run and its descendants.
//!
//! A cancel locks from the root to the leaves, and ends the runs that nobody holds. One transaction
//! handles some hundreds of runs. If there are more, it first asks all of them to cancel, the run
//! itself first, and is then called again. If its caller dies, the holder of the run continues,
//! because the run's job is due.

use super::lease::Held;
use super::rows::Run;
use crate::error::Result;
use crate::proof::{May, Write};
use crate::sql;
use crate::store::{Columns, Sql};
use serde_json::Value;
use time::OffsetDateTime;

/// Runs below the one that is cancelled, at most, in one transaction.
const DESCENDANTS_AT_ONCE: i32 = 200;

/// What a cancel met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// Nobody held it: it ended at once, and its job is gone.
    AtOnce,
    /// Somebody holds it, or there are many runs below it: it was asked to end, and its job is due.
    Asked {
        /// There are runs below it that were not asked yet: repeat the cancel, in a transaction of its own.
        has_more: bool,
    },
    /// It had finished, or there is none.
    Finished,
}

/// Asks a run and all runs below it to end.
pub fn cancel(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    now: OffsetDateTime,
) -> Result<Cancelled> {
    let row = sql.query_one(
        sql!("runs/cancel"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &now,
            &DESCENDANTS_AT_ONCE,
        ],
    )?;
    let has_more = row.column("has_more")?;
    Ok(match row.column("became")? {
        "cancelled" => Cancelled::AtOnce,
        "asked" => Cancelled::Asked { has_more },
        _ => Cancelled::Finished,
    })
}

/// What the job of a run that has not ended says.
pub fn job_payload(sql: &mut impl Sql, may: &impl May<Write, Run>) -> Result<Option<Value>> {
    let ids = (may.tenant_id(), may.object_id());
    let row = sql.query_opt(sql!("runs/job_payload"), &[&ids.0, &ids.1])?;
    row.map(|row| row.column("payload")).transpose()
}

/// Jobs of other runs that a transaction ends or makes due. All are written at its end, in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct OtherJobs {
    pub(super) removed: Vec<i64>,
    pub(super) due: Vec<i64>,
}

/// How far [`cancel_children`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Asks all but the last few, and ends none.
    AllButTheLast,
    /// Ends the last few, too.
    All,
}

/// Cancels the runs below one that is held and that is about to end; true where there are more of them. Nothing where
/// the end will not be written.
pub(super) fn cancel_children(
    sql: &mut impl Sql,
    held: &Held,
    (is_cancelled, extent): (bool, Extent),
    now: OffsetDateTime,
    jobs: &mut OtherJobs,
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
            &(extent == Extent::AllButTheLast),
        ],
    )?;
    jobs.removed.extend(row.column::<Vec<i64>>("removed_jobs")?);
    jobs.due.extend(row.column::<Vec<i64>>("due_jobs")?);
    row.column("has_more")
}
