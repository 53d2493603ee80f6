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
    let mut assembly = Assembly::new(
        ["one", "two", "weather", "now", "get_time"]
            .map(str::to_owned)
            .to_vec(),
    );
    for chunk in chunks {
        assembly.take(chunk, &mut |_| {})?;
    }
    assembly.settle(&mut |_| {})?;
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
        .take(&whole, &mut |piece| {
            if let Piece::Text(text) = piece {
                said.push_str(text);
            }
        })
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
fn ends_are_told_apart() {
    let text = delta(json!({"content": "hi"}));
    let end = |reason: &str| assemble(&[text.clone(), finish(reason)]);
    assert_eq!(end("stop").unwrap().finish, Finish::Stop);
    assert_eq!(end("length").unwrap().finish, Finish::Length);
    assert_eq!(end("eos").unwrap().finish, Finish::Stop);
    assert_eq!(end("tool_calls").unwrap().finish, Finish::Stop);
    assert_eq!(end("abort"), Err(Unfit::Ended("abort".to_owned())));
    assert_eq!(end(""), Err(Unfit::Cut));
    assert_eq!(end("content_filter"), Err(Unfit::Filtered));
    assert_eq!(assemble(std::slice::from_ref(&text)), Err(Unfit::Cut));
    assert_eq!(assemble(&[]), Err(Unfit::Silent));
    let mut done = Assembly::default();
    done.take(&text, &mut |_| {}).unwrap();
    done.done();
    assert_eq!(done.complete().unwrap().finish, Finish::Stop);
    let mut empty = Assembly::default();
    empty.done();
    assert_eq!(empty.complete(), Err(Unfit::Silent));
}

#[test]
fn an_answer_without_text_and_calls_is_empty() {
    let ended = |delta_: Value, reason: &str| assemble(&[delta(delta_), finish(reason)]);
    let nothing = json!({"role": "assistant", "content": ""});
    for (message, reason, why) in [
        (nothing.clone(), "stop", "neither text nor a call"),
        (nothing.clone(), "tool_calls", "neither text nor a call"),
        (
            json!({"content": "\n\n"}),
            "stop",
            "neither text nor a call",
        ),
        (
            json!({"reasoning_content": "hmm"}),
            "stop",
            "it has reasoning",
        ),
        (json!({"content": "<think>hmm"}), "stop", "it has reasoning"),
        (json!({"reasoning": "hmm"}), "length", "maximum length"),
        (
            nothing,
            "MALFORMED_FUNCTION_CALL",
            "could not read the call",
        ),
    ] {
        let unfit = ended(message.clone(), reason).unwrap_err();
        let failure = unfit.failure();
        assert!(failure.retryable, "{message}");
        assert!(
            failure.why.message.contains(why),
            "{message}: {}",
            failure.why.message
        );
    }
}

const PARIS: &str = "{\"city\":\"Paris\"}";
/// The same in two pieces.
const HEAD: &str = "{\"ci";
const TAIL: &str = "ty\":\"Paris\"}";

fn call(index: &Value, id: &str, name: &str, arguments: &str) -> Value {
    let name = Some(name).filter(|name| !name.is_empty());
    calls(&[json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})])
}

fn weather(id: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), "weather".to_owned(), arguments.to_owned())
}

#[test]
fn each_fragment_belongs_to_the_call_that_was_meant() {
    let (head, tail, paris) = (HEAD, TAIL, PARIS);
    let table = [
        // Ids that change, with and without the name again.
        vec![("a1", "weather", ""), ("b2", "", head), ("b3", "", tail)],
        vec![
            ("a1", "weather", ""),
            ("b2", "weather", head),
            ("b3", "weather", tail),
        ],
        vec![("a1", "weather", ""), ("b2", "weather", paris)],
        // Empty arguments before the real ones; the whole again at the end.
        vec![("a1", "weather", "{}"), ("", "", head), ("", "", tail)],
        vec![("a1", "weather", "{}"), ("", "weather", paris)],
        vec![("a1", "weather", head), ("", "", tail), ("", "", paris)],
        // A name in pieces.
        vec![("a1", "wea", ""), ("a1", "ther", paris)],
    ];
    for fragments in table {
        for index in [json!(0), json!(null), json!("0"), json!(3)] {
            let pieces = fragments.iter();
            let chunks: Vec<Value> = pieces
                .map(|(id, name, arguments)| call(&index, id, name, arguments))
                .collect();
            assert_eq!(called(&chunks), [weather("a1", PARIS)], "{chunks:?}");
        }
    }
    // An index that counts fragments.
    let chunks = [
        call(&json!(0), "", "weather", ""),
        call(&json!(1), "", "", HEAD),
        call(&json!(2), "", "", TAIL),
    ];
    assert_eq!(called(&chunks), [weather("call_0", PARIS)]);
    // The older form.
    let older = |function: Value| delta(json!({"function_call": function}));
    let chunks = [
        older(json!({"name": "weather", "arguments": HEAD})),
        older(json!({"arguments": TAIL})),
    ];
    assert_eq!(called(&chunks), [weather("call_0", PARIS)]);
}

