//! Trees of runs that grow: their bounds, and their cancel.

use super::world::Flows;
use crate::harness::moment;
use crate::runtime::world::World;
use agent_runtime::runtime::RunLimits;
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How many runs the tree has that is cancelled as a whole. A hundred thousand take some minutes.
const RUNS: &str = "AGENT_RUNTIME_TEST_TREE";

/// A flow that runs itself, so many times beside each other.
fn grows(width: usize) -> Value {
    let items: Vec<usize> = (0..width).collect();
    json!([{"each": {
        "for": {"each": "x", "in": format!("{items:?}")},
        "metadata": {"concurrency": width, "onError": "collect"},
        "do": [{"again": {"run": {"workflow": {"namespace": "test", "name": "grows", "version": "1.0.0"}}}}],
    }}])
}

/// All runs of the world's tenant that have not ended, after the tree has.
#[track_caller]
fn nothing_is_left(world: &World) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while world.number("select count(*) from runs where completed_at is null") > 0 {
        assert!(Instant::now() < deadline, "runs are left");
        moment();
    }
    world.eventually(|| world.number("select count(*) from job_jobs") == 0);
}

#[test]
fn a_tree_has_a_bound_and_the_flow_catches_its_error() {
    let mut world = World::new();
    world.run_limits = RunLimits {
        below_root: 40,
        ..RunLimits::default()
    };
    let run =
        json!({"run": {"workflow": {"namespace": "test", "name": "grows", "version": "1.0.0"}}});
    world.flow("grows", grows(3));
    let caught =
        json!({"errors": {"with": {"status": 429}}, "do": [{"tell": {"set": "${ $error }"}}]});
    world.flow(
        "catches",
        json!([
            {"first": {"try": [{"once": run}], "catch": caught}},
            {"second": {"try": [{"more": run}], "catch": caught}},
        ]),
    );
    let process = world.process(4, true);
    let run = world.ends(&process, "catches", json!({}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let below = world.number("select count(*) from runs where parent_run_id is not null");
    // What several commits write at once is not counted by each other.
    assert!((30..=52).contains(&below), "{below} runs");
    let error = world.output(run.run_id);
    assert_eq!(error["status"], 429, "{error}");
    assert_eq!(error["title"], "Too many runs");
    assert_eq!(
        error["type"],
        "https://serverlessworkflow.io/spec/1.0.0/errors/runtime"
    );
    let said = "The run at the top may have 40 runs below it, and no more begin.";
    assert_eq!(error["detail"], said);
    // Another root has a tree of its own.
    let other = world.ends(&process, "catches", json!({}));
    assert_eq!(other.status, Status::Completed);
    nothing_is_left(&world);
}

#[test]
fn iterations_beyond_the_bound_wait_for_those_under_way_and_then_fail() {
    let mut world = World::new();
    world.run_limits = RunLimits {
        below_root: 10,
        ..RunLimits::default()
    };
    world.flow(
        "maps",
        json!([{"each": {
            "for": {"each": "x", "in": ".items"},
            "metadata": {"concurrency": 2, "onError": "collect"},
            "do": [{"nap": {"wait": {"milliseconds": 1}}}],
        }}]),
    );
    let process = world.process(2, true);
    let items: Vec<usize> = (0..12).collect();
    let run = world.ends(&process, "maps", json!({"items": items}));
    assert_eq!(
        run.failure_message.as_deref(),
        Some(
            "The task /do/0/each failed: The run at the top may have 10 runs below it, and no more begin (status 429)."
        )
    );
    let children = world.children(run.run_id);
    assert!((9..=11).contains(&children.len()), "{}", children.len());
    assert!(
        children
            .iter()
            .all(|child| child.status == Status::Completed)
    );
    nothing_is_left(&world);
}

#[test]
fn a_tree_that_grows_is_cancelled_by_its_root_and_no_step_begins_after_it() {
    let mut world = World::new();
    world.run_limits = RunLimits {
        below_root: 10_000,
        ..RunLimits::default()
    };
    world.flow("grows", grows(12));
    let threads = 4;
    let process = world.process(threads, true);
    let root = world.start(&process, "grows", json!({}));
    let below = "select count(*) from runs where parent_run_id is not null";
    world.eventually(|| world.number(below) >= 700);
    let began = Instant::now();
    let run = process
        .runtime
        .cancel(&world.root(root), || Ok(()))
        .unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "the cancel took {took:?}");
    assert!(run.cancel_requested_at.is_some());
    let steps = "select count(*) from run_steps";
    let before = world.number(steps);
    nothing_is_left(&world);
    // Commits that were under way may have begun some.
    let after = world.number(steps) - before;
    assert!(after <= 2 * threads as i64, "{after} steps began after it");
    assert_eq!(world.run(root).status, Status::Cancelled);
    let others = "select count(*) from runs where status <> 'cancelled' and created_at < now() and completed_at is null";
    assert_eq!(world.number(others), 0);
}

/// Adds so many runs to a tree, below its first child: each waits for a time that is far ahead.
fn add_runs(world: &World, child: Uuid, count: usize) {
    world.batch(&format!(
        "create temporary table clones on commit drop as
           select n, (left(c.run_id::text, 19) || right(gen_random_uuid()::text, 17))::uuid as id, c.*
           from runs c, generate_series(1, {count}) n where c.run_id = '{child}';
         create index on clones (id);
         insert into job_jobs (queue, name, payload, priority, run_at, max_attempts, fairness_key)
           select j.queue, j.name, replace(j.payload::text, c.run_id::text, c.id::text)::json, j.priority, j.run_at,
             j.max_attempts, j.fairness_key
           from clones c join job_jobs j on j.id = c.job_id;
         insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id,
             parent_slot, root_run_id, dry_run, created_by, created_at, started_at, job_id, last_seq, lease_epoch,
             waiting_for, wake_at, parked_at)
           select c.tenant_id, c.id, c.project_id, c.flow_id, c.flow_version, 'waiting', 'run',
             c.run_id, c.n, c.root_run_id, c.dry_run, c.created_by, c.created_at, c.started_at, j.id, c.last_seq,
             c.lease_epoch, 'timer', c.wake_at, c.parked_at
           from clones c join job_jobs j on j.payload ->> 'runId' = c.id::text;
         insert into run_children (tenant_id, parent_run_id, slot, child_run_id, path, state)
           select tenant_id, run_id, n, id, '/do/0', 'started' from clones;
         update runs set waiting_for = 'children' where run_id = '{child}'"
    ));
}

