//! Unregistering, sending again, what a crash leaves, and the maintenance of the tables.

use super::world::World;
use crate::harness::{App, Database, LogLines, Receiver, Reply, eventually, let_time_pass, seeds};
use agent_runtime::error::Error;
use agent_runtime::ids::Clock;
use agent_runtime::proof::{Admin, May};
use agent_runtime::store::webhook_endpoints::Ending;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use uuid::Uuid;

#[test]
fn unregistering_waits_for_what_is_in_flight_and_nothing_goes_out_after() {
    let world = World::with(|options| {
        options.webhooks.timeout = Duration::from_secs(10);
        options.webhooks.endpoint_concurrency = 1;
    });
    let (hold, held) = crossbeam_channel::bounded(0);
    let receiver = Receiver::start(move |_, _| Reply::Held(held.clone()));
    let endpoint = world.endpoint(&receiver.url());
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    for _ in 0..3 {
        world
            .app
            .post(&format!("{path}/test"), &json!({}))
            .expect(202);
    }
    receiver.once(1);
    std::thread::scope(|scope| {
        let unregistering = scope.spawn(|| world.app.delete(&path).status);
        let waiting = "select count(*) from webhook_deliveries where state = 'being-sent'";
        eventually("the others to fail", || {
            (world.number(waiting) == 1).then_some(())
        });
        // One that has nothing in flight goes at once, though it was asked for later.
        let other = world.endpoint(&Receiver::good().url());
        let path = format!("/v1/webhook-endpoints/{other}");
        assert_eq!(world.app.delete(&path).status, 204);
        assert!(!unregistering.is_finished(), "an attempt is in flight");
        drop(hold);
        assert_eq!(unregistering.join().unwrap(), 204);
    });
    let ended = |state: &str, error: &str| {
        world.number(&format!(
            "select count(*) from webhook_deliveries where state = '{state}' and coalesce(last_error, '') = '{error}'"
        ))
    };
    assert_eq!(ended("delivered", ""), 1);
    assert_eq!(ended("failed", "endpoint-unregistered"), 2);
    let stats = world.app.server().shared().webhooks.stats();
    assert_eq!((stats.unregistered, stats.failed), (2, 0));
    assert_eq!(
        world.number("select count(*) from job_jobs where queue = 'webhooks'"),
        0
    );
    world.run();
    let deliveries = world.number("select count(*) from webhook_deliveries");
    assert_eq!(deliveries, 3, "none of a run that ended after");
    assert_eq!(receiver.received().len(), 1);
    world.app.get(&path).expect_error(404, "not-found");
    world.app.delete(&path).expect_error(404, "not-found");
}

#[test]
fn an_endpoint_is_not_said_to_be_gone_while_an_attempt_may_be_in_flight() {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(20));
    let (hold, held) = crossbeam_channel::bounded(0);
    let receiver = Receiver::start(move |_, _| Reply::Held(held.clone()));
    let endpoint = world.endpoint(&receiver.url());
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    let test = format!("{path}/test");
    world.app.post(&test, &json!({})).expect(202);
    receiver.once(1);
    // As a request leaves it that was cut off once it had unregistered.
    world
        .app
        .sql("update webhook_endpoints set unregistered_at = now()");
    world.app.get(&path).expect_error(404, "not-found");
    let again = world.app.delete(&path);
    let said = again.expect_error(409, "conflict");
    assert!(said.to_string().contains("Repeat"), "{said}");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| world.app.delete(&path).status);
        drop(hold);
        // Where the attempt ended first, there was nothing left to wait for.
        let status = waits.join().unwrap();
        assert!([204, 404].contains(&status), "{status}");
    });
    world.app.delete(&path).expect_error(404, "not-found");
    let leased = "select count(*) from job_jobs where queue = 'webhooks' and lease_id is not null";
    assert_eq!(world.number(leased), 0);
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn an_attempt_that_fails_while_its_endpoint_ends_is_not_repeated() {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(4));
    let receiver = Receiver::start(|_, _| Reply::Hang);
    let endpoint = world.endpoint(&receiver.url());
    world.run();
    receiver.once(1);
    world
        .app
        .delete(&format!("/v1/webhook-endpoints/{endpoint}"))
        .expect(204);
    let row = world.app.database.client().query_one(
        "select state, last_error, attempts, (select count(*) from job_jobs where queue = 'webhooks') from webhook_deliveries",
        &[],
    );
    let row = row.unwrap();
    assert_eq!(
        (
            row.get::<_, &str>(0),
            row.get::<_, &str>(1),
            row.get::<_, i32>(2),
            row.get::<_, i64>(3)
        ),
        ("failed", "endpoint-unregistered", 1, 0)
    );
}

