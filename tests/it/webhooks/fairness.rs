//! What receivers that are slow or hang, and jobs that cannot be read, cost the others.

use super::world::{World, approval, test};
use crate::harness::{Receiver, Reply, eventually, let_time_pass};
use agent_runtime::outbound::{self, Outbound};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn in_flight(world: &World) -> u64 {
    world.app.server().shared().webhooks.stats().in_flight
}

/// A test that arrived; whether it did so quickly, as it does unless the machine stands still.
fn is_quick(world: &World, endpoint: &str) -> bool {
    test(world, endpoint);
    world.delivered(endpoint);
    let slow = "select count(*) from webhook_endpoint_counts where is_slow and endpoint_id = ";
    world.number(&format!("{slow}'{endpoint}'")) == 0
}

/// Tries again where the machine was too busy for what was to be seen.
fn undisturbed(round: impl Fn() -> Option<()>) {
    let seen = (0..5).find_map(|_| round());
    seen.expect("a round that the machine does not disturb");
}

/// How many attempts to the endpoint may be in flight at once, once it is this many.
fn cap(world: &World, endpoint: &str, cap: i64) {
    eventually("the cap to be so", || {
        let caps =
            format!("select coalesce(max(cap), 0)::bigint from job_keys where key = '{endpoint}'");
        (world.number(&caps) == cap).then_some(())
    });
}

#[test]
fn receivers_that_hang_leave_threads_to_the_others_however_many_they_are() {
    undisturbed(many_hang);
}

fn many_hang() -> Option<()> {
    let world = World::with(|options| {
        options.webhooks.threads = 4;
        options.webhooks.timeout = Duration::from_secs(20);
    });
    let well = Receiver::good();
    let endpoint = world.endpoint(&well.url());
    is_quick(&world, &endpoint).then_some(())?;
    let (hold, held) = crossbeam_channel::bounded(0);
    let hanging = Receiver::start(move |_, _| Reply::Held(held.clone()));
    for _ in 0..6 {
        test(&world, &world.endpoint(&hanging.url()));
    }
    hanging.once(2);
    for _ in 0..3 {
        is_quick(&world, &endpoint).then_some(())?;
    }
    assert_eq!(hanging.received().len(), 2);
    eventually("the hanging ones alone to be in flight", || {
        (in_flight(&world) == 2).then_some(())
    });
    drop(hold);
    hanging.once(6);
    Some(())
}

#[test]
fn a_receiver_that_takes_what_it_is_sent_slowly_has_one_attempt_in_flight() {
    undisturbed(one_is_slow);
}

fn one_is_slow() -> Option<()> {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(20));
    let (release, held) = crossbeam_channel::bounded(0);
    let receiver = Receiver::start(move |_, before| match before {
        // The first is quick, and so there are more than one.
        0 => Reply::status(200),
        _ => Reply::Held(held.clone()),
    });
    let endpoint = world.endpoint(&receiver.url());
    is_quick(&world, &endpoint).then_some(())?;
    for _ in 0..3 {
        test(&world, &endpoint);
    }
    receiver.once(4);
    // Longer than a quick one takes.
    let_time_pass(Duration::from_millis(2100));
    for _ in 0..3 {
        release.send(()).unwrap();
    }
    eventually("all three to be delivered", || {
        let delivered = "select max(delivered) from webhook_endpoint_counts where is_slow";
        let slow = "select count(*) from webhook_endpoint_counts where is_slow";
        (world.number(slow) == 1 && world.number(delivered) == 4).then_some(())
    });
    for _ in 0..3 {
        test(&world, &endpoint);
    }
    receiver.once(5);
    cap(&world, &endpoint, 1);
    // What came later has been seen to by now.
    let other = Receiver::good();
    let later = world.endpoint(&other.url());
    test(&world, &later);
    world.delivered(&later);
    assert_eq!(receiver.received().len(), 5);
    // It is well again once it is quick.
    drop(release);
    receiver.once(7);
    eventually("all to be delivered", || {
        let path = format!("/v1/webhook-endpoints/{endpoint}");
        let seen = world.app.get(&path).expect(200);
        (seen["deliveries"]["delivered"] == 7).then_some(())
    });
    Some(())
}

