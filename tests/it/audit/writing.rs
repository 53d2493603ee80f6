//! What is confirmed is on disk, once, whatever happens on the way.

use super::support::{count, decision, denied, soon, store_options, writer};
use crate::harness::{App, Database, eventually, log};
use agent_runtime::audit::Audit;
use agent_runtime::error::Code;
use agent_runtime::ids::Clock;
use agent_runtime::store::audit::{self as rows, Batch, Outcome, Row};
use agent_runtime::store::{Session, Sql, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use uuid::Uuid;

#[test]
fn many_threads_share_transactions_and_every_ticket_has_its_row() {
    let database = Database::migrated();
    let (audit, running) = writer(&database.url(), &Clock::system(), |_| {});
    let committed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let (audit, committed) = (&audit, &committed);
            scope.spawn(move || {
                let tenant_id = Uuid::from_u128(thread % 4);
                for number in 0..25 {
                    let one = match number % 3 {
                        0 => denied(tenant_id, "project:a"),
                        _ => decision(tenant_id, "project:a"),
                    };
                    let ticket = audit.enqueue(one).unwrap();
                    match thread % 2 {
                        0 => audit.wake_writer(),
                        _ => audit.write_waiting(),
                    }
                    ticket.wait(soon()).unwrap();
                    committed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(committed.into_inner(), 800);
    assert_eq!(count(&database), 800);
    let stats = audit.stats();
    assert_eq!((stats.queued, stats.rows_written), (0, 800));
    assert!(stats.batches_written < 400, "{stats:?}");
    assert!(running.stop(soon()));
    let free: bool = database
        .client()
        .query_one("select leased_until is null from audit_writers", &[])
        .unwrap()
        .get(0);
    assert!(free, "a clean stop gives the slot back");
}

#[test]
fn a_callback_is_called_once_after_the_row_is_there() {
    let database = Database::migrated();
    let (audit, _running) = writer(&database.url(), &Clock::system(), |_| {});
    let (tell, told) = mpsc::channel();
    let ticket = audit
        .record(decision(Uuid::from_u128(1), "project:a"))
        .unwrap();
    let seen = database.clone();
    ticket.then(move |result| {
        result.unwrap();
        tell.send(count(&seen)).unwrap();
    });
    assert_eq!(told.iter().collect::<Vec<_>>(), [1]);
}

/// Writes so many decisions as one batch, after what the slot has.
fn write_batch(session: &mut Session, slot: &mut rows::Slot, count: i32) {
    let row = |place: i32| Row {
        id: Uuid::new_v4(),
        tenant_id: Uuid::from_u128(1),
        slot: slot.slot,
        position: slot.position + i64::from(place),
        decided_at: slot.decided_at,
        outcome: Outcome::Allowed,
        actor_subject: "user:a".to_owned(),
        action: "read".to_owned(),
        resource: "project:a".to_owned(),
        reason: "allowed by the model".to_owned(),
        stage: "model".to_owned(),
        failing_part: None,
        check_user: None,
        check_relation: None,
        check_object: None,
        store_id: None,
        model_id: None,
        duration_us: 0,
        request_id: None,
        trace_id: None,
        key_id: None,
        credential_kind: None,
        route: None,
        run_id: None,
        client_address: None,
    };
    let mut all: Vec<Row> = (1..=count).map(row).collect();
    let batch = Batch {
        outcome: Outcome::Allowed,
        first_position: slot.position + 1,
        last_position: slot.position + i64::from(count),
        row_count: count,
        decided_at: slot.decided_at,
        digest: [1; 32],
        previous_digest: slot.digests[0],
    };
    slot.position = batch.last_position;
    let all: Vec<&mut Row> = all.iter_mut().collect();
    assert!(rows::write(session, slot, &[batch], &all, 30.0).unwrap());
}

/// To plan the statement takes as long as to execute it.
#[test]
fn the_plan_that_writes_decisions_is_kept_whatever_a_batch_holds() {
    let database = Database::migrated();
    for count in [1, 128] {
        // Plans are kept by the connection.
        let store = Store::open(&store_options(&database.url()), log()).unwrap();
        let mut session = store.session().unwrap();
        let mut slot = rows::claim(&mut session, 30.0).unwrap().unwrap();
        // In a month that has partitions.
        slot.decided_at = Clock::system().now();
        for _ in 0..20 {
            write_batch(&mut session, &mut slot, count);
        }
        let planned = session
            .query(
                "select custom_plans from pg_prepared_statements where statement like '-- One statement%'",
                &[],
            )
            .unwrap();
        let planned: Vec<i64> = planned.iter().map(|row| row.get(0)).collect();
        // PostgreSQL tries five times what a plan of its own would bring.
        assert_eq!(planned, [5], "a batch of {count} is planned anew each time");
        rows::free(&mut session, (slot.slot, slot.epoch)).unwrap();
    }
}

/// Writes decisions until one was written by this very thread: the connection stands, and the writer's thread rests. How
/// many batches that took.
fn warm_up(audit: &Audit) -> u64 {
    let here = std::thread::current().id();
    eventually("a decision to be written where it was left", || {
        let (tell, told) = mpsc::channel();
        let left = decision(Uuid::from_u128(1), "project:a");
        audit.enqueue(left).unwrap().then(move |result| {
            result.unwrap();
            tell.send(std::thread::current().id()).unwrap();
        });
        audit.write_waiting();
        (told.recv().unwrap() == here).then(|| audit.stats().batches_written)
    })
}

#[test]
fn whoever_waits_while_nobody_writes_writes_itself() {
    let database = Database::migrated();
    let (audit, running) = writer(&database.url(), &Clock::system(), |_| {});
    let before = warm_up(&audit);
    let written_before = count(&database);
    for round in 1..=20 {
        let (tell, told) = mpsc::channel();
        for _ in 0..2 {
            let (tell, left) = (tell.clone(), decision(Uuid::from_u128(1), "project:a"));
            audit.enqueue(left).unwrap().then(move |result| {
                result.unwrap();
                tell.send(std::thread::current().id()).unwrap();
            });
        }
        assert_eq!(audit.stats().queued, 2, "nobody was called");
        audit.write_waiting();
        let here = std::thread::current().id();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [here; 2]);
        let stats = audit.stats();
        let batches = stats.batches_written - before;
        assert_eq!((batches, stats.writing), (round, 0));
    }
    // Nothing waits: nothing is written.
    audit.write_waiting();
    assert_eq!(audit.stats().batches_written - before, 20);
    // One that is called for is written by the writer's thread.
    let called = audit
        .enqueue(decision(Uuid::from_u128(1), "project:a"))
        .unwrap();
    audit.wake_writer();
    called.wait(soon()).unwrap();
    audit
        .enqueue(decision(Uuid::from_u128(1), "project:a"))
        .unwrap();
    assert!(running.stop(soon()));
    let written = count(&database) - written_before;
    assert_eq!(written, 42, "what was left is written by a stop");
    audit.write_waiting();
}

#[test]
fn what_waits_for_another_s_write_is_written_after_it() {
    let database = Database::migrated();
    let (audit, _running) = writer(&database.url(), &Clock::system(), |_| {});
    let leave = || {
        audit
            .enqueue(decision(Uuid::from_u128(1), "project:a"))
            .unwrap()
    };
    let before = warm_up(&audit);
    let first = leave();
    let mut holder = database.client();
    let lock = "begin; lock table audit_decisions in exclusive mode";
    holder.batch_execute(lock).unwrap();
    std::thread::scope(|scope| {
        let leads = scope.spawn(|| audit.write_waiting());
        eventually("it to be taken", || {
            (audit.stats().writing == 1).then_some(())
        });
        let second = leave();
        // It does not wait for the other one.
        audit.write_waiting();
        let third = leave();
        audit.wake_writer();
        assert_eq!(audit.stats().queued, 2);
        assert!(!leads.is_finished());
        holder.batch_execute("rollback").unwrap();
        for ticket in [first, second, third] {
            ticket.wait(soon()).unwrap();
        }
    });
    assert_eq!(audit.stats().batches_written - before, 2);
}

#[test]
fn what_cannot_be_stored_fails_alone() {
    let database = Database::migrated();
    let (audit, _running) = writer(&database.url(), &Clock::system(), |_| {});
    let tenant_id = Uuid::from_u128(1);
    let tickets: Vec<_> = (0..40)
        .map(|number| {
            let mut one = decision(tenant_id, "project:a");
            if number == 17 {
                one.reason = "with \0 in it".to_owned();
            }
            audit.enqueue(one).unwrap()
        })
        .collect();
    audit.write_waiting();
    for (number, ticket) in tickets.iter().enumerate() {
        match ticket.wait(soon()) {
            Ok(()) => assert_ne!(number, 17),
            Err(error) => {
                assert_eq!((number, error.code()), (17, Code::AuditUnavailable));
                assert!(error.message().contains("audit"), "{error}");
            }
        }
    }
    assert_eq!(count(&database), 39);
    assert_eq!(audit.stats().rows_refused, 1);
}

#[test]
fn a_server_that_stops_writes_what_waits_and_shows_what_it_wrote() {
    let app = App::start();
    let audit = app.server().shared().audit.clone();
    let tenant_id = app.seeds.tenant_id;
    audit
        .record(decision(tenant_id, "project:a"))
        .unwrap()
        .wait(soon())
        .unwrap();
    let metrics = app.get("/metrics").text;
    assert!(
        metrics.contains("\nagent_runtime_audit_rows_total 1\n"),
        "{metrics}"
    );
    for _ in 0..1000 {
        audit.record(denied(tenant_id, "project:a")).unwrap();
    }
    let (database, _, _) = app.stop();
    assert_eq!(count(&database), 1001);
    let refused = audit.record(decision(tenant_id, "project:a")).err();
    assert_eq!(refused.unwrap().code(), Code::AuditUnavailable);
}
