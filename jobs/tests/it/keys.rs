//! Concurrency keys: caps and fairness.

use crate::harness::{Schema, schema, until};
use jobs::protocol::{ClaimedRow, Room, claim, complete};
use jobs::{NewJob, enqueue, enqueue_many, set_cap};
use postgres::Client;
use std::collections::{HashMap, HashSet};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

fn keyed(key: &str, cap: u32) -> NewJob {
    NewJob::named("q", "n", "1").key(key, cap)
}

fn take(client: &mut Client, limit: usize) -> Vec<ClaimedRow> {
    claim(client, "q", "w", limit, LEASE, true).unwrap()
}

fn finish(client: &mut Client, rows: &[ClaimedRow]) {
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let leases: Vec<i64> = rows.iter().map(|row| row.lease_id).collect();
    assert_eq!(complete(client, &ids, &leases).unwrap().len(), rows.len());
}

#[test]
fn a_key_never_has_more_in_flight_than_its_cap() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &vec![keyed("k", 2); 5]).unwrap();
    let first = take(&mut client, 10);
    assert_eq!(first.len(), 2);
    assert!(take(&mut client, 10).is_empty());
    finish(&mut client, &first[..1]);
    assert_eq!(take(&mut client, 10).len(), 1);
    // The cap that was enqueued last holds.
    enqueue(&mut client, keyed("k", 4).delay(Duration::from_secs(60))).unwrap();
    assert_eq!(take(&mut client, 10).len(), 2);
    enqueue(&mut client, keyed("k", 1)).unwrap();
    finish(&mut client, &first[1..]);
    assert!(take(&mut client, 10).is_empty());
}

#[test]
fn a_cap_is_changed_without_a_job() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &vec![keyed("k", 1); 5]).unwrap();
    assert_eq!(take(&mut client, 10).len(), 1);
    set_cap(&mut client, "q", "k", 3).unwrap();
    assert_eq!(take(&mut client, 10).len(), 2, "the others are due at once");
    set_cap(&mut client, "q", "k", 1).unwrap();
    assert!(take(&mut client, 10).is_empty());
    // A key that nothing waits for is told, too, and nothing comes of it.
    set_cap(&mut client, "q", "other", 2).unwrap();
    assert!(take(&mut client, 10).is_empty());
    for cap in [0, 1_000_001] {
        assert!(set_cap(&mut client, "q", "k", cap).is_err());
    }
}

/// How many of the rows are of a key that begins so.
fn of(rows: &[ClaimedRow], name: &str) -> usize {
    let is_of = |row: &&ClaimedRow| row.key.as_ref().is_some_and(|key| key.starts_with(name));
    rows.iter().filter(is_of).count()
}

#[test]
fn serial_keys_get_no_more_places_than_are_theirs_and_the_others_the_rest() {
    let schema = schema();
    let mut client = schema.client();
    let claim_with = |client: &mut Client, jobs, serial| {
        claim(client, "q", "w", Room { jobs, serial }, LEASE, true).unwrap()
    };
    // They wait longest, and there are more of them than places.
    let serial: Vec<NewJob> = (0..20).map(|n| keyed(&format!("s{n}"), 1)).collect();
    enqueue_many(&mut client, &serial).unwrap();
    let wide: Vec<NewJob> = (0..3).map(|n| keyed(&format!("w{n}"), 2)).collect();
    enqueue_many(&mut client, &wide).unwrap();
    let first = claim_with(&mut client, 10, 4);
    assert_eq!((of(&first, "s"), of(&first, "w")), (4, 3), "{first:?}");
    assert!(claim_with(&mut client, 10, 0).is_empty());
    enqueue_many(&mut client, &wide).unwrap();
    let second = claim_with(&mut client, 2, 0);
    assert_eq!((of(&second, "s"), of(&second, "w")), (0, 2));
    // Those that were passed over come in their turn, none of them twice.
    let third = claim_with(&mut client, 100, 100);
    assert_eq!((of(&third, "s"), of(&third, "w")), (16, 1));
}

#[test]
fn a_claim_says_the_cap_that_the_key_has_by_then() {
    let schema = schema();
    let mut client = schema.client();
    let caps = |rows: &[ClaimedRow]| rows.iter().map(|row| row.key_cap).collect::<Vec<_>>();
    enqueue_many(&mut client, &vec![keyed("k", 8); 2]).unwrap();
    let one = take(&mut client, 1);
    assert_eq!(caps(&one), [Some(8)]);
    set_cap(&mut client, "q", "k", 2).unwrap();
    let other = take(&mut client, 1);
    assert_eq!(caps(&other), [Some(2)]);
    enqueue(&mut client, NewJob::named("q", "n", "1")).unwrap();
    assert_eq!(caps(&take(&mut client, 1)), [None]);
}

