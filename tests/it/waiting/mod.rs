//! Runs that wait, through the whole driver: on a timer and on child runs. The program is built in for
//! tests: a script in the run's input. Crashes are in `crashes`, races in `hunts`, all at
//! once in `deadlocks`.

mod approvals;
mod assignees;
mod crashes;
mod deadlocks;
mod forms;
mod hunts;
mod webhooks;
mod world;

use crate::harness::{LogLines, PATIENCE};
use crate::runtime::world::World;
use agent_runtime::dev::provider::{Fault, Step};
use agent_runtime::store::runs::{Status, WaitingFor};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;
use world::{HOUR_MS, Scripts};

#[test]
fn a_run_waits_on_a_timer_and_goes_on() {
    let world = World::scripted();
    let process = world.process(1, true);
    let run_id = world.start(
        &process,
        &json!({"steps": [{"wait": HOUR_MS}], "output": "late"}),
    );
    let run = world.until(&process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(run.waiting_for, Some(WaitingFor::Timer));
    let wakes_in = run.wake_at.unwrap() - world.clock.now();
    assert!(wakes_in > time::Duration::minutes(50), "{wakes_in}");
    world.holds_nothing(run_id);
    // Another run finds the only thread free.
    let other = world.start(&process, &json!({"steps": []}));
    world.until(&process, other, |run| run.status.is_finished());
    assert_eq!(world.run(run_id).status, Status::Waiting);
    world.pass_an_hour(&process);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert!(run.parked_ms >= i64::from(HOUR_MS), "{}", run.parked_ms);
    assert_eq!(world.output(run_id), json!("late"));
    assert_eq!(
        world.kinds(run_id),
        [
            "run.created",
            "run.started",
            "step.started",
            "run.waiting",
            "step.completed",
            "run.completed"
        ]
    );
    let mut waits = world.events(run_id)[3].data.clone();
    assert!(waits["wakeAt"].take().is_string(), "{waits}");
    assert_eq!(
        waits,
        json!({"waitingFor": "timer", "wakeAt": null, "step": 1, "attempt": 1})
    );
    let path = "select count(*) from run_steps where path = '/steps/0' and kind = 'wait' and status = 'completed'";
    assert_eq!(world.number(path), 1);
}

/// Its only look comes after the test: what is due has to be told.
#[test]
fn a_child_that_ends_in_its_claim_wakes_its_parent() {
    let mut world = World::scripted();
    world.poll = Duration::from_millis(u64::from(HOUR_MS));
    let process = world.process(2, true);
    let none = json!({"script": {"steps": [], "output": 1}});
    let root = world.start(&process, &json!({"steps": [{"children": [none, none]}]}));
    let run = world.finished(&process, root);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
}

#[test]
fn a_run_that_is_woken_too_early_waits_on() {
    let world = World::scripted();
    let process = world.process(1, true);
    let run_id = world.start(&process, &json!({"steps": [{"wait": HOUR_MS}]}));
    for waits in 1..=3 {
        world.eventually(|| {
            let waiting = |event: &&String| *event == "run.waiting";
            world.kinds(run_id).iter().filter(waiting).count() == waits
        });
        world.until(&process, run_id, |run| run.status == Status::Waiting);
        world.wake_all(&process);
    }
    world.pass_an_hour(&process);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed);
    let attempts = "select max(attempt)::int8 from run_steps";
    assert_eq!(world.number(attempts), 1, "a wake is no attempt");
}

#[test]
fn a_parent_takes_children_of_every_kind_of_end() {
    let world = World::scripted();
    let process = world.process(2, true);
    world.provider.push(Step::text("sunny"));
    let script = json!({"steps": [{"children": [
        world.a_turn(),
        {"script": {"steps": [], "output": {"b": 1, "a": 2}}},
        {"script": {"steps": [], "fails": "No."}},
        {"flow": "no.such"},
        {"script": {"steps": [{"wait": HOUR_MS}]}},
        {"script": {"steps": [{"children": [{"script": {"steps": [], "output": "deep"}}]}]}},
    ]}]});
    let root = world.start(&process, &script);
    let waits = |run: &agent_runtime::store::runs::Run| run.waiting_for == Some(WaitingFor::Timer);
    world.eventually(|| world.children(root).len() == 6);
    let children = world.children(root);
    let cancelled = children[4];
    world.until(&process, cancelled, waits);
    // What is left then; before, any number may pass between two looks.
    world.eventually(|| world.unfinished(root) == 1);
    process
        .runtime
        .cancel(&world.root(cancelled), || Ok(()))
        .unwrap();
    let run = world.finished(&process, root);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let of = |at: usize, more: &Value| {
        let mut end = json!({"runId": children[at]});
        let (fields, more) = (end.as_object_mut().unwrap(), more.as_object().unwrap());
        fields.extend(more.clone());
        end
    };
    let nested = json!([[{"runId": world.children(children[5])[0], "status": "completed", "output": "deep"}]]);
    let unknown = "This version of the service cannot run the flow no.such.";
    assert_eq!(
        world.output(root),
        json!([[
            of(
                0,
                &json!({"status": "completed", "output": {"text": "sunny"}, "usage": run.usage})
            ),
            of(
                1,
                &json!({"status": "completed", "output": {"b": 1, "a": 2}})
            ),
            of(2, &json!({"status": "failed", "failureMessage": "No."})),
            of(3, &json!({"status": "failed", "failureMessage": unknown})),
            of(4, &json!({"status": "cancelled"})),
            of(5, &json!({"status": "completed", "output": nested})),
        ]])
    );
    world.usage_adds_up(root);
    assert_eq!(run.usage.calls, 1);
    world.are_the_parents(root);
}

