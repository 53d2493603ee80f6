//! Requests that are not what they should be: the right refusal or a close, and others are served.

use crate::harness::{ECHO_BYTES, House, get, limits, post};

/// Sends bytes on a connection of their own; the door refuses and closes.
#[track_caller]
fn refused(house: &House, bytes: impl AsRef<[u8]>, status: u16, code: &str) {
    let shown = String::from_utf8_lossy(bytes.as_ref()).into_owned();
    let mut client = house.client();
    client.send(bytes);
    let answer = client.answer();
    assert_eq!(answer.status, status, "{shown:?} got {answer:?}");
    answer.refuses(status, code);
    assert!(answer.field("date").is_some(), "{answer:?}");
    house.serves_others();
}

#[test]
fn header_blocks_that_two_readers_could_read_differently() {
    let house = House::open(limits());
    for head in [
        "GET /fast HTTP/1.1\r\n\r\n",
        "GET /fast HTTP/1.0\r\n\r\n",
        "GET /fast HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET /fast HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET /fast HTTP/1.1\r\nHost:\r\n\r\n",
        "GET http://door/fast HTTP/1.1\r\nHost: door\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: door\r\n\r\n",
        "CONNECT door:443 HTTP/1.1\r\nHost: door:443\r\n\r\n",
        "GET /fast HTTP/1.1\r\nHost: door\r\nX: a\r\n folded\r\n\r\n",
        "GET /fast HTTP/1.1\r\nHost: door\r\nX: a\0b\r\n\r\n",
        "GET /fast HTTP/1.1\r\nHost: door\r\nX : a\r\n\r\n",
        "GET /fa\0st HTTP/1.1\r\nHost: door\r\n\r\n",
        "G@T /fast HTTP/1.1\r\nHost: door\r\n\r\n",
        "GET /fast HTTP/1.2\r\nHost: door\r\n\r\n",
        "GET /fast\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{7c}\x03\x03",
    ] {
        refused(&house, head, 400, "invalid-request");
    }
    let not_text = b"GET /fast HTTP/1.1\r\nHost: door\r\nX: \xff\xfe\r\n\r\n";
    refused(&house, not_text, 400, "invalid-request");
}

#[test]
fn a_target_with_a_fragment_is_refused_wherever_it_stands() {
    let house = House::open(limits());
    for target in ["/fast#", "/fast#a", "/fast?a=b#c", "/healthz#a", "#"] {
        refused(&house, get(target), 400, "invalid-request");
    }
    let mut client = house.client();
    let body = post("Content-Length: 8\r\n") + "\n\nGET /#";
    let text = "GET /fast?a=%23 HTTP/1.1\r\nHost: door\r\nX: a#b\r\n\r\n";
    client.send(get("/fast") + &body + &get("/fast#a") + text);
    assert_eq!(client.answer().body, "ok");
    assert_eq!(client.answer().body, "POST \n\nGET /#");
    client.answer().refuses(400, "invalid-request");
    assert_eq!(client.answer().body, "ok");
    client.send(post("Transfer-Encoding: chunked\r\n") + "1\r\n#\r\n0\r\n\r\n");
    assert_eq!(client.answer().body, "POST #");
    client.send(get("/fast#"));
    client.answer().refuses(400, "invalid-request");
}

#[test]
fn what_came_before_the_unreadable_is_answered() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/fast").repeat(2) + "nonsense\r\n\r\n");
    for _ in 0..2 {
        assert_eq!(client.answer().body, "ok");
    }
    client.answer().refuses(400, "invalid-request");
    client.is_closed();
}

#[test]
fn lengths_and_codings() {
    let house = House::open(limits());
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 99999999999999999999999999\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        refused(&house, post(fields), 400, "invalid-request");
    }
    let twice = post("Content-Length: 5\r\nContent-Length: 5\r\n");
    assert_eq!(house.ask(twice + "hello").body, "POST hello");
    let endless = post("Content-Length: 100000000000000\r\n");
    refused(&house, endless, 413, "body-too-large");
}

