//! Answers that go on.

use crate::harness::{House, PATIENCE, get, limits};
use agent_runtime::http::door::{Limits, NotSent};
use std::time::Duration;

#[test]
fn events_leave_one_by_one() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/stream"));
    let head = client.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.field("transfer-encoding"), Some("chunked"));
    assert_eq!(head.field("content-type"), Some("text/event-stream"));
    let writer = house.streams.recv_timeout(PATIENCE).unwrap();
    for number in 0..30 {
        let event = format!("id: {number}\n\n");
        writer.try_send(event.clone()).unwrap();
        // Each is read before the next is written: nothing holds it back for company.
        let chunk = client.until("\n\n\r\n");
        assert_eq!(chunk, format!("{:X}\r\n{event}\r\n", event.len()));
    }
    writer.close();
    assert_eq!(client.until("0\r\n\r\n"), "0\r\n\r\n");
    house.until(|stats| stats.streams == 0);
    client.send(get("/fast"));
    assert_eq!(client.answer().body, "ok");
}

#[test]
fn a_writer_learns_that_its_reader_left() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/stream"));
    client.head();
    let writer = house.streams.recv_timeout(PATIENCE).unwrap();
    assert!(!writer.is_gone());
    drop(client);
    // What is sent to nobody comes back as a reset, which the next piece meets.
    let is_gone = || writer.try_send("late") == Err(NotSent::Gone);
    house.until(|stats| is_gone() && stats.streams == 0 && stats.connections == 0);
}

#[test]
fn a_reader_that_closes_its_side_reads_on() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/stream"));
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    let writer = house.streams.recv_timeout(PATIENCE).unwrap();
    house.serves_others();
    writer.try_send("one\n\n").unwrap();
    client.until("one\n\n");
    writer.try_send("two\n\n").unwrap();
    writer.close();
    assert!(client.rest().ends_with("two\n\n\r\n0\r\n\r\n"));
    house.until(|stats| stats.streams == 0 && stats.connections == 0);
}

#[test]
fn a_reader_that_stops_reading_fills_its_buffer_and_is_cut() {
    let house = House::open(Limits {
        write_timeout: Duration::from_millis(300),
        ..limits()
    });
    let mut client = house.client();
    client.send(get("/stream"));
    client.head();
    let writer = house.streams.recv_timeout(PATIENCE).unwrap();
    let mut full = false;
    let mut sent = 0;
    let refused = loop {
        match writer.try_send(vec![b'a'; 4096]) {
            Ok(()) => sent += 4096,
            Err(NotSent::Full) => {
                full = true;
                std::thread::yield_now();
            }
            Err(gone) => break gone,
        }
        assert!(
            sent < 64 << 20,
            "{sent} bytes were taken for a reader that does not read"
        );
    };
    assert!(full);
    assert_eq!(refused, NotSent::Gone);
    house.serves_others();
}

#[test]
fn streams_beyond_the_limit_get_503() {
    let house = House::open(Limits {
        streams: 1,
        ..limits()
    });
    let mut client = house.client();
    client.send(get("/stream"));
    client.head();
    let first = house.streams.recv_timeout(PATIENCE).unwrap();
    house.ask(get("/stream")).refuses(503, "overloaded");
    let second = house.streams.recv_timeout(PATIENCE).unwrap();
    assert_eq!(second.try_send("a"), Err(NotSent::Gone));
    assert_eq!(house.door.stats().streams, 1);
    first.close();
    house.until(|stats| stats.streams == 0);
}

#[test]
fn streams_leave_a_connection_for_requests() {
    let house = House::open(Limits {
        connections: 3,
        ..limits()
    });
    let mut readers = Vec::new();
    for _ in 0..2 {
        let mut client = house.client();
        client.send(get("/stream"));
        client.head();
        readers.push((client, house.streams.recv_timeout(PATIENCE).unwrap()));
    }
    house.ask(get("/stream")).refuses(503, "overloaded");
    house.until(|stats| stats.streams == 2 && stats.connections == 2);
    assert_eq!(house.ask(get("/fast")).body, "ok");
}

#[test]
fn head_of_a_stream_ends_it() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send("HEAD /stream HTTP/1.1\r\nHost: door\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let writer = house.streams.recv_timeout(PATIENCE).unwrap();
    house.until(|stats| stats.streams == 0);
    assert!(writer.is_gone());
    client.send(get("/fast"));
    assert_eq!(client.answer().body, "ok");
}
