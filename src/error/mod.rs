//! The one error type of the service.
//!
//! An [`Error`] has two readers. The client gets a [`Code`] and a plain sentence that says what is
//! wrong and what to do. The log gets the cause and the source location, which never reach a
//! client.
//!
//! Not here: how an error becomes a response (`http::reply`) or a log record (`log`).

#[cfg(test)]
mod document;

use serde_json::{Map, Value};
use std::panic::Location;

/// Every code that the service answers with. Specification section 7; the codes that it does not
/// show are ours and are listed in `docs/open-details.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// 400: the body, a query parameter or a path parameter is not what the route takes.
    InvalidRequest,
    /// 400: the body is not JSON, or does not have the route's shape.
    InvalidBody,
    /// 400: the cursor was not made by this list with these filters.
    InvalidCursor,
    /// 400: the role cannot be given (section 4.3).
    RoleNotGiven,
    /// 400: a key may not have a higher role than the key that mints it (section 5.6).
    RoleExceedsPrincipal,
    /// 400: the deployment refuses the receiver's URL (section 6.1).
    WebhookUrlRefused,
    /// 400: the named secret does not exist in the named environment (section 6.1).
    WebhookSecretNotFound,
    /// 400: the named secret is no signing secret, or too weak a one (section 8).
    WebhookSecretWeak,
    /// 403: the one who started the run decides about no approval of it.
    ApprovalOwnRequest,
    /// 409: the approval does not wait any more.
    ApprovalClosed,
    /// 409: the approval is about something else than the caller has read.
    ApprovalChanged,
    /// 401: no credential, or one that is not known, is expired or revoked.
    Unauthenticated,
    /// 403: the caller may not do this (section 5.5).
    PermissionDenied,
    /// 403: the key is limited to another project than the one the request names (section 5.6).
    KeyProjectMismatch,
    /// 403: a public run token was used for something else than the progress of its runs (section 4.1).
    PublicRunTokenNotAllowed,
    /// 403: a request with a session, or one to sign in, did not come from a page of this server (section 5.6).
    CsrfOriginMismatch,
    /// 403: signing in with a token is off (section 5.6).
    TokenSignInOff,
    /// 403: this token does not sign in (section 5.6).
    TokenSignInNotAllowed,
    /// 403: the operator keeps the identity providers, in a file (section 5.6).
    IdentityProvidersOperatorManaged,
    /// 503: the identity provider cannot be used to sign in just now.
    ProviderUnavailable,
    /// 403: the deployment does not let a tenant reach this host (section 1.4).
    HostAccessDenied,
    /// 404: no route has this path.
    RouteNotFound,
    /// 404: the tenant has no such object.
    NotFound,
    /// 405: the path is known, the method is not; `Allow` lists those that are.
    MethodNotAllowed,
    /// 408: the body did not arrive in time.
    RequestTimeout,
    /// 409: an object with this name or version exists already.
    AlreadyExists,
    /// 409: the user has another role on the project already (section 4.3).
    MembershipExists,
    /// 409: the team has another role on the project already (section 4.5).
    TeamGrantExists,
    /// 409: a project keeps an owner.
    LastOwner,
    /// 409: a tenant keeps an admin.
    LastAdmin,
    /// 409: the project is archived: nothing new is made in it.
    ProjectArchived,
    /// 409: the agent is archived: it starts nothing.
    AgentArchived,
    /// 400: the definition of a flow is not taken.
    FlowInvalid,
    /// 400: the input of a run does not fit its flow.
    InputInvalid,
    /// 400: a run sets what its version keeps to itself.
    OverrideNotAllowed,
    /// 409: the flow is archived: it starts nothing.
    FlowArchived,
    /// 409: a call was cut off, and nobody knows whether it took effect.
    OutcomeUnknown,
    /// 409: the object is not in a state that allows this.
    Conflict,
    /// 409: a request with this idempotency key is still being answered.
    IdempotencyInFlight,
    /// 413: the body is longer than the route takes.
    BodyTooLarge,
    /// 415: the body is not `application/json`.
    UnsupportedMediaType,
    /// 422: the idempotency key was used with another body.
    IdempotencyMismatch,
    /// 429: this client has too much open.
    TooManyRequests,
    /// 431: the header block is too large.
    HeadersTooLarge,
    /// 500: a fault of the service; its cause is in the log under the request id.
    Internal,
    /// 500: the authorization server does not answer (section 1.2).
    AuthorizationUnavailable,
    /// 501: the access list needs an authorization server (section 4.5).
    ProjectAccessUnsupported,
    /// 501: what the route needs is not configured here.
    NotConfigured,
    /// 503: a later version of this program wrote what is to be read.
    NewerFormat,
    /// 503: too much work is waiting; try again.
    Overloaded,
    /// 503: the database does not answer.
    DatabaseUnavailable,
    /// 503: the decision about the request could not be recorded, so nothing was done.
    AuditUnavailable,
    /// 503: a secret cannot be written or read just now; the message says which part refuses.
    SecretsUnavailable,
    /// 503: the server is stopping.
    ShuttingDown,
    /// 504: the request was not answered within its deadline.
    DeadlineExceeded,
}