#[test]
fn both_lengths_are_read_as_chunked_and_nothing_is_smuggled() {
    let house = House::open(limits());
    let mut client = house.client();
    let smuggled = get("/address");
    let head = post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
    client.send(format!("{head}0\r\n\r\n{smuggled}"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.body.as_str()), (200, "POST "));
    client.is_closed();
    let mut client = house.client();
    let head = post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n");
    client.send(format!("{head}5\r\nhello\r\n0\r\n\r\n{smuggled}"));
    assert_eq!(client.answer().body, "POST hello");
    client.is_closed();
    house.serves_others();
}

#[test]
fn fields_that_decide_who_asks_for_what_are_given_once() {
    let house = House::open(limits());
    for name in [
        "Authorization",
        "Content-Type",
        "Idempotency-Key",
        "Last-Event-ID",
    ] {
        let head = format!("GET /fast HTTP/1.1\r\nHost: door\r\n{name}: a\r\n{name}: b\r\n\r\n");
        refused(&house, head, 400, "invalid-request");
    }
}

#[test]
fn a_header_without_end_is_cut_at_its_bound() {
    let house = House::open(limits());
    for start in ["GET /", "GET /fast HTTP/1.1\r\nHost: door\r\nX: "] {
        let mut client = house.client();
        client.send(start);
        let sent = client.flood(&[b'a'; 8192], 256 << 20);
        assert!(sent < 32 << 20, "{sent} bytes of a header were taken");
    }
    let long = "a".repeat(20_000);
    let line = format!("GET /{long} HTTP/1.1\r\nHost: door\r\n\r\n");
    refused(&house, line, 431, "headers-too-large");
    let field = format!("GET / HTTP/1.1\r\nHost: door\r\nX: {long}\r\n\r\n");
    refused(&house, field, 431, "headers-too-large");
    for count in [70, 500] {
        let fields = "X: 1\r\n".repeat(count);
        let many = format!("GET / HTTP/1.1\r\nHost: door\r\n{fields}\r\n");
        refused(&house, many, 431, "headers-too-large");
    }
}

#[test]
fn a_body_without_end_is_cut_at_its_bound() {
    let house = House::open(limits());
    let piece = format!("2000\r\n{}\r\n", "a".repeat(0x2000));
    let unknown = "POST /echo HTTP/1.1\r\nHost: door\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (head, status) in [
        (post("Transfer-Encoding: chunked\r\n"), 413),
        (unknown.to_owned(), 401),
    ] {
        let mut client = house.client();
        client.send(head);
        let enough = usize::try_from(ECHO_BYTES).unwrap() / 0x2000 + 1;
        client.send(piece.repeat(enough));
        let answer = client.answer();
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("connection"), Some("close"));
        let sent = client.flood(piece.as_bytes(), 256 << 20);
        assert!(sent < 32 << 20, "{sent} bytes of a body were taken");
    }
    house.until(|stats| stats.body_bytes == 0 && stats.connections == 0);
    house.serves_others();
}

#[test]
fn a_body_is_not_asked_for_before_its_caller_is_known() {
    let house = House::open(limits());
    let expect = "Content-Length: 50000\r\nExpect: 100-continue\r\n";
    let mut client = house.client();
    client.send(format!("POST /echo HTTP/1.1\r\nHost: door\r\n{expect}\r\n"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.body.as_str()), (401, "who?"));
    assert_eq!(answer.field("connection"), Some("close"));
    client.is_closed();

    let mut client = house.client();
    client.send(post(expect));
    assert_eq!(client.head().status, 100);
    client.send("b".repeat(50_000));
    assert_eq!(client.answer().body.len(), "POST ".len() + 50_000);

    let most = ECHO_BYTES + 1;
    let over = post(&format!(
        "Content-Length: {most}\r\nExpect: 100-continue\r\n"
    ));
    refused(&house, over, 413, "body-too-large");
}

#[test]
fn a_body_that_is_wrongly_chunked_or_cut_short() {
    let house = House::open(limits());
    let chunked = post("Transfer-Encoding: chunked\r\n");
    for body in [
        "x\r\n",
        "-5\r\nhello\r\n",
        "5\r\nhello!\r\n",
        "FFFFFFFFFFFFFFFFF\r\n",
    ] {
        refused(&house, format!("{chunked}{body}"), 400, "invalid-request");
    }
    let mut client = house.client();
    client.send(post("Content-Length: 10\r\n") + "half");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    client.rest();
    house.until(|stats| stats.connections == 0 && stats.body_bytes == 0);
    house.serves_others();
}
