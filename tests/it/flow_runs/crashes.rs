//! A flow whose process dies before each of its commits, and is carried on by another.

use super::world::Flows;
use crate::runtime::world::{HttpServer, Process, World, YES};
use agent_runtime::store::Sql;
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
    carried_on_while(world, commit, start, |_| {})
}

/// As [`carried_on`], while somebody else does something again and again.
fn carried_on_while(
    world: &World,
    commit: i64,
    start: impl FnOnce(&Process) -> Uuid,
    meanwhile: impl Fn(Uuid),
) -> Run {
    world.batch(&format!(
        "update failing set from_commit = {commit}; select setval('commits', 1, false)"
    ));
    let run_id = start(&world.process(0, false));
    let dying = world.process(1, true);
    world.eventually(|| {
        meanwhile(run_id);
        commits(world) >= commit || world.run(run_id).status.is_finished()
    });
    world.expire_leases();
    world.batch("update failing set from_commit = 9223372036854775807");
    let next = world.process(1, true);
    next.shard.follow(run_id);
    let run = world.until(&next, run_id, |run| {
        meanwhile(run_id);
        run.status.is_finished()
    });
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
    assert!(whole > 7, "{whole}");
    // The first is the run's creation, which is not the dying process's.
    for commit in 2..=whole {
        dies_before(&world, commit);
    }
}

/// Approves what the run asks, if it asks. A decision that cannot be written is made again by whoever makes it.
fn approves(world: &World, run_id: Uuid) {
    let waiting = "select approval_id from approvals where run_id = $1 and status = 'waiting'";
    let found = world.read(|session| session.query_opt(waiting, &[&run_id]));
    let Some(approval_id) = found.map(|row| row.get::<_, Uuid>(0)) else {
        return;
    };
    let _ = world.decide(approval_id, &YES);
}

/// As [`dies_before`], of a flow with branches, another flow in it, and an approval.
fn family_dies_before(world: &World, commit: i64) -> i64 {
    let start = |creator: &Process| world.start(creator, "family", json!({"n": 1}));
    let run = carried_on_while(world, commit, start, |run_id| approves(world, run_id));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        world.output(run.run_id),
        json!({"n": 3, "decision": "approved"}),
        "before commit {commit}"
    );
    let children = world.children(run.run_id);
    let flows: Vec<&str> = children
        .iter()
        .map(|child| child.flow_id.as_str())
        .collect();
    assert_eq!(
        flows,
        ["test.family", "test.family", "test.inner"],
        "no child is begun twice, before commit {commit}"
    );
    let asked = "select count(*) from approvals where run_id = $1";
    let asked: i64 = world.read(|session| Ok(session.query_one(asked, &[&run.run_id])?.get(0)));
    assert_eq!(asked, 1, "before commit {commit}");
    commits(world)
}

#[test]
fn a_flow_with_children_and_an_approval_whose_process_dies_before_any_commit_is_carried_on() {
    let world = World::new();
    world.batch(FAILING);
    world.flow(
        "inner",
        json!([{"add": {"set": "${ {n: (.n + 1)} }"}}, {"sleep": {"wait": {"milliseconds": 0}}}]),
    );
    let inner = json!({"workflow": {"namespace": "test", "name": "inner", "version": "1.0.0"}});
    world.flow(
        "family",
        json!([
            {"both": {
                "fork": {"branches": [
                    {"left": {"set": "${ {n: (.n + 1)} }"}},
                    {"right": {"wait": {"milliseconds": 0}}},
                ]},
                "output": {"as": "${ .[0] }"},
            }},
            {"sub": {"run": inner, "export": {"as": "${ . }"}}},
            {"ask": {"call": "approval", "with": {"title": "Refund", "expiresAfter": "P2D"}}},
            {"tell": {"set": {"n": "${ $context.n }", "decision": "${ .decision }"}}},
        ]),
    );
    let whole = family_dies_before(&world, i64::MAX);
    assert!(whole > 8, "{whole}");
    // The first is the run's creation, which is not the dying process's.
    for commit in 2..=whole {
        family_dies_before(&world, commit);
    }
}

/// What a dry run does not perform has no outcome that nobody knows.
#[test]
fn a_dry_run_whose_process_dies_before_any_commit_is_carried_on_and_sends_nothing() {
    let world = World::new();
    let server = HttpServer::start(&[]);
    world.batch(FAILING);
    let post = json!({"method": "post", "endpoint": server.url("/x")});
    let pay = json!({"tool": "pay", "arguments": {"city": "Rome"}});
    let tasks = json!([
        {"post": {"call": "http", "with": post}},
        {"pay": {"call": "tool", "with": pay}},
        {"tell": {"set": {"done": true}}},
    ]);
    world.flow("dry", tasks);
    let dies_before = |commit: i64| {
        let start = |creator: &Process| world.start_dry(creator, "dry", json!({}));
        let run = carried_on(&world, commit, start);
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        assert_eq!(world.output(run.run_id), json!({"done": true}));
        commits(&world)
    };
    let whole = dies_before(i64::MAX);
    assert!(whole > 3, "{whole}");
    for commit in 2..=whole {
        dies_before(commit);
    }
    assert_eq!((server.got().len(), world.tool.asked().len()), (0, 0));
}