/// A tree with a run that waits, one that runs, one that is queued, and one below.
#[test]
fn a_cancel_ends_a_tree_that_waits_runs_and_is_queued() {
    let (mut world, lines) = (World::scripted(), LogLines::default());
    world.log = lines.logger();
    let process = world.process(2, true);
    for _ in 0..2 {
        world
            .provider
            .push(Step::text("one two three").fault(1, Fault::Hang));
    }
    let below = json!({"steps": [{"children": [{"script": {"steps": [{"wait": HOUR_MS}]}}]}]});
    let script = json!({"steps": [{"children": [
        {"script": below}, {"script": {"steps": [{"wait": HOUR_MS}]}},
        world.a_turn(), world.a_turn(), {"script": {"steps": [{"wait": HOUR_MS}]}},
    ]}]});
    let root = world.start(&process, &script);
    // Both threads ask the provider; what has not come to a thread by then is queued.
    world.eventually(|| world.provider.count() == 2);
    world
        .runs_below(root)
        .iter()
        .for_each(|run_id| process.shard.follow(*run_id));
    process
        .runtime
        .cancel(&world.root(root), || Ok(()))
        .unwrap();
    let run = world.until(&process, root, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Cancelled);
    let mut runs = world.runs_below(root);
    assert!(runs.len() >= 5, "{runs:?}");
    for run_id in runs.clone() {
        // Those that are held end a moment later.
        let run = world.until(&process, run_id, |run| run.status.is_finished());
        assert_eq!(run.status, Status::Cancelled);
        assert_eq!(world.kinds(run_id).last().unwrap(), "run.cancelled");
    }
    world.eventually(|| world.number("select count(*) from job_jobs") == 0);
    world.nothing_is_stranded();
    // Each run of the tree is one record, whoever ended it.
    runs.push(root);
    world.eventually(|| lines.with("A run ended").len() >= runs.len());
    let records = lines.records("A run ended");
    let mut ended: Vec<Uuid> = records
        .iter()
        .map(|record| record["runId"].as_str().unwrap().parse().unwrap())
        .collect();
    ended.sort_unstable();
    runs.sort_unstable();
    assert_eq!(ended, runs);
}

#[test]
fn parked_time_does_not_count_against_a_time_limit() {
    let world = World::scripted();
    let process = world.process(2, true);
    // The limit of these programs is far below an hour.
    let waits = world.start(
        &process,
        &json!({"steps": [{"wait": HOUR_MS}, {"wait": 0}]}),
    );
    let child = json!({"script": {"steps": [{"wait": HOUR_MS}]}});
    let parent = world.start(
        &process,
        &json!({"steps": [{"children": [child]}, {"wait": 0}]}),
    );
    for run_id in [waits, parent] {
        world.until(&process, run_id, |run| run.status == Status::Waiting);
    }
    world.eventually(|| world.number("select count(*) from runs where waiting_for = 'timer'") == 2);
    world.pass_an_hour(&process);
    for run_id in [waits, parent] {
        let run = world.until(&process, run_id, |run| run.status.is_finished());
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        assert!(run.active_time(world.clock.now()) < PATIENCE * 2);
    }
}

#[test]
fn a_wait_for_a_retry_counts_against_the_time_limit() {
    let world = World::scripted();
    world.batch("update agent_versions set limits = '{\"turnTimeoutMs\": 600000}'");
    let process = world.process(1, true);
    let busy = Step::json(503, &json!({})).header("retry-after", "300");
    world.provider.push(busy);
    let run_id = world.create(&process, false);
    let run = world.until(&process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(run.waiting_for, Some(WaitingFor::Retry));
    world.pass_an_hour(&process);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.parked_ms), (Status::Failed, 0));
    assert!(run.failure_message.unwrap().contains("turnTimeoutMs"));
}

#[test]
fn a_program_begins_at_least_one_child_and_at_most_a_thousand() {
    let world = World::scripted();
    let process = world.process(1, true);
    let many: Vec<Value> = (0..1001)
        .map(|_| json!({"script": {"steps": []}}))
        .collect();
    for children in [Vec::new(), many] {
        let run_id = world.start(&process, &json!({"steps": [{"children": children}]}));
        let run = world.finished(&process, run_id);
        let message = run.failure_message.unwrap();
        assert!(message.contains("1 to 1000"), "{message}");
    }
    assert_eq!(world.number("select count(*) from run_children"), 0);
}

#[test]
fn many_parked_runs_take_no_thread() {
    let world = World::scripted();
    let process = world.process(1, true);
    let parked: Vec<Uuid> = (0..50)
        .map(|_| world.start(&process, &json!({"steps": [{"wait": HOUR_MS}]})))
        .collect();
    world.eventually(|| world.number("select count(*) from runs where status = 'waiting'") == 50);
    for run_id in &parked {
        world.holds_nothing(*run_id);
    }
    world.provider.push(Step::text("at once"));
    let turn = world.create(&process, false);
    let run = world.until(&process, turn, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Completed);
    world.pass_an_hour(&process);
    for run_id in parked {
        let run = world.until(&process, run_id, |run| run.status.is_finished());
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    }
    assert!(Duration::from_millis(HOUR_MS.into()) > PATIENCE);
}
