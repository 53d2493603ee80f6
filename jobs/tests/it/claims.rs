//! Claims of the caller's own, what they give with a job, how soon claims follow each other, and ends that are said later.

use crate::harness::{Schema, schema, until};
use crossbeam_channel::bounded;
use jobs::protocol::{Became, claim, complete, renew, rescue};
use jobs::{Builder, Job, Later, NewJob, Outcome, QueueOptions, Runner, Taken, enqueue};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize)]
struct Task(u32);

impl Job for Task {
    const NAME: &'static str = "task";
    const QUEUE: &'static str = "q";
}

/// Claims that give each even task its double.
fn claiming(schema: &Schema, options: QueueOptions) -> Builder {
    let client = Mutex::new(schema.client());
    Runner::builder(schema.database(6))
        .queue("q", options)
        .claim_by("q", move |asked| {
            let mut client = client.lock().unwrap();
            let (room, first) = (asked.room, asked.keyed_first);
            let rows = claim(
                &mut *client,
                asked.queue,
                asked.worker,
                room,
                asked.lease,
                first,
            )?;
            let taken = rows.into_iter().map(|row| {
                let task: Task = serde_json::from_str(&row.payload).unwrap();
                let double = task.0.is_multiple_of(2).then_some(2 * task.0);
                Taken {
                    row,
                    beside: double.map(|double| Box::new(double) as _),
                }
            });
            Ok(taken.collect())
        })
}

fn add(schema: &Schema, number: u32) {
    enqueue(&mut schema.client(), NewJob::of(&Task(number)).unwrap()).unwrap();
}

fn rows(schema: &Schema) -> i64 {
    schema.count(&mut schema.client(), "SELECT count(*) FROM job_jobs")
}

#[test]
fn a_claim_of_the_caller_s_own_gives_its_jobs_what_it_did_beside() {
    let schema = schema();
    let given = Arc::new(Mutex::new(Vec::new()));
    let (seen, client) = (Arc::clone(&given), Mutex::new(schema.client()));
    (0..4).for_each(|number| add(&schema, number));
    let runner = claiming(&schema, QueueOptions::default())
        .handle(move |claimed, task: Task| {
            let beside = claimed.take_beside::<u32>();
            assert!(claimed.take_beside::<u32>().is_none());
            seen.lock().unwrap().push((task.0, beside));
            let (job, lease) = (claimed.id(), claimed.lease_id());
            let done = complete(&mut *client.lock().unwrap(), &[job], &[lease]).unwrap();
            assert_eq!(done, [job]);
            Outcome::Completed
        })
        .start()
        .unwrap();
    until("all are counted", || {
        runner.handle().stats("q").unwrap().done == 4
    });
    assert_eq!(rows(&schema), 0);
    let mut given = given.lock().unwrap().clone();
    given.sort_unstable();
    assert_eq!(given, [(0, Some(0)), (1, None), (2, Some(4)), (3, None)]);
    // Their leases are dropped like those of any settled batch.
    until("the leases are gone", || {
        schema.count(&mut schema.client(), "SELECT count(*) FROM job_leases") == 0
    });
}

