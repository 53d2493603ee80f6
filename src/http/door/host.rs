//! Which host an address counts for, where each has a bound.

use std::net::{IpAddr, Ipv6Addr};

/// One host's addresses are one: an IPv6 host commonly has a whole /64.
pub(super) fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_host_is_its_network() {
        let [one, other] = ["2001:db8::1", "2001:db8::ffff:0:0:2"].map(|a| a.parse().unwrap());
        assert_eq!(host_of(one), host_of(other));
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(host_of(mapped), IpAddr::from([10, 0, 0, 1]));
    }
}