#[test]
fn the_key_that_waits_longest_is_served_first_and_a_long_line_waits_its_turn() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &vec![keyed("long", 100); 500]).unwrap();
    let mut served: HashMap<String, usize> = HashMap::new();
    let first = take(&mut client, 10);
    assert_eq!(first.len(), 10);
    for key in ["a", "b", "c"] {
        enqueue_many(&mut client, &vec![keyed(key, 100); 4]).unwrap();
    }
    for _ in 0..4 {
        for row in take(&mut client, 4) {
            *served.entry(row.key.unwrap()).or_default() += 1;
        }
    }
    for key in ["a", "b", "c", "long"] {
        assert_eq!(served[key], 4, "{served:?}");
    }
    // One at a time they are served round and round.
    let turns: Vec<String> = (0..4)
        .flat_map(|_| take(&mut client, 1))
        .map(|row| row.key.unwrap())
        .collect();
    assert_eq!(turns, vec!["long"; 4]);
}

#[test]
fn plain_and_keyed_jobs_share_a_queue_whoever_is_looked_at_first() {
    let schema = schema();
    let mut client = schema.client();
    for keyed_first in [true, false] {
        enqueue_many(
            &mut client,
            &[keyed("k", 9), NewJob::named("q", "n", "1"), keyed("k", 9)],
        )
        .unwrap();
        let one = claim(&mut client, "q", "w", 1, LEASE, keyed_first).unwrap();
        assert_eq!(one[0].key.is_some(), keyed_first);
        let rest = claim(&mut client, "q", "w", 10, LEASE, keyed_first).unwrap();
        assert_eq!(rest.len(), 2);
        finish(&mut client, &one);
        finish(&mut client, &rest);
    }
}

#[test]
fn enqueueing_to_one_key_never_waits_for_another_transaction() {
    let schema = schema();
    let (mut one, mut two) = (schema.client(), schema.client());
    enqueue(&mut one, keyed("k", 1)).unwrap();
    let taken = take(&mut one, 1);
    let mut open = one.transaction().unwrap();
    enqueue(&mut open, keyed("k", 1)).unwrap();
    two.batch_execute("SET lock_timeout = '5s'").unwrap();
    enqueue(&mut two, keyed("k", 1)).unwrap();
    finish(&mut two, &taken);
    assert_eq!(take(&mut two, 5).len(), 1);
    open.commit().unwrap();
}

#[test]
fn a_key_with_nothing_to_say_is_forgotten() {
    let schema = schema();
    let mut client = schema.client();
    enqueue(&mut client, keyed("k", 1)).unwrap();
    let rows = take(&mut client, 1);
    jobs::protocol::rescue(&mut client, 10).unwrap();
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_keys"),
        1
    );
    finish(&mut client, &rows);
    assert!(take(&mut client, 1).is_empty());
    jobs::protocol::rescue(&mut client, 10).unwrap();
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_keys"),
        0
    );
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_key_moves"),
        0
    );
}

#[test]
fn the_next_job_of_a_serial_key_waits_for_the_end_of_the_one_before() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &vec![keyed("serial", 1); 2]).unwrap();
    enqueue_many(&mut client, &vec![keyed("narrowed", 2); 3]).unwrap();
    let first = take(&mut client, 10);
    assert_eq!((of(&first, "serial"), of(&first, "narrowed")), (1, 2));
    set_cap(&mut client, "q", "narrowed", 1).unwrap();
    assert!(take(&mut client, 10).is_empty());
    finish(&mut client, &first);
    assert_eq!(take(&mut client, 10).len(), 2);
}

#[test]
fn a_claim_looks_on_past_keys_that_have_nothing_due() {
    let schema = schema();
    let mut client = schema.client();
    for cap in [1, 3] {
        let names: Vec<String> = (0..30).map(|number| format!("{cap} {number}")).collect();
        let gone = names.iter().map(|name| keyed(name, cap));
        enqueue_many(&mut client, &gone.collect::<Vec<_>>()).unwrap();
        client.batch_execute("DELETE FROM job_jobs").unwrap();
        enqueue(&mut client, keyed("due", cap)).unwrap();
        let rows = claim(
            &mut client,
            "q",
            "w",
            Room { jobs: 4, serial: 2 },
            LEASE,
            true,
        );
        assert_eq!(of(&rows.unwrap(), "due"), 1);
        client
            .batch_execute("TRUNCATE job_jobs, job_keys, job_leases")
            .unwrap();
    }
}

