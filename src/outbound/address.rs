//! Classes of IP addresses: the one table that every address policy reads.
//!
//! Guarantees: each address has exactly one [`Class`], the most specific one. An IPv6 address that
//! embeds an IPv4 address also names that one, so that a policy can judge both. Sources: the IANA
//! special-purpose registries for IPv4 and IPv6, and the metadata addresses that the clouds
//! document.
//!
//! Not here: what a policy does with a class ([`super::policy`]).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A cloud's metadata service.
    Metadata,
    /// "This host": 0.0.0.0/8 and `::`, which the kernel maps to the host itself.
    Unspecified,
    /// The host's own loopback.
    Loopback,
    /// Link-local, where clouds keep their metadata services.
    LinkLocal,
    /// Private, carrier-grade NAT and unique local networks.
    Private,
    /// Multicast.
    Multicast,
    /// Documentation, benchmarking, protocol assignments, what is deprecated and what is not
    /// assigned.
    Reserved,
    /// An IPv6 address that stands for an IPv4 one (mapped, translated, tunnelled).
    Embedded,
    /// Everything else: the public internet.
    Public,
}

impl Class {
    /// The class in a sentence, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Metadata => "a cloud metadata address",
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Private => "a private address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
            Self::Embedded => "an address that embeds an IPv4 address",
            Self::Public => "a public address",
        }
    }
}

/// The class and the network of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classified {
    /// The class.
    pub class: Class,
    /// The network of the table that holds the address, in prefix notation.
    pub network: &'static str,
    /// The IPv4 addresses that an IPv6 address embeds; a tunnel embeds two.
    pub embedded: [Option<Ipv4Addr>; 2],
}

type Row4 = (u32, u32, Class, &'static str);
type Row6 = (u128, u32, Class, &'static str);

const fn row4(a: [u8; 4], bits: u32, class: Class, text: &'static str) -> Row4 {
    (u32::from_be_bytes(a), bits, class, text)
}

const fn row6(s: [u16; 8], bits: u32, class: Class, text: &'static str) -> Row6 {
    let mut value = 0_u128;
    let mut i = 0;
    while i < 8 {
        value = (value << 16) | s[i] as u128;
        i += 1;
    }
    (value, bits, class, text)
}

/// The first row that holds an address decides, so the most specific rows come first.
#[rustfmt::skip]
const TABLE4: [Row4; 19] = [
    row4([169, 254, 169, 254], 32, Class::Metadata, "169.254.169.254/32"),
    row4([169, 254, 170, 2], 32, Class::Metadata, "169.254.170.2/32"),
    row4([192, 0, 0, 192], 32, Class::Metadata, "192.0.0.192/32"),
    row4([100, 100, 100, 200], 32, Class::Metadata, "100.100.100.200/32"),
    row4([168, 63, 129, 16], 32, Class::Metadata, "168.63.129.16/32"),
    row4([0, 0, 0, 0], 8, Class::Unspecified, "0.0.0.0/8"),
    row4([127, 0, 0, 0], 8, Class::Loopback, "127.0.0.0/8"),
    row4([169, 254, 0, 0], 16, Class::LinkLocal, "169.254.0.0/16"),
    row4([10, 0, 0, 0], 8, Class::Private, "10.0.0.0/8"),
    row4([100, 64, 0, 0], 10, Class::Private, "100.64.0.0/10"),
    row4([172, 16, 0, 0], 12, Class::Private, "172.16.0.0/12"),
    row4([192, 168, 0, 0], 16, Class::Private, "192.168.0.0/16"),
    row4([192, 0, 0, 0], 24, Class::Reserved, "192.0.0.0/24"),
    row4([192, 0, 2, 0], 24, Class::Reserved, "192.0.2.0/24"),
    row4([192, 88, 99, 0], 24, Class::Reserved, "192.88.99.0/24"),
    row4([198, 18, 0, 0], 15, Class::Reserved, "198.18.0.0/15"),
    row4([198, 51, 100, 0], 24, Class::Reserved, "198.51.100.0/24"),
    row4([203, 0, 113, 0], 24, Class::Reserved, "203.0.113.0/24"),
    row4([224, 0, 0, 0], 4, Class::Multicast, "224.0.0.0/4"),
];

/// As [`TABLE4`]. An address in no row is public inside 2000::/3 and reserved outside it.
#[rustfmt::skip]
const TABLE6: [Row6; 23] = [
    row6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32, Class::Metadata, "fd00:ec2::/32"),
    row6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Class::Metadata, "fd20:ce::254/128"),
    row6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, Class::Metadata, "fd00:42::42/128"),
    row6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, Class::Metadata, "fd00:c1::a9fe:a9fe/128"),
    row6([0; 8], 128, Class::Unspecified, "::/128"),
    row6([0, 0, 0, 0, 0, 0, 0, 1], 128, Class::Loopback, "::1/128"),
    row6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Class::LinkLocal, "fe80::/10"),
    row6([0; 8], 96, Class::Embedded, "::/96"),
    row6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, Class::Embedded, "::ffff:0:0/96"),
    row6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Class::Embedded, "::ffff:0:0:0/96"),
    row6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Class::Embedded, "64:ff9b::/96"),
    row6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Class::Embedded, "64:ff9b:1::/48"),
    row6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Class::Embedded, "2001::/32"),
    row6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Class::Embedded, "2002::/16"),
    row6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, Class::Reserved, "100::/64"),
    row6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, Class::Reserved, "100:0:0:1::/64"),
    row6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Class::Reserved, "2001::/23"),
    row6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Class::Reserved, "2001:db8::/32"),
    row6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Class::Reserved, "3fff::/20"),
    row6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, Class::Reserved, "5f00::/16"),
    row6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Class::Private, "fc00::/7"),
    row6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Class::Reserved, "fec0::/10"),
    row6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Class::Multicast, "ff00::/8"),
];

