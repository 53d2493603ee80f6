//! Attempts that begin where their event is emitted: when they do, and what holds for them as for all others.

use super::world::{World, approval, test};
use crate::harness::{Receiver, Reply, eventually};
use agent_runtime::error::Error;
use agent_runtime::store::Tx;
use crossbeam_channel::{Sender, bounded};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An endpoint that is well; from then on its receiver answers once the sender is dropped or has sent.
fn well(world: &World) -> (String, Receiver, Sender<()>) {
    let (release, held) = bounded(0);
    let holds = Arc::new(AtomicBool::new(false));
    let is_held = Arc::clone(&holds);
    let receiver = Receiver::start(move |_, _| match is_held.load(Ordering::SeqCst) {
        true => Reply::Held(held.clone()),
        false => Reply::status(204),
    });
    let endpoint = world.endpoint_with(&receiver.url(), &["approval.requested"], &json!(null));
    test(world, &endpoint);
    world.delivered(&endpoint);
    begins(world);
    holds.store(true, Ordering::SeqCst);
    (endpoint, receiver, release)
}

/// Emits in the transaction; whether the job is claimed.
fn emit(world: &World, tx: &mut Tx<'_>) -> bool {
    let webhooks = &world.app.server().shared().webhooks;
    let tenant_id = world.app.seeds.tenant_id;
    webhooks.emit(tx, tenant_id, &approval(world)).unwrap();
    // Of this transaction's own.
    let newest = "select lease_id is not null from job_jobs
        where queue = 'webhooks' and xmin = pg_current_xact_id()::xid order by id desc limit 1";
    tx.raw().query_one(newest, &[]).unwrap().get(0)
}

fn emitted(world: &World) -> bool {
    let store = &world.app.server().shared().store;
    store.transact(|tx| Ok(emit(world, tx))).unwrap()
}

/// Whether what is emitted now would begin at once; nothing is.
fn would_begin(world: &World) -> bool {
    let store = &world.app.server().shared().store;
    let mut would = false;
    let rolled_back = store.transact(|tx| {
        would = emit(world, tx);
        Err::<(), _>(Error::internal("only asked"))
    });
    assert!(rolled_back.is_err());
    would
}

/// Waits until what is emitted would begin at once: what was under way has been seen to be over.
#[track_caller]
fn begins(world: &World) {
    eventually("nothing to be under way", || {
        would_begin(world).then_some(())
    });
}

fn has_job(world: &World) -> bool {
    world.number("select count(*) from job_jobs where queue = 'webhooks'") > 0
}

#[test]
fn an_event_for_an_endpoint_that_is_well_begins_where_it_is_emitted() {
    let world = World::new();
    let (endpoint, receiver, release) = well(&world);
    let known = receiver.received().len();
    assert!(emitted(&world));
    receiver.once(known + 1);
    // One at a time: the next ones are claimed.
    assert!(!emitted(&world));
    receiver.once(known + 2);
    drop(release);
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 1, "{delivery}");
    assert_eq!(delivery["attempts"][0]["status"], 200);
    eventually("all to be delivered", || (!has_job(&world)).then_some(()));
    // Places and keys are free again.
    begins(&world);
    assert_eq!(
        receiver.received().len(),
        known + 2,
        "what is rolled back is not sent"
    );
}

#[test]
fn two_that_ask_at_once_are_both_delivered_and_one_of_them_is_claimed() {
    let world = World::new();
    let (endpoint, receiver, release) = well(&world);
    let known = receiver.received().len();
    let mut client = world.app.database.client();
    let mut writers = client.transaction().unwrap();
    writers
        .batch_execute("lock table webhook_events in share mode")
        .unwrap();
    let begun = std::thread::scope(|scope| {
        let both = [0; 2].map(|_| scope.spawn(|| emitted(&world)));
        let waiting = "select count(*) from pg_locks where not granted and relation = 'webhook_events'::regclass";
        eventually("both to wait", || {
            (world.number(waiting) == 2).then_some(())
        });
        writers.commit().unwrap();
        both.map(|one| one.join().unwrap())
    });
    assert_eq!(begun.iter().filter(|begun| **begun).count(), 1, "{begun:?}");
    receiver.once(known + 2);
    drop(release);
    eventually("both to be delivered", || {
        let all = world.deliveries(&endpoint);
        let once =
            |one: &serde_json::Value| one["state"] == "delivered" && one["attemptCount"] == 1;
        (all.len() == 3 && all.iter().all(once)).then_some(())
    });
    begins(&world);
}

