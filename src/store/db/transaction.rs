//! A transaction on one connection, and callbacks after its commit.

use super::connection::{Connection, Statements};
use super::statement::{Parameter, Sql};
use crate::error::Result;
use postgres::{Row, Statement, Transaction};

/// A transaction: rolled back unless the closure that is given it returns `Ok`.
pub struct Tx<'a> {
    transaction: Transaction<'a>,
    statements: &'a mut Statements,
    committed: Vec<Committed>,
}

/// What is done once a transaction has committed.
type Committed = Box<dyn FnOnce()>;

/// Runs `work` in a transaction on this connection.
///
/// # Errors
/// Those of `work`; `database-unavailable` when the commit is not confirmed.
pub(super) fn transact<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
) -> Result<T> {
    let Connection {
        client, statements, ..
    } = connection;
    let transaction = statements.monitor(|| client.transaction())?;
    let mut tx = Tx {
        transaction,
        statements,
        committed: Vec::new(),
    };
    let outcome = work(&mut tx);
    let Tx {
        transaction,
        statements,
        committed,
    } = tx;
    match outcome {
        Ok(value) => {
            statements.monitor(|| transaction.commit())?;
            committed.into_iter().for_each(|then| then());
            Ok(value)
        }
        Err(error) => {
            // What it was about is known already.
            let _ = statements.monitor(|| transaction.rollback());
            Err(error)
        }
    }
}

impl Sql for Tx<'_> {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        self.statements.prepared(&mut self.transaction, sql)
    }

    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        self.statements
            .query(&mut self.transaction, sql, parameters)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64> {
        self.statements
            .execute(&mut self.transaction, sql, parameters)
    }
}

impl<'a> Tx<'a> {
    /// The transaction itself, for the job queue's functions. The monitor counts from this
    /// call to the next statement or the end.
    pub fn raw(&mut self) -> &mut Transaction<'a> {
        // One that takes no more refuses the commit.
        let _ = self.statements.monitored.begin();
        &mut self.transaction
    }

    /// Does this once the commit is confirmed, in the order of the asking, on the thread of the transaction; never
    /// if it is rolled back, or if nobody knows. To be short: the connection is held meanwhile. After a statement that
    /// failed the transaction must fail as well: its commit would be answered as if it had been one.
    pub fn after_commit(&mut self, then: impl FnOnce() + 'static) {
        self.committed.push(Box::new(then));
    }
}
