//! Which hosts are reached, by who chose them: loopback, the host's own addresses, the alias.

use super::*;
use std::net::Ipv4Addr;
use std::process::Command;

#[test]
fn a_tenant_reaches_loopback_in_local_mode_only() {
    let server = Server::answering(HELLO);
    let local = Policy::Tenant(HostAccess::Local);
    post(&mut outbound().client(local, timeouts()), &server.url()).unwrap();
    let refused = post(&mut outbound().client(DEPLOYED, timeouts()), &server.url());
    fails(refused, Kind::Refused);
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_tenant_reaches_loopback_at_the_origins_that_the_operator_opened() {
    let server = Server::answering(HELLO);
    let port = server.address.port();
    let opening = |origin: String| {
        Outbound::new(Options {
            host_access_origins: vec![Origin::parse(&origin).unwrap()],
            ..Options::default()
        })
    };
    let outbound = opening(format!("http://127.0.0.1:{port}")).unwrap();
    let mut client = outbound.client(DEPLOYED, timeouts());
    post(&mut client, &server.url()).unwrap();
    let other = fails(
        post(&mut client, &format!("http://localhost:{port}/")),
        Kind::Refused,
    );
    assert!(other.contains("SVC_HOST_ACCESS_ORIGINS"), "{other}");
    // Receivers of webhooks have rules of their own.
    let receiver = outbound.check_url(receivers::PRODUCTION, "https://127.0.0.1/");
    receiver.unwrap_err();
    let Err(refused) = opening("http://169.254.169.254".to_owned()) else {
        panic!("the origin of a metadata service was taken");
    };
    let message = refused.message();
    assert!(message.contains("SVC_HOST_ACCESS_ORIGINS"), "{message}");
    assert_eq!(server.accepted(), 1);
}

/// The test runs itself once more in a network namespace whose host has a private address.
#[test]
fn a_tenant_reaches_the_hosts_own_private_address() {
    const OWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)), 0);
    if TcpListener::bind(OWN).is_ok() {
        let server = Server::at(OWN, |mut connection| {
            read_request(&mut connection);
            let _ = connection.write_all(HELLO.as_bytes());
        });
        post(&mut outbound().client(DEPLOYED, timeouts()), &server.url()).unwrap();
        assert_eq!(server.accepted(), 1);
        return;
    }
    let script = "ip link set lo up && ip address add 10.77.0.1/24 dev lo \
        && exec \"$0\" --exact --nocapture \"$1\"";
    let name = "outbound::tests::hosts::a_tenant_reaches_the_hosts_own_private_address";
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

#[test]
fn an_alias_takes_the_place_of_loopback_that_a_tenant_chose() {
    let server = Server::answering(HELLO);
    let port = server.address.port();
    let outbound = Outbound::new(Options {
        host_alias: Some("host.alias".to_owned()),
        lookup: Some(Arc::new(|name: &str| match name {
            "host.alias" => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
            // An address of this test's own where nobody listens.
            "loop.test" => Ok(vec![IpAddr::from([127, 9, 9, 9])]),
            _ => Err(std::io::Error::other("asked for another name")),
        })),
        ..Options::default()
    })
    .unwrap();
    let local = Policy::Tenant(HostAccess::Local);
    let mut client = outbound.client(local, timeouts());
    for host in [
        "127.9.9.9",
        "localhost",
        "app.localhost",
        "[::1]",
        "loop.test",
    ] {
        post(&mut client, &format!("http://{host}:{port}/")).unwrap();
    }
    assert_eq!(server.accepted(), 5);
    // Not of what the operator configured.
    let mut client = outbound.client(Policy::Operator, timeouts());
    let refused = post(&mut client, &format!("http://127.9.9.9:{port}/"));
    fails(refused, Kind::ConnectRefused);
    let unknown = post(&mut client, &format!("http://app.localhost:{port}/"));
    fails(unknown, Kind::Resolve);
    post(&mut client, &format!("http://host.alias:{port}/")).unwrap();
    assert_eq!(server.accepted(), 6);
    for alias in ["a b", "host:80", ""] {
        let options = Options {
            host_alias: Some(alias.to_owned()),
            ..Options::default()
        };
        assert!(Outbound::new(options).is_err(), "{alias}");
    }
}

/// The way out of a server whose authorization server is there, and what other names are.
fn beside(authorization_server: &str) -> Outbound {
    let lookup = |name: &str| {
        let address = match name {
            "fga.test" | "fga.test." | "alias.test" => "10.9.8.7",
            "mapped.test" => "::ffff:10.9.8.7",
            "translated.test" => "64:ff9b::a09:807",
            "other.test" => "10.9.8.8",
            "public.test" | "shared.test" => "8.8.8.8",
            "both.test" => return Ok(["8.8.8.8", "10.9.8.7"].map(|a| a.parse().unwrap()).into()),
            _ => return Err(std::io::Error::other("no such name")),
        };
        Ok(vec![address.parse().unwrap()])
    };
    Outbound::new(Options {
        operator_endpoints: vec![OperatorEndpoint::authorization_server(authorization_server)],
        lookup: Some(Arc::new(lookup)),
        ..Options::default()
    })
    .unwrap()
}

