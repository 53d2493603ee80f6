//! Attempts of webhooks over real sockets: what is refused is never connected to, and nothing lasts
//! longer than its deadline.

use super::receivers::{DEVELOPMENT, PRIVATE, PRODUCTION};
use super::tls::{certificate, tls_server_at};
use super::*;
use std::process::Command;

const LIMIT: usize = 16 * 1024;

/// An answer as an attempt keeps it.
struct Attempt {
    status: u16,
    body: Vec<u8>,
    address: Option<IpAddr>,
}

fn within(total: Duration) -> Timeouts {
    Timeouts {
        connect: total,
        first_byte: total,
        idle: None,
        total,
    }
}

/// One attempt with a client of its own.
fn attempt(
    outbound: &Outbound,
    policy: Policy,
    url: &str,
    total: Duration,
) -> Result<Attempt, Failure> {
    let stream = outbound.client(policy, within(total)).open(&Outgoing {
        method: Method::POST,
        url,
        headers: &[
            ("content-type", "application/json"),
            ("user-agent", "Svc-Webhooks/1"),
        ],
        body: b"{}",
        cap: u64::MAX,
    })?;
    let (status, address) = (stream.status, stream.address());
    let body = stream.excerpt(LIMIT, ms(10_000));
    Ok(Attempt {
        status,
        body,
        address,
    })
}

/// An outbound whose one name gets these addresses in turn, the last one for ever.
fn rebinding(turns: &'static [&'static str], extra_roots_pem: &str) -> Outbound {
    let asked = AtomicUsize::new(0);
    Outbound::new(Options {
        extra_roots_pem: extra_roots_pem.as_bytes().to_vec(),
        lookup: Some(Arc::new(move |_: &str| {
            let turn = asked.fetch_add(1, Ordering::SeqCst).min(turns.len() - 1);
            Ok(vec![turns[turn].parse().unwrap()])
        })),
        ..Options::default()
    })
    .unwrap()
}

#[test]
fn an_attempt_sends_its_own_user_agent_once() {
    let (send, seen) = crossbeam_channel::unbounded();
    let server = Server::start(move |mut connection| {
        send.send(read_request(&mut connection)).unwrap();
        let _ = connection.write_all(HELLO.as_bytes());
    });
    let answer = attempt(&outbound(), DEVELOPMENT, &server.url(), ms(30_000)).unwrap();
    assert_eq!((answer.status, &*answer.body), (200, &b"hello"[..]));
    assert_eq!(answer.address, Some(server.address.ip()));
    let text = seen.recv().unwrap().to_ascii_lowercase();
    assert_eq!(text.matches("user-agent:").count(), 1, "{text}");
    assert!(text.contains("user-agent: svc-webhooks/1\r\n"), "{text}");
}

#[test]
fn a_client_of_its_own_shares_the_roots_and_no_connection() {
    let outbound = outbound();
    let before = Arc::strong_count(&outbound.0.rustls);
    let client = outbound.client(DEVELOPMENT, timeouts());
    assert_eq!(Arc::strong_count(&outbound.0.rustls), before + 1);
    drop(client);
    let server = Server::start(|mut connection| {
        while !read_request(&mut connection).is_empty() {
            connection.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    for _ in 0..3 {
        attempt(&outbound, DEVELOPMENT, &server.url(), ms(30_000)).unwrap();
    }
    assert_eq!(server.accepted(), 3);
}

#[test]
fn a_long_answer_is_kept_to_its_beginning() {
    let long = "x".repeat(100_000);
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
    ] {
        let server = Server::answering(format!("{head}{long}"));
        let answer = attempt(&outbound(), DEVELOPMENT, &server.url(), ms(30_000)).unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, LIMIT));
    }
}

#[test]
fn an_answer_that_drips_or_never_ends_is_over_by_the_deadline() {
    // What is written again and again, and how long the server rests between.
    for (piece, rest) in [("a", ms(100)), ("aaaaaaaaaaaaaaaa", ms(0))] {
        let server = Server::start(move |mut connection| {
            read_request(&mut connection);
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
            connection.write_all(head.as_bytes()).unwrap();
            while connection.write_all(piece.as_bytes()).is_ok() {
                std::thread::park_timeout(rest);
            }
        });
        lasts_less_than(ms(1_400), || {
            let began = Instant::now();
            // A busy machine may not come to the head in time.
            let Ok(answer) = attempt(&outbound(), DEVELOPMENT, &server.url(), ms(400)) else {
                return Duration::MAX;
            };
            assert_eq!(answer.status, 200);
            assert!(answer.body.len() <= LIMIT, "{}", answer.body.len());
            match answer.body.len() {
                0 => Duration::MAX,
                _ => began.elapsed(),
            }
        });
    }
}

