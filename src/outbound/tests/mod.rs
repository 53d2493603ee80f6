//! The way out against real sockets on loopback. The tests of `model` share its patience.

use super::*;
use crate::config::Origin;
use rustls_pki_types::{CertificateDer, pem::PemObject};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use url::Url;

mod attempts;
mod codings;
mod hosts;
mod proxy;
mod receivers;
mod tls;
mod waits;

const DEPLOYED: Policy = Policy::Tenant(HostAccess::Deployed);
/// Far from every deadline of these tests, and with room for a machine that is busy.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(500);
const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn timeouts() -> Timeouts {
    Timeouts {
        connect: ms(30_000),
        first_byte: ms(30_000),
        idle: None,
        total: ms(60_000),
    }
}

fn outbound() -> Outbound {
    Outbound::new(Options::default()).unwrap()
}

/// An outbound whose names resolve as the table says; others do not.
fn with_names(names: &'static [(&'static str, &'static str)]) -> Outbound {
    let lookup = move |name: &str| {
        let found = names.iter().filter(|(known, _)| *known == name);
        let found: Vec<IpAddr> = found.map(|(_, a)| a.parse().unwrap()).collect();
        if found.is_empty() {
            return Err(std::io::Error::other("no such name"));
        }
        Ok(found)
    };
    Outbound::new(Options {
        lookup: Some(Arc::new(lookup)),
        ..Options::default()
    })
    .unwrap()
}

/// A server whose every connection gets the function; its thread ends with the listener's last
/// expected connection.
struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    stop: Arc<std::sync::atomic::AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), handle)
    }

    fn at(address: SocketAddr, handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (count, stopping) = (Arc::clone(&accepted), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("test-server".to_owned())
            .spawn(move || {
                for connection in listener.incoming() {
                    if stopping.load(Ordering::SeqCst) {
                        return;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    handle(connection.unwrap());
                }
            })
            .unwrap();
        Self {
            address,
            accepted,
            stop,
            thread: Some(thread),
        }
    }

    /// Answers one request a connection with these bytes.
    fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::start(move |mut connection| {
            read_request(&mut connection);
            let _ = connection.write_all(answer.as_bytes());
        })
    }

    fn url(&self) -> String {
        format!("http://{}/path?q=1", self.address)
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads one request whose body has a length; empty once the client has left.
fn read_request(connection: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        match connection.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            _ => return String::new(),
        }
    }
    let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    connection.read_exact(&mut body).unwrap();
    text.extend(body);
    String::from_utf8(text).unwrap()
}

/// Measures what is to last no longer than this; again where it did, for a busy machine adds to a
/// round, and takes nothing away from any.
#[track_caller]
pub(crate) fn lasts_less_than(most: Duration, mut round: impl FnMut() -> Duration) {
    let took: Vec<Duration> = (0..6)
        .map(|_| round())
        .take_while(|took| *took >= most)
        .collect();
    assert!(took.len() < 6, "no round took less than {most:?}: {took:?}");
}

fn post(client: &mut Client, url: &str) -> Result<Response, Failure> {
    client.post_json(url, &[("x-test", "yes")], b"{}", 1024)
}

fn fails(outcome: Result<Response, Failure>, kind: Kind) -> String {
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind(), kind, "{failure}");
    failure.message().to_owned()
}

#[test]
fn a_request_arrives_as_it_was_given() {
    let seen = Arc::new(Mutex::new(String::new()));
    let sees = Arc::clone(&seen);
    let server = Server::start(move |mut connection| {
        *sees.lock().unwrap() = read_request(&mut connection);
        connection.write_all(HELLO.as_bytes()).unwrap();
    });
    let mut client = outbound().client(Policy::Operator, timeouts());
    let response = post(&mut client, &server.url()).unwrap();
    assert_eq!((response.status, &*response.body), (200, &b"hello"[..]));
    let seen = seen.lock().unwrap().to_ascii_lowercase();
    assert!(seen.starts_with("post /path?q=1 http/1.1\r\n"), "{seen}");
    assert!(seen.contains(&format!("host: {}\r\n", server.address)));
    assert!(seen.contains("x-test: yes\r\n"));
    assert!(seen.contains("content-type: application/json\r\n"));
    assert!(seen.ends_with("\r\n\r\n{}"));
}

