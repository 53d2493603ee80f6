//! Cancel, the dead, figures.

use crate::harness::schema;
use jobs::protocol::{Became, EndedJob, Ending, claim, complete, end_jobs, rescue, watch};
use jobs::{
    Cancelled, NewJob, cancel, cancel_by_unique_key, dead_jobs, depth, enqueue, enqueue_many,
    purge_dead, revive, run_now,
};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

fn job() -> NewJob {
    NewJob::named("q", "n", "1")
}

fn retry() -> Ending {
    Ending::Retry {
        after: Duration::ZERO,
        reason: "no luck".into(),
    }
}

#[test]
fn a_cancelled_job_never_starts_whether_it_waits_runs_or_is_to_be_tried_again() {
    let schema = schema();
    let mut client = schema.client();
    let waiting = enqueue(&mut client, job()).unwrap().id;
    assert_eq!(cancel(&mut client, waiting).unwrap(), Cancelled::Removed);
    assert_eq!(cancel(&mut client, waiting).unwrap(), Cancelled::Unknown);
    for ending in [
        retry(),
        Ending::HandBack,
        Ending::Done,
        Ending::Snooze {
            after: Duration::ZERO,
        },
        Ending::Dead { reason: "x".into() },
    ] {
        let id = enqueue(&mut client, job()).unwrap().id;
        let lease_id = claim(&mut client, "q", "w", 10, LEASE, false).unwrap()[0].lease_id;
        assert!(watch(&mut client, &[id], &[lease_id]).unwrap().is_empty());
        assert_eq!(cancel(&mut client, id).unwrap(), Cancelled::Running);
        assert_eq!(
            watch(&mut client, &[id], &[lease_id]).unwrap(),
            [(id, lease_id, true)]
        );
        assert_eq!(
            end_jobs(
                &mut client,
                &[EndedJob {
                    id,
                    lease_id,
                    ending
                }]
            )
            .unwrap(),
            [(id, Became::Cancelled)]
        );
        assert_eq!(
            watch(&mut client, &[id], &[lease_id]).unwrap(),
            [(id, lease_id, false)]
        );
    }
    let id = enqueue(&mut client, job()).unwrap().id;
    claim(&mut client, "q", "w", 10, Duration::ZERO, false).unwrap();
    cancel(&mut client, id).unwrap();
    assert_eq!(rescue(&mut client, 10).unwrap(), [(id, Became::Cancelled)]);
    assert!(
        claim(&mut client, "q", "w", 10, LEASE, false)
            .unwrap()
            .is_empty()
    );
    assert!(dead_jobs(&mut client, "q", 0, 10).unwrap().is_empty());
}

#[test]
fn a_claim_passes_over_a_job_whose_cancel_is_not_committed() {
    let schema = schema();
    let (mut one, mut two) = (schema.client(), schema.client());
    let id = enqueue(&mut one, job()).unwrap().id;
    let mut tx = one.transaction().unwrap();
    cancel(&mut tx, id).unwrap();
    assert!(
        claim(&mut two, "q", "w", 10, LEASE, false)
            .unwrap()
            .is_empty()
    );
    tx.rollback().unwrap();
    assert_eq!(
        claim(&mut two, "q", "w", 10, LEASE, false).unwrap().len(),
        1
    );
}

#[test]
fn a_job_is_due_now_unless_it_runs() {
    let schema = schema();
    let mut client = schema.client();
    let later = Duration::from_secs(3600);
    for new in [job(), job().key("k", 1)] {
        let id = enqueue(&mut client, new.delay(later)).unwrap().id;
        let mut claim_one = || claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
        assert!(claim_one().is_empty());
        assert!(run_now(&mut client, id).unwrap());
        assert!(!run_now(&mut client, id).unwrap(), "it is due");
        let claimed = claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
        assert_eq!(claimed[0].id, id);
        assert!(!run_now(&mut client, id).unwrap(), "it runs");
        complete(&mut client, &[id], &[claimed[0].lease_id]).unwrap();
        assert!(!run_now(&mut client, id).unwrap(), "it is gone");
    }
}

