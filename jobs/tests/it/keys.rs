//! Concurrency keys: caps and fairness.

use crate::harness::schema;
use jobs::protocol::{ClaimedRow, Room, claim, complete};
use jobs::{NewJob, enqueue, enqueue_many, set_cap};
use postgres::Client;
use std::collections::HashMap;
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
fn processes_of_the_versions_before_go_on_claiming() {
    let schema = schema();
    let mut client = schema.client();
    for claims in [
        "SELECT id, lease_id, attempt, max_attempts, name, key, payload FROM job_claim('q', 'w', 5, 30000, true)",
        "SELECT id, lease_id, attempt, max_attempts, name, key, payload, key_cap FROM job_claim('q', 'w', 5, 5, 30000, true)",
    ] {
        enqueue_many(&mut client, &[keyed("k", 9), NewJob::named("q", "n", "1")]).unwrap();
        assert_eq!(client.query(claims, &[]).unwrap().len(), 2);
    }
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
