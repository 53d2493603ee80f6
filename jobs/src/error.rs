//! The crate's errors.

use postgres::error::{DbError, Severity};
use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug)]
pub enum Error {
    /// The database refused, or the connection failed.
    Database(postgres::Error),
    /// The pool had no connection in time.
    Pool(r2d2::Error),
    /// The connection was given up while it was in use: whether the work was committed is unknown.
    Unconfirmed,
    /// A statement gave no such column, or another type; the text names it.
    Column(String),
    /// An argument is out of bounds; the text names it.
    Invalid(String),
    /// The payload cannot be written as, or read from, JSON.
    Payload(serde_json::Error),
    /// The job is no longer under the lease of this claim: roll back.
    LeaseLost,
    /// The job was cancelled while it ran: roll back.
    Cancelled,
    /// A thread could not be started.
    Thread(std::io::Error),
}

impl Error {
    /// Whether the statement itself is at fault, so that repeating it cannot help.
    pub(crate) fn is_about_the_statement(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        // 22: data, 23: constraints, 42: syntax and names. Everything else (connection, shutdown,
        // deadlock, full disk) may pass.
        error
            .code()
            .is_some_and(|code| ["22", "23", "42"].contains(&&code.code()[..2]))
    }

    /// Whether the server says that it ends the connection with this.
    pub(crate) fn ends_connection(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        let severity = error.as_db_error().and_then(DbError::parsed_severity);
        matches!(severity, Some(Severity::Fatal | Severity::Panic))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => match error.as_db_error() {
                Some(inner) => write!(
                    out,
                    "database: {} ({})",
                    inner.message(),
                    inner.code().code()
                ),
                None => write!(out, "database: {error}"),
            },
            Self::Pool(error) => write!(out, "no database connection: {error}"),
            Self::Unconfirmed => write!(
                out,
                "the connection was given up; its answer does not count"
            ),
            Self::Column(what) => write!(out, "column {what}"),
            Self::Invalid(what) => write!(out, "{what}"),
            Self::Payload(error) => write!(out, "payload: {error}"),
            Self::LeaseLost => write!(out, "the job's lease was lost"),
            Self::Cancelled => write!(out, "the job was cancelled"),
            Self::Thread(error) => write!(out, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(error) => Some(error),
            Self::Pool(error) => Some(error),
            Self::Payload(error) => Some(error),
            Self::Thread(error) => Some(error),
            Self::Unconfirmed
            | Self::Column(_)
            | Self::Invalid(_)
            | Self::LeaseLost
            | Self::Cancelled => None,
        }
    }
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<r2d2::Error> for Error {
    fn from(error: r2d2::Error) -> Self {
        Self::Pool(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Payload(error)
    }
}
