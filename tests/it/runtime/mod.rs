//! The runtime without a server around it: turns, cancels, waits. Crashes are in `crashes`,
//! other faults in `faults`.

mod calls_at_once;
mod crashes;
mod faults;
pub(crate) mod world;

use crate::harness::PATIENCE;
use agent_runtime::dev::provider::{Fault, Reply, Step};
use agent_runtime::error::Code;
use agent_runtime::runtime::progress::feed::Hint;
use agent_runtime::store::runs::{self, RequestKey, Run, Status};
use agent_runtime::store::{Sql, steps};
use serde_json::json;
use std::time::{Duration, Instant};
use world::{Root, World, calls_weather, started_by};

#[test]
fn a_turn_with_a_tool() {
    let world = World::new();
    let process = world.process(2, true);
    world.provider.push(calls_weather());
    world.provider.push(Step::text("It is sunny."));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(
        (run.status, &run.failure_message),
        (Status::Completed, &None)
    );
    assert_eq!(
        world.kinds(run_id),
        [
            "run.created",
            "run.started",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let asked = world.tool.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].0.as_deref(), Some(format!("{run_id}-2").as_str()));
    assert_eq!(asked[0].1["arguments"], json!({"city": "Rome"}));
    let mut session = world.store.session().unwrap();
    let payload = runs::payload(&mut session, &world.root(run_id)).unwrap();
    assert_eq!(payload.output, Some(json!({"text": "It is sunny."})));
    let journal = steps::of_run(&mut session, &world.root(run_id)).unwrap();
    assert_eq!(journal.len(), 3);
    // The first step is written as the run is taken up, and by no other way than the others.
    let first = &journal[0];
    assert_eq!(
        (first.step, first.attempt, &first.request),
        (1, 1, &json!({}))
    );
    assert_eq!(first.name, journal[2].name);
    let begun = |seq: usize, step: i32| {
        let events = world.events(run_id);
        let data = json!({"step": step, "attempt": 1, "type": "model", "name": first.name});
        assert_eq!(events[seq - 1].data, data);
    };
    begun(3, 1);
    begun(7, 3);
    let said = world.number("select count(*) from conversation_messages where role = 'assistant' and content = 'It is sunny.'");
    assert_eq!(said, 1);
    assert_eq!(run.usage.calls, 2);
    let summed = session
        .query_one(
            "select sum(prompt_tokens)::bigint, sum(cost_usd)::float8, sum(prompt_tokens + 2 * completion_tokens)::float8 / 1e6 from run_model_calls",
            &[],
        )
        .unwrap();
    assert_eq!(run.usage.tokens.prompt, summed.get::<_, i64>(0));
    assert!(run.usage.cost_usd > 0.0);
    assert!((run.usage.cost_usd - summed.get::<_, f64>(1)).abs() < 1e-12);
    assert!((run.usage.cost_usd - summed.get::<_, f64>(2)).abs() < 1e-12);
    let second = &world.provider.requests()[1].body["messages"];
    let roles: Vec<_> = second
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(second[3]["content"], "sunny");
}

#[test]
fn text_reaches_followers_in_order_and_the_table() {
    let world = World::new();
    let puppet = world.puppet();
    let process = world.process(1, true);
    let words = "one two three four five six seven eight nine ten eleven twelve";
    let run_id = world.create(&process, false);
    let mut call = puppet.call();
    for word in words.split_inclusive(' ') {
        call.say(word);
    }
    world.eventually(|| world.number("select count(*) from run_deltas") > 0);
    let mut text = String::new();
    while text.len() < words.len() {
        match process.shard.hints().recv_timeout(PATIENCE).unwrap() {
            Hint::Delta(delta) => {
                assert_eq!(usize::try_from(delta.offset).unwrap(), text.chars().count());
                assert_eq!((delta.run_id, delta.step, delta.attempt), (run_id, 1, 1));
                text.push_str(&delta.text);
            }
            Hint::Changed(moved) | Hint::Events(moved, _) => assert_eq!(moved, run_id),
        }
    }
    assert_eq!(text, words);
    call.finish();
    assert_eq!(world.finished(&process, run_id).status, Status::Completed);
}

