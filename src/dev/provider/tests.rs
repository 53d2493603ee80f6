//! The scripted provider as a plain HTTP client sees it. The model client's tests do the rest.

use super::*;
use serde_json::{Value, json};
use std::io::{Read, Write};

/// Sends this on a connection of its own and reads the answer to its end.
fn exchange(provider: &Provider, request: &str) -> String {
    let mut connection = TcpStream::connect(provider.address).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

fn post(provider: &Provider, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    exchange(
        provider,
        &format!(
            "POST /v1/chat/completions HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ),
    )
}

#[test]
fn a_request_that_asks_for_no_stream_gets_one_object() {
    let provider = Provider::start(Script::default()).unwrap();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let answer = post(&provider, "expect: 100-continue\r\n", &body);
    let answer = answer
        .strip_prefix("HTTP/1.1 100 Continue\r\n\r\n")
        .unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert!(body["usage"]["completion_tokens"].as_u64().unwrap() > 0);
}

#[test]
fn a_stream_ends_with_done_and_counts_only_when_asked() {
    let provider = Provider::start(Script::default()).unwrap();
    let mut body = json!({"model": "m", "stream": true, "messages": []});
    let without = post(&provider, "", &body);
    assert!(without.contains("data: [DONE]\n\n") && !without.contains("\"usage\""));
    body["stream_options"] = json!({"include_usage": true});
    assert!(post(&provider, "", &body).contains("\"usage\":{\"prompt_tokens\""));
    assert_eq!(provider.requests()[1].body, body);
}

#[test]
fn an_output_schema_is_answered_with_json_that_fits_it() {
    let provider = Provider::start(Script::default()).unwrap();
    let schema = json!({"type": "object", "required": ["decision", "amount"], "additionalProperties": false,
        "properties": {"decision": {"enum": ["refund", "refuse"]}, "amount": {"type": "number", "minimum": 10}}});
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Refund it?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}});
    let tool = json!({"role": "tool", "tool_call_id": "a", "content": "An answer."});
    for asked in [false, true] {
        if asked {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(tool.clone());
        }
        let answer = post(&provider, "", &body);
        let (_, answer) = answer.split_once("\r\n\r\n").unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value, json!({"decision": "refund", "amount": 10}));
    }
}

#[test]
fn other_routes_are_few() {
    let provider = Provider::start(Script::default()).unwrap();
    let models = exchange(&provider, "GET /v1/models HTTP/1.1\r\n\r\n");
    assert!(models.contains("\"object\":\"list\""), "{models}");
    let other = exchange(&provider, "GET / HTTP/1.1\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    assert_eq!(provider.count(), 0);
}

#[test]
fn it_stops_while_answers_hang_and_wait() {
    let script = Script {
        queue: vec![Step::text("a b").fault(1, Fault::Hang)],
        then: Step::text("a b").before(Duration::from_secs(24 * 3600)),
    };
    let provider = Provider::start(script).unwrap();
    let request = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
    let mut open = Vec::new();
    for count in 1..=3 {
        let mut connection = TcpStream::connect(provider.address).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        open.push(connection);
        while provider.count() < count {
            std::thread::yield_now();
        }
    }
    let (stopped, stop) = bounded(1);
    let stopping = std::thread::Builder::new().name("stopping".to_owned());
    let stopping = stopping.spawn(move || {
        drop(provider);
        stopped.send(()).unwrap();
    });
    // By themselves they end in a day, or not at all.
    stop.recv_timeout(Duration::from_secs(120)).unwrap();
    stopping.unwrap().join().unwrap();
    for mut connection in open {
        let _ = connection.read_to_end(&mut Vec::new());
    }
}