impl Code {
    /// Every code, for the documentation and the tests.
    pub const ALL: [Self; 55] = [
        Self::InvalidRequest,
        Self::InvalidBody,
        Self::InvalidCursor,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::HostAccessDenied,
        Self::RouteNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::AlreadyExists,
        Self::Conflict,
        Self::IdempotencyInFlight,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::IdempotencyMismatch,
        Self::TooManyRequests,
        Self::HeadersTooLarge,
        Self::Internal,
        Self::NotConfigured,
        Self::Overloaded,
        Self::DatabaseUnavailable,
        Self::AuditUnavailable,
        Self::ShuttingDown,
        Self::DeadlineExceeded,
        Self::RoleNotGiven,
        Self::RoleExceedsPrincipal,
        Self::KeyProjectMismatch,
        Self::PublicRunTokenNotAllowed,
        Self::MembershipExists,
        Self::TeamGrantExists,
        Self::LastOwner,
        Self::LastAdmin,
        Self::ApprovalOwnRequest,
        Self::ApprovalClosed,
        Self::ApprovalChanged,
        Self::ProjectArchived,
        Self::AgentArchived,
        Self::FlowInvalid,
        Self::InputInvalid,
        Self::OverrideNotAllowed,
        Self::FlowArchived,
        Self::OutcomeUnknown,
        Self::NewerFormat,
        Self::AuthorizationUnavailable,
        Self::ProjectAccessUnsupported,
        Self::WebhookUrlRefused,
        Self::WebhookSecretNotFound,
        Self::WebhookSecretWeak,
        Self::SecretsUnavailable,
        Self::CsrfOriginMismatch,
        Self::TokenSignInOff,
        Self::TokenSignInNotAllowed,
        Self::IdentityProvidersOperatorManaged,
        Self::ProviderUnavailable,
    ];

