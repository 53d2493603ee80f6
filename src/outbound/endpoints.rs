//! What the operator configured for the server itself and what asks for no credentials, such as the
//! authorization server: whoever reaches it may use it, so nobody but the operator's own code does.
//!
//! Guarantees: an exchange with a host that a tenant chose does not reach such an endpoint, by its
//! name, by its address, by another name of that address, or by another address of this host. An
//! address that the public Internet reaches is refused by the endpoint's own name alone: there, many
//! servers may share an address, and the endpoint is open to everybody anyway.
//!
//! Not here: services that ask for credentials, which tenants do not have.

use super::address::{self, Class};
use super::cancel::Token;
use super::failure::{Failure, Kind};
use super::own::is_own;
use super::policy::Policy;
use super::refusal::Rule;
use super::resolver::{Resolver, look_up};
use super::urls::{invalid, parse};
use crate::config::Origin;
use std::net::IpAddr;
use std::time::Instant;
use url::{Host, Url};

/// An endpoint that no tenant may reach.
#[derive(Debug, Clone)]
pub struct OperatorEndpoint {
    url: String,
    /// As part of a sentence.
    what: &'static str,
}

impl OperatorEndpoint {
    /// Those that there are.
    pub fn all(authorization_server: Option<&str>, collector: Option<&str>) -> Vec<Self> {
        let server = authorization_server.map(Self::authorization_server);
        server
            .into_iter()
            .chain(collector.map(Self::collector))
            .collect()
    }

    /// The authorization server.
    pub fn authorization_server(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            what: "the authorization server (SVC_AUTHZ_API_URL)",
        }
    }

    /// The collector of traces, if the server sends it no headers.
    pub fn collector(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            what: "the collector of traces (SVC_OTLP_ENDPOINT)",
        }
    }
}

/// An endpoint as it is compared.
pub(super) struct Endpoint {
    what: &'static str,
    host: Host,
    port: Option<u16>,
}

impl Endpoint {
    pub(super) fn new(given: &OperatorEndpoint) -> Result<Self, Failure> {
        let url = parse(Policy::Operator, &given.url)?;
        let host = url.host().map(|host| host.to_owned());
        Ok(Self {
            what: given.what,
            host: host.ok_or_else(|| invalid("The URL has no host."))?,
            port: url.port_or_known_default(),
        })
    }

    /// Whether the URL names it.
    fn is_named(&self, url: &Url) -> bool {
        let host = url.host().map(|host| canonical(&host.to_owned()));
        self.port == url.port_or_known_default() && host == Some(canonical(&self.host))
    }

    fn refusal(&self, policy: Policy, subject: &str) -> Failure {
        let message = format!(
            "{subject} is {} of this deployment, which no tenant may reach.",
            self.what
        );
        let failure = Failure::new(Kind::Refused, message);
        match policy {
            Policy::Webhook(_) => failure.by_rule(Rule::OperatorEndpoint),
            Policy::Operator | Policy::Tenant(_) => failure,
        }
    }
}

/// One form for each host: a final dot says nothing, and a mapped address is that of IPv4.
fn canonical(host: &Host) -> Host {
    let of = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(v4) => Host::Ipv4(v4),
        IpAddr::V6(v6) => Host::Ipv6(v6),
    };
    match host {
        Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_owned()),
        Host::Ipv4(v4) => of(IpAddr::V4(*v4)),
        Host::Ipv6(v6) => of(IpAddr::V6(*v6)),
    }
}

/// The addresses that an address may stand for and that are no public ones.
fn inner(address: &IpAddr) -> impl Iterator<Item = IpAddr> + use<> {
    let embedded = address::classify(*address).embedded.into_iter().flatten();
    std::iter::once(address.to_canonical())
        .chain(embedded.map(IpAddr::V4))
        .filter(|one| address::classify(*one).class != Class::Public)
}

/// Whether both reach the same host. A server that listens on all addresses of this host is reached
/// by each of them.
fn is_same(one: IpAddr, other: IpAddr) -> bool {
    let is_here = |address: IpAddr| address.is_unspecified() || is_own(address);
    one == other || is_here(one) && is_here(other)
}

/// Checks that no origin that tenants are to reach is one of these.
pub(super) fn check_opened(origins: &[Origin], endpoints: &[Endpoint]) -> Result<(), String> {
    for origin in origins {
        let Ok(url) = Url::parse(origin.text()) else {
            continue;
        };
        if let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.is_named(&url)) {
            return Err(format!(
                "lists {}, which is {}, and no tenant may reach that",
                origin.text(),
                endpoint.what
            ));
        }
    }
    Ok(())
}

/// Refuses a URL that names an endpoint of the operator's. Nothing is looked up.
pub(super) fn check_named(
    endpoints: &[Endpoint],
    policy: Policy,
    url: &Url,
) -> Result<(), Failure> {
    if policy == Policy::Operator {
        return Ok(());
    }
    let mut endpoints = endpoints.iter();
    match endpoints.find(|endpoint| endpoint.is_named(url)) {
        Some(endpoint) => {
            let host = url.host_str().unwrap_or_default();
            Err(endpoint.refusal(policy, &format!("The host {host}")))
        }
        None => Ok(()),
    }
}

/// Refuses addresses at which the URL's port is an endpoint of the operator's. Endpoints are
/// looked up only if the port is theirs and an address may be.
///
/// # Errors
/// [`Kind::Refused`]; [`Kind::Busy`]: the endpoint's name does not resolve, so nobody can tell.
pub(super) fn check_reached(
    endpoints: &[Endpoint],
    resolver: &Resolver,
    policy: Policy,
    url: &Url,
    addresses: &[IpAddr],
    deadline: Instant,
    token: &Token,
) -> Result<(), Failure> {
    if policy == Policy::Operator {
        return Ok(());
    }
    let port = url.port_or_known_default();
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.port == port) {
        let mut inner = addresses.iter().flat_map(inner).peekable();
        if inner.peek().is_none() {
            return Ok(());
        }
        let found = look_up(resolver, &endpoint.host, deadline, token);
        let own = found.map_err(|failure| untold(endpoint, failure))?;
        let is_it = |one: &IpAddr| own.iter().any(|own| is_same(*one, own.to_canonical()));
        if let Some(address) = inner.find(is_it) {
            let refusal = endpoint.refusal(policy, &format!("The address {address}"));
            return Err(refusal.at(Some(address)));
        }
    }
    Ok(())
}

/// The other side is not at fault, so this says nothing of it.
fn untold(endpoint: &Endpoint, failure: Failure) -> Failure {
    if failure.kind() == Kind::Cancelled {
        return failure;
    }
    let what = endpoint.what;
    let message = format!("Nobody can tell whether this host is {what}. {failure}");
    Failure::new(Kind::Busy, message)
}
