//! The only code that runs SQL.
//!
//! One file a noun; one statement a file under `sql/queries/NOUN/VERB.sql`, embedded here, prepared
//! once a connection, and prepared by a test against a migrated database. Every statement on a
//! tenant's table names the tenant (invariant 9).
//!
//! Guarantees: a checkout ends after its timeout, a statement after the server's own limit, and a
//! statement that outlives it is cancelled by the watchdog. A connection that a restart of the
//! database broke is not handed out again after it has rested, nor once another was found dead; one
//! whose ping got no answer, whose statement was cancelled, or whose prepared statements the server
//! no longer has, is closed.
//!
//! Not here: who may do what (`authz`); functions take a proof of it where the caller is a person.

pub mod agents;
pub mod audit;
pub mod authz;
pub mod backups;
pub mod clock;
pub mod connect;
pub mod conversations;
pub mod deltas;
pub mod enrolments;
pub mod events;
pub mod grants;
pub mod health;
pub mod memberships;
pub mod migrations;
pub mod model_providers;
pub mod orgs;
pub mod page;
pub mod principals;
pub mod project_access;
pub mod projects;
pub mod provision;
mod readable;
pub mod reviewers;
pub mod runs;
pub mod secrets;
pub mod steps;
pub mod team_grants;
pub mod team_memberships;
pub mod teams;
pub mod tenants;
pub mod tokens;
pub mod tools;
pub mod turns;
pub mod users;
mod watchdog;
pub mod webhook_attempts;
pub mod webhook_deliveries;
pub mod webhook_endpoints;
pub mod webhook_history;

use crate::error::{Error, Result};
use crate::places::{Permit, Permits};
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{GenericClient, Row, Statement, Transaction};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// The statement `NOUN/VERB`, whose first parameter is the tenant, with four columns more at the end of each row: what
/// `authz/calm` says as of the same moment, nulls where the tenant has no store.
#[macro_export]
macro_rules! calm_sql {
    ($name:literal) => {
        concat!(
            "with found as (\n",
            $crate::sql!($name),
            "\n), calm as (\n",
            $crate::sql!("authz/calm"),
            "\n) select found.*, calm.* from found left join calm on true"
        )
    };
}

/// How a kind of row is found by its tenant and its id.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    alone: &'static str,
    beside_calm: &'static str,
}

/// The [`Finding`] of the statement `NOUN/VERB`.
#[macro_export]
macro_rules! find_sql {
    ($name:literal) => {
        $crate::store::Finding {
            alone: $crate::sql!($name),
            beside_calm: $crate::calm_sql!($name),
        }
    };
}

/// A kind of row that access is checked on: found in the caller's own tenant, or not at all.
pub trait Find: crate::proof::Kind + Sized {
    /// The statement.
    const FINDING: Finding;

    /// The row as the statement gives it, if it is of this kind.
    ///
    /// # Errors
    /// `internal`: it is nothing that the service wrote.
    fn read(row: &Row) -> Result<Option<Self>>;

    /// The row, if the tenant has it.
    ///
    /// # Errors
    /// `database-unavailable`.
    fn find(sql: &mut impl Sql, tenant_id: uuid::Uuid, id: uuid::Uuid) -> Result<Option<Self>> {
        let row = sql.query_opt(Self::FINDING.alone, &[&tenant_id, &id])?;
        row.map_or(Ok(None), |row| Self::read(&row))
    }
}

/// A parameter of a statement.
pub type Parameter<'a> = &'a (dyn ToSql + Sync);

/// What Postgres calls the fault that is an error's cause.
pub fn sql_state(error: &Error) -> Option<&SqlState> {
    let cause = error.cause()?.downcast_ref::<postgres::Error>()?;
    cause.code()
}

/// Says in the caller's words what a violated constraint means; any other outcome stays as it is.
fn on_violation<T>(
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
        other => Error::internal(other),
    }
}

/// A connection that has rested this long is asked whether it still lives before it is used.
const RESTED: Duration = Duration::from_secs(1);

/// How long it may take to answer.
const PING: Duration = Duration::from_secs(1);

/// How the database is reached and how long one may wait for it.
#[derive(Debug, Clone)]
pub struct Options {
    /// The connection string, with libpq's `sslmode` and `sslrootcert`.
    pub url: crate::secret::Secret,
    /// Connections at most.
    pub pool_size: u32,
    /// How long a caller waits for a connection.
    pub checkout_timeout: Duration,
    /// How long a statement may take; the server ends it then.
    pub statement_timeout: Duration,
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pool: r2d2::Pool<connect::Manager>,
    watchdog: Arc<watchdog::Watchdog>,
    refusal: connect::Refusal,
    /// Sessions that this handle and its clones may have at once.
    share: Option<Permits>,
}

