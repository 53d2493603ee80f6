//! What is read beside a claim, how soon claims follow each other, and ends that are said later.

use crate::harness::{Schema, schema, until};
use crossbeam_channel::bounded;
use jobs::protocol::{Became, claim, complete, renew, rescue};
use jobs::{Builder, Job, Later, NewJob, Outcome, QueueOptions, Runner, enqueue};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize)]
struct Task(u32);

impl Job for Task {
    const NAME: &'static str = "task";
    const QUEUE: &'static str = "q";
}

/// Each even task is given its double.
fn doubling(schema: &Schema, options: QueueOptions) -> Builder {
    Runner::builder(schema.database(8))
        .queue("q", options)
        .read_beside("q", |claimed, since| {
            assert!(since.elapsed() < SOON);
            let read = claimed.iter().map(|row| -> Option<Box<dyn Any + Send>> {
                let task: Task = serde_json::from_str(&row.payload).unwrap();
                let double = task.0.is_multiple_of(2).then_some(2 * task.0);
                double.map(|double| Box::new(double) as _)
            });
            read.collect()
        })
}

fn add(schema: &Schema, number: u32) {
    enqueue(&mut schema.client(), NewJob::of(&Task(number)).unwrap()).unwrap();
}

fn rows(schema: &Schema) -> i64 {
    schema.count(&mut schema.client(), "SELECT count(*) FROM job_jobs")
}

