//! Which refusals are recognised, and what is remembered.

use super::*;
use crate::model::names::Names;
use crate::model::request::{Kept, Tool, ToolCall};
use std::sync::Arc;

/// A request that has all that a server may refuse.
fn whole() -> ChatRequest {
    let mut request = ChatRequest {
        model: "m".to_owned(),
        messages: vec![
            Message::System {
                content: "be brief".to_owned(),
            },
            Message::User {
                content: "hi".to_owned(),
            },
            Message::Assistant {
                content: None,
                tool_calls: vec![ToolCall {
                    id: "c".to_owned(),
                    name: "clock".to_owned(),
                    arguments: "{}".to_owned(),
                }],
                kept: Kept {
                    message: serde_json::from_value(json!({"reasoning": "hm"})).unwrap(),
                    calls: Vec::new(),
                },
            },
            Message::Tool {
                tool_call_id: "c".to_owned(),
                content: "noon".to_owned(),
            },
        ],
        tools: vec![Tool {
            name: "clock".to_owned(),
            description: None,
            parameters: json!({}),
        }],
        output_schema: Some(json!({"type": "object"})),
        ..ChatRequest::default()
    };
    request.parameters = serde_json::from_value(json!({
        "temperature": 0.5, "topP": 0.5, "seed": 1, "maxTokens": 9, "reasoningEffort": "low", "toolChoice": "auto",
        "parallelToolCalls": false, "presencePenalty": 1,
    }))
    .unwrap();
    request
}

fn learned(request: &ChatRequest, status: u16, said: &Value, active: &Quirks) -> Option<Quirk> {
    let body = request.body(&Names::default(), active);
    let words = words(said.to_string().as_bytes());
    of_refusal(Some(status), &words, (request, &body), active)
}

/// One a line: the status, the quirk or a hyphen for none, and the error.
const REFUSALS: &str = include_str!("refusals.txt");

#[test]
fn refusals_are_recognised_in_the_words_of_vendors_and_other_failures_teach_nothing() {
    for line in REFUSALS.lines() {
        let mut parts = line.splitn(3, ' ');
        let status = parts.next().unwrap().parse().unwrap();
        let expected = parts.next().unwrap();
        let said = serde_json::from_str(parts.next().unwrap()).unwrap();
        let quirk = learned(&whole(), status, &said, &Quirks::new());
        let quirk = quirk.map_or("-".to_owned(), Quirk::name);
        assert_eq!(quirk, expected, "{line}");
    }
}

#[test]
fn what_was_not_sent_or_is_left_out_already_is_not_learned() {
    let plain = ChatRequest::default();
    let said = json!({"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]});
    assert_eq!(learned(&plain, 422, &said, &Quirks::new()), None);
    let active = Quirks::from([Quirk::NoSeed]);
    assert_eq!(learned(&whole(), 422, &said, &active), None);
    // The author's own field stays.
    let mut own = plain;
    own.parameters.extra.insert("seed".to_owned(), json!(1));
    assert_eq!(learned(&own, 422, &said, &Quirks::new()), None);
    // A schema is given up in two steps.
    let said = json!({"error": {"message": "response_format is not supported"}});
    let active = Quirks::from([Quirk::NoJsonSchema]);
    assert_eq!(
        learned(&whole(), 400, &said, &active),
        Some(Quirk::NoResponseFormat)
    );
}

#[test]
fn an_error_that_repeats_the_request_is_not_searched_there() {
    let said = json!({"detail": [{"loc": ["body", "user"], "msg": "Extra inputs are not permitted",
        "input": {"seed": "seed", "stream_options": "stream_options"}}]});
    assert_eq!(learned(&whole(), 422, &said, &Quirks::new()), None);
    let mut deep = json!("seed");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert!(!words(deep.to_string().as_bytes()).contains("seed"));
    let long = json!(vec!["x".repeat(1000); 1000]);
    assert!(words(long.to_string().as_bytes()).len() <= BYTES_MOST);
}

fn server(model: usize) -> Server {
    Server {
        provider_id: Uuid::nil(),
        base_url: "http://a/v1".to_owned(),
        model: model.to_string(),
    }
}

#[test]
fn a_refusal_is_remembered_for_a_day_and_for_its_server_alone() {
    let clock = Clock::system();
    let memory = Arc::<Memory>::default();
    let seed = Quirks::from([Quirk::NoSeed]);
    memory.add(&clock, server(1), &seed);
    memory.add(&clock, server(1), &Quirks::from([Quirk::NoStreaming]));
    assert_eq!(
        memory.of(&clock, &server(1)),
        Quirks::from([Quirk::NoSeed, Quirk::NoStreaming])
    );
    assert_eq!(memory.of(&clock, &server(2)), Quirks::new());
    let moved = Server {
        base_url: "http://b/v1".to_owned(),
        ..server(1)
    };
    assert_eq!(memory.of(&clock, &moved), Quirks::new());
    clock.advance(Duration::hours(25).unsigned_abs());
    assert_eq!(memory.of(&clock, &server(1)), Quirks::new());
}

#[test]
fn the_memory_has_a_bound() {
    let memory = Memory::default();
    let clock = Clock::system();
    for model in 0..REMEMBERED_MOST + 10 {
        memory.add(&clock, server(model), &Quirks::from([Quirk::NoSeed]));
    }
    assert_eq!(memory.known.lock().unwrap().len(), REMEMBERED_MOST);
    assert_eq!(
        memory.of(&clock, &server(REMEMBERED_MOST + 9)),
        Quirks::from([Quirk::NoSeed])
    );
}
