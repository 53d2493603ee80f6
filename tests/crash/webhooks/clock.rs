//! The wall clock of the server set forward and back under it. Its database, the receivers and this
//! process keep theirs.

use super::check::{check, come_to_rest};
use super::figures_of;
use super::scene::{Haste, Keys, Scene};
use crate::clock::{DAY, HOUR, Leap};
use crate::random::Random;
use crate::wait::until_due;
use crate::world::{config, shared_database};
use crate::{eventually, report};
use postgres::{Client, NoTls};
use serde_json::json;
use std::time::{Duration, Instant};

/// Within what the tables have partitions for: from the month before to two months ahead. Beyond it
/// they are made within a second, in which events and their runs wait.
const LEAPS: [i64; 5] = [3 * HOUR, -3 * HOUR, 40 * DAY, -20 * DAY, 0];
const EVENTS: usize = 60;
const RUNS: usize = 4;
const OVER: Duration = Duration::from_millis(800);

#[test]
fn webhooks_outlive_leaps_of_the_clock() {
    let mut random = Random::seeded("webhooks-clock");
    let keys = Keys::new();
    let (leap, config) = Leap::govern(keys.set(config(shared_database())));
    let server = config.start();
    let scene = Scene::make(&config, &keys, &mut random);
    let haste = Haste::begin(&config.database_url);
    let mut emitted = Vec::new();
    for seconds in LEAPS {
        leap.set(seconds);
        // Every signature is of that time.
        scene.receivers.expect_ahead(&[seconds]);
        emitted.extend(scene.emit(EVENTS, OVER).join().unwrap());
        emitted.extend(scene.run(RUNS, OVER).join().unwrap());
        come_to_rest(&scene);
    }
    // And while deliveries are under way.
    scene.receivers.expect_ahead(&LEAPS);
    let emitter = scene.emit(5 * EVENTS, 3 * OVER);
    let runs = scene.run(RUNS, 3 * OVER);
    let mut due = Instant::now();
    for seconds in LEAPS {
        due += OVER / 2;
        until_due(due);
        leap.set(seconds);
    }
    emitted.extend(emitter.join().unwrap());
    emitted.extend(runs.join().unwrap());
    come_to_rest(&scene);
    let figures = check(&scene, &emitted);
    drop(haste);
    server.kill();
    report(
        "webhooks clock",
        &format!("leaps={} {}", 2 * LEAPS.len(), figures_of(&figures)),
    );
}

/// Of every table whose months are dropped.
fn rows(sql: &mut Client) -> Vec<i64> {
    let tables = ["webhook_events", "webhook_deliveries", "webhook_attempts"];
    let count = |table| {
        let row = sql.query_one(&format!("select count(*) from {table}"), &[]);
        row.unwrap().get(0)
    };
    tables.map(count).to_vec()
}

#[test]
fn a_server_that_is_weeks_ahead_drops_nothing_before_its_time() {
    let mut random = Random::seeded("webhooks-ahead");
    let keys = Keys::new();
    let config = keys
        .set(config(shared_database()))
        .with("SVC_WEBHOOK_RETENTION_DAYS", 14);
    let server = config.start();
    let scene = Scene::make(&config, &keys, &mut random);
    let haste = Haste::begin(&config.database_url);
    let mut emitted = scene.emit(EVENTS, OVER).join().unwrap();
    emitted.extend(scene.run(RUNS, OVER).join().unwrap());
    come_to_rest(&scene);
    let mut sql = Client::connect(&config.database_url, NoTls).unwrap();
    let before = rows(&mut sql);
    assert!(before.iter().all(|rows| *rows > 0), "{before:?}");
    // The last thing that a round of the maintenance does is to forget this one.
    let wanted = json!({"url": scene.receivers.url(0), "events": ["approval.requested"],
        "secretRef": {"envName": "test", "name": "HOOKS"}});
    let made = config.client().made("/v1/webhook-endpoints", &wanted, 201);
    let marker: uuid::Uuid = made["endpointId"].as_str().unwrap().parse().unwrap();
    let gone = "update webhook_endpoints set unregistered_at = now() - interval '2 days' where endpoint_id = $1";
    assert_eq!(sql.execute(gone, &[&marker]).unwrap(), 1);
    let (leap, ahead) = Leap::govern(config.replica());
    // By its clock every month that has rows is over for longer than the retention.
    leap.set(60 * DAY);
    let ahead = ahead.start();
    eventually("a round of its maintenance", || {
        let left = "select from webhook_endpoints where endpoint_id = $1";
        let left = sql.query(left, &[&marker]).unwrap();
        left.is_empty().then_some(())
    });
    ahead.kill();
    assert_eq!(rows(&mut sql), before);
    // The other goes on in this month.
    emitted.extend(scene.emit(EVENTS, OVER).join().unwrap());
    emitted.extend(scene.run(RUNS, OVER).join().unwrap());
    come_to_rest(&scene);
    let figures = check(&scene, &emitted);
    drop(haste);
    server.kill();
    report("webhooks ahead", &figures_of(&figures));
}
