//! Which receivers a webhook may have: the whole table, by look-ups of the test's own.

use super::*;
use crate::error::{Code, Error};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

const NONE: WebhookAccess = WebhookAccess {
    private_networks: false,
    development: false,
    listening: None,
};
pub(super) const PRODUCTION: Policy = Policy::Webhook(NONE);
pub(super) const PRIVATE: Policy = Policy::Webhook(WebhookAccess {
    private_networks: true,
    ..NONE
});
pub(super) const DEVELOPMENT: Policy = Policy::Webhook(WebhookAccess {
    development: true,
    ..NONE
});

/// The refused networks, and those that the setting opens.
const NETWORKS: [&str; 31] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "4000::/2",
];
const OPENED: [&str; 5] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
];
const METADATA: [&str; 9] = [
    "169.254.0.0/16",
    "fe80::/10",
    "192.0.0.192/32",
    "100.100.100.200/32",
    "fd00:ec2::/32",
    "fd20:ce::254/128",
    "fd00:42::42/128",
    "fd00:c1::a9fe:a9fe/128",
    "168.63.129.16/32",
];

/// The first and the last address of a network.
fn ends(network: &str) -> [IpAddr; 2] {
    let (base, length) = network.split_once('/').unwrap();
    let length: u32 = length.parse().unwrap();
    match base.parse().unwrap() {
        IpAddr::V4(base) => {
            let rest = u32::MAX.checked_shr(length).unwrap_or(0);
            [base, Ipv4Addr::from(u32::from(base) | rest)].map(IpAddr::V4)
        }
        IpAddr::V6(base) => {
            let rest = u128::MAX.checked_shr(length).unwrap_or(0);
            [base, Ipv6Addr::from(u128::from(base) | rest)].map(IpAddr::V6)
        }
    }
}

fn inside(network: &str, address: IpAddr) -> bool {
    let [first, last] = ends(network);
    first.is_ipv4() == address.is_ipv4() && (first..=last).contains(&address)
}

fn url(host: IpAddr) -> String {
    match host {
        IpAddr::V4(v4) => format!("https://{v4}/"),
        IpAddr::V6(v6) => format!("https://[{v6}]/"),
    }
}

/// What the policy says of a URL: nothing, or the failure.
fn checked(policy: Policy, url: &str) -> Result<(), Failure> {
    static OUTBOUND: LazyLock<Outbound> = LazyLock::new(outbound);
    match OUTBOUND.inspect(policy, url, ms(30_000))?.verdict {
        Verdict::Allowed => Ok(()),
        Verdict::Refused(failure) | Verdict::Unresolved(failure) => Err(failure),
    }
}

#[track_caller]
fn refused(policy: Policy, url: &str) -> Refusal {
    let failure = checked(policy, url).expect_err(url);
    assert_eq!(failure.kind(), Kind::Refused, "{url}: {failure}");
    failure.rule().unwrap()
}

#[test]
fn every_network_of_the_table_is_refused_and_five_can_be_opened() {
    for network in NETWORKS {
        for address in ends(network) {
            let rule = refused(PRODUCTION, &url(address));
            assert_eq!(rule.address, Some(address));
            assert!(matches!(rule.rule, Rule::Network(_)), "{rule:?}");
            let opened = checked(PRIVATE, &url(address)).is_ok();
            assert_eq!(opened, OPENED.contains(&network), "{address}");
            let metadata = METADATA.iter().any(|network| inside(network, address));
            let carried = ["64:ff9b", "2002:", "2001:"];
            let in_development = checked(DEVELOPMENT, &url(address)).is_err();
            assert!(
                in_development == metadata
                    || carried.iter().any(|p| address.to_string().starts_with(p)),
                "{address}"
            );
        }
    }
}

#[test]
fn what_borders_a_refused_network_is_public() {
    for text in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.114.0",
        "223.255.255.255",
        "168.63.129.15",
        "2001:200::",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::",
        "2000::1",
        "3ffe:ffff::",
        "::ffff:8.8.8.8",
    ] {
        checked(PRODUCTION, &url(text.parse().unwrap())).unwrap();
    }
}

