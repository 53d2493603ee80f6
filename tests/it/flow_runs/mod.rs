//! Flows, through the whole driver and a database. What a flow does next is in the unit tests of `runtime::flow`.

mod big_trees;
mod bounds;
mod calls;
mod children;
mod clocks;
mod conversations;
mod crashes;
mod dry_runs;
mod events;
mod features;
mod foreign;
mod guardrails;
mod iterations;
mod lost_answers;
mod parked;
mod retries;
mod state;
mod tool_approvals;
mod tool_children;
mod unknown_outcomes;
mod waiting;
mod world;

use crate::runtime::world::World;
use agent_runtime::store::runs::{Status, WaitingFor};
use serde_json::{Value, json};
use std::time::Duration;
use world::Flows;

#[test]
fn a_flow_runs_from_its_begin_to_its_end() {
    let world = World::new();
    let tasks = json!([
        {"sum": {"for": {"each": "item", "in": ".items"}, "do": [
            {"add": {"set": "${ {total: (.total + $item.amount), items} }"}},
        ], "export": {"as": "{ total: .total }"}}},
        {"size": {"switch": [{"small": {"when": ".total < 50", "then": "end"}}, {"large": {"when": ".total >= 50", "then": "later"}}]}},
        {"never": {"raise": {"error": {"type": "https://example.com/no", "status": 500}}}},
        {"later": {"wait": "PT1H"}},
        {"tell": {"set": {"total": "${ $context.total }", "run": "${ $workflow.id }"}}},
    ]);
    world.flow("sum", tasks);
    let process = world.process(1, true);
    let input = json!({"total": 0, "items": [{"amount": 30}, {"amount": 25}]});
    let run_id = world.start(&process, "sum", input);
    let run = world.until(&process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(run.waiting_for, Some(WaitingFor::Timer));
    assert_eq!(world.steps(run_id), ["wait /do/3/later running"]);
    world.clock.advance(Duration::from_secs(3600));
    world.batch("update job_jobs set run_at = now() where lease_id is null");
    process.runtime.wake();
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id), json!({"total": 55, "run": run_id}));
    let mut kinds = world.kinds(run_id);
    kinds.retain(|kind| !kind.starts_with("task."));
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.started",
            "step.started",
            "run.waiting",
            "step.completed",
            "run.completed"
        ]
    );
    let small = json!({"total": 0, "items": [{"amount": 30}]});
    let run = world.ends(&process, "sum", small);
    assert_eq!(world.output(run.run_id)["total"], json!(30));
    assert_eq!(world.steps(run.run_id), [""; 0], "nothing was waited for");
}

#[test]
fn a_flow_fails_with_the_task_that_failed() {
    let world = World::new();
    let raise =
        json!({"error": {"type": "https://example.com/no", "status": 409, "title": "Taken"}});
    world.flow(
        "fails",
        json!([{"outer": {"do": [{"raises": {"raise": raise}}]}}]),
    );
    let object = json!({"format": "json", "document": {"type": "object"}});
    world.whole_flow(
        "picky",
        json!([{"set": {"set": {}}}]),
        json!({"input": {"schema": object}}),
    );
    let process = world.process(1, true);
    let run = world.ends(&process, "fails", json!({}));
    assert_eq!(run.status, Status::Failed);
    let said = "The task /do/0/outer/do/0/raises failed: Taken (status 409).";
    assert_eq!(run.failure_message.as_deref(), Some(said));
    let run = world.ends(&process, "picky", json!([]));
    assert_eq!(run.status, Status::Failed);
    let run = world.ends(&process, "unknown", json!({}));
    let said = "This version of the service cannot run the flow test.unknown.";
    assert_eq!(run.failure_message.as_deref(), Some(said));
}

#[test]
fn a_flow_tries_again_after_pauses_that_hold_nothing() {
    let world = World::new();
    let raise = json!({"error": {"type": "https://example.com/busy", "status": 503}});
    let tasks = json!([{"outer": {
        "try": [{"fails": {"raise": raise}}],
        "catch": {
            "errors": {"with": {"status": 503}},
            "retry": {"delay": "PT1H", "limit": {"attempt": {"count": 3}}},
            "do": [{"tell": {"set": {"gaveUp": "${ $error.instance }"}}}],
        },
    }}]);
    world.flow("retries", tasks);
    let process = world.process(1, true);
    let run_id = world.start(&process, "retries", json!({}));
    for pause in 1..=2 {
        world.eventually(|| world.steps(run_id).len() == pause);
        let run = world.until(&process, run_id, |run| run.status == Status::Waiting);
        assert_eq!(run.waiting_for, Some(WaitingFor::Timer));
        world.clock.advance(Duration::from_secs(3600));
        world.batch("update job_jobs set run_at = now() where lease_id is null");
        process.runtime.wake();
    }
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let told = json!({"gaveUp": "/do/0/outer/try/0/fails"});
    assert_eq!(world.output(run_id), told);
    assert_eq!(world.steps(run_id), ["wait /do/0/outer completed"; 2]);
}

/// A flow is taken up by its state and its newest step: neither grows with the run.
#[test]
fn the_hundredth_step_reads_what_the_first_one_reads() {
    let world = World::new();
    let tasks = json!([{"each": {"for": {"in": "[range(100)]"}, "do": [
        {"sleep": {"wait": {"milliseconds": 0}}},
        {"add": {"set": "${ {n: (.n + 1)} }"}},
    ]}}]);
    world.flow("long", tasks);
    let process = world.process(1, true);
    let run = world.ends(&process, "long", json!({"n": 0}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run.run_id), json!({"n": 100}));
    assert_eq!(world.steps(run.run_id).len(), 100);
    let rows = "select count(*) from flow_states where length(frames::text) < 2000";
    assert_eq!(world.number(rows), 1);
}

#[test]
fn a_flow_that_waits_is_cancelled() {
    let world = World::new();
    world.flow("waits", json!([{"sleep": {"wait": {"days": 300}}}]));
    let process = world.process(1, true);
    let run_id = world.start(&process, "waits", Value::Null);
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    let cancelled = process.runtime.cancel(&world.root(run_id), || Ok(()));
    cancelled.unwrap();
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Cancelled);
}
