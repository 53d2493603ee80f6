//! What was changed, removed or inserted is found and named.

use super::support::{decision, denied, soon, verify, writer};
use crate::harness::Database;
use agent_runtime::audit::Outcome;
use agent_runtime::audit::verify::Kind;
use agent_runtime::ids::Clock;
use uuid::Uuid;

/// Five batches of one decision each, then one refusal, then thirty decisions at once.
fn written() -> Database {
    let database = Database::migrated();
    let (audit, running) = writer(&database.url(), &Clock::system(), |_| {});
    let tenant_id = Uuid::from_u128(5);
    for _ in 0..5 {
        let ticket = audit.record(decision(tenant_id, "project:a")).unwrap();
        ticket.wait(soon()).unwrap();
    }
    let ticket = audit.record(denied(tenant_id, "project:a")).unwrap();
    ticket.wait(soon()).unwrap();
    for _ in 0..30 {
        audit.record(decision(tenant_id, "project:b")).unwrap();
    }
    assert!(running.stop(soon()));
    let report = verify(&database, &[]);
    assert_eq!(report.faults, [], "untouched, it is whole");
    assert_eq!((report.decisions, report.chains), (36, 2));
    database
}

#[track_caller]
fn check(tampering: &str, kind: Kind, positions: (i64, i64)) {
    let database = written();
    database.client().batch_execute(tampering).unwrap();
    let faults = verify(&database, &[]).faults;
    let found: Vec<_> = faults
        .iter()
        .map(|fault| {
            (
                fault.kind,
                fault.slot,
                (fault.first_position, fault.last_position),
            )
        })
        .collect();
    assert_eq!(found, [(kind, 1, positions)], "{tampering}: {faults:?}");
}

#[test]
fn a_changed_decision_is_named() {
    for column in [
        "reason = 'another'",
        "tenant_id = gen_random_uuid()",
        "decided_at = decided_at + interval '1 microsecond'",
        "run_id = gen_random_uuid()",
        "client_address = ''",
        "duration_us = 7",
        "stage = 'key-role'",
    ] {
        check(
            &format!("update audit_decisions set {column} where position = 3"),
            Kind::Changed,
            (3, 3),
        );
    }
}

#[test]
fn a_changed_batch_is_named() {
    check(
        "update audit_batches set digest = sha256('a') where first_position = 3",
        Kind::Changed,
        (3, 3),
    );
    check(
        "update audit_batches set row_count = 2 where first_position = 3",
        Kind::Changed,
        (3, 3),
    );
}

#[test]
fn what_was_removed_is_named() {
    check(
        "delete from audit_decisions where position = 3",
        Kind::Removed,
        (3, 3),
    );
    check(
        "delete from audit_decisions where position = 3; delete from audit_batches where first_position = 3",
        Kind::Removed,
        (3, 4),
    );
    check(
        "delete from audit_batches where first_position = 3",
        Kind::Removed,
        (3, 4),
    );
    // The only refusal, and so the whole of its chain.
    check(
        "delete from audit_decisions where outcome = 'denied'; delete from audit_batches where outcome = 'denied'",
        Kind::Removed,
        (1, 36),
    );
    check("delete from audit_writers", Kind::Inserted, (1, 1));
}

#[test]
fn what_was_inserted_is_named() {
    let copy = |position: i64| {
        format!(
            "create temporary table one as select * from audit_decisions where position = 3;
             update one set position = {position}, id = gen_random_uuid();
             insert into audit_decisions select * from one"
        )
    };
    check(&copy(3), Kind::Inserted, (3, 3));
    check(&copy(4), Kind::Inserted, (4, 4));
    check(&copy(1000), Kind::Inserted, (1000, 1000));
    check(
        "create temporary table one as select * from audit_batches where first_position = 3;
         update one set first_position = 1000, last_position = 1000;
         insert into audit_batches select * from one",
        Kind::Inserted,
        (1000, 1000),
    );
}

#[test]
fn what_changed_places_is_named() {
    check(
        "update audit_decisions set position = 6 - position where position in (2, 4)",
        Kind::Changed,
        (2, 2),
    );
    let database = written();
    let row = database
        .client()
        .query_one(
            "select first_position, last_position from audit_batches
             where row_count > 1 order by first_position limit 1",
            &[],
        )
        .unwrap();
    let (first, last): (i64, i64) = (row.get(0), row.get(1));
    database
        .client()
        .execute(
            "update audit_decisions set position = $1 + $2 - position where position in ($1, $2)",
            &[&first, &last],
        )
        .unwrap();
    let faults = verify(&database, &[]).faults;
    let fault = &faults[0];
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(
        (fault.kind, fault.outcome),
        (Kind::Changed, Outcome::Allowed)
    );
    assert_eq!((fault.first_position, fault.last_position), (first, last));
}
