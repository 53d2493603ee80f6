//! Open streams are checked again.

use super::world::{Key, World};
use crate::harness::openfga::{OpenFga, Relay};
use crate::harness::{Puppet, end_of, eventually};
use std::time::Duration;

const CHECKS_FAILED: &str = "agent_runtime_authorization_checks_failed_total";

fn watchful(options: &mut agent_runtime::server::Options) {
    options.streams.recheck_every = Duration::from_millis(100);
}

#[test]
fn a_stream_ends_with_its_reader_s_right_and_says_so() {
    let world = World::start_with(watchful);
    let puppet = Puppet::start();
    let agent = world
        .app
        .maker()
        .agent_of(world.project, &puppet.base_url(), |_| {});
    let run = world.app.start_turn(agent, "say");
    let _call = puppet.call();
    let (stays, goes) = (world.person("member"), world.person("member"));
    for person in [&stays, &goes] {
        world.grant(world.project, person.user_id, "viewer");
    }
    let mut kept = stays.client.follow(&run);
    let mut ended = goes.client.follow(&run);
    kept.until("step.started");
    ended.until("step.started");
    let run_id: uuid::Uuid = run.parse().unwrap();
    let of = |key_id: uuid::Uuid| world.rows("key_id = $1 and run_id = $2", &[&key_id, &run_id]);
    // Each time it is decided anew, and recorded.
    eventually("more decisions", || {
        (of(goes.key_id).len() >= 3).then_some(())
    });
    assert!(
        of(goes.key_id)
            .iter()
            .all(|row| row.outcome == "allowed" && row.stage == "model")
    );
    world.revoke(world.project, goes.user_id);
    let rest = ended.rest();
    assert_eq!(end_of(&rest), "permission-denied");
    let last = of(goes.key_id).pop().unwrap();
    assert_eq!(
        (last.outcome.as_str(), last.stage.as_str()),
        ("denied", "model")
    );
    assert_eq!(
        last.route.as_deref(),
        Some("GET /v1/runs/{runId}/progress/stream")
    );
    // The other's goes on.
    let before = of(stays.key_id).len();
    eventually("more decisions", || {
        (of(stays.key_id).len() > before + 1).then_some(())
    });
    world.app.cancel(&run);
    assert_eq!(end_of(&kept.rest()), "run-finished");
}

#[test]
fn while_the_authorization_server_is_away_streams_go_on() {
    let relay = Relay::before(OpenFga::shared().address());
    let world = World::start_at(&relay.url(), watchful);
    let puppet = Puppet::start();
    let agent = world
        .app
        .maker()
        .agent_of(world.project, &puppet.base_url(), |_| {});
    let run = world.app.start_turn(agent, "say");
    let mut call = puppet.call();
    let key = world.key(world.app.seeds.user_id, &Key::whole());
    let mut stream = key.client.follow(&run);
    stream.until("step.started");
    relay.cut();
    eventually("checks to fail", || {
        let answer = world.app.get(&format!("/v1/runs/{run}"));
        (answer.status == 500).then_some(())
    });
    let decided = || world.rows("key_id = $1", &[&key.key_id]).len();
    let before = decided();
    // Nobody asks any more but the stream.
    let failed = || super::metrics::figure(&world, CHECKS_FAILED);
    let earlier = failed();
    eventually("the stream's checks to fail", || {
        (failed() > earlier + 3.0).then_some(())
    });
    assert!(decided() <= before + 1, "no decision without an answer");
    call.say("on");
    call.finish();
    assert_eq!(end_of(&stream.rest()), "run-finished");
    relay.heal();
}