#[test]
fn a_head_that_drips_or_never_comes_ends_at_the_deadline_and_names_the_address() {
    for head in ["", "HTTP/1.1 200 OK\r\nx-drip: "] {
        let server = Server::start(move |mut connection| {
            read_request(&mut connection);
            let _ = connection.write_all(head.as_bytes());
            let drips = || !head.is_empty();
            while drips() && connection.write_all(b"a").is_ok() {
                std::thread::park_timeout(ms(50));
            }
            let _ = connection.read_to_end(&mut Vec::new());
        });
        lasts_less_than(ms(1_300), || {
            let began = Instant::now();
            let failure = attempt(&outbound(), DEVELOPMENT, &server.url(), ms(300))
                .err()
                .unwrap();
            let took = began.elapsed();
            assert!(took >= ms(300), "{took:?}");
            // A busy machine may not come to the request in time.
            if let Kind::Timeout(Phase::Connect | Phase::Send) = failure.kind() {
                return Duration::MAX;
            }
            assert_eq!(failure.kind(), Kind::Timeout(Phase::FirstByte), "{failure}");
            assert_eq!(failure.address(), Some(server.address.ip()));
            took
        });
    }
}

#[test]
fn nothing_listening_is_told_apart_and_names_the_address_tried() {
    let outbound = with_names(&[("two.test", "127.0.0.98"), ("two.test", "127.0.0.97")]);
    let failure = attempt(&outbound, DEVELOPMENT, "http://two.test:9/", ms(30_000))
        .err()
        .unwrap();
    assert_eq!(failure.kind(), Kind::ConnectRefused);
    assert!(failure.is_transient());
    assert!(
        failure
            .message()
            .contains(&failure.address().unwrap().to_string())
    );
    // An address that this host has no way to does not hide what another one said: multicast
    // takes no connection.
    let outbound = with_names(&[("two.test", "127.0.0.98"), ("two.test", "224.0.0.1")]);
    let mut client = outbound.client(Policy::Operator, within(ms(30_000)));
    let failure = post(&mut client, "http://two.test:9/").unwrap_err();
    assert_eq!(failure.kind(), Kind::ConnectRefused, "{failure}");
    assert_eq!(failure.address(), Some(IpAddr::from([127, 0, 0, 98])));
    let outbound = with_names(&[("one.test", "224.0.0.1")]);
    let mut client = outbound.client(Policy::Operator, within(ms(30_000)));
    let failure = post(&mut client, "http://one.test:9/").unwrap_err();
    assert_eq!(failure.kind(), Kind::Connect, "{failure}");
    assert_eq!(failure.address(), Some(IpAddr::from([224, 0, 0, 1])));
}

#[test]
fn a_broken_connection_names_its_address() {
    let server = Server::answering("");
    let failure = attempt(&outbound(), DEVELOPMENT, &server.url(), ms(30_000))
        .err()
        .unwrap();
    assert_eq!(failure.kind(), Kind::Reset);
    assert_eq!(failure.address(), Some(server.address.ip()));
}