/// A connection with its prepared statements.
pub struct Connection {
    client: postgres::Client,
    desk: Desk,
    used_at: Instant,
}

/// What stands beside a connection: its prepared statements, and the watch over the one that runs.
struct Desk {
    statements: HashMap<&'static str, Statement>,
    place: Arc<watchdog::Place>,
}

/// A connection on loan: the pool takes it back when this is dropped.
pub struct Session {
    connection: r2d2::PooledConnection<connect::Manager>,
    /// Given back after the connection.
    _share: Option<Permit>,
}

/// A transaction: rolled back unless [`Store::transact`]'s closure returns `Ok`.
pub struct Tx<'a> {
    transaction: Transaction<'a>,
    desk: &'a mut Desk,
    committed: Vec<Committed>,
}

/// What is done once a transaction has committed.
type Committed = Box<dyn FnOnce()>;

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
            .ok_or_else(|| crate::error::Error::internal("a statement gave no row"))
    }
}

impl Desk {
    /// Runs a statement under the watchdog's eyes.
    fn watch<T>(&mut self, statement: impl FnOnce() -> Result<T, postgres::Error>) -> Result<T> {
        self.place.begin()?;
        let outcome = statement();
        let state = outcome.as_ref().err().and_then(postgres::Error::code);
        self.place.end(outcome.is_ok() || state.is_some());
        // A pooler lost the prepared statements, or a migration changed what they give.
        let stale = state == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
            || state == Some(&SqlState::FEATURE_NOT_SUPPORTED);
        if stale {
            self.statements.clear();
            self.place.give_up();
            return outcome.map_err(Error::database_unavailable);
        }
        // The connection's end may come after the word of it: it looks alive until then.
        if outcome.as_ref().err().is_some_and(ends_connection) {
            self.place.lose();
        }
        Ok(outcome?)
    }

    fn prepared(
        &mut self,
        client: &mut impl GenericClient,
        sql: &'static str,
    ) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.watch(|| client.prepare(sql))?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    fn query(
        &mut self,
        client: &mut impl GenericClient,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>> {
        let statement = self.prepared(client, sql)?;
        self.watch(|| client.query(&statement, parameters))
    }

    fn execute(
        &mut self,
        client: &mut impl GenericClient,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64> {
        let statement = self.prepared(client, sql)?;
        self.watch(|| client.execute(&statement, parameters))
    }
}

/// Whether the server says that it ends the connection with this.
fn ends_connection(error: &postgres::Error) -> bool {
    use postgres::error::Severity::{Fatal, Panic};
    let severity = error.as_db_error().and_then(|said| said.parsed_severity());
    matches!(severity, Some(Fatal | Panic))
}

impl Sql for Session {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        let Connection { client, desk, .. } = &mut *self.connection;
        desk.prepared(client, sql)
    }

    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let Connection { client, desk, .. } = &mut *self.connection;
        desk.query(client, sql, parameters)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64> {
        let Connection { client, desk, .. } = &mut *self.connection;
        desk.execute(client, sql, parameters)
    }
}

impl Sql for Tx<'_> {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        self.desk.prepared(&mut self.transaction, sql)
    }

    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        self.desk.query(&mut self.transaction, sql, parameters)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64> {
        self.desk.execute(&mut self.transaction, sql, parameters)
    }
}

impl<'a> Tx<'a> {
    /// The transaction itself, for the job queue's functions. It is watched until the next
    /// statement or the end.
    pub fn raw(&mut self) -> &mut Transaction<'a> {
        // One that takes no more refuses the commit.
        let _ = self.desk.place.begin();
        &mut self.transaction
    }

    /// Does this once the commit is confirmed, in the order of the asking, on the thread of the transaction; never
    /// if it is rolled back, or if nobody knows. To be short: the connection is held meanwhile. After a statement that
    /// failed the transaction must fail as well: its commit would be answered as if it had been one.
    pub fn after_commit(&mut self, then: impl FnOnce() + 'static) {
        self.committed.push(Box::new(then));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.used_at = Instant::now();
    }
}