#[test]
fn of_one_transaction_the_first_begins_and_the_others_wait() {
    let world = World::new();
    let (endpoint, receiver, release) = well(&world);
    drop(release);
    let known = receiver.received().len();
    let store = &world.app.server().shared().store;
    let begun = store.transact(|tx| Ok([0; 3].map(|_| emit(&world, tx))));
    assert_eq!(begun.unwrap(), [true, false, false]);
    receiver.once(known + 3);
    world.delivered(&endpoint);
}

#[test]
fn what_is_new_fails_is_held_or_is_not_alone_waits_for_a_claim() {
    let world = World::new();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let receiver = Receiver::start(move |_, _| match failing.load(Ordering::SeqCst) {
        true => Reply::status(500),
        false => Reply::status(204),
    });
    let register = || world.endpoint_with(&receiver.url(), &["approval.requested"], &json!(null));
    let endpoint = register();
    assert!(!would_begin(&world), "it has taken nothing yet");
    test(&world, &endpoint);
    world.delivered(&endpoint);
    begins(&world);
    // Somebody changes it.
    let mut client = world.app.database.client();
    let mut change = client.transaction().unwrap();
    change
        .batch_execute("select from webhook_endpoints for no key update")
        .unwrap();
    assert!(!would_begin(&world), "somebody changes it");
    change.rollback().unwrap();
    begins(&world);
    let other = register();
    assert!(!would_begin(&world), "there are two");
    let path = format!("/v1/webhook-endpoints/{other}");
    world.app.delete(&path).expect(204);
    begins(&world);
    fails.store(true, Ordering::SeqCst);
    test(&world, &endpoint);
    world.attempted(&endpoint, 1);
    assert!(!would_begin(&world), "it fails");
}

#[test]
fn where_no_thread_is_free_it_waits() {
    let world = World::with(|options| {
        options.webhooks.threads = 1;
        options.webhooks.timeout = Duration::from_secs(20);
    });
    let (_, receiver, release) = well(&world);
    let known = receiver.received().len();
    assert!(emitted(&world));
    receiver.once(known + 1);
    // Another endpoint's, to which nothing is under way.
    world
        .app
        .sql("update webhook_endpoints set unregistered_at = now()");
    let other = Receiver::good();
    let second = world.endpoint_with(&other.url(), &["approval.requested"], &json!(null));
    world.app.sql(&format!(
        "update webhook_endpoint_counts set last_delivered_at = now() where endpoint_id = '{second}'"
    ));
    assert!(!would_begin(&world));
    drop(release);
    begins(&world);
}

#[test]
fn unregistering_waits_for_what_may_begin_with_a_commit() {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(20));
    let (endpoint, receiver, release) = well(&world);
    let known = receiver.received().len();
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    let store = &world.app.server().shared().store;
    std::thread::scope(|scope| {
        let unregistering = store.transact(|tx| {
            assert!(emit(&world, tx));
            let unregistering = scope.spawn(|| world.app.delete(&path).status);
            std::thread::sleep(Duration::from_millis(300));
            assert!(!unregistering.is_finished(), "it may begin");
            Ok(unregistering)
        });
        let unregistering = unregistering.unwrap();
        receiver.once(known + 1);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!unregistering.is_finished(), "it is under way");
        drop(release);
        assert_eq!(unregistering.join().unwrap(), 204);
    });
    assert!(!has_job(&world));
    assert_eq!(receiver.received().len(), known + 1);
}
