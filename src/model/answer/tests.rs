//! Answers put together from what providers really send.

use super::*;
use serde_json::json;

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(fragments: &[Value]) -> Value {
    delta(json!({"tool_calls": fragments}))
}

fn assemble(chunks: &[Value]) -> Result<Completion, Unfit> {
    let mut assembly = Assembly::default();
    for chunk in chunks {
        assembly.take(chunk, &mut |_| {})?;
    }
    assembly.complete()
}

/// Names, ids and arguments of the calls in these chunks.
fn called(chunks: &[Value]) -> Vec<(String, String, String)> {
    let completion = assemble(&[chunks, &[finish("tool_calls")]].concat()).unwrap();
    assert_eq!(completion.finish, Finish::ToolCalls);
    let calls = completion.tool_calls.into_iter();
    calls.map(|c| (c.id, c.name, c.arguments)).collect()
}

fn check_calls(chunks: &[Value], expected: &[(&str, &str, &str)]) {
    let calls = called(chunks);
    let calls: Vec<_> = calls.iter().map(|(a, b, c)| (&**a, &**b, &**c)).collect();
    assert_eq!(calls, expected);
}

#[test]
fn interleaved_fragments_are_merged_by_index() {
    check_calls(
        &[
            calls(&[json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}})]),
            calls(&[
                json!({"index": 1, "id": "b", "function": {"name": "two", "arguments": "{\"y\""}}),
            ]),
            calls(&[json!({"index": 0, "function": {"arguments": "{\"x\":"}})]),
            calls(&[
                json!({"index": 1, "function": {"arguments": ":2}"}}),
                json!({"index": 0, "function": {"arguments": "1}"}}),
            ]),
        ],
        &[("a", "one", "{\"x\":1}"), ("b", "two", "{\"y\":2}")],
    );
}

#[test]
fn providers_peculiar_fragments_are_merged_too() {
    // One index for all, told apart by id.
    check_calls(
        &[calls(&[
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "two", "arguments": "{}"}}),
        ])],
        &[("a", "one", "{}"), ("b", "two", "{}")],
    );
    // No index at all.
    check_calls(
        &[
            calls(&[json!({"id": "a", "function": {"name": "one", "arguments": "{"}})]),
            calls(&[json!({"function": {"arguments": "}"}})]),
            calls(&[json!({"id": "b", "function": {"name": "two", "arguments": {"z": 1}}})]),
        ],
        &[("a", "one", "{}"), ("b", "two", "{\"z\":1}")],
    );
    // The name and id again with each fragment; a name in pieces; no id.
    check_calls(
        &[
            calls(&[json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "1"}})]),
            calls(&[json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "2"}})]),
            calls(&[json!({"index": 1, "function": {"name": "get_"}})]),
            calls(&[json!({"index": 1, "function": {"name": "time"}})]),
        ],
        &[("a", "one", "12"), ("call_1", "get_time", "")],
    );
}

#[test]
fn a_whole_completion_is_taken() {
    let mut said = String::new();
    let mut assembly = Assembly::default();
    let whole = json!({
        "model": "m-1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "hello", "tool_calls": [
                {"id": "", "function": {"name": "f", "arguments": "{}"}},
                {"id": "", "function": {"name": "f", "arguments": "{}"}},
            ]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    });
    assembly
        .take(&whole, &mut |text| said.push_str(text))
        .unwrap();
    let completion = assembly.complete().unwrap();
    assert_eq!(
        (said.as_str(), completion.text.as_str()),
        ("hello", "hello")
    );
    assert_eq!(completion.finish, Finish::ToolCalls);
    assert_eq!(completion.tool_calls.len(), 2);
    assert_eq!(completion.model.as_deref(), Some("m-1"));
}

#[test]
fn an_absent_count_is_none_and_never_zero() {
    let usage = |value: Value| Usage::read(&value);
    assert_eq!(usage(json!(null)), None);
    assert_eq!(usage(json!({})), None);
    assert_eq!(
        usage(json!({"prompt_tokens": -1, "completion_tokens": "2"})),
        None
    );
    assert_eq!(
        usage(json!({"prompt_tokens": 0})),
        Some(Usage {
            prompt: Some(0),
            ..Usage::default()
        })
    );
    assert_eq!(
        usage(json!({
            "prompt_tokens": 9, "completion_tokens": 8,
            "prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 5},
        })),
        Some(Usage {
            prompt: Some(9),
            completion: Some(8),
            cache_read: Some(7),
            cache_write: Some(6),
            reasoning: Some(5),
        })
    );
    let other = usage(json!({"cache_creation_input_tokens": 3})).unwrap();
    assert_eq!(other.cache_write, Some(3));
}

#[test]
fn ends_are_told_apart() {
    let text = delta(json!({"content": "hi"}));
    let end = |reason: &str| assemble(&[text.clone(), finish(reason)]);
    assert_eq!(end("stop").unwrap().finish, Finish::Stop);
    assert_eq!(end("length").unwrap().finish, Finish::Length);
    assert_eq!(end("eos").unwrap().finish, Finish::Other("eos".to_owned()));
    assert_eq!(end("content_filter"), Err(Unfit::Filtered));
    assert_eq!(assemble(std::slice::from_ref(&text)), Err(Unfit::Cut));
    assert_eq!(assemble(&[]), Err(Unfit::Cut));
    let mut done = Assembly::default();
    done.take(&text, &mut |_| {}).unwrap();
    done.done();
    assert_eq!(done.complete().unwrap().finish, Finish::Stop);
    let mut empty = Assembly::default();
    empty.done();
    assert_eq!(empty.complete(), Err(Unfit::Cut));
}

#[test]
fn a_refusal_and_other_choices_are_kept_apart() {
    let completion = assemble(&[
        delta(json!({"content": null, "refusal": "I "})),
        delta(json!({"refusal": "won't"})),
        json!({"choices": [{"index": 1, "delta": {"content": "second"}}]}),
        finish("stop"),
    ])
    .unwrap();
    assert_eq!(completion.refusal.as_deref(), Some("I won't"));
    assert_eq!(completion.text, "");
}

#[test]
fn bounds_hold() {
    let many: Vec<Value> = (0..129)
        .map(|n| json!({"index": n, "id": format!("c{n}"), "function": {"name": "f"}}))
        .collect();
    assert!(matches!(assemble(&[calls(&many)]), Err(Unfit::TooLarge(_))));
    let half = delta(json!({"content": "a".repeat(5 * 1024 * 1024)}));
    assert!(matches!(
        assemble(&[half.clone(), half]),
        Err(Unfit::TooLarge(_))
    ));
    let nameless = calls(&[json!({"index": 0, "id": "a"})]);
    assert!(matches!(
        assemble(&[nameless, finish("stop")]),
        Err(Unfit::Malformed(_))
    ));
    assert!(matches!(assemble(&[json!([])]), Err(Unfit::Malformed(_))));
}

#[test]
fn text_can_be_stored() {
    let completion = assemble(&[delta(json!({"content": "a\u{0}b"})), finish("stop")]).unwrap();
    assert_eq!(completion.text, "a\u{fffd}b");
}
