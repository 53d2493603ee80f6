//! The forward proxy: a real one on loopback, which tunnels and forwards.

use super::tls::{certificate, tls_server_at};
use super::*;
use crate::secret::Secret;

/// A proxy that wants these credentials, and takes every name for this host. It remembers the heads that it got.
struct Proxy {
    server: Server,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(wanted: Option<&'static str>) -> Self {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&heads);
        let server = Server::start(move |mut client| {
            let head = read_request(&mut client);
            seen.lock().unwrap().push(head.clone());
            let lower = head.to_ascii_lowercase();
            let authorization = lower.split("proxy-authorization: ").nth(1);
            let authorization = authorization.and_then(|rest| rest.lines().next());
            if authorization.map(str::to_owned) != wanted.map(str::to_ascii_lowercase) {
                let refusal = "HTTP/1.1 407 Authenticate\r\ncontent-length: 0\r\n\r\n";
                return client.write_all(refusal.as_bytes()).unwrap();
            }
            let (method, rest) = head.split_once(' ').unwrap();
            let (target, rest) = rest.split_once(' ').unwrap();
            let (authority, path) = match target.strip_prefix("http://") {
                Some(absolute) => absolute.split_once('/').unwrap(),
                None => (target, ""),
            };
            let port: u16 = authority.rsplit_once(':').unwrap().1.parse().unwrap();
            let mut there = TcpStream::connect(("127.0.0.1", port)).unwrap();
            if method == "CONNECT" {
                client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
            } else {
                let request = format!("{method} /{path} {rest}");
                there.write_all(request.as_bytes()).unwrap();
            }
            let (mut from, mut to) = (client.try_clone().unwrap(), there.try_clone().unwrap());
            // Both ends close when the client's connection does.
            std::thread::Builder::new()
                .name("test-proxy".to_owned())
                .spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                })
                .unwrap();
            let _ = std::io::copy(&mut there, &mut client);
        });
        Self { server, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// A way out with that proxy, in which no name resolves.
fn through(
    proxy: SocketAddr,
    origins: &[&str],
    credentials: Option<&str>,
    roots: &str,
) -> Outbound {
    let lookup = |_: &str| Err(std::io::Error::other("no such name"));
    Outbound::new(Options {
        forward_proxy: Some(ForwardProxy {
            origin: Origin::parse(&format!("http://{proxy}")).unwrap(),
            origins: origins.iter().map(|o| Origin::parse(o).unwrap()).collect(),
            credentials: credentials.map(Secret::new),
        }),
        extra_roots_pem: roots.as_bytes().to_vec(),
        lookup: Some(Arc::new(lookup)),
        ..Options::default()
    })
    .unwrap()
}

#[test]
fn a_listed_origin_is_reached_through_a_tunnel_with_its_tls_inside() {
    let (key, cert) = certificate();
    let (server, names) = tls_server_at("127.0.0.1", &key, &cert);
    let origin = format!("https://api.test:{}", server.address.port());
    let proxy = Proxy::start(Some("Basic dXNlcjpwYXNzOndvcmQ="));
    let credentials = Some("user:pass:word");
    let outbound = through(proxy.server.address, &[&origin], credentials, &cert);
    let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
    for _ in 0..2 {
        let answer = post(&mut client, &format!("{origin}/v1")).unwrap();
        assert_eq!(answer.body, b"hello");
    }
    assert_eq!(*names.lock().unwrap(), ["api.test", "api.test"]);
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1, "the tunnel is kept: {heads:?}");
    let port = server.address.port();
    assert!(heads[0].starts_with(&format!("CONNECT api.test:{port} HTTP/1.1\r\n")));
    drop(client);
    // The TLS inside is checked as ever.
    let strict = through(proxy.server.address, &[&origin], credentials, "");
    let mut client = strict.client_through_proxy(DEPLOYED, timeouts());
    let message = fails(post(&mut client, &origin), Kind::Tls);
    assert!(
        message.contains("api.test, through the forward proxy"),
        "{message}"
    );
}

