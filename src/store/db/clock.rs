//! PostgreSQL's clock.

use super::row::Columns;
use super::statement::Sql;
use crate::error::Result;
use crate::ids::Clock;
use crate::sql;
use time::OffsetDateTime;

/// The earlier of this process's clock and the database's: what is deleted for its age is old by
/// both, so that a server whose clock runs ahead deletes nothing before its time.
pub fn earlier(sql: &mut impl Sql, clock: &Clock) -> Result<OffsetDateTime> {
    let row = sql.query_one(sql!("schema/now"), &[])?;
    let there: OffsetDateTime = row.only()?;
    Ok(clock.now().min(there))
}
