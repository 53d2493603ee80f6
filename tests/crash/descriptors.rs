//! A server with no file descriptors left.

use crate::check::{Strict, check};
use crate::follow::Follower;
use crate::world::{Agents, Pace, config, shared_database};
use crate::{eventually, report};
use agent_runtime::secret::Secret;
use agent_runtime::store::{Options, Sql, Store};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Enough for the server's own, its pool and some clients.
const DESCRIPTORS: u32 = 256;
/// At most so many stay free for others than clients: a quarter.
const RESERVED: usize = 64;

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

/// The sessions of this database, other than the one that asks.
fn end_sessions(url: &str) {
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()";
    let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
    client.query_one(cut, &[]).unwrap();
}

fn is_served(connection: &TcpStream, path: &str, token: &str) -> bool {
    ask(connection, path, token).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

#[test]
fn a_server_without_descriptors_serves_those_it_has() {
    let mut config = config(shared_database()).with("SVC_DATABASE_POOL_SIZE", 4);
    config.descriptors = Some(DESCRIPTORS);
    let mut server = config.start();
    let client = config.client();
    let agents = Agents::make(&client, Pace::default());
    let address = client.address;
    let kept = TcpStream::connect(address).unwrap();
    kept.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let path = "/v1/projects?limit=1";
    assert!(is_served(&kept, path, &client.token));
    let crowd: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let all = usize::try_from(DESCRIPTORS).unwrap();
    eventually("no descriptors but the reserved ones to be left", || {
        (open_descriptors(server.pid()) >= all - RESERVED).then_some(())
    });
    for _ in 0..20 {
        assert!(is_served(&kept, path, &client.token));
        assert!(is_served(&kept, "/healthz", ""));
    }
    // The crowd takes the descriptors of nothing that the server opens again.
    end_sessions(&config.database_url);
    eventually("the database to be reached again", || {
        is_served(&kept, path, &client.token).then_some(())
    });
    assert!(open_descriptors(server.pid()) < all, "none was left");
    let mut served = 0;
    for connection in &crowd {
        connection
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        served += usize::from(is_served(connection, "/healthz", ""));
    }
    assert!(
        served > 0 && served < crowd.len(),
        "{served} of {} were served",
        crowd.len()
    );
    end_sessions(&config.database_url);
    drop(crowd);
    eventually("new connections to be served", || {
        let answer = client.get(path);
        answer
            .is_ok_and(|answer| answer.status == 200)
            .then_some(())
    });
    assert!(server.runs());
    let log = std::fs::read_to_string(&config.log).unwrap();
    assert!(!log.contains("a thread panicked"), "{log}");
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
        &format!("limit={DESCRIPTORS} connections=400 served={served}"),
    );
}

/// Where the test that runs in a process of its own finds the database.
const URL: &str = "TEST_DESCRIPTORS_DATABASE";

/// The limit is a process's, so the test runs itself again in one of its own.
#[allow(clippy::disallowed_methods, reason = "the test's own settings")]
#[test]
fn a_pool_works_again_after_a_shortage_of_descriptors() {
    if let Ok(url) = std::env::var(URL) {
        return outlasts_a_shortage(&url);
    }
    let status = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "descriptors::a_pool_works_again_after_a_shortage_of_descriptors",
        ])
        .env(URL, shared_database())
        .status()
        .unwrap();
    assert!(status.success(), "see the output above");
}

fn outlasts_a_shortage(url: &str) {
    let options = Options {
        url: Secret::new(url),
        pool_size: 2,
        checkout_timeout: Duration::from_secs(1),
        outage: Default::default(),
        statement_timeout: Duration::from_secs(4),
    };
    let log = slog::Logger::root(slog::Discard, slog::o!());
    let store = Store::open(&options, log).unwrap();
    drop(store.session().unwrap());
    let mut taken = Vec::new();
    let mut take_all = || {
        while let Ok(file) = File::open("/dev/null") {
            taken.push(file);
        }
    };
    take_all();
    // With the connection its descriptors become free. They are taken before the pool takes them again.
    let mut session = store.session().unwrap();
    let ended = session.query("select pg_terminate_backend(pg_backend_pid())", &[]);
    assert!(ended.is_err());
    drop(session);
    take_all();
    for _ in 0..4 {
        take_all();
        let _ = store.session();
    }
    drop(taken);
    eventually("the pool to work again", || {
        let sessions = [store.session().ok()?, store.session().ok()?];
        let mut sessions = sessions.into_iter();
        sessions
            .all(|mut session| session.query("select 1", &[]).is_ok())
            .then_some(())
    });
}
