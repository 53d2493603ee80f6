//! Counts runs, for the bounds on their number. A count reads no more than it is asked for.

use crate::error::{Error, Result};
use crate::sql;
use crate::store::{Columns, Sql};
use uuid::Uuid;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Of a tenant: runs below a root.
    Below(Uuid, Uuid),
    /// Of a tenant: runs that have not ended.
    Unfinished(Uuid),
}

/// How many there are, `most` at most.
pub fn count(sql: &mut impl Sql, of: Counted, most: u64) -> Result<u64> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let row = match of {
        Counted::Below(tenant_id, root_id) => {
            sql.query_one(sql!("runs/count_below"), &[&tenant_id, &root_id, &most])?
        }
        Counted::Unfinished(tenant_id) => {
            sql.query_one(sql!("runs/count_unfinished"), &[&tenant_id, &most])?
        }
    };
    let count: i64 = row.only()?;
    u64::try_from(count).map_err(Error::internal)
}
