//! Enqueueing: in the caller's transaction, unique keys, bounds.

use crate::harness::schema;
use jobs::protocol::{Became, EndedJob, Ending, claim, end_jobs};
use jobs::{Enqueued, Error, NewJob, Priority, enqueue, enqueue_many};
use std::sync::mpsc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

fn job(number: u32) -> NewJob {
    NewJob::named("q", "n", number.to_string())
}

#[test]
fn a_job_exists_if_and_only_if_its_transaction_committed() {
    let schema = schema();
    let mut client = schema.client();
    let mut tx = client.transaction().unwrap();
    enqueue(&mut tx, job(1)).unwrap();
    tx.rollback().unwrap();
    assert!(
        claim(&mut client, "q", "w", 10, LEASE, false)
            .unwrap()
            .is_empty()
    );
    let mut tx = client.transaction().unwrap();
    let added = enqueue(&mut tx, job(2)).unwrap();
    tx.commit().unwrap();
    let rows = claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
    assert_eq!(
        (rows[0].id, rows[0].payload.as_str(), rows[0].attempt),
        (added.id, "2", 1)
    );
}

#[test]
fn many_are_answered_in_the_order_given_and_claimed_by_priority_and_age() {
    let schema = schema();
    let mut client = schema.client();
    let jobs = [
        job(0).priority(Priority::Low),
        job(1).unique("b"),
        job(2),
        job(3).unique("a"),
        job(4).priority(Priority::Urgent),
        job(5).unique("b"),
        job(6).delay(Duration::from_secs(60)),
    ];
    let added = enqueue_many(&mut client, &jobs).unwrap();
    for (number, one) in added.iter().enumerate() {
        let row = client
            .query_one(
                "SELECT payload::text FROM job_jobs WHERE id = $1",
                &[&one.id],
            )
            .unwrap();
        let expected = if number == 5 {
            "1".to_string()
        } else {
            number.to_string()
        };
        assert_eq!(row.get::<_, String>(0), expected);
        assert_eq!(one.added, number != 5);
    }
    let first = claim(&mut client, "q", "w", 1, LEASE, false).unwrap();
    assert_eq!(first[0].payload, "4");
    let mut next: Vec<String> = claim(&mut client, "q", "w", 3, LEASE, false)
        .unwrap()
        .into_iter()
        .map(|row| row.payload)
        .collect();
    next.sort();
    assert_eq!(next, ["1", "2", "3"]);
    let last = claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
    assert_eq!(
        last.iter()
            .map(|row| row.payload.as_str())
            .collect::<Vec<_>>(),
        ["0"]
    );
}

#[test]
fn a_unique_key_holds_while_its_job_waits_and_not_while_it_runs() {
    let schema = schema();
    let mut client = schema.client();
    let first = enqueue(&mut client, job(1).unique("u")).unwrap();
    assert_eq!(
        enqueue(&mut client, job(2).unique("u")).unwrap(),
        Enqueued {
            id: first.id,
            added: false
        }
    );
    let rows = claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
    let second = enqueue(&mut client, job(3).unique("u")).unwrap();
    assert!(second.added && second.id != first.id);
    // A failed first job merges into the second, which waits and will do the same work.
    let ending = Ending::Retry {
        after: Duration::from_secs(5),
        reason: "x".into(),
    };
    let ended = end_jobs(
        &mut client,
        &[EndedJob {
            id: first.id,
            lease_id: rows[0].lease_id,
            ending,
        }],
    )
    .unwrap();
    assert_eq!(ended, [(first.id, Became::Merged)]);
    // A job that waits for a retry holds its key as well.
    let rows = claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
    let ending = Ending::Retry {
        after: Duration::from_secs(5),
        reason: "x".into(),
    };
    end_jobs(
        &mut client,
        &[EndedJob {
            id: second.id,
            lease_id: rows[0].lease_id,
            ending,
        }],
    )
    .unwrap();
    assert_eq!(
        enqueue(&mut client, job(4).unique("u")).unwrap(),
        Enqueued {
            id: second.id,
            added: false
        }
    );
}

