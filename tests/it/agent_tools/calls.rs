//! What becomes of calls: their runs, what the model is told, and what readers are.

use super::{World, asks, asks_a_reviewer, calls, model};
use crate::harness::{App, ToolAnswer, ToolServer, eventually, kinds, made, tool_results};
use agent_runtime::dev::provider::Step;
use serde_json::{Value, json};

const ORDER: &str = "A-17";

fn order_schema() -> Value {
    json!({"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}})
}

#[test]
fn an_agent_calls_an_agent_that_calls_a_flow_that_asks_a_reviewer() {
    let world = World::start();
    let tasks = json!([
        {"ask": asks_a_reviewer()},
        {"tell": {"set": {"paid": "${ $workflow.input.order }"}}},
    ]);
    world.flow("refund", tasks, order_schema());
    let refund = world.flow_tool("refund", "refund");
    let clerks = model(vec![
        calls(&[("refund", json!({"order": ORDER}))]),
        Step::text("It is paid."),
    ]);
    let clerk = world.agent(&clerks, &[refund]);
    let desks = model(vec![asks("clerk", "Refund A-17."), Step::text("Done.")]);
    let desk = world.agent(&desks, &[world.agent_tool("clerk", clerk)]);
    let run = world.app.start_turn(desk, "I want my money back.");
    let turn = world.child(&run);
    let flow = world.child(&turn);
    let waiting = world.approval(&flow);
    assert_eq!(waiting["rootRunId"], json!(run));
    for above in [&run, &turn] {
        let above = world.app.run_once(above, "waiting");
        assert_eq!(above["waitingFor"], json!("children"), "{above}");
    }
    world.decide(&flow, &json!({"decision": "approve"}));
    let ended = world.completed(&run);
    assert_eq!(world.app.output(&run), json!({"text": "Done."}));
    assert_eq!(tool_results(&clerks), [r#"{"paid":"A-17"}"#]);
    assert_eq!(tool_results(&desks), ["It is paid."]);
    let asked = &clerks.requests()[0].body["messages"];
    let newest = asked.as_array().unwrap().last().unwrap();
    assert_eq!(newest["content"], json!("Refund A-17."), "{asked}");
    let (turn, flow) = (world.app.run(&turn), world.app.run(&flow));
    for (below, parent) in [(&turn, &ended), (&flow, &turn)] {
        assert_eq!(below["status"], json!("completed"));
        assert_eq!(below["origin"], json!("run"));
        assert_eq!(below["parentRunId"], parent["id"]);
        assert_eq!(below["createdBy"], ended["createdBy"]);
        assert_eq!(below["dryRun"], json!(false));
    }
    let path = format!("/v1/runs?order=asc&rootRunId={run}");
    let tree = world.app.get(&path).expect(200);
    let row = |run: &Value, children: i64| {
        let mut row = run.clone();
        row["childCount"] = json!(children);
        row
    };
    assert_eq!(tree["data"], json!([row(&turn, 1), row(&flow, 0)]));
    assert_eq!(turn["agent"]["id"], json!(clerk));
    assert_eq!(turn["agent"]["via"], json!("latest"));
    assert_eq!(flow["flowId"], json!("test.refund"));
    usage_is_added_once(&ended, &turn);
}

/// Two calls of each model.
#[track_caller]
fn usage_is_added_once(root: &Value, turn: &Value) {
    assert_eq!(root["usage"]["calls"], json!(4), "{root}");
    assert_eq!(turn["usage"]["calls"], json!(2), "{turn}");
    let cost = |run: &Value| run["usage"]["costUsd"].as_f64().unwrap();
    assert!(cost(turn) > 0.0, "{turn}");
    assert!(cost(root) > cost(turn), "{root} {turn}");
}

#[test]
fn the_stream_tells_of_the_run_between_the_begin_and_the_end_of_its_step() {
    let world = World::start();
    let clerk = world.clerk(vec![]);
    let desks = model(vec![asks("clerk", "Hello?")]);
    let desk = world.agent(&desks, &[world.agent_tool("clerk", clerk)]);
    let run = world.app.start_turn(desk, "Hello.");
    world.completed(&run);
    let events = world.app.events(&run);
    // A child that ends before its parent waits leaves out the wait.
    let shown: Vec<&str> = kinds(&events)
        .into_iter()
        .filter(|kind| *kind != "run.waiting")
        .collect();
    assert_eq!(
        shown,
        [
            "run.created",
            "run.started",
            "step.started",
            "step.completed",
            "step.started",
            "child.started",
            "child.completed",
            "step.completed",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let child = world.app.run(&world.child(&run));
    let of = |kind: &str, nth: usize| {
        let mut found = events.iter().filter(|event| event["kind"] == kind);
        found.nth(nth).unwrap()["data"].clone()
    };
    let began = of("step.started", 1);
    let call_id = &of("step.completed", 0)["toolCalls"][0]["id"];
    assert_eq!(
        began,
        json!({"step": 2, "attempt": 1, "type": "child", "name": "clerk", "path": "/1/calls/0", "callId": call_id})
    );
    let started = of("child.started", 0);
    assert_eq!(
        started,
        json!({"step": 2, "path": "/1/calls/0", "index": 0, "runId": child["id"], "flowId": "agent.turn"})
    );
    let ended = of("child.completed", 0);
    assert_eq!(
        ended,
        json!({"step": 2, "path": "/1/calls/0", "index": 0, "runId": child["id"], "status": "completed", "usage": child["usage"]})
    );
}

#[test]
fn a_run_that_fails_is_told_to_the_model_which_goes_on() {
    let world = World::start();
    let no = json!({"raise": {"error": {"type": "https://example.com/no", "status": 404, "title": "No such order"}}});
    world.flow("fails", json!([{"no": no}]), Value::Null);
    let refused = json!({"error": {"message": "no such model"}});
    let clerk = world.clerk(vec![Step::json(400, &refused)]);
    let tools = [
        world.flow_tool("find", "fails"),
        world.agent_tool("clerk", clerk),
    ];
    let desks = model(vec![calls(&[
        ("find", json!({})),
        ("clerk", json!({"message": "Hello?"})),
    ])]);
    let run = world.app.start_turn(world.agent(&desks, &tools), "Hello.");
    world.completed(&run);
    let tool_results = tool_results(&desks);
    let said = "The flow failed: The task /do/0/no failed: No such order (status 404).";
    assert_eq!(tool_results[0], said);
    assert!(
        tool_results[1].starts_with("The agent failed: "),
        "{tool_results:?}"
    );
    assert!(tool_results[1].contains("400"), "{tool_results:?}");
    let steps = ["model m", "child find", "child clerk", "model m"];
    assert_eq!(
        world.steps(&run),
        steps.map(|step| format!("{step} completed"))
    );
    let states: Vec<_> = world
        .children(&run)
        .iter()
        .map(|run| run["status"].clone())
        .collect();
    assert_eq!(states, ["failed", "failed"]);
}

#[test]
fn calls_of_one_answer_are_made_in_order_whatever_they_call() {
    let world = World::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("looked"));
    let clerk = world.clerk(vec![Step::text("asked")]);
    let tasks = json!([{"tell": {"set": "${ .order }"}}]);
    world.flow("pay", tasks, order_schema());
    let schema = json!({"type": "object"});
    let tools = [
        world.tool(
            "look",
            json!({"url": server.url(), "argumentsSchema": schema}),
        ),
        world.agent_tool("clerk", clerk),
        world.tool(
            "pay",
            json!({"flow": {"flowId": "test.pay"}, "approval": {}}),
        ),
        world.flow_tool("plain", "pay"),
    ];
    let desks = model(vec![calls(&[
        ("clerk", json!({"message": "Hello?"})),
        ("pay", json!({"order": ORDER})),
        ("look", json!({})),
        ("plain", json!({"order": 7})),
        ("pay", json!({"order": 7})),
        ("nothing", json!({})),
        ("plain", json!({"order": "B-1"})),
    ])]);
    let run = world.app.start_turn(world.agent(&desks, &tools), "Hello.");
    world.decide(&run, &json!({"decision": "approve"}));
    world.completed(&run);
    let tool_results = tool_results(&desks);
    assert_eq!(tool_results[..3], ["asked", r#""A-17""#, "looked"]);
    for unfit in &tool_results[3..5] {
        assert!(unfit.contains("order"), "{tool_results:?}");
    }
    assert_eq!(tool_results[5], r#"There is no tool "nothing"."#);
    assert_eq!(tool_results[6], r#""B-1""#);
    let steps = [
        "model m",
        "child clerk",
        "approval approval",
        "child pay",
        "tool look",
        "tool plain",
        "tool pay",
        "tool nothing",
        "child plain",
        "model m",
    ];
    assert_eq!(
        world.steps(&run),
        steps.map(|step| format!("{step} completed"))
    );
    assert_eq!(world.children(&run).len(), 3);
}

#[test]
fn a_reviewer_decides_whether_a_run_is_begun_and_with_what() {
    let world = World::start();
    world.flow(
        "pay",
        json!([{"tell": {"set": "${ .order }"}}]),
        order_schema(),
    );
    let asking = json!({"flow": {"flowId": "test.pay"}, "approval": {}});
    let desk = |desks| world.agent(desks, &[world.tool("pay", asking.clone())]);
    let desks = model(vec![
        calls(&[("pay", json!({"order": "A"}))]),
        calls(&[("pay", json!({"order": "B"}))]),
    ]);
    let run = world.app.start_turn(desk(&desks), "Hello.");
    let asked = world.approval(&run);
    let shown = world
        .app
        .get(&format!("/v1/approvals/{}", made::id(&asked)));
    let shown = shown.expect(200);
    assert_eq!(shown["subject"]["tool"], json!("pay"));
    assert_eq!(shown["subject"]["arguments"], json!({"order": "A"}));
    assert!(world.children(&run).is_empty(), "nothing runs before");
    world.decide(
        &run,
        &json!({"decision": "reject", "comment": "No receipt."}),
    );
    let unfit = json!({"decision": "approve", "arguments": {"order": 7}});
    let second = crate::harness::eventually("the second approval", || {
        Some(world.approval(&run)).filter(|found| found["id"] != asked["id"])
    });
    let decide = format!("/v1/approvals/{}/decide", made::id(&second));
    world
        .app
        .post(&decide, &unfit)
        .expect_error(400, "invalid-body");
    let edited = json!({"decision": "approve", "arguments": {"order": "C"}});
    world.app.post(&decide, &edited).expect(200);
    world.completed(&run);
    let tool_results = tool_results(&desks);
    assert!(tool_results[0].contains("No receipt."), "{tool_results:?}");
    assert!(
        tool_results[1].contains(r#"It was made with {"order":"C"}."#),
        "{tool_results:?}"
    );
    assert!(tool_results[1].ends_with(r#""C""#), "{tool_results:?}");
    let child = world.child(&run);
    let payload = world.app.get(&format!("/v1/runs/{child}/payload"));
    assert_eq!(payload.expect(200)["input"], json!({"order": "C"}));
}

/// The approvals of all calls of an answer are opened at once, and their time goes on while an earlier call waits for its run.
#[test]
fn an_approval_is_escalated_in_time_while_an_earlier_call_waits_for_its_run() {
    let world = World::start();
    world.flow(
        "sleeps",
        json!([{"sleep": {"wait": {"hours": 1}}}]),
        json!({}),
    );
    let sleeps = world.flow_tool("sleeps", "sleeps");
    let clerk = world.clerk(vec![]);
    let asks = json!({"agent": {"id": clerk}, "approval": {"title": "Pay",
        "escalation": [{"after": "PT0.3S", "requiredRole": "board"}]}});
    let pays = world.tool("pays", asks);
    let desks = model(vec![calls(&[
        ("sleeps", json!({})),
        ("pays", json!({"message": "Pay."})),
    ])]);
    let desk = world.agent(&desks, &[sleeps, pays]);
    let run = world.app.start_turn(desk, "Pay.");
    let path = format!("/v1/approvals?runId={run}");
    let roles = || {
        let found = world.app.get(&path).expect(200);
        made::column(&found, "requiredRole")
    };
    eventually("the role that is asked in its place", || {
        (roles() == ["board"]).then_some(())
    });
    // The run goes on waiting for the other one.
    eventually("the run to wait", || {
        let found = world.app.get(&format!("/v1/runs/{run}")).expect(200);
        (found["waitingFor"] == json!("children")).then_some(())
    });
    world.app.cancel(&run);
}

#[test]
fn an_answer_of_an_output_schema_is_the_tools_answer_and_a_long_one_is_an_error() {
    let world = World::on(App::start_with(|options| {
        options.runs.tool_answer_bytes = 100;
    }));
    let maker = world.app.maker();
    let clerks = model(vec![Step::text(r#" {"city": "Rome"} "#)]);
    let clerk = maker.agent_of(world.project, &clerks.base_url(), |version| {
        version.output_schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}});
    });
    let text = "a".repeat(101);
    let talker = world.clerk(vec![Step::text(text.as_str())]);
    let tools = [
        world.agent_tool("clerk", clerk),
        world.agent_tool("talker", talker),
    ];
    let desks = model(vec![calls(&[
        ("clerk", json!({"message": "Where?"})),
        ("talker", json!({"message": "And?"})),
    ])]);
    let run = world.app.start_turn(world.agent(&desks, &tools), "Hello.");
    world.completed(&run);
    let tool_results = tool_results(&desks);
    assert_eq!(tool_results[0], r#"{"city":"Rome"}"#);
    assert_eq!(
        tool_results[1],
        "The agent answered with 101 bytes, and at most 100 are taken."
    );
}

#[test]
fn a_cancel_reaches_the_runs_below_and_a_run_below_that_is_cancelled_is_told() {
    let world = World::start();
    world.flow("asks", json!([{"ask": asks_a_reviewer()}]), Value::Null);
    let clerks = model(vec![calls(&[("ask", json!({}))])]);
    let clerk = world.agent(&clerks, &[world.flow_tool("ask", "asks")]);
    let desks = model(vec![asks("clerk", "Hello?")]);
    let desk = world.agent(&desks, &[world.agent_tool("clerk", clerk)]);
    let run = world.app.start_turn(desk, "Hello.");
    let turn = world.child(&run);
    let flow = world.child(&turn);
    world.approval(&flow);
    world.app.cancel(&run);
    for one in [&run, &turn, &flow] {
        assert_eq!(world.app.finished(one)["status"], json!("cancelled"));
    }
    // A run below is cancelled alone: its caller goes on.
    clerks.push(calls(&[("ask", json!({}))]));
    let run = world.app.start_turn(clerk, "Hello.");
    let flow = world.child(&run);
    world.approval(&flow);
    world.app.cancel(&flow);
    world.completed(&run);
    assert_eq!(tool_results(&clerks), ["The flow was cancelled."]);
}