#[test]
fn metadata_addresses_are_refused_in_every_mode() {
    for network in METADATA {
        for address in ends(network) {
            for policy in [PRODUCTION, PRIVATE, DEVELOPMENT] {
                let rule = refused(policy, &url(address));
                assert_eq!(rule.address, Some(address));
                if let IpAddr::V4(v4) = address {
                    let mapped = IpAddr::V6(v4.to_ipv6_mapped());
                    assert_eq!(refused(policy, &url(mapped)).rule, rule.rule);
                    let nat64 = format!("https://[64:ff9b::{v4}]/");
                    assert!(checked(policy, &nat64).is_err(), "{nat64}");
                }
            }
        }
    }
    for name in [
        "metadata",
        "METADATA.",
        "metadata.google.internal.",
        "instance-data",
    ] {
        for policy in [PRODUCTION, PRIVATE, DEVELOPMENT] {
            let rule = refused(policy, &format!("https://{name}/"));
            assert!(matches!(rule.rule, Rule::Name(_)), "{rule:?}");
            assert_eq!(rule.address, None);
        }
    }
}

#[test]
fn every_spelling_of_loopback_is_loopback() {
    for host in [
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "127.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
    ] {
        for policy in [PRODUCTION, PRIVATE] {
            let rule = refused(policy, &format!("https://{host}/"));
            assert_eq!(rule.rule, Rule::Network("127.0.0.0/8"), "{host}");
            assert_eq!(rule.address, Some(IpAddr::from([127, 0, 0, 1])), "{host}");
        }
    }
    let folded = refused(PRODUCTION, "https:127.0.0.1");
    assert_eq!(folded.rule, Rule::Network("127.0.0.0/8"));
    assert_eq!(refused(PRODUCTION, "http:127.0.0.1").rule, Rule::HttpsOnly);
    for (host, network) in [
        ("[::ffff:127.0.0.1]", "127.0.0.0/8"),
        ("[::127.0.0.1]", "::/96"),
        ("[::7f00:1]", "::/96"),
        ("[::ffff:0:7f00:1]", "::ffff:0:0:0/96"),
        ("[2001::1]", "2001::/32"),
        ("[fec0::1]", "fec0::/10"),
        ("[64:ff9b:1::1]", "64:ff9b:1::/48"),
        ("[::1]", "::1/128"),
        ("[2a00::5efe:127.0.0.1]", "127.0.0.0/8"),
        ("[2a00::5efe:10.0.0.1]", "10.0.0.0/8"),
    ] {
        let rule = refused(PRODUCTION, &format!("https://{host}/"));
        assert_eq!(rule.rule, Rule::Network(network), "{host}");
    }
    for name in ["localhost", "LOCALHOST.", "a.localhost", "a.localhost."] {
        for policy in [PRODUCTION, PRIVATE] {
            let rule = refused(policy, &format!("https://{name}/"));
            assert_eq!(rule.rule, Rule::Name("localhost"));
        }
        checked(DEVELOPMENT, "http://localhost:9/").unwrap();
    }
}

#[test]
fn the_form_of_a_url_is_checked_in_every_mode() {
    let outbound = outbound();
    for policy in [PRODUCTION, PRIVATE, DEVELOPMENT] {
        for (url, rule) in [
            ("https://1.1.1.1@127.0.0.1/", Rule::UserInfo),
            ("https://:pw@example.com/", Rule::UserInfo),
            ("https://example.com/#", Rule::Fragment),
            ("https://example.com/#part", Rule::Fragment),
            ("ftp://example.com/", Rule::Scheme),
            ("file:///etc/passwd", Rule::Scheme),
            ("data:text/plain,x", Rule::Scheme),
        ] {
            let failure = outbound.inspect(policy, url, ms(30_000)).unwrap_err();
            assert_eq!(
                failure.rule(),
                Some(Refusal {
                    rule,
                    address: None
                }),
                "{url}"
            );
            assert!(!failure.message().contains("pw"));
        }
        for text in [
            "",
            "example.com",
            "https://",
            "https://a b/",
            "https://[::1",
            "//x",
        ] {
            let failure = outbound.inspect(policy, text, ms(30_000)).unwrap_err();
            assert_eq!(
                (failure.kind(), failure.rule()),
                (Kind::Invalid, None),
                "{text}"
            );
        }
    }
    for policy in [PRODUCTION, PRIVATE] {
        let rule = refused(policy, "http://10.0.0.1/");
        assert_eq!(
            rule,
            Refusal {
                rule: Rule::HttpsOnly,
                address: None
            }
        );
    }
    checked(DEVELOPMENT, "http://10.0.0.1/").unwrap();
}

