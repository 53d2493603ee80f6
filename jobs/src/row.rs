//! Reads rows by column name.

use crate::{Error, Result};
use postgres::Row;
use postgres::types::FromSql;

pub(crate) trait Columns {
    /// The value of a column.
    ///
    /// # Errors
    /// [`Error::Column`]: the statement gives no such column, or another type than this.
    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T>;

    /// A count in a column; the tables have no negative ones.
    ///
    /// # Errors
    /// As [`Columns::column`].
    fn count(&self, name: &str) -> Result<u32> {
        Ok(self.column::<i32>(name)?.unsigned_abs())
    }
}

impl Columns for Row {
    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T> {
        self.try_get(name)
            .map_err(|error| Error::Column(format!("{name}: {error}")))
    }
}
