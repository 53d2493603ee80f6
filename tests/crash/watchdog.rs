//! What the service manager's watchdog is fed by: it starves when a part is stuck that a restart would
//! free, and never because the database is away, stands still, or keeps somebody waiting.

use crate::access::{Person, authorized, project};
use crate::database::{answer_again, send, stop_answering};
use crate::openfga::OpenFga;
use crate::server::{Client, Server, ServerConfig};
use crate::world::{cluster, config};
use crate::{eventually, report};
use postgres::NoTls;
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// As the manager would have it: a sign of life twice as often.
const INTERVAL: Duration = Duration::from_millis(500);
/// What a sign of life begins with; one that follows a part that was stuck takes that back as well.
const ALIVE: &str = "WATCHDOG=1";
/// Without a sign for this long, the manager would have ended the process.
const STARVED: Duration = Duration::from_secs(5);
const STATEMENT: Duration = Duration::from_millis(1500);
const CHECKOUT: Duration = Duration::from_millis(300);
/// Longer than any part may be still before it counts as stuck.
const LONG: Duration = Duration::from_secs(12);

/// The service manager's end of the socket.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    /// With the config whose servers report to it, and give up soon.
    fn of(config: ServerConfig) -> (Self, ServerConfig) {
        let path = config.log.with_extension("notify");
        // A socket's path is short: about a hundred characters.
        let path = std::env::temp_dir().join(path.file_name().unwrap());
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).unwrap();
        let config = config
            .with("NOTIFY_SOCKET", path.display())
            .with("WATCHDOG_USEC", INTERVAL.as_micros())
            .with("SVC_DATABASE_POOL_SIZE", 2)
            .with("SVC_DATABASE_STATEMENT_TIMEOUT_MS", STATEMENT.as_millis())
            .with("SVC_DATABASE_CHECKOUT_TIMEOUT_MS", CHECKOUT.as_millis());
        (Self { socket, path }, config)
    }

    /// The next word within the time.
    fn hear(&self, within: Duration) -> Option<String> {
        let mut buffer = [0; 256];
        self.socket.set_read_timeout(Some(within)).unwrap();
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// A sign of life comes, and they go on coming for this long.
    #[track_caller]
    fn is_fed_for(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut last = Instant::now();
        while Instant::now() < until {
            let word = self.hear(STARVED);
            if word.is_some_and(|word| word.starts_with(ALIVE)) {
                last = Instant::now();
            }
            assert!(last.elapsed() < STARVED, "no sign of life for {STARVED:?}");
        }
    }

    /// Waits until no sign of life has come for as long as the manager would wait; gives what part it
    /// was told of.
    #[track_caller]
    fn starves(&self) -> String {
        let mut last = Instant::now();
        let mut part = None;
        eventually("the watchdog to starve", || {
            match self.hear(INTERVAL) {
                Some(word) if word.starts_with(ALIVE) => last = Instant::now(),
                Some(word) => part = word.strip_prefix("STATUS=Stuck: ").map(str::to_owned),
                None => {}
            }
            (last.elapsed() > STARVED).then_some(())
        });
        part.expect("it said why")
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the manager does next: ends the process and starts another one. The database's processes
/// that stand still go on doing so.
#[track_caller]
fn restarted(server: Server, config: &ServerConfig, manager: &Manager) -> Server {
    server.kill();
    let server = config.start();
    manager.is_fed_for(Duration::from_secs(3));
    server
}

/// Who waits for a lock in the database.
fn waiting(sql: &mut postgres::Client) -> Vec<u32> {
    let query = "select pid from pg_stat_activity
                 where wait_event_type = 'Lock' and application_name = 'agent-runtime'";
    let rows = sql.query(query, &[]).unwrap();
    rows.iter()
        .map(|row| row.get::<_, i32>(0).unsigned_abs())
        .collect()
}

#[track_caller]
fn says_stuck(client: &Client, part: &str) {
    let answer = client.get("/healthz").unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(
        answer.body["part"].as_str().unwrap().contains(part),
        "{answer:?}"
    );
    let figures = client.get("/metrics").unwrap().body.to_string();
    assert!(figures.contains("agent_runtime_stuck 1"));
}

#[test]
fn a_database_that_is_away_or_stands_still_starves_nobody() {
    let mut cluster = cluster("fed");
    let (manager, config) = Manager::of(config(cluster.url()));
    let mut server = config.start();
    manager.is_fed_for(INTERVAL * 4);
    let stopped = stop_answering(&cluster);
    manager.is_fed_for(LONG);
    assert_eq!(config.client().get("/healthz").unwrap().status, 200);
    answer_again(&stopped);
    send(cluster.pid().unwrap(), Signal::KILL);
    manager.is_fed_for(LONG);
    assert_eq!(config.client().get("/healthz").unwrap().status, 200);
    cluster.restart().unwrap();
    eventually("the server to take work again", || {
        let answer = config.client().get("/v1/projects").ok()?;
        (answer.status == 200).then_some(())
    });
    manager.is_fed_for(INTERVAL * 4);
    assert!(server.runs());
}

#[test]
fn a_pool_that_hangs_while_the_database_answers_starves_the_watchdog() {
    let cluster = cluster("hangs");
    let (manager, config) = Manager::of(config(cluster.url()));
    let server = config.start();
    let client = config.client();
    let mut sql = postgres::Client::connect(&cluster.url(), NoTls).unwrap();
    let mut looking = postgres::Client::connect(&cluster.url(), NoTls).unwrap();
    let mut lock = sql.transaction().unwrap();
    lock.batch_execute("lock table projects").unwrap();
    let over = AtomicBool::new(false);
    let (hung, starved) = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = client.get("/v1/projects?limit=1");
                }
            });
        }
        // Waits that end with an error are no reason.
        manager.is_fed_for(LONG);
        let hung = eventually("both connections to wait for the lock", || {
            let all = waiting(&mut looking);
            (all.len() == 2).then_some(all)
        });
        for pid in &hung {
            send(*pid, Signal::STOP);
        }
        let hung_at = Instant::now();
        lock.rollback().unwrap();
        let starved = (manager.starves(), hung_at.elapsed());
        over.store(true, Ordering::Relaxed);
        (hung, starved)
    });
    let (part, starved_after) = starved;
    assert!(part.contains("pool"), "{part}");
    says_stuck(&config.client(), "pool");
    let server = restarted(server, &config, &manager);
    assert_eq!(
        config.client().get("/v1/projects?limit=1").unwrap().status,
        200
    );
    drop(server);
    for pid in hung {
        send(pid, Signal::CONT);
    }
    report(
        "watchdog pool",
        &format!("starvedAfterMs={}", starved_after.as_millis()),
    );
}