#[test]
fn cancel_by_unique_key_takes_the_waiting_and_the_running_one() {
    let schema = schema();
    let mut client = schema.client();
    let running = enqueue(&mut client, job().unique("u")).unwrap().id;
    claim(&mut client, "q", "w", 10, LEASE, false).unwrap();
    let waiting = enqueue(&mut client, job().unique("u")).unwrap().id;
    let other = enqueue(&mut client, job().unique("v")).unwrap().id;
    let mut gone = cancel_by_unique_key(&mut client, "q", "u").unwrap();
    gone.sort_by_key(|(id, _)| *id);
    assert_eq!(
        gone,
        [(running, Cancelled::Running), (waiting, Cancelled::Removed)]
    );
    assert_eq!(
        claim(&mut client, "q", "w", 10, LEASE, false).unwrap()[0].id,
        other
    );
}

#[test]
fn a_job_dies_after_its_last_attempt_and_can_be_revived_and_purged() {
    let schema = schema();
    let mut client = schema.client();
    let id = enqueue(&mut client, job().max_attempts(2).key("k", 1).unique("u"))
        .unwrap()
        .id;
    let mut last_lease = 0;
    for attempt in 1..=2 {
        let rows = claim(&mut client, "q", "w", 10, LEASE, true).unwrap();
        assert_eq!(rows[0].attempt, attempt);
        last_lease = rows[0].lease_id;
        end_jobs(
            &mut client,
            &[EndedJob {
                id,
                lease_id: last_lease,
                ending: retry(),
            }],
        )
        .unwrap();
    }
    let dead = dead_jobs(&mut client, "q", 0, 10).unwrap();
    assert_eq!(
        (
            dead[0].id,
            dead[0].attempt,
            dead[0].reason.as_str(),
            dead[0].key.as_deref()
        ),
        (id, 2, "no luck", Some("k"))
    );
    assert!(dead_jobs(&mut client, "q", id, 10).unwrap().is_empty());
    assert!(dead_jobs(&mut client, "q", 0, 0).is_err());
    assert_eq!(revive(&mut client, &[id, 999]).unwrap(), [id]);
    let rows = claim(&mut client, "q", "w", 10, LEASE, true).unwrap();
    assert_eq!(
        (rows[0].id, rows[0].attempt, rows[0].max_attempts),
        (id, 1, 2)
    );
    // What an earlier life left running cannot touch this one.
    assert!(
        complete(&mut client, &[id], &[last_lease])
            .unwrap()
            .is_empty()
    );
    let reason = "a\0b".to_string() + &"é".repeat(3000);
    end_jobs(
        &mut client,
        &[EndedJob {
            id,
            lease_id: rows[0].lease_id,
            ending: Ending::Dead { reason },
        }],
    )
    .unwrap();
    let dead = dead_jobs(&mut client, "q", 0, 10).unwrap();
    assert!(dead[0].reason.starts_with("a\u{fffd}bé") && dead[0].reason.len() < 2010);
    assert_eq!(
        purge_dead(&mut client, Duration::from_secs(60), 10).unwrap(),
        0
    );
    assert_eq!(purge_dead(&mut client, Duration::ZERO, 10).unwrap(), 1);
}

#[test]
fn depth_counts_what_runs_what_is_due_and_what_is_for_later() {
    let schema = schema();
    let mut client = schema.client();
    enqueue_many(&mut client, &vec![job(); 5]).unwrap();
    enqueue_many(&mut client, &vec![job().delay(LEASE); 3]).unwrap();
    claim(&mut client, "q", "w", 2, LEASE, false).unwrap();
    client.batch_execute("UPDATE job_jobs SET run_at = run_at - interval '90 s' WHERE lease_id IS NULL AND run_at < now()").unwrap();
    let depth = depth(&mut client, "q").unwrap();
    assert_eq!((depth.running, depth.due, depth.later), (2, 3, 3));
    assert!((90..120).contains(&depth.oldest_due.as_secs()), "{depth:?}");
}
