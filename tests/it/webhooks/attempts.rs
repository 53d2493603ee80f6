//! One attempt: what is sent, and what each way to fail is called.

use super::world::World;
use crate::harness::{Deaf, Receiver, Reply, eventually};
use agent_runtime::ids::Timestamp;
use agent_runtime::outbound::{self, Outbound};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn a_finished_run_is_told_once_with_the_headers_and_the_envelope() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    let run_id = world.run();
    let delivery = world.delivered(&endpoint);
    let all = receiver.received();
    assert_eq!(all.len(), 1, "{all:?}");
    let one = &all[0];
    assert_eq!((one.method.as_str(), one.path.as_str()), ("POST", "/hook"));
    assert_eq!(one.header("content-type"), "application/json");
    assert_eq!(one.header("user-agent"), "Svc-Webhooks/1");
    let event = one.json();
    assert_eq!(one.header("webhook-id"), event["id"]);
    assert_eq!(event["type"], "run.finished");
    let run = world.app.run(&run_id);
    let told = &event["data"]["run"];
    assert_eq!(told["status"], "completed");
    // The event was made after the run, and is not of the future.
    let at = |time: &Value| serde_json::from_value::<Timestamp>(time.clone()).unwrap().0;
    let made = at(&event["createdAt"]);
    assert!(
        at(&told["createdAt"]) <= made && made <= world.app.clock.now(),
        "{event}"
    );
    let fields = told.as_object().unwrap();
    for (name, value) in fields {
        assert_eq!(value, &run[name], "{name}");
    }
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "agent",
            "completedAt",
            "createdAt",
            "dryRun",
            "failureMessage",
            "flowId",
            "flowVersion",
            "id",
            "projectId",
            "status",
            "usage"
        ]
    );
    assert_eq!(event.as_object().unwrap().len(), 4);
    assert_eq!(delivery["attemptCount"], 1);
    assert_eq!(delivery["lastError"], Value::Null);
    assert_eq!(delivery["lastStatus"], 200);
    assert_eq!(delivery["nextAttemptAt"], Value::Null);
    assert_eq!(delivery["event"], event);
    let attempt = &delivery["attempts"][0];
    assert_eq!(
        (&attempt["status"], &attempt["reason"]),
        (&json!(200), &Value::Null)
    );
    assert_eq!(attempt["address"], "127.0.0.1");
    assert!(attempt["durationMs"].is_i64());
    world.run_now();
    assert_eq!(
        world.number("select count(*) from job_jobs where queue = 'webhooks'"),
        0
    );
}

/// The first attempt's reason, status and message; the delivery waits for its next attempt.
#[track_caller]
fn first_failure(world: &World, url: &str) -> Value {
    let endpoint = world.endpoint(url);
    let path = format!("/v1/webhook-endpoints/{endpoint}/test");
    world.app.post(&path, &json!({})).expect(202);
    let delivery = world.attempted(&endpoint, 1);
    assert_eq!(delivery["state"], "being-sent", "{delivery}");
    let attempt = delivery["attempts"][0].clone();
    assert_eq!(delivery["lastError"], attempt["reason"]);
    assert_eq!(delivery["lastStatus"], attempt["status"]);
    assert!(delivery["nextAttemptAt"].is_string());
    // Never earlier than a minute later (specification section 6.2).
    let wait = world.number(
        "select floor(extract(epoch from (select max(run_at) from job_jobs)
           - (select max(begun_at) from webhook_attempts)))::bigint",
    );
    assert!((60..=120).contains(&wait), "{wait} s");
    let seen = world
        .app
        .get(&format!("/v1/webhook-endpoints/{endpoint}"))
        .expect(200);
    assert_eq!(seen["state"], "failing");
    attempt
}

#[track_caller]
fn check_reply(reply: Reply, reason: &str, status: Value) -> Value {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(3));
    let receiver = Receiver::start(move |_, _| reply.clone());
    let attempt = first_failure(&world, &receiver.url());
    assert_eq!(
        (&attempt["reason"], &attempt["status"]),
        (&json!(reason), &status),
        "{attempt}"
    );
    assert_eq!(receiver.received().len(), 1);
    attempt
}

#[test]
fn a_receiver_that_hangs_before_its_answer_gives_none_in_time() {
    let attempt = check_reply(Reply::Hang, "no-answer", Value::Null);
    // The receiver never answers: without the time limit no attempt would have ended.
    let took = attempt["durationMs"].as_i64().unwrap();
    assert!(took >= 2900, "{took}");
    assert_eq!(attempt["address"], "127.0.0.1");
    check_reply(Reply::DripHead, "no-answer", Value::Null);
}

#[test]
fn a_connection_that_breaks_has_failed() {
    for reply in [Reply::Reset, Reply::Garbage] {
        check_reply(reply, "connection-failed", Value::Null);
    }
}

