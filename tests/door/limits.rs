//! Every bound is reached: its answer or its close, and others are served meanwhile.

use crate::harness::{Client, House, PATIENCE, get, limits, moment, post};
use agent_runtime::http::door::Limits;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);
/// Longer than a busy machine holds up a client that does what it should.
const LONGER: Duration = Duration::from_secs(3);

#[test]
fn a_slow_header_gets_408() {
    let house = House::open(Limits {
        header_timeout: SHORT,
        ..limits()
    });
    let mut client = house.client();
    client.send("GET /fast HTTP/1.1\r\nHo");
    client.answer().refuses(408, "request-timeout");
    client.is_closed();
    // A byte now and then does not help: the time is the whole block's.
    let mut client = house.client();
    let began = Instant::now();
    while client.flood(b"G", 1) == 1 {
        assert!(began.elapsed() < PATIENCE, "it is never closed");
        moment();
    }
    house.serves_others();
}

#[test]
fn a_slow_body_gets_408() {
    let house = House::open(Limits {
        body_timeout: SHORT,
        ..limits()
    });
    for head in [
        post("Content-Length: 10\r\n"),
        post("Content-Length: 50000\r\n"),
        post("Transfer-Encoding: chunked\r\n"),
    ] {
        let mut client = house.client();
        client.send(head + "5\r\n");
        let answer = client.answer();
        answer.refuses(408, "request-timeout");
        assert_eq!(answer.field("connection"), Some("close"));
        client.is_closed();
        house.serves_others();
    }
}

#[test]
fn silent_and_idle_connections_are_closed() {
    let house = House::open(Limits {
        header_timeout: LONGER,
        idle_timeout: LONGER,
        ..limits()
    });
    house.client().is_closed();
    let mut client = house.client();
    client.send(get("/fast"));
    assert_eq!(client.answer().body, "ok");
    client.is_closed();
    house.until(|stats| stats.connections == 0);
}

#[test]
fn two_thousand_idle_connections_cost_the_others_nothing() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let house = House::open(limits());
    let mut idle: Vec<_> = (0..2000).map(|_| house.client()).collect();
    house.until(|stats| stats.connections == 2000);
    for _ in 0..10 {
        house.serves_others();
    }
    for client in idle.iter_mut().step_by(100) {
        client.send(get("/fast"));
        assert_eq!(client.answer().body, "ok");
    }
}

#[test]
fn too_many_connections_get_503_and_probes_their_answer() {
    let house = House::open(Limits {
        connections: 3,
        ..limits()
    });
    let held: Vec<_> = (0..3).map(|_| house.client()).collect();
    house.until(|stats| stats.connections == 3);
    let mut client = house.client();
    client.send(get("/fast"));
    let answer = client.answer();
    answer.refuses(503, "overloaded");
    assert_eq!(answer.field("retry-after"), Some("1"));
    client.is_closed();
    assert_eq!(house.ask(get("/healthz")).body, "alive");
    // Beyond those that are told so, they are closed.
    let told: Vec<_> = (0..40).map(|_| house.client()).collect();
    house.until(|stats| stats.connections_refused > 0);
    assert!(house.door.stats().connections <= 3 + 32);
    drop((held, told));
    house.until(|stats| stats.connections == 0);
    house.serves_others();
}

#[test]
fn one_address_cannot_take_every_connection() {
    let house = House::open(Limits {
        connections_per_address: 3,
        ..limits()
    });
    let _held: Vec<_> = (0..3).map(|_| house.client()).collect();
    house.until(|stats| stats.connections == 3);
    house.ask(get("/fast")).refuses(429, "too-many-requests");
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let from: std::net::SocketAddr = "127.0.0.2:0".parse().unwrap();
    socket.bind(&from.into()).unwrap();
    socket.connect(&house.door.local_addr().into()).unwrap();
    let mut other = Client::over(TcpStream::from(socket));
    other.send(get("/fast"));
    assert_eq!(other.answer().body, "ok");
}

#[test]
fn a_full_queue_gets_503_at_once() {
    let house = House::open(Limits {
        request_threads: 1,
        queue_length: 2,
        ..limits()
    });
    let mut working = house.client();
    working.send(get("/block"));
    house.entered.recv_timeout(PATIENCE).unwrap();
    let mut waiting = [house.client(), house.client()];
    for client in &mut waiting {
        client.send(get("/fast"));
    }
    house.until(|stats| stats.queue_length == 2);
    let answer = house.ask(get("/fast"));
    answer.refuses(503, "overloaded");
    assert_eq!(answer.field("retry-after"), Some("1"));
    assert_eq!(house.ask(get("/healthz")).body, "alive");
    house.release.send(()).unwrap();
    for client in &mut waiting {
        assert_eq!(client.answer().body, "ok");
    }
}

#[test]
fn all_bodies_together_have_a_budget() {
    let house = House::open(Limits {
        bodies_in_flight_bytes: 20_000,
        ..limits()
    });
    let mut slow = house.client();
    slow.send(post("Content-Length: 16000\r\n") + &"a".repeat(12_000));
    house.until(|stats| stats.body_bytes == 12_000);
    let declared = house.ask(post("Content-Length: 10000\r\n"));
    declared.refuses(503, "overloaded");
    assert_eq!(declared.field("retry-after"), Some("1"));
    let chunk = format!("2710\r\n{}\r\n", "b".repeat(10_000));
    let found = house.ask(post("Transfer-Encoding: chunked\r\n") + &chunk);
    found.refuses(503, "overloaded");
    slow.send("a".repeat(4_000));
    assert_eq!(slow.answer().status, 200);
    house.until(|stats| stats.body_bytes == 0);
}

#[test]
fn a_reader_that_stops_reading_is_cut() {
    let house = House::open(Limits {
        write_timeout: LONGER,
        ..limits()
    });
    let mut client = house.client();
    client.send(get("/large"));
    let answer = client.head();
    assert_eq!(answer.status, 200);
    house.serves_others();
    house.until(|stats| stats.connections == 0);
    assert!(client.rest().len() < 32 << 20, "it was not cut");
    // A reader that goes on reading gets it all.
    let mut client = house.client();
    client.send(get("/large"));
    assert_eq!(client.answer().body.len(), 32 << 20);
}

#[test]
fn where_answers_hold_too_much_the_slowest_is_cut() {
    let house = House::open(Limits {
        answers_in_flight_bytes: 80 << 20,
        ..limits()
    });
    let [mut slow, mut other] = [house.client(), house.client()];
    for client in [&mut slow, &mut other] {
        client.send(get("/large"));
        client.hold(1);
    }
    house.until(|stats| stats.answer_bytes == 64 << 20);
    other.hold(16 << 20);
    // No answer is judged as long as it is young.
    let began = Instant::now();
    let whole = loop {
        let answer = house.ask(get("/large"));
        if answer.status == 200 {
            break answer;
        }
        answer.refuses(503, "overloaded");
        assert!(began.elapsed() < PATIENCE, "no room is made");
        moment();
    };
    assert_eq!(whole.body.len(), 32 << 20);
    assert_eq!(house.door.stats().answers_cut, 1);
    assert!(slow.rest().len() < 32 << 20, "it was not cut");
    assert_eq!(other.answer().body.len(), 32 << 20);
    house.until(|stats| stats.answer_bytes == 0);
}
