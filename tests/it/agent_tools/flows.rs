//! Flows whose `call: tool` names a tool that is an agent or a flow.

use super::{World, asks_a_reviewer, model};
use agent_runtime::dev::provider::Step;
use serde_json::{Value, json};

#[test]
fn a_flow_calls_an_agent_and_a_flow_by_their_tools() {
    let world = World::start();
    let maker = world.app.maker();
    let clerks = model(vec![Step::text(r#"{"amount": 5}"#), Step::text("plain")]);
    let clerk = maker.agent_of(world.project, &clerks.base_url(), |version| {
        version.output_schema = json!({"type": "object"});
    });
    let talker = world.clerk(vec![Step::text("plain")]);
    world.agent_tool("clerk", clerk);
    world.agent_tool("talker", talker);
    world.flow(
        "doubles",
        json!([{"tell": {"set": "${ {n: (.n * 2)} }"}}]),
        Value::Null,
    );
    world.flow_tool("doubles", "doubles");
    let tasks = json!([
        {"assess": {"call": "tool", "with": {"tool": "clerk", "arguments": {"message": "How much?"}},
            "export": {"as": "{ amount: .amount }"}}},
        {"talk": {"call": "tool", "with": {"tool": "talker", "arguments": {"message": "And?"}},
            "export": {"as": "${ $context + {said: .} }"}}},
        {"double": {"call": "tool", "with": {"tool": "doubles", "arguments": {"n": "${ $context.amount }"}}}},
        {"tell": {"set": "${ {n: .n, said: $context.said} }"}},
    ]);
    world.flow("outer", tasks, Value::Null);
    let run = world.start_flow("outer", json!({}));
    let ended = world.completed(&run);
    assert_eq!(world.app.output(&run), json!({"n": 10, "said": "plain"}));
    assert_eq!(ended["usage"]["calls"], json!(2));
    let steps = ["clerk", "talker", "doubles"].map(|name| format!("child {name} completed"));
    assert_eq!(world.steps(&run), steps);
    let children = world.children(&run);
    let ran: Vec<_> = children
        .iter()
        .map(|run| run["flowId"].as_str().unwrap())
        .collect();
    assert_eq!(ran, ["agent.turn", "agent.turn", "test.doubles"]);
}

#[test]
fn a_tool_that_fails_raises_what_every_tool_raises() {
    let world = World::start();
    let no = json!({"raise": {"error": {"type": "https://example.com/no", "status": 404, "title": "No such order"}}});
    let schema = json!({"type": "object", "required": ["order"]});
    world.flow("fails", json!([{"no": no}]), schema);
    world.flow_tool("fails", "fails");
    let caught = |arguments: Value, kind: &str| {
        json!({
            "try": [{"call": {"call": "tool", "with": {"tool": "fails", "arguments": arguments}}}],
            "catch": {"errors": {"with": {"type": format!("https://serverlessworkflow.io/spec/1.0.0/errors/{kind}")}},
                "do": [{"tell": {"set": "${ [$error.status, $error.detail] }"}}]},
        })
    };
    world.flow(
        "outer",
        json!([{"one": caught(json!({"order": "A"}), "communication")}]),
        Value::Null,
    );
    world.flow(
        "unfit",
        json!([{"one": caught(json!({}), "validation")}]),
        Value::Null,
    );
    let run = world.start_flow("outer", json!({}));
    world.completed(&run);
    let said = "The flow failed: The task /do/0/no failed: No such order (status 404).";
    assert_eq!(world.app.output(&run), json!([404, said]));
    // A call whose arguments do not fit begins nothing.
    let run = world.start_flow("unfit", json!({}));
    world.completed(&run);
    assert_eq!(world.app.output(&run)[0], json!(400));
    assert!(world.children(&run).is_empty());
}

#[test]
fn a_call_that_asks_and_a_timeout_end_what_a_tool_runs() {
    let world = World::start();
    world.flow("asks", json!([{"ask": asks_a_reviewer()}]), Value::Null);
    world.tool(
        "ask",
        json!({"flow": {"flowId": "test.asks"}, "approval": {}}),
    );
    let call = json!({"call": "tool", "with": {"tool": "ask"}});
    world.flow("outer", json!([{"call": call}]), Value::Null);
    let run = world.start_flow("outer", json!({}));
    world.decide(&run, &json!({"decision": "approve"}));
    let below = world.child(&run);
    world.decide(&below, &json!({"decision": "approve"}));
    world.completed(&run);
    let steps = ["approval approval completed", "child ask completed"];
    assert_eq!(world.steps(&run), steps);
    let run = world.start_flow("outer", json!({}));
    world.decide(&run, &json!({"decision": "reject"}));
    let ended = world.app.finished(&run);
    assert_eq!(ended["status"], json!("failed"));
    assert!(world.children(&run).is_empty());
    world.flow_tool("quick", "asks");
    let mut late = json!({"call": "tool", "with": {"tool": "quick"}});
    late["timeout"] = json!({"after": {"milliseconds": 100}});
    world.flow("late", json!([{"late": late}]), Value::Null);
    let run = world.start_flow("late", json!({}));
    let ended = world.app.finished(&run);
    let said = ended["failureMessage"].as_str().unwrap();
    assert!(said.contains("timeout"), "{said}");
    let below = world.child(&run);
    assert_eq!(world.app.finished(&below)["status"], json!("cancelled"));
}