#[test]
fn two_calls_stay_two() {
    let rome = "{\"city\":\"Rome\"}";
    // The server says so by the name alone, or by the id.
    for index in [json!(0), json!(null)] {
        for (first, second, ids) in [
            ("", "", ["call_0", "call_1"]),
            ("a", "b", ["a", "b"]),
            ("a", "", ["a", "call_1"]),
        ] {
            let chunks = [
                call(&index, first, "weather", PARIS),
                call(&index, second, "weather", rome),
            ];
            let expected = [weather(ids[0], PARIS), weather(ids[1], rome)];
            assert_eq!(called(&chunks), expected, "{chunks:?}");
        }
    }
    // By the place in the list alone.
    let bare =
        |name: &str, arguments: &str| json!({"function": {"name": name, "arguments": arguments}});
    let chunks = [
        calls(&[bare("weather", ""), bare("weather", "")]),
        calls(&[bare("", PARIS), bare("", rome)]),
    ];
    let expected = [weather("call_0", PARIS), weather("call_1", rome)];
    assert_eq!(called(&chunks), expected);
    // A tool without arguments is known by its whole name.
    let chunks = [
        call(&json!(0), "", "now", ""),
        call(&json!(0), "", "weather", PARIS),
    ];
    assert_eq!(called(&chunks)[1].2, PARIS);
}

#[test]
fn a_whole_message_beside_pieces_adds_what_is_missing_alone() {
    let message = json!({"role": "assistant", "content": "Hello there.", "tool_calls": [
        {"id": "a", "function": {"name": "weather", "arguments": "{}"}}]});
    let whole = json!({"choices": [{"message": message, "delta": {"content": ""}, "finish_reason": "stop"}]});
    let answer = assemble(&[
        delta(json!({"content": "Hello "})),
        delta(json!({"content": "there."})),
        whole,
    ])
    .unwrap();
    assert_eq!(answer.text, "Hello there.");
    assert_eq!(answer.tool_calls.len(), 1);
    // Whole messages alone, longer each time.
    let growing = |text: &str| json!({"choices": [{"message": {"content": text}}]});
    let answer = assemble(&[
        growing("Hel"),
        growing("Hello"),
        growing("Hello"),
        finish("stop"),
    ]);
    assert_eq!(answer.unwrap().text, "Hello");
}

#[test]
fn reasoning_is_told_from_text_and_kept_for_the_provider() {
    let answer = assemble(&[
        delta(json!({"reasoning_content": "a", "reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]})),
        delta(json!({"reasoning_content": "b", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]})),
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "c"}]}, {"type": "text", "text": "Hi"}]})),
        delta(json!({"audio": null, "tool_calls": [{"index": 0, "id": "x", "function": {"name": "now"},
            "extra_content": {"google": {"thought_signature": "S"}}}]})),
        finish("stop"),
    ])
    .unwrap();
    assert_eq!(
        (answer.reasoning.as_str(), answer.text.as_str()),
        ("abc", "Hi")
    );
    assert_eq!(
        json!(answer.kept),
        json!({
            "message": {"reasoning_content": "ab", "reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "ab"}]},
            "calls": [{"extra_content": {"google": {"thought_signature": "S"}}}],
        })
    );
    // Of the template's tags nothing is kept.
    let answer = assemble(&[
        delta(json!({"content": "I plan.\n</think>\n\nHi"})),
        finish("stop"),
    ])
    .unwrap();
    assert_eq!(
        (answer.reasoning.as_str(), answer.text.as_str()),
        ("I plan.\n", "Hi")
    );
    assert!(answer.kept.is_empty());
}

#[test]
fn long_reasoning_is_cut_and_long_ids_too() {
    let megabyte =
        delta(json!({"content": [{"type": "thinking", "thinking": "x".repeat(1024 * 1024)}]}));
    let mut chunks = vec![megabyte; 6];
    chunks.extend([delta(json!({"content": "Hi"})), finish("stop")]);
    let answer = assemble(&chunks).unwrap();
    assert!(answer.reasoning.len() <= 4 * 1024 * 1024 && answer.reasoning.ends_with("… (cut)"));
    let long = calls(&[json!({"id": "é".repeat(1024 * 1024), "function": {"name": "now"}})]);
    assert!(called(&[long])[0].0.len() <= 1024);
    let arguments = calls(&[
        json!({"index": 0, "function": {"name": "now", "arguments": "x".repeat(5 * 1024 * 1024)}}),
    ]);
    assert!(matches!(
        assemble(&[arguments.clone(), arguments]),
        Err(Unfit::TooLarge(_))
    ));
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
