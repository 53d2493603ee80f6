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

#[test]
fn refusals_are_recognised_in_the_words_of_vendors() {
    let error = |message: &str| json!({"error": {"message": message}});
    for (status, said, quirk) in [
        (
            400,
            error("Unrecognized request argument supplied: stream_options"),
            Quirk::NoStreamOptions,
        ),
        (
            422,
            json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"],
            "msg": "Extra inputs are not permitted", "input": {"include_usage": true}}]}),
            Quirk::NoStreamOptions,
        ),
        (
            400,
            error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
            Quirk::MaxCompletionTokens,
        ),
        (
            400,
            error(
                "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
            ),
            Quirk::NoTemperature,
        ),
        (
            400,
            error("invalid temperature: only 1 is allowed for this model"),
            Quirk::NoTemperature,
        ),
        (
            400,
            error("`temperature` is deprecated for this model."),
            Quirk::NoTemperature,
        ),
        (
            400,
            error("Unsupported parameter: 'top_p' is not supported with this model."),
            Quirk::NoTopP,
        ),
        (
            400,
            error("Argument not supported on this model: presencePenalty"),
            Quirk::NoPenalties,
        ),
        (
            422,
            json!({"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted", "type": "value_error.extra"}]}),
            Quirk::NoSeed,
        ),
        (
            400,
            error("This model does not support the reasoning_effort parameter"),
            Quirk::NoReasoningEffort,
        ),
        (
            400,
            error("Unknown parameter: 'parallel_tool_calls'"),
            Quirk::NoParallelToolCalls,
        ),
        (
            400,
            error("tool_choice 'required' is incompatible with thinking enabled"),
            Quirk::NoToolChoice,
        ),
        (
            400,
            error("deepseek-reasoner does not support this tool_choice"),
            Quirk::NoToolChoice,
        ),
        (
            400,
            error("messages: Input should be a valid string (content)"),
            Quirk::NoNullContent,
        ),
        (
            422,
            json!({"detail": [{"loc": ["body", "messages", 2, "content"], "msg": "Input should be a valid string", "input": null}]}),
            Quirk::NoNullContent,
        ),
        (
            400,
            error("Invalid value for 'content': expected a string, got null."),
            Quirk::NoNullContent,
        ),
        (
            500,
            error("can only concatenate str (not \"NoneType\") to str"),
            Quirk::NoNullContent,
        ),
        (
            400,
            error(
                "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]",
            ),
            Quirk::NoKept,
        ),
        (400, error("System role not supported"), Quirk::NoSystemRole),
        (
            500,
            json!({"error": {"code": 500, "message": "Jinja Exception: System role not supported", "type": "server_error"}}),
            Quirk::NoSystemRole,
        ),
        (
            400,
            json!([{"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3-27b-it"}}]),
            Quirk::NoSystemRole,
        ),
        (
            400,
            error("Conversation roles must alternate user/assistant/user/assistant/..."),
            Quirk::NoSystemRole,
        ),
        (
            400,
            error(
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            ),
            Quirk::NoSystemRole,
        ),
        (
            400,
            error("This response_format type is unavailable now"),
            Quirk::NoJsonSchema,
        ),
        (
            400,
            error("response_format.json_schema.strict: Field required"),
            Quirk::NoJsonSchema,
        ),
        (
            400,
            error("json mode cannot be combined with tool/function calling"),
            Quirk::NoJsonSchema,
        ),
        (
            400,
            error("Function calling with a response mime type: 'application/json' is unsupported"),
            Quirk::NoJsonSchema,
        ),
        (
            400,
            error("Your organization must be verified to stream this model."),
            Quirk::NoStreaming,
        ),
        (501, error("Streaming is not supported"), Quirk::NoStreaming),
        (
            400,
            json!({"detail": "stream=true is not supported when using tools"}),
            Quirk::NoStreaming,
        ),
    ] {
        assert_eq!(
            learned(&whole(), status, &said, &Quirks::new()),
            Some(quirk),
            "{said}"
        );
    }
}

#[test]
fn other_failures_teach_nothing() {
    let error = |message: &str| json!({"error": {"message": message}});
    for (status, said) in [
        (400, error("no")),
        (
            400,
            error(
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3.",
            ),
        ),
        (
            400,
            error("temperature must be between 0 and 1; other values are not allowed"),
        ),
        (
            400,
            error(
                "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
            ),
        ),
        (
            400,
            error("This model's maximum context length is 8192 tokens."),
        ),
        (
            400,
            error("Missing `reasoning_content` field in the assistant message at message index 2."),
        ),
        (
            400,
            error(
                "Unsupported value: 'reasoning_effort' does not support 'low'. Supported values are: 'high'.",
            ),
        ),
        (401, error("Unsupported parameter: 'top_p'")),
        (429, error("The stream is not available now")),
        (500, error("Unexpected end of upstream stream")),
        (500, error("The system is unavailable")),
        (503, error("System role not supported")),
        (
            400,
            error("registry.ollama.ai/library/gemma:2b does not support tools"),
        ),
        (
            400,
            error("The content of the prompt is not allowed by our content policy"),
        ),
    ] {
        assert_eq!(
            learned(&whole(), status, &said, &Quirks::new()),
            None,
            "{said}"
        );
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
