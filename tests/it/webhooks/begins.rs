//! Attempts that begin together once their jobs were claimed: which do, and how many are in flight at once.

use super::world::{World, approval, test};
use crate::harness::{Receiver, Reply, eventually};
use agent_runtime::store::webhook_attempts::{Begun, Wanted, begin_all};
use crossbeam_channel::bounded;
use postgres::Client;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const RECEIVERS: usize = 3;
const EVENTS: usize = 2;

/// Endpoints that are well, with some deliveries each that are due, in turn, and that this session alone can claim.
struct Due {
    /// Ends first: the server's claims wait for it.
    session: Client,
    world: World,
    receiver: Receiver,
    endpoints: Vec<Uuid>,
}

fn due() -> Due {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = |_| {
        let made = world.endpoint_with(&receiver.url(), &["approval.requested"], &Value::Null);
        test(&world, &made);
        world.delivered(&made);
        made.parse().unwrap()
    };
    let endpoints: Vec<Uuid> = (0..RECEIVERS).map(endpoint).collect();
    eventually("nothing to be under way", || {
        let jobs = world.number("select count(*) from job_jobs where queue = 'webhooks'");
        (jobs == 0).then_some(())
    });
    let mut session = world.app.database.client();
    session
        .batch_execute(
            "select pg_advisory_lock('job_keys'::regclass::oid::integer, hashtext('webhooks'))",
        )
        .unwrap();
    let shared = world.app.server().shared();
    for _ in 0..EVENTS {
        let event = approval(&world);
        let emitted = shared
            .store
            .transact(|tx| shared.webhooks.emit(tx, world.app.seeds.tenant_id, &event));
        emitted.unwrap();
    }
    Due {
        session,
        world,
        receiver,
        endpoints,
    }
}

impl Due {
    fn claimed(&mut self) -> Vec<Wanted> {
        let lease = Duration::from_secs(60);
        let rows = jobs::protocol::claim(&mut self.session, "webhooks", "test", 50, lease, true);
        let tenant_id = self.world.app.seeds.tenant_id;
        let wanted = rows.unwrap().into_iter().map(|row| {
            let payload: Value = serde_json::from_str(&row.payload).unwrap();
            let id = |name: &str| payload[name].as_str().unwrap().parse().unwrap();
            assert_eq!(id("tenantId"), tenant_id);
            Wanted {
                tenant_id,
                endpoint_id: id("endpointId"),
                delivery_id: id("deliveryId"),
                job_id: row.id,
                lease_id: row.lease_id,
            }
        });
        wanted.collect()
    }

    /// In the order of what was wanted.
    fn begun(&self, wanted: &[Wanted]) -> Vec<Option<Begun>> {
        let store = &self.world.app.server().shared().store;
        let (mut session, now) = (store.session().unwrap(), self.world.app.clock.now());
        let mut begun = begin_all(&mut session, wanted.to_vec(), now).unwrap();
        let in_order = wanted.iter().map(|one| begun.remove(&one.job_id)).collect();
        assert!(begun.is_empty(), "it was not asked for");
        in_order
    }

    /// The event of each delivery.
    fn events(&mut self, wanted: &[Wanted]) -> Vec<Uuid> {
        let mut event = |one: &Wanted| {
            let sql = "select event_id from webhook_deliveries where delivery_id = $1";
            let row = self.session.query_one(sql, &[&one.delivery_id]);
            row.unwrap().get(0)
        };
        wanted.iter().map(&mut event).collect()
    }
}