    /// The HTTP status and the text of each code: the only table of them.
    pub const fn status_and_text(self) -> (u16, &'static str) {
        match self {
            Self::InvalidRequest => (400, "invalid-request"),
            Self::InvalidBody => (400, "invalid-body"),
            Self::InvalidCursor => (400, "invalid-cursor"),
            Self::Unauthenticated => (401, "unauthenticated"),
            Self::PermissionDenied => (403, "permission-denied"),
            Self::HostAccessDenied => (403, "host-access-denied"),
            Self::RouteNotFound => (404, "route-not-found"),
            Self::NotFound => (404, "not-found"),
            Self::MethodNotAllowed => (405, "method-not-allowed"),
            Self::RequestTimeout => (408, "request-timeout"),
            Self::AlreadyExists => (409, "already-exists"),
            Self::Conflict => (409, "conflict"),
            Self::IdempotencyInFlight => (409, "idempotency-in-flight"),
            Self::BodyTooLarge => (413, "body-too-large"),
            Self::UnsupportedMediaType => (415, "unsupported-media-type"),
            Self::IdempotencyMismatch => (422, "idempotency-mismatch"),
            Self::TooManyRequests => (429, "too-many-requests"),
            Self::HeadersTooLarge => (431, "headers-too-large"),
            Self::Internal => (500, "internal"),
            Self::NotConfigured => (501, "not-configured"),
            Self::Overloaded => (503, "overloaded"),
            Self::DatabaseUnavailable => (503, "database-unavailable"),
            Self::AuditUnavailable => (503, "audit-unavailable"),
            Self::ShuttingDown => (503, "shutting-down"),
            Self::DeadlineExceeded => (504, "deadline-exceeded"),
            Self::RoleNotGiven => (400, "role-not-given"),
            Self::RoleExceedsPrincipal => (400, "role-exceeds-principal"),
            Self::KeyProjectMismatch => (403, "key-project-mismatch"),
            Self::PublicRunTokenNotAllowed => (403, "public-run-token-not-allowed"),
            Self::MembershipExists => (409, "membership-exists"),
            Self::TeamGrantExists => (409, "team-grant-exists"),
            Self::LastOwner => (409, "last-owner"),
            Self::LastAdmin => (409, "last-admin"),
            Self::ApprovalOwnRequest => (403, "approval-own-request"),
            Self::ApprovalClosed => (409, "approval-closed"),
            Self::ApprovalChanged => (409, "approval-changed"),
            Self::ProjectArchived => (409, "project-archived"),
            Self::AgentArchived => (409, "agent-archived"),
            Self::FlowInvalid => (400, "flow-invalid"),
            Self::InputInvalid => (400, "input-invalid"),
            Self::OverrideNotAllowed => (400, "override-not-allowed"),
            Self::FlowArchived => (409, "flow-archived"),
            Self::OutcomeUnknown => (409, "outcome-unknown"),
            Self::NewerFormat => (503, "newer-format"),
            Self::AuthorizationUnavailable => (500, "authorization-unavailable"),
            Self::ProjectAccessUnsupported => (501, "project-access-unsupported"),
            Self::WebhookUrlRefused => (400, "webhook-url-refused"),
            Self::WebhookSecretNotFound => (400, "webhook-secret-not-found"),
            Self::WebhookSecretWeak => (400, "webhook-secret-weak"),
            Self::SecretsUnavailable => (503, "secrets-unavailable"),
            Self::CsrfOriginMismatch => (403, "csrf-origin-mismatch"),
            Self::TokenSignInOff => (403, "token-sign-in-off"),
            Self::TokenSignInNotAllowed => (403, "token-sign-in-not-allowed"),
            Self::IdentityProvidersOperatorManaged => (403, "identity-providers-operator-managed"),
            Self::ProviderUnavailable => (503, "provider-unavailable"),
        }
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        self.status_and_text().0
    }

    /// The text in `error.code`.
    pub const fn text(self) -> &'static str {
        self.status_and_text().1
    }
}

/// An error for the client and for the log.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    message: String,
    details: Map<String, Value>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    place: &'static Location<'static>,
}

/// The service's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with a sentence for the client that says what is wrong and what to do.
    #[track_caller]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            details: Map::new(),
            cause: None,
            place: Location::caller(),
        }))
    }

    /// An internal error: the client gets only the request id, the log gets everything.
    #[track_caller]
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(
            Code::Internal,
            "The server met a fault of its own. Its log has the cause under this request id.",
        )
        .because(cause)
    }

    /// A later version of this program wrote `what`, in a form that this one does not know.
    #[track_caller]
    pub fn newer_format(what: &str) -> Self {
        Self::new(
            Code::NewerFormat,
            format!(
                "A later version of the service wrote {what}, and this one does not read it. Ask again: a replica of that version answers."
            ),
        )
    }

    /// No such object in the caller's tenant.
    #[track_caller]
    pub fn not_found(kind: &'static str, id: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("There is no {kind} {id} here."))
    }

    /// Adds a code-specific detail for the client.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.details.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a sentence to that for the client.
    #[must_use]
    pub fn adding(mut self, sentence: &str) -> Self {
        self.0.message = format!("{} {sentence}", self.0.message);
        self
    }

    /// Adds text for the log.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The sentence for the client.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The code-specific details for the client.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// The database's disk is full.
    pub fn is_disk_full(&self) -> bool {
        let cause = self.cause().and_then(|cause| cause.downcast_ref());
        cause.is_some_and(is_full)
    }

    /// The cause, for the log only.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// Whether the database answered and denied a privilege.
    pub fn is_lack_of_right(&self) -> bool {
        let cause = self.cause().and_then(|cause| cause.downcast_ref());
        cause.is_some_and(lacks_right)
    }

    /// The source location of the error, for the log only.
    pub fn place(&self) -> &'static Location<'static> {
        self.0.place
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.0.code.text(), self.0.message)?;
        let mut cause = self
            .0
            .cause
            .as_deref()
            .map(|c| c as &(dyn std::error::Error + 'static));
        while let Some(c) = cause {
            write!(f, ": {c}")?;
            cause = c.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .cause
            .as_deref()
            .map(|c| c as &(dyn std::error::Error + 'static))
    }
}

/// Whether the database is unavailable for now: unreachable, or not accepting work. A retry may
/// help only then.
pub(crate) fn is_away(error: &postgres::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput};
    if let Some(state) = error.code() {
        return is_away_state(state);
    }
    match std::error::Error::source(error) {
        // A refused certificate and a malformed address are I/O errors, too, and a retry does not
        // help.
        Some(cause) => cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| ![InvalidData, InvalidInput].contains(&io.kind())),
        // The client library marks its timeouts in no other way.
        None => error.is_closed() || error.to_string().starts_with("timeout"),
    }
}

fn is_full(error: &postgres::Error) -> bool {
    error.code() == Some(&postgres::error::SqlState::DISK_FULL)
}

fn is_away_state(state: &postgres::error::SqlState) -> bool {
    use postgres::error::SqlState;
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::QUERY_CANCELED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ]
    .contains(state)
        // SQLSTATE classes: connection exception, insufficient resources.
        || ["08", "53"].iter().any(|class| state.code().starts_with(class))
}

