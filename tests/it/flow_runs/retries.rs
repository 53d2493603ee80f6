//! Failed runs of flows that are taken up again.

use super::crashes::{FAILING, carried_on, commits};
use super::world::Flows;
use crate::runtime::world::{HttpServer, Process, World, started_by};
use agent_runtime::dev::provider::{Reply, Step};
use agent_runtime::error::{Code, Result};
use agent_runtime::runtime::{Created, FlowLimits, Retry};
use agent_runtime::store::runs::{Origin, Status, WaitingFor};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn retry(world: &World, process: &Process, run_id: Uuid, repeats: bool) -> Result<Uuid> {
    let failed = world.run(run_id);
    let new = world.clock.new_id();
    process.shard.follow(new);
    let created = world.store.transact(|tx| {
        let retry = Retry {
            run_id: new,
            origin: Origin::App,
            created_by: world.user_id,
            created_at: world.clock.now(),
            started_by: started_by(),
            repeats_unknown: repeats,
        };
        let root = world.root(run_id);
        process.runtime.retry(tx, &root, &failed, retry, None)
    })?;
    assert!(matches!(created, Created::New(_)));
    process.runtime.wake();
    Ok(new)
}

/// Runs the flow, which fails, and takes it up, which completes.
fn fails_and_completes(world: &World, process: &Process, flow: &str) -> (Uuid, Uuid) {
    let run = world.ends(process, flow, json!({"n": 1}));
    assert_eq!(run.status, Status::Failed);
    let again = retry(world, process, run.run_id, false).unwrap();
    let run_again = world.finished(process, again);
    let said = &run_again.failure_message;
    assert_eq!(run_again.status, Status::Completed, "{said:?}");
    assert_eq!(run_again.retry_of, Some(run.run_id));
    (run.run_id, again)
}

fn http(server: &HttpServer, method: &str, path: &str) -> Value {
    let with = json!({"method": method, "endpoint": server.url(path), "body": {"n": "${ .n }"}});
    json!({"call": "http", "with": with, "output": {"as": "$input"}})
}

fn urls(server: &HttpServer) -> Vec<String> {
    server.got().into_iter().map(|got| got.url).collect()
}

#[test]
fn a_flow_goes_on_at_the_step_that_failed() {
    let world = World::new();
    let server = HttpServer::start(&[(200, "{}"), (500, "broken")]);
    let tasks = json!([
        {"keep": {"set": "${ . }", "export": {"as": "{ kept: .n }"}}},
        {"each": {"for": {"each": "x", "in": "[7]"}, "do": [
            {"first": http(&server, "post", "/first")},
            {"second": http(&server, "post", "/second")},
            {"tell": {"set": "${ [.n, $x, $context.kept] }"}},
        ]}},
    ]);
    world.flow("pays", tasks);
    let process = world.process(1, true);
    let (first, again) = fails_and_completes(&world, &process, "pays");
    assert_eq!(world.output(again), json!([1, 7, 1]));
    assert_eq!(urls(&server), ["/first", "/second", "/second"]);
    let keys: Vec<String> = server.got().into_iter().filter_map(|got| got.key).collect();
    assert_eq!(keys[1], format!("{first}-2"));
    assert_eq!(
        keys[2],
        format!("{again}-2"),
        "an answered call is another call"
    );
    let events = world.events(again);
    assert_eq!(events[1].data, json!({"retryOf": first, "steps": 1}));
    assert_eq!(world.steps(again).len(), 2);
}

#[test]
fn a_step_that_is_done_is_not_done_again_when_what_follows_fails() {
    let world = World::new();
    let server = HttpServer::start(&[]);
    let fails = json!({"raise": {"error": {"type": "https://example.com/no", "status": 400}}});
    world.flow(
        "fails",
        json!([{"pay": http(&server, "post", "/pay")}, {"no": fails}]),
    );
    let process = world.process(1, true);
    let run = world.ends(&process, "fails", json!({"n": 1}));
    let again = retry(&world, &process, run.run_id, false).unwrap();
    assert_eq!(world.finished(&process, again).status, Status::Failed);
    assert_eq!(urls(&server), ["/pay"]);
}

/// The most that a run may take.
fn days(days: u32) -> FlowLimits {
    FlowLimits {
        days,
        ..FlowLimits::default()
    }
}

