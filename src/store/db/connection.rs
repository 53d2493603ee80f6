//! A connection: its client, its prepared statements, and the monitor of the statement that runs on it.
//!
//! If the server has lost the prepared statements, or ends the connection, the connection takes no
//! other statement. It is closed when it returns to the pool.

use super::statement::Parameter;
use super::statement_timeout::Monitored;
use crate::error::{Error, Result};
use postgres::error::SqlState;
use postgres::{GenericClient, Row, Statement};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a ping may take.
pub(super) const PING: Duration = Duration::from_secs(1);

/// A connection with its prepared statements.
pub struct Connection {
    pub(super) client: postgres::Client,
    pub(super) statements: Statements,
    pub(super) used_at: Instant,
}

/// The prepared statements of a connection, and the monitor of the one that runs.
pub(super) struct Statements {
    prepared: HashMap<&'static str, Statement>,
    pub(super) monitored: Arc<Monitored>,
}

impl Connection {
    pub(super) fn new(client: postgres::Client, monitored: Arc<Monitored>) -> Self {
        Self {
            client,
            statements: Statements {
                prepared: HashMap::new(),
                monitored,
            },
            used_at: Instant::now(),
        }
    }

    /// False: it got no answer, and it is to be closed.
    pub(super) fn ping(&mut self, within: Duration) -> bool {
        let answered = self.client.is_valid(within.min(PING)).is_ok();
        self.statements.monitored.end(answered);
        if !answered {
            self.statements.monitored.give_up();
        }
        answered
    }
}

impl Statements {
    /// Runs a statement under the monitor.
    pub(super) fn monitor<T>(
        &mut self,
        statement: impl FnOnce() -> Result<T, postgres::Error>,
    ) -> Result<T> {
        self.monitored.begin()?;
        let outcome = statement();
        let state = outcome.as_ref().err().and_then(postgres::Error::code);
        let counts = self.monitored.end(outcome.is_ok() || state.is_some());
        // A pooler lost the prepared statements, or a migration changed what they give.
        let stale = state == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
            || state == Some(&SqlState::FEATURE_NOT_SUPPORTED);
        if stale {
            self.prepared.clear();
            self.monitored.give_up();
            return outcome.map_err(Error::database_unavailable);
        }
        // The connection's end may come after the word of it: it looks alive until then.
        if outcome.as_ref().err().is_some_and(ends_connection) {
            self.monitored.lose();
        }
        let answer = outcome?;
        if counts {
            Ok(answer)
        } else {
            Err(unconfirmed())
        }
    }

    pub(super) fn prepared(
        &mut self,
        client: &mut impl GenericClient,
        sql: &'static str,
    ) -> Result<Statement> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.monitor(|| client.prepare(sql))?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) fn query(
        &mut self,
        client: &mut impl GenericClient,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>> {
        let statement = self.prepared(client, sql)?;
        self.monitor(|| client.query(&statement, parameters))
    }

    pub(super) fn execute(
        &mut self,
        client: &mut impl GenericClient,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64> {
        let statement = self.prepared(client, sql)?;
        self.monitor(|| client.execute(&statement, parameters))
    }
}

fn unconfirmed() -> Error {
    Error::database_unavailable("the connection was given up, so its last answer does not count")
}

/// Whether the server says that it ends the connection with this.
fn ends_connection(error: &postgres::Error) -> bool {
    use postgres::error::Severity::{Fatal, Panic};
    let severity = error.as_db_error().and_then(|said| said.parsed_severity());
    matches!(severity, Some(Fatal | Panic))
}
