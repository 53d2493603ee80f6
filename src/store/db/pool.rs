//! The pool of connections, and the session: one connection on loan.
//!
//! A checkout ends after its timeout. A connection is pinged before it is lent if it was idle, or
//! was last used before another one was found dead.

use super::connect::{CloseAside, Manager, NoteFailures, Options};
use super::connection::{Connection, PING};
use super::primary;
use super::shares::{Share, Shares};
use super::statement::{Parameter, Sql};
use super::transaction::{Tx, transact};
use crate::error::{Error, Result};
use crate::log::{Outage, Subsystem};
use postgres::{Row, Statement};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection that has rested this long is asked whether it still lives before it is used.
const RESTED: Duration = Duration::from_secs(1);

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pool: r2d2::Pool<Manager>,
    manager: Manager,
    /// Sessions that this handle and its clones may have at once.
    shares: Option<Shares>,
}

/// A connection on loan: the pool takes it back when this is dropped.
pub struct Session {
    connection: r2d2::PooledConnection<Manager>,
    /// Given back after the connection.
    _share: Option<Share>,
}

impl Sql for Session {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        let Connection {
            client, statements, ..
        } = &mut *self.connection;
        statements.prepared(client, sql)
    }

    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let Connection {
            client, statements, ..
        } = &mut *self.connection;
        statements.query(client, sql, parameters)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64> {
        let Connection {
            client, statements, ..
        } = &mut *self.connection;
        statements.execute(client, sql, parameters)
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
        let manager = Manager::new(options)?;
        let monitor = manager.monitor();
        options.outage.get_or_init(|| {
            let log = crate::log::subsystem(&log, Subsystem::Store);
            Outage::new(log, "The database", manager.place())
        });
        monitor.tell(Arc::clone(&options.outage));
        monitor.start(
            manager.canceller(),
            options.statement_timeout + options.checkout_timeout,
            log.clone(),
        )?;
        if let Some(hosts) = manager.hosts() {
            primary::watch(hosts, monitor, &log)?;
        }
        let pool = pool(&manager, options.pool_size, options.checkout_timeout);
        Ok(Self {
            pool,
            manager,
            shares: None,
        })
    }

    /// The same database through so many connections beside the pool: for what must not wait for the others' work.
    pub fn beside(&self, connections: u32) -> Self {
        let timeout = self.pool.connection_timeout();
        Self {
            pool: pool(&self.manager, connections, timeout),
            manager: self.manager.clone(),
            shares: None,
        }
    }

    /// The same database, of whose connections at most so many are taken through this handle and its
    /// clones: for those who must leave the others some. Where all are taken, tenants have turns (see [`super::working_for`]).
    pub fn limited(&self, sessions: u32) -> Self {
        let sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
        Self {
            shares: Some(Shares::new(sessions.max(1))),
            ..self.clone()
        }
    }

    fn take_share(&self, deadline: Instant) -> Result<Option<Share>> {
        let taken = self.shares.as_ref().map(|shares| {
            shares.take(deadline).ok_or_else(|| {
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
                    .map_err(|error| match self.manager.refusal() {
                        Some(reason) => Error::database_unavailable(reason),
                        None => Error::from(error),
                    })?;
            let left = deadline.saturating_duration_since(Instant::now());
            let used_at = connection.used_at;
            let doubtful =
                used_at.elapsed() >= RESTED || self.manager.monitor().has_lost_since(used_at);
            if !doubtful || connection.ping(left) {
                self.manager.monitor().note_answer();
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
        let checked = match self.session() {
            Ok(mut session) => match session.connection.ping(PING) {
                true => Ok(()),
                false => Err(Error::database_unavailable("a ping got no answer")),
            },
            Err(_) if self.manager.monitor().answered_within(lately) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = &checked {
            self.note_away(error);
        }
        checked
    }

    /// Somebody found, beside the pool, that the database does not answer.
    pub fn note_away(&self, error: &Error) {
        self.manager.monitor().note_away(error);
    }

    /// Whether the log has told that the database is away. What follows from that is no news.
    pub fn is_away(&self) -> bool {
        self.manager.monitor().is_away()
    }

    /// Runs `work` in a transaction: committed if it returns `Ok`, rolled back otherwise.
    ///
    /// # Errors
    /// Those of `work`; `database-unavailable` when the commit is not confirmed.
    pub fn transact<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let mut session = self.session()?;
        session.transact(work)
    }

    /// The connections as the job queue takes them: the monitor takes a loan for one statement.
    pub fn for_jobs(&self) -> jobs::Database {
        jobs::Database::confirmed(
            self.pool.clone(),
            |connection: &mut Connection| {
                connection.statements.monitored.begin().ok()?;
                Some(&mut connection.client)
            },
            |connection| {
                let is_alive = !connection.client.is_closed();
                connection.statements.monitored.end_loan(is_alive)
            },
        )
    }

    /// What makes the pool's connections, for one beside it: both leave an old primary.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// The pool, for its figures.
    pub fn pool(&self) -> &r2d2::Pool<Manager> {
        &self.pool
    }
}

fn pool(manager: &Manager, size: u32, timeout: Duration) -> r2d2::Pool<Manager> {
    r2d2::Pool::builder()
        .max_size(size)
        .min_idle(Some(1))
        .connection_timeout(timeout)
        .test_on_check_out(true)
        .max_lifetime(None)
        .error_handler(Box::new(NoteFailures(Arc::clone(manager.monitor()))))
        .connection_customizer(Box::new(CloseAside))
        .build_unchecked(manager.clone())
}

impl Session {
    /// As [`Store::transact`], on this connection.
    ///
    /// # Errors
    /// Those of `work`; `database-unavailable` when the commit is not confirmed.
    pub fn transact<T>(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        transact(&mut self.connection, work)
    }
}
