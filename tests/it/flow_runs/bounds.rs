//! Bounds of running flows. The bounds of what only computes are unit tests of `runtime::flow`.

use super::world::Flows;
use crate::runtime::world::{HttpServer, World};
use serde_json::{Value, json};

const MEBIBYTE: usize = 1024 * 1024;

/// A JSON object of so many bytes.
fn object(bytes: usize) -> String {
    let text = "a".repeat(bytes - r#"{"a":""}"#.len());
    format!(r#"{{"a":"{text}"}}"#)
}

#[test]
fn a_tool_may_answer_a_mebibyte_of_which_the_data_takes_a_part() {
    let world = World::new();
    let (most, more) = (object(MEBIBYTE), object(MEBIBYTE + 1));
    let server = HttpServer::start(&[(200, &most), (200, &most), (200, &more)]);
    world.batch(&format!("update tools set url = '{}'", server.url("/big")));
    let asks = |output: Value| {
        let mut ask =
            json!({"call": "tool", "with": {"tool": "weather", "arguments": {"city": "Rome"}}});
        ask["output"] = output;
        json!([{"ask": ask}, {"sleep": {"wait": {"milliseconds": 1}}}])
    };
    world.flow("part", asks(json!({"as": "{ length: (.a | length) }"})));
    world.flow("whole", asks(json!({"as": "."})));
    let process = world.process(1, true);
    let part = world.answers(&process, "part", json!({}));
    assert_eq!(part, json!({"length": MEBIBYTE - 8}));
    let run = world.ends(&process, "whole", json!({}));
    let said = run.failure_message.unwrap();
    assert!(said.starts_with("The task /do/1/sleep failed: "), "{said}");
    assert!(said.ends_with("(status 413)."), "{said}");
    let run = world.ends(&process, "part", json!({}));
    let said = run.failure_message.unwrap();
    assert!(said.starts_with("The task /do/0/ask failed: "), "{said}");
    assert!(said.contains("1048576"), "{said}");
    assert!(server.is_spent());
}

#[test]
fn a_server_may_answer_a_mebibyte() {
    let world = World::new();
    let (most, more) = (object(MEBIBYTE), object(MEBIBYTE + 1));
    let server = HttpServer::start(&[(200, &most), (200, &more)]);
    let get = json!({"method": "get", "endpoint": server.url("/big")});
    let length = json!({"as": "{ length: (.a | length) }"});
    world.flow(
        "reads",
        json!([{"read": {"call": "http", "with": get, "output": length}}]),
    );
    let process = world.process(1, true);
    let read = world.answers(&process, "reads", json!({}));
    assert_eq!(read, json!({"length": MEBIBYTE - 8}));
    let run = world.ends(&process, "reads", json!({}));
    let said = run.failure_message.unwrap();
    assert!(said.starts_with("The task /do/0/read failed: "), "{said}");
    assert!(said.contains("1048576"), "{said}");
    assert!(server.is_spent());
}

#[test]
fn a_loop_is_bounded_by_its_items_and_by_the_tasks_of_its_run() {
    let world = World::new();
    let add = json!({"add": {"set": "${ {sum: (.sum + 1)} }"}});
    world.flow(
        "counts",
        json!([{"each": {"for": {"each": "x", "in": "[range(.items)]"}, "do": [add]}}]),
    );
    world.flow("spins", json!([{"again": {"set": {}, "then": "again"}}]));
    let process = world.process(1, true);
    let input = |items: u32| json!({"items": items, "sum": 0});
    let sum = world.answers(&process, "counts", input(9_999));
    assert_eq!(sum, json!({"sum": 9_999}));
    for (flow, input, told) in [
        // The loop is a task, too.
        ("counts", input(10_000), "more than 10000 tasks"),
        (
            "counts",
            input(10_001),
            "has 10001 items, and may have at most 10000",
        ),
        ("spins", json!({}), "more than 10000 tasks"),
    ] {
        let run = world.ends(&process, flow, input);
        let said = run.failure_message.unwrap();
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn the_longest_definition_runs() {
    let world = World::new();
    let tasks = (0..500).map(|n| json!({format!("task{n}"): {"set": "${ {n: (.n + 1)} }"}}));
    world.flow("long", tasks.collect());
    let process = world.process(1, true);
    let n = world.answers(&process, "long", json!({"n": 0}));
    assert_eq!(n, json!({"n": 500}));
}

/// A version that an earlier program took. Whoever takes the run up reads the definition, so its bounds hold there too.
#[test]
fn a_stored_definition_beyond_a_bound_fails_its_run_and_says_so() {
    let world = World::new();
    world.flow("chain", json!([{"first": {"set": {}}}]));
    let functions: serde_json::Map<String, Value> = (0..120)
        .map(|n| (format!("f{n}"), json!({"call": format!("f{}", n + 1)})))
        .chain([("f120".to_owned(), json!({"set": {}}))])
        .collect();
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "test", "name": "chain", "version": "1.0.0"},
        "use": {"functions": functions},
        "do": [{"first": {"call": "f0"}}],
    });
    world.batch(&format!(
        "update flow_versions set definition = '{definition}'"
    ));
    let process = world.process(1, true);
    let run = world.ends(&process, "chain", json!({}));
    let said = run.failure_message.unwrap();
    assert!(
        said.contains("is not taken any more") && said.contains("16 deep"),
        "{said}"
    );
}
