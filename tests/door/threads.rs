//! Panics, deadlines, and threads that do not come back.

use crate::harness::{House, PATIENCE, get, limits, post};
use agent_runtime::http::door::Limits;
use std::time::Duration;

/// Longer than a busy machine holds up a request that is answered at once.
const SHORT: Duration = Duration::from_millis(2500);

#[test]
fn a_panic_is_answered_and_its_thread_goes_on() {
    let house = House::open(Limits {
        request_threads: 1,
        ..limits()
    });
    let mut client = house.client();
    for _ in 0..3 {
        client.send(get("/panic"));
        client.answer().refuses(500, "internal");
    }
    let head = "POST /admit-panic HTTP/1.1\r\nHost: door\r\nContent-Length: 50000\r\n\r\n";
    house.ask(head).refuses(500, "internal");
    house.serves_others();
    let stats = house.door.stats();
    assert_eq!((stats.panics, stats.request_threads), (4, 1));
}

#[test]
fn a_handler_that_answers_nothing_is_answered_for() {
    let house = House::open(limits());
    house.ask(get("/silent")).refuses(500, "internal");
}

#[test]
fn a_request_beyond_its_deadline_gets_504_and_its_connection_goes_on() {
    let house = House::open(Limits {
        request_deadline: SHORT,
        ..limits()
    });
    let mut client = house.client();
    client.send(get("/later"));
    client.answer().refuses(504, "deadline-exceeded");
    let responder = house.later.recv_timeout(PATIENCE).unwrap();
    assert!(!responder.is_wanted());
    client.send(get("/fast"));
    assert_eq!(client.answer().body, "ok");
}

#[test]
fn stuck_threads_are_replaced_and_their_queue_is_not_worked_off() {
    // The threads are looked after once a second. Where that falls between their deadline and the later
    // one of the request that waits, it is begun in time: rarely, and then once more.
    let is_left = (0..4).any(|_| stuck_threads_leave_a_late_request());
    assert!(is_left, "a late request was begun");
}

/// False: what waited was begun.
#[allow(clippy::unwrap_used, reason = "it is a test throughout")]
fn stuck_threads_leave_a_late_request() -> bool {
    let house = House::open(Limits {
        request_threads: 2,
        request_deadline: SHORT,
        ..limits()
    });
    let mut stuck: Vec<_> = (0..2).map(|_| house.client()).collect();
    for client in &mut stuck {
        client.send(get("/block"));
        house.entered.recv_timeout(PATIENCE).unwrap();
    }
    // It waits in the queue beyond its deadline, so it is never begun.
    let mut waiting = house.client();
    waiting.send(post("Content-Length: 0\r\n").replace("/echo", "/block"));
    house.until(|stats| stats.queue_length == 1);
    assert_eq!(house.ask(get("/healthz")).body, "alive");
    waiting.answer().refuses(504, "deadline-exceeded");
    house.until(|stats| stats.stuck_threads == 2 && stats.request_threads == 2);
    for client in &mut stuck {
        client.answer().refuses(504, "deadline-exceeded");
    }
    house.serves_others();
    if house.entered.try_recv().is_ok() {
        for _ in 0..3 {
            house.release.send(()).unwrap();
        }
        return false;
    }
    // Both places are taken again, and there are no more after those.
    for client in &mut stuck {
        client.send(get("/block"));
        house.entered.recv_timeout(PATIENCE).unwrap();
    }
    house.until(|stats| stats.stuck_threads == 4);
    let stats = house.door.stats();
    assert_eq!((stats.request_threads, stats.threads_replaced), (0, 2));
    for _ in 0..4 {
        house.release.send(()).unwrap();
    }
    house.until(|stats| stats.stuck_threads == 0 && stats.request_threads == 2);
    house.serves_others();
    assert!(house.door.stop(PATIENCE));
    true
}