#[test]
fn a_large_tree_is_cancelled_in_one_short_statement_and_ends_in_batches() {
    let given = std::env::var(RUNS).ok();
    let count = given.map_or(10_000, |count| count.parse().unwrap());
    let world = World::new();
    world.flow(
        "naps",
        json!([{"each": {
            "for": {"each": "x", "in": "[1, 2, 3]"},
            "metadata": {"concurrency": 3, "onError": "collect"},
            "do": [{"nap": {"wait": {"days": 300}}}],
        }}]),
    );
    let process = world.process(2, true);
    let root = world.start(&process, "naps", json!({}));
    let waiting = "select count(*) from runs where status = 'waiting'";
    world.eventually(|| world.number(waiting) == 4);
    for child in world.children(root) {
        add_runs(&world, child.run_id, count / 3);
    }
    world.batch("analyze runs; analyze run_children; analyze job_jobs");
    let all = world.number("select count(*) from runs");
    let began = Instant::now();
    let run = process
        .runtime
        .cancel(&world.root(root), || Ok(()))
        .unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "the cancel took {took:?}");
    assert_eq!(run.status, Status::Waiting);
    assert!(run.cancel_requested_at.is_some());
    // A run beside the tree does not wait for its end.
    let beside = world.start(&process, "naps", json!({}));
    world.until(&process, beside, |run| run.status == Status::Waiting);
    let left = world.number("select count(*) from runs where completed_at is null");
    if all >= 10_000 {
        assert!(left > 10, "the tree ended before a run beside it began");
    }
    process
        .runtime
        .cancel(&world.root(beside), || Ok(()))
        .unwrap();
    nothing_is_left(&world);
    let cancelled = world.number("select count(*) from runs where status = 'cancelled'");
    assert_eq!(cancelled, all + 4);
    let events = world.number("select count(*) from run_events where kind = 'run.cancelled'");
    assert_eq!(events, all + 4);
    let unrecorded = world.number("select count(*) from run_children where state <> 'cancelled'");
    assert_eq!(unrecorded, 0);
}