#[test]
fn unregistering_waits_for_nobody_who_ends_an_attempt() {
    let world = World::new();
    let endpoint = world.endpoint("http://127.0.0.1:9/");
    world.run();
    world.attempted(&endpoint, 1);
    // The end of an attempt locks the job first, then the delivery.
    let mut ending = world.app.database.client();
    let mut ending = ending.transaction().unwrap();
    let job = "select id from job_jobs where queue = 'webhooks' for update";
    assert_eq!(ending.execute(job, &[]).unwrap(), 1);
    world
        .app
        .delete(&format!("/v1/webhook-endpoints/{endpoint}"))
        .expect(204);
    let delivery = "update webhook_deliveries set attempts = attempts where state = 'being-sent'";
    assert_eq!(ending.execute(delivery, &[]).unwrap(), 1);
    ending.commit().unwrap();
    // Who has the job next fails what was left.
    world.run_now();
    eventually("the delivery to fail", || {
        let failed =
            "select count(*) from webhook_deliveries where last_error = 'endpoint-unregistered'";
        (world.number(failed) == 1).then_some(())
    });
}

/// Whoever may decide about the endpoint.
struct Decider {
    tenant_id: Uuid,
    endpoint_id: Uuid,
}

impl May<Admin, Ending> for Decider {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }
    fn object_id(&self) -> Uuid {
        self.endpoint_id
    }
}

#[test]
fn an_unregistering_that_is_not_recorded_changes_nothing() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    let decider = Decider {
        tenant_id: world.app.seeds.tenant_id,
        endpoint_id: endpoint.parse().unwrap(),
    };
    let webhooks = &world.app.server().shared().webhooks;
    let refused = webhooks.unregister(&decider, || Err(Error::internal("it was not recorded")));
    assert!(refused.is_err());
    world.run();
    world.delivered(&endpoint);
    webhooks.unregister(&decider, || Ok(())).unwrap();
    world.run();
    assert_eq!(world.number("select count(*) from webhook_deliveries"), 1);
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn sending_again_keeps_the_event_and_makes_a_new_delivery() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    world.run();
    let first = world.delivered(&endpoint);
    let id = first["id"].as_str().unwrap();
    let path = format!("/v1/webhook-endpoints/{endpoint}/deliveries/{id}/resend");
    let again = world.app.post(&path, &json!({})).expect(202);
    assert_ne!(again["id"], first["id"]);
    assert_eq!(again["eventId"], first["eventId"]);
    assert_eq!(again["resends"], first["id"]);
    let all = receiver.once(2);
    assert_eq!(all[0].header("webhook-id"), all[1].header("webhook-id"));
    assert_eq!(all[0].body, all[1].body);
    world.delivered(&endpoint);
    assert_eq!(world.whole(&endpoint, &first)["resentAs"], again["id"]);
    let nowhere = path.replace(id, &world.app.clock.new_id().to_string());
    world
        .app
        .post(&nowhere, &json!({}))
        .expect_error(404, "not-found");
}