const LOCAL: Policy = Policy::Tenant(HostAccess::Local);

#[track_caller]
fn verdict(outbound: &Outbound, policy: Policy, url: &str) -> Verdict {
    outbound.inspect(policy, url, ms(30_000)).unwrap().verdict
}

#[track_caller]
fn check_is_fga(outbound: &Outbound, policy: Policy, url: &str) {
    let Verdict::Refused(failure) = verdict(outbound, policy, url) else {
        panic!("{policy:?} reaches {url}");
    };
    assert!(failure.message().contains("SVC_AUTHZ_API_URL"), "{failure}");
    let rule = failure.rule().map(|refusal| refusal.rule);
    let is_webhook = matches!(policy, Policy::Webhook(_));
    assert_eq!(rule, is_webhook.then_some(Rule::OperatorEndpoint), "{url}");
    let sent = post(&mut outbound.client(policy, timeouts()), url);
    assert_eq!(fails(sent, Kind::Refused), failure.message());
}

#[test]
fn no_tenant_reaches_the_authorization_server_by_any_name_or_address_of_it() {
    let outbound = beside("http://fga.test:8080/base");
    for policy in [DEPLOYED, LOCAL, receivers::DEVELOPMENT] {
        for url in [
            "http://fga.test:8080/stores",
            "https://FGA.test.:8080/",
            "http://10.9.8.7:8080/",
            "http://[::ffff:10.9.8.7]:8080/",
            "http://alias.test:8080/",
            "http://mapped.test:8080/",
            "http://translated.test:8080/",
            "http://both.test:8080/",
        ] {
            check_is_fga(&outbound, policy, url);
        }
        for url in [
            "http://fga.test:8081/",
            "http://10.9.8.7/",
            "http://other.test:8080/",
            "http://10.9.8.8:8080/",
            "http://public.test:8080/",
        ] {
            assert_eq!(verdict(&outbound, policy, url), Verdict::Allowed, "{url}");
        }
    }
    let operator = verdict(&outbound, Policy::Operator, "http://fga.test:8080/stores");
    assert_eq!(operator, Verdict::Allowed);
    // When it is stored, too, where nothing is looked up.
    for url in ["http://fga.test:8080/stores", "http://fga.test.:8080/"] {
        let error = outbound.check_url(DEPLOYED, url).unwrap_err();
        assert_eq!(error.code(), crate::error::Code::HostAccessDenied);
    }
    let outbound = beside("http://10.9.8.7:8080");
    for url in ["http://10.9.8.7:8080/", "http://[::ffff:10.9.8.7]:8080/"] {
        outbound.check_url(DEPLOYED, url).unwrap_err();
        check_is_fga(&outbound, DEPLOYED, url);
    }
    check_is_fga(&outbound, DEPLOYED, "http://alias.test:8080/");
}

#[test]
fn an_authorization_server_on_this_host_is_refused_at_each_address_of_the_host() {
    let server = Server::answering(HELLO);
    let port = server.address.port();
    let outbound = beside(&format!("http://127.0.0.1:{port}"));
    for host in ["127.0.0.1", "127.0.0.2", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        check_is_fga(&outbound, LOCAL, &format!("http://{host}:{port}/"));
    }
    assert_eq!(server.accepted(), 0);
    let mut client = outbound.client(Policy::Operator, timeouts());
    post(&mut client, &server.url()).unwrap();
}

#[test]
fn a_public_authorization_server_is_refused_by_its_name_alone() {
    let outbound = beside("http://public.test:8080");
    check_is_fga(&outbound, DEPLOYED, "http://public.test:8080/");
    // Its address may be that of many servers.
    let shared = verdict(&outbound, DEPLOYED, "http://shared.test:8080/");
    assert_eq!(shared, Verdict::Allowed);
}

#[test]
fn while_nobody_knows_where_the_authorization_server_is_private_addresses_at_its_port_wait() {
    let outbound = beside("http://gone.test:8080");
    let mut client = outbound.client(DEPLOYED, timeouts());
    let message = fails(post(&mut client, "http://other.test:8080/"), Kind::Busy);
    assert!(message.contains("gone.test does not resolve"), "{message}");
    let Verdict::Unresolved(_) = verdict(&outbound, DEPLOYED, "http://10.9.8.8:8080/") else {
        panic!("it was judged");
    };
    for url in ["http://other.test:8081/", "http://shared.test:8080/"] {
        assert_eq!(verdict(&outbound, DEPLOYED, url), Verdict::Allowed, "{url}");
    }
}

#[test]
fn the_operator_cannot_open_its_authorization_server_to_tenants() {
    let opened = Outbound::new(Options {
        host_access_origins: vec![Origin::parse("http://127.0.0.1:8080").unwrap()],
        operator_endpoints: vec![
            OperatorEndpoint::collector("http://127.0.0.1:4318"),
            OperatorEndpoint::authorization_server("http://127.0.0.1:8080/"),
        ],
        ..Options::default()
    });
    let Err(refused) = opened else {
        panic!("it was opened");
    };
    for part in ["SVC_HOST_ACCESS_ORIGINS", "SVC_AUTHZ_API_URL"] {
        assert!(refused.message().contains(part), "{}", refused.message());
    }
}