#[test]
fn cancel_cuts_a_stream_at_once() {
    let world = World::new();
    // Nobody looks for cancels now and then: the process that is told of one ends the call.
    let process = world.process(1, false);
    world
        .provider
        .push(Step::text("one two three").fault(2, Fault::Hang));
    let run_id = world.create(&process, true);
    loop {
        if let Hint::Delta(_) = process.shard.hints().recv_timeout(PATIENCE).unwrap() {
            break;
        }
    }
    let asked = process
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    assert_eq!(asked.status, Status::Running);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Cancelled, 1));
    assert_eq!(
        world.kinds(run_id),
        [
            "run.created",
            "run.started",
            "step.started",
            "run.cancelRequested",
            "run.cancelled"
        ]
    );
    let again = process
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    assert_eq!((again.status, again.last_seq), (Status::Cancelled, 5));
}

#[test]
fn cancel_on_another_replica_is_noticed() {
    let world = World::new();
    let (holder, other) = (world.process(1, true), world.process(0, false));
    world
        .provider
        .push(Step::text("one two three").fault(1, Fault::Hang));
    let run_id = world.create(&holder, true);
    world.eventually(|| world.provider.count() == 1);
    other
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    assert_eq!(world.finished(&holder, run_id).status, Status::Cancelled);
}

#[test]
fn cancel_wins_over_a_late_success() {
    let world = World::new();
    // No keepers: nothing tells the holder, and the answer comes in full.
    let (holder, other) = (world.process(1, false), world.process(0, false));
    let puppet = world.puppet();
    let run_id = world.create(&holder, true);
    let mut call = puppet.call();
    other
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    call.say("too late");
    call.finish();
    let run = world.finished(&holder, run_id);
    assert_eq!(run.status, Status::Cancelled);
    assert!(run.usage.tokens.completion > 0, "what it used is counted");
    assert_eq!(
        world.number("select count(*) from conversation_messages where role = 'assistant'"),
        0
    );
    assert_eq!(world.kinds(run_id).last().unwrap(), "run.cancelled");
}

#[test]
fn cancel_between_steps_stops_the_next() {
    let world = World::new();
    let (holder, other) = (world.process(1, false), world.process(0, false));
    world
        .provider
        .push(calls_weather().before(Duration::from_secs(8)));
    let run_id = world.create(&holder, true);
    world.eventually(|| world.provider.count() == 1);
    other
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    assert_eq!(world.finished(&holder, run_id).status, Status::Cancelled);
    assert!(world.tool.asked().is_empty());
}

#[test]
fn a_run_that_waits_in_the_queue_is_cancelled_at_once() {
    let world = World::new();
    let process = world.process(0, false);
    let run_id = world.create(&process, true);
    let run = process
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    assert_eq!(run.status, Status::Cancelled);
    assert_eq!(world.kinds(run_id), ["run.created", "run.cancelled"]);
    world.finished(&process, run_id);
}

#[test]
fn a_busy_provider_is_asked_again_after_a_wait() {
    let world = World::new();
    let process = world.process(1, true);
    world.provider.push(
        Step::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "6"),
    );
    world.provider.push(Step::text("half").fault(2, Fault::Cut));
    world.provider.push(Step::text("whole"));
    let began = Instant::now();
    let run_id = world.create(&process, true);
    let waiting = world.until(&process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(waiting.usage.calls, 1);
    let run = world.finished(&process, run_id);
    assert!(began.elapsed() >= Duration::from_secs(6));
    assert_eq!((run.status, run.usage.calls), (Status::Completed, 3));
    let kinds = world.kinds(run_id);
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.started",
            "step.started",
            "step.failed",
            "run.waiting",
            "step.started",
            "step.failed",
            "run.waiting",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let waited = &world.events(run_id)[4].data;
    assert!(
        waited["reason"].as_str().unwrap().contains("slow down"),
        "{waited}"
    );
}