#[test]
fn a_cap_that_was_said_too_late_is_put_right_by_the_next_attempt() {
    let world = World::new();
    let receiver = Receiver::start(|_, _| Reply::status(500));
    let endpoint = world.endpoint(&receiver.url());
    test(&world, &endpoint);
    world.attempted(&endpoint, 1);
    cap(&world, &endpoint, 1);
    // As by a transaction that had begun while the endpoint was well.
    let mut client = world.app.database.client();
    jobs::set_cap(&mut client, "webhooks", &endpoint, 8).unwrap();
    cap(&world, &endpoint, 8);
    world.run_now();
    world.attempted(&endpoint, 2);
    cap(&world, &endpoint, 1);
}

#[test]
fn dead_name_servers_hold_up_no_receiver_that_is_well_and_cost_the_others_no_attempt() {
    let (release, blocked) = crossbeam_channel::bounded::<()>(0);
    let (began, looking) = crossbeam_channel::unbounded();
    let is_dead = Arc::new(AtomicBool::new(false));
    let dead = is_dead.clone();
    let lookup = move |name: &str| {
        if name == "dead.test" && dead.load(Ordering::SeqCst) {
            began.send(()).unwrap();
            let _ = blocked.recv();
        }
        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    };
    let world = World::with(move |options| {
        options.webhooks.timeout = Duration::from_secs(4);
        options.outbound = Outbound::new(outbound::Options {
            // One for those that are well, one for the others.
            receiver_resolver_threads: 2,
            lookup: Some(Arc::new(lookup)),
            ..outbound::Options::default()
        })
        .unwrap();
    });
    let receiver = Receiver::good();
    let endpoint =
        |name: &str| world.endpoint(&format!("http://{name}:{}/", receiver.address().port()));
    let [dead, well, new] = ["dead.test", "well.test", "new.test"].map(endpoint);
    test(&world, &well);
    world.delivered(&well);
    is_dead.store(true, Ordering::SeqCst);
    test(&world, &dead);
    looking.recv().unwrap();
    test(&world, &new);
    for _ in 0..3 {
        test(&world, &well);
        world.delivered(&well);
    }
    // That one was tried and failed; whose name nobody had time for was not.
    world.attempted(&dead, 1);
    eventually("its turn to be taken back", || {
        let waits =
            "select count(*) from job_jobs where run_at > enqueued_at + interval '1 s' and key = ";
        (world.number(&format!("{waits}'{new}'")) == 1).then_some(())
    });
    drop(release);
    let delivery = world.delivered(&new);
    assert_eq!(delivery["attemptCount"], 1, "{delivery}");
}

/// Many deliveries for one thread, whose receiver holds it after some: what was claimed by then is read anew, since it
/// waited for long.
#[test]
fn what_waited_long_for_a_thread_goes_where_its_endpoint_is_by_then() {
    undisturbed(one_holds_the_thread);
}

fn one_holds_the_thread() -> Option<()> {
    const QUICK: usize = 30;
    let world = World::with(|options| {
        options.webhooks.threads = 1;
        options.webhooks.timeout = Duration::from_secs(20);
        options.webhooks.ahead = Duration::from_secs(60);
    });
    let (hold, held) = crossbeam_channel::bounded(0);
    let before = Receiver::start(move |_, before| match before < QUICK {
        true => Reply::status(204),
        false => Reply::Held(held.clone()),
    });
    let endpoint = world.endpoint_with(&before.url(), &["approval.requested"], &Value::Null);
    test(&world, &endpoint);
    world.delivered(&endpoint);
    let shared = world.app.server().shared();
    let told = shared.store.transact(|tx| {
        (0..2 * QUICK).try_for_each(|_| {
            let event = approval(&world);
            shared.webhooks.emit(tx, world.app.seeds.tenant_id, &event)
        })
    });
    told.unwrap();
    before.once(QUICK + 1);
    let claimed = "select count(*) from job_jobs where queue = 'webhooks' and lease_id is not null";
    // One is held, others wait for its thread.
    (world.number(claimed) > 1).then_some(())?;
    let after = Receiver::good();
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    let url = json!({"url": after.url()});
    world.app.patch(&path, &url).expect(200);
    // The wait is what this is about.
    let_time_pass(Duration::from_millis(1500));
    drop(hold);
    after.once(QUICK);
    assert_eq!(before.received().len(), QUICK + 1);
    Some(())
}

#[test]
fn a_job_that_names_no_delivery_keeps_no_other_from_being_claimed() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    for payload in [r#"{"tenantId": "none"}"#, "{}"] {
        world.app.sql(&format!(
            "select job_enqueue_keyed('webhooks', 'webhook.deliver', '{payload}', 1::smallint, 3, '{payload}', 1)"
        ));
    }
    world.run();
    world.delivered(&endpoint);
}
