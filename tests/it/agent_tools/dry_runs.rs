//! Dry runs: what is called runs dry as well.

use super::{World, asks, asks_a_reviewer, calls, model};
use crate::harness::page::Page;
use crate::harness::{ToolAnswer, ToolServer, made, tool_results};
use agent_runtime::dev::provider::Step;
use serde_json::{Value, json};

/// What a model is told of a call that was not made.
const SIMULATED: &str =
    "This is a dry run. The call was simulated: the tool was not called, and nothing was changed.";

/// An HTTP tool with one argument, which has to be a number.
fn http(server: &ToolServer, more: &Value) -> Value {
    let schema = json!({"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}});
    let mut tool = json!({"url": server.url(), "argumentsSchema": schema});
    let fields = tool.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    tool
}

/// Starts a dry run and waits until it has completed.
#[track_caller]
fn dry(world: &World, mut body: Value) -> String {
    body["dryRun"] = json!(true);
    let run = made::id(&world.app.post("/v1/runs", &body).expect(202)["run"]);
    world.completed(&run);
    run
}

#[test]
fn a_dry_turn_calls_the_tools_that_say_so_and_its_model_is_told_of_the_others() {
    let world = World::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("done"));
    let pay = world.tool("pay", http(&server, &json!({})));
    let quote = world.tool("quote", http(&server, &json!({"dryRun": "call"})));
    let five = json!({"amount": 5});
    let dry_calls = calls(&[
        ("pay", five.clone()),
        ("quote", five.clone()),
        ("pay", json!({"amount": "five"})),
        ("nothing", json!({})),
    ]);
    let real_call = calls(&[("pay", five.clone())]);
    let clerks = model(vec![dry_calls, Step::text("Well."), real_call]);
    let clerk = world.agent(&clerks, &[pay, quote]);
    let run = dry(&world, json!({"agentId": clerk, "message": "Pay."}));
    let said = tool_results(&clerks);
    assert_eq!(said[..2], [SIMULATED, "done"]);
    assert!(said[2].contains("do not fit"), "{said:?}");
    assert!(said[3].contains("There is no tool"), "{said:?}");
    assert!(Page::read("tools.md").text.contains(SIMULATED));
    let asked = server.asked();
    assert_eq!(asked.len(), 1, "one says that it is called");
    assert_eq!(
        (&asked[0].body["tool"], &asked[0].body["dryRun"]),
        (&json!("quote"), &json!(true))
    );
    assert_eq!(simulated(&world, &run), ["tool pay"]);
    let events = world.app.events(&run);
    let of = |kind: &str| {
        let mut found = events.iter().filter(|event| event["kind"] == kind);
        let of_call = found.find(|event| event["data"]["type"] == "tool");
        &of_call.unwrap()["data"]
    };
    let (shown, done) = (of("step.simulated"), of("step.completed"));
    assert_eq!(shown["request"], json!({"arguments": five}));
    assert_eq!(
        (&shown["step"], &shown["callId"]),
        (&done["step"], &done["callId"])
    );
    assert_eq!(done["simulated"], json!(true));
    assert_eq!(done["output"], Value::Null, "it answered nothing");
    let run = world.app.start_turn(clerk, "Pay.");
    world.completed(&run);
    assert_eq!(simulated(&world, &run), [""; 0]);
    assert_eq!(server.asked()[1].body["dryRun"], json!(false));
}

#[test]
fn an_approval_is_taken_as_given_and_opens_nothing() {
    let world = World::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("done"));
    let pay = world.tool("pay", http(&server, &json!({"approval": {}})));
    let more = json!({"approval": {}, "dryRun": "call"});
    let quote = world.tool("quote", http(&server, &more));
    let five = json!({"amount": 5});
    let clerks = model(vec![calls(&[
        ("pay", five.clone()),
        ("quote", five.clone()),
    ])]);
    let clerk = world.agent(&clerks, &[pay, quote]);
    dry(&world, json!({"agentId": clerk, "message": "Pay."}));
    assert_eq!(tool_results(&clerks), [SIMULATED, "done"]);
    let call = |tool: &str| json!({"call": "tool", "with": {"tool": tool, "arguments": five}});
    let tasks = json!([{"pay": call("pay")}, {"quote": call("quote")}]);
    world.flow("pays", tasks, Value::Null);
    let run = dry(&world, json!({"flowId": "test.pays"}));
    assert_eq!(world.app.output(&run), json!("done"));
    let asked = server.asked();
    let of: Vec<_> = asked
        .iter()
        .map(|call| (&call.body["tool"], &call.body["dryRun"]))
        .collect();
    assert_eq!(of, [(&json!("quote"), &json!(true)); 2]);
    let approvals = world.app.get("/v1/approvals").expect(200);
    assert_eq!(approvals["data"], json!([]));
}