#[test]
fn head_and_body_of_a_request_leave_at_once() {
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&arrivals);
    let server = Server::start(move |mut connection| {
        for _ in 0..2 {
            let mut arrived = [0; 4096];
            let amount = connection.read(&mut arrived).unwrap();
            let text = String::from_utf8_lossy(&arrived[..amount]).into_owned();
            seen.lock().unwrap().push(text);
            connection.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    let mut client = outbound().client(Policy::Operator, timeouts());
    for _ in 0..2 {
        assert_eq!(post(&mut client, &server.url()).unwrap().body, b"hello");
    }
    let arrivals = arrivals.lock().unwrap();
    let is_whole = |text: &String| text.starts_with("POST /path?q=1 ") && text.ends_with("}");
    assert!(arrivals.iter().all(is_whole), "{arrivals:?}");
    assert_eq!(server.accepted(), 1, "the connection was not kept");
}

#[test]
fn a_name_is_checked_by_every_address_it_has() {
    let outbound = with_names(&[
        ("mixed.test", "203.0.113.5"),
        ("mixed.test", "169.254.169.254"),
        ("loop.test", "127.0.0.1"),
        ("six.test", "::ffff:169.254.169.254"),
        ("zero.test", "0.0.0.0"),
    ]);
    let mut client = outbound.client(DEPLOYED, timeouts());
    for (name, says) in [
        ("mixed.test", "169.254.169.254"),
        ("loop.test", "loopback"),
        ("six.test", "inside ::ffff:169.254.169.254"),
        ("zero.test", "unspecified"),
    ] {
        let message = fails(
            post(&mut client, &format!("http://{name}:9/")),
            Kind::Refused,
        );
        assert!(message.contains(says), "{message}");
    }
    fails(post(&mut client, "http://nowhere.test/"), Kind::Resolve);
}

#[test]
fn the_name_stays_while_the_address_is_the_checked_one() {
    let host = Arc::new(Mutex::new(String::new()));
    let sees = Arc::clone(&host);
    let server = Server::start(move |mut connection| {
        *sees.lock().unwrap() = read_request(&mut connection);
        connection.write_all(HELLO.as_bytes()).unwrap();
    });
    let outbound = with_names(&[("api.test", "127.0.0.1")]);
    let mut client = outbound.client(Policy::Operator, timeouts());
    let url = format!("http://api.test:{}/", server.address.port());
    post(&mut client, &url).unwrap();
    let expected = format!("host: api.test:{}\r\n", server.address.port());
    assert!(
        host.lock()
            .unwrap()
            .to_ascii_lowercase()
            .contains(&expected)
    );
}

#[test]
fn a_redirect_is_an_answer() {
    let target = Server::answering(HELLO);
    let location = target.url();
    let server = Server::answering(format!(
        "HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
    ));
    let mut client = outbound().client(Policy::Operator, timeouts());
    let response = post(&mut client, &server.url()).unwrap();
    assert_eq!(response.status, 302);
    assert_eq!((server.accepted(), target.accepted()), (1, 0));
}

#[test]
fn a_connection_is_kept_only_while_its_address_is_allowed() {
    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|mut connection| {
        while !read_request(&mut connection).is_empty() {
            connection.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    let port = server.address.port();
    let outbound = Outbound::new(Options {
        lookup: Some(Arc::new(|_: &str| {
            // The third look-up moves the name elsewhere, to where nobody listens.
            let moved = LOOKUPS.fetch_add(1, Ordering::SeqCst) >= 2;
            Ok(vec![IpAddr::from([127, 0, 0, if moved { 99 } else { 1 }])])
        })),
        ..Options::default()
    })
    .unwrap();
    let mut client = outbound.client(Policy::Operator, timeouts());
    let url = format!("http://moving.test:{port}/");
    post(&mut client, &url).unwrap();
    post(&mut client, &url).unwrap();
    assert_eq!(
        server.accepted(),
        1,
        "the second exchange reuses the connection"
    );
    fails(post(&mut client, &url), Kind::ConnectRefused);
}

#[test]
fn a_cap_holds_with_and_without_a_length() {
    let long = "x".repeat(2000);
    let with = format!("HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n{long}");
    let without = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{long}");
    let chunked =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n{long}\r\n0\r\n\r\n");
    let huge = "HTTP/1.1 200 OK\r\ncontent-length: 100000000000000\r\n\r\n".to_owned();
    for answer in [with, without, chunked, huge] {
        let server = Server::answering(answer);
        let mut client = outbound().client(Policy::Operator, timeouts());
        fails(post(&mut client, &server.url()), Kind::TooLarge);
    }
}

#[test]
fn broken_answers_have_their_kinds() {
    let endless = format!("HTTP/1.1 200 OK\r\nx-long: {}", "a".repeat(100_000));
    for (answer, kind) in [
        ("", Kind::Reset),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort",
            Kind::Reset,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe",
            Kind::Reset,
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", Kind::Protocol),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            Kind::Protocol,
        ),
        (&endless, Kind::Protocol),
    ] {
        let server = Server::answering(answer);
        let mut client = outbound().client(Policy::Operator, timeouts());
        let message = fails(post(&mut client, &server.url()), kind);
        assert!(message.contains("127.0.0.1"), "{message}");
    }
}

#[test]
fn nobody_there_is_a_failed_connection() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut client = outbound().client(Policy::Operator, timeouts());
    let message = fails(
        post(&mut client, &format!("http://127.0.0.1:{port}/")),
        Kind::ConnectRefused,
    );
    assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
}

#[test]
fn the_next_address_is_tried() {
    let server = Server::answering(HELLO);
    let outbound = with_names(&[("two.test", "127.0.0.98"), ("two.test", "127.0.0.1")]);
    let mut client = outbound.client(Policy::Operator, timeouts());
    post(
        &mut client,
        &format!("http://two.test:{}/", server.address.port()),
    )
    .unwrap();
}

#[test]
fn proxies_of_the_environment_are_not_used() {
    // The environment of a test cannot be changed safely, so a child process runs one of them.
    let proxy = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nproxied");
    let address = format!("http://{}", proxy.address);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "outbound::tests::a_request_arrives_as_it_was_given",
    ]);
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, &address);
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    assert_eq!(proxy.accepted(), 0);
}