#[test]
fn a_redirect_to_a_metadata_address_is_the_answer() {
    let target = Server::answering(HELLO);
    for location in [
        "http://169.254.169.254/latest/".to_owned(),
        target.url(),
        "/path?q=1".to_owned(),
    ] {
        let server = Server::answering(format!(
            "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        ));
        let answer = attempt(&outbound(), DEVELOPMENT, &server.url(), ms(30_000)).unwrap();
        assert_eq!(answer.status, 302);
        assert_eq!((server.accepted(), target.accepted()), (1, 0));
    }
}

/// What every host can show: loopback is refused outside development, at each attempt anew.
fn refused_loopback_is_not_connected() {
    let server = Server::answering(HELLO);
    let port = server.address.port();
    for url in [
        format!("https://127.0.0.1:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://rebound.test:{port}/"),
    ] {
        for policy in [PRODUCTION, PRIVATE] {
            let outbound = rebinding(&["127.0.0.1"], "");
            let failure = attempt(&outbound, policy, &url, ms(30_000)).err().unwrap();
            assert_eq!(failure.kind(), Kind::Refused, "{failure}");
        }
    }
    let outbound = rebinding(&["127.0.0.1", "169.254.169.254"], "");
    let url = format!("http://rebound.test:{port}/");
    attempt(&outbound, DEVELOPMENT, &url, ms(30_000)).unwrap();
    let failure = attempt(&outbound, DEVELOPMENT, &url, ms(30_000))
        .err()
        .unwrap();
    assert_eq!(
        failure.rule().unwrap().rule,
        Rule::Network("169.254.169.254/32")
    );
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_refused_loopback_address_is_never_connected_to() {
    refused_loopback_is_not_connected();
}

const PUBLIC: &str = "9.9.9.1";
const METADATA: &str = "169.254.169.254";
const PRIVATE_RECEIVER: &str = "10.1.2.3";
const ALWAYS_REFUSED: [&str; 4] = [
    "100.100.100.200",
    "168.63.129.16",
    "192.0.2.99",
    "198.18.0.1",
];

/// The test runs itself once more in a network namespace whose loopback has these addresses, so
/// that a connection to them would be seen and would leave for nowhere.
#[test]
fn refused_addresses_are_never_connected_to_in_a_namespace_that_has_them() {
    if TcpListener::bind((METADATA, 0)).is_ok() {
        return inside_the_namespace();
    }
    let mut script = "ip link set lo up".to_owned();
    for address in [PUBLIC, METADATA, PRIVATE_RECEIVER]
        .iter()
        .chain(&ALWAYS_REFUSED)
    {
        script.push_str(&format!(" && ip address add {address}/32 dev lo"));
    }
    script.push_str(" && echo ready && exec \"$0\" --exact --nocapture \"$1\"");
    let name = "outbound::tests::attempts::\
                refused_addresses_are_never_connected_to_in_a_namespace_that_has_them";
    let child = Command::new("unshare")
        .args(["--net", "--map-root-user", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .output();
    let text = match &child {
        Ok(output) => format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => error.to_string(),
    };
    if !text.contains("ready\n") {
        eprintln!("no network namespace here, so loopback has to do: {text}");
        return refused_loopback_is_not_connected();
    }
    assert!(
        child.unwrap().status.success() && text.contains("1 passed"),
        "{text}"
    );
}

fn inside_the_namespace() {
    let (key, cert) = certificate();
    let public = tls_server_at(PUBLIC, &key, &cert).0;
    let port = public.address.port();
    let url = format!("https://api.test:{port}/hook");
    let at = |address: &str| SocketAddr::new(address.parse().unwrap(), port);
    let metadata = Server::at(at(METADATA), |_| {});
    // The first attempt goes out; at the second one the name has moved.
    for (moved, rule) in [
        (METADATA, "169.254.169.254/32"),
        (PRIVATE_RECEIVER, "10.0.0.0/8"),
    ] {
        let turns: &'static [&'static str] = match moved {
            METADATA => &[PUBLIC, METADATA],
            _ => &[PUBLIC, PRIVATE_RECEIVER],
        };
        let outbound = rebinding(turns, &cert);
        let answer = attempt(&outbound, PRODUCTION, &url, ms(30_000)).unwrap();
        assert_eq!((answer.status, answer.address), (200, PUBLIC.parse().ok()));
        let failure = attempt(&outbound, PRODUCTION, &url, ms(30_000))
            .err()
            .unwrap();
        assert_eq!(failure.rule().unwrap().rule, Rule::Network(rule));
        assert_eq!(failure.address(), moved.parse().ok());
    }
    // Where the service listens on every interface, each of them is its own.
    let policy = Policy::Webhook(WebhookAccess {
        private_networks: false,
        development: false,
        listening: Some(SocketAddr::from(([0; 16], port))),
    });
    let failure = attempt(&rebinding(&[PUBLIC], &cert), policy, &url, ms(30_000));
    assert_eq!(
        failure.err().unwrap().rule().unwrap().rule,
        Rule::OwnAddress
    );
    assert_eq!((public.accepted(), metadata.accepted()), (2, 0));
    private_receivers(&key, &cert);
    for address in ALWAYS_REFUSED {
        let server = Server::at(at(address), |_| {});
        for policy in [PRODUCTION, PRIVATE] {
            let url = format!("https://{address}:{port}/");
            let failure = attempt(&outbound(), policy, &url, ms(30_000))
                .err()
                .unwrap();
            assert_eq!(failure.kind(), Kind::Refused, "{failure}");
        }
        assert_eq!(server.accepted(), 0, "{address}");
    }
    // A redirect leads nowhere.
    let redirects = Server::at(
        SocketAddr::from(([127, 0, 0, 1], 0)),
        move |mut connection| {
            read_request(&mut connection);
            let head = format!("HTTP/1.1 302 Found\r\nlocation: http://{METADATA}:{port}/\r\n");
            let _ = connection.write_all(format!("{head}content-length: 0\r\n\r\n").as_bytes());
        },
    );
    let answer = attempt(&outbound(), DEVELOPMENT, &redirects.url(), ms(30_000)).unwrap();
    assert_eq!((answer.status, metadata.accepted()), (302, 0));
}

/// A private receiver is reached over https once the setting opens it, and never over http.
fn private_receivers(key: &str, cert: &str) {
    let private = tls_server_at(PRIVATE_RECEIVER, key, cert).0;
    let port = private.address.port();
    let url = format!("https://api.test:{port}/hook");
    let closed = attempt(
        &rebinding(&[PRIVATE_RECEIVER], cert),
        PRODUCTION,
        &url,
        ms(30_000),
    );
    assert_eq!(closed.err().unwrap().kind(), Kind::Refused);
    let plain = format!("http://{PRIVATE_RECEIVER}:{port}/");
    let plain = attempt(&outbound(), PRIVATE, &plain, ms(30_000))
        .err()
        .unwrap();
    assert_eq!(plain.rule().unwrap().rule, Rule::HttpsOnly);
    assert_eq!(private.accepted(), 0);
    let outbound = rebinding(&[PRIVATE_RECEIVER], cert);
    let answer = attempt(&outbound, PRIVATE, &url, ms(30_000)).unwrap();
    assert_eq!((answer.status, private.accepted()), (200, 1));
}