#[test]
fn a_call_that_was_answered_when_the_days_of_the_run_were_over_is_not_made_again() {
    let mut world = World::new();
    world.flow_limits = days(1);
    let server = HttpServer::start(&[]);
    world.flow("pays", json!([{"pay": http(&server, "post", "/pay")}]));
    let process = world.process(1, true);
    let gate = server.gate.clone();
    let closed = gate.lock().unwrap();
    let run_id = world.start(&process, "pays", json!({"n": 1}));
    world.eventually(|| urls(&server).len() == 1);
    world.clock.advance(2 * DAY);
    drop(closed);
    let said = world.finished(&process, run_id).failure_message.unwrap();
    assert!(said.contains("SVC_MAX_RUN_DAYS"), "{said}");
    let again = retry(&world, &process, run_id, false).unwrap();
    assert_eq!(world.finished(&process, again).status, Status::Completed);
    assert_eq!(urls(&server), ["/pay"]);
}

/// A flow waits 20 hours, and begins another one that fails. Taken up, its own time counts anew, and so does that of what it
/// waits for.
fn has_its_time_again(world: &World, more: Value) {
    let server = HttpServer::start(&[(500, "broken")]);
    world.flow("below", json!([{"pay": http(&server, "post", "/pay")}]));
    let below = json!({"workflow": {"namespace": "test", "name": "below", "version": "1.0.0"}});
    let tasks = json!([{"rest": {"wait": {"hours": 20}}}, {"begin": {"run": below}}]);
    world.whole_flow("outer", tasks, more);
    let process = world.process(2, true);
    let run_id = world.start(&process, "outer", json!({"n": 1}));
    world.until(&process, run_id, |run| {
        run.waiting_for == Some(WaitingFor::Timer)
    });
    world.pass(&process, 20 * 3600);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed, "{:?}", run.failure_message);
    let gate = server.gate.clone();
    let closed = gate.lock().unwrap();
    let again = retry(world, &process, run_id, false).unwrap();
    world.eventually(|| urls(&server).len() == 2);
    world.until(&process, again, |run| {
        run.waiting_for == Some(WaitingFor::Children)
    });
    world.pass(&process, 5 * 3600);
    world.until(&process, again, |run| {
        run.waiting_for == Some(WaitingFor::Children)
    });
    drop(closed);
    let run = world.finished(&process, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
}

#[test]
fn what_a_run_waits_for_has_the_time_of_the_run_that_took_it_up() {
    let world = World::new();
    has_its_time_again(&world, json!({"timeout": {"after": {"hours": 24}}}));
    let mut world = World::new();
    world.flow_limits = days(1);
    has_its_time_again(&world, json!({}));
}

#[test]
fn a_state_for_which_there_is_no_room_any_more_is_not_taken_up() {
    let mut world = World::new();
    let server = HttpServer::start(&[(500, "broken")]);
    world.flow("pays", json!([{"pay": http(&server, "post", "/pay")}]));
    let input = json!({"n": 1, "text": "x".repeat(200_000)});
    let run = world.ends(&world.process(1, true), "pays", input);
    assert_eq!(run.status, Status::Failed);
    world.flow_limits.data_bytes = 64 * 1024;
    let refused = retry(&world, &world.process(1, true), run.run_id, false).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    let said = refused.to_string();
    assert!(said.contains("SVC_MAX_FLOW_DATA_BYTES"), "{said}");
}

fn dies_during_its_call(world: &World, flow: &str) -> (Uuid, Process) {
    dies_during_a_call(world, false, |dying| world.start(dying, flow, json!({})))
}

/// Starts a run whose process dies while the tool is called. The run, which failed, and the next process, with keepers or
/// without.
pub(super) fn dies_during_a_call(
    world: &World,
    keepers: bool,
    start: impl FnOnce(&Process) -> Uuid,
) -> (Uuid, Process) {
    let gate = world.tool.gate.clone();
    let closed = gate.lock().unwrap();
    let dying = world.process(1, false);
    let run_id = start(&dying);
    world.eventually(|| world.tool.asked().len() == 1);
    world.expire_leases();
    let next = world.process(1, keepers);
    next.shard.follow(run_id);
    let run = world.until(&next, run_id, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Failed);
    drop(closed);
    drop(dying);
    (run_id, next)
}