/// Each status of success, whichever it is: the first and the last of them, and those that a receiver
/// answers without content.
#[test]
fn every_status_of_success_delivers() {
    for status in [200, 201, 202, 204, 299] {
        let world = World::new();
        let receiver = Receiver::start(move |_, _| Reply::status(status));
        let endpoint = world.endpoint(&receiver.url());
        super::world::test(&world, &endpoint);
        let delivery = world.delivered(&endpoint);
        assert_eq!(delivery["attemptCount"], 1, "{delivery}");
        assert_eq!(delivery["lastStatus"], status);
        assert_eq!(receiver.received().len(), 1);
    }
}

#[test]
fn another_status_is_named() {
    for status in [300, 302, 404, 410, 500, 503] {
        let reply = Reply::Status(
            status,
            vec![("location", "http://169.254.169.254/".to_owned())],
            "Not so.".to_owned(),
        );
        let attempt = check_reply(reply, "http-status", json!(status));
        assert_eq!(attempt["answer"], "Not so.");
        assert_eq!(attempt["message"], format!("HTTP {status}"));
    }
}

#[test]
fn where_nothing_listens_it_is_said_so() {
    let world = World::new();
    let deaf = Deaf::new();
    let attempt = first_failure(&world, &format!("http://{}/", deaf.address()));
    assert_eq!(attempt["reason"], "nothing-listening", "{attempt}");
    assert_eq!(attempt["address"], "127.0.0.1");
}

#[test]
fn a_receiver_without_tls_is_not_spoken_to_over_it() {
    let world = World::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let plain = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        std::io::copy(&mut connection, &mut std::io::sink())
    });
    let attempt = first_failure(&world, &url);
    assert_eq!(attempt["reason"], "tls-refused", "{attempt}");
    let _ = plain.join();
}

/// The name `moves.test` resolves while `known` is set: to this machine, and once `moved` is set to a
/// metadata service.
fn resolving(known: &Arc<AtomicBool>, moved: &Arc<AtomicBool>) -> World {
    let (known, moved) = (known.clone(), moved.clone());
    World::with(move |options| {
        let lookup = move |_: &str| {
            if !known.load(Ordering::SeqCst) {
                return Err(std::io::Error::other("no such name"));
            }
            Ok(vec![IpAddr::V4(if moved.load(Ordering::SeqCst) {
                Ipv4Addr::new(169, 254, 169, 254)
            } else {
                Ipv4Addr::LOCALHOST
            })])
        };
        options.outbound = Outbound::new(outbound::Options {
            lookup: Some(Arc::new(lookup)),
            ..outbound::Options::default()
        })
        .unwrap();
    })
}

#[test]
fn a_name_is_judged_anew_at_each_attempt() {
    let (known, moved) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let world = resolving(&known, &moved);
    let receiver = Receiver::good();
    let url = format!("http://moves.test:{}/", receiver.address().port());
    let endpoint = world.endpoint(&url);
    world.run();
    let delivery = world.attempted(&endpoint, 1);
    assert_eq!(delivery["lastError"], "host-not-resolved");
    known.store(true, Ordering::SeqCst);
    moved.store(true, Ordering::SeqCst);
    world.run_now();
    let delivery = world.attempted(&endpoint, 2);
    assert_eq!(delivery["lastError"], "url-refused");
    let message = delivery["attempts"][1]["message"].as_str().unwrap();
    assert!(message.contains("169.254.169.254"), "{message}");
    assert_eq!(receiver.received().len(), 0);
    moved.store(false, Ordering::SeqCst);
    world.run_now();
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 3);
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn the_status_alone_decides_and_little_of_an_answer_is_kept() {
    for (reply, least, most) in [
        (Reply::Drip, 1, 100),
        (Reply::Endless, 16 * 1024, 16 * 1024),
    ] {
        let world = World::new();
        let receiver = Receiver::start(move |_, _| reply.clone());
        let endpoint = world.endpoint(&receiver.url());
        world.run();
        let delivery = world.delivered(&endpoint);
        let kept = delivery["attempts"][0]["answer"].as_str().unwrap().len();
        assert!((least..=most).contains(&kept), "{kept}");
    }
}

