//! What `/metrics` says of decisions, of their way to the disk and of the admission.

use super::order::Held;
use super::world::{Key, World};
use crate::harness::eventually;
use crate::harness::openfga::{OpenFga, Relay};
use serde_json::json;
use std::time::Duration;

/// A figure, by its name and labels.
#[track_caller]
pub(crate) fn figure(world: &World, series: &str) -> f64 {
    let text = world.app.get("/metrics").text;
    let line = text.lines().find_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        (name == series).then_some(value)
    });
    line.unwrap_or_else(|| panic!("no {series} in {text}"))
        .parse()
        .unwrap()
}

fn decided(world: &World, stage: &str, outcome: &str) -> f64 {
    let series =
        format!("agent_runtime_decisions_total{{stage=\"{stage}\",outcome=\"{outcome}\"}}");
    figure(world, &series)
}

#[test]
fn decisions_are_counted_by_stage_and_outcome_and_so_are_limited_credentials() {
    let world = World::start_with(|options| options.denials_per_minute = 3);
    let project = format!("/v1/projects/{}", world.project);
    let before = decided(&world, "model", "allowed");
    world.app.get(&project).expect(200);
    world.app.get("/v1/projects").expect(200);
    assert_eq!(decided(&world, "model", "allowed"), before + 2.0);
    let member = world.person("member");
    for _ in 0..2 {
        member
            .client
            .get(&project)
            .expect_error(403, "permission-denied");
    }
    assert_eq!(decided(&world, "model", "denied"), 2.0);
    let mut key = Key::whole();
    key.role = "member";
    let key = world.key(world.app.seeds.user_id, &key);
    let body = json!({"name": "a project"});
    key.client
        .post("/v1/projects", &body)
        .expect_error(403, "permission-denied");
    assert_eq!(decided(&world, "key-role", "denied"), 1.0);
    assert_eq!(decided(&world, "key-project", "denied"), 0.0);
    let limited = || figure(&world, "agent_runtime_authorization_credentials_limited");
    let refused = || figure(&world, "agent_runtime_authorization_requests_limited_total");
    assert_eq!((limited(), refused()), (0.0, 0.0));
    // The third is the last of a minute, or of a while if the machine is slow.
    eventually("the limit", || {
        (member.client.get(&project).status == 429).then_some(())
    });
    assert_eq!((limited(), refused()), (1.0, 1.0));
}

#[test]
fn decisions_on_their_way_to_the_disk_are_shown() {
    let world = World::start_with(|options| options.audit.patience = Duration::from_secs(15));
    let audit = |name: &str| figure(&world, &format!("agent_runtime_audit_{name}"));
    let project = format!("/v1/projects/{}", world.project);
    let (written, commits) = (audit("rows_total"), audit("commits_total"));
    let held = Held::of(&world);
    std::thread::scope(|scope| {
        let ask = || world.app.get(&project).expect(200);
        let first = scope.spawn(ask);
        eventually("the writer to take one", || {
            (audit("writing") == 1.0).then_some(())
        });
        let second = scope.spawn(ask);
        eventually("another to wait", || (audit("queued") == 1.0).then_some(()));
        held.release();
        first.join().unwrap();
        second.join().unwrap();
    });
    assert_eq!((audit("writing"), audit("queued")), (0.0, 0.0));
    assert_eq!(audit("rows_total"), written + 2.0);
    assert_eq!(audit("commits_total"), commits + 2.0);
    assert!(audit("commit_seconds_total") >= audit("commit_seconds"));
    assert!(audit("commit_seconds") > 0.0);
    for none in ["refused_total", "late_total", "overflowed_total"] {
        assert_eq!(audit(none), 0.0, "{none}");
    }
}

#[test]
fn checks_in_flight_refused_and_failed_are_shown() {
    let relay = Relay::before(OpenFga::shared().address());
    let world = World::start_at(&relay.url(), |options| options.limits.request_threads = 4);
    let authz = |name: &str| figure(&world, &format!("agent_runtime_authorization_{name}"));
    let project = format!("/v1/projects/{}", world.project);
    let refused = authz("checks_refused_total");
    relay.slow(Duration::from_secs(7));
    std::thread::scope(|scope| {
        let ask = || world.app.get(&project).status;
        let asked = [scope.spawn(ask), scope.spawn(ask)];
        eventually("both places to be taken", || {
            (authz("checks_in_flight") == 2.0).then_some(())
        });
        let answer = world.app.get(&project);
        answer.expect_error(500, "authorization-unavailable");
        assert_eq!(authz("checks_refused_total"), refused + 1.0);
        relay.heal();
        for thread in asked {
            assert_eq!(thread.join().unwrap(), 200);
        }
    });
    assert_eq!(authz("checks_in_flight"), 0.0);
    assert_eq!(authz("checks_waiting"), 0.0);
    assert_eq!(authz("breaker_open"), 0.0);
    let failed = authz("checks_failed_total");
    let allowed = decided(&world, "model", "allowed");
    relay.cut();
    for _ in 0..3 {
        let answer = world.app.get(&project);
        answer.expect_error(500, "authorization-unavailable");
    }
    assert_eq!(authz("checks_failed_total"), failed + 3.0);
    assert_eq!(decided(&world, "model", "allowed"), allowed, "no decision");
}
