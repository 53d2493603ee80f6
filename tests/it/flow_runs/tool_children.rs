//! Calls of tools that are flows, by turns whose process dies before each commit, and by turns that are taken up again.

use super::crashes::FAILING;
use super::retries::retry;
use super::world::Flows;
use crate::runtime::world::{World, calls_weather};
use agent_runtime::dev::provider::Step;
use agent_runtime::store::runs::{Status, WaitingFor};
use serde_json::{Value, json};

/// The agent's tool `weather` is this flow.
fn with_flow(tasks: Value) -> World {
    let world = World::new();
    world.flow("forecast", tasks);
    world.batch(
        "update tools set target = 'flow', url = '', flow_id = 'test.forecast', idempotent = false where name = 'weather'",
    );
    world
}

/// Runs a turn, by processes of which the first is dead from this commit on. Says how many commits it took.
fn dies_before(world: &World, commit: i64) -> i64 {
    world.batch(&format!(
        "update failing set from_commit = {commit}; select setval('commits', 1, false)"
    ));
    let creator = world.process(0, false);
    let run_id = world.create(&creator, false);
    let dying = world.process(1, true);
    world.eventually(|| {
        world.number("select last_value from commits") >= commit
            || world.run(run_id).status.is_finished()
    });
    world.expire_leases();
    world.batch("update failing set from_commit = 9223372036854775807");
    let next = world.process(1, true);
    next.shard.follow(run_id);
    let run = world.until(&next, run_id, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    drop(dying);
    let told = world.output(run_id)["text"].clone();
    let told = told.as_str().unwrap();
    assert!(
        told.contains(r#"{"seen":"weather"}"#),
        "before commit {commit}: {told}"
    );
    let steps = ["model ", "child /1/calls/0", "model "];
    assert_eq!(
        world.steps(run_id),
        steps.map(|step| format!("{step} completed"))
    );
    let children = world.children(run_id);
    assert_eq!(children.len(), 1, "before commit {commit}");
    assert_eq!(children[0].status, Status::Completed);
    let steps = world.steps(children[0].run_id);
    assert_eq!(steps, ["wait /do/0/nap completed"]);
    // A call that was lost with its process counts, and no run counts twice.
    assert!((2..=3).contains(&run.usage.calls), "{:?}", run.usage);
    world.number("select last_value from commits")
}

#[test]
fn a_turn_whose_process_dies_before_any_commit_begins_a_flow_once() {
    let world = with_flow(json!([
        {"nap": {"wait": {"milliseconds": 0}}},
        {"tell": {"set": {"seen": "${ .city }"}}},
    ]));
    world.batch(FAILING);
    let whole = dies_before(&world, i64::MAX);
    assert!(whole > 6, "{whole}");
    // The first is the run's creation, which is not the dying process's.
    for commit in 2..=whole {
        dies_before(&world, commit);
    }
}

#[test]
fn a_turn_that_fails_after_a_call_is_taken_up_with_what_the_flow_answered() {
    let world = with_flow(json!([{"tell": {"set": "${ \"sunny\" }"}}]));
    world.provider.push(calls_weather());
    let refused = json!({"error": {"message": "no"}});
    world.provider.push(Step::json(400, &refused));
    let process = world.process(2, true);
    let run_id = world.create(&process, false);
    assert_eq!(world.finished(&process, run_id).status, Status::Failed);
    world.provider.push(Step::text("Sunny."));
    let again = retry(&world, &process, run_id, false).unwrap();
    let run = world.finished(&process, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(again), json!({"text": "Sunny."}));
    assert!(world.children(again).is_empty(), "it is not run again");
    let requests = world.provider.requests();
    let messages = requests.last().unwrap().body["messages"].clone();
    let newest = messages.as_array().unwrap().last().unwrap().clone();
    assert_eq!(newest["content"], json!(r#""sunny""#));
}

#[test]
fn a_turn_that_fails_while_it_waits_is_taken_up_with_the_flow_where_that_stood() {
    let pay = json!({"call": "tool", "with": {"tool": "pay", "arguments": {"city": "${ .city }"}}});
    let world = with_flow(json!([
        {"pay": pay},
        {"nap": {"wait": {"hours": 1}}},
        {"tell": {"set": {"paid": true}}},
    ]));
    world.provider.push(calls_weather());
    let process = world.process(2, true);
    let run_id = world.create(&process, false);
    let waits = |run: &agent_runtime::store::runs::Run, on| run.waiting_for == Some(on);
    world.until(&process, run_id, |run| waits(run, WaitingFor::Children));
    let child = world.children(run_id)[0].run_id;
    world.eventually(|| waits(&world.run(child), WaitingFor::Timer));
    // As after a hundred crashes.
    world.batch(&format!(
        "update job_jobs set attempt = 200, run_at = now() where id = (select job_id from runs where run_id = '{run_id}')"
    ));
    process.runtime.wake();
    let failed = world.finished(&process, run_id);
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(world.run(child).status, Status::Cancelled);
    world.provider.push(Step::text("Done."));
    let again = retry(&world, &process, run_id, false).unwrap();
    world.until(&process, again, |run| waits(run, WaitingFor::Children));
    let taken = world.children(again);
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].retry_of, Some(child));
    world.eventually(|| waits(&world.run(taken[0].run_id), WaitingFor::Timer));
    world.pass(&process, 3_601);
    let run = world.finished(&process, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(again), json!({"text": "Done."}));
    assert_eq!(world.tool.asked().len(), 1, "it is paid once");
    let steps = ["model ", "child /1/calls/0", "model "];
    assert_eq!(
        world.steps(again),
        steps.map(|step| format!("{step} completed"))
    );
}
