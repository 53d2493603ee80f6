//! Why the authorization server could not be asked or written to, and the error that a caller gets.
//!
//! Not here: what OpenFGA itself answers ([`Failure`]).

use crate::authz::fga::Failure;
use crate::error::{Code, Error};

/// How the message of a check without an answer begins (section 1.2).
const PREFIX: &str = "FGA Error: ";

/// Why OpenFGA could not be asked or written to.
#[derive(Debug)]
pub(super) enum Fault {
    /// OpenFGA's part.
    Fga(Failure),
    /// The database's part, or a bound of ours.
    Own(Error),
    /// There is no such tenant.
    Gone,
    /// The tenant has no store, or it was replaced meanwhile.
    Storeless,
    /// The store's model is newer than this program and is not there any more.
    NewerModelLost { lost: i32, ours: i32 },
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Fga(failure)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

impl Fault {
    /// Whether OpenFGA has something else than Postgres says it has.
    pub(super) fn is_lost_store(&self) -> bool {
        matches!(
            self,
            Self::Storeless | Self::Fga(Failure::StoreUnknown | Failure::ModelUnknown)
        )
    }

    /// Whether nothing else will do either at this time.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Fga(Failure::Contended) => false,
            Self::Fga(failure) => failure.is_transient(),
            Self::Own(error) => {
                matches!(error.code(), Code::DatabaseUnavailable | Code::ShuttingDown)
            }
            Self::Gone | Self::Storeless | Self::NewerModelLost { .. } => false,
        }
    }

    /// Whether others were at the same, or had all there is of what it takes.
    pub(super) fn is_contention(&self) -> bool {
        match self {
            Self::Fga(failure) => *failure == Failure::Contended,
            Self::Own(error) => {
                matches!(
                    error.code(),
                    Code::Overloaded | Code::AuthorizationUnavailable
                )
            }
            Self::Gone | Self::Storeless | Self::NewerModelLost { .. } => false,
        }
    }
}

impl From<Fault> for Error {
    /// As section 1.2 has it: a message that begins with `FGA Error:`.
    fn from(fault: Fault) -> Self {
        unavailable(match fault {
            Fault::Own(error) => return error,
            Fault::Fga(failure) => return unavailable(&failure).because(failure),
            Fault::Gone => "The tenant is gone.".to_owned(),
            Fault::Storeless => "The tenant's permissions are not in place yet.".to_owned(),
            Fault::NewerModelLost { lost, ours } => format!(
                "The tenant's model has version {lost}, which the authorization server has lost, and this program has version {ours}. Start the newer program again."
            ),
        })
    }
}

/// The error of a check that got no answer.
#[track_caller]
pub(in crate::authz) fn unavailable(why: impl std::fmt::Display) -> Error {
    Error::new(Code::AuthorizationUnavailable, format!("{PREFIX}{why}"))
}

/// The error of a check for which there is no room, because those before it get no answer.
#[track_caller]
pub(in crate::authz) fn silent(since: std::time::Duration) -> Error {
    unavailable(format_args!(
        "The authorization server has answered nothing for {} ms, and no more requests may wait for it.",
        since.as_millis()
    ))
}

/// What [`unavailable`] was given, of its error or another one.
pub(super) fn reason(error: &Error) -> &str {
    let message = error.message();
    message.strip_prefix(PREFIX).unwrap_or(message)
}
