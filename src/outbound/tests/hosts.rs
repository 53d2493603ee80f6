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
