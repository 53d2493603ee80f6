//! Purges take what is too old and nothing else, and what remains can be verified.

use super::support::{count, decision, denied, soon, verify, writer};
use crate::harness::{Database, eventually};
use agent_runtime::audit::verify::Kind;
use agent_runtime::audit::{Audit, Outcome, Retention, Running};
use agent_runtime::ids::Clock;
use ed25519_dalek::SigningKey;
use std::time::Duration;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 3600);

struct World {
    database: Database,
    clock: Clock,
    audit: Audit,
    key: SigningKey,
    _running: Running,
}

impl World {
    /// Its clock stands this far back, at a noon, and the database's where it is: what is purged is
    /// too old by both.
    fn ago(days: u32) -> Self {
        Self::ago_with(days, true)
    }

    fn ago_with(days: u32, signs: bool) -> Self {
        let (database, clock) = (Database::migrated(), Clock::system());
        clock.set_back(DAY * days);
        let hour = clock.now().hour();
        // No day, and no month, ends while a test runs.
        clock.set_back(Duration::from_secs(3600 * u64::from((hour + 12) % 24)));
        let key = SigningKey::from_bytes(&[7; 32]);
        let signing = signs.then(|| key.clone());
        let (audit, running) = writer(&database.url(), &clock, |options| {
            options.retention = Some(Retention { key: signing });
        });
        Self {
            database,
            clock,
            audit,
            key,
            _running: running,
        }
    }

    /// Some decisions, some of them refusals, each a batch of its own.
    fn write(&self) {
        for number in 0..6 {
            let tenant_id = Uuid::from_u128(number % 2);
            let one = match number {
                0..4 => decision(tenant_id, "project:a"),
                _ => denied(tenant_id, "project:a"),
            };
            self.audit.record(one).unwrap().wait(soon()).unwrap();
        }
    }

    fn later(&self, days: u32) {
        self.clock.advance(DAY * days);
        self.audit.keep_up();
    }

    fn count(&self, outcome: Outcome) -> i64 {
        let query = "select count(*) from audit_decisions where outcome = $1";
        let row = self.database.client().query_one(query, &[&outcome.text()]);
        row.unwrap().get(0)
    }

    #[track_caller]
    fn becomes(&self, allowed: i64, denied: i64) {
        eventually("the purge", || {
            let now = (self.count(Outcome::Allowed), self.count(Outcome::Denied));
            (now == (allowed, denied)).then_some(())
        });
        let report = verify(&self.database, &[self.key.verifying_key()]);
        assert_eq!(report.faults, []);
        assert_eq!(report.decisions, u64::try_from(allowed + denied).unwrap());
    }

    /// Whether the month of this time has a partition.
    fn has_month(&self, outcome: Outcome, days_ago: u32) -> bool {
        let at = self.clock.now() - DAY * days_ago;
        let name = format!(
            "audit_decisions_{}_{:04}{:02}",
            outcome.text(),
            at.year(),
            u8::from(at.month())
        );
        let query = "select to_regclass($1::text) is not null";
        let row = self.database.client().query_one(query, &[&name]);
        row.unwrap().get(0)
    }
}

#[test]
fn what_is_too_old_goes_by_its_outcome_and_leaves_a_signed_anchor() {
    let world = World::ago(510);
    world.write();
    world.later(89);
    world.write();
    world.becomes(8, 4);
    // The first ones are 91 days old.
    world.later(2);
    world.becomes(4, 4);
    let report = verify(&world.database, &[]);
    assert_eq!((report.anchors, report.unsigned_anchors), (1, 0));
    // A month that is past as a whole goes as a whole.
    world.later(60);
    eventually("the month to go", || {
        (!world.has_month(Outcome::Allowed, 151)).then_some(())
    });
    assert!(world.has_month(Outcome::Denied, 151));
    world.becomes(4, 4);
    world.later(120);
    world.becomes(0, 4);
    world.later(230);
    world.becomes(0, 0);
    // The chain goes on from its anchor.
    world.write();
    world.becomes(4, 2);
    let other = SigningKey::from_bytes(&[8; 32]);
    let faults = verify(&world.database, &[other.verifying_key()]).faults;
    let kinds: Vec<_> = faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(
        kinds,
        [Kind::AnchorNotSigned; 2],
        "another key signs nothing here"
    );
    let purged: i64 = world
        .database
        .client()
        .query_one("select sum(rows_purged)::bigint from audit_anchors", &[])
        .unwrap()
        .get(0);
    assert_eq!(purged, 12);
}

/// One day apart, so that the purge of the older ones shows that the younger ones were looked at.
#[test]
fn allowed_decisions_stay_for_90_days_and_refusals_for_365() {
    let world = World::ago(400);
    world.write();
    world.later(1);
    world.write();
    world.later(88);
    world.becomes(8, 4);
    world.later(1);
    world.becomes(4, 4);
    world.later(1);
    world.becomes(0, 4);
    world.later(274);
    world.becomes(0, 2);
    world.later(1);
    world.becomes(0, 0);
}

