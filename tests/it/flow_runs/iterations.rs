//! Iterations of a parallel loop: each begins as soon as a place comes free.

use super::crashes::{FAILING, carried_on, commits};
use super::world::Flows;
use crate::runtime::world::{Process, World};
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{Status, WaitingFor};
use postgres::types::ToSql;
use serde_json::{Value, json};

/// Counts how many child runs are under way at once, whenever one begins.
const COUNTER: &str = "
    create table under_way (runs bigint not null);
    create function count_under_way() returns trigger language plpgsql as $$
    begin
      insert into under_way select count(*) from run_children where state = 'started';
      return null;
    end $$;
    create trigger count_under_way after insert on run_children for each statement execute function count_under_way();";

/// Maps its items, so many at once. What is in `first` comes first in each iteration.
fn maps(concurrency: u64, on_error: &str, first: Value) -> Value {
    json!([{"each": {
        "for": {"each": "x", "in": ".items"},
        "metadata": {"concurrency": concurrency, "onError": on_error},
        "do": [first, {"tell": {"set": "${ [$index, $x * $x] }"}}],
    }}])
}

/// Iterations of which the first waits for an hour.
fn straggler() -> Value {
    json!({"slow": {"if": "$index == 0", "do": [{"nap": {"wait": {"hours": 1}}}]}})
}

fn squares(count: i64) -> Value {
    (0..count).map(|n| json!([n, n * n])).collect()
}

fn indexes(world: &World, run_id: uuid::Uuid, kind: &str) -> Vec<i64> {
    let events = world.events(run_id);
    let indexes = events.iter().filter(|event| event.kind == kind);
    indexes
        .map(|event| event.data["index"].as_i64().unwrap())
        .collect()
}

#[test]
fn one_slow_iteration_holds_one_place_and_no_more_run_at_once() {
    let world = World::new();
    world.batch(COUNTER);
    world.flow("maps", maps(3, "fail-fast", straggler()));
    let process = world.process(4, true);
    let items: Vec<i64> = (0..12).collect();
    let run_id = world.start(&process, "maps", json!({"items": items}));
    world.eventually(|| {
        let children = world.children(run_id);
        let is_done = |status| {
            children
                .iter()
                .filter(|child| child.status == status)
                .count()
        };
        (is_done(Status::Waiting), is_done(Status::Completed)) == (1, 11)
            && world.number("select count(*) from run_children where seen") == 11
    });
    let run = world.until(&process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(run.waiting_for, Some(WaitingFor::Children));
    world.pass(&process, 3600);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id), squares(12));
    assert_eq!(world.steps(run_id), ["child /do/0/each completed"]);
    assert_eq!(world.number("select max(runs) from under_way"), 3);
    assert_eq!(indexes(&world, run_id, "child.started"), items);
    let mut completed = indexes(&world, run_id, "child.completed");
    assert_eq!(completed.pop(), Some(0), "the slow one is the last to end");
    completed.sort_unstable();
    assert_eq!(completed, items[1..]);
}

#[test]
fn no_iteration_begins_once_one_has_failed() {
    let world = World::new();
    let fails = json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503}}});
    let first = json!({"first": {"do": [
        {"slow": {"if": "$index == 0", "do": [{"nap": {"wait": {"days": 300}}}]}},
        {"third": {"if": "$index == 2", "do": [{"fails": fails}]}},
    ]}});
    world.flow("maps", maps(2, "fail-fast", first.clone()));
    world.flow("collects", maps(2, "collect", first));
    let process = world.process(3, true);
    let items = json!({"items": [0, 1, 2, 3, 4, 5]});
    let run = world.ends(&process, "maps", items.clone());
    let said = "The task /do/0/each failed: The flow raised an error (status 503).";
    assert_eq!(run.failure_message.as_deref(), Some(said));
    let children = world.children(run.run_id);
    let states: Vec<Status> = children.iter().map(|child| child.status).collect();
    assert_eq!(
        states,
        [Status::Cancelled, Status::Completed, Status::Failed]
    );
    // Where errors are collected, the others begin all the same.
    let run_id = world.start(&process, "collects", items);
    world.eventually(|| world.number("select count(*) from run_children where seen") == 3 + 5);
    world.pass(&process, 301 * 86_400);
    world.finished(&process, run_id);
    let mut output = world.output(run_id);
    let failed = std::mem::take(&mut output[2]);
    assert_eq!(failed["error"]["status"], 503);
    assert_eq!(
        output,
        json!([[0, 0], [1, 1], null, [3, 9], [4, 16], [5, 25]])
    );
}

