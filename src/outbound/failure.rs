//! Why an exchange with another host failed: a kind for the program and a sentence for a person.
//!
//! A message names hosts and addresses, never a header, a body, a key, or a URL's query.

use super::refusal::{Refusal, Rule};
use crate::error::{Code, Error};
use std::net::IpAddr;
use std::time::Duration;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The policy refuses this host.
    Refused,
    /// The URL or a header is not valid.
    Invalid,
    /// The host name did not resolve.
    Resolve,
    /// No resolver thread was free in time, so nothing is known of the host.
    Busy,
    /// Nothing listens there: the host refused the connection.
    ConnectRefused,
    /// No connection was made, for another reason.
    Connect,
    /// The operator's forward proxy refuses the connection.
    Proxy,
    /// The TLS handshake failed, most often because of the certificate.
    Tls,
    /// A deadline passed.
    Timeout(Phase),
    /// The connection broke after it was made.
    Reset,
    /// The answer is longer than the caller allows.
    TooLarge,
    /// Another thread cancelled the exchange.
    Cancelled,
    /// The answer is not HTTP/1.1, or cannot be read in the coding or the charset that it has.
    Protocol,
}

/// The phase of an exchange.
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

/// A time limit of an exchange, with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Of the look-up, the connect and the TLS handshake.
    Connect(Duration),
    /// Of the first byte of the answer.
    FirstByte(Duration),
    /// Between two bytes of the answer.
    Idle(Duration),
    /// Of the whole exchange.
    Total(Duration),
}

/// A failed exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    kind: Kind,
    message: String,
    limit: Option<Limit>,
    address: Option<IpAddr>,
    rule: Option<Rule>,
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            limit: None,
            address: None,
            rule: None,
        }
    }

    /// Adds the address, unless one is set.
    pub(super) fn at(mut self, address: Option<IpAddr>) -> Self {
        self.address = self.address.or(address);
        self
    }

    pub(super) fn by_limit(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
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

    /// The time limit that ended the exchange; none for another failure, and for a name that did not resolve in time.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// The address that was connected to, tried or refused. Of several, the one that decided.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The rule of section 6.1 that refused a webhook receiver; none for another failure.
    pub fn rule(&self) -> Option<Refusal> {
        let address = self.address;
        self.rule.map(|rule| Refusal { rule, address })
    }

    /// Whether it says that the other side is away. A kept connection that breaks says nothing: the other side may
    /// just have closed it.
    pub(super) fn is_absence(&self) -> bool {
        matches!(
            self.kind,
            Kind::Resolve | Kind::ConnectRefused | Kind::Connect | Kind::Tls | Kind::Timeout(_)
        )
    }

    /// Whether the other side may have got the request, so that nobody knows what it did.
    pub fn may_have_arrived(&self) -> bool {
        match self.kind {
            Kind::Timeout(phase) => match phase {
                Phase::Resolve | Phase::Connect | Phase::Tls => false,
                Phase::Send | Phase::FirstByte | Phase::Body => true,
            },
            Kind::Reset | Kind::TooLarge | Kind::Cancelled | Kind::Protocol => true,
            Kind::Refused
            | Kind::Invalid
            | Kind::Resolve
            | Kind::Busy
            | Kind::ConnectRefused
            | Kind::Connect
            | Kind::Proxy
            | Kind::Tls => false,
        }
    }

    /// Whether the same exchange may succeed later. A cancelled exchange is not retried.
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
            | Kind::Proxy
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
    /// A refused host and a malformed URL are the client's fault; every other failure is internal.
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
