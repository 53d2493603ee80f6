//! Databases that are away, stand still or lose an answer; slots that are lost; queues that are full.
//! As many rows as decisions that took effect, whatever happens.

use super::support::{count, decision, denied, soon, verify, verify_at, writer};
use crate::database_faults::{cluster, signal, stop_answering};
use crate::harness::{Database, eventually};
use agent_runtime::error::Code;
use agent_runtime::ids::Clock;
use postgres::{Client, NoTls};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use uuid::Uuid;

/// Stands between a writer and its database, and loses what it is told to.
struct Between {
    directory: tempfile::TempDir,
    loses: Arc<Mutex<Option<Loss>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Loss {
    /// The statement does not arrive.
    Statement,
    /// It is done, and nobody is told.
    Answer,
}

impl Between {
    fn new(socket: PathBuf) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let loses = Arc::new(Mutex::new(None));
        let losing = Arc::clone(&loses);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
                pass(&client, &server, &losing, Loss::Statement);
                pass(&server, &client, &losing, Loss::Answer);
            }
        });
        Self { directory, loses }
    }

    fn lose(&self, what: Loss) {
        *self.loses.lock().unwrap() = Some(what);
    }

    fn has_lost(&self) -> bool {
        self.loses.lock().unwrap().is_none()
    }
}

