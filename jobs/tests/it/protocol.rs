//! Claim, fence, lease, rescue.

use crate::harness::schema;
use jobs::protocol::{Became, EndedJob, Ending, claim, complete, end_jobs, renew, rescue};
use jobs::{NewJob, dead_jobs, enqueue, enqueue_many};
use std::collections::HashSet;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

fn job() -> NewJob {
    NewJob::named("q", "n", "{}")
}

#[test]
fn one_job_is_done_under_its_lease_alone_unless_it_was_cancelled_or_has_a_key() {
    let schema = schema();
    let mut client = schema.client();
    let jobs = [job(), job(), job().key("k", 1)];
    let ids: Vec<i64> = enqueue_many(&mut client, &jobs)
        .unwrap()
        .iter()
        .map(|job| job.id)
        .collect();
    let claimed = claim(&mut client, "q", "w", 3, LEASE, false).unwrap();
    assert_eq!(claimed.len(), 3);
    let lease = claimed[0].lease_id;
    jobs::cancel(&mut client, ids[1]).unwrap();
    let mut done = |id: i64, lease: i64| -> bool {
        let row = client.query_one("SELECT job_done($1, $2)", &[&id, &lease]);
        row.unwrap().get(0)
    };
    assert!(!done(ids[0], lease + 1));
    assert!(done(ids[0], lease));
    assert!(!done(ids[0], lease));
    assert!(!done(ids[1], lease));
    assert!(!done(ids[2], lease));
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_jobs"),
        2
    );
}

#[test]
fn a_late_completion_does_not_touch_a_later_claim() {
    let schema = schema();
    let mut client = schema.client();
    let id = enqueue(&mut client, job()).unwrap().id;
    let first = claim(&mut client, "q", "one", 1, Duration::ZERO, false).unwrap();
    assert_eq!(rescue(&mut client, 10).unwrap(), [(id, Became::Waiting)]);
    assert!(
        complete(&mut client, &[id], &[first[0].lease_id])
            .unwrap()
            .is_empty()
    );
    let second = claim(&mut client, "q", "two", 1, LEASE, false).unwrap();
    assert_eq!(second[0].attempt, 2);
    for ending in [
        Ending::Done,
        Ending::HandBack,
        Ending::Dead {
            reason: "late".into(),
        },
    ] {
        assert!(
            end_jobs(
                &mut client,
                &[EndedJob {
                    id,
                    lease_id: first[0].lease_id,
                    ending
                }]
            )
            .unwrap()
            .is_empty()
        );
    }
    assert_eq!(
        complete(&mut client, &[id], &[second[0].lease_id]).unwrap(),
        [id]
    );
}

#[test]
fn a_snooze_gives_the_attempt_back_and_is_fenced_all_the_same() {
    let schema = schema();
    let mut client = schema.client();
    let id = enqueue(&mut client, job().max_attempts(1)).unwrap().id;
    let mut leases = HashSet::new();
    for ending in [
        Ending::Snooze {
            after: Duration::ZERO,
        },
        Ending::HandBack,
        Ending::Done,
    ] {
        let rows = claim(&mut client, "q", "w", 1, LEASE, false).unwrap();
        assert_eq!(rows[0].attempt, 1);
        for lease_id in &leases {
            assert!(
                complete(&mut client, &[id], &[*lease_id])
                    .unwrap()
                    .is_empty()
            );
        }
        assert!(leases.insert(rows[0].lease_id));
        assert_eq!(
            end_jobs(
                &mut client,
                &[EndedJob {
                    id,
                    lease_id: rows[0].lease_id,
                    ending
                }]
            )
            .unwrap()
            .len(),
            1
        );
    }
}