#[test]
fn a_deletion_does_not_pass_for_a_purge() {
    let world = World::ago(100);
    world.write();
    world.later(89);
    world.write();
    world.later(2);
    world.becomes(4, 4);
    let key = [world.key.verifying_key()];
    for (tampering, undo, kind) in [
        (
            "update audit_anchors set through_position = through_position + 1",
            "update audit_anchors set through_position = through_position - 1",
            Kind::AnchorNotSigned,
        ),
        (
            "update audit_anchors set rows_purged = rows_purged + 1",
            "update audit_anchors set rows_purged = rows_purged - 1",
            Kind::AnchorNotSigned,
        ),
        (
            "create table kept as select * from audit_anchors; delete from audit_anchors",
            "insert into audit_anchors select * from kept",
            Kind::Removed,
        ),
    ] {
        let mut client = world.database.client();
        client.batch_execute(tampering).unwrap();
        let faults = verify(&world.database, &key).faults;
        assert_eq!(faults[0].kind, kind, "{tampering}: {faults:?}");
        client.batch_execute(undo).unwrap();
        assert_eq!(verify(&world.database, &key).faults, []);
    }
}

#[test]
fn without_a_key_it_is_purged_all_the_same_and_the_anchor_is_known_as_unsigned() {
    let world = World::ago_with(510, false);
    world.write();
    world.later(89);
    world.write();
    world.later(2);
    eventually("a chunk to go", || {
        (world.count(Outcome::Allowed) == 4).then_some(())
    });
    // A month that is past as a whole, too.
    world.later(60);
    eventually("the month to go", || {
        (!world.has_month(Outcome::Allowed, 151)).then_some(())
    });
    world.later(400);
    eventually("all to go", || (count(&world.database) == 0).then_some(()));
    world.write();
    let report = verify(&world.database, &[]);
    assert_eq!((report.faults, report.decisions), (vec![], 6));
    assert_eq!((report.anchors, report.unsigned_anchors), (2, 2));
    // Where there is a key, an anchor without a signature may be a removal.
    let faults = verify(&world.database, &[world.key.verifying_key()]).faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    for fault in faults {
        assert_eq!(fault.kind, Kind::AnchorNotSigned);
        assert!(fault.finding.contains("there was no key yet"), "{fault:?}");
    }
}

#[test]
fn a_clock_that_runs_ahead_purges_nothing() {
    let world = World::ago(0);
    world.write();
    // Of the second leap's partitions, the first one's purge is over.
    for days in [100, 400] {
        world.later(days);
        eventually("the partitions of that time", || {
            world.has_month(Outcome::Denied, 0).then_some(())
        });
    }
    world.becomes(4, 2);
    assert_eq!(verify(&world.database, &[]).anchors, 0);
}

#[test]
fn without_retention_nothing_goes_and_the_next_months_are_made() {
    let (database, clock) = (Database::migrated(), Clock::system());
    let (audit, _running) = writer(&database.url(), &clock, |_| {});
    let write = || {
        let ticket = audit
            .record(decision(Uuid::from_u128(1), "project:a"))
            .unwrap();
        ticket.wait(soon()).unwrap();
    };
    write();
    for _ in 0..4 {
        // Without the keeper, as on a server that slept.
        clock.advance(DAY * 100);
        write();
    }
    assert_eq!(count(&database), 5);
    clock.advance(DAY * 100);
    audit.keep_up();
    eventually("the partitions", || {
        let at = clock.now();
        let name = format!(
            "audit_batches_denied_{:04}{:02}",
            at.year(),
            u8::from(at.month())
        );
        let query = "select to_regclass($1::text) is not null";
        let row = database.client().query_one(query, &[&name]).unwrap();
        row.get::<_, bool>(0).then_some(())
    });
    assert_eq!(count(&database), 5);
    assert_eq!(verify(&database, &[]).faults, []);
}

/// Whether somebody waits for a lock in the database.
fn has_waiter(database: &Database) -> bool {
    let query = "select exists (select from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock')";
    database.client().query_one(query, &[]).unwrap().get(0)
}

#[test]
fn a_month_that_goes_while_one_verifies_does_not_pass_for_tampering() {
    let world = World::ago(160);
    world.write();
    let month = world.clock.now().date();
    let mut client = world.database.client();
    // What was written is kept aside, purged, put back: then it goes again, as slowly as is needed.
    client
        .batch_execute(
            "create table kept_decisions as select * from audit_decisions where outcome = 'allowed';
             create table kept_batches as select * from audit_batches where outcome = 'allowed'",
        )
        .unwrap();
    world.later(150);
    eventually("the month to go", || {
        (!world.has_month(Outcome::Allowed, 150)).then_some(())
    });
    let World {
        database,
        key,
        _running: running,
        ..
    } = world;
    assert!(running.stop(soon()));
    client
        .execute("select attach_audit_partitions($1)", &[&month])
        .unwrap();
    client
        .batch_execute(
            "insert into audit_decisions select * from kept_decisions;
             insert into audit_batches select * from kept_batches;
             create table kept_anchors as select * from audit_anchors;
             delete from audit_anchors",
        )
        .unwrap();
    let keys = [key.verifying_key()];
    let report = verify(&database, &keys);
    assert_eq!((report.faults, report.anchors), (vec![], 0));
    let mut purge = client.transaction().unwrap();
    purge
        .batch_execute("insert into audit_anchors select * from kept_anchors")
        .unwrap();
    purge
        .execute("select drop_audit_partitions('allowed', $1)", &[&month])
        .unwrap();
    let report = std::thread::scope(|scope| {
        let verifies = scope.spawn(|| verify(&database, &keys));
        eventually("it to wait for the purge", || {
            has_waiter(&database).then_some(())
        });
        purge.commit().unwrap();
        verifies.join().unwrap()
    });
    assert_eq!((report.faults, report.anchors), (vec![], 1));
    assert_eq!(report.decisions, 2, "the refusals");
}
