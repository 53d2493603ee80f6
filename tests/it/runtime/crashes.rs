//! Runs whose process dies, whose lease runs out or whose database is away.

use super::world::{World, calls_weather};
use crate::harness::PATIENCE;
use agent_runtime::dev::provider::{Reply, Step};
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{Run, Status};
use agent_runtime::store::steps::ModelCallOutcome;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

#[test]
fn a_model_call_lost_in_a_crash_is_made_again_and_counted() {
    let world = World::new();
    let dying = world.process(1, false);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.provider.count() == 1);
    let other = world.process(0, false);
    other.shard.follow(run_id);
    world.expire_leases();
    let next = world.process(1, false);
    world.provider.push(Step::text("again"));
    let run = world.finished(&next, run_id);
    assert_eq!(run.status, Status::Completed);
    assert_eq!(run.usage.calls, 2);
    assert_eq!(world.number("select count(*) from run_model_calls where outcome = 'lost' and prompt_tokens is null and cost_usd is null"), 1);
    let kinds = world.kinds(run_id);
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.started",
            "step.started",
            "step.restarted",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    assert_eq!(world.events(run_id)[3].data["lostAttempt"], 1);
    drop(dying);
    assert_eq!(
        world.kinds(run_id),
        kinds,
        "the dead process wrote something"
    );
}

#[test]
fn a_lost_model_call_counts_once_though_its_transaction_is_made_again() {
    let world = World::new();
    let dying = world.process(1, false);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.provider.count() == 1);
    world.expire_leases();
    // Its commit fails once, after all its statements.
    let fails = "create sequence commits;
         create function fails() returns trigger language plpgsql as $$ begin
           if nextval('commits') = 1 then raise exception 'not now' using errcode = '40001'; end if;
           return null; end $$;
         do $$ declare part regclass; begin
           for part in select inhrelid::regclass from pg_inherits where inhparent = 'run_model_calls'::regclass loop
             execute format('create constraint trigger fails after insert on %s deferrable initially deferred
               for each row when (new.outcome = ''lost'') execute function fails()', part);
           end loop; end $$";
    world.database.client().batch_execute(fails).unwrap();
    let next = world.process(1, false);
    world.provider.push(Step::text("again"));
    let run = world.finished(&next, run_id);
    assert_eq!(run.status, Status::Completed);
    assert_eq!(world.number("select last_value from commits"), 2);
    let lost = ModelCallOutcome::ALL
        .iter()
        .position(|outcome| *outcome == ModelCallOutcome::Lost);
    let lost = lost.unwrap();
    // Either may have taken the run up.
    let models = [&dying, &next].map(|process| process.runtime.stats().models);
    let counted: u64 = models.iter().flatten().map(|of| of.outcomes[lost]).sum();
    assert_eq!(counted, 1);
}

fn crash_in_a_tool(name: &str) -> (World, Run) {
    let world = World::new();
    let dying = world.process(1, false);
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(Step::new(Reply::ToolCalls(vec![(
        name.to_owned(),
        json!({"city": "Rome"}),
    )])));
    world.provider.push(Step::text("done"));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.tool.asked().len() == 1);
    world.expire_leases();
    let next = world.process(1, false);
    if name == "weather" {
        world.eventually(|| world.tool.asked().len() == 2);
    } else {
        world.until(&next, run_id, |run| run.status.is_finished());
    }
    drop(closed);
    let run = world.finished(&next, run_id);
    drop((dying, next));
    (world, run)
}

#[test]
fn an_idempotent_tool_is_called_again_with_the_same_key() {
    let (world, run) = crash_in_a_tool("weather");
    assert_eq!(run.status, Status::Completed);
    let asked = world.tool.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], asked[1]);
    assert_eq!(
        run.usage.calls, 2,
        "finished model steps were not made again"
    );
}

#[test]
fn a_tool_that_is_not_idempotent_fails_the_run_and_says_so() {
    let (world, run) = crash_in_a_tool("pay");
    assert_eq!(run.status, Status::Failed);
    assert!(
        run.failure_message
            .unwrap()
            .contains("not declared idempotent")
    );
    assert_eq!(world.tool.asked().len(), 1);
    assert_eq!(world.kinds(run.run_id).last().unwrap(), "run.failed");
}

#[test]
fn a_cancelled_run_whose_holder_died_is_ended_by_the_next() {
    let world = World::new();
    let dying = world.process(1, false);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.provider.count() == 1);
    let other = world.process(0, false);
    other
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    world.expire_leases();
    let next = world.process(1, false);
    let run = world.finished(&next, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Cancelled, 1));
    assert_eq!(world.provider.count(), 1);
}

