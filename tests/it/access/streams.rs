//! Open streams are checked again.

use super::world::{Key, World};
use crate::authz_store;
use crate::harness::openfga::{OpenFga, Relay};
use crate::harness::{Call, Client, Puppet, Stream, end_of, eventually};
use std::time::Duration;
use uuid::Uuid;

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

/// So many runs of each tenant that, in the order of a hash, hardly all of one come before those of
/// the other.
const RUNS: usize = 4;

/// Runs of an agent whose model has begun to answer, and streams of them.
fn follow_many(
    maker: &Client,
    agent: Uuid,
    puppet: &Puppet,
    reader: &Client,
) -> Vec<(String, Call, Stream)> {
    let one = |_| {
        let run = maker.start_turn(agent, "say");
        let call = puppet.call();
        let mut stream = reader.follow(&run);
        stream.until("step.started");
        (run, call, stream)
    };
    (0..RUNS).map(one).collect()
}

#[test]
fn a_tenant_whose_checks_get_no_answer_keeps_no_other_s_streams_open() {
    let world = World::start_with(|options| {
        watchful(options);
        options.streams.threads = 1;
        options.runs.threads = 4 * RUNS;
    });
    let (puppet, other) = (Puppet::start(), world.app.other_tenant());
    let agent = other.agent(&puppet.base_url());
    let mut others = follow_many(&other, agent, &puppet, &other);
    let maker = world.app.maker();
    let agent = maker.agent_of(world.project, &puppet.base_url(), |_| {});
    let reader = world.person("member");
    world.grant(world.project, reader.user_id, "viewer");
    let own = follow_many(&world.app, agent, &puppet, &reader.client);
    // Its model is newer than this program, and is lost: nobody decides about the tenant.
    let (_, newer) = authz_store::versions();
    world.write(
        "update authz_stores set model_id = '01ARZ3NDEKTSV4RRFFQ69G5FAV', model_version = $2
         where tenant_id <> $1",
        &[&world.tenant_id(), &newer],
    );
    eventually("the other tenant's checks to fail", || {
        let answer = other.get(&format!("/v1/runs/{}", others[0].0));
        (answer.status == 500).then_some(())
    });
    world.revoke(world.project, reader.user_id);
    for (run, _call, mut stream) in own {
        assert_eq!(end_of(&stream.rest()), "permission-denied", "{run}");
    }
    // Without an answer a stream goes on.
    for (_, call, _) in &mut others {
        call.say("on");
    }
    for (run, call, mut stream) in others {
        stream.until("text.delta");
        call.finish();
        assert_eq!(end_of(&stream.rest()), "run-finished", "{run}");
    }
}