/// Whether the server's role lacks a privilege. Its operator can grant it while the server waits.
fn lacks_right(error: &postgres::Error) -> bool {
    error.code() == Some(&postgres::error::SqlState::INSUFFICIENT_PRIVILEGE)
}

/// The message for a database that answers and accepts no change.
fn refusal(error: &postgres::Error) -> Option<&'static str> {
    let is_read_only = error.code() == Some(&postgres::error::SqlState::READ_ONLY_SQL_TRANSACTION);
    if is_full(error) {
        Some(
            "The database's disk is full: nothing can be written until its operator makes room. What is there can be read.",
        )
    } else if is_read_only {
        Some("The database is read-only at this time and takes no change. Try again shortly.")
    } else if lacks_right(error) {
        Some(
            "The database does not let the server do that. Its operator finds in the log which right is missing.",
        )
    } else {
        None
    }
}

impl From<postgres::Error> for Error {
    /// An unavailable or refusing database is a 503; everything else is an internal error.
    #[track_caller]
    fn from(cause: postgres::Error) -> Self {
        if let Some(sentence) = refusal(&cause) {
            Self::new(Code::DatabaseUnavailable, sentence).because(cause)
        } else if is_away(&cause) {
            Self::database_unavailable(cause)
        } else {
            Self::internal(cause)
        }
    }
}

impl From<r2d2::Error> for Error {
    #[track_caller]
    fn from(cause: r2d2::Error) -> Self {
        Self::database_unavailable(cause)
    }
}

impl Error {
    /// The database does not answer, or accepts no work now.
    #[track_caller]
    pub fn database_unavailable(
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::new(
            Code::DatabaseUnavailable,
            "The database does not answer right now. Try again shortly.",
        )
        .because(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
    }

    #[test]
    fn what_passes_by_itself_is_the_database_s_absence_and_a_refusal_is_not() {
        use postgres::error::SqlState;
        let away = |code| is_away_state(&SqlState::from_code(code));
        for code in [
            "08006", "57P01", "57P03", "57014", "55P03", "53300", "53100", "25006", "40001",
            "40P01",
        ] {
            assert!(away(code), "{code}");
        }
        for code in [
            "28P01", "28000", "3D000", "23505", "42P01", "0A000", "22P02", "XX000",
        ] {
            assert!(!away(code), "{code}");
        }
    }

    #[test]
    fn a_name_that_is_no_address_is_no_absence() {
        let connect = |url: &str| {
            let connected = postgres::Client::connect(url, postgres::NoTls);
            connected.map(|_| ()).unwrap_err()
        };
        let nobody = tempfile::tempdir().unwrap();
        let nobody = format!("host={} user=a", nobody.path().display());
        assert!(is_away(&connect(&nobody)));
        let long = format!("host=/{} user=a", "x".repeat(200));
        assert!(!is_away(&connect(&long)));
    }

    #[test]
    fn the_cause_is_for_the_log_alone() {
        let error = Error::internal("disk on fire");
        assert!(!error.message().contains("fire"));
        assert!(error.to_string().contains("disk on fire"));
        assert!(error.place().file().ends_with("src/error/mod.rs"));
    }
}
