//! Holding all runs: while they are held none is carried on, on any replica. New ones are accepted, and wait.

use crate::error::Result;
use crate::sql;
use crate::store::{Columns, Sql};
use time::OffsetDateTime;

/// Holds all runs. False: they were held already.
pub fn hold(sql: &mut impl Sql, now: OffsetDateTime) -> Result<bool> {
    Ok(sql.execute(sql!("runs/hold"), &[&now])? == 1)
}

/// Lets all runs go on. False: they were not held.
pub fn release(sql: &mut impl Sql) -> Result<bool> {
    Ok(sql.execute(sql!("runs/release"), &[])? == 1)
}

/// Whether runs are held.
pub fn is_held(sql: &mut impl Sql) -> Result<bool> {
    sql.query_one(sql!("runs/is_held"), &[])?.column("is_held")
}