/// Passes bytes on until one is to be lost, and then nothing more in either direction.
fn pass(from: &UnixStream, to: &UnixStream, loses: &Arc<Mutex<Option<Loss>>>, own: Loss) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let loses = Arc::clone(loses);
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let bytes = &buffer[..count];
            // The prepared statement is bound with the rows' texts; it ends with its tag.
            let mark: &[u8] = match own {
                Loss::Statement => b"project:mark",
                Loss::Answer => b"INSERT 0 ",
            };
            let is_it = bytes.windows(mark.len()).any(|window| window == mark);
            let mut losing = loses.lock().unwrap();
            if is_it && *losing == Some(own) {
                *losing = None;
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                return;
            }
            drop(losing);
            if to.write_all(bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// The database's socket and the connection string with another directory in its place.
fn through(url: &str, directory: &Path) -> (PathBuf, String) {
    let config: postgres::Config = url.parse().unwrap();
    let postgres::config::Host::Unix(socket) = &config.get_hosts()[0] else {
        panic!("{url} names no socket");
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap();
    let database = config.get_dbname().unwrap();
    (
        socket.join(format!(".s.PGSQL.{port}")),
        format!(
            "postgres:///{database}?host={}&user={user}",
            directory.display()
        ),
    )
}

#[test]
fn a_commit_whose_answer_is_lost_is_neither_forgotten_nor_repeated() {
    for loss in [Loss::Answer, Loss::Statement] {
        let database = Database::migrated();
        let (socket, _) = through(&database.url(), Path::new("/"));
        let between = Between::new(socket);
        let (_, url) = through(&database.url(), between.directory.path());
        let (audit, _running) = writer(&url, &Clock::system(), |_| {});
        let leave = || {
            audit
                .enqueue(decision(Uuid::from_u128(1), "project:mark"))
                .unwrap()
        };
        let first = leave();
        audit.write_waiting();
        first.wait(soon()).unwrap();
        for round in 0..5 {
            between.lose(loss);
            let (tell, told) = mpsc::channel();
            let ticket = leave();
            ticket.then(move |result| tell.send(result.is_ok()).unwrap());
            match round % 2 {
                0 => audit.write_waiting(),
                _ => audit.wake_writer(),
            }
            ticket.wait(soon()).unwrap();
            assert_eq!(told.iter().collect::<Vec<_>>(), [true], "called once");
            assert!(between.has_lost(), "round {round}");
        }
        assert_eq!(count(&database), 6);
        assert_eq!(verify(&database, &[]).faults, []);
        let slots: i64 = database
            .client()
            .query_one("select count(*) from audit_writers", &[])
            .unwrap()
            .get(0);
        assert_eq!(slots, 1, "it takes its own slot again");
    }
}

#[test]
fn a_slot_that_was_taken_over_is_not_written_to() {
    let database = Database::migrated();
    let (audit, _running) = writer(&database.url(), &Clock::system(), |_| {});
    let record = || {
        let ticket = audit
            .record(decision(Uuid::from_u128(1), "project:a"))
            .unwrap();
        ticket.wait(soon()).unwrap();
    };
    record();
    let taken =
        "update audit_writers set epoch = epoch + 1, leased_until = now() + interval '1 hour'";
    database.client().batch_execute(taken).unwrap();
    record();
    record();
    let places: Vec<(i32, i64)> = database
        .client()
        .query(
            "select slot, position from audit_decisions order by slot, position",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    assert_eq!(places, [(1, 1), (2, 1), (2, 2)]);
    assert_eq!(verify(&database, &[]).faults, []);
}

#[test]
fn slots_are_used_again_and_their_chains_go_on() {
    let database = Database::migrated();
    for round in 1..4 {
        let (audit, running) = writer(&database.url(), &Clock::system(), |_| {});
        audit
            .record(decision(Uuid::from_u128(1), "project:a"))
            .unwrap();
        assert!(running.stop(soon()), "what waits is written by a stop");
        assert_eq!(count(&database), round);
        let refused = audit
            .record(decision(Uuid::from_u128(1), "project:a"))
            .err();
        assert_eq!(refused.unwrap().code(), Code::AuditUnavailable);
    }
    // One that died: its slot is taken when its lease has run out.
    let short =
        |options: &mut agent_runtime::audit::Options| options.lease = Duration::from_millis(10);
    let (dead, running) = writer(&database.url(), &Clock::system(), short);
    dead.record(decision(Uuid::from_u128(1), "project:a"))
        .unwrap()
        .wait(soon())
        .unwrap();
    let report = verify(&database, &[]);
    assert_eq!(
        (report.faults.len(), report.chains, report.decisions),
        (0, 2, 4)
    );
    drop(running);
}

#[test]
fn a_slot_that_a_clock_ahead_wrote_to_is_left_alone_until_its_time_has_come() {
    let database = Database::migrated();
    let write = |ahead_s: u64| {
        let clock = Clock::system();
        clock.advance(Duration::from_secs(ahead_s));
        let (audit, running) = writer(&database.url(), &clock, |_| {});
        audit
            .record(decision(Uuid::from_u128(1), "project:a"))
            .unwrap();
        assert!(running.stop(soon()));
    };
    write(3600);
    write(0);
    // Less than a minute is what two clocks may differ by.
    write(30);
    write(0);
    let query = "select slot, decided_at < now() + interval '1 minute' from audit_decisions
                 order by slot, position";
    let rows = database.client().query(query, &[]).unwrap();
    let rows: Vec<(i32, bool)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(1, false), (2, true), (2, true), (2, true)]);
    // Its time has come: the same chain, of which nothing tells the time but its writer's row.
    let come = "update audit_writers set decided_at = now() + interval '50 seconds' where slot = 1";
    database.client().batch_execute(come).unwrap();
    write(0);
    let query = "select count(*) from audit_decisions where slot = 1";
    let count: i64 = database.client().query_one(query, &[]).unwrap().get(0);
    assert_eq!(count, 2);
}

/// Rows in a database of the test's own cluster.
fn rows(url: &str) -> usize {
    let mut client = Client::connect(url, NoTls).unwrap();
    let row = client.query_one("select count(*) from audit_decisions", &[]);
    usize::try_from(row.unwrap().get::<_, i64>(0)).unwrap()
}

fn migrate(url: &str) {
    let options = super::support::store_options(url);
    let manager = agent_runtime::store::connect::Manager::new(&options).unwrap();
    agent_runtime::store::migrations::migrate(&manager, &crate::harness::log()).unwrap();
}

#[test]
fn restarts_under_load_lose_and_double_nothing() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut cluster = cluster(&place.path().join("d"));
    let url = cluster.url();
    migrate(&url);
    let (audit, running) = writer(&url, &Clock::system(), |_| {});
    let (ends, committed, called) = (
        AtomicBool::new(false),
        AtomicUsize::new(0),
        Arc::new(AtomicUsize::new(0)),
    );
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (audit, ends, committed, called) = (&audit, &ends, &committed, Arc::clone(&called));
            scope.spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    let ticket = audit
                        .enqueue(denied(Uuid::from_u128(thread), "project:a"))
                        .unwrap();
                    let called = Arc::clone(&called);
                    ticket.then(move |_| {
                        called.fetch_add(1, Ordering::Relaxed);
                    });
                    match thread % 2 {
                        0 => audit.wake_writer(),
                        _ => audit.write_waiting(),
                    }
                    ticket.wait(soon()).unwrap();
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            let before = committed.load(Ordering::Relaxed);
            eventually("decisions", || {
                (committed.load(Ordering::Relaxed) > before + 100).then_some(())
            });
            cluster
                .restart()
                .unwrap_or_else(|failure| panic!("{failure}"));
        }
        let before = committed.load(Ordering::Relaxed);
        eventually("decisions", || {
            (committed.load(Ordering::Relaxed) > before + 100).then_some(())
        });
        ends.store(true, Ordering::Relaxed);
    });
    assert!(running.stop(soon()));
    let committed = committed.into_inner();
    assert_eq!(rows(&url), committed);
    assert_eq!(called.load(Ordering::Relaxed), committed);
    assert_eq!(verify_at(&url, &[]).faults, []);
    cluster.stop();
}

