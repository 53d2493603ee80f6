//! Connects to PostgreSQL: from libpq's connection string, with kernel deadlines where the protocol
//! has none.

use super::connection::Connection;
use super::failure::Failure;
use super::primary::{Host, Hosts, PrimaryStatus, describe};
use super::statement_timeout::{Canceller, Monitor};
use super::tls::{invalid, split_tls};
use crate::config::Settings;
use crate::error::{self, Error, Result};
use crate::log::Outage;
use postgres::Config;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
    /// What the log tells of the database's absence: once for all pools of the same options.
    pub outage: Arc<OnceLock<Outage>>,
}

impl Options {
    /// As the settings say.
    pub fn from_settings(settings: &Settings) -> Self {
        let values = &settings.values;
        Self {
            url: settings.database_url.clone(),
            pool_size: values.number("SVC_DATABASE_POOL_SIZE"),
            checkout_timeout: values.duration("SVC_DATABASE_CHECKOUT_TIMEOUT_MS"),
            statement_timeout: values.duration("SVC_DATABASE_STATEMENT_TIMEOUT_MS"),
            outage: Default::default(),
        }
    }
}

/// Makes connections.
#[derive(Clone)]
pub struct Manager {
    config: Config,
    /// Where the connection string names several.
    hosts: Option<Arc<Hosts>>,
    canceller: Canceller,
    monitor: Arc<Monitor>,
    refusal: Refusal,
}

/// Why the last connection was refused for good, if it was.
#[derive(Clone, Default)]
struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    fn reason(&self) -> Option<String> {
        let reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone()
    }

    fn note(&self, error: Option<&Failure>) {
        let refused = error.and_then(|failure| match failure {
            Failure::Postgres(error) => Some(error),
            _ => None,
        });
        let reason = refused.filter(|error| !error::is_away(error)).map(describe);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// Notes, without the connection string, that a connection could not be made.
pub(super) struct NoteFailures(pub(super) Arc<Monitor>);

impl std::fmt::Debug for NoteFailures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NoteFailures")
    }
}

impl r2d2::HandleError<Failure> for NoteFailures {
    fn handle_error(&self, error: Failure) {
        if matches!(error, Failure::Superseded) {
            // The change of the primary was logged once.
            return;
        }
        self.0.note_unconnected(&error);
    }
}

/// Closes connections that were given up on threads of their own: the client library waits there
/// for an answer that may never come.
#[derive(Debug)]
pub(super) struct CloseAside;

impl r2d2::CustomizeConnection<Connection, Failure> for CloseAside {
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
            .keepalives_idle(Duration::from_secs(2))
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(5));
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
        let canceller = Canceller(tls.connector()?);
        Ok(Self {
            hosts: Hosts::of(&config, &canceller),
            config,
            canceller,
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
        match self.open() {
            Ok((client, _)) => Ok(client),
            Err(Failure::Postgres(error)) if !error::is_away(&error) => {
                let reason = describe(&error);
                Err(invalid(&format!("the database cannot be used: {reason}")).because(error))
            }
            Err(Failure::Postgres(error)) => Err(Error::from(error)),
            Err(failure) => Err(Error::database_unavailable(failure)),
        }
    }

    /// A connection, and its server's timeline where the connection string names several hosts.
    fn open(&self) -> Result<(postgres::Client, i64), Failure> {
        match &self.hosts {
            Some(hosts) => hosts.open(),
            None => Ok((self.canceller.connect(&self.config)?, 0)),
        }
    }

    pub(super) fn hosts(&self) -> Option<&Arc<Hosts>> {
        self.hosts.as_ref()
    }

    pub(super) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Why the last connection of the pool was refused for good, if it was.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.reason()
    }

    /// Where the database is: each host with its port.
    pub(super) fn place(&self) -> String {
        use postgres::config::Host;
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied();
        let places = hosts
            .enumerate()
            .map(|(index, host)| format!("{host}:{}", port(index).unwrap_or(5432)));
        places.collect::<Vec<_>>().join(",")
    }

    /// Which of several hosts is the primary, as this process knows it. None: the connection string names one host.
    pub fn primary_status(&self) -> Option<PrimaryStatus> {
        self.hosts.as_ref().map(|hosts| hosts.status())
    }

    /// Asks each of several hosts what it is. None: the connection string names one.
    pub fn ask_hosts(&self) -> Option<Vec<Host>> {
        self.hosts.as_ref().map(|hosts| hosts.ask_each())
    }

    /// Hosts that the connection string names.
    pub fn hosts_named(&self) -> usize {
        let (names, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        names.len().max(addresses.len())
    }

    pub(super) fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }
}

impl r2d2::ManageConnection for Manager {
    type Connection = Connection;
    type Error = Failure;

    fn connect(&self) -> Result<Connection, Failure> {
        loop {
            let opened = self.open();
            self.refusal.note(opened.as_ref().err());
            let (client, timeline) = opened?;
            let monitored = self.monitor.add(client.cancel_token(), timeline);
            // What was found before the monitor knew of this connection.
            let hosts = self.hosts.as_ref();
            if !hosts.is_some_and(|hosts| hosts.is_superseded(timeline)) {
                self.monitor.note_connected();
                return Ok(Connection::new(client, monitored));
            }
        }
    }

    /// Without a word to the server: whether it was given up while it rested.
    fn is_valid(&self, connection: &mut Connection) -> Result<(), Failure> {
        match connection.statements.monitored.is_broken() {
            true => Err(Failure::Superseded),
            false => Ok(()),
        }
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        // The pool asks when a connection comes back: a loan to the job queue ends here.
        let monitored = &connection.statements.monitored;
        monitored.end(false);
        let lost = connection.client.is_closed() || monitored.is_lost();
        if lost {
            self.monitor.note_loss(monitored.alive_at());
        }
        lost || connection.statements.monitored.is_broken()
    }
}
