//! The runner's threads: outcomes, wake-ups, cancels, stop.

mod busy;
mod vacuum;

use crate::harness::{Schema, schema, until};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use jobs::{Backoff, Builder, Cancelled, Job, NewJob, Outcome, QueueOptions, Runner, Stopped};
use jobs::{cancel, dead_jobs, enqueue, enqueue_many};
use postgres::Client;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize)]
struct Task(u32);

impl Job for Task {
    const NAME: &'static str = "task";
    const QUEUE: &'static str = "q";
    const MAX_ATTEMPTS: u32 = 3;
}

fn options() -> QueueOptions {
    QueueOptions {
        threads: 2,
        poll: Duration::from_millis(20),
        backoff: Backoff {
            first: Duration::from_millis(1),
            most: Duration::from_millis(5),
        },
        ..QueueOptions::default()
    }
}

fn builder(schema: &Schema) -> Builder {
    Runner::builder(schema.database(6)).queue("q", options())
}

fn add(client: &mut Client, number: u32) -> i64 {
    enqueue(client, NewJob::of(&Task(number)).unwrap())
        .unwrap()
        .id
}

fn rows(schema: &Schema) -> i64 {
    schema.count(&mut schema.client(), "SELECT count(*) FROM job_jobs")
}

/// (task, attempt) of every call of a handler.
type Calls = Arc<Mutex<Vec<(u32, u32)>>>;

/// Each task has an outcome of its own.
fn every_outcome(calls: &Calls, task: u32, attempt: u32) -> Outcome {
    let turn = {
        let mut calls = calls.lock().unwrap();
        calls.push((task, attempt));
        calls.iter().filter(|(one, _)| *one == task).count()
    };
    match (task, turn) {
        (1, 1) => Outcome::retry("first"),
        (2, 1..=5) => Outcome::Snooze {
            after: Duration::ZERO,
        },
        (3, _) => Outcome::dead("hopeless"),
        (4, _) => panic!("number {task}"),
        (5, 1) => Outcome::EndedByHandler,
        _ => Outcome::Done,
    }
}

#[test]
fn every_outcome_does_what_it_says() {
    let schema = schema();
    let mut client = schema.client();
    let calls = Calls::default();
    let seen = Arc::clone(&calls);
    let runner = builder(&schema)
        .handle(move |claimed, task: Task| every_outcome(&seen, task.0, claimed.attempt()))
        .start()
        .unwrap();
    enqueue_many(
        &mut client,
        &(0..=5)
            .map(|n| NewJob::of(&Task(n)).unwrap())
            .collect::<Vec<_>>(),
    )
    .unwrap();
    enqueue(&mut client, NewJob::named("q", "task", "\"no number\"")).unwrap();
    runner.handle().wake("q");
    until("all have ended", || rows(&schema) == 0);
    until("all is counted", || {
        let stats = runner.handle().stats("q").unwrap();
        (stats.dead, stats.done, stats.running, stats.queued) == (3, 4, 0, 0)
    });
    let stats = runner.handle().stats("q").unwrap();
    assert_eq!((stats.retried, stats.snoozed, stats.lost), (4, 5, 0));
    assert_eq!(stats.claimed, 16);
    let mut calls = calls.lock().unwrap().clone();
    calls.sort();
    let of = |task| {
        calls
            .iter()
            .filter(|(one, _)| *one == task)
            .map(|(_, attempt)| *attempt)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of(1), of(2), of(4), of(5)),
        (vec![1, 2], vec![1; 6], vec![1, 2, 3], vec![1, 2])
    );
    let dead = dead_jobs(&mut client, "q", 0, 10).unwrap();
    let mut reasons: Vec<String> = dead.into_iter().map(|job| job.reason).collect();
    reasons.sort();
    assert_eq!(reasons[..2], ["hopeless", "panicked: number 4"]);
    assert!(reasons[2].starts_with("the payload does not read"));
    assert_eq!(
        runner.stop(SOON),
        Stopped {
            handed_back: 0,
            unfinished: 0,
            leases_left: false
        }
    );
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_leases"),
        0
    );
}

