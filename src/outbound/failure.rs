//! Why an exchange with another host failed: a kind for the program and a sentence for a person.
//!
//! A message names hosts and addresses, never a header, a body, a key, or a URL's query.

use super::webhook::{Refusal, Rule};
use crate::error::{Code, Error};
use std::net::IpAddr;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The caller's policy does not let it reach this host.
    Refused,
    /// The request cannot be sent as it was given: its URL or a header is not valid.
    Invalid,
    /// The host name did not resolve.
    Resolve,
    /// Nobody had time to look the host name up: nothing was asked, and nothing is known of the host.
    Busy,
    /// Nothing listens there: the host refused the connection.
    ConnectRefused,
    /// No connection came about, for another reason.
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
    address: Option<IpAddr>,
    rule: Option<Rule>,
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            address: None,
            rule: None,
        }
    }

    /// The address that it happened at, unless it has one.
    pub(super) fn at(mut self, address: Option<IpAddr>) -> Self {
        self.address = self.address.or(address);
        self
    }

    pub(super) fn by_rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// A plain sentence without secrets.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The address that was connected to, tried or refused; of several, the one that decided.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The rule of section 6.1 that refused a webhook's receiver; none for any other failure.
    pub fn rule(&self) -> Option<Refusal> {
        let address = self.address;
        self.rule.map(|rule| Refusal { rule, address })
    }

    /// Whether the same exchange may succeed later. What was cancelled is not worth another try.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            Kind::Resolve
            | Kind::Busy
            | Kind::ConnectRefused
            | Kind::Connect
            | Kind::Timeout(_)
            | Kind::Reset => true,
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
        if let Some(Refusal { rule, address }) = failure.rule() {
            let error = Self::new(Code::WebhookUrlRefused, failure.message);
            let error = error.detail("rule", rule.to_string());
            return match address {
                Some(address) => error.detail("address", address.to_string()),
                None => error,
            };
        }
        match failure.kind {
            Kind::Refused => Self::new(Code::HostAccessDenied, failure.message),
            Kind::Invalid => Self::new(Code::InvalidRequest, failure.message),
            _ => Self::internal(failure),
        }
    }
}