/// It is not begun by whoever takes the run up after the failure was seen, while others have not ended yet.
#[test]
fn no_iteration_begins_after_a_failure_that_was_seen() {
    let world = World::new();
    let fails = json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503}}});
    let first = json!({"first": {"do": [
        {"slow": {"if": "$index == 0", "call": "tool", "with": {"tool": "weather", "arguments": {"city": "Rome"}}}},
        {"second": {"if": "$index == 1", "do": [{"fails": fails}]}},
    ]}});
    world.flow("maps", maps(2, "fail-fast", first));
    let gate = world.tool.gate.clone();
    let closed = gate.lock().unwrap();
    // The process that calls the tool is not the one that sees the failure, so it goes on until it hears of the cancel.
    let calling = world.process(1, false);
    let run_id = world.start(&calling, "maps", json!({"items": [0, 1, 2, 3]}));
    world.eventually(|| world.tool.asked().len() == 1);
    let seeing = world.process(2, true);
    seeing.shard.follow(run_id);
    world.eventually(|| {
        world.number("select count(*) from run_children where state = 'failed' and seen") == 1
    });
    drop(closed);
    let run = world.finished(&seeing, run_id);
    assert_eq!(run.status, Status::Failed);
    assert_eq!(world.children(run_id).len(), 2);
}

/// A cancelled iteration gives no answer, so the loop has failed.
#[test]
fn no_iteration_begins_once_one_was_cancelled() {
    let world = World::new();
    let nap = json!({"nap": {"wait": {"days": 300}}});
    world.flow("maps", maps(2, "fail-fast", nap));
    let process = world.process(2, true);
    let run_id = world.start(&process, "maps", json!({"items": [0, 1, 2, 3]}));
    let waits = "select count(*) from runs where parent_run_id is not null and status = 'waiting'";
    world.eventually(|| world.number(waits) == 2);
    let first = world.children(run_id)[0].run_id;
    let cancelled = process.runtime.cancel(&world.root(first), || Ok(()));
    cancelled.unwrap();
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed);
    let said = run.failure_message.unwrap();
    assert!(said.contains("was cancelled"), "{said}");
    let children = world.children(run_id);
    let states: Vec<Status> = children.iter().map(|child| child.status).collect();
    assert_eq!(states, [Status::Cancelled; 2]);
}

#[test]
fn the_time_of_the_loop_is_over_before_all_have_begun() {
    let world = World::new();
    let slow = json!({"slow": {"wait": {"hours": 1}}});
    let mut tasks = maps(2, "collect", slow);
    tasks[0]["each"]["timeout"] = json!({"after": "PT10S"});
    let catch =
        json!({"errors": {"with": {"status": 408}}, "do": [{"tell": {"set": "${ \"late\" }"}}]});
    world.flow("maps", json!([{"outer": {"try": tasks, "catch": catch}}]));
    let process = world.process(3, true);
    let run_id = world.start(&process, "maps", json!({"items": [0, 1, 2, 3]}));
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.pass(&process, 11);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id), json!("late"));
    assert_eq!(world.children(run_id).len(), 2);
}

#[test]
fn what_the_iterations_answer_is_bounded() {
    let world = World::new();
    world.flow(
        "maps",
        json!([{"outer": {
            "try": [{"each": {
                "for": {"in": "[range(40)]"},
                "metadata": {"concurrency": 8},
                "do": [{"grow": {"set": "${ [range(60000)] }"}}],
                "output": {"as": "length"},
            }}],
            "catch": {"do": [{"tell": {"set": "${ $error.detail }"}}]},
        }}]),
    );
    let process = world.process(4, true);
    let said = world.answers(&process, "maps", json!({}));
    assert_eq!(
        said,
        json!("What the runs answered has more than 8 MiB of JSON together.")
    );
}