/// A run whose holder was told to stop while a tool was called.
fn stopped_in_a_tool() -> (World, Uuid) {
    let world = World::new();
    let mut first = world.process(1, true);
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(calls_weather());
    world.provider.push(Step::text("done"));
    let run_id = world.create(&first, true);
    world.eventually(|| world.tool.asked().len() == 1);
    let runner = first.runner.take().unwrap();
    let handle = runner.handle();
    let stopping = std::thread::Builder::new()
        .name("stop".to_owned())
        .spawn(move || runner.stop(PATIENCE))
        .unwrap();
    world.eventually(|| handle.is_stopping());
    drop(closed);
    stopping.join().unwrap();
    assert_eq!(world.run(run_id).status, Status::Running);
    (world, run_id)
}

#[test]
fn a_stop_between_steps_hands_the_run_over() {
    let (world, run_id) = stopped_in_a_tool();
    let second = world.process(1, true);
    let run = world.finished(&second, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Completed, 2));
    assert_eq!(world.tool.asked().len(), 1);
}

#[test]
fn a_database_that_was_away_costs_no_finished_step() {
    let world = World::new();
    let process = world.process(1, true);
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(Step::new(Reply::ToolCalls(vec![(
        "pay".to_owned(),
        json!({"city": "Rome"}),
    )])));
    world.provider.push(Step::text("paid"));
    let run_id = world.create(&process, true);
    world.eventually(|| world.tool.asked().len() == 1);
    world
        .database
        .client()
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
            &[],
        )
        .unwrap();
    drop(closed);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Completed, 2));
    assert_eq!(world.tool.asked().len(), 1);
    world.kinds(run_id);
}

/// Every event of a run in its place: nothing after the last, no step done twice, none begun again
/// once it is done.
fn judge(world: &World, run_id: Uuid) {
    let run = world.run(run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let events = world.events(run_id);
    let kinds = world.kinds(run_id);
    let last = |kind: &String| {
        matches!(
            kind.as_str(),
            "run.completed" | "run.failed" | "run.cancelled"
        )
    };
    assert_eq!(
        kinds.iter().filter(|kind| last(kind)).count(),
        1,
        "{kinds:?}"
    );
    assert!(kinds.last().is_some_and(last), "{kinds:?}");
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "run.started").count(),
        1
    );
    let mut done = std::collections::HashSet::new();
    for event in &events {
        let step = event.data["step"].as_i64();
        if event.kind.starts_with("step.") {
            assert!(
                !done.contains(&step),
                "{} of a finished step: {events:?}",
                event.kind
            );
        }
        if event.kind == "step.completed" {
            done.insert(step);
        }
    }
    assert_eq!(run.last_seq, i64::try_from(events.len()).unwrap());
    let (calls, completed, finished): (i64, i64, i64) = world.read(|session| {
        let row = session.query_one(
            "select (select count(*) from run_model_calls where run_id = $1),
               (select count(*) from run_model_calls where run_id = $1 and outcome = 'completed'),
               (select count(*) from run_steps where run_id = $1 and kind = 'model' and status = 'completed')",
            &[&run_id],
        )?;
        Ok((row.get(0), row.get(1), row.get(2)))
    });
    assert_eq!((run.usage.calls, completed), (calls, finished));
}

#[test]
fn leases_that_run_out_at_any_moment_lose_and_repeat_nothing() {
    let mut world = World::new();
    // On a busy machine no step may end between many rounds in a row: that bound has tests of its own.
    world.deaths_most = i32::MAX;
    world.batch("update agent_versions set limits = '{\"maxSteps\": 200}'");
    let processes = [world.process(4, true), world.process(4, true)];
    let pace = Duration::from_millis(3);
    for _ in 0..40 {
        world
            .provider
            .push(calls_weather().before(pace).between(pace));
        world
            .provider
            .push(Step::text("a b c d e").before(pace).between(pace));
    }
    let runs: Vec<Uuid> = (0..30)
        .map(|_| world.create(&processes[0], false))
        .collect();
    for round in 0..60_u64 {
        // A step that is lost fifty times ends its run.
        let attempts = world.number("select coalesce(max(attempt), 0)::int8 from run_steps");
        if attempts > 40 {
            break;
        }
        // Moments that no other clock of the test shares.
        crate::harness::let_time_pass(Duration::from_millis(round * 7 % 23));
        world.expire_leases();
        for process in &processes {
            process.runtime.wake();
        }
    }
    for run_id in &runs {
        world.until(&processes[0], *run_id, |run| run.status.is_finished());
        judge(&world, *run_id);
    }
    let lost = world.number("select count(*) from run_model_calls where outcome = 'lost'");
    assert!(lost > 0, "no lease ran out in time");
    world.eventually(|| world.number("select count(*) from job_jobs") == 0);
}