#[test]
fn each_attempt_begins_with_what_is_its_own_and_what_cannot_begin_holds_up_no_other() {
    let mut due = due();
    let mut wanted = due.claimed();
    assert_eq!(wanted.len(), RECEIVERS * EVENTS);
    // No two neighbours are one endpoint's.
    wanted.sort_by_key(|one| one.endpoint_id);
    let (firsts, seconds): (Vec<_>, Vec<_>) =
        wanted.chunks(EVENTS).map(|of| (of[0], of[1])).unzip();
    wanted = [firsts, seconds].concat();
    let receivers: Vec<Uuid> = wanted.iter().map(|one| one.endpoint_id).collect();
    assert!(receivers.windows(2).all(|two| two[0] != two[1]));
    let (begun, events) = (due.begun(&wanted), due.events(&wanted));
    for ((one, event_id), begun) in wanted.iter().zip(&events).zip(&begun) {
        let begun = begun.as_ref().expect("it may be sent");
        assert_eq!((begun.event_id, begun.number), (*event_id, 1), "{one:?}");
        assert_eq!(begun.url, due.receiver.url());
        assert!(begun.body.contains(&event_id.to_string()));
    }
    let [first, second, third] = due.endpoints[..] else {
        panic!("there are three")
    };
    let mut other = due.world.app.database.client();
    let mut changes = other.transaction().unwrap();
    let held = "select from webhook_endpoints where endpoint_id = $1 for update";
    changes.execute(held, &[&first]).unwrap();
    let over = "update webhook_endpoints set unregistered_at = now() where endpoint_id = $1";
    due.session.execute(over, &[&second]).unwrap();
    // What waits under another job, by now.
    let moved = wanted.iter().position(|one| one.endpoint_id == third);
    wanted[moved.unwrap()].job_id += 1_000_000;
    let begun = due.begun(&wanted);
    let which: Vec<usize> = (0..wanted.len())
        .filter(|at| begun[*at].is_some())
        .collect();
    let expected = |at: &usize| wanted[*at].endpoint_id == third && Some(*at) != moved;
    let expected: Vec<usize> = (0..wanted.len()).filter(expected).collect();
    assert_eq!(expected.len(), EVENTS - 1);
    assert_eq!(which, expected);
    assert!(due.begun(&[]).is_empty());
}

#[test]
fn nothing_begins_under_a_lease_that_a_crash_of_the_database_has_undone() {
    let mut due = due();
    let wanted = due.claimed();
    assert!(due.begun(&wanted).iter().all(Option::is_some));
    let undone = "delete from job_leases where id = $1";
    due.session.execute(undone, &[&wanted[0].lease_id]).unwrap();
    assert!(due.begun(&wanted).iter().all(Option::is_none));
    assert_eq!(due.receiver.received().len(), RECEIVERS);
}

#[test]
fn an_endpoint_that_begins_to_fail_has_one_attempt_in_flight_however_many_wait() {
    const CAP: usize = 4;
    const WELL: usize = 20;
    let world = World::with(|options| {
        options.webhooks.timeout = Duration::from_secs(20);
        options.webhooks.endpoint_concurrency = u32::try_from(CAP).unwrap();
    });
    let (hold, held) = bounded::<()>(0);
    let receiver = Receiver::start(move |_, before| match before {
        0..WELL => Reply::status(200),
        _ => {
            let _ = held.recv_timeout(Duration::from_secs(15));
            Reply::status(500)
        }
    });
    let endpoint = world.endpoint_with(&receiver.url(), &["approval.requested"], &json!(null));
    let shared = world.app.server().shared();
    // In one transaction, while nothing has been sent: none of them begins before it is claimed.
    let tenant_id = world.app.seeds.tenant_id;
    let emitted = shared.store.transact(|tx| {
        let mut emit = || shared.webhooks.emit(tx, tenant_id, &approval(&world));
        (0..2 * WELL).try_for_each(|_| emit())
    });
    emitted.unwrap();
    let in_flight = |count: usize| {
        eventually("so many to be in flight", || {
            let is_so = shared.webhooks.stats().in_flight == count as u64;
            (is_so && receiver.received().len() >= WELL + count).then_some(())
        });
    };
    in_flight(CAP);
    assert_eq!(receiver.received().len(), WELL + CAP);
    (0..CAP).for_each(|_| hold.send(()).unwrap());
    for failed in 1..4 {
        eventually("the next to be sent", || {
            (receiver.received().len() > WELL + CAP + failed - 1).then_some(())
        });
        // What came later has been seen to by now.
        let other = Receiver::good();
        let later = world.endpoint(&other.url());
        let test = format!("/v1/webhook-endpoints/{later}/test");
        world.app.post(&test, &json!({})).expect(202);
        world.delivered(&later);
        assert_eq!(receiver.received().len(), WELL + CAP + failed);
        eventually("the next alone to be in flight", || {
            (shared.webhooks.stats().in_flight == 1).then_some(())
        });
        hold.send(()).unwrap();
    }
    drop(hold);
    let counted = format!(
        "select coalesce(sum(delivered), 0)::bigint from webhook_endpoint_counts
         where endpoint_id = '{endpoint}'"
    );
    assert_eq!(world.number(&counted), WELL as i64);
}