#[test]
fn all_that_failed_since_a_time_is_sent_again_once() {
    let world = World::new();
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let receiver = Receiver::start(move |_, _| {
        Reply::status(if well.load(Ordering::SeqCst) {
            204
        } else {
            500
        })
    });
    let endpoint = world.endpoint(&receiver.url());
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    for _ in 0..3 {
        world
            .app
            .post(&format!("{path}/test"), &json!({}))
            .expect(202);
    }
    // Ten attempts each, one after the other.
    let attempts = "select sum(attempts) from webhook_deliveries";
    for least in 1..=30 {
        eventually("another attempt", || {
            world.run_now();
            (world.number(attempts) >= least).then_some(())
        });
    }
    let failed = "select count(*) from webhook_deliveries where state = 'failed'";
    assert_eq!(world.number(failed), 3);
    let since = world
        .deliveries(&endpoint)
        .iter()
        .map(|one| one["endedAt"].as_str().unwrap().to_owned())
        .min()
        .unwrap();
    is_well.store(true, Ordering::SeqCst);
    let shared = world.app.server().shared();
    let (tenant_id, id) = (world.app.seeds.tenant_id, endpoint.parse().unwrap());
    let at = agent_runtime::ids::rfc3339::parse(&since).unwrap();
    let some = shared
        .store
        .transact(|tx| shared.webhooks.resend_failed(tx, tenant_id, id, at, 2));
    assert_eq!(some.unwrap(), (2, true));
    let rest = world
        .app
        .post(&format!("{path}/resend"), &json!({"failedSince": since}))
        .expect(202);
    assert_eq!(rest, json!({"count": 1, "hasMore": false}));
    let none = world
        .app
        .post(&format!("{path}/resend"), &json!({"failedSince": since}))
        .expect(202);
    assert_eq!(none["count"], 0);
    eventually("all to arrive", || {
        let seen = world.app.get(&path).expect(200);
        (seen["deliveries"]["delivered"] == 3).then_some(())
    });
}

#[test]
fn an_attempt_that_a_crash_hid_counts_as_a_failed_connection() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint("http://127.0.0.1:9/");
    world.run();
    world.attempted(&endpoint, 1);
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    let url = json!({"url": receiver.url()});
    world.app.patch(&path, &url).expect(200);
    // As a process leaves it that dies after the claim, once its lease was taken.
    let claimed = "update job_jobs set attempt = 1 where queue = 'webhooks'";
    world.app.sql(claimed);
    world.run_now();
    let delivery = world.attempted(&endpoint, 2);
    assert_eq!(delivery["lastError"], "connection-failed");
    assert_eq!(delivery["attempts"][1]["reason"], "connection-failed");
    assert_eq!(delivery["attempts"][1]["durationMs"], Value::Null);
    assert_eq!(receiver.received().len(), 0);
    // It is not forgotten either where nothing is sent any more.
    world.app.sql(claimed);
    world.app.delete(&path).expect(204);
    let row = world.app.database.client().query_one(
        "select d.state, d.attempts, a.reason, (select count(*) from job_jobs where queue = 'webhooks')
         from webhook_deliveries d join webhook_attempts a using (tenant_id, delivery_id)
         where a.attempt = 3 and a.ended_at is not null",
        &[],
    );
    let row = row.unwrap();
    assert_eq!(
        (
            row.get::<_, &str>(0),
            row.get::<_, i32>(1),
            row.get::<_, &str>(2),
            row.get::<_, i64>(3)
        ),
        ("failed", 3, "connection-failed", 0)
    );
    assert_eq!(receiver.received().len(), 0);
}

#[test]
fn a_database_that_is_away_while_an_attempt_reads_its_secret_uses_up_no_attempt() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    // An attempt whose endpoint somebody holds does not begin with its claim, but alone.
    let mut client = world.app.database.client();
    let mut endpoints = client.transaction().unwrap();
    endpoints
        .batch_execute("select from webhook_endpoints for update")
        .unwrap();
    let path = format!("/v1/webhook-endpoints/{endpoint}/test");
    world.app.post(&path, &json!({})).expect(202);
    let waits = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the attempt to wait for its endpoint", || {
        (world.number(waits) == 1).then_some(())
    });
    let mut other = world.app.database.client();
    let mut secrets = other.transaction().unwrap();
    secrets
        .batch_execute("lock table secrets in access exclusive mode")
        .unwrap();
    endpoints.rollback().unwrap();
    let reads = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%webhook_begin_attempts%'";
    eventually("the attempt to read its secret", || {
        (world.number(reads) == 1).then_some(())
    });
    let away = world.app.database.away();
    // Longer than it is asked again and again.
    let_time_pass(Duration::from_secs(6));
    assert_eq!(receiver.received().len(), 0);
    drop(away);
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 1, "{delivery}");
    assert_eq!(receiver.received().len(), 1);
    let attempts = "select count(*) from webhook_attempts";
    assert_eq!(world.number(attempts), 1);
}

