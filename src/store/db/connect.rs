//! Connects to PostgreSQL: from libpq's connection string, with kernel deadlines where the protocol
//! has none.

use super::connection::Connection;
use super::statement_timeout::{Canceller, Monitor};
use super::tls::{invalid, split_tls};
use crate::error::{self, Error, Result};
use postgres::{Config, NoTls};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// Makes connections.
#[derive(Clone)]
pub struct Manager {
    config: Config,
    canceller: Canceller,
    monitor: Arc<Monitor>,
    refusal: Refusal,
}

/// Why the last connection was refused for good, if it was.
#[derive(Clone, Default)]
pub(super) struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    pub(super) fn reason(&self) -> Option<String> {
        let reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone()
    }

    fn note(&self, error: Option<&postgres::Error>) {
        let reason = error.filter(|error| !error::is_away(error)).map(describe);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// Logs, without the connection string, that a connection could not be made.
#[derive(Debug)]
pub(super) struct LogFailures(pub(super) slog::Logger);

impl r2d2::HandleError<postgres::Error> for LogFailures {
    fn handle_error(&self, error: postgres::Error) {
        slog::warn!(self.0, "The database cannot be reached; trying again"; crate::log::ErrorValue(&error));
    }
}

fn describe(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Closes connections that were given up on threads of their own: the client library waits there
/// for an answer that may never come.
#[derive(Debug)]
pub(super) struct CloseAside;

impl r2d2::CustomizeConnection<Connection, postgres::Error> for CloseAside {
    fn on_release(&self, connection: Connection) {
        if connection.statements.monitored.is_broken() {
            // Without a thread it is closed here: the closure is dropped.
            let _ = std::thread::Builder::new()
                .name("store-close".to_owned())
                .stack_size(256 * 1024)
                .spawn(move || drop(connection));
        }
    }
}

impl Manager {
    /// Reads the connection string.
    ///
    /// # Errors
    /// It is malformed, or the file that `sslrootcert` names cannot be read.
    pub fn new(options: &Options) -> Result<Self> {
        let (url, tls) = split_tls(options.url.expose())?;
        let mut config: Config = url.parse().map_err(|_| {
            invalid(
                "it is not a PostgreSQL connection string, such as postgres://user@host:5432/name",
            )
        })?;
        config
            .application_name("agent-runtime")
            .connect_timeout(Duration::from_secs(5))
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(15));
        let own = format!(
            "-c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout=60000 -c jit=off -c timezone=UTC",
            options.statement_timeout.as_millis(),
            options.statement_timeout.as_millis() / 2,
        );
        let all = match config.get_options() {
            Some(given) => format!("{own} {given}"),
            None => own,
        };
        config.options(&all).ssl_mode(tls.mode);
        Ok(Self {
            config,
            canceller: Canceller(tls.connector()?),
            monitor: Arc::default(),
            refusal: Refusal::default(),
        })
    }

    /// One connection, outside the pool.
    ///
    /// # Errors
    /// `database-unavailable` when the server cannot be reached; `invalid-request` with its reason
    /// when it refuses for good.
    pub fn client(&self) -> Result<postgres::Client> {
        self.open().map_err(|error| {
            if error::is_away(&error) {
                return Error::from(error);
            }
            let reason = describe(&error);
            invalid(&format!("the database cannot be used: {reason}")).because(error)
        })
    }

    fn open(&self) -> Result<postgres::Client, postgres::Error> {
        match &self.canceller.0 {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        }
    }

    pub(super) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    pub(super) fn refusal(&self) -> Refusal {
        self.refusal.clone()
    }

    pub(super) fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }
}

impl r2d2::ManageConnection for Manager {
    type Connection = Connection;
    type Error = postgres::Error;

    fn connect(&self) -> Result<Connection, postgres::Error> {
        let opened = self.open();
        self.refusal.note(opened.as_ref().err());
        let client = opened?;
        let monitored = self.monitor.add(client.cancel_token());
        Ok(Connection::new(client, monitored))
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), postgres::Error> {
        connection.client.is_valid(Duration::from_secs(1))
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        // The pool asks when a connection comes back: a loan to the job queue ends here.
        connection.statements.monitored.end(false);
        let lost = connection.client.is_closed() || connection.statements.monitored.is_lost();
        if lost {
            self.monitor.note_loss();
        }
        lost || connection.statements.monitored.is_broken()
    }
}