#[test]
fn a_listed_origin_without_tls_is_asked_for_by_its_whole_url() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let sees = Arc::clone(&seen);
    let server = Server::start(move |mut connection| {
        while let request = read_request(&mut connection)
            && !request.is_empty()
        {
            sees.lock().unwrap().push(request);
            connection.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    let origin = format!("http://model.test:{}", server.address.port());
    let proxy = Proxy::start(Some("Basic dTpw"));
    let outbound = through(proxy.server.address, &[&origin], Some("u:p"), "");
    let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
    for _ in 0..2 {
        let answer = post(&mut client, &format!("{origin}/v1?q=1")).unwrap();
        assert_eq!(answer.body, b"hello");
    }
    let head = &proxy.heads()[0];
    assert!(
        head.starts_with(&format!("POST {origin}/v1?q=1 HTTP/1.1\r\n")),
        "{head}"
    );
    assert!(head.ends_with("\r\n\r\n{}"), "{head}");
    let host = format!("host: model.test:{}\r\n", server.address.port());
    assert!(head.to_ascii_lowercase().contains(&host), "{head}");
    // On the kept connection the second request has the same form.
    let requests = seen.lock().unwrap();
    assert!(
        requests[1].starts_with(&format!("POST {origin}/v1?q=1 ")),
        "{requests:?}"
    );
}

#[test]
fn what_is_not_listed_and_clients_that_are_not_made_for_it_do_not_touch_the_proxy() {
    let proxy = Proxy::start(None);
    let listed = "http://listed.test:9";
    let outbound = through(proxy.server.address, &[listed], None, "");
    for url in [
        "http://listed.test:8/",
        "https://listed.test:9/",
        "http://other.test:9/",
        "http://listed.test.:9/",
    ] {
        let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
        fails(post(&mut client, url), Kind::Resolve);
    }
    let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
    fails(post(&mut client, "http://127.0.0.1:9/"), Kind::Refused);
    for policy in [DEPLOYED, Policy::Operator, receivers::DEVELOPMENT] {
        let mut client = outbound.client(policy, timeouts());
        fails(post(&mut client, listed), Kind::Resolve);
    }
    assert_eq!(proxy.server.accepted(), 0);
}

#[test]
fn a_proxy_that_refuses_is_named_with_what_to_do() {
    let origins = ["http://model.test:9", "https://model.test:9"];
    for credentials in [None, Some("user:wrong-secret")] {
        let proxy = Proxy::start(Some("Basic other"));
        let outbound = through(proxy.server.address, &origins, credentials, "");
        let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
        for origin in origins {
            let message = fails(post(&mut client, origin), Kind::Proxy);
            for says in [
                "model.test:9",
                &proxy.server.address.to_string(),
                "407",
                "SVC_FORWARD_PROXY_CREDENTIALS",
            ] {
                assert!(message.contains(says), "{message}");
            }
            assert!(!message.contains("secret"), "{message}");
        }
    }
    for (answer, kind, says) in [
        (
            "HTTP/1.1 403 No\r\n\r\n",
            Kind::Proxy,
            "SVC_FORWARD_PROXY_ORIGINS",
        ),
        ("HTTP/1.1 502 No\r\n\r\n", Kind::Connect, "HTTP 502"),
        ("SSH-2.0-x\r\n\r\n", Kind::Proxy, "not HTTP/1.1"),
        ("", Kind::Connect, "closed the connection"),
    ] {
        let server = Server::answering(answer);
        let outbound = through(server.address, &origins, None, "");
        let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
        let message = fails(post(&mut client, origins[1]), kind);
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn a_proxy_that_is_away_or_hangs_is_named_and_costs_no_more_than_the_deadline() {
    let origins = ["http://model.test:9", "https://model.test:9"];
    let away = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = away.local_addr().unwrap();
    drop(away);
    for origin in origins {
        let outbound = through(address, &origins, None, "");
        let mut client = outbound.client_through_proxy(DEPLOYED, timeouts());
        let message = fails(post(&mut client, origin), Kind::ConnectRefused);
        let named = format!("the forward proxy http://{address} on the way to model.test");
        assert!(message.contains(&named), "{message}");
    }
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let outbound = through(silent.local_addr().unwrap(), &origins, None, "");
    let short = Timeouts {
        connect: ms(200),
        first_byte: ms(200),
        ..timeouts()
    };
    for (origin, phase) in [(origins[0], Phase::FirstByte), (origins[1], Phase::Connect)] {
        let mut client = outbound.client_through_proxy(DEPLOYED, short);
        let message = fails(post(&mut client, origin), Kind::Timeout(phase));
        assert!(message.contains("the forward proxy"), "{message}");
    }
    let unknown = Outbound::new(Options {
        forward_proxy: Some(ForwardProxy {
            origin: Origin::parse("http://nowhere.test:3128").unwrap(),
            origins: vec![Origin::parse(origins[0]).unwrap()],
            credentials: None,
        }),
        lookup: Some(Arc::new(|_: &str| {
            Err(std::io::Error::other("no such name"))
        })),
        ..Options::default()
    });
    let mut client = unknown.unwrap().client_through_proxy(DEPLOYED, timeouts());
    let message = fails(post(&mut client, origins[0]), Kind::Resolve);
    assert!(
        message.starts_with("The forward proxy http://nowhere.test:3128 "),
        "{message}"
    );
}