/// Host names of metadata services or of the host itself, whatever they resolve to.
const METADATA_NAMES: [&str; 3] = ["metadata", "metadata.google.internal", "instance-data"];

/// Classifies an address.
pub fn classify(address: IpAddr) -> Classified {
    match address {
        IpAddr::V4(v4) => classify4(v4),
        IpAddr::V6(v6) => classify6(v6),
    }
}

fn classify4(address: Ipv4Addr) -> Classified {
    let bits = u32::from(address);
    let row = TABLE4
        .iter()
        .find(|(base, length, _, _)| (bits ^ base).leading_zeros() >= *length);
    let (class, network) = match row {
        Some((_, _, class, network)) => (*class, *network),
        None if bits >> 28 == 0xf => (Class::Reserved, "240.0.0.0/4"),
        None => (Class::Public, "0.0.0.0/0"),
    };
    Classified {
        class,
        network,
        embedded: [None; 2],
    }
}

fn classify6(address: Ipv6Addr) -> Classified {
    let bits = u128::from(address);
    let row = TABLE6
        .iter()
        .find(|(base, length, _, _)| (bits ^ base).leading_zeros() >= *length);
    let (class, network) = match row {
        Some((_, _, class, network)) => (*class, *network),
        None if bits >> 125 == 1 => (Class::Public, "2000::/3"),
        None => (Class::Reserved, "::/0"),
    };
    Classified {
        class,
        network,
        embedded: embedded(address, class, network),
    }
}

/// The IPv4 addresses inside an IPv6 one. RFC 4291 (mapped, compatible), 2765 (translated),
/// 6052 and 8215 (NAT64), 3056 (6to4), 4380 (Teredo), 5214 (ISATAP).
fn embedded(address: Ipv6Addr, class: Class, network: &str) -> [Option<Ipv4Addr>; 2] {
    let s = address.segments();
    let pair = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    let last = pair(s[6], s[7]);
    if class == Class::Embedded {
        return match network {
            "2002::/16" => [pair(s[1], s[2]), None],
            "2001::/32" => [pair(s[2], s[3]), pair(!s[6], !s[7])],
            // A local NAT64 prefix in this block may be /48, /56, /64 or /96. Extract the forms at
            // both ends of that range.
            "64:ff9b:1::/48" if s[3] != 0 => [pair(s[3], (s[4] << 8) | (s[5] >> 8)), last],
            _ => [last, None],
        };
    }
    if (s[4] & !0x0200) == 0 && s[5] == 0x5efe {
        return [last, None];
    }
    [None; 2]
}