#[test]
fn only_expired_leases_are_rescued_and_the_last_attempt_ends_among_the_dead() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &[job(), job().max_attempts(1), job()]).unwrap();
    let rows = claim(&mut client, "q", "w", 2, Duration::ZERO, false).unwrap();
    let other = claim(&mut client, "q", "w", 1, LEASE, false).unwrap();
    assert_eq!(
        complete(&mut client, &[other[0].id], &[other[0].lease_id])
            .unwrap()
            .len(),
        1
    );
    // Expired and not yet rescued: it can still be renewed.
    assert_eq!(
        renew(&mut client, &[rows[0].lease_id, 12345], LEASE, &[]).unwrap(),
        [rows[0].lease_id]
    );
    assert!(rescue(&mut client, 10).unwrap().is_empty());
    // No renewal makes it shorter.
    renew(&mut client, &[rows[0].lease_id], Duration::ZERO, &[]).unwrap();
    assert!(rescue(&mut client, 10).unwrap().is_empty());
    let over = "UPDATE job_leases SET expires_at = now()";
    client.batch_execute(over).unwrap();
    let rescued: HashSet<i64> = rescue(&mut client, 10)
        .unwrap()
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(rescued, rows.iter().map(|row| row.id).collect());
    let dead = dead_jobs(&mut client, "q", 0, 10).unwrap();
    assert_eq!(dead.len(), 1);
    assert!(dead[0].reason.contains("lease of worker w ran out"));
    assert!(
        renew(
            &mut client,
            &[rows[0].lease_id],
            LEASE,
            &[other[0].lease_id]
        )
        .unwrap()
        .is_empty()
    );
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_leases"),
        0
    );
}

#[test]
fn a_rescue_leaves_what_a_handler_is_ending_and_comes_back_for_it() {
    let schema = schema();
    let (mut one, mut two) = (schema.client(), schema.client());
    enqueue_many(&mut one, &[job(), job()]).unwrap();
    let rows = claim(&mut one, "q", "w", 2, Duration::ZERO, false).unwrap();
    let mut tx = one.transaction().unwrap();
    assert_eq!(
        complete(&mut tx, &[rows[0].id], &[rows[0].lease_id])
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        rescue(&mut two, 10).unwrap(),
        [(rows[1].id, Became::Waiting)]
    );
    tx.rollback().unwrap();
    assert_eq!(
        rescue(&mut two, 10).unwrap(),
        [(rows[0].id, Became::Waiting)]
    );
}

#[test]
fn claims_at_once_share_nothing() {
    let schema = schema();
    let mut client = schema.client();
    let jobs: Vec<NewJob> = (0..1500)
        .map(|n| {
            if n % 3 == 0 {
                job().key(format!("k{}", n % 5), 1000)
            } else {
                job()
            }
        })
        .collect();
    enqueue_many(&mut client, &jobs).unwrap();
    let claimed: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut client = schema.client();
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    let mut keyed_first = false;
                    let mut empty = 0;
                    while empty < 20 {
                        keyed_first = !keyed_first;
                        let rows = claim(&mut client, "q", "w", 37, LEASE, keyed_first).unwrap();
                        empty = if rows.is_empty() { empty + 1 } else { 0 };
                        mine.extend(rows.into_iter().map(|row| row.id));
                    }
                    mine
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(claimed.len(), 1500);
    assert_eq!(claimed.iter().collect::<HashSet<_>>().len(), 1500);
}

#[test]
fn only_a_claim_under_a_lease_that_was_drawn_before_is_not_waited_for() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &[job(), job()]).unwrap();
    let mut claimed = |lease: Option<i64>| {
        let mut tx = client.transaction().unwrap();
        let sql = "SELECT lease_id FROM job_claim('q', 'w', $1, 1, 1, 1000, false, NULL, '')";
        let lease_id: i64 = tx.query_one(sql, &[&lease]).unwrap().get(0);
        let row = tx.query_one("SHOW synchronous_commit", &[]).unwrap();
        let waits = row.get::<_, &str>(0) == "on";
        tx.commit().unwrap();
        let row = client.query_one("SHOW synchronous_commit", &[]).unwrap();
        assert_eq!(row.get::<_, &str>(0), "on", "after the transaction");
        (lease_id, waits)
    };
    assert_eq!(claimed(Some(1_000_000)), (1_000_000, false));
    assert_eq!(claimed(None), (1, true));
}
