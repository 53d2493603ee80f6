//! The graceful stop.

use crate::harness::{Client, House, PATIENCE, get, limits};
use agent_runtime::http::door::NotSent;
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn what_is_in_flight_is_finished_and_nothing_new_begun() {
    let house = House::open(limits());
    let address = house.door.local_addr();
    let (mut fresh, mut idle) = (house.client(), house.client());
    idle.send(get("/fast"));
    assert_eq!(idle.answer().body, "ok");
    let mut working = house.client();
    working.send(get("/block") + &get("/fast"));
    house.entered.recv_timeout(PATIENCE).unwrap();
    let mut reading = house.client();
    reading.send(get("/stream"));
    reading.head();
    let writer = house.streams.recv_timeout(PATIENCE).unwrap();
    writer.try_send("last\n\n").unwrap();
    house.until(|stats| stats.connections == 4);

    let (door, release) = (house.door, house.release);
    let stopping = std::thread::Builder::new()
        .name("stopping".to_owned())
        .spawn(move || door.stop(PATIENCE))
        .unwrap();
    fresh.is_closed();
    idle.is_closed();
    assert!(reading.rest().ends_with("last\n\n\r\n0\r\n\r\n"));
    assert_eq!(writer.try_send("more"), Err(NotSent::Gone));
    release.send(()).unwrap();
    let answer = working.answer();
    assert_eq!(answer.body, "released");
    assert_eq!(answer.field("connection"), Some("close"));
    working.is_closed();
    assert!(stopping.join().unwrap());
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}

#[test]
fn what_does_not_end_in_time_is_cut() {
    let house = House::open(limits());
    let mut working = house.client();
    working.send(get("/block"));
    house.entered.recv_timeout(PATIENCE).unwrap();
    let began = Instant::now();
    assert!(!house.door.stop(Duration::from_millis(100)));
    assert!(began.elapsed() < PATIENCE, "it waited for the request");
    working.is_closed();
}

#[test]
fn a_dropped_door_is_closed() {
    let house = House::open(limits());
    let mut client = house.client();
    client.send(get("/fast"));
    assert_eq!(client.answer().body, "ok");
    let address = house.door.local_addr();
    drop(house);
    client.is_closed();
    assert!(TcpStream::connect(address).map(Client::over).is_err());
}