#[test]
fn what_is_taken_is_normalised() {
    let outbound = with_names(&[("example.com", "8.8.8.8")]);
    for (text, stored) in [
        ("https://exa\tmple.com", "https://example.com/"),
        ("https:///example.com", "https://example.com/"),
        (
            "HTTPS://EXAMPLE.com:443/a b?c",
            "https://example.com/a%20b?c",
        ),
    ] {
        let inspection = outbound.inspect(PRODUCTION, text, ms(30_000)).unwrap();
        assert_eq!(inspection.url.as_str(), stored);
        assert_eq!(inspection.verdict, Verdict::Allowed);
        assert_eq!(inspection.addresses, ["8.8.8.8".parse::<IpAddr>().unwrap()]);
    }
}

#[test]
fn a_name_is_checked_whole() {
    let outbound = with_names(&[
        ("mixed.test", "8.8.8.8"),
        ("mixed.test", "fd12::1"),
        ("alias-of-private.test", "10.1.2.3"),
        ("alias-of-metadata.test", "169.254.169.254"),
        ("cgnat.test", "100.100.100.200"),
    ]);
    let inspect = |policy, name: &str| {
        let url = format!("https://{name}/hook");
        outbound.inspect(policy, &url, ms(30_000)).unwrap()
    };
    let refusal = |inspection: &Inspection| match &inspection.verdict {
        Verdict::Refused(failure) => (failure.rule().unwrap(), failure.message().to_owned()),
        other => panic!("{other:?}"),
    };
    let mixed = inspect(PRODUCTION, "mixed.test");
    assert_eq!(mixed.addresses.len(), 2);
    let (rule, message) = refusal(&mixed);
    assert_eq!(rule.rule, Rule::Network("fc00::/7"));
    assert_eq!(
        message,
        "The host mixed.test has the address fd12::1, which is a private address (fc00::/7). \
         Private network addresses are not allowed. The operator can open them, over https only, \
         with SVC_WEBHOOK_PRIVATE_NETWORKS=allow."
    );
    assert_eq!(inspect(PRIVATE, "mixed.test").verdict, Verdict::Allowed);
    let (rule, _) = refusal(&inspect(PRODUCTION, "alias-of-private.test"));
    assert_eq!(rule.address, Some(IpAddr::from([10, 1, 2, 3])));
    for name in ["alias-of-metadata.test", "cgnat.test"] {
        for policy in [PRODUCTION, PRIVATE, DEVELOPMENT] {
            let (_, message) = refusal(&inspect(policy, name));
            assert!(!message.contains("SVC_WEBHOOK"), "{message}");
            assert!(message.contains("metadata"), "{message}");
        }
    }
}

#[test]
fn a_name_that_does_not_resolve_is_said_to_be_unresolved() {
    let unresolved = |outbound: &Outbound, url: &str, total: Duration| {
        let inspection = outbound.inspect(PRODUCTION, url, total).unwrap();
        assert!(inspection.addresses.is_empty());
        match inspection.verdict {
            Verdict::Unresolved(failure) => failure,
            other => panic!("{other:?}"),
        }
    };
    let failure = unresolved(&with_names(&[]), "https://nowhere.test/", ms(30_000));
    assert_eq!(failure.kind(), Kind::Resolve);
    let (release, blocked) = crossbeam_channel::bounded::<()>(0);
    let slow = Outbound::new(Options {
        lookup: Some(Arc::new(move |_: &str| {
            let _ = blocked.recv();
            Ok(vec![IpAddr::from([8, 8, 8, 8])])
        })),
        ..Options::default()
    });
    let failure = unresolved(&slow.unwrap(), "https://slow.test/", ms(60));
    assert_eq!(failure.kind(), Kind::Timeout(Phase::Resolve));
    assert!(failure.message().contains("slow.test does not resolve"));
    drop(release);
}