/// The rule that a host name breaks by itself, before any look-up. A final dot is ignored.
pub fn known_name(name: &str) -> Option<(Class, &'static str)> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if let Some(known) = METADATA_NAMES.iter().find(|known| **known == name) {
        return Some((Class::Metadata, known));
    }
    let local = name == "localhost" || name.ends_with(".localhost");
    local.then_some((Class::Loopback, "localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(text: &str) -> Class {
        classify(text.parse().unwrap()).class
    }

    #[test]
    fn each_network_has_its_class() {
        for (text, expected) in [
            ("0.0.0.0", Class::Unspecified),
            ("0.1.2.3", Class::Unspecified),
            ("127.0.0.1", Class::Loopback),
            ("127.255.255.255", Class::Loopback),
            ("128.0.0.1", Class::Public),
            ("169.254.169.254", Class::Metadata),
            ("169.254.0.1", Class::LinkLocal),
            ("169.255.0.1", Class::Public),
            ("192.0.0.192", Class::Metadata),
            ("192.0.0.1", Class::Reserved),
            ("100.100.100.200", Class::Metadata),
            ("100.100.100.201", Class::Private),
            ("100.128.0.1", Class::Public),
            ("168.63.129.16", Class::Metadata),
            ("10.255.0.1", Class::Private),
            ("172.31.255.255", Class::Private),
            ("172.32.0.0", Class::Public),
            ("192.168.1.1", Class::Private),
            ("198.19.255.255", Class::Reserved),
            ("203.0.113.9", Class::Reserved),
            ("224.0.0.1", Class::Multicast),
            ("255.255.255.255", Class::Reserved),
            ("240.0.0.1", Class::Reserved),
            ("8.8.8.8", Class::Public),
            ("::", Class::Unspecified),
            ("::1", Class::Loopback),
            ("::2", Class::Embedded),
            ("::ffff:127.0.0.1", Class::Embedded),
            ("::ffff:0:7f00:1", Class::Embedded),
            ("64:ff9b::7f00:1", Class::Embedded),
            ("64:ff9b:1::1", Class::Embedded),
            ("2001::1", Class::Embedded),
            ("2001:1ff::1", Class::Reserved),
            ("2001:200::1", Class::Public),
            ("2001:db8::1", Class::Reserved),
            ("2002:7f00:1::", Class::Embedded),
            ("3fff::1", Class::Reserved),
            ("5f00::1", Class::Reserved),
            ("100::1", Class::Reserved),
            ("100:0:0:1::1", Class::Reserved),
            ("fe80::1", Class::LinkLocal),
            ("febf::1", Class::LinkLocal),
            ("fec0::1", Class::Reserved),
            ("fd00:ec2::254", Class::Metadata),
            ("fd20:ce::254", Class::Metadata),
            ("fd00:42::42", Class::Metadata),
            ("fd00:c1::a9fe:a9fe", Class::Metadata),
            ("fd00::1", Class::Private),
            ("ff02::1", Class::Multicast),
            ("2606:4700::1111", Class::Public),
            ("4000::1", Class::Reserved),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn what_an_address_carries_is_named() {
        let loopback = Some(Ipv4Addr::LOCALHOST);
        for text in [
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "2002:7f00:1::1",
            "2001:0:7f00:1::",
            "2001:0:808:808::80ff:fffe",
            "64:ff9b:1:7f00:0:100::",
            "64:ff9b:1::127.0.0.1",
            "2a00::5efe:127.0.0.1",
            "2a00::200:5efe:127.0.0.1",
            "fe80::5efe:127.0.0.1",
        ] {
            let classified = classify(text.parse().unwrap());
            assert!(
                classified.embedded.contains(&loopback),
                "{text}: {classified:?}"
            );
        }
        assert_eq!(classify("2a00::1".parse().unwrap()).embedded, [None; 2]);
    }

    #[test]
    fn known_names_are_known_in_any_spelling() {
        for name in ["localhost", "LOCALHOST.", "a.b.localhost", "a.localhost."] {
            assert_eq!(known_name(name).unwrap().0, Class::Loopback, "{name}");
        }
        for name in [
            "metadata",
            "metadata.",
            "Metadata.Google.Internal",
            "instance-data",
        ] {
            assert_eq!(known_name(name).unwrap().0, Class::Metadata, "{name}");
        }
        for name in [
            "localhost.example",
            "notlocalhost",
            "metadata.example",
            "example.com",
        ] {
            assert!(known_name(name).is_none(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_carries_the_address_itself(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let mapped = classify(IpAddr::V6(v4.to_ipv6_mapped()));
            prop_assert_eq!(mapped.embedded, [Some(v4), None]);
        }

        #[test]
        fn every_address_has_a_place(bits: u128) {
            classify(IpAddr::V6(Ipv6Addr::from(bits)));
        }
    }
}
