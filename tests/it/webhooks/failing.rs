//! Endpoints that begin to fail and that work again: their records in the log, and the metric.

use super::world::{SECRET, webhooks};
use crate::harness::secrets::Keys;
use crate::harness::{App, Database, LogLines, Receiver, Reply, eventually, seeds};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BEGAN: &str = "A webhook endpoint began to fail";
const AGAIN: &str = "A webhook endpoint works again";

/// Sends the endpoint a test, and waits until an attempt at it has ended.
#[track_caller]
fn attempt(app: &App, endpoint: &str) {
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    let sent = app.post(&format!("{path}/test"), &json!({})).expect(202);
    let one = format!("{path}/deliveries/{}", sent["id"].as_str().unwrap());
    eventually("the attempt to end", || {
        let delivery = app.get(&one).expect(200);
        (delivery["attemptCount"] == 1).then_some(())
    });
}

#[track_caller]
fn endpoint(app: &App, url: &str) -> String {
    let put = app.put("/v1/secrets/test/hook", &json!({"value": SECRET}));
    assert!([200, 201].contains(&put.status), "{put:?}");
    let body = json!({"url": url, "events": ["run.finished"],
        "secretRef": {"envName": "test", "name": "hook"}});
    let made = app.post("/v1/webhook-endpoints", &body).expect(201);
    made["endpointId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn told(lines: &LogLines, began: usize, again: usize) -> Vec<Value> {
    // Whoever wrote the attempt tells of it a moment after its commit.
    eventually("the records", || {
        let counts = (lines.records(BEGAN).len(), lines.records(AGAIN).len());
        (counts.0 >= began && counts.1 >= again).then_some(())
    });
    assert_eq!(lines.records(AGAIN).len(), again);
    let began_to = lines.records(BEGAN);
    assert_eq!(began_to.len(), began, "{began_to:?}");
    began_to
}

#[track_caller]
fn tells_each_turn_once(concurrency: u32) {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let (seeds, log) = (seeds(&clock), lines.logger());
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
        webhooks(options);
        options.webhooks.endpoint_concurrency = concurrency;
    });
    let is_down = Arc::new(AtomicBool::new(true));
    let down = Arc::clone(&is_down);
    let receiver = Receiver::start(move |_, _| match down.load(Ordering::SeqCst) {
        true => Reply::status(503),
        false => Reply::status(204),
    });
    let url = format!("{}/T0KEN-in-path?key=T0KEN", receiver.url());
    let endpoint = endpoint(&app, &url);
    for _ in 0..3 {
        attempt(&app, &endpoint);
    }
    let record = told(&lines, 1, 0).remove(0);
    assert_eq!(record["level"], "warn", "{record}");
    assert_eq!(record["subsystem"], "webhooks", "{record}");
    assert_eq!(record["endpointId"], endpoint.as_str(), "{record}");
    assert_eq!(record["host"], "127.0.0.1", "{record}");
    assert_eq!(record["reason"], "http-status", "{record}");
    assert_eq!(record["status"], 503, "{record}");
    is_down.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        attempt(&app, &endpoint);
    }
    told(&lines, 1, 1);
    assert_eq!(lines.records(AGAIN)[0]["level"], "info");
    assert_eq!(lines.records(AGAIN)[0]["endpointId"], endpoint.as_str());
    is_down.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        attempt(&app, &endpoint);
    }
    told(&lines, 2, 1);
    assert_eq!(lines.with("T0KEN"), [""; 0]);
}

#[test]
fn an_endpoint_that_begins_to_fail_and_works_again_is_told_once() {
    tells_each_turn_once(8);
}

#[test]
fn an_endpoint_is_told_of_also_where_each_has_one_attempt_at_once() {
    tells_each_turn_once(1);
}

#[test]
fn an_endpoint_without_a_success_for_an_hour_is_counted() {
    let keys = Keys::new().options();
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let app = App::start_on(Database::migrated(), clock, seeds, |options| {
        webhooks(options);
        options.secrets = keys.clone();
    });
    let failing = Receiver::start(|_, _| Reply::status(500));
    let (long, short) = (
        endpoint(&app, &failing.url()),
        endpoint(&app, &failing.url()),
    );
    attempt(&app, &long);
    attempt(&app, &short);
    app.sql(&format!(
        "update webhook_deliveries set created_at = created_at - interval '61 minutes' where endpoint_id = '{long}'"
    ));
    let restarted = |app: App| {
        let (database, clock, seeds) = app.stop();
        App::start_on(database, clock, seeds, |options| {
            webhooks(options);
            options.secrets = keys.clone();
        })
    };
    let app = restarted(app);
    let metric = "agent_runtime_webhook_endpoints_failing 1";
    eventually("the endpoint to be counted", || {
        app.get("/metrics").text.contains(metric).then_some(())
    });
}