#[test]
fn a_database_that_stands_still_fails_its_decisions_in_time() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cluster = cluster(&place.path().join("d"));
    let url = cluster.url();
    migrate(&url);
    let (audit, running) = writer(&url, &Clock::system(), |options| {
        // Time enough to fill the queue on a busy machine.
        options.patience = Duration::from_secs(3);
        options.queue_length = 5;
    });
    let record = || audit.record(decision(Uuid::from_u128(1), "project:a"));
    let mut recorded = 1;
    eventually("the first decision", || {
        recorded += 1;
        record().unwrap().wait(soon()).ok()
    });
    let before = audit.stats();
    let stopped = stop_answering(cluster.pid().unwrap());
    let (tell, told) = mpsc::channel();
    let tell_all = |ticket: &agent_runtime::audit::Ticket| {
        let tell = tell.clone();
        ticket.then(move |result| tell.send(result.map_err(|error| error.code())).unwrap());
    };
    tell_all(&record().unwrap());
    eventually("the writer to take the first", || {
        (audit.stats().queued == 0).then_some(())
    });
    // It stands still with that one, so the others wait.
    for _ in 0..5 {
        tell_all(&record().unwrap());
    }
    let full = record().err().unwrap();
    assert_eq!(full.code(), Code::AuditUnavailable);
    assert!(full.message().contains("audit"), "{full}");
    drop(tell);
    let outcomes: Vec<_> = told.iter().collect();
    assert_eq!(outcomes, [Err(Code::AuditUnavailable); 6], "each once");
    let stats = audit.stats();
    assert_eq!(stats.queued, 0, "nobody waits for them, so they are gone");
    let late = stats.rows_late - before.rows_late;
    assert_eq!((late, stats.rows_overflowed), (6, 1));
    signal(&stopped, Signal::CONT);
    eventually("the database to take decisions again", || {
        recorded += 1;
        record().unwrap().wait(soon()).ok()
    });
    assert!(running.stop(soon()));
    // What the writer had taken may have been written all the same.
    assert!((2..=recorded + 5).contains(&rows(&url)));
    assert_eq!(verify_at(&url, &[]).faults, []);
    cluster.stop();
}
