//! A server with no file descriptors left.

use crate::check::{Strict, check};
use crate::follow::Follower;
use crate::world::{Agents, Pace, config, shared_database};
use crate::{eventually, report};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Enough for the server's own, its pool and some clients.
const DESCRIPTORS: u32 = 80;

/// A request on a connection that stays open.
fn ask(mut connection: &TcpStream, path: &str, token: &str) -> std::io::Result<String> {
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    connection.write_all(request.as_bytes())?;
    let mut buffer = [0; 16 * 1024];
    let read = connection.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..read]).into_owned())
}

fn open_descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

#[test]
fn a_server_without_descriptors_serves_those_it_has() {
    let mut config = config(shared_database());
    config.descriptors = Some(DESCRIPTORS);
    let mut server = config.start();
    let client = config.client();
    let agents = Agents::make(&client, Pace::default());
    let address = client.address;
    let kept = TcpStream::connect(address).unwrap();
    kept.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let path = "/v1/projects?limit=1";
    assert!(
        ask(&kept, path, &client.token)
            .unwrap()
            .starts_with("HTTP/1.1 200 ")
    );
    let crowd: Vec<TcpStream> = (0..150)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let all = usize::try_from(DESCRIPTORS).unwrap();
    eventually("the descriptors to run out", || {
        (open_descriptors(server.pid()) >= all - 1).then_some(())
    });
    for _ in 0..20 {
        let answer = ask(&kept, path, &client.token).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(
            ask(&kept, "/healthz", "")
                .unwrap()
                .starts_with("HTTP/1.1 200 ")
        );
    }
    let mut served = 0;
    for connection in &crowd {
        connection
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        served += usize::from(
            ask(connection, "/healthz", "").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ")),
        );
    }
    assert!(
        served > 0 && served < crowd.len(),
        "{served} of {} were served",
        crowd.len()
    );
    drop(crowd);
    eventually("new connections to be served", || {
        let answer = client.get(path);
        answer
            .is_ok_and(|answer| answer.status == 200)
            .then_some(())
    });
    assert!(server.runs());
    let run_id = agents.start_turn(&client, agents.repeatable);
    let seen = Follower::of(client, agents.repeatable, run_id).finish();
    check(
        &config,
        &agents,
        &[(agents.repeatable, seen)],
        Strict::Completed,
    );
    report(
        "descriptors",
        &format!("limit={DESCRIPTORS} connections=150 served={served}"),
    );
}