/// The errors of a loop that collects them are among what its iterations answer.
#[test]
fn the_errors_of_the_iterations_are_bounded() {
    let world = World::new();
    let long = "${ [range(10000)] | tojson }";
    let error =
        json!({"type": "https://example.com/busy", "status": 503, "title": long, "detail": long});
    world.flow(
        "maps",
        json!([{"outer": {
            "try": [{"each": {
                "for": {"in": "[range(.items)]"},
                "metadata": {"concurrency": 8, "onError": "collect"},
                "do": [{"fails": {"raise": {"error": error}}}],
                "output": {"as": "map(.error.detail | length) | unique"},
            }}],
            "catch": {"do": [{"tell": {"set": "${ $error.detail }"}}]},
        }}]),
    );
    let process = world.process(4, true);
    let lengths = world.answers(&process, "maps", json!({"items": 4}));
    assert_eq!(lengths, json!([16 * 1024]));
    // Each has its title, its detail, and its sentence.
    let said = world.answers(&process, "maps", json!({"items": 180}));
    assert_eq!(
        said,
        json!("What the runs answered has more than 8 MiB of JSON together.")
    );
}

/// Says how many commits the loop took.
fn dies_before(world: &World, commit: i64) -> i64 {
    let items = json!({"items": [0, 1, 2, 3]});
    let start = |creator: &Process| world.start(creator, "maps", items);
    let run = carried_on(world, commit, start);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let run_id = run.run_id;
    assert_eq!(world.output(run_id), squares(4), "before commit {commit}");
    assert_eq!(
        world.children(run_id).len(),
        4,
        "no iteration begins twice, before commit {commit}"
    );
    assert_eq!(world.number("select max(runs) from under_way"), 2);
    assert_eq!(indexes(world, run_id, "child.started"), [0, 1, 2, 3]);
    let mut completed = indexes(world, run_id, "child.completed");
    completed.sort_unstable();
    assert_eq!(completed, [0, 1, 2, 3]);
    commits(world)
}

#[test]
fn a_loop_whose_process_dies_before_any_commit_is_carried_on() {
    let world = World::new();
    world.batch(FAILING);
    world.batch(COUNTER);
    let nothing = json!({"nap": {"wait": {"milliseconds": 0}}});
    world.flow("maps", maps(2, "fail-fast", nothing));
    let whole = dies_before(&world, i64::MAX);
    assert!(whole > 12, "{whole}");
    // The first is the run's creation, which is not the dying process's.
    for commit in 2..=whole {
        dies_before(&world, commit);
    }
}

/// Rows of children that a statement reads.
fn children_read(
    world: &World,
    mode: &str,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> i64 {
    let mut client = world.database.client();
    let mut tx = client.transaction().unwrap();
    tx.batch_execute(&format!("set local plan_cache_mode = {mode}"))
        .unwrap();
    tx.query(statement, parameters).unwrap();
    let read = "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
                from pg_stat_xact_user_tables where relname like 'run_children%'";
    tx.query_one(read, &[]).unwrap().get(0)
}

/// A thousand iterations, all seen but the first and the last.
#[test]
fn a_loop_is_taken_up_at_its_end_for_what_it_costs_at_its_begin() {
    let world = World::new();
    drop(world.process(0, false));
    let run_id = world.clock.new_id();
    let insert = "
        insert into run_children (tenant_id, parent_run_id, slot, child_run_id, path, state, seen)
        select $1, $2, n, gen_random_uuid(), '/do/0/each',
          case when n in (0, 999) then 'started' when n % 2 = 0 then 'failed' else 'completed' end, n not in (0, 999)
        from generate_series(0, 999) n";
    world.read(|session| session.execute(insert, &[&world.tenant_id, &run_id]));
    let unseen = include_str!("../../../sql/queries/runs/unseen_children.sql");
    let take = "select run_take_children(of_tenant_id => $1, of_run_id => $2, slots => array[999])";
    for is_analyzed in [false, true] {
        if is_analyzed {
            world.batch("analyze run_children");
        }
        for mode in ["force_generic_plan", "force_custom_plan"] {
            let slots: [&(dyn ToSql + Sync); 4] = [&world.tenant_id, &run_id, &0, &1000];
            let read = children_read(&world, mode, unseen, &slots);
            assert!(read <= 6, "{mode}, analyzed {is_analyzed}: {read} rows");
            let read = children_read(&world, mode, take, &slots[..2]);
            assert!(read <= 6, "{mode}, analyzed {is_analyzed}: {read} rows");
        }
    }
}