#[test]
fn a_dry_run_of_a_flow_calls_the_tools_that_say_so_unless_it_has_their_answers() {
    let world = World::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok(r#"{"price": 7}"#));
    world.tool("pay", http(&server, &json!({})));
    world.tool("quote", http(&server, &json!({"dryRun": "call"})));
    let call = |tool: &str| {
        json!({"call": "tool", "with": {"tool": tool, "arguments": {"amount": 5}},
            "metadata": {"dryRun": {"output": "by the flow"}},
            "export": {"as": format!("${{ $context + {{\"{tool}\": .}} }}")}})
    };
    let tasks = json!([
        {"pay": call("pay")},
        {"quote": call("quote")},
        {"all": {"set": "${ $context }"}},
    ]);
    world.flow("pays", tasks, Value::Null);
    let run = dry(&world, json!({"flowId": "test.pays"}));
    let expected = json!({"pay": "by the flow", "quote": {"price": 7}});
    assert_eq!(world.app.output(&run), expected);
    assert_eq!(simulated(&world, &run), ["tool pay"]);
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].body["dryRun"], json!(true));
    let fixtures = json!({"/do/1/quote": "by the start"});
    let run = dry(&world, json!({"flowId": "test.pays", "fixtures": fixtures}));
    let expected = json!({"pay": "by the flow", "quote": "by the start"});
    assert_eq!(world.app.output(&run), expected);
    assert_eq!(simulated(&world, &run), ["tool pay", "tool quote"]);
    assert_eq!(server.asked().len(), 1, "it was not called again");
}

#[test]
fn a_dry_turn_runs_what_it_calls_dry_and_asks_nobody() {
    let world = World::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("paid"));
    let schema = json!({"type": "object"});
    let url = world.tool(
        "pay",
        json!({"url": server.url(), "argumentsSchema": schema}),
    );
    let tasks = json!([
        {"ask": asks_a_reviewer()},
        {"pay": {"call": "tool", "with": {"tool": "pay"}}},
        {"tell": {"set": "${ \"would have paid\" }"}},
    ]);
    world.flow("refund", tasks, Value::Null);
    let refund = world.tool(
        "refund",
        json!({"flow": {"flowId": "test.refund"}, "approval": {}}),
    );
    let clerks = model(vec![calls(&[("refund", json!({})), ("pay", json!({}))])]);
    let clerk = world.agent(&clerks, &[refund, url]);
    let desks = model(vec![asks("clerk", "Refund.")]);
    let desk = world.agent(&desks, &[world.agent_tool("clerk", clerk)]);
    let body = json!({"agentId": desk, "message": "Hello.", "dryRun": true});
    let run = made::id(&world.app.post("/v1/runs", &body).expect(202)["run"]);
    world.completed(&run);
    let turn = world.child(&run);
    let flow = world.child(&turn);
    for below in [&turn, &flow] {
        assert_eq!(world.app.run(below)["dryRun"], json!(true));
    }
    assert_eq!(tool_results(&clerks), [r#""would have paid""#, SIMULATED]);
    assert!(server.asked().is_empty());
    let approvals = world.app.get("/v1/approvals?status=waiting").expect(200);
    assert_eq!(approvals["data"], json!([]));
}

#[test]
fn a_dry_run_of_a_flow_runs_the_tools_that_are_flows_dry() {
    let world = World::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("paid"));
    let post = json!({"call": "http", "with": {"method": "post", "endpoint": server.url()}});
    let inner = json!([{"post": post}, {"tell": {"set": {"done": true}}}]);
    world.flow("inner", inner, Value::Null);
    world.flow_tool("inner", "inner");
    let outer = json!([{"call": {"call": "tool", "with": {"tool": "inner"}}}]);
    world.flow("outer", outer, Value::Null);
    let body = json!({"flowId": "test.outer", "input": {}, "dryRun": true});
    let run = made::id(&world.app.post("/v1/runs", &body).expect(202)["run"]);
    world.completed(&run);
    assert_eq!(world.app.output(&run), json!({"done": true}));
    assert_eq!(world.app.run(&world.child(&run))["dryRun"], json!(true));
    assert!(server.asked().is_empty());
}