#[test]
fn an_audit_writer_that_hangs_while_the_database_answers_starves_the_watchdog() {
    let fga = OpenFga::own_in_memory();
    let cluster = cluster("writer");
    let (manager, config) = Manager::of(authorized(cluster.url(), &fga.url()));
    let config = config.with("SVC_DATABASE_POOL_SIZE", 8);
    let server = config.start();
    let admin = config.client();
    let project_id = project(&admin);
    let member = Person::add(&admin);
    let path = format!("/v1/projects/{project_id}/memberships");
    admin.made(&path, &json!({"userId": member.id, "role": "viewer"}), 201);
    let read = format!("/v1/projects/{project_id}");
    let asking = member.at(&config);
    assert_eq!(asking.get(&read).unwrap().status, 200);
    let mut sql = postgres::Client::connect(&cluster.url(), NoTls).unwrap();
    let mut looking = postgres::Client::connect(&cluster.url(), NoTls).unwrap();
    let mut lock = sql.transaction().unwrap();
    lock.batch_execute("select from audit_writers for update")
        .unwrap();
    let over = AtomicBool::new(false);
    let hung = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let answer = asking.get(&read).unwrap();
                assert_eq!(answer.status, 503, "{answer:?}");
                assert_eq!(answer.body["error"]["code"], "audit-unavailable");
            }
        });
        // The writer tries again and again: nothing that a restart would mend.
        manager.is_fed_for(LONG);
        let hung = eventually("the writer to wait for the lock", || {
            waiting(&mut looking).first().copied()
        });
        send(hung, Signal::STOP);
        over.store(true, Ordering::Relaxed);
        hung
    });
    lock.rollback().unwrap();
    let part = manager.starves();
    assert!(part.contains("audit writer"), "{part}");
    says_stuck(&admin, "audit writer");
    let server = restarted(server, &config, &manager);
    eventually("a decision to be recorded again", || {
        (asking.get(&read).unwrap().status == 200).then_some(())
    });
    drop(server);
    send(hung, Signal::CONT);
}