#[test]
fn what_failed_is_sent_again_with_the_same_id_and_a_new_time() {
    let world = World::new();
    let receiver = Receiver::start(|_, before| match before {
        0 => Reply::status(500),
        _ => Reply::status(200),
    });
    let endpoint = world.endpoint(&receiver.url());
    world.run();
    world.attempted(&endpoint, 1);
    world.app.clock.advance(Duration::from_secs(60));
    world.run_now();
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 2);
    let reasons: Vec<&Value> = (0..2).map(|n| &delivery["attempts"][n]["reason"]).collect();
    assert_eq!(reasons, [&json!("http-status"), &Value::Null]);
    let all = receiver.received();
    assert_eq!(all[0].header("webhook-id"), all[1].header("webhook-id"));
    assert_eq!(all[0].body, all[1].body);
    let time = |n: usize| all[n].header("webhook-timestamp").parse::<i64>().unwrap();
    assert!(time(1) >= time(0) + 60);
    assert_ne!(
        all[0].header("webhook-signature"),
        all[1].header("webhook-signature")
    );
    let seen = world
        .app
        .get(&format!("/v1/webhook-endpoints/{endpoint}"))
        .expect(200);
    assert_eq!(seen["state"], "healthy");
    assert_eq!(seen["deliveries"]["delivered"], 1);
}

#[test]
fn a_receiver_says_when_to_come_back_within_bounds() {
    let world = World::new();
    let receiver = Receiver::start(|one, _| {
        let wait = one.path.trim_start_matches('/').to_owned();
        Reply::Status(429, vec![("retry-after", wait)], String::new())
    });
    let base = format!("http://{}", receiver.address());
    for (asked, least, most) in [("90", 70, 90), ("1", 40, 60), ("86400", 100, 120)] {
        let endpoint = world.endpoint(&format!("{base}/{asked}"));
        let path = format!("/v1/webhook-endpoints/{endpoint}/test");
        world.app.post(&path, &json!({})).expect(202);
        world.attempted(&endpoint, 1);
        let wait = world.number(&format!(
            "select round(extract(epoch from run_at - clock_timestamp()))::bigint from job_jobs where key = '{endpoint}'"
        ));
        assert!((least..=most).contains(&wait), "{asked}: {wait}");
    }
}

#[test]
fn after_ten_attempts_a_delivery_has_failed() {
    let world = World::new();
    let receiver = Receiver::start(|_, _| Reply::status(500));
    let endpoint = world.endpoint(&receiver.url());
    world.run();
    for attempt in 1..=9 {
        let delivery = world.attempted(&endpoint, attempt);
        assert_eq!(delivery["state"], "being-sent");
        world.run_now();
    }
    let delivery = world.attempted(&endpoint, 10);
    assert_eq!(
        (&delivery["state"], &delivery["lastError"]),
        (&json!("failed"), &json!("http-status"))
    );
    assert!(delivery["endedAt"].is_string());
    assert_eq!(receiver.received().len(), 10);
    assert_eq!(
        world.number("select count(*) from job_jobs where queue = 'webhooks'"),
        0
    );
    let seen = world
        .app
        .get(&format!("/v1/webhook-endpoints/{endpoint}"))
        .expect(200);
    assert_eq!(seen["deliveries"]["failed"], 1);
    eventually("all to be counted", || {
        let stats = world.app.server().shared().webhooks.stats();
        let counted = (stats.queued, stats.delivered, stats.failed, stats.in_flight);
        (counted == (1, 0, 1, 0)).then_some(())
    });
    let figures = world.app.get("/metrics").text;
    for line in [
        "agent_runtime_webhook_deliveries_total{state=\"failed\"} 1",
        "agent_runtime_webhook_attempts_total{reason=\"http-status\"} 10",
        "agent_runtime_webhook_attempts_in_flight 0",
    ] {
        assert!(figures.contains(line), "{line} in {figures}");
    }
}

#[test]
fn a_failing_endpoint_has_one_attempt_in_flight_until_it_is_well() {
    let world = World::with(|options| options.webhooks.timeout = Duration::from_secs(20));
    let (hold, held) = crossbeam_channel::bounded(0);
    let receiver = Receiver::start(move |_, before| match before {
        0 => Reply::status(500),
        _ => Reply::Held(held.clone()),
    });
    let endpoint = world.endpoint(&receiver.url());
    let path = format!("/v1/webhook-endpoints/{endpoint}/test");
    let test = || world.app.post(&path, &json!({})).expect(202);
    test();
    world.attempted(&endpoint, 1);
    for _ in 0..5 {
        test();
    }
    receiver.once(2);
    let in_flight = || world.app.server().shared().webhooks.stats().in_flight;
    let other = Receiver::good();
    for _ in 0..2 {
        // What is due at the one has been looked at once what came later was sent to the other.
        let other = world.endpoint(&other.url());
        let path = format!("/v1/webhook-endpoints/{other}/test");
        world.app.post(&path, &json!({})).expect(202);
        world.delivered(&other);
        eventually("the other's end to be counted", || {
            (in_flight() == 1).then_some(())
        });
        assert_eq!(receiver.received().len(), 2);
        world.run_now();
    }
    drop(hold);
    eventually("all to be delivered", || {
        let path = format!("/v1/webhook-endpoints/{endpoint}");
        let seen = world.app.get(&path).expect(200);
        (seen["deliveries"]["delivered"] == 6).then_some(())
    });
}
