//! Dry runs that are started with answers for their steps, or so that they ask no models.

use super::retries::retry;
use super::world::Flows;
use crate::runtime::world::{HttpServer, World};
use agent_runtime::dev::provider::Step;
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{Models, StartOptions, Status};
use serde_json::{Value, json};

fn options(fixtures: Value, models: Models) -> StartOptions {
    StartOptions {
        fixtures: fixtures.as_object().unwrap().clone(),
        models,
        ..StartOptions::default()
    }
}

/// A world whose agent has a version.
fn world() -> World {
    let world = World::new();
    world.batch("update agents set latest_version = '1.0.0'");
    world
}

fn agent() -> Value {
    json!({"call": "agent", "with": {"agent": "a", "message": "?"}})
}

fn tool() -> Value {
    json!({"call": "tool", "with": {"tool": "pay", "arguments": {"city": "Rome"}}})
}

/// What the steps of a run would have done that were not performed: the path and the type of each.
fn simulated(world: &World, run_id: uuid::Uuid) -> Vec<String> {
    let events = world.events(run_id).into_iter();
    let events = events.filter(|event| event.kind == "step.simulated");
    let of = |event: &Value| format!("{} {}", event["type"], event["path"]).replace('"', "");
    events.map(|event| of(&event.data)).collect()
}

/// A flow of each kind of step, whose output has what each answered.
fn of_each_kind(server: &HttpServer) -> Value {
    let get = json!({"call": "http", "with": {"method": "get", "endpoint": server.url("/x")}});
    let said = json!({"dryRun": {"output": {"text": "by the flow"}}});
    let mut by_the_flow = agent();
    by_the_flow["metadata"] = said.clone();
    let mut overruled = agent();
    overruled["metadata"] = said;
    let keep = |name: &str| json!({"as": format!("($context // {{}}) + {{{name}: .}}")});
    let tasks = [
        ("read", get),
        ("asked", agent()),
        ("flow", by_the_flow),
        ("start", overruled),
        (
            "person",
            json!({"call": "approval", "with": {"title": "Refund", "onReject": "continue"}}),
        ),
        (
            "below",
            json!({"run": {"workflow": {"namespace": "test", "name": "inner", "version": "1.0.0"}}}),
        ),
        (
            "whole",
            json!({"run": {"workflow": {"namespace": "test", "name": "inner", "version": "1.0.0"}}}),
        ),
        (
            "fork",
            json!({"fork": {"branches": [{"left": tool()}, {"right": agent()}]}}),
        ),
        (
            "each",
            json!({"for": {"in": "[1, 2]"}, "metadata": {"concurrency": 2}, "do": [{"ask": agent()}]}),
        ),
    ];
    let tasks = tasks.map(|(name, mut task)| {
        task["export"] = keep(name);
        json!({name: task})
    });
    let tell = json!([{"tell": {"set": "${ $context }"}}]);
    Value::Array(
        tasks
            .into_iter()
            .chain(tell.as_array().unwrap().clone())
            .collect(),
    )
}

