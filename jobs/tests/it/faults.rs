//! Real threads, real connections that are ended under them.

use crate::harness::{schema, take_a_moment, until};
use jobs::{Backoff, Database, NewJob, Outcome, QueueOptions, Runner, enqueue_many};
use postgres::NoTls;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Who is inside a handler, per job and per key, and how often each job came to its end.
#[derive(Default)]
struct Seen {
    inside: HashMap<i64, u32>,
    of_key: HashMap<String, u32>,
    calls: HashMap<i64, u32>,
    faults: Vec<String>,
}

const KEYS: i64 = 5;
const CAP: u32 = 2;

fn options() -> QueueOptions {
    QueueOptions {
        threads: 3,
        prefetch: 20,
        poll: Duration::from_millis(20),
        backoff: Backoff {
            first: Duration::from_millis(1),
            most: Duration::from_millis(5),
        },
        ..QueueOptions::default()
    }
}

fn start(database: Database, seen: &Arc<Mutex<Seen>>) -> Runner {
    let seen = Arc::clone(seen);
    Runner::builder(database)
        .queue("q", options())
        // Longer than a busy machine holds a handler up: it would be begun again beside itself.
        .lease(Duration::from_secs(6))
        .watch(Duration::from_millis(50))
        .handle_named("q", "n", move |claimed| {
            let key = claimed.key().map(ToString::to_string);
            let calls = {
                let mut seen = seen.lock().unwrap();
                let inside = seen.inside.entry(claimed.id()).or_default();
                *inside += 1;
                if *inside > 1 {
                    seen.faults
                        .push(format!("job {} runs twice at once", claimed.id()));
                }
                if let Some(key) = &key {
                    let busy = seen.of_key.entry(key.clone()).or_default();
                    *busy += 1;
                    if *busy > CAP {
                        seen.faults.push(format!("key {key} is over its cap"));
                    }
                }
                let calls = seen.calls.entry(claimed.id()).or_default();
                *calls += 1;
                *calls
            };
            take_a_moment();
            let mut seen = seen.lock().unwrap();
            *seen.inside.entry(claimed.id()).or_default() -= 1;
            if let Some(key) = &key {
                *seen.of_key.entry(key.clone()).or_default() -= 1;
            }
            if claimed.id() % 7 == 0 && calls == 1 {
                Outcome::retry("the first time never works")
            } else {
                Outcome::Done
            }
        })
        .start()
        .unwrap()
}

#[test]
fn two_processes_whose_connections_are_ended_again_and_again_lose_nothing_and_run_nothing_twice_at_once()
 {
    let schema = schema();
    let mut client = schema.client();
    let jobs: Vec<NewJob> = (0..1200_i64)
        .map(|n| {
            let job = NewJob::named("q", "n", n.to_string()).max_attempts(100);
            if n % 2 == 0 {
                job
            } else {
                job.key(format!("k{}", n % KEYS), CAP)
            }
        })
        .collect();
    let ids: Vec<i64> = enqueue_many(&mut client, &jobs)
        .unwrap()
        .iter()
        .map(|one| one.id)
        .collect();
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let mut runners = vec![
        start(schema.database(5), &seen),
        start(schema.database(5), &seen),
    ];
    let calls = || seen.lock().unwrap().calls.values().sum::<u32>();
    for round in 0..25 {
        // All are over after 1,200 calls or more, these after 1,000.
        until("more has begun", || calls() >= 40 * round);
        schema.terminate_others(&mut client);
        if round == 10 {
            // One process is restarted in the middle.
            runners.pop().unwrap().stop(Duration::from_secs(5));
            runners.push(start(schema.database(5), &seen));
        }
    }
    until("all are over", || {
        schema.count(&mut client, "SELECT count(*) FROM job_jobs") == 0
    });
    for runner in runners {
        runner.stop(Duration::from_secs(5));
    }
    let seen = seen.lock().unwrap();
    assert!(
        seen.faults.is_empty(),
        "{:?}",
        &seen.faults[..seen.faults.len().min(5)]
    );
    assert!(
        ids.iter().all(|id| seen.calls.contains_key(id)),
        "a job never ran"
    );
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_dead"),
        0
    );
    jobs::protocol::claim(&mut client, "q", "w", 1, Duration::from_secs(1), true).unwrap();
    assert_eq!(
        schema.count(
            &mut client,
            "SELECT coalesce(sum(abs(in_flight)), 0)::bigint FROM job_keys"
        ),
        0
    );
}

