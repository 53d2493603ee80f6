//! Whether an address belongs to this host. The kernel is asked for its route (rtnetlink(7)); a
//! local route means yes.
//!
//! That covers every address of every interface and what is routed to the host as a whole, whatever
//! `ip_nonlocal_bind` says. Nothing is sent to the address.
//!
//! If the kernel gives no answer, an address counts as own if it can be bound. An error is then on
//! the side of refusal.

use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::net::{IpAddr, UdpSocket};

/// `RTM_NEWROUTE`: the answer to a request for a route.
const NEW_ROUTE: u16 = 24;
/// `RTM_GETROUTE`.
const GET_ROUTE: u16 = 26;
/// `NLMSG_ERROR`: there is no route.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `RTA_DST`.
const DESTINATION: u16 = 1;
/// `RTN_LOCAL`.
const LOCAL: u8 = 2;
/// Offset of a message's type, after its length of four bytes.
const TYPE_AT: usize = 4;
/// Offset of a route's type, after the message header of 16 bytes.
const ROUTE_TYPE_AT: usize = 16 + 7;

/// Whether the address belongs to this host.
pub(super) fn is_own(address: IpAddr) -> bool {
    is_local(address).unwrap_or_else(|_| UdpSocket::bind((address, 0)).is_ok())
}

fn is_local(address: IpAddr) -> Result<bool> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    // Protocol 0 of this socket family is routing.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    rustix::net::send(&socket, &question(address), SendFlags::empty())?;
    let mut answer = [0; 4096];
    // The kernel answers synchronously.
    let (read, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    let answer = answer.get(..read).unwrap_or_default();
    let kind = answer.get(TYPE_AT..TYPE_AT + 2);
    match kind
        .and_then(|kind| kind.try_into().ok())
        .map(u16::from_ne_bytes)
    {
        Some(NEW_ROUTE) => Ok(answer.get(ROUTE_TYPE_AT) == Some(&LOCAL)),
        Some(ERROR) => Ok(false),
        _ => Err(Errno::PROTO),
    }
}

/// The request: a route header with the destination's prefix length, and the destination.
fn question(address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(v4) => (AddressFamily::INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (AddressFamily::INET6, v6.octets().to_vec()),
    };
    // An address has 16 bytes at most.
    let length = u8::try_from(octets.len()).unwrap_or_default();
    let attribute = 4 + u16::from(length);
    let mut message = Vec::with_capacity(64);
    message.extend((16 + 12 + u32::from(attribute)).to_ne_bytes());
    message.extend([GET_ROUTE, REQUEST].map(u16::to_ne_bytes).as_flattened());
    message.extend([0; 8]);
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    message.extend([family, length * 8]);
    message.extend([0; 10]);
    message.extend(
        [attribute, DESTINATION]
            .map(u16::to_ne_bytes)
            .as_flattened(),
    );
    message.extend(octets);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const STRANGERS: [&str; 4] = [
        "198.51.100.77",
        "2001:db8::77",
        "255.255.255.255",
        "ff02::1",
    ];

    fn own(address: &str) -> bool {
        is_own(address.parse().unwrap())
    }

    /// The test runs itself once more in a network namespace where any address can be bound.
    #[test]
    fn the_hosts_own_addresses_are_its_own_whatever_can_be_bound() {
        assert!(own("127.0.0.1") && own("127.0.0.9"));
        for stranger in STRANGERS {
            assert!(!own(stranger), "{stranger}");
        }
        if UdpSocket::bind((STRANGERS[0], 0)).is_ok() {
            for address in ["203.0.113.5", "203.0.113.6", "2001:db8::5", "::1"] {
                assert!(own(address), "{address}");
            }
            return;
        }
        // The second address of a network, and one of the other family: its route follows the address
        // when the kernel comes to it.
        let script = "ip link set lo up \
            && ip address add 203.0.113.5/24 dev lo && ip address add 203.0.113.6/24 dev lo \
            && ip address add 2001:db8::5/128 dev lo nodad \
            && echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind \
            && for wait in $(seq 1000); do \
                ip -6 route show table local | grep -q '^local 2001:db8::5 ' && break; \
                sleep 0.01; \
            done && exec \"$0\" --exact --nocapture \"$1\"";
        let name =
            "outbound::own::tests::the_hosts_own_addresses_are_its_own_whatever_can_be_bound";
        let inside = Command::new("unshare")
            .args(["--net", "--map-root-user", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .output()
            .unwrap();
        let text = [inside.stdout, inside.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(
            inside.status.success() && text.contains("1 passed"),
            "{text}"
        );
    }
}