#[test]
fn a_database_that_is_away_while_attempts_begin_uses_up_none() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    // The attempt would begin, and has to wait for its secret.
    let mut client = world.app.database.client();
    let mut secrets = client.transaction().unwrap();
    secrets
        .batch_execute("lock table secrets in access exclusive mode")
        .unwrap();
    let path = format!("/v1/webhook-endpoints/{endpoint}/test");
    world.app.post(&path, &json!({})).expect(202);
    let waits = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the claim to wait", || {
        (world.number(waits) == 1).then_some(())
    });
    let away = world.app.database.away();
    assert_eq!(receiver.received().len(), 0);
    drop(away);
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 1, "{delivery}");
    assert_eq!(receiver.received().len(), 1);
    let attempts = "select count(*) from webhook_attempts";
    assert_eq!(world.number(attempts), 1);
}

#[test]
fn a_database_that_is_away_while_an_attempt_ends_is_told_of_it_later() {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(20));
    let (hold, held) = crossbeam_channel::bounded(0);
    let receiver = Receiver::start(move |_, _| Reply::Held(held.clone()));
    let endpoint = world.endpoint(&receiver.url());
    let path = format!("/v1/webhook-endpoints/{endpoint}/test");
    world.app.post(&path, &json!({})).expect(202);
    receiver.once(1);
    let away = world.app.database.away();
    drop(hold);
    let_time_pass(Duration::from_secs(3));
    drop(away);
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 1, "{delivery}");
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn a_server_that_stops_leaves_what_waits_to_the_next() {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(4));
    let receiver = Receiver::start(|_, before| match before {
        0 => Reply::Hang,
        _ => Reply::status(200),
    });
    let endpoint = world.endpoint(&receiver.url());
    world.run();
    receiver.once(1);
    let clock = world.app.clock.clone();
    let world = world.restarted(clock);
    // It had its end before the server had its own.
    let delivery = world.attempted(&endpoint, 1);
    assert_eq!(delivery["lastError"], "no-answer");
    world.run_now();
    world.delivered(&endpoint);
}

/// The months that deliveries have partitions for, oldest first.
fn months(app: &App) -> Vec<String> {
    let mut client = app.database.client();
    let rows = client.query(
        "select inhrelid::regclass::text from pg_inherits where inhparent = 'webhook_deliveries'::regclass order by 1",
        &[],
    );
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

fn number(app: &App, sql: &str) -> i64 {
    app.database.client().query_one(sql, &[]).unwrap().get(0)
}

/// Makes the month before the oldest one that has partitions.
fn earlier_month(app: &App) {
    app.sql(
        "select attach_run_partition(parent => parent, month => (oldest - interval '1 month')::date)
         from unnest(array['webhook_events', 'webhook_deliveries', 'webhook_attempts']) parent,
           (select min(to_date(right(inhrelid::regclass::text, 6), 'YYYYMM')) as oldest from pg_inherits
            where inhparent = 'webhook_deliveries'::regclass) found",
    );
}

#[test]
fn months_are_dropped_once_their_time_is_over_and_nothing_in_them_waits() {
    // What is dropped is too old by the database's clock as well.
    let ago = Clock::system();
    ago.set_back(Duration::from_secs(130 * 24 * 3600));
    let world = World::new().restarted(ago);
    earlier_month(&world.app);
    let receiver = Receiver::good();
    let gone = world.endpoint(&receiver.url());
    world.run();
    world.delivered(&gone);
    let waits = world.endpoint("http://127.0.0.1:9/");
    world
        .app
        .delete(&format!("/v1/webhook-endpoints/{gone}"))
        .expect(204);
    world.run();
    world.attempted(&waits, 1);
    let before = months(&world.app);
    let (database, clock, seeds) = world.into_app().stop();
    clock.advance(Duration::from_secs(120 * 24 * 3600));
    let keep = |options: &mut agent_runtime::server::Options| options.webhooks.retention_days = 14;
    let later = App::start_on(database, clock, seeds, keep);
    eventually("an earlier month to be dropped", || {
        (!months(&later).contains(&before[0])).then_some(())
    });
    assert!(months(&later).contains(&before[1]), "something in it waits");
    assert_eq!(number(&later, "select count(*) from webhook_deliveries"), 2);
    later.sql("update webhook_deliveries set state = 'failed', ended_at = now() where state = 'being-sent'");
    let (database, clock, seeds) = later.stop();
    let later = App::start_on(database, clock, seeds, keep);
    eventually("the endpoint to go with its last month", || {
        (number(&later, "select count(*) from webhook_endpoints") == 1).then_some(())
    });
    for table in ["webhook_events", "webhook_deliveries", "webhook_attempts"] {
        let rows = number(&later, &format!("select count(*) from {table}"));
        assert_eq!(rows, 0, "{table}");
    }
}

#[test]
fn a_round_makes_no_month_that_it_would_drop() {
    // Late in a month, by the clock that is behind the other one.
    let (clock, lines) = (Clock::system(), LogLines::default());
    clock.set_back(Duration::from_secs(40 * 24 * 3600));
    while clock.now().day() != 27 {
        clock.set_back(Duration::from_secs(24 * 3600));
    }
    let start = |database, clock, seeds| {
        App::start_logged(database, clock, seeds, &lines.logger(), |options| {
            options.webhooks.retention_days = 14;
        })
    };
    let seeds = seeds(&clock);
    let mut app = start(Database::migrated(), clock, seeds);
    let this_month = format!("webhook_deliveries_{}", app.clock.month()).replace('-', "");
    for _ in 0..2 {
        // A round deletes it last.
        app.sql(
            "insert into webhook_endpoints (tenant_id, endpoint_id, url, events, secret_environment, secret_name, has_filter,
               created_by, created_at, updated_at, unregistered_at)
             select tenant_id, gen_random_uuid(), 'https://example.com/', '{run.finished}', 'test', 'hook', false,
               user_id, t, t, t from users, (values (timestamptz '2020-01-01')) times (t) limit 1",
        );
        let (database, clock, seeds) = app.stop();
        app = start(database, clock, seeds);
        eventually("a round to be over", || {
            (number(&app, "select count(*) from webhook_endpoints") == 0).then_some(())
        });
        let oldest = months(&app).remove(0);
        assert!(this_month.starts_with(&oldest), "{oldest}");
    }
    assert_eq!(lines.with("Dropped a month"), [""; 0]);
}

