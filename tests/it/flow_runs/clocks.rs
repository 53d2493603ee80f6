//! The wall clock of a server is set forward and back while flows wait: each wait lasts as long as PostgreSQL's clock says, and
//! ends once.

use super::world::Flows;
use crate::runtime::world::{HttpServer, Process, World};
use agent_runtime::store::runs::{Status, WaitingFor};
use serde_json::json;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long each flow waits.
const WAIT: Duration = Duration::from_secs(2);
const LEAP: Duration = Duration::from_secs(3 * 3600);

/// A flow that sleeps, one that tries again later, and one that asks nobody in time.
fn flows(world: &World, server: &HttpServer) {
    world.flow("sleeps", json!([{"sleep": {"wait": {"seconds": 2}}}]));
    let busy = json!({"call": "http", "with": {"method": "post", "endpoint": server.url("/busy")}});
    let retry = json!({"delay": {"seconds": 2}, "limit": {"attempt": {"count": 2}}});
    world.flow(
        "retries",
        json!([{"all": {
            "try": [{"ask": busy}],
            "catch": {"errors": {"with": {"status": 503}}, "retry": retry},
        }}]),
    );
    let with = json!({"title": "Pay", "expiresAfter": "PT2S", "onExpire": "continue"});
    world.flow(
        "asks",
        json!([{"ask": {"call": "approval", "with": with, "output": {"as": ".decision"}}}]),
    );
}

/// Starts them, sets the clock once all of them wait, and follows them to their ends.
fn under(world: &World, process: &Process, server: &HttpServer, leap: impl Fn(&World)) {
    let asked = server.got().len();
    server.answer(&[(503, "busy"), (200, "{}")]);
    let began = Instant::now();
    let runs: Vec<Uuid> = ["sleeps", "retries", "asks"]
        .map(|name| world.start(process, name, json!({})))
        .into();
    let waits = [WaitingFor::Timer, WaitingFor::Timer, WaitingFor::Approval];
    for (run_id, waits_for) in runs.iter().zip(waits) {
        world.until(process, *run_id, |run| run.waiting_for == Some(waits_for));
    }
    leap(world);
    for run_id in &runs {
        let run = world.until(process, *run_id, |run| run.status.is_finished());
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        assert!(began.elapsed() >= WAIT, "its wait ended early");
        let kinds = world.kinds(*run_id);
        let waited = kinds.iter().filter(|kind| *kind == "run.waiting").count();
        assert_eq!(waited, 1, "it was woken once: {kinds:?}");
    }
    assert_eq!(server.got().len() - asked, 2);
    assert_eq!(world.output(runs[2]), json!("expired"));
}

#[test]
fn a_clock_that_leaps_makes_no_wait_shorter_or_longer() {
    let world = World::new();
    let server = HttpServer::start(&[]);
    flows(&world, &server);
    let process = world.process(3, true);
    under(&world, &process, &server, |world| world.clock.advance(LEAP));
    under(&world, &process, &server, |world| {
        world.clock.set_back(LEAP)
    });
    // Further back than the clock ever was.
    under(&world, &process, &server, |world| {
        world.clock.set_back(LEAP)
    });
    let expired = "select count(*) from approvals where status = 'expired'";
    assert_eq!(world.number(expired), 3);
    let attempts = "select max(attempt)::int8 from run_steps";
    assert_eq!(world.number(attempts), 1);
}

/// The server that takes a wait over has another clock than the one that began it.
#[test]
fn a_wait_that_another_server_takes_over_lasts_as_long() {
    let world = World::new();
    world.flow("sleeps", json!([{"sleep": {"wait": {"seconds": 4}}}]));
    let began = Instant::now();
    let before = world.process(1, true);
    let run_id = world.start(&before, "sleeps", json!({}));
    world.until(&before, run_id, |run| run.status == Status::Waiting);
    drop(before);
    world.clock.set_back(LEAP);
    // It looks before the time has come, and waits on.
    world.batch("update job_jobs set run_at = now()");
    let after = world.process(1, true);
    after.shard.follow(run_id);
    let run = world.finished(&after, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert!(began.elapsed() >= 2 * WAIT, "it ended early");
    let kinds = world.kinds(run_id);
    let waited = kinds.iter().filter(|kind| *kind == "run.waiting").count();
    assert_eq!(waited, 2, "{kinds:?}");
}
