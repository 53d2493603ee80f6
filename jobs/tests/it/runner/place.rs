//! Jobs that are enqueued as claimed already: when they are, and who handles them.

use super::*;
use jobs::protocol::ClaimedRow;
use jobs::{Handle, Place, Taken};

/// The queue's threads, which look but once, with a handler that says which task it has and at which attempt.
fn asleep(
    schema: &Schema,
    options: QueueOptions,
    handler: impl Fn() -> Outcome + Send + Sync + 'static,
) -> (Runner, Receiver<(u32, u32)>) {
    let (starting, starts) = unbounded();
    let options = QueueOptions {
        poll: NEVER,
        ..options
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .lease(Duration::from_millis(500))
        .handle(move |claimed, task: Task| {
            starting.send((task.0, claimed.attempt())).unwrap();
            handler()
        })
        .start()
        .unwrap();
    (runner, starts)
}

fn threads(threads: usize) -> QueueOptions {
    QueueOptions {
        threads,
        ..options()
    }
}

/// A key with so many places, of which so many are taken.
fn key(client: &mut Client, key: &str, cap: i32, in_flight: i32) {
    let made = "INSERT INTO job_keys (queue, key, cap, in_flight, next_at) VALUES ('q', $1, $2, $3, 'infinity')";
    client.execute(made, &[&key, &cap, &in_flight]).unwrap();
}

/// Its id and, if it is claimed, its lease.
fn enqueue_claimed(client: &mut Client, key: &str, task: u32, lease_ms: i64) -> (i64, Option<i64>) {
    let row = client.query_one(
        "SELECT id, lease_id FROM job_enqueue_claimed('q', 'task', $1, 3, $2, 4, 'w', $3)",
        &[&task.to_string(), &key, &lease_ms],
    );
    let row = row.unwrap();
    (row.get(0), row.get(1))
}

fn taken(key: &str, task: u32, (id, lease_id): (i64, Option<i64>)) -> Taken {
    Taken {
        row: ClaimedRow {
            id,
            lease_id: lease_id.expect("it is claimed"),
            attempt: 1,
            max_attempts: 3,
            name: "task".to_owned(),
            key: Some(key.to_owned()),
            key_cap: Some(4),
            payload: task.to_string(),
        },
        beside: None,
    }
}

fn place(handle: &Handle) -> Place {
    handle.place("q").expect("a thread is free")
}

/// What is in flight of a key, whether or not a claim has seen it.
fn in_flight(schema: &Schema, key: &str) -> i64 {
    let sum = "SELECT (SELECT coalesce(sum(in_flight), 0) FROM job_keys WHERE key = $1)
               - (SELECT coalesce(sum(freed), 0) FROM job_key_moves WHERE key = $1)";
    let row = schema.client().query_one(sum, &[&key]);
    row.unwrap().get(0)
}

#[test]
fn a_job_that_is_enqueued_as_claimed_begins_without_a_claim() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "k", 4, 0);
    let (runner, starts) = asleep(&schema, threads(2), || Outcome::Done);
    let place = place(&runner.handle());
    assert_eq!(place.lease(), Duration::from_millis(500));
    assert!(place.worker().starts_with("process"));
    let job = enqueue_claimed(&mut client, "k", 7, 60_000);
    assert_eq!(in_flight(&schema, "k"), 1);
    assert_eq!(jobs::depth(&mut client, "q").unwrap().running, 1);
    place.fill(taken("k", 7, job));
    assert_eq!(starts.recv_timeout(SOON).unwrap(), (7, 1));
    until("it is done", || rows(&schema) == 0);
    assert_eq!(in_flight(&schema, "k"), 0);
    let handle = runner.handle();
    until("it is counted", || handle.stats("q").unwrap().done == 1);
    runner.stop(SOON);
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_leases"),
        0
    );
}

#[test]
fn it_waits_as_any_other_where_its_key_is_busy_or_serial() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "half", 4, 2);
    key(&mut client, "more", 4, 3);
    key(&mut client, "serial", 1, 0);
    key(&mut client, "due", 4, 0);
    let sooner = "UPDATE job_keys SET next_at = clock_timestamp() WHERE key = 'due'";
    client.execute(sooner, &[]).unwrap();
    let mut is_claimed = |key| enqueue_claimed(&mut client, key, 1, 60_000).1.is_some();
    let claimed = ["half", "more", "serial", "due", "new"].map(&mut is_claimed);
    assert_eq!(claimed, [true, false, false, false, true]);
    let serial = "SELECT lease_id IS NULL FROM job_enqueue_claimed('q', 'task', '1', 3, 'other', 1, 'w', 60000)";
    assert!(client.query_one(serial, &[]).unwrap().get::<_, bool>(0));
    let left = jobs::protocol::claim(&mut client, "q", "w", 10, SOON, true).unwrap();
    let mut keys: Vec<_> = left.iter().filter_map(|row| row.key.as_deref()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["due", "more", "other", "serial"]);
    assert!(left.iter().all(|row| row.attempt == 1));
}