#[test]
fn a_lease_that_could_not_be_renewed_while_the_database_was_away_stays_its_holders() {
    let schema = schema();
    let mut client = schema.client();
    let lease = Duration::from_secs(3);
    let (starting, starts) = crossbeam_channel::unbounded();
    let (going, may_end) = crossbeam_channel::bounded::<()>(0);
    let start_one = || {
        let (starting, may_end) = (starting.clone(), may_end.clone());
        Runner::builder(schema.database(5))
            .queue("q", options())
            .lease(lease)
            .watch(Duration::from_millis(50))
            .handle_named("q", "n", move |claimed| {
                starting.send(claimed.token()).unwrap();
                // Disconnected when it may end.
                let _ = may_end.recv();
                Outcome::Done
            })
            .start()
            .unwrap()
    };
    let runners = [start_one(), start_one()];
    enqueue_many(&mut client, &[NewJob::named("q", "n", "1")]).unwrap();
    let token = starts.recv_timeout(Duration::from_secs(30)).unwrap();
    let mut tx = client.transaction().unwrap();
    tx.batch_execute("LOCK TABLE job_leases IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    until("the lease has run out twice over", || {
        let sql = "SELECT clock_timestamp() > expires_at + $1 * interval '1 ms' FROM job_leases";
        let row = tx.query_one(sql, &[&(lease.as_millis() as f64)]).unwrap();
        row.get(0)
    });
    assert!(!token.lost(), "nobody has said that it is lost");
    tx.commit().unwrap();
    let expiry = "SELECT (extract(epoch FROM max(expires_at)) * 1000)::bigint FROM job_leases";
    let first = schema.count(&mut client, expiry);
    until("it is renewed two leases long", || {
        schema.count(&mut client, expiry) > first + 6_000
    });
    assert!(!token.lost());
    assert!(starts.is_empty(), "it was begun again");
    drop(going);
    until("it is done", || {
        schema.count(&mut client, "SELECT count(*) FROM job_jobs") == 0
    });
    for runner in runners {
        runner.stop(Duration::from_secs(5));
    }
    assert!(starts.is_empty(), "it was begun again");
}

#[test]
fn a_runner_starts_and_stops_without_a_database() {
    let schema = schema();
    let mut away = schema.config.clone();
    away.dbname("there is no such database")
        .connect_timeout(Duration::from_secs(1));
    let manager = r2d2_postgres::PostgresConnectionManager::new(away, postgres::NoTls);
    let pool = r2d2::Pool::builder()
        .max_size(2)
        .connection_timeout(Duration::from_millis(100))
        .error_handler(Box::new(r2d2::NopErrorHandler))
        .build_unchecked(manager);
    let failed = Arc::new(AtomicU32::new(0));
    let log = slog::Logger::root(Failures(Arc::clone(&failed)), slog::o!());
    let runner = Runner::builder(Database::new(pool, |client| client))
        .log(log)
        .queue("q", options())
        .start()
        .unwrap();
    until("claims have failed", || failed.load(Ordering::SeqCst) > 2);
    assert_eq!(runner.stop(Duration::from_secs(5)).unfinished, 0);
}

/// Counts the failures of claims.
struct Failures(Arc<AtomicU32>);

impl slog::Drain for Failures {
    type Ok = ();
    type Err = slog::Never;

    fn log(&self, record: &slog::Record<'_>, _: &slog::OwnedKVList) -> Result<(), slog::Never> {
        if record.msg().to_string() == "cannot claim jobs" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[test]
fn a_connection_that_ended_under_a_claim_is_not_lent_again() {
    let schema = schema();
    let mut client = schema.client();
    // Of all claims that find something, every other one loses its connection.
    client
        .batch_execute(
            "CREATE SEQUENCE claims;
             CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF nextval('claims') % 2 = 1 THEN
                     PERFORM pg_terminate_backend(pg_backend_pid());
                 END IF;
                 RETURN NULL;
             END $$;
             CREATE TRIGGER cut BEFORE INSERT ON job_leases FOR EACH STATEMENT EXECUTE FUNCTION cut()",
        )
        .unwrap();
    let pool = r2d2::Pool::builder()
        .max_size(4)
        .test_on_check_out(false)
        .build(r2d2_postgres::PostgresConnectionManager::new(
            schema.config.clone(),
            NoTls,
        ))
        .unwrap();
    let failed = Arc::new(AtomicU32::new(0));
    let runner = Runner::builder(Database::new(pool, |client| client))
        .log(slog::Logger::root(
            Failures(Arc::clone(&failed)),
            slog::o!(),
        ))
        .queue("q", options())
        .handle_named("q", "n", |_| Outcome::Done)
        .start()
        .unwrap();
    for round in 1..=10 {
        enqueue_many(&mut client, &[NewJob::named("q", "n", "1")]).unwrap();
        runner.handle().wake("q");
        until("it is done", || {
            schema.count(&mut client, "SELECT count(*) FROM job_jobs") == 0
        });
        assert_eq!(failed.load(Ordering::SeqCst), round, "lent again");
    }
    runner.stop(Duration::from_secs(5));
}
