//! The partitions of the tables of runs that grow.

use crate::error::Result;
use crate::sql;
use crate::store::Sql;
use time::Date;

/// Makes the partitions around the month of `today`. Safe to repeat, and on several replicas at once.
pub fn attach_partitions(sql: &mut impl Sql, today: Date) -> Result<()> {
    sql.execute(sql!("runs/attach_partitions"), &[&today])?;
    Ok(())
}
