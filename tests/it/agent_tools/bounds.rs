//! Runs that call each other end: by their depth, and by versions and archives that say what runs.

use super::{World, asks, asks_a_reviewer, calls, definition, model};
use crate::harness::{NewVersion, eventually, tool_results};
use agent_runtime::dev::provider::{Provider, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// Levels of runs that call each other.
const LEVELS: usize = 8;

/// An agent that calls itself by a tool with these fields, until its model has asked for it so often; and the model.
fn calls_itself(world: &World, mut fields: Value) -> (Provider, Uuid) {
    let answers = (0..LEVELS).map(|_| asks("again", "Go on."));
    let models = model(answers.collect());
    let agent = world.agent(&models, &[]);
    fields["agent"] = json!({"id": agent});
    let again = world.tool("again", fields);
    let maker = world.app.maker();
    let provider = maker.provider(&models.base_url(), None);
    let version = NewVersion {
        tools: vec![again],
        ..NewVersion::new("2.0.0")
    };
    maker.version(agent, provider, &version);
    (models, agent)
}

#[test]
fn agents_that_call_each_other_in_a_circle_end_and_the_last_one_is_told() {
    let world = World::start();
    let (models, agent) = calls_itself(&world, json!({}));
    let run = world.app.start_turn(agent, "Begin.");
    let ended = world.completed(&run);
    // At each level one call that asks, and one that answers.
    assert_eq!(ended["usage"]["calls"], json!(2 * LEVELS));
    let below = world.app.get(&format!("/v1/runs?limit=50&rootRunId={run}"));
    let below = below.expect(200)["data"].as_array().unwrap().len();
    assert_eq!(below, LEVELS - 1, "the root is not below itself");
    // The last level is told first.
    let requests = models.requests();
    let deepest = &requests[LEVELS].body["messages"];
    let said = deepest.as_array().unwrap().last().unwrap()["content"].clone();
    let expected = "The tool again was not called: runs call each other at most 8 levels deep, and this one is at level 8. Go on without it.";
    assert_eq!(said, json!(expected));
    assert_eq!(tool_results(&models), ["Well."]);
}

#[test]
fn a_call_that_is_too_deep_asks_no_reviewer() {
    let world = World::start();
    let (_models, agent) = calls_itself(&world, json!({"approval": {}}));
    let run = world.app.start_turn(agent, "Begin.");
    let mut level = run.clone();
    for _ in 1..LEVELS {
        world.decide(&level, &json!({"decision": "approve"}));
        level = world.child(&level);
    }
    world.completed(&run);
    let steps = [
        "model m completed",
        "tool again completed",
        "model m completed",
    ];
    assert_eq!(world.steps(&level), steps);
}

#[test]
fn flows_that_call_each_other_in_a_circle_fail_with_the_reason() {
    let world = World::start();
    let flow = world.flow("loops", json!([{"one": {"set": {"n": 1}}}]), Value::Null);
    world.flow_tool("again", "loops");
    let again = json!([{"again": {"call": "tool", "with": {"tool": "again"}}}]);
    let next = json!({"definition": definition("loops", "1.1.0", again, Value::Null)});
    world
        .app
        .post(&format!("/v1/flows/{flow}/versions"), &next)
        .expect(201);
    let run = world.start_flow("loops", json!({}));
    let ended = world.app.finished(&run);
    assert_eq!(ended["status"], json!("failed"));
    let said = ended["failureMessage"].as_str().unwrap();
    assert!(said.contains("at most 8 levels deep"), "{said}");
    let below = world.app.get(&format!("/v1/runs?limit=50&rootRunId={run}"));
    let below = below.expect(200)["data"].as_array().unwrap().len();
    assert_eq!(below, LEVELS - 1);
}

#[test]
fn a_version_that_is_named_runs_and_else_the_live_one_or_the_latest_as_of_the_call() {
    let world = World::start();
    let clerks = model(vec![]);
    let clerk = world.agent(&clerks, &[]);
    let flow = world.flow("tells", json!([{"tell": {"set": {"n": 1}}}]), Value::Null);
    let asks = json!([{"ask": asks_a_reviewer()}]);
    world.flow("asks", asks, Value::Null);
    let of_flow = json!({"flowId": "test.tells", "version": "1.0.0"});
    let of_agent = json!({"id": clerk, "version": "1.0.0"});
    let tools = [
        world.agent_tool("clerk", clerk),
        world.tool("old_clerk", json!({"agent": of_agent})),
        world.flow_tool("tells", "tells"),
        world.tool("old_tells", json!({"flow": of_flow})),
        world.flow_tool("ask", "asks"),
    ];
    let each = [
        ("clerk", json!({"message": "?"})),
        ("tells", json!({})),
        ("ask", json!({})),
        ("clerk", json!({"message": "?"})),
        ("tells", json!({})),
        ("old_clerk", json!({"message": "?"})),
        ("old_tells", json!({})),
    ];
    let desks = model(vec![calls(&each)]);
    let run = world.app.start_turn(world.agent(&desks, &tools), "Hello.");
    let third = eventually("the third run", || {
        world
            .children(&run)
            .get(2)
            .map(|run| run["id"].as_str().unwrap().to_owned())
    });
    world.approval(&third);
    // While the caller waits there, others are made, of which one is promoted.
    let maker = world.app.maker();
    let provider = maker.provider(&clerks.base_url(), None);
    for version in ["1.1.0", "2.0.0"] {
        maker.version(clerk, provider, &NewVersion::new(version));
    }
    maker.promote(clerk, "1.1.0");
    let next = definition(
        "tells",
        "3.0.0",
        json!([{"tell": {"set": {"n": 3}}}]),
        Value::Null,
    );
    let next = json!({"definition": next});
    let path = format!("/v1/flows/{flow}/versions");
    world.app.post(&path, &next).expect(201);
    world.decide(&third, &json!({"decision": "approve"}));
    world.completed(&run);
    let ran = world.children(&run);
    let agents: Vec<_> = [0, 3, 5].map(|at: usize| ran[at]["agent"].clone()).into();
    let of = |version: &str, via: &str| json!({"id": clerk, "version": version, "conversationId": null, "via": via});
    assert_eq!(
        agents,
        [
            of("1.0.0", "latest"),
            of("1.1.0", "live"),
            of("1.0.0", "explicit")
        ]
    );
    let flows = [1, 4, 6].map(|at: usize| ran[at]["flowVersion"].as_str().unwrap());
    assert_eq!(flows, ["1.0.0", "3.0.0", "1.0.0"]);
}

#[test]
fn what_is_archived_or_has_no_version_is_not_called_and_the_model_is_told() {
    let world = World::start();
    let clerk = world.clerk(vec![]);
    let bare = world.app.maker().bare_agent(world.project);
    let flow = world.flow("tells", json!([{"tell": {"set": {"n": 1}}}]), Value::Null);
    let tools = [
        world.agent_tool("clerk", clerk),
        world.agent_tool("bare", bare),
        world.flow_tool("tells", "tells"),
    ];
    let each = ["clerk", "bare", "tells"].map(|name| (name, json!({"message": "?"})));
    let desks = model(vec![calls(&each), Step::text("Well."), calls(&each[..1])]);
    let desk = world.agent(&desks, &tools);
    for path in [format!("/v1/agents/{clerk}"), format!("/v1/flows/{flow}")] {
        let archive = format!("{path}/archive");
        world.app.send("POST", &archive, None, &[]).expect(200);
    }
    let run = world.app.start_turn(desk, "Hello.");
    world.completed(&run);
    let said = |name: &str, what: &str| {
        format!(
            "The tool {name} cannot be called: its {what} is archived or has no version. Go on without it."
        )
    };
    let expected = [
        said("clerk", "agent"),
        said("bare", "agent"),
        said("tells", "flow"),
    ];
    assert_eq!(tool_results(&desks), expected);
    assert!(world.children(&run).is_empty());
    // Back again, it is called again.
    let back = format!("/v1/agents/{clerk}/unarchive");
    world.app.send("POST", &back, None, &[]).expect(200);
    let run = world.app.start_turn(desk, "Hello.");
    world.completed(&run);
    assert_eq!(tool_results(&desks), ["Well."]);
}