#[test]
fn a_claim_after_very_many_enqueues_takes_each_job_once() {
    const ONE_BY_ONE: usize = 2500;
    let schema = schema();
    let mut client = schema.client();
    for number in 0..ONE_BY_ONE {
        enqueue(&mut client, keyed(&format!("k{}", number % 3), 1000)).unwrap();
    }
    for limit in [400, 300] {
        let rows = take(&mut client, limit);
        let ids: HashSet<i64> = rows.iter().map(|row| row.id).collect();
        assert_eq!((rows.len(), ids.len()), (limit, limit));
        let held = "SELECT sum(in_flight)::bigint - (SELECT count(*) FROM job_jobs WHERE lease_id IS NOT NULL) FROM job_keys";
        assert_eq!(schema.count(&mut client, held), 0);
    }
}

#[test]
fn a_key_that_has_given_all_is_not_worth_another_look() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &vec![keyed("more", 100); 5]).unwrap();
    enqueue(&mut client, keyed("one", 100)).unwrap();
    // The even share is four. The next claim takes the rest.
    let rows = take(&mut client, 8);
    assert_eq!((of(&rows, "more"), of(&rows, "one")), (4, 1));
    let rows = take(&mut client, 8);
    assert_eq!((of(&rows, "more"), of(&rows, "one")), (1, 0));
    let due = "SELECT count(*) FROM job_keys WHERE next_at < 'infinity'";
    assert_eq!(schema.count(&mut client, due), 0);
}

/// A claim on a thread of its own, which waits for such a lock by now.
fn claims_and_waits(schema: &Schema, lock: &str) -> JoinHandle<jobs::Result<usize>> {
    let mut client = schema.client();
    let pid = "SELECT pg_backend_pid()";
    let pid: i32 = client.query_one(pid, &[]).unwrap().get(0);
    let claims = move || claim(&mut client, "q", "w", 10, LEASE, true).map(|rows| rows.len());
    let claims = Builder::new().name("claims".into()).spawn(claims).unwrap();
    let mut looks = schema.client();
    let waits = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND locktype = $2 AND NOT granted";
    until("the claim waits", || {
        let row = looks.query_one(waits, &[&pid, &lock]).unwrap();
        row.get::<_, i64>(0) == 1
    });
    claims
}

#[test]
fn a_claim_waits_for_the_one_before_and_sees_what_it_did() {
    let schema = schema();
    let (mut one, mut two) = (schema.client(), schema.client());
    enqueue_many(&mut one, &vec![keyed("k", 4); 6]).unwrap();
    let mut open = one.transaction().unwrap();
    assert_eq!(claim(&mut open, "q", "w", 3, LEASE, true).unwrap().len(), 3);
    // A row that nobody needs is not dropped under a claim.
    two.batch_execute("INSERT INTO job_keys VALUES ('q', 'idle', 1, 0, 'infinity')")
        .unwrap();
    let idle = "SELECT count(*) FROM job_keys WHERE key = 'idle'";
    jobs::protocol::rescue(&mut two, 10).unwrap();
    assert_eq!(schema.count(&mut two, idle), 1);
    // Another queue's claims go on.
    enqueue(&mut two, NewJob::named("other", "n", "1").key("k", 1)).unwrap();
    assert_eq!(
        claim(&mut two, "other", "w", 3, LEASE, true).unwrap().len(),
        1
    );
    let second = claims_and_waits(&schema, "advisory");
    open.commit().unwrap();
    let got = second.join().unwrap().unwrap();
    assert_eq!(got, 1, "of the four places three are taken");
    jobs::protocol::rescue(&mut two, 10).unwrap();
    assert_eq!(schema.count(&mut two, idle), 0);
}

#[test]
fn rows_of_keys_stay_on_their_page_while_they_say_the_same() {
    let schema = schema();
    let mut client = schema.client();
    // One that is full after each claim, and one that always has more to give.
    enqueue_many(&mut client, &vec![keyed("full", 2); 20]).unwrap();
    enqueue_many(&mut client, &vec![keyed("more", 100); 60]).unwrap();
    let mut held = take(&mut client, 8);
    for _ in 0..6 {
        finish(&mut client, &held);
        let mut tx = client.transaction().unwrap();
        let written = |tx: &mut postgres::Transaction<'_>| -> [i64; 2] {
            let so_far = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'job_keys'::regclass";
            let row = tx.query_one(so_far, &[]).unwrap();
            [0, 1].map(|column| row.get(column))
        };
        let before = written(&mut tx);
        held = claim(&mut tx, "q", "w", 8, LEASE, true).unwrap();
        assert_eq!((of(&held, "full"), of(&held, "more")), (2, 4));
        let after = written(&mut tx);
        // What happened to each key, and what was taken of it.
        assert_eq!([after[0] - before[0], after[1] - before[1]], [4, 4]);
        tx.commit().unwrap();
    }
}
