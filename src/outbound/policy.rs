//! Which hosts a caller may reach: policies over the classes of [`super::address`].
//!
//! A policy checks a name before it is resolved and every address afterwards. One refused address
//! refuses the whole name. Specification section 1.4; section 6.1 is in [`super::webhook`].
//!
//! Private addresses are reachable, the host's own included: section 1.4 refuses link-local and
//! loopback addresses alone. The operator can open loopback for exact origins, so that a model
//! server on the same host can be used.

use super::address::{self, Class, Classified};
use super::failure::{Failure, Kind};
use super::webhook::{self, WebhookAccess};
use crate::config::Origin;
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
    /// Metadata services and link-local addresses are refused, and loopback but for the origins
    /// that the operator opened.
    Deployed,
}

/// Checks a URL without a look-up: its host name, or its literal address. `opened` are the origins
/// that the operator opened.
pub(super) fn check_url(policy: Policy, url: &Url, opened: &[Origin]) -> Result<(), Failure> {
    match policy {
        Policy::Operator | Policy::Tenant(HostAccess::Local) => Ok(()),
        Policy::Webhook(access) => webhook::check_url(access, url),
        Policy::Tenant(HostAccess::Deployed) => match url.host() {
            Some(Host::Domain(name)) => match address::known_name(name) {
                Some((class, rule)) => {
                    check_class(&format!("The host {name}"), class, rule, url, opened)
                }
                None => Ok(()),
            },
            Some(Host::Ipv4(v4)) => check_deployed(IpAddr::V4(v4), url, opened),
            Some(Host::Ipv6(v6)) => check_deployed(IpAddr::V6(v6), url, opened),
            None => Ok(()),
        },
    }
}

/// Checks one address of the URL's host. `opened` as in [`check_url`].
pub(super) fn check_address(
    policy: Policy,
    url: &Url,
    address: IpAddr,
    opened: &[Origin],
) -> Result<(), Failure> {
    match policy {
        Policy::Operator | Policy::Tenant(HostAccess::Local) => Ok(()),
        Policy::Tenant(HostAccess::Deployed) => check_deployed(address, url, opened),
        Policy::Webhook(access) => webhook::check_address(access, url, address),
    }
}

/// Checks that `SVC_HOST_ACCESS_ORIGINS` can open each of these origins.
///
/// # Errors
/// What is wrong, for use after the setting's name.
pub(super) fn check_host_access_origins(origins: &[Origin]) -> Result<(), String> {
    let deployed = Policy::Tenant(HostAccess::Deployed);
    let opens = |origin: &&Origin| {
        Url::parse(origin.text()).is_ok_and(|url| check_url(deployed, &url, origins).is_ok())
    };
    match origins.iter().find(|origin| !opens(origin)) {
        None => Ok(()),
        Some(origin) => Err(format!(
            "lists {}, and opens no link-local or cloud metadata address",
            origin.text()
        )),
    }
}

fn check_deployed(address: IpAddr, url: &Url, opened: &[Origin]) -> Result<(), Failure> {
    let Classified {
        class,
        network,
        embedded,
    } = address::classify(address);
    check_class(
        &format!("The address {address}"),
        class,
        network,
        url,
        opened,
    )?;
    for inner in embedded.into_iter().flatten() {
        let subject = format!("The address {inner} inside {address}");
        let Classified { class, network, .. } = address::classify(IpAddr::V4(inner));
        check_class(&subject, class, network, url, opened)?;
    }
    Ok(())
}

/// Judges a class. `rule` is the network or the name that has it.
fn check_class(
    subject: &str,
    class: Class,
    rule: &str,
    url: &Url,
    opened: &[Origin],
) -> Result<(), Failure> {
    let remedy = match class {
        Class::Metadata | Class::LinkLocal => String::new(),
        // The kernel maps an unspecified address to the host itself.
        Class::Unspecified | Class::Loopback => match Origin::of(url) {
            Some(origin) if opened.contains(&origin) => return Ok(()),
            Some(origin) => format!(
                " The operator can open exactly {} with SVC_HOST_ACCESS_ORIGINS.",
                origin.text()
            ),
            None => String::new(),
        },
        Class::Private | Class::Multicast | Class::Reserved | Class::Embedded | Class::Public => {
            return Ok(());
        }
    };
    let what = class.describe();
    Err(Failure::new(
        Kind::Refused,
        format!(
            "{subject} is {what} ({rule}), which this deployment does not let a tenant reach.{remedy}"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYED: Policy = Policy::Tenant(HostAccess::Deployed);

    fn check(policy: Policy, url: &str) -> Result<(), Failure> {
        check_url(policy, &Url::parse(url).unwrap(), &[])
    }

    /// Checks as with `SVC_HOST_ACCESS_ORIGINS`.
    fn check_opened(opened: &[&str], url: &str) -> Result<(), Failure> {
        let opened: Vec<Origin> = opened.iter().map(|o| Origin::parse(o).unwrap()).collect();
        check_url(DEPLOYED, &Url::parse(url).unwrap(), &opened)
    }

    #[test]
    fn deployed_refuses_loopback_link_local_and_metadata() {
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

    #[test]
    fn the_operator_opens_exact_origins_on_loopback() {
        const OLLAMA: &str = "http://127.0.0.1:11434";
        check_opened(&[OLLAMA], "http://127.0.0.1:11434/v1").unwrap();
        // In every spelling of the same origin.
        check_opened(&[OLLAMA], "http://0x7f.1:11434/v1").unwrap();
        check_opened(&["http://localhost:8000"], "http://localhost:8000/v1").unwrap();
        check_opened(&["https://[::1]"], "https://[::1]:443/").unwrap();
        for other in [
            "http://127.0.0.1/v1",
            "http://127.0.0.1:11435/v1",
            "https://127.0.0.1:11434/v1",
            "http://127.0.0.2:11434/v1",
            "http://localhost:11434/v1",
            "http://[::1]:11434/v1",
        ] {
            let failure = check_opened(&[OLLAMA], other).unwrap_err();
            let message = failure.message();
            assert!(message.contains("SVC_HOST_ACCESS_ORIGINS"), "{message}");
            let origin = Origin::of(&Url::parse(other).unwrap()).unwrap();
            assert!(message.contains(origin.text()), "{message}");
        }
    }

    #[test]
    fn no_origin_opens_link_local_or_metadata_addresses() {
        for origin in [
            "http://169.254.169.254",
            "http://169.254.1.1",
            "http://[fe80::1]",
            "http://[fd00:ec2::254]",
            "http://100.100.100.200",
            "http://metadata.google.internal",
        ] {
            let failure = check_opened(&[origin], origin).unwrap_err();
            assert!(!failure.message().contains("SVC_"), "{failure}");
            let parsed = Origin::parse(origin).unwrap();
            let problem = check_host_access_origins(&[parsed]).unwrap_err();
            assert!(problem.contains(origin), "{problem}");
        }
        // Nor does the name of an opened origin that resolves to one.
        let opened = [Origin::parse("http://model.test").unwrap()];
        let url = Url::parse("http://model.test/v1").unwrap();
        let address = |text: &str| {
            let address: IpAddr = text.parse().unwrap();
            check_address(DEPLOYED, &url, address, &opened)
        };
        address("127.0.0.1").unwrap();
        address("169.254.169.254").unwrap_err();
        address("::ffff:169.254.169.254").unwrap_err();
        check_host_access_origins(&opened).unwrap();
    }
}