#[test]
fn a_call_without_a_recorded_answer_is_made_again_with_its_key_if_the_caller_says_so() {
    let world = World::new();
    let pay = json!({"call": "tool", "with": {"tool": "pay", "arguments": {"city": "Rome"}}});
    world.flow("pays", json!([{"pay": pay}]));
    let (run_id, next) = dies_during_its_call(&world, "pays");
    let refused = retry(&world, &next, run_id, false).unwrap_err();
    assert_eq!(refused.code(), Code::OutcomeUnknown, "{refused:?}");
    assert!(refused.message().contains("the tool pay"), "{refused:?}");
    let again = retry(&world, &next, run_id, true).unwrap();
    let run = world.finished(&next, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let keys: Vec<Option<String>> = world
        .tool
        .asked()
        .into_iter()
        .map(|asked| asked.0)
        .collect();
    assert_eq!(keys, vec![Some(format!("{run_id}-1")); 2]);
}

#[test]
fn a_call_of_a_turn_that_died_with_its_process_is_made_again_with_its_key() {
    let world = World::new();
    let ask = json!({"call": "agent", "with": {"agent": "a", "version": "1.0.0", "message": "?"}});
    world.flow("asks", json!([{"ask": ask}]));
    let pay = ("pay".to_owned(), json!({"city": "Rome"}));
    world.provider.push(Step::new(Reply::ToolCalls(vec![pay])));
    let (run_id, next) = dies_during_its_call(&world, "asks");
    let turn = world.children(run_id)[0].run_id;
    let refused = retry(&world, &next, run_id, false).unwrap_err();
    assert_eq!(refused.code(), Code::OutcomeUnknown, "{refused:?}");
    let again = retry(&world, &next, run_id, true).unwrap();
    let run = world.finished(&next, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let asked = world.tool.asked().into_iter();
    let keys: Vec<Option<String>> = asked.map(|asked| asked.0).collect();
    assert_eq!(keys, vec![Some(format!("{turn}-2")); 2]);
}

/// Three branches: one is done, one fails at its second step, one is cancelled for that.
fn branches(server: &HttpServer) -> Value {
    json!([{"split": {"fork": {"branches": [
        {"done": http(server, "post", "/done")},
        {"fails": {"do": [
            {"one": http(server, "post", "/one")},
            {"wait": {"wait": {"milliseconds": 1}}},
            {"two": {"call": "http", "with": {"method": "post", "endpoint": server.url("/two")}}},
            {"tell": {"set": {"told": "${ $context.kept }"}}},
        ]}},
    ]}}}])
}

#[test]
fn a_branch_that_failed_goes_on_and_the_others_are_taken_over() {
    let world = World::new();
    let server = HttpServer::start(&[(200, "{}"), (200, "{}"), (400, "no")]);
    world.flow("forks", branches(&server));
    // One at a time, so that the first branch is done before the other one fails.
    let process = world.process(1, true);
    let (first, again) = fails_and_completes(&world, &process, "forks");
    let output = world.output(again);
    assert_eq!(output[0], json!({"n": 1}));
    let mut asked = urls(&server);
    asked.sort();
    assert_eq!(asked, ["/done", "/one", "/two", "/two"]);
    let (before, after) = (world.children(first), world.children(again));
    assert_eq!(
        before[0].run_id, after[0].run_id,
        "what is done is taken over"
    );
    assert_eq!(after[1].retry_of, Some(before[1].run_id));
    assert_eq!(
        (after[1].root_run_id, after[1].status),
        (again, Status::Completed)
    );
}

#[test]
fn iterations_that_failed_are_taken_up_and_the_loop_goes_on() {
    let world = World::new();
    let server = HttpServer::start(&[(200, "{}"), (200, "{}"), (200, "{}"), (400, "no")]);
    let ask = json!({"call": "http", "with": {"method": "post", "endpoint": server.url("/x"), "body": "${ $x }"},
        "output": {"as": "$x"}});
    world.flow(
        "maps",
        json!([{"each": {
            "for": {"each": "x", "in": "[1, 2, 3, 4, 5]"},
            "metadata": {"concurrency": 2},
            "do": [{"ask": ask}, {"double": {"set": "${ . * 2 }"}}],
        }}]),
    );
    let process = world.process(1, true);
    let (_, again) = fails_and_completes(&world, &process, "maps");
    assert_eq!(world.output(again), json!([2, 4, 6, 8, 10]));
    let mut bodies: Vec<String> = server.got().into_iter().map(|got| got.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["1", "2", "3", "4", "4", "5"]);
}

/// Errors that were collected are answers, of a loop whose time was over before all had begun too.
#[test]
fn iterations_whose_errors_are_collected_are_not_taken_up() {
    let world = World::new();
    let fails = json!({"raise": {"error": {"type": "https://example.com/no", "status": 409}}});
    world.flow(
        "maps",
        json!([{"each": {
            "for": {"each": "x", "in": "[1, 2, 3, 4, 5]"},
            "metadata": {"concurrency": 2, "onError": "collect"},
            "timeout": {"after": "PT10S"},
            "do": [
                {"first": {"if": "$x == 1", "do": [{"fails": fails}]}},
                {"slow": {"if": "$x == 3 or $x == 4", "call": "tool", "with": {"tool": "weather", "arguments": {"city": "Rome"}}}},
                {"double": {"set": "${ $x * 2 }"}},
            ],
        }}]),
    );
    let gate = world.tool.gate.clone();
    let closed = gate.lock().unwrap();
    let process = world.process(3, true);
    let run_id = world.start(&process, "maps", json!({}));
    world.eventually(|| {
        world.tool.asked().len() == 2 && world.run(run_id).status == Status::Waiting
    });
    world.pass(&process, 11);
    assert_eq!(world.finished(&process, run_id).status, Status::Failed);
    drop(closed);
    let again = retry(&world, &process, run_id, false).unwrap();
    let run = world.finished(&process, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let output = world.output(again);
    assert_eq!(output[0]["error"]["status"], 409);
    assert_eq!(output.as_array().unwrap()[1..], [4, 6, 8, 10]);
    let (before, after) = (world.children(run_id), world.children(again));
    assert_eq!(before.len(), 4, "the fifth had no place");
    assert_eq!(before[0].run_id, after[0].run_id);
    assert_eq!(after.len(), 5);
}

#[test]
fn a_turn_that_failed_is_taken_up_inside_its_flow() {
    let world = World::new();
    let ask = json!({"call": "agent", "with": {"agent": "a", "version": "1.0.0", "message": "?"}});
    world.flow("asks", json!([{"ask": ask}]));
    let no = json!({"error": {"message": "No."}});
    world.provider.push(Step::json(400, &no));
    world.provider.push(Step::text("sunny"));
    let process = world.process(2, true);
    let (first, again) = fails_and_completes(&world, &process, "asks");
    assert_eq!(world.output(again)["text"], "sunny");
    assert_eq!(world.run(again).usage.calls, 1);
    let turn = world.children(first)[0].run_id;
    assert_eq!(world.children(again)[0].retry_of, Some(turn));
}

#[test]
fn times_of_tasks_begin_again_with_the_step() {
    let world = World::new();
    let nap = json!({"nap": {"wait": {"seconds": 20}}});
    world.flow(
        "late",
        json!([{"list": {"do": [nap], "timeout": {"after": "PT10S"}}}]),
    );
    let process = world.process(1, true);
    let run_id = world.start(&process, "late", json!({}));
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.pass(&process, 11);
    assert_eq!(world.finished(&process, run_id).status, Status::Failed);
    world.clock.advance(std::time::Duration::from_secs(86_400));
    let again = retry(&world, &process, run_id, false).unwrap();
    let run = world.until(&process, again, |run| run.status == Status::Waiting);
    assert!(run.wake_at.unwrap() > world.clock.now());
    world.pass(&process, 11);
    assert_eq!(world.finished(&process, again).status, Status::Failed);
}

/// Takes the run up, by processes of which the first is dead from this commit on. Says how many commits it took.
fn dies_before(world: &World, server: &HttpServer, commit: i64) -> i64 {
    let creator = world.process(1, true);
    let asked = server.got().len();
    server.answer(&[(200, "{}"), (200, "{}"), (400, "no")]);
    let failed = world.ends(&creator, "forks", json!({"n": 1}));
    assert_eq!(failed.status, Status::Failed);
    drop(creator);
    let start = |creator: &Process| retry(world, creator, failed.run_id, false).unwrap();
    let run = carried_on(world, commit, start);
    let done = urls(server)[asked..]
        .iter()
        .filter(|url| *url != "/two")
        .count();
    assert_eq!(
        done, 2,
        "what was done is done once, before commit {commit}"
    );
    // The request of the branch may be cut off: nobody knows then whether it was made, and it is not made again.
    match run.status {
        Status::Completed => assert_eq!(world.output(run.run_id)[0], json!({"n": 1})),
        _ => assert!(
            run.failure_message.unwrap().contains("Nobody knows"),
            "before commit {commit}"
        ),
    }
    commits(world)
}

#[test]
fn a_retry_whose_process_dies_before_any_commit_is_carried_on() {
    let world = World::new();
    world.batch(FAILING);
    let server = HttpServer::start(&[]);
    world.flow("forks", branches(&server));
    let whole = dies_before(&world, &server, i64::MAX);
    assert!(whole > 5, "{whole}");
    // The first two are the retry's creation, with that of the run below, which are not the dying process's.
    for commit in 3..=whole {
        dies_before(&world, &server, commit);
    }
}
