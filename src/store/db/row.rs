//! Reads rows by column name.
//!
//! A column is read with [`Columns::column`], whose error names it; the one column of a statement with
//! [`Columns::only`]. A set of columns that is read into a struct
//! is listed once, as the struct's [`FromRow`]; where the fields have the columns' names,
//! [`from_row!`](crate::from_row) writes it:
//!
//! ```ignore
//! pub struct Team {
//!     pub team_id: Uuid,
//!     pub name: String,
//! }
//! from_row!(Team { team_id, name });
//!
//! let teams: Vec<Team> = sql.fetch_all(sql!("teams/all"), &[&tenant_id])?;
//! let teams: i64 = sql.query_one(sql!("teams/count"), &[&tenant_id])?.only()?;
//! ```
//!
//! A text column is read into its enum if [`texts!`](crate::texts) declared that.

use crate::error::{Error, Result};
use postgres::Row;
use postgres::types::FromSql;

/// Reads columns by name.
pub trait Columns {
    /// The value of a column.
    ///
    /// # Errors
    /// `internal`: the statement gives no such column, or another type than this. The cause names the column.
    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T>;

    /// The value of the one column that the statement gives.
    ///
    /// # Errors
    /// `internal`: it gives another number of columns, or another type than this.
    fn only<'a, T: FromSql<'a>>(&'a self) -> Result<T>;
}

impl Columns for Row {
    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T> {
        self.try_get(name)
            .map_err(|error| Error::internal(format!("column {name}: {error}")))
    }

    fn only<'a, T: FromSql<'a>>(&'a self) -> Result<T> {
        match self.columns() {
            [one] => self.column(one.name()),
            all => Err(Error::internal(format!(
                "{} columns where one is expected",
                all.len()
            ))),
        }
    }
}

/// What is read from a set of columns.
pub trait FromRow: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// `internal`: the statement does not give these columns, or their content is none that the service wrote.
    fn from_row(row: &Row) -> Result<Self>;
}

/// The [`FromRow`] of a struct each of whose fields is the column of that name.
#[macro_export]
macro_rules! from_row {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::store::FromRow for $type {
            fn from_row(row: &postgres::Row) -> $crate::error::Result<Self> {
                use $crate::store::Columns;
                Ok(Self { $($field: row.column(stringify!($field))?,)* })
            }
        }
    };
}