/// After a stop with one job in its handler, which goes on until it is told that it lost, and three that wait for it:
/// how often each was claimed and not given back.
fn claimed_after_a_stop(cut_counts: bool) -> Vec<i32> {
    let schema = schema();
    (0..4).for_each(|number| add(&schema, number));
    let (begin, began) = bounded(4);
    let options = QueueOptions {
        prefetch: 3,
        cut_counts,
        ..QueueOptions::default()
    };
    let runner = claiming(&schema, options)
        .handle(move |claimed, task: Task| {
            begin.send(task.0).unwrap();
            until("the loss is told", || claimed.lost());
            Outcome::Done
        })
        .start()
        .unwrap();
    assert_eq!(began.recv_timeout(SOON).unwrap(), 0);
    let stopped = runner.stop(Duration::from_millis(100));
    assert!(!stopped.leases_left);
    // What waited is not begun any more, whatever its claim gave it.
    assert!(began.try_recv().is_err());
    let rows = schema
        .client()
        .query("SELECT attempt, lease_id FROM job_jobs ORDER BY id", &[]);
    let rows = rows.unwrap();
    assert!(
        rows.iter()
            .all(|row| row.get::<_, Option<i64>>(1).is_none())
    );
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_stop_gives_back_what_has_not_begun_and_what_it_cuts_off_counts_where_that_is_asked_for() {
    assert_eq!(claimed_after_a_stop(false), [0, 0, 0, 0]);
    assert_eq!(claimed_after_a_stop(true), [1, 0, 0, 0]);
}

#[test]
fn what_stands_in_the_queue_says_whether_a_job_is_in_somebody_s_hands_and_for_how_long() {
    let schema = schema();
    let mut client = schema.client();
    let standing = |client: &mut postgres::Client| {
        let query = "SELECT s.attempt, s.left_ms FROM job_jobs j, job_standing(j.id) s";
        let row = client.query_one(query, &[]).unwrap();
        (row.get::<_, i32>(0), row.get::<_, i64>(1))
    };
    let keep = |client: &mut postgres::Client, id: i64, lease: i64, ms: i64| -> bool {
        let kept = client.query_one("SELECT job_keep_lease($1, $2, $3)", &[&id, &lease, &ms]);
        kept.unwrap().get(0)
    };
    add(&schema, 1);
    assert_eq!(standing(&mut client), (0, 0));
    let lease = Duration::from_secs(20);
    let one = claim(&mut client, "q", "w", 1, lease, true)
        .unwrap()
        .remove(0);
    let (attempt, left_ms) = standing(&mut client);
    assert!(
        attempt == 1 && (10_001..=20_000).contains(&left_ms),
        "{left_ms}"
    );
    assert!(keep(&mut client, one.id, one.lease_id, 60_000));
    // Neither that nor a renewal makes it shorter.
    assert!(keep(&mut client, one.id, one.lease_id, 1));
    assert_eq!(
        renew(&mut client, &[one.lease_id], lease, &[]).unwrap(),
        [one.lease_id]
    );
    assert!((50_001..=60_000).contains(&standing(&mut client).1));
    client
        .batch_execute("UPDATE job_leases SET expires_at = now() - interval '1 second'")
        .unwrap();
    assert_eq!(standing(&mut client), (1, 0));
    assert_eq!(rescue(&mut client, 1).unwrap(), [(one.id, Became::Waiting)]);
    assert_eq!(standing(&mut client), (1, 0));
    assert!(!keep(&mut client, one.id, one.lease_id, 60_000));
}

#[test]
fn claims_keep_their_pace_while_jobs_are_in_hand() {
    let schema = schema();
    let (go_on, goes_on) = bounded::<()>(0);
    let calls = Arc::new(AtomicU32::new(0));
    let called = Arc::clone(&calls);
    let options = QueueOptions {
        threads: 4,
        poll: Duration::from_millis(5),
        pace: NEVER,
        ..QueueOptions::default()
    };
    let runner = claiming(&schema, options)
        .handle(move |_, _: Task| {
            called.fetch_add(1, Ordering::SeqCst);
            let _ = goes_on.recv();
            Outcome::Done
        })
        .start()
        .unwrap();
    add(&schema, 1);
    until("the first is begun", || calls.load(Ordering::SeqCst) == 1);
    (2..5).for_each(|number| add(&schema, number));
    runner.handle().wake("q");
    // Many polls.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(runner.handle().stats("q").unwrap().claimed, 1);
    // With nothing in hand, all that came is claimed at once.
    go_on.send(()).unwrap();
    until("the others are begun", || calls.load(Ordering::SeqCst) == 4);
    drop(go_on);
    until("all is done", || rows(&schema) == 0);
}

#[test]
fn a_claim_that_panics_is_made_again() {
    let schema = schema();
    add(&schema, 1);
    let (panics, client) = (AtomicU32::new(0), Mutex::new(schema.client()));
    let _runner = Runner::builder(schema.database(6))
        .queue("q", QueueOptions::default())
        .claim_by("q", move |asked| {
            assert!(panics.fetch_add(1, Ordering::SeqCst) > 0, "as told");
            let mut client = client.lock().unwrap();
            let (queue, worker, first) = (asked.queue, asked.worker, asked.keyed_first);
            let rows = claim(&mut *client, queue, worker, asked.room, asked.lease, first)?;
            let alone = |row| Taken { row, beside: None };
            Ok(rows.into_iter().map(alone).collect())
        })
        .handle(|_, _: Task| Outcome::Done)
        .start()
        .unwrap();
    until("it is done", || rows(&schema) == 0);
}

#[test]
fn a_job_whose_end_comes_later_leaves_its_thread_and_keeps_its_lease() {
    let schema = schema();
    let lease = Duration::from_millis(300);
    (0..3).for_each(|number| add(&schema, number));
    let (hand, handed) = bounded::<(u32, i64, i64, Later)>(8);
    let one_thread = QueueOptions {
        threads: 1,
        ..QueueOptions::default()
    };
    let runner = Runner::builder(schema.database(6))
        .lease(lease)
        .queue("q", one_thread)
        .handle(move |claimed, task: Task| {
            let later = claimed.later().unwrap();
            assert!(claimed.later().is_none());
            assert!(
                task.0 != 2 || claimed.attempt() > 1,
                "what it was given goes with it"
            );
            let (job, lease) = (claimed.id(), claimed.lease_id());
            hand.send((task.0, job, lease, later)).unwrap();
            Outcome::dead("nobody looks at it")
        })
        .start()
        .unwrap();
    let next = || handed.recv_timeout(SOON).unwrap();
    // One after the other by the same thread, though neither has ended.
    let mut all = vec![next(), next(), next()];
    all.sort_by_key(|one| one.0);
    // The one that panicked was tried again, and is the last.
    assert_eq!(all.iter().map(|one| one.0).collect::<Vec<_>>(), [0, 1, 2]);
    std::thread::sleep(3 * lease);
    let mut client = schema.client();
    assert_eq!(rows(&schema), 3);
    for (number, job, lease_id, later) in all {
        match number {
            0 => {
                assert_eq!(complete(&mut client, &[job], &[lease_id]).unwrap(), [job]);
                later.ended(Outcome::Completed);
            }
            1 => later.ended(Outcome::Done),
            // It is found not to have ended.
            _ => drop(later),
        }
    }
    let again = next();
    assert_eq!(again.0, 2);
    again.3.ended(Outcome::Done);
    until("all are counted", || {
        runner.handle().stats("q").unwrap().done == 3
    });
    assert_eq!(rows(&schema), 0);
}

#[test]
fn a_job_that_could_not_be_settled_is_rescued_once_its_lease_has_run_out() {
    let schema = schema();
    // The first settlement is refused. A sequence keeps its count when that is rolled back.
    schema
        .client()
        .batch_execute(
            "CREATE SEQUENCE settlements;
             CREATE FUNCTION refuse_the_first() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               IF nextval('settlements') = 1 THEN
                 RAISE EXCEPTION 'not this one' USING ERRCODE = '22000';
               END IF;
               RETURN OLD;
             END $$;
             CREATE TRIGGER refuses BEFORE DELETE ON job_jobs FOR EACH ROW EXECUTE FUNCTION refuse_the_first()",
        )
        .unwrap();
    add(&schema, 7);
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let _runner = Runner::builder(schema.database(4))
        .queue("q", QueueOptions::default())
        .lease(Duration::from_millis(300))
        .watch(Duration::from_millis(50))
        .handle(move |_, _: Task| {
            seen.fetch_add(1, Ordering::Relaxed);
            Outcome::Done
        })
        .start()
        .unwrap();
    until("it is done after all", || rows(&schema) == 0);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
