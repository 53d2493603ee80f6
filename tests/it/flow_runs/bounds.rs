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