#[test]
fn what_is_read_beside_a_claim_comes_with_each_job() {
    let schema = schema();
    let given = Arc::new(Mutex::new(Vec::new()));
    let (seen, client) = (Arc::clone(&given), Mutex::new(schema.client()));
    (0..4).for_each(|number| add(&schema, number));
    let runner = doubling(&schema, QueueOptions::default())
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
    // Their leases are dropped like those of any ended batch.
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
    let runner = doubling(&schema, options)
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
fn a_stop_gives_back_what_is_still_being_read_for() {
    let schema = schema();
    (0..3).for_each(|number| add(&schema, number));
    let (reads, reading) = bounded::<()>(0);
    let (go_on, goes_on) = bounded::<()>(0);
    let options = QueueOptions {
        prefetch: 3,
        cut_counts: true,
        ..QueueOptions::default()
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .read_beside("q", move |_, _| {
            reads.send(()).unwrap();
            let _ = goes_on.recv();
            Vec::new()
        })
        .handle(|_, _: Task| -> Outcome { panic!("it has been given back") })
        .start()
        .unwrap();
    reading.recv_timeout(SOON).unwrap();
    let stopped = runner.stop(Duration::from_millis(100));
    assert_eq!((stopped.handed_back, stopped.unfinished), (3, 0));
    let waiting = "SELECT count(*) FROM job_jobs WHERE lease_id IS NULL AND attempt = 0";
    assert_eq!(schema.count(&mut schema.client(), waiting), 3);
    drop(go_on);
    // Nothing of it is begun once it has been read after all.
    until("the threads have ended", || reading.recv().is_err());
    assert_eq!(schema.count(&mut schema.client(), waiting), 3);
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
fn a_read_that_panics_or_says_less_than_was_claimed_leaves_the_jobs_to_their_handlers() {
    let schema = schema();
    (0..3).for_each(|number| add(&schema, number));
    let (reads, given) = (AtomicU32::new(0), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&given);
    let lease = Duration::from_secs(3000);
    let options = QueueOptions {
        batch: 2,
        prefetch: 8,
        lease_at_least: lease,
        ..QueueOptions::default()
    };
    let (all, each) = bounded::<()>(0);
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .read_beside("q", move |claimed, _| {
            assert!(reads.fetch_add(1, Ordering::SeqCst) > 0, "as told");
            assert!(!claimed.is_empty());
            Vec::new()
        })
        .handle(move |claimed, task: Task| {
            let beside = claimed.take_beside::<u32>();
            seen.lock().unwrap().push((task.0, beside));
            let _ = each.recv();
            Outcome::Done
        })
        .start()
        .unwrap();
    until("all are claimed", || {
        runner.handle().stats("q").unwrap().claimed == 3
    });
    let short =
        "SELECT count(*) FROM job_leases WHERE expires_at < clock_timestamp() + interval '2900 s'";
    assert_eq!(schema.count(&mut schema.client(), short), 0);
    drop(all);
    until("all are done", || rows(&schema) == 0);
    let mut given = given.lock().unwrap().clone();
    given.sort_unstable();
    assert_eq!(given, [(0, None), (1, None), (2, None)]);
}

#[test]
fn a_job_whose_end_comes_later_leaves_its_thread_and_keeps_its_lease() {
    let schema = schema();
    // A busy machine renews it in time, too.
    let lease = Duration::from_secs(5);
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
    let mut client = schema.client();
    let expiry = "SELECT (extract(epoch FROM min(expires_at)) * 1000)::bigint FROM job_leases";
    let first = schema.count(&mut client, expiry);
    until("all are renewed two leases long", || {
        schema.count(&mut client, expiry) > first + 10_000
    });
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
fn a_job_that_could_not_be_ended_is_rescued_once_its_lease_has_run_out() {
    let schema = schema();
    // The first end is refused. A sequence keeps its count when that is rolled back.
    schema
        .client()
        .batch_execute(
            "CREATE SEQUENCE ends;
             CREATE FUNCTION refuse_the_first() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               IF nextval('ends') = 1 THEN
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

#[test]
fn a_fairness_key_holds_half_of_the_threads_and_the_next_ones_find_some() {
    let schema = schema();
    let mut client = schema.client();
    let mut add = |key: &str, number| {
        let job = NewJob::of(&Task(number)).unwrap();
        enqueue(&mut client, job.fairness_key(key)).unwrap();
    };
    // Far more of the first wait than a claim may take, and before all others.
    (0..700).for_each(|number| add("a", number));
    add("b", 1000);
    add("c", 1001);
    let (begin, began) = bounded(1000);
    let (go_on, goes_on) = bounded::<()>(0);
    let options = QueueOptions {
        threads: 4,
        fair: true,
        // Nobody looks by himself: each end is told.
        poll: Duration::from_secs(3600),
        ..QueueOptions::default()
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .handle(move |_, task: Task| {
            begin.send(task.0).unwrap();
            let _ = goes_on.recv();
            Outcome::Done
        })
        .start()
        .unwrap();
    let mut first: Vec<u32> = (0..4).map(|_| began.recv_timeout(SOON).unwrap()).collect();
    first.sort_unstable();
    assert_eq!(first, [0, 1, 1000, 1001]);
    drop(go_on);
    until("all are done", || {
        runner.handle().stats("q").unwrap().done == 702
    });
    assert_eq!(rows(&schema), 0);
}

#[test]
fn a_key_with_many_quick_jobs_keeps_no_other_waiting() {
    let schema = schema();
    let mut client = schema.client();
    let mut add = |key: &str, number| {
        let job = NewJob::of(&Task(number)).unwrap();
        enqueue(&mut client, job.fairness_key(key)).unwrap();
    };
    (0..500).for_each(|number| add("a", number));
    add("b", 1000);
    add("c", 1001);
    let (begin, began) = bounded(1000);
    let options = QueueOptions {
        // With one thread no key is full: the thread is free, or there is nothing to claim for.
        threads: 1,
        fair: true,
        ..QueueOptions::default()
    };
    let runner = Runner::builder(schema.database(4))
        .queue("q", options)
        .handle(move |_, task: Task| {
            begin.send(task.0).unwrap();
            Outcome::Done
        })
        .start()
        .unwrap();
    until("all are done", || {
        runner.handle().stats("q").unwrap().done == 502
    });
    let order: Vec<u32> = began.try_iter().collect();
    for other in [1000, 1001] {
        let place = order.iter().position(|number| *number == other).unwrap();
        assert!(place < 100, "{place} quick jobs of another key came first");
    }
}

#[test]
fn keys_beside_a_full_one_have_their_turn_however_much_waits_for_the_first() {
    let schema = schema();
    let mut client = schema.client();
    for key in ["full", "low", "low", "low", "top"] {
        let job = NewJob::of(&Task(1)).unwrap();
        enqueue(&mut client, job.fairness_key(key)).unwrap();
    }
    let mut claimed = |after: &str| -> Vec<String> {
        let sql = "SELECT fairness_key FROM job_claim(p_queue => 'q', p_worker => 'w', p_lease => NULL, p_limit => 1,
            p_serial => 1, p_lease_ms => 60000, p_keyed_first => false, p_full => '{full}', p_after => $1)";
        let rows = client.query(sql, &[&after]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(claimed(""), ["low"]);
    assert_eq!(claimed("low"), ["top"]);
    // Nothing waits behind it: the others from the beginning.
    assert_eq!(claimed("top"), ["low"]);
    assert_eq!(claimed("low"), ["low"]);
    assert_eq!(claimed("low"), [""; 0]);
}

#[test]
fn a_dead_job_that_is_revived_keeps_its_fairness_key() {
    let schema = schema();
    let mut client = schema.client();
    let key = "SELECT count(*) FROM job_jobs WHERE fairness_key = 'a'";
    for unique in [None, Some("u")] {
        let mut job = NewJob::of(&Task(1)).unwrap().fairness_key("a");
        if let Some(unique) = unique {
            job = job.unique(unique);
        }
        let job = enqueue(&mut client, job).unwrap();
        let rows = claim(&mut client, "q", "w", 1, SOON, false).unwrap();
        assert_eq!(rows[0].fairness_key.as_deref(), Some("a"));
        let dead = jobs::protocol::EndedJob {
            id: job.id,
            lease_id: rows[0].lease_id,
            ending: jobs::protocol::Ending::Dead {
                reason: "on purpose".into(),
            },
        };
        jobs::protocol::end_jobs(&mut client, &[dead]).unwrap();
        assert_eq!(schema.count(&mut client, key), 0);
        jobs::revive(&mut client, &[job.id]).unwrap();
        assert_eq!(schema.count(&mut client, key), 1);
        jobs::cancel(&mut client, job.id).unwrap();
    }
}