#[test]
fn the_servers_own_listening_addresses_are_refused() {
    let own = |listening: &str, access: WebhookAccess| {
        Policy::Webhook(WebhookAccess {
            listening: Some(listening.parse().unwrap()),
            ..access
        })
    };
    let development = WebhookAccess {
        development: true,
        ..NONE
    };
    for listening in ["[::]:4000", "0.0.0.0:4000", "127.0.0.1:4000"] {
        let policy = own(listening, development);
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"] {
            let rule = refused(policy, &format!("http://{host}:4000/v1/runs"));
            assert_eq!(rule.rule, Rule::OwnAddress, "{listening} {host}");
            checked(policy, &format!("http://{host}:4001/v1/runs")).unwrap();
        }
        checked(policy, "http://192.0.2.77:4000/").unwrap();
    }
    checked(own("127.0.0.1:4000", development), "http://127.0.0.2:4000/").unwrap();
    // A port that the URL does not write counts too.
    let policy = own("8.8.8.8:443", NONE);
    assert_eq!(refused(policy, "https://8.8.8.8/").rule, Rule::OwnAddress);
    checked(policy, "https://8.8.4.4/").unwrap();
    // Behind an alias loopback is another machine's.
    let aliased = Outbound::new(Options {
        host_alias: Some("203.0.113.9".to_owned()),
        ..Options::default()
    });
    let policy = own("[::]:4000", development);
    let inspection = aliased
        .unwrap()
        .inspect(policy, "http://localhost:4000/", ms(30_000));
    assert_eq!(inspection.unwrap().verdict, Verdict::Allowed);
}

#[test]
fn a_refusal_is_an_answer_with_rule_and_address() {
    let error = Error::from(checked(PRODUCTION, "https://10.1.2.3/").unwrap_err());
    assert_eq!(error.code(), Code::WebhookUrlRefused);
    assert_eq!(error.details()["rule"], "10.0.0.0/8");
    assert_eq!(error.details()["address"], "10.1.2.3");
    let error = outbound().check_url(PRODUCTION, "http://example.com/");
    let error = error.unwrap_err();
    assert_eq!(error.code(), Code::WebhookUrlRefused);
    assert_eq!(error.details()["rule"], "https-only");
    assert!(!error.details().contains_key("address"));
    let rules = [
        (Rule::Scheme, "scheme"),
        (Rule::UserInfo, "userinfo"),
        (Rule::Fragment, "fragment"),
        (Rule::OwnAddress, "own-address"),
        (Rule::OperatorEndpoint, "operator-endpoint"),
        (Rule::Name("localhost"), "localhost"),
    ];
    for (rule, text) in rules {
        assert_eq!(rule.to_string(), text);
    }
    // Other policies keep their own code.
    let error = outbound().check_url(DEPLOYED, "http://127.0.0.1/");
    assert_eq!(error.unwrap_err().code(), Code::HostAccessDenied);
}

#[test]
fn every_refusal_is_a_sentence() {
    for host in [
        "10.0.0.1",
        "127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "192.0.2.1",
        "224.0.0.1",
        "[64:ff9b::1]",
        "[::ffff:10.0.0.1]",
        "localhost",
        "metadata",
    ] {
        let failure = checked(PRODUCTION, &format!("https://{host}/")).unwrap_err();
        let message = failure.message();
        assert!(
            message.starts_with("The ") && message.ends_with('.'),
            "{message}"
        );
        let opens = matches!(host, "10.0.0.1" | "[::ffff:10.0.0.1]");
        assert_eq!(
            message.contains("SVC_WEBHOOK_PRIVATE_NETWORKS=allow"),
            opens
        );
        let here = matches!(host, "127.0.0.1" | "0.0.0.0" | "localhost");
        assert_eq!(message.contains("SVC_DEV"), here, "{message}");
    }
}

proptest! {
    #[test]
    fn an_ipv4_address_is_refused_exactly_inside_the_table(bits: u32) {
        let address = IpAddr::V4(Ipv4Addr::from(bits));
        let listed = NETWORKS.iter().chain(&METADATA).any(|network| inside(network, address));
        let parsed = Url::parse(&url(address)).unwrap();
        prop_assert_eq!(policy::check_url(PRODUCTION, &parsed, &[]).is_err(), listed);
    }

    #[test]
    fn an_ipv6_address_outside_the_public_block_is_refused(bits: u128) {
        let address = Ipv6Addr::from(bits);
        prop_assume!(address.to_ipv4_mapped().is_none() && bits >> 125 != 1);
        let parsed = Url::parse(&url(IpAddr::V6(address))).unwrap();
        prop_assert!(policy::check_url(PRODUCTION, &parsed, &[]).is_err());
    }
}
