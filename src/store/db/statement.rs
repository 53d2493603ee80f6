//! Statements: their text, their parameters, running them, and the meaning of their failures.
//!
//! Each file `sql/queries/NOUN/VERB.sql` holds one statement, embedded with [`sql!`](crate::sql). A
//! connection prepares it at its first use and keeps it by its text, so a text is `&'static`.

use super::row::FromRow;
use crate::error::{Error, Result};
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};

/// The text of `sql/queries/NOUN/VERB.sql`.
#[macro_export]
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/sql/queries/",
            $name,
            ".sql"
        ))
    };
}

/// A parameter of a statement.
pub type Parameter<'a> = &'a (dyn ToSql + Sync);

/// What Postgres calls the fault that is an error's cause.
pub fn sql_state(error: &Error) -> Option<&SqlState> {
    let cause = error.cause()?.downcast_ref::<postgres::Error>()?;
    cause.code()
}

/// Says in the caller's words what a violated constraint means; any other outcome stays as it is.
pub(in crate::store) fn on_violation<T>(
    result: Result<T>,
    constraint: &SqlState,
    meaning: impl FnOnce() -> Error,
) -> Result<T> {
    result.map_err(|error| match sql_state(&error) {
        Some(state) if state == constraint => meaning(),
        _ => error,
    })
}

/// The job queue's error as ours.
pub fn queue_error(error: jobs::Error) -> Error {
    match error {
        jobs::Error::Database(error) => Error::from(error),
        jobs::Error::Pool(error) => Error::from(error),
        error @ jobs::Error::Unconfirmed => Error::database_unavailable(error),
        other => Error::internal(other),
    }
}

/// What runs a statement: a session (each statement on its own) or a transaction.
pub trait Sql {
    /// The prepared form of a statement, made at its first use on this connection.
    fn prepared(&mut self, sql: &'static str) -> Result<Statement>;
    /// Every row.
    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>>;
    /// How many rows were touched.
    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64>;

    /// The row, if there is one.
    fn query_opt(
        &mut self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Row>> {
        Ok(self.query(sql, parameters)?.pop())
    }

    /// The one row that the statement always gives.
    fn query_one(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Row> {
        self.query_opt(sql, parameters)?
            .ok_or_else(|| Error::internal("a statement gave no row"))
    }

    /// Every row, read.
    fn fetch_all<T: FromRow>(
        &mut self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<T>> {
        self.query(sql, parameters)?
            .iter()
            .map(T::from_row)
            .collect()
    }

    /// The row, read, if there is one.
    fn fetch_optional<T: FromRow>(
        &mut self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<T>> {
        let row = self.query_opt(sql, parameters)?;
        row.as_ref().map(T::from_row).transpose()
    }

    /// The one row that the statement always gives, read.
    fn fetch_one<T: FromRow>(
        &mut self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<T> {
        T::from_row(&self.query_one(sql, parameters)?)
    }
}

/// A connection outside the pool, such as the doctor's.
impl Sql for Client {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        Ok(self.prepare(sql)?)
    }

    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        Ok(Client::query(self, sql, parameters)?)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64> {
        Ok(Client::execute(self, sql, parameters)?)
    }
}
