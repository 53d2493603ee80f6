//! Why an exchange with another host failed: a kind for the program and a sentence for a person.
//!
//! A message names hosts and addresses, never a header, a body, a key, or a URL's query.

use crate::error::{Code, Error};

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The caller's policy does not let it reach this host.
    Refused,
    /// The request cannot be sent as it was given: its URL or a header is not valid.
    Invalid,
    /// The host name did not resolve, or not in time.
    Resolve,
    /// No connection came about.
    Connect,
    /// The TLS handshake failed, most often over the certificate.
    Tls,
    /// A deadline passed.
    Timeout(Phase),
    /// The connection broke after it was made.
    Reset,
    /// The answer is longer than the caller takes.
    TooLarge,
    /// Another thread cancelled the exchange.
    Cancelled,
    /// The answer is not HTTP/1.1.
    Protocol,
}

/// How far an exchange was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Looking up the name.
    Resolve,
    /// Connecting.
    Connect,
    /// Shaking hands for TLS.
    Tls,
    /// Sending the request.
    Send,
    /// Waiting for the first byte of the answer.
    FirstByte,
    /// Reading the answer.
    Body,
}

/// A failed exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    kind: Kind,
    message: String,
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// A plain sentence without secrets.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same exchange may succeed later. What was cancelled is not worth another try.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            Kind::Resolve | Kind::Connect | Kind::Timeout(_) | Kind::Reset => true,
            Kind::Refused
            | Kind::Invalid
            | Kind::Tls
            | Kind::TooLarge
            | Kind::Cancelled
            | Kind::Protocol => false,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    /// A refused host is the caller's fault, and so is a URL that is none; the rest is ours.
    #[track_caller]
    fn from(failure: Failure) -> Self {
        match failure.kind {
            Kind::Refused => Self::new(Code::HostAccessDenied, failure.message),
            Kind::Invalid => Self::new(Code::InvalidRequest, failure.message),
            _ => Self::internal(failure),
        }
    }
}