#[test]
fn a_clock_that_runs_ahead_drops_no_month() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    world.run();
    world.delivered(&endpoint);
    let empty = world.endpoint(&receiver.url());
    world
        .app
        .delete(&format!("/v1/webhook-endpoints/{empty}"))
        .expect(204);
    let (database, clock, seeds) = world.into_app().stop();
    clock.advance(Duration::from_secs(100 * 24 * 3600));
    let keep = |options: &mut agent_runtime::server::Options| options.webhooks.retention_days = 14;
    let ahead = App::start_on(database, clock, seeds, keep);
    assert_eq!(
        number(
            &ahead,
            "select count(*) from webhook_endpoints where unregistered_at is not null"
        ),
        1,
        "it was unregistered a moment ago"
    );
    ahead.sql("update webhook_endpoints set unregistered_at = now() - interval '2 days' where unregistered_at is not null");
    // What a round does last; the first one came before the time was changed.
    let (database, clock, seeds) = ahead.stop();
    let ahead = App::start_on(database, clock, seeds, keep);
    eventually("a round to be over", || {
        (number(&ahead, "select count(*) from webhook_endpoints") == 1).then_some(())
    });
    assert_eq!(number(&ahead, "select count(*) from webhook_deliveries"), 1);
    assert_eq!(number(&ahead, "select count(*) from webhook_events"), 1);
}

#[test]
fn a_clock_that_jumps_costs_no_delivery() {
    let receiver = Receiver::start(|_, before| Reply::status(if before == 0 { 500 } else { 200 }));
    let world = World::new();
    let endpoint = world.endpoint(&receiver.url());
    // Forward, and back again on the next server.
    world.app.clock.advance(Duration::from_secs(10 * 24 * 3600));
    world.run();
    world.attempted(&endpoint, 1);
    // The next attempt waits by the database's clock, whatever this one says.
    let wait = world.number(
        "select extract(epoch from max(run_at) - clock_timestamp())::bigint from job_jobs where queue = 'webhooks'",
    );
    assert!((40..=80).contains(&wait), "{wait}");
    let world = world.restarted(Clock::system());
    world.run_now();
    world.delivered(&endpoint);
    world.run();
    receiver.once(3);
}
