//! Which addresses a webhook may go to: the rules of specification section 6.1, and the texts of
//! their refusals.
//!
//! Outside development a receiver must use https and have a public address, or a private one where
//! the operator allows those. Metadata services, link-local addresses and the service's own
//! listening address are always refused. A mapped IPv6 address (RFC 4291) counts as its IPv4
//! address; every other one outside 2000::/3 is refused.
//!
//! Not here: the class of an address ([`super::address`]), the look-up of a name.

use super::address::{self, Class, Classified};
use super::failure::{Failure, Kind};
use super::own::is_own;
use super::refusal::Rule;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use url::{Host, Url};

const MAPPED: &str = "::ffff:0:0/96";

/// The addresses that the operator allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct WebhookAccess {
    /// `SVC_WEBHOOK_PRIVATE_NETWORKS=allow`: receivers on private networks, over https.
    pub private_networks: bool,
    /// `SVC_DEV`: plain http, and every address except metadata services.
    pub development: bool,
    /// The service's own listening address; an unspecified one stands for each of the host's.
    pub listening: Option<SocketAddr>,
}

/// Checks a URL without a look-up: its scheme, its host name, or its literal address.
pub(super) fn check_url(access: WebhookAccess, url: &Url) -> Result<(), Failure> {
    if url.scheme() != "https" && !access.development {
        let message = "The URL must begin with https://. Webhooks are sent over plain http in \
                       development mode only (SVC_DEV).";
        return Err(Failure::new(Kind::Refused, message).by_rule(Rule::HttpsOnly));
    }
    match url.host() {
        Some(Host::Domain(name)) => check_name(access, name),
        Some(Host::Ipv4(v4)) => check_address(access, url, IpAddr::V4(v4)),
        Some(Host::Ipv6(v6)) => check_address(access, url, IpAddr::V6(v6)),
        None => Ok(()),
    }
}

fn check_name(access: WebhookAccess, name: &str) -> Result<(), Failure> {
    let (why, rule) = match address::known_name(name) {
        Some((Class::Metadata, rule)) => (
            "the name of a cloud metadata service, to which webhooks are never sent",
            rule,
        ),
        Some((_, rule)) if !access.development => (
            "this server's own host, to which webhooks are sent in development mode only (SVC_DEV)",
            rule,
        ),
        _ => return Ok(()),
    };
    let message = format!("The host {name} is {why}.");
    Err(Failure::new(Kind::Refused, message).by_rule(Rule::Name(rule)))
}

/// Checks one address of the URL's host, and the addresses that it embeds.
pub(super) fn check_address(
    access: WebhookAccess,
    url: &Url,
    address: IpAddr,
) -> Result<(), Failure> {
    let classified = address::classify(address);
    let embedded = || classified.embedded.into_iter().flatten();
    if classified.network != MAPPED {
        check_classified(access, url, address, None, classified)?;
    }
    for inner in embedded() {
        let classified = address::classify(IpAddr::V4(inner));
        check_classified(access, url, address, Some(inner), classified)?;
    }
    let own = |address| is_listening(access, address, url.port_or_known_default());
    if own(address.to_canonical()) || embedded().any(|inner| own(IpAddr::V4(inner))) {
        let message = format!(
            "{} the address that this server itself listens on, to which webhooks are never sent.",
            subject(url, address, None)
        );
        return Err(refused(message, Rule::OwnAddress, address));
    }
    Ok(())
}

fn check_classified(
    access: WebhookAccess,
    url: &Url,
    address: IpAddr,
    inner: Option<Ipv4Addr>,
    classified: Classified,
) -> Result<(), Failure> {
    let why = match classified.class {
        Class::Metadata | Class::LinkLocal => {
            "Webhooks are never sent to the addresses of cloud metadata services, which are \
             link-local ones and some others."
        }
        _ if access.development => return Ok(()),
        Class::Public => return Ok(()),
        Class::Private if access.private_networks => return Ok(()),
        Class::Private => {
            "Private network addresses are not allowed. The operator can open them, over https \
             only, with SVC_WEBHOOK_PRIVATE_NETWORKS=allow."
        }
        Class::Loopback | Class::Unspecified => {
            "Webhooks are sent to this server's own host in development mode only (SVC_DEV)."
        }
        Class::Multicast | Class::Reserved | Class::Embedded => {
            "Webhooks are sent to public addresses only."
        }
    };
    let message = format!(
        "{} {} ({}). {why}",
        subject(url, address, inner),
        classified.class.describe(),
        classified.network
    );
    Err(refused(message, Rule::Network(classified.network), address))
}

/// The start of a sentence about an address, up to its verb.
fn subject(url: &Url, address: IpAddr, inner: Option<Ipv4Addr>) -> String {
    let inside = inner.map_or_else(String::new, |inner| format!("{inner} inside "));
    match url.host() {
        Some(Host::Domain(name)) => {
            format!("The host {name} has the address {inside}{address}, which is")
        }
        _ => format!("The address {inside}{address} is"),
    }
}

fn refused(message: String, rule: Rule, address: IpAddr) -> Failure {
    Failure::new(Kind::Refused, message)
        .by_rule(rule)
        .at(Some(address))
}

/// Whether the service listens on this address and port. The kernel maps an unspecified address to
/// the host itself.
fn is_listening(access: WebhookAccess, address: IpAddr, port: Option<u16>) -> bool {
    let Some(listening) = access.listening else {
        return false;
    };
    if port != Some(listening.port()) {
        return false;
    }
    let own = listening.ip().to_canonical();
    address.is_unspecified() || address == own || own.is_unspecified() && is_own(address)
}