#[test]
fn a_job_nobody_handles_waits_for_somebody_who_does() {
    let schema = schema();
    enqueue(
        &mut schema.client(),
        NewJob::named("q", "unknown", "1").max_attempts(1),
    )
    .unwrap();
    let runner = builder(&schema).start().unwrap();
    until("it is put off", || {
        runner.handle().stats("q").unwrap().snoozed == 1
    });
    assert_eq!(rows(&schema), 1);
    assert!(
        builder(&schema)
            .handle_named("other", "n", |_| Outcome::Done)
            .start()
            .is_err()
    );
    let none = QueueOptions {
        threads: 0,
        ..options()
    };
    assert!(
        Runner::builder(schema.database(1))
            .queue("q", none)
            .start()
            .is_err()
    );
}

#[test]
fn a_wake_starts_a_job_at_once_and_a_freed_key_its_next_one() {
    let schema = schema();
    let (started, starts) = unbounded();
    let runner = Runner::builder(schema.database(6))
        .queue(
            "q",
            QueueOptions {
                poll: NEVER,
                ..options()
            },
        )
        .handle(move |_, task: Task| {
            started.send(task.0).unwrap();
            Outcome::Done
        })
        .start()
        .unwrap();
    let mut client = schema.client();
    // The first look, before anything is there, is not the wake's doing.
    until("it has looked", || {
        schema.count(&mut client, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%job_claim%' AND state = 'idle' AND application_name = current_setting('application_name')") > 0
    });
    let jobs: Vec<NewJob> = (0..3)
        .map(|n| NewJob::of(&Task(n)).unwrap().key("k", 1))
        .collect();
    // A look that was prepared, and that a busy machine carries out only now, is not the wake's
    // doing either.
    let is_woken = (0..5).any(|_| {
        enqueue_many(&mut client, &jobs).unwrap();
        let is_asleep = starts.is_empty();
        runner.handle().wake("q");
        assert_eq!(
            (0..3)
                .map(|_| starts.recv_timeout(SOON).unwrap())
                .collect::<Vec<_>>(),
            [0, 1, 2]
        );
        until("all have ended", || rows(&schema) == 0);
        is_asleep
    });
    assert!(is_woken, "jobs start without a wake");
    runner.stop(SOON);
}

/// A runner whose handler reports the start, then waits until it may end or is told that it lost.
struct Blocking {
    runner: Runner,
    starts: Receiver<u32>,
    go_on: Sender<()>,
    lost: Receiver<(bool, bool)>,
}

fn blocking(builder: Builder) -> Blocking {
    let (started, starts) = unbounded();
    let (go_on, may_end) = bounded(100);
    let (losing, lost) = unbounded();
    let runner = builder
        .handle(move |claimed, task: Task| {
            let (tell, notified) = bounded(1);
            claimed.token().on_lost(move || tell.send(()).unwrap());
            started.send(task.0).unwrap();
            crossbeam_channel::select! {
                recv(may_end) -> _ => {}
                recv(notified) -> _ => losing.send((claimed.lost(), claimed.cancelled())).unwrap(),
            }
            Outcome::Done
        })
        .start()
        .unwrap();
    Blocking {
        runner,
        starts,
        go_on,
        lost,
    }
}

#[test]
fn without_prefetch_no_more_is_claimed_than_can_start() {
    let schema = schema();
    let mut client = schema.client();
    for number in 0..5 {
        add(&mut client, number);
    }
    let part = blocking(builder(&schema));
    part.starts.recv_timeout(SOON).unwrap();
    part.starts.recv_timeout(SOON).unwrap();
    let running = "SELECT count(*) FROM job_jobs WHERE lease_id IS NOT NULL";
    assert_eq!(schema.count(&mut client, running), 2);
    let stats = part.runner.handle().stats("q").unwrap();
    assert_eq!((stats.claimed, stats.running, stats.queued), (2, 2, 0));
    for _ in 0..5 {
        part.go_on.send(()).unwrap();
    }
    until("all are done", || rows(&schema) == 0);
}

#[test]
fn a_cancel_reaches_a_running_job_in_this_process_and_in_another() {
    let schema = schema();
    let mut client = schema.client();
    for notified in [true, false] {
        let watch = if notified {
            NEVER
        } else {
            Duration::from_millis(20)
        };
        let part = blocking(builder(&schema).watch(watch));
        let id = add(&mut client, 1);
        part.starts.recv_timeout(SOON).unwrap();
        assert_eq!(cancel(&mut client, id).unwrap(), Cancelled::Running);
        if notified {
            assert!(part.runner.handle().cancelled(id));
            assert!(!part.runner.handle().cancelled(id + 1));
        }
        assert_eq!(part.lost.recv_timeout(SOON).unwrap(), (true, true));
        until("it is gone", || rows(&schema) == 0);
        part.runner.stop(SOON);
    }
}

#[test]
fn a_job_that_is_begun_again_here_is_not_told_of_the_lease_that_was_lost() {
    let schema = schema();
    let mut client = schema.client();
    let (started, starts) = unbounded();
    let (release, released) = bounded::<()>(2);
    let options = QueueOptions {
        threads: 3,
        ..options()
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .watch(Duration::from_millis(20))
        .handle(move |claimed, task: Task| {
            let token = claimed.token();
            started.send(token.clone()).unwrap();
            if task.0 == 2 {
                until("it is cancelled", || token.lost());
            } else {
                // This handler does not heed that it lost: it still runs when the next begins.
                released.recv().unwrap();
            }
            Outcome::Done
        })
        .start()
        .unwrap();
    add(&mut client, 1);
    let first = starts.recv_timeout(SOON).unwrap();
    client
        .batch_execute("UPDATE job_leases SET expires_at = now() - interval '1 s'")
        .unwrap();
    jobs::protocol::rescue(&mut client, 10).unwrap();
    let second = starts.recv_timeout(SOON).unwrap();
    until("the first is told", || first.lost());
    // Each cancel is found by a later round of the watch, which finds the first lease gone, too.
    for _ in 0..3 {
        let id = add(&mut client, 2);
        let other = starts.recv_timeout(SOON).unwrap();
        assert_eq!(cancel(&mut client, id).unwrap(), Cancelled::Running);
        until("the other is told", || other.lost());
        until("the other is gone", || rows(&schema) == 1);
    }
    assert!(!second.lost());
    assert_eq!(rows(&schema), 1);
    release.send(()).unwrap();
    release.send(()).unwrap();
    until("it is done", || rows(&schema) == 0);
    runner.stop(SOON);
}

#[test]
fn a_lost_lease_is_told_and_what_the_handler_then_says_is_fenced_off() {
    let schema = schema();
    let mut client = schema.client();
    let part = blocking(builder(&schema).watch(Duration::from_millis(20)));
    add(&mut client, 1);
    part.starts.recv_timeout(SOON).unwrap();
    client
        .batch_execute("UPDATE job_leases SET expires_at = now() - interval '1 s'")
        .unwrap();
    // What another process's rescuer does; the claim by this same runner follows.
    jobs::protocol::rescue(&mut client, 10).unwrap();
    assert_eq!(part.lost.recv_timeout(SOON).unwrap(), (true, false));
    part.starts.recv_timeout(SOON).unwrap();
    until("the first ending is fenced off", || {
        part.runner.handle().stats("q").unwrap().lost == 1
    });
    assert_eq!(rows(&schema), 1);
    part.go_on.send(()).unwrap();
    until("the second is done", || rows(&schema) == 0);
}

#[test]
fn leases_are_renewed_while_a_job_runs_and_rescued_when_a_process_is_gone() {
    let schema = schema();
    let mut client = schema.client();
    add(&mut client, 1);
    let gone = jobs::protocol::claim(
        &mut client,
        "q",
        "gone",
        1,
        Duration::from_millis(50),
        false,
    )
    .unwrap();
    assert_eq!(gone.len(), 1);
    // A busy machine renews it in time, too.
    let part = blocking(builder(&schema).lease(Duration::from_secs(5)));
    part.starts.recv_timeout(SOON).unwrap();
    let started = Instant::now();
    let expiry = "SELECT (extract(epoch FROM max(expires_at)) * 1000)::bigint FROM job_leases";
    let first = schema.count(&mut client, expiry);
    until("it is renewed two leases long", || {
        schema.count(&mut client, expiry) > first + 10_000
    });
    assert!(started.elapsed() >= Duration::from_secs(6));
    assert!(part.lost.try_recv().is_err() && part.starts.try_recv().is_err());
    part.go_on.send(()).unwrap();
    until("it is done", || rows(&schema) == 0);
}

#[test]
fn stop_lets_running_jobs_finish_and_gives_the_rest_back() {
    let schema = schema();
    let mut client = schema.client();
    for number in 0..20 {
        add(&mut client, number);
    }
    let part = blocking(Runner::builder(schema.database(6)).queue(
        "q",
        QueueOptions {
            prefetch: 10,
            ..options()
        },
    ));
    part.starts.recv_timeout(SOON).unwrap();
    part.starts.recv_timeout(SOON).unwrap();
    until("the prefetch is full", || {
        part.runner.handle().stats("q").unwrap().queued >= 10
    });
    let (go_on, handle) = (part.go_on.clone(), part.runner.handle());
    let ending = std::thread::Builder::new().spawn(move || {
        until("the stop has begun", || handle.is_stopping());
        go_on.send(()).unwrap();
        go_on.send(()).unwrap();
    });
    let stopped = part.runner.stop(SOON);
    ending.unwrap().join().unwrap();
    assert!(part.starts.is_empty(), "others start after a stop");
    assert_eq!(stopped.unfinished, 0);
    assert!(stopped.handed_back >= 10, "{stopped:?}");
    let waiting =
        "SELECT count(*) FROM job_jobs WHERE lease_id IS NULL AND attempt = 0 AND run_at <= now()";
    assert_eq!(
        (rows(&schema), schema.count(&mut client, waiting)),
        (18, 18)
    );
}

#[test]
fn stop_gives_back_what_does_not_finish_by_the_deadline_and_tells_it() {
    let schema = schema();
    let mut client = schema.client();
    add(&mut client, 1);
    let part = blocking(builder(&schema));
    part.starts.recv_timeout(SOON).unwrap();
    let stopped = part.runner.stop(Duration::from_millis(100));
    assert_eq!(
        stopped,
        Stopped {
            handed_back: 1,
            unfinished: 1,
            leases_left: false
        }
    );
    assert_eq!(part.lost.recv_timeout(SOON).unwrap(), (true, false));
    let next = blocking(builder(&schema));
    next.starts.recv_timeout(SOON).unwrap();
    next.go_on.send(()).unwrap();
    until("it is done elsewhere", || rows(&schema) == 0);
}

#[test]
fn a_handler_can_end_in_the_transaction_of_its_effect() {
    let schema = schema();
    let mut client = schema.client();
    client
        .batch_execute("CREATE TABLE effect (job bigint, note text)")
        .unwrap();
    let config = schema.config.clone();
    let calls = AtomicU32::new(0);
    let runner = builder(&schema)
        .handle(move |claimed, _: Task| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            let mut client = config.connect(postgres::NoTls).unwrap();
            let mut tx = client.transaction().unwrap();
            tx.execute(
                "INSERT INTO effect VALUES ($1, $2)",
                &[&claimed.id(), &format!("call {call}")],
            )
            .unwrap();
            if call == 2 {
                cancel(&mut client_of(&config), claimed.id()).unwrap();
            }
            let ended = match call {
                0 => claimed.snooze_in(&mut tx, Duration::ZERO),
                _ => claimed.complete_in(&mut tx),
            };
            match (call, ended) {
                // The effect of a transaction that is not committed is not there, nor is the end of the job.
                (1, Ok(())) => tx.rollback().unwrap(),
                (2, Err(jobs::Error::Cancelled)) => return Outcome::retry("cancelled"),
                (_, Ok(())) => tx.commit().unwrap(),
                other => panic!("{other:?}"),
            }
            Outcome::EndedByHandler
        })
        .start()
        .unwrap();
    add(&mut client, 1);
    until("it was called three times and is gone", || {
        rows(&schema) == 0
    });
    assert_eq!(schema.count(&mut client, "SELECT count(*) FROM effect"), 1);
    until("all is counted", || {
        runner.handle().stats("q").unwrap().cancelled == 1
    });
    let stats = runner.handle().stats("q").unwrap();
    assert_eq!((stats.done, stats.retried, stats.claimed), (1, 1, 3));
}

fn client_of(config: &postgres::Config) -> Client {
    config.connect(postgres::NoTls).unwrap()
}

#[test]
fn serial_keys_leave_threads_to_the_others_however_many_there_are() {
    let schema = schema();
    let mut client = schema.client();
    let (begun, begins) = unbounded();
    let (go_on, goes_on) = unbounded::<()>();
    let many = QueueOptions {
        threads: 4,
        serial_most: Some(2),
        ..options()
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", many)
        .handle(move |claimed, _: Task| {
            let key = claimed.key().unwrap().to_owned();
            begun.send(key.clone()).unwrap();
            if key.starts_with("slow") {
                let _ = goes_on.recv();
            }
            Outcome::Done
        })
        .start()
        .unwrap();
    let add = |client: &mut Client, key: &str, cap| {
        let job = NewJob::of(&Task(0)).unwrap().key(key, cap);
        enqueue(client, job).unwrap();
    };
    for number in 0..6 {
        add(&mut client, &format!("slow{number}"), 1);
    }
    for _ in 0..2 {
        assert!(begins.recv_timeout(SOON).unwrap().starts_with("slow"));
    }
    for _ in 0..3 {
        add(&mut client, "quick", 2);
        assert_eq!(begins.recv_timeout(SOON).unwrap(), "quick");
    }
    until("the slow ones alone run", || {
        runner.handle().stats("q").unwrap().running == 2
    });
    // The others have their turn as these end.
    drop(go_on);
    for _ in 2..6 {
        assert!(begins.recv_timeout(SOON).unwrap().starts_with("slow"));
    }
    until("all are done", || rows(&schema) == 0);
    runner.stop(SOON);
}

#[test]
fn a_stop_lets_go_of_what_handlers_and_conditions_hold() {
    let schema = schema();
    // As in a service whose handlers enqueue, and wake the runner that calls them.
    let held = Arc::new(OnceLock::new());
    let (seen, own) = (Arc::downgrade(&held), Arc::clone(&held));
    let runner = builder(&schema)
        .handle::<Task>(move |_, _| {
            own.get()
                .map_or(Outcome::dead("no handle"), |_| Outcome::Done)
        })
        .hold_while("q", move || held.get().is_none())
        .start()
        .unwrap();
    assert!(seen.upgrade().unwrap().set(runner.handle()).is_ok());
    runner.stop(SOON);
    until("the end of what they hold", || seen.strong_count() == 0);
}

#[test]
fn what_takes_long_is_not_claimed_ahead() {
    let schema = schema();
    let mut client = schema.client();
    let (starting, starts) = unbounded();
    let (go_on, may_end) = bounded::<()>(0);
    let (polled, others) = unbounded();
    let long = QueueOptions {
        threads: 1,
        prefetch: 10,
        prefetch_time: Duration::from_secs(60),
        ..options()
    };
    let runner = Runner::builder(schema.database(8))
        .queue("q", long)
        .queue("other", options())
        .handle_named("other", "n", move |_| {
            polled.send(()).unwrap();
            Outcome::Done
        })
        .handle(move |_, task: Task| {
            starting.send(task.0).unwrap();
            may_end.recv().unwrap();
            Outcome::Done
        })
        .start()
        .unwrap();
    for number in 0..40 {
        add(&mut client, number);
    }
    starts.recv_timeout(SOON).unwrap();
    // Each of these is found by a poll, and this queue looks as often.
    for _ in 0..10 {
        enqueue(&mut client, NewJob::named("other", "n", "1")).unwrap();
        others.recv_timeout(SOON).unwrap();
    }
    let claimed = "SELECT count(*) FROM job_jobs WHERE queue = 'q' AND lease_id IS NOT NULL";
    assert_eq!(schema.count(&mut client, claimed), 1, "none got through");
    for _ in 0..20 {
        go_on.send(()).unwrap();
        starts.recv_timeout(SOON).unwrap();
    }
    // As many as got through, up to the prefetch.
    until("more are claimed", || {
        schema.count(&mut client, claimed) > 5
    });
    drop(go_on);
    runner.stop(Duration::ZERO);
}
