//! Calls of tools and of HTTP servers.

use super::world::Flows;
use crate::runtime::world::{HttpServer, World};
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};

/// A call of a tool, by the name that the world gives it.
fn tool(name: &str, arguments: Value) -> Value {
    json!({"call": "tool", "with": {"tool": name, "arguments": arguments}})
}

/// Tries tasks and answers the error.
fn caught(tasks: Value) -> Value {
    json!([{"outer": {"try": tasks, "catch": {"do": [{"tell": {"set": "${ $error }"}}]}}}])
}

#[test]
fn a_tool_is_called_with_what_the_flow_computes() {
    let world = World::new();
    let asks = tool("weather", json!({"city": "${ .city }"}));
    world.flow(
        "asks",
        json!([{"ask": asks}, {"tell": {"set": {"sky": "${ . }"}}}]),
    );
    let process = world.process(1, true);
    let run = world.ends(&process, "asks", json!({"city": "Rome"}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run.run_id), json!({"sky": "sunny"}));
    let asked = world.tool.asked();
    assert_eq!(asked[0].0, Some(format!("{}-1", run.run_id)));
    assert_eq!(asked[0].1["arguments"], json!({"city": "Rome"}));
    assert_eq!(world.steps(run.run_id), ["tool /do/0/ask completed"]);
}

#[test]
fn an_error_of_a_tool_is_an_error_of_the_flow() {
    let world = World::new();
    world.flow(
        "wrong",
        caught(json!([{"ask": tool("weather", json!({}))}])),
    );
    world.flow("missing", caught(json!([{"ask": tool("none", json!({}))}])));
    let process = world.process(1, true);
    for (flow, title, said) in [
        ("wrong", "The data does not fit its schema", "city"),
        ("missing", "The call failed", "There is no tool"),
    ] {
        let error = world.answers(&process, flow, json!({}));
        assert_eq!(error["title"], title);
        assert_eq!(error["instance"], "/do/0/outer/try/0/ask");
        assert!(error["detail"].as_str().unwrap().contains(said), "{error}");
    }
    assert_eq!(world.tool.asked().len(), 0);
}

#[test]
fn a_tool_is_tried_again_when_its_status_says_so() {
    let world = World::new();
    let server = HttpServer::start(&[(503, "busy"), (503, "busy"), (200, "{\"paid\": true}")]);
    world.batch(&format!("update tools set url = '{}'", server.url("/pay")));
    let tasks = json!([{"outer": {
        "try": [{"pay": tool("pay", json!({"city": "Rome"}))}],
        "catch": {
            "errors": {"with": {"status": 503}},
            "retry": {"delay": {"milliseconds": 1}, "limit": {"attempt": {"count": 5}}},
        },
    }}]);
    world.flow("pays", tasks);
    let process = world.process(1, true);
    let paid = world.answers(&process, "pays", json!({}));
    assert_eq!(paid, json!({"paid": true}));
    let keys: Vec<_> = server
        .got()
        .into_iter()
        .map(|got| got.key.unwrap())
        .collect();
    assert_eq!(keys.len(), 3);
    assert_ne!(keys[0], keys[1], "an answered call is another call");
}

#[test]
fn a_call_that_a_crash_hid_is_an_error_that_a_flow_may_handle() {
    let world = World::new();
    world.flow(
        "pays",
        caught(json!([{"pay": tool("pay", json!({"city": "Rome"}))}])),
    );
    let gate = world.tool.gate.clone();
    let closed = gate.lock().unwrap();
    let dying = world.process(1, false);
    let run_id = world.start(&dying, "pays", json!({}));
    world.eventually(|| world.tool.asked().len() == 1);
    world.expire_leases();
    let next = world.process(1, false);
    let run = world.until(&next, run_id, |run| run.status.is_finished());
    drop(closed);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        world.output(run_id)["title"],
        "The outcome of the call is unknown"
    );
    assert_eq!(world.tool.asked().len(), 1, "it is not made twice");
    let failed = ["tool /do/0/outer/try/0/pay failed"];
    assert_eq!(world.steps(run_id), failed);
    assert!(world.kinds(run_id).contains(&"step.failed".to_owned()));
    drop(dying);
}

#[test]
fn an_http_server_is_asked() {
    let world = World::new();
    let server = HttpServer::start(&[(200, "{\"id\": 7}"), (201, "[1]"), (404, "no such thing")]);
    let http = |more: Value| {
        let mut with = json!({"endpoint": server.url("/orders")});
        let fields = with.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        json!({"call": "http", "with": with})
    };
    let query = http(json!({"method": "get", "query": {"q": "${ .q }"}}));
    let body = json!({"method": "post", "body": {"id": "${ .id }"}, "output": "response",
        "headers": {"Idempotency-Key": "own"}});
    let missing = http(json!({"method": "get"}));
    world.flow("asks", json!([
        {"read": query},
        {"write": http(body)},
        {"shape": {"set": {"code": "${ .statusCode }", "content": "${ .content }"}}},
        {"outer": {"try": [{"missing": missing}], "catch": {"errors": {"with": {"status": 404}}}}},
    ]));
    let process = world.process(1, true);
    let answer = world.answers(&process, "asks", json!({"q": "a b"}));
    assert_eq!(answer, json!({"code": 201, "content": [1]}));
    assert!(server.is_spent());
    let got = server.got();
    assert_eq!(
        (got[0].method.as_str(), got[0].url.as_str()),
        ("GET", "/orders?q=a%20b")
    );
    assert_eq!(
        (got[1].method.as_str(), got[1].body.as_str()),
        ("POST", "{\"id\":7}")
    );
    assert_eq!(got[1].key.as_deref(), Some("own"));
}

#[test]
fn a_request_ends_with_the_time_of_its_task() {
    let world = World::new();
    let gate = world.tool.gate.clone();
    let closed = gate.lock().unwrap();
    let mut slow = tool("pay", json!({"city": "Rome"}));
    slow["timeout"] = json!({"after": {"milliseconds": 200}});
    world.flow("late", caught(json!([{"slow": slow}])));
    let process = world.process(1, true);
    let run_id = world.start(&process, "late", json!({}));
    let run = world.until(&process, run_id, |run| run.status.is_finished());
    drop(closed);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id)["status"], 408);
}

#[test]
fn a_dry_run_reads_and_changes_nothing() {
    let world = World::new();
    let server = HttpServer::start(&[(200, "{\"id\": 7}")]);
    let number =
        json!({"format": "json", "document": {"type": "object", "examples": [{"paid": 5}]}});
    let http = |method: &str| json!({"method": method, "endpoint": server.url("/x")});
    let mut pay = tool("pay", json!({"city": "Rome"}));
    pay["output"] = json!({"schema": number});
    world.flow(
        "dry",
        json!([
            {"read": {"call": "http", "with": http("get")}},
            {"sleep": {"wait": {"days": 300}}},
            {"keep": {"set": {}, "export": {"as": "$input"}}},
            {"write": {"call": "http", "with": http("post")}},
            {"pay": pay},
            {"tell": {"set": {"read": "${ $context }", "paid": "${ .paid }"}}},
        ]),
    );
    let process = world.process(1, true);
    let run_id = world.start_dry(&process, "dry", json!({}));
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let output = json!({"read": {"id": 7}, "paid": 5});
    assert_eq!(world.output(run_id), output);
    assert_eq!(server.got().len(), 1);
    assert_eq!(world.tool.asked().len(), 0);
}
