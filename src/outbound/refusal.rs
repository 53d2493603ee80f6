//! The rules that refuse a receiver of webhooks.

use std::net::IpAddr;

/// The rule that refuses a receiver. Its text is short and stable: a network in prefix notation, a
/// host name, or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The URL is neither http nor https.
    Scheme,
    /// The URL is http, and this is not development mode.
    HttpsOnly,
    /// The URL holds a user name or a password.
    UserInfo,
    /// The URL has a fragment.
    Fragment,
    /// The service itself listens there.
    OwnAddress,
    /// The operator's own code alone may reach it.
    OperatorEndpoint,
    /// This host name is always refused.
    Name(&'static str),
    /// The address is in this network.
    Network(&'static str),
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scheme => "scheme",
            Self::HttpsOnly => "https-only",
            Self::UserInfo => "userinfo",
            Self::Fragment => "fragment",
            Self::OwnAddress => "own-address",
            Self::OperatorEndpoint => "operator-endpoint",
            Self::Name(text) | Self::Network(text) => text,
        })
    }
}

/// Why a receiver was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// The refused address as it was resolved; none if the URL or the name is refused.
    pub address: Option<IpAddr>,
}