/// The steps of a run that were not performed: what each is, and its name.
fn simulated(world: &World, run: &str) -> Vec<String> {
    let events = world.app.events(run).into_iter();
    let events = events.filter(|event| event["kind"] == "step.simulated");
    let of = |event: Value| format!("{} {}", event["data"]["type"], event["data"]["name"]);
    events.map(|event| of(event).replace('"', "")).collect()
}

#[test]
fn a_dry_run_of_a_flow_goes_by_its_answers_where_tools_are_agents_and_flows() {
    let world = World::start();
    let clerks = model(vec![calls(&[("deep", json!({}))])]);
    let read = json!([{"read": {"call": "http", "with": {"method": "get", "endpoint": "http://127.0.0.1:1/"}}}]);
    for name in ["deep", "below", "whole"] {
        world.flow(name, read.clone(), Value::Null);
    }
    let deep = world.flow_tool("deep", "deep");
    let clerk = world.agent(&clerks, &[deep]);
    world.agent_tool("clerk", clerk);
    world.agent_tool("skipped", clerk);
    world.flow_tool("below", "below");
    world.flow_tool("whole", "whole");
    let call = |tool: &str| json!({"call": "tool", "with": {"tool": tool}, "export": {"as": format!("${{ $context + {{\"{tool}\": .}} }}")}});
    let asks = |tool: &str| {
        let mut task = call(tool);
        task["with"]["arguments"] = json!({"message": "Go."});
        task
    };
    let tasks = json!([
        {"below": call("below")},
        {"whole": call("whole")},
        {"clerk": asks("clerk")},
        {"skipped": asks("skipped")},
        {"all": {"set": "${ $context }"}},
    ]);
    world.flow("outer", tasks, Value::Null);
    let run = |models: &str, more: Value| {
        let mut fixtures =
            json!({"test.below/do/0/read": 1, "test.deep/do/0/read": 2, "/do/1/whole": 3});
        let fields = fixtures.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let body = json!({"flowId": "test.outer", "input": {}, "dryRun": true, "models": models, "fixtures": fixtures});
        let run = made::id(&world.app.post("/v1/runs", &body).expect(202)["run"]);
        world.completed(&run);
        run
    };
    let asked = run("call", json!({"/do/3/skipped": 4}));
    let expected = json!({"below": 1, "whole": 3, "clerk": "Well.", "skipped": 4});
    assert_eq!(world.app.output(&asked), expected);
    assert_eq!(simulated(&world, &asked), ["child whole", "child skipped"]);
    assert_eq!(
        tool_results(&clerks),
        ["2"],
        "a flow below an agent has its answer, too"
    );
    let requests = clerks.requests().len();
    let unasked = run("skip", json!({}));
    let expected = json!({"below": 1, "whole": 3, "clerk": null, "skipped": null});
    assert_eq!(world.app.output(&unasked), expected);
    let names = ["child whole", "child clerk", "child skipped"];
    assert_eq!(simulated(&world, &unasked), names);
    assert_eq!(clerks.requests().len(), requests, "no model was asked");
}
