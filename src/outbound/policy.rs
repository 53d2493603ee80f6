//! Which hosts a caller may reach: policies over the classes of [`super::address`].
//!
//! A policy checks a name before it is resolved and every address afterwards. One refused address
//! refuses the whole name. Specification section 1.4; section 6.1 is in [`super::webhook`].

use super::address::{self, Class, Classified};
use super::failure::{Failure, Kind};
use super::own::is_own;
use super::webhook::{self, WebhookAccess};
use std::net::IpAddr;
use url::{Host, Url};

/// Who chose the host; that decides what is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The operator configured it: nothing is refused.
    Operator,
    /// A tenant chose it: the deployment's host-access mode applies (section 1.4).
    Tenant(HostAccess),
    /// A tenant chose it as a webhook receiver (section 6.1).
    Webhook(WebhookAccess),
}

/// The host-access mode of section 1.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostAccess {
    /// Everything may be reached: a machine where every token holder may run commands.
    Local,
    /// Metadata services, link-local addresses and the service's own host are refused.
    Deployed,
}

/// Checks a URL without a look-up: its host name, or its literal address.
pub(super) fn check_url(policy: Policy, url: &Url) -> Result<(), Failure> {
    match policy {
        Policy::Operator | Policy::Tenant(HostAccess::Local) => Ok(()),
        Policy::Webhook(access) => webhook::check_url(access, url),
        Policy::Tenant(HostAccess::Deployed) => match url.host() {
            Some(Host::Domain(name)) => match address::known_name(name) {
                Some((class, rule)) => Err(refused(&format!("The host {name}"), class, rule)),
                None => Ok(()),
            },
            Some(Host::Ipv4(v4)) => check_deployed(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => check_deployed(IpAddr::V6(v6)),
            None => Ok(()),
        },
    }
}

/// Checks one address of the URL's host.
pub(super) fn check_address(policy: Policy, url: &Url, address: IpAddr) -> Result<(), Failure> {
    match policy {
        Policy::Operator | Policy::Tenant(HostAccess::Local) => Ok(()),
        Policy::Tenant(HostAccess::Deployed) => check_deployed(address),
        Policy::Webhook(access) => webhook::check_address(access, url, address),
    }
}

fn check_deployed(address: IpAddr) -> Result<(), Failure> {
    let subject = format!("The address {address}");
    let classified = address::classify(address);
    check_classified(&subject, classified)?;
    for inner in classified.embedded.into_iter().flatten() {
        check_classified(
            &format!("The address {inner} inside {address}"),
            address::classify(IpAddr::V4(inner)),
        )?;
    }
    // A mapped address belongs to the host only in its IPv4 form.
    if is_own(address.to_canonical()) {
        return Err(Failure::new(
            Kind::Refused,
            format!(
                "{subject} is the service's own host, which this deployment does not let a tenant reach."
            ),
        ));
    }
    Ok(())
}

fn check_classified(subject: &str, classified: Classified) -> Result<(), Failure> {
    match classified.class {
        Class::Metadata | Class::Unspecified | Class::Loopback | Class::LinkLocal => {
            Err(refused(subject, classified.class, classified.network))
        }
        Class::Private | Class::Multicast | Class::Reserved | Class::Embedded | Class::Public => {
            Ok(())
        }
    }
}

fn refused(subject: &str, class: Class, rule: &str) -> Failure {
    let what = class.describe();
    Failure::new(
        Kind::Refused,
        format!("{subject} is {what} ({rule}), which this deployment does not let a tenant reach."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYED: Policy = Policy::Tenant(HostAccess::Deployed);

    fn check(policy: Policy, url: &str) -> Result<(), Failure> {
        check_url(policy, &Url::parse(url).unwrap())
    }

    #[test]
    fn deployed_refuses_its_own_host_and_metadata() {
        for host in [
            "127.0.0.1",
            "0177.0.0.1",
            "0x7f.1",
            "2130706433",
            "127.1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "①②⑦.⓪.⓪.①",
            "127。0。0。1",
            "0.0.0.0",
            "0",
            "169.254.169.254",
            "169.254.1.1",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "localhost",
            "LOCALHOST.",
            "app.localhost",
            "metadata.google.internal.",
            "metadata",
            "instance-data",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[::7f00:1]",
            "[::ffff:0:7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::7f00:1]",
            "[2002:a9fe:a9fe::]",
            "[2001::1]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[fd20:ce::254]",
        ] {
            let failure = check(DEPLOYED, &format!("http://{host}/")).unwrap_err();
            assert_eq!(failure.kind(), Kind::Refused, "{host}");
            assert!(failure.message().starts_with("The "), "{failure}");
            check(Policy::Operator, &format!("http://{host}/")).unwrap();
            check(
                Policy::Tenant(HostAccess::Local),
                &format!("http://{host}/"),
            )
            .unwrap();
        }
    }

    #[test]
    fn deployed_reaches_private_and_public_networks() {
        for host in [
            "10.1.2.3",
            "192.168.250.251",
            "100.64.250.1",
            "[fd12:3456::250]",
            "[::ffff:10.1.2.3]",
            "8.8.8.8",
            "[2606:4700::1111]",
            "example.com",
            "localhost.example.com",
        ] {
            check(DEPLOYED, &format!("http://{host}/")).unwrap();
        }
    }

    #[test]
    fn the_refusal_names_the_rule_and_the_address() {
        let failure = check(DEPLOYED, "http://[::ffff:169.254.169.254]/").unwrap_err();
        assert!(failure.message().contains("169.254.169.254/32"));
        assert!(failure.message().contains("inside ::ffff:169.254.169.254"));
    }
}