impl Store {
    /// Opens the pool. The database need not be up: connections are made as they are wanted, and
    /// the pool keeps trying.
    ///
    /// # Errors
    /// The connection string is not one, or its certificate file cannot be read.
    pub fn open(options: &Options, log: slog::Logger) -> Result<Self> {
        let manager = connect::Manager::new(options)?;
        let watchdog = Arc::clone(manager.watchdog());
        watchdog.start(
            manager.canceller(),
            options.statement_timeout + options.checkout_timeout,
            log.clone(),
        )?;
        let refusal = manager.refusal();
        let pool = r2d2::Pool::builder()
            .max_size(options.pool_size)
            .min_idle(Some(1))
            .connection_timeout(options.checkout_timeout)
            .test_on_check_out(false)
            .max_lifetime(None)
            .error_handler(Box::new(connect::LogFailures(log)))
            .connection_customizer(Box::new(connect::CloseAside))
            .build_unchecked(manager);
        Ok(Self {
            pool,
            watchdog,
            refusal,
            share: None,
        })
    }

    /// The same database, of whose connections at most so many are taken through this handle and its
    /// clones: for those who must leave the others some.
    pub fn limited(&self, sessions: u32) -> Self {
        let sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
        Self {
            share: Some(Permits::new(sessions.max(1))),
            ..self.clone()
        }
    }

    fn take_share(&self, deadline: Instant) -> Result<Option<Permit>> {
        let taken = self.share.as_ref().map(|share| {
            share.take(deadline).ok_or_else(|| {
                Error::database_unavailable("every connection of this part stayed taken")
            })
        });
        taken.transpose()
    }

    /// Takes a connection.
    ///
    /// # Errors
    /// `database-unavailable` when none that answers is free within the checkout timeout. A database
    /// that refuses is away, too: whoever holds what was accepted waits for its operator to mend it.
    pub fn session(&self) -> Result<Session> {
        let deadline = Instant::now() + self.pool.connection_timeout();
        let share = self.take_share(deadline)?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::database_unavailable(
                    "no connection answered within the checkout timeout",
                ));
            }
            let mut connection =
                self.pool
                    .get_timeout(left)
                    .map_err(|error| match self.refusal.reason() {
                        Some(reason) => Error::database_unavailable(reason),
                        None => Error::from(error),
                    })?;
            let left = deadline.saturating_duration_since(Instant::now());
            let used_at = connection.used_at;
            let doubtful = used_at.elapsed() >= RESTED || self.watchdog.has_lost_since(used_at);
            if !doubtful || connection.ping(left) {
                return Ok(Session {
                    connection,
                    _share: share,
                });
            }
        }
    }

    /// Whether the database answers: asked on a connection, or, where all are at work, seen of them
    /// within `lately`.
    ///
    /// # Errors
    /// `database-unavailable`, as [`Store::session`].
    pub fn check(&self, lately: Duration) -> Result<()> {
        match self.session() {
            Ok(mut session) => match session.connection.ping(PING) {
                true => Ok(()),
                false => Err(Error::database_unavailable("a ping got no answer")),
            },
            Err(_) if self.watchdog.answered_within(lately) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Runs `work` in a transaction: committed if it returns `Ok`, rolled back otherwise.
    ///
    /// # Errors
    /// Those of `work`; `database-unavailable` when the commit is not confirmed.
    pub fn transact<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let mut session = self.session()?;
        session.transact(work)
    }

    /// The connections as the job queue takes them: a loan is watched as one statement.
    pub fn for_jobs(&self) -> jobs::Database {
        jobs::Database::new(self.pool.clone(), |connection: &mut Connection| {
            // One that takes no more is not in the pool.
            let _ = connection.desk.place.begin();
            &mut connection.client
        })
    }

    /// The pool, for its figures.
    pub fn pool(&self) -> &r2d2::Pool<connect::Manager> {
        &self.pool
    }
}

impl Session {
    /// As [`Store::transact`], on this connection.
    ///
    /// # Errors
    /// Those of `work`; `database-unavailable` when the commit is not confirmed.
    pub fn transact<T>(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let Connection { client, desk, .. } = &mut *self.connection;
        let transaction = desk.watch(|| client.transaction())?;
        let mut tx = Tx {
            transaction,
            desk,
            committed: Vec::new(),
        };
        let outcome = work(&mut tx);
        let Tx {
            transaction,
            desk,
            committed,
        } = tx;
        match outcome {
            Ok(value) => {
                desk.watch(|| transaction.commit())?;
                committed.into_iter().for_each(|then| then());
                Ok(value)
            }
            Err(error) => {
                // What it was about is known already.
                let _ = desk.watch(|| transaction.rollback());
                Err(error)
            }
        }
    }
}

impl Connection {
    /// False: it got no answer, and it is to be closed.
    fn ping(&mut self, within: Duration) -> bool {
        let answered = self.client.is_valid(within.min(PING)).is_ok();
        self.desk.place.end(answered);
        if !answered {
            self.desk.place.give_up();
        }
        answered
    }
}