#[test]
fn a_url_is_checked_when_it_is_stored() {
    use crate::error::Code;
    let outbound = outbound();
    let check = |text: &str| outbound.check_url(DEPLOYED, text);
    for (text, stored) in [
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https:///example.com", "https://example.com/"),
        ("http://exa\tmple.com", "http://example.com/"),
        ("HTTP://10.0.0.8:8080/x?y=z", "http://10.0.0.8:8080/x?y=z"),
        ("https://bücher.example", "https://xn--bcher-kva.example/"),
    ] {
        assert_eq!(check(text).unwrap().as_str(), stored);
    }
    let long = format!("https://example.com/{}", "a".repeat(2048));
    for text in [
        "",
        "example.com",
        "/v1",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "https://user@example.com/",
        "https://:pw@example.com/",
        "http://1.1.1.1@127.0.0.1/",
        "https://example.com/#part",
        "https://example.com:99999/",
        &long,
        "http://[::1",
    ] {
        let error = check(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidRequest, "{text}: {error}");
        assert!(!error.message().contains("pw"), "{error}");
    }
    for text in [
        "http:127.0.0.1",
        "http://localhost./",
        "https://[::ffff:a9fe:a9fe]/",
        "http://metadata/",
    ] {
        let error = check(text).unwrap_err();
        assert_eq!(error.code(), Code::HostAccessDenied, "{text}: {error}");
        outbound.check_url(Policy::Operator, text).unwrap();
    }
}

#[test]
fn a_bad_header_is_named_and_its_value_is_not() {
    let mut client = outbound().client(Policy::Operator, timeouts());
    let headers = [("authorization", "Bearer se\ncret")];
    let failure = client
        .post_json("http://127.0.0.1:9/", &headers, b"{}", 10)
        .unwrap_err();
    assert_eq!(failure.kind(), Kind::Invalid);
    assert!(failure.message().contains("authorization"));
    assert!(!failure.message().contains("cret"));
}

#[test]
fn headers_that_frame_the_exchange_are_the_services_own() {
    let mut client = outbound().client(Policy::Operator, timeouts());
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "Upgrade",
    ] {
        let outcome = client.post_json("http://127.0.0.1:9/", &[(name, "1")], b"{}", 10);
        let message = fails(outcome, Kind::Invalid);
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_request_without_a_body_sends_none_and_a_name_is_looked_up_by_the_system() {
    let (send, seen) = crossbeam_channel::unbounded();
    let server = Server::start(move |mut connection| {
        send.send(read_request(&mut connection)).unwrap();
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\nconnection: close\r\n\r\n";
        connection.write_all(answer.as_bytes()).unwrap();
    });
    let mut client = outbound().client(Policy::Operator, timeouts());
    let url = format!("http://localhost:{}/", server.address.port());
    let mut send = |method: Method| {
        client.send(&Outgoing {
            method,
            url: &url,
            headers: &[],
            body: b"",
            cap: 100,
        })
    };
    assert_eq!(send(Method::HEAD).unwrap().body, b"");
    fails(send(Method::GET), Kind::TooLarge);
    for method in ["HEAD", "GET"] {
        let text = seen.recv().unwrap().to_ascii_lowercase();
        assert!(text.starts_with(&method.to_ascii_lowercase()), "{text}");
        assert!(
            !text.contains("content-length") && !text.contains("chunked"),
            "{text}"
        );
    }
}

#[test]
fn a_small_stack_is_enough() {
    // Run threads have 256 KiB; an unoptimised build needs the most.
    let server = Server::answering(HELLO);
    let url = server.url();
    let outbound = outbound();
    let thread = std::thread::Builder::new().name("small".to_owned());
    let thread = thread.stack_size(256 * 1024).spawn(move || {
        post(&mut outbound.client(Policy::Operator, timeouts()), &url).unwrap();
    });
    thread.unwrap().join().unwrap();
}