#[test]
fn steps_answer_what_the_start_says_and_no_model_is_asked() {
    let world = world();
    let server = HttpServer::start(&[]);
    world.flow("inner", json!([{"ask": agent()}, {"pay": tool()}]));
    world.flow("dry", of_each_kind(&server));
    let process = world.process(3, true);
    let fixtures = json!({
        "/do/0/read": {"id": 7},
        "/do/3/start": {"text": "by the start"},
        "/do/4/person": {"decision": "rejected"},
        "/do/6/whole": "not begun",
        "/do/7/fork/fork/branches/0/left": {"paid": 5},
        "/do/8/each/do/0/ask": {"text": "each"},
        "test.inner/do/1/pay": {"paid": 6},
    });
    let options = options(fixtures, Models::Skip);
    let run_id = world.start_with(&process, "dry", json!({}), options);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        world.output(run_id),
        json!({
            "read": {"id": 7},
            "asked": null,
            "flow": {"text": "by the flow"},
            "start": {"text": "by the start"},
            "person": {"decision": "rejected"},
            "below": {"paid": 6},
            "whole": "not begun",
            "fork": [{"paid": 5}, null],
            "each": [{"text": "each"}, {"text": "each"}],
        })
    );
    assert_eq!(world.provider.count(), 0, "no model is called");
    assert_eq!(world.number("select count(*) from run_model_calls"), 0);
    assert_eq!((server.got().len(), world.tool.asked().len()), (0, 0));
    assert_eq!(
        simulated(&world, run_id),
        [
            "http /do/0/read",
            "child /do/1/asked",
            "child /do/2/flow",
            "child /do/3/start",
            "child /do/6/whole"
        ]
    );
    let turns = "select count(*) from runs where flow_id = 'agent.turn'";
    assert_eq!(world.number(turns), 0, "no turn is begun");
    let below = world.children(run_id)[0].run_id;
    assert_eq!(
        simulated(&world, below),
        ["child /do/0/ask", "tool /do/1/pay"]
    );
}

#[test]
fn a_person_who_is_not_asked_answers_with_the_defaults_of_the_form() {
    let world = world();
    let form = json!({"type": "object", "required": ["amount"], "properties": {
        "amount": {"type": "number", "default": 10}, "note": {"type": "string"}}});
    let ask = json!({"call": "approval", "with": {"title": "Refund", "form": form}});
    world.flow("dry", json!([{"ask": ask}]));
    let process = world.process(1, true);
    let options = options(json!({}), Models::Skip);
    let run_id = world.start_with(&process, "dry", json!({}), options);
    world.finished(&process, run_id);
    let output = world.output(run_id);
    assert_eq!(output["decision"], "approved");
    assert_eq!(output["answer"], json!({"amount": 10}));
    assert_eq!(world.number("select count(*) from approvals"), 0);
}

/// A dry run without options asks models, and what has a fixture is all that is not begun.
#[test]
fn models_are_asked_unless_the_start_says_otherwise() {
    let world = world();
    world.flow("dry", json!([{"one": agent()}, {"two": agent()}]));
    world.provider.push(Step::text("sunny"));
    let process = world.process(2, true);
    let fixtures = json!({"/do/0/one": {"text": "given"}});
    let options = options(fixtures, Models::Call);
    let run_id = world.start_with(&process, "dry", json!({}), options);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id)["text"], "sunny");
    assert_eq!(world.provider.count(), 1);
    assert_eq!(simulated(&world, run_id), ["child /do/0/one"]);
}

#[test]
fn a_retry_goes_by_what_the_failed_run_was_started_with() {
    let world = world();
    let picky = json!({"format": "json", "document": {"type": "object", "required": ["ok"]}});
    let mut two = agent();
    two["output"] = json!({"schema": picky});
    world.flow("dry", json!([{"one": agent()}, {"two": two}]));
    let process = world.process(2, true);
    let fixtures = json!({"/do/0/one": {"text": "given"}, "/do/1/two": {"text": "no"}});
    let options = options(fixtures, Models::Skip);
    let failed = world.start_with(&process, "dry", json!({}), options);
    assert_eq!(world.finished(&process, failed).status, Status::Failed);
    let again = retry(&world, &process, failed, false).unwrap();
    let run = world.finished(&process, again);
    assert_eq!(run.status, Status::Failed, "it answers the same");
    assert_eq!(run.failure_message, world.run(failed).failure_message);
    // The answer stands, and what follows does not take it: no step is done again.
    assert!(simulated(&world, again).is_empty());
    let options = "select count(distinct options::text) from run_payloads where run_id = any($1)";
    let ids = vec![failed, again];
    let kept: i64 = world.read(|session| Ok(session.query_one(options, &[&ids])?.get(0)));
    assert_eq!(kept, 1, "both have the same");
    assert_eq!(world.provider.count(), 0);
}