#[test]
fn a_key_that_had_nothing_to_do_for_a_while_has_room() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "k", 4, 0);
    jobs::protocol::rescue(&mut client, 10).unwrap();
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_keys"),
        0
    );
    let (id, lease_id) = enqueue_claimed(&mut client, "k", 1, 60_000);
    let lease_id = lease_id.expect("it is claimed");
    // A claim finds nothing to do, and what it learns of the key on the way is right.
    let merged = |client: &mut Client| {
        let claimed = jobs::protocol::claim(client, "q", "w", 10, SOON, true).unwrap();
        assert!(claimed.is_empty());
        let known = "SELECT in_flight::bigint FROM job_keys WHERE cap = 4";
        schema.count(client, known)
    };
    assert_eq!(merged(&mut client), 1);
    jobs::protocol::complete(&mut client, &[id], &[lease_id]).unwrap();
    assert_eq!(merged(&mut client), 0);
}

#[test]
fn there_are_as_many_places_as_threads_and_one_that_is_not_filled_is_free_again() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "k", 4, 0);
    let (go_on, may_end) = bounded::<()>(0);
    let (runner, starts) = asleep(&schema, threads(2), move || {
        may_end.recv().unwrap();
        Outcome::Done
    });
    let handle = runner.handle();
    let first = place(&handle);
    let second = place(&handle);
    assert!(handle.place("q").is_none());
    assert!(handle.place("another").is_none());
    drop(second);
    let second = place(&handle);
    let jobs = [1, 2].map(|task| enqueue_claimed(&mut client, "k", task, 60_000));
    first.fill(taken("k", 1, jobs[0]));
    second.fill(taken("k", 2, jobs[1]));
    for _ in 0..2 {
        starts.recv_timeout(SOON).unwrap();
    }
    assert!(handle.place("q").is_none());
    (0..2).for_each(|_| go_on.send(()).unwrap());
    until("a thread is free", || handle.place("q").is_some());
    until("all are done", || rows(&schema) == 0);
    runner.stop(SOON);
}

#[test]
fn what_comes_faster_than_half_of_the_pace_is_left_to_a_claim() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "k", 4, 0);
    let pace = Duration::from_secs(2);
    let options = QueueOptions { pace, ..options() };
    let (runner, _starts) = asleep(&schema, options, || Outcome::Done);
    let handle = runner.handle();
    let first = place(&handle);
    let job = enqueue_claimed(&mut client, "k", 1, 60_000);
    drop(place(&handle));
    let before = Instant::now();
    first.fill(taken("k", 1, job));
    assert!(handle.place("q").is_none());
    until("there is a place again", || handle.place("q").is_some());
    assert!(before.elapsed() >= pace / 2);
    until("it is done", || rows(&schema) == 0);
    runner.stop(SOON);
}

#[test]
fn one_that_nobody_takes_in_hand_is_rescued_and_counts() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "k", 4, 0);
    let (runner, starts) = asleep(&schema, threads(1), || Outcome::Done);
    drop(place(&runner.handle()));
    enqueue_claimed(&mut client, "k", 9, 1);
    // Rescuing wakes nobody.
    until("it is rescued", || {
        runner.handle().wake("q");
        rows(&schema) == 0
    });
    assert_eq!(starts.recv_timeout(SOON).unwrap(), (9, 2));
    assert_eq!(in_flight(&schema, "k"), 0);
    runner.stop(SOON);
}

#[test]
fn what_comes_while_the_runner_stops_goes_back() {
    let schema = schema();
    let mut client = schema.client();
    key(&mut client, "k", 4, 0);
    let (go_on, may_end) = bounded::<()>(0);
    let (runner, starts) = asleep(&schema, threads(3), move || {
        may_end.recv().unwrap();
        Outcome::Done
    });
    let handle = runner.handle();
    let [held, late] = [1, 2].map(|task| {
        let place = place(&handle);
        (
            place,
            taken("k", task, enqueue_claimed(&mut client, "k", task, 60_000)),
        )
    });
    held.0.fill(held.1);
    starts.recv_timeout(SOON).unwrap();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(move || runner.stop(SOON));
        until("no more is begun", || handle.place("q").is_none());
        late.0.fill(late.1);
        go_on.send(()).unwrap();
        assert!(!stopping.join().unwrap().leases_left);
    });
    assert!(starts.is_empty());
    let waits = "SELECT count(*) FROM job_jobs WHERE lease_id IS NULL AND attempt = 0 AND payload::text = '2'";
    assert_eq!(schema.count(&mut client, waits), 1);
    assert_eq!(in_flight(&schema, "k"), 0);
}