#[test]
fn a_job_that_a_second_enqueue_leant_on_does_not_start_before_that_transaction_ends() {
    let schema = schema();
    let mut client = schema.client();
    let mut other = schema.client();
    enqueue(&mut client, job(1).unique("u")).unwrap();
    let mut tx = client.transaction().unwrap();
    assert!(!enqueue(&mut tx, job(2).unique("u")).unwrap().added);
    assert!(
        claim(&mut other, "q", "w", 10, LEASE, false)
            .unwrap()
            .is_empty()
    );
    tx.commit().unwrap();
    assert_eq!(
        claim(&mut other, "q", "w", 10, LEASE, false).unwrap().len(),
        1
    );
}

#[test]
fn many_threads_with_one_unique_key_add_one_job() {
    let schema = schema();
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let send = send.clone();
            let mut client = schema.client();
            scope.spawn(move || {
                for number in 0..30 {
                    let keys = [format!("u{}", number % 7), format!("u{}", (number + 3) % 7)];
                    let both = [job(number).unique(&keys[0]), job(number).unique(&keys[1])];
                    let mut tx = client.transaction().unwrap();
                    for one in enqueue_many(&mut tx, &both).unwrap() {
                        send.send(one).unwrap();
                    }
                    tx.commit().unwrap();
                }
            });
        }
    });
    drop(send);
    assert_eq!(receive.iter().filter(|one| one.added).count(), 7);
    assert_eq!(
        schema.count(&mut schema.client(), "SELECT count(*) FROM job_jobs"),
        7
    );
}

#[test]
fn what_is_out_of_bounds_is_refused_before_anything_is_sent() {
    let schema = schema();
    let mut client = schema.client();
    let cases = [
        NewJob::named("", "n", "1"),
        NewJob::named("q", "n".repeat(201), "1"),
        NewJob::named("q", "a\0b", "1"),
        NewJob::named("q", "n", "\"\0\""),
        job(1).key("k", 0),
        job(1).key("k", 1).priority(Priority::Low),
        job(1).unique(""),
        job(1).max_attempts(0),
        job(1).delay(Duration::from_secs(u64::MAX)),
    ];
    for case in cases {
        let refused = enqueue_many(&mut client, &[job(7), case.clone()]);
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{case:?}: {refused:?}"
        );
    }
    assert!(matches!(
        enqueue(&mut client, NewJob::named("q", "n", "{")),
        Err(Error::Database(_))
    ));
    assert_eq!(
        schema.count(&mut client, "SELECT count(*) FROM job_jobs"),
        0
    );
}

#[test]
fn migrations_run_once_however_many_run_them() {
    let schema = crate::harness::empty_schema();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| jobs::migrate(&mut schema.client()).unwrap());
        }
    });
    let applied = schema.count(&mut schema.client(), "SELECT count(*) FROM job_migrations");
    assert_eq!(applied, jobs::MIGRATIONS.len() as i64);
}

#[test]
fn functions_are_replaced_as_a_set_where_their_texts_differ() {
    let schema = crate::harness::schema();
    let mut client = schema.client();
    let functions =
        "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace";
    let oid = "SELECT 'job_claim'::regproc::oid::bigint";
    let before = schema.count(&mut client, oid);
    jobs::migrate(&mut client).unwrap();
    assert_eq!(
        schema.count(&mut client, oid),
        before,
        "made anew from the same text"
    );
    // As another version left it: a function that is no longer among them, and another digest.
    let older = "CREATE FUNCTION job_claim(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
                 UPDATE job_function_set SET digest = 'another'";
    client.batch_execute(older).unwrap();
    jobs::migrate(&mut client).unwrap();
    let count = schema.count(&mut client, functions);
    assert_eq!(count, jobs::FUNCTIONS.len() as i64);
    assert_ne!(schema.count(&mut client, oid), before);
}
