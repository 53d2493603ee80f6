//! A flow whose process dies before each of its commits, and is carried on by another.

use super::world::Flows;
use crate::runtime::world::{Process, World};
use agent_runtime::store::runs::{Run, Status};
use serde_json::{Value, json};
use uuid::Uuid;

/// Writes of events, which every commit has, fail from a chosen one on, as those of a process that lost its connection. The
/// count goes on whatever is rolled back.
pub(super) const FAILING: &str = "
    create sequence commits;
    create table failing (from_commit bigint not null);
    insert into failing values (9223372036854775807);
    create function fail_commit() returns trigger language plpgsql as $$
    begin
      if nextval('commits') >= (select from_commit from failing) then
        raise exception 'the process is dead' using errcode = '57P01';
      end if;
      return null;
    end $$;
    create trigger fail_commit before insert on run_events for each statement execute function fail_commit();";

fn tasks() -> Value {
    let busy = json!({"error": {"type": "https://example.com/busy", "status": 503}});
    json!([
        {"begin": {"set": {"n": 0}, "export": {"as": "{ seen: [] }"}}},
        {"each": {"for": {"each": "letter", "in": "[\"a\", \"b\"]"}, "do": [
            {"sleep": {"wait": {"milliseconds": 0}}},
            {"note": {"set": "${ {n: (.n + 1)} }", "export": {"as": "{ seen: ($context.seen + [$letter]) }"}}},
        ]}},
        {"outer": {
            "try": [{"nap": {"wait": {"milliseconds": 0}}}, {"fails": {"raise": busy}}],
            "catch": {
                "retry": {"delay": {"milliseconds": 1}, "limit": {"attempt": {"count": 2}}},
                "do": [{"rest": {"wait": {"milliseconds": 0}}}],
            },
        }},
        {"tell": {"set": {"n": "${ .n }", "seen": "${ $context.seen }"}}},
    ])
}

/// A run that `start` creates, carried on by processes of which the first is dead from this commit on. Says how it ended.
pub(super) fn carried_on(world: &World, commit: i64, start: impl FnOnce(&Process) -> Uuid) -> Run {
    world.batch(&format!(
        "update failing set from_commit = {commit}; select setval('commits', 1, false)"
    ));
    let run_id = start(&world.process(0, false));
    let dying = world.process(1, true);
    world.eventually(|| commits(world) >= commit || world.run(run_id).status.is_finished());
    world.expire_leases();
    world.batch("update failing set from_commit = 9223372036854775807");
    let next = world.process(1, true);
    next.shard.follow(run_id);
    let run = world.until(&next, run_id, |run| run.status.is_finished());
    drop(dying);
    run
}

/// How many commits there were.
pub(super) fn commits(world: &World) -> i64 {
    world.number("select last_value from commits")
}

/// Says how many commits the flow took.
fn dies_before(world: &World, commit: i64) -> i64 {
    let start = |creator: &Process| world.start(creator, "dies", json!({}));
    let run = carried_on(world, commit, start);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        world.output(run.run_id),
        json!({"n": 2, "seen": ["a", "b"]}),
        "before commit {commit}"
    );
    let steps = [
        "/do/1/each/do/0/sleep",
        "/do/1/each/do/0/sleep",
        "/do/2/outer/try/0/nap",
        "/do/2/outer",
        "/do/2/outer/try/0/nap",
        "/do/2/outer/catch/do/0/rest",
    ];
    let steps = steps.map(|path| format!("wait {path} completed"));
    assert_eq!(world.steps(run.run_id), steps, "no step is begun twice");
    commits(world)
}

#[test]
fn a_flow_whose_process_dies_before_any_commit_is_carried_on() {
    let world = World::new();
    world.batch(FAILING);
    world.flow("dies", tasks());
    let whole = dies_before(&world, i64::MAX);
    assert!(whole > 8, "{whole}");
    // The first is the run's creation, which is not the dying process's.
    for commit in 2..=whole {
        dies_before(&world, commit);
    }
}