#[test]
fn a_waiting_run_is_cancelled_at_once() {
    let world = World::new();
    let process = world.process(1, true);
    world
        .provider
        .push(Step::json(503, &json!({})).header("retry-after", "60"));
    let run_id = world.create(&process, true);
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    let run = process
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    assert_eq!(run.status, Status::Cancelled);
    world.finished(&process, run_id);
}

#[test]
fn a_provider_that_stays_down_fails_the_run() {
    let world = World::new();
    let process = world.process(1, true);
    for _ in 0..4 {
        world
            .provider
            .push(Step::json(500, &json!({"error": {"message": "on fire"}})));
    }
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Failed, 4));
    let message = run.failure_message.unwrap();
    assert!(
        message.contains("on fire") && message.contains("4 times"),
        "{message}"
    );
}

#[test]
fn a_lasting_fault_fails_the_run_at_once() {
    let world = World::new();
    let process = world.process(1, true);
    world
        .provider
        .push(Step::plain(200, "text/html", "<html>no</html>"));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Failed, 1));
    assert!(run.failure_message.unwrap().contains("web page"));
}

#[test]
fn mistakes_of_the_model_are_told_to_it() {
    let world = World::new();
    let process = world.process(1, true);
    world.provider.push(Step::new(Reply::ToolCalls(vec![
        ("weather".to_owned(), json!({"town": "Rome"})),
        ("nothing".to_owned(), json!({})),
        ("weather".to_owned(), json!({"city": "Rome"})),
    ])));
    world.provider.push(Step::text("well"));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed);
    let answers: Vec<String> = world.provider.requests()[1].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(answers[0].contains("do not fit"), "{answers:?}");
    assert!(answers[1].contains("no tool"), "{answers:?}");
    assert_eq!(answers[2], "sunny");
    assert_eq!(world.tool.asked().len(), 1);
}

#[test]
fn a_turn_ends_at_its_time_limit() {
    let world = World::new();
    world.batch("update agent_versions set limits = '{\"turnTimeoutMs\": 1000}'");
    let process = world.process(1, true);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed);
    assert!(run.failure_message.unwrap().contains("turnTimeoutMs"));
}

#[test]
fn a_conversation_has_one_turn_at_a_time_and_a_key_makes_one_run() {
    let world = World::new();
    // What is forgotten is too old by the database's clock as well.
    world.clock.set_back(Duration::from_secs(26 * 3600));
    let process = world.process(0, false);
    let root = Root(world.tenant_id, world.agent_id);
    let key = |digest: u8| RequestKey {
        principal: "user".to_owned(),
        route: "POST /v1/runs".to_owned(),
        key: "k".to_owned(),
        body_digest: [digest; 32],
    };
    let create = |request: Option<&RequestKey>| {
        let run = world.new_run(true);
        world.store.transact(|tx| {
            if let Some(request) = request
                && let Some(earlier) =
                    runs::remember_key(tx, world.tenant_id, request, run.run_id, run.created_at)?
            {
                return Ok(earlier);
            }
            let created = process.runtime.create::<Run>(tx, &root, &run, started_by());
            created.map(|run| run.run_id)
        })
    };
    let first = create(Some(&key(1))).unwrap();
    assert_eq!(create(Some(&key(1))).unwrap(), first);
    assert_eq!(
        create(Some(&key(2))).unwrap_err().code(),
        Code::IdempotencyMismatch
    );
    assert_eq!(create(None).unwrap_err().code(), Code::Conflict);
    assert_eq!(world.number("select count(*) from runs"), 1);
    assert_eq!(world.number("select count(*) from job_jobs"), 1);
    world.clock.advance(Duration::from_secs(25 * 3600));
    process.runtime.prepare().unwrap();
    assert_eq!(world.number("select count(*) from idempotency_keys"), 0);
}
