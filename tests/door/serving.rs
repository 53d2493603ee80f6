//! What a well-behaved client gets.

use crate::harness::{House, get, limits, post};
use agent_runtime::http::door::Reply;
use rouille::Response;
use std::net::Shutdown;

#[test]
fn requests_follow_each_other_on_one_connection() {
    let house = House::open(limits());
    let mut client = house.client();
    for _ in 0..3 {
        client.send(get("/fast"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
        assert!(answer.field("date").is_some());
    }
    client.send(post("Content-Length: 5\r\n") + "hello");
    assert_eq!(client.answer().body, "POST hello");
    client.send(post("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\nX: trailer\r\n\r\n");
    assert_eq!(client.answer().body, "POST hello");
    client.send(get("/address"));
    let own = client.stream.local_addr().unwrap().to_string();
    assert_eq!(client.answer().body, own);
    client.send(get("/nowhere"));
    assert_eq!(client.answer().status, 404);
    house.until(|stats| stats.answers_by_class == [0, 6, 0, 1, 0] && stats.in_flight == 0);
    house.until(|stats| stats.body_bytes == 0);
}

#[test]
fn head_is_get_without_the_body() {
    let house = House::open(limits());
    let mut client = house.client();
    for target in ["/fast", "/healthz"] {
        client.send(format!("HEAD {target} HTTP/1.1\r\nHost: door\r\n\r\n"));
        let answer = client.head();
        assert_eq!(answer.status, 200);
        assert!(matches!(answer.field("content-length"), Some("2" | "5")));
    }
    client.send(get("/fast"));
    assert_eq!(client.answer().body, "ok");
}

#[test]
fn sixty_four_connections_at_once_are_each_answered() {
    let house = House::open(limits());
    let mut clients: Vec<_> = (0..64).map(|_| house.client()).collect();
    for _ in 0..5 {
        for client in &mut clients {
            client.send(get("/fast"));
        }
        for client in &mut clients {
            assert_eq!(client.answer().body, "ok");
        }
    }
    assert_eq!(house.door.stats().connections, 64);
}

#[test]
fn pipelined_slow_requests_take_one_turn_at_a_time() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/block").repeat(100));
    house
        .entered
        .recv_timeout(crate::harness::PATIENCE)
        .unwrap();
    for _ in 0..3 {
        house.serves_others();
    }
    house.until(|stats| stats.in_flight == 1);
    for _ in 0..100 {
        house.release.send(()).unwrap();
    }
    for _ in 0..100 {
        assert_eq!(client.answer().body, "released");
    }
}

#[test]
fn an_answer_may_come_later_from_another_thread() {
    let house = House::open(limits());
    let mut clients: Vec<_> = (0..20).map(|_| house.client()).collect();
    for client in &mut clients {
        client.send(get("/later"));
    }
    // More than there are threads: each is free as soon as its handler returns.
    let responders: Vec<_> = clients
        .iter()
        .map(|_| house.later.recv_timeout(crate::harness::PATIENCE).unwrap())
        .collect();
    for responder in responders {
        assert!(responder.is_wanted());
        responder.send(Reply::Full(Response::text("at last")));
    }
    for client in &mut clients {
        assert_eq!(client.answer().body, "at last");
    }
}

#[test]
fn a_handler_cannot_split_an_answer() {
    let house = House::open(limits());
    house.ask(get("/bad-header")).refuses(500, "internal");
}

#[test]
fn a_client_that_closes_its_side_gets_its_answer() {
    let house = House::open(limits());
    let body = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n";
    for request in [
        get("/later"),
        "POST /later HTTP/1.1\r\nHost: door\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        format!("POST /later HTTP/1.1\r\nHost: door\r\n{body}\r\n"),
    ] {
        let mut client = house.client();
        client.send(get("/fast") + &request);
        client.stream.shutdown(Shutdown::Write).unwrap();
        let responder = house.later.recv_timeout(crate::harness::PATIENCE).unwrap();
        // The door has seen meanwhile what came before this.
        house.serves_others();
        assert!(responder.is_wanted());
        responder.send(Reply::Full(Response::text("at last")));
        assert_eq!(client.answer().body, "ok");
        assert_eq!(client.answer().body, "at last");
        client.is_closed();
    }
    house.until(|stats| stats.connections == 0);
}

#[test]
fn a_client_that_leaves_is_let_go_with_its_answer() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/later"));
    let responder = house.later.recv_timeout(crate::harness::PATIENCE).unwrap();
    drop(client);
    responder.send(Reply::Full(Response::text("too late")));
    house.until(|stats| stats.in_flight == 0 && stats.connections == 0);
}
