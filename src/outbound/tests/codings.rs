//! Answers that are compressed although nobody asked for that.

use super::*;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A server that answers with this coding and body; `length`: what it says of the length.
fn server(coding: &str, body: Vec<u8>, length: Option<usize>) -> Server {
    let length = length.map_or_else(String::new, |length| {
        format!("content-length: {length}\r\n")
    });
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\n{length}connection: close\r\n\r\n"
    );
    Server::start(move |mut connection| {
        read_request(&mut connection);
        let _ = connection.write_all(head.as_bytes());
        let _ = connection.write_all(&body);
    })
}

fn read(server: &Server, method: Method, cap: u64) -> Result<Response, Failure> {
    let policy = Policy::Tenant(HostAccess::Local);
    let mut client = outbound().client(policy, timeouts());
    client.send(&Outgoing {
        method,
        url: &server.url(),
        headers: &[],
        body: &[],
        cap,
    })
}

#[test]
fn a_compressed_answer_is_read_as_it_was_before() {
    let text = "{\"a\": \"é\"}".repeat(1_000);
    for (coding, body) in [
        ("gzip", gzip(text.as_bytes())),
        (" X-GZip ", gzip(text.as_bytes())),
        ("deflate", deflate(text.as_bytes())),
        (
            "gzip",
            [
                gzip(&text.as_bytes()[..5_000]),
                gzip(&text.as_bytes()[5_000..]),
            ]
            .concat(),
        ),
    ] {
        for length in [Some(body.len()), None] {
            let answer = read(&server(coding, body.clone(), length), Method::GET, 20_000).unwrap();
            assert_eq!(answer.text(20_000).unwrap(), text, "{coding}");
            assert!(answer.headers.get("content-encoding").is_none());
            assert!(answer.headers.get("content-length").is_none());
        }
    }
    let none = read(&server("gzip", Vec::new(), Some(0)), Method::GET, 100).unwrap();
    assert_eq!(none.text(100).unwrap(), "");
    let head = read(&server("gzip", Vec::new(), Some(55)), Method::HEAD, 100).unwrap();
    assert_eq!(head.headers["content-encoding"], "gzip");
    assert_eq!(head.text(100).unwrap(), "");
    let other = read(&server("br", b"abc".to_vec(), Some(3)), Method::GET, 100).unwrap();
    assert_eq!(other.body, b"abc");
    assert!(other.text(100).is_err());
}

#[test]
fn a_compressed_answer_has_the_bound_of_any_other() {
    // A thousand bytes for one.
    let bomb = gzip(&vec![0; 10_000_000]);
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    for length in [Some(bomb.len()), None] {
        let failure =
            read(&server("gzip", bomb.clone(), length), Method::GET, 100_000).unwrap_err();
        assert_eq!(failure.kind(), Kind::TooLarge, "{failure}");
        assert!(
            failure.message().contains("longer than 100000 bytes"),
            "{failure}"
        );
    }
    // Members without a byte: what arrives counts, too.
    let empty = gzip(b"").repeat(10_000);
    let failure = read(&server("gzip", empty, None), Method::GET, 100_000).unwrap_err();
    assert_eq!(failure.kind(), Kind::TooLarge, "{failure}");
}

#[test]
fn an_answer_that_is_not_what_its_coding_says_is_a_failure() {
    let whole = gzip(b"hello, hello, hello");
    for (coding, body) in [
        ("gzip", b"hello".to_vec()),
        ("gzip", whole[..whole.len() - 3].to_vec()),
        ("gzip", whole[..12].to_vec()),
        ("deflate", b"hello".to_vec()),
    ] {
        let failure = read(&server(coding, body, None), Method::GET, 1_000).unwrap_err();
        assert_eq!(failure.kind(), Kind::Protocol, "{failure}");
        assert!(failure.message().contains(coding), "{failure}");
        assert!(failure.may_have_arrived());
    }
    // A connection that breaks is no wrong coding.
    let failure = read(
        &server("gzip", whole[..12].to_vec(), Some(whole.len())),
        Method::GET,
        1_000,
    );
    assert_eq!(failure.unwrap_err().kind(), Kind::Reset);
}
