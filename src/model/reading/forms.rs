//! Forms in which servers send a part of an answer, each in a whole body: calls, tags of reasoning, usage, ends, errors.
//!
//! Each body comes at once and byte by byte.

use super::any_bytes::answer_to;
use crate::model::{Completion, Finish};
use serde_json::{Value, json};

/// The answer of a stream of these chunks, or the message of its failure.
#[track_caller]
fn answer(chunks: &[Value]) -> Result<Completion, String> {
    let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let body = events.collect::<String>() + "data: [DONE]\n\n";
    of_body(&body)
}

#[track_caller]
fn of_body(body: &str) -> Result<Completion, String> {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let answer = answer_to(pieces, &mut |_| {});
        answer.map_err(|failure| failure.why.message)
    };
    let at_once = read(&mut [body.as_bytes()].into_iter());
    assert_eq!(at_once, read(&mut body.as_bytes().chunks(1)), "{body}");
    at_once
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// Each call as `name(arguments)`.
fn calls(fragments: &[Value]) -> String {
    let deltas = fragments
        .iter()
        .map(|calls| delta(json!({"tool_calls": calls})));
    let chunks: Vec<Value> = deltas.chain([end("tool_calls")]).collect();
    match answer(&chunks) {
        Err(message) => message,
        Ok(answer) => {
            let calls = answer.tool_calls.iter();
            let calls = calls.map(|call| format!("{}({})", call.name, call.arguments));
            calls.collect::<Vec<_>>().join(" ")
        }
    }
}

/// All rows that are not as expected, at once.
#[track_caller]
fn check<R: PartialEq + std::fmt::Debug>(rows: Vec<(&str, R, R)>) {
    let wrong: Vec<_> = rows
        .into_iter()
        .filter(|(_, is, wanted)| is != wanted)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_call_is_the_one_that_was_meant() {
    let paris = r#"{"city":"Paris"}"#;
    let one = r#"weather({"city":"Paris"})"#.to_owned();
    let named = |arguments: Value| json!([{"index": 0, "id": "a", "function": {"name": "weather", "arguments": arguments}}]);
    check(vec![
        // PHP writes an empty object as an empty list.
        (
            "empty list",
            calls(&[named(json!([]))]),
            "weather({})".to_owned(),
        ),
        (
            "empty list as text",
            calls(&[named(json!("[]"))]),
            "weather({})".to_owned(),
        ),
        (
            "object in a list",
            calls(&[named(json!([{"city": "Paris"}]))]),
            one.clone(),
        ),
        (
            "object in a list, as text",
            calls(&[named(json!(format!("[{paris}]")))]),
            one.clone(),
        ),
        (
            "fenced",
            calls(&[named(json!(format!("```json\n{paris}\n```")))]),
            one.clone(),
        ),
        (
            "false",
            calls(&[named(json!(false))]),
            "weather(false)".to_owned(),
        ),
    ]);
}

#[test]
fn a_call_in_pieces_is_the_one_that_was_meant() {
    let paris = r#"{"city":"Paris"}"#;
    let one = r#"weather({"city":"Paris"})"#.to_owned();
    let two = r#"weather({"city":"Paris"}) weather({"city":"Rome"})"#.to_owned();
    let rome = r#"{"city":"Rome"}"#;
    check(vec![
        (
            "index with a point",
            calls(&[
                json!([{"index": 0.0, "id": "a", "function": {"name": "weather", "arguments": ""}}]),
                json!([{"index": 1.0, "id": "b", "function": {"name": "weather", "arguments": ""}}]),
                json!([{"index": 0.0, "function": {"arguments": paris}}]),
                json!([{"index": 1.0, "function": {"arguments": rome}}]),
            ]),
            two.clone(),
        ),
        (
            "index as text",
            calls(&[
                json!([{"index": "0", "id": "a", "function": {"name": "weather", "arguments": ""}}]),
                json!([{"index": "1", "id": "b", "function": {"name": "weather", "arguments": ""}}]),
                json!([{"index": "0", "function": {"arguments": paris}}]),
                json!([{"index": "1", "function": {"arguments": rome}}]),
            ]),
            two.clone(),
        ),
        (
            "no index, two in one piece, arguments later by id",
            calls(&[
                json!([{"id": "a", "function": {"name": "weather", "arguments": ""}}, {"id": "b", "function": {"name": "weather", "arguments": ""}}]),
                json!([{"id": "a", "function": {"arguments": paris}}]),
                json!([{"id": "b", "function": {"arguments": rome}}]),
            ]),
            two.clone(),
        ),
        (
            "index from 1",
            calls(&[
                json!([{"index": 1, "id": "a", "function": {"name": "weather", "arguments": paris}}]),
                json!([{"index": 2, "id": "b", "function": {"name": "weather", "arguments": rome}}]),
            ]),
            two.clone(),
        ),
        (
            "index -1 for each",
            calls(&[
                json!([{"index": -1, "id": "a", "function": {"name": "weather", "arguments": paris}}]),
                json!([{"index": -1, "id": "b", "function": {"name": "weather", "arguments": rome}}]),
            ]),
            two.clone(),
        ),
        (
            "the name in each fragment",
            calls(&[
                json!([{"index": 0, "id": "a", "function": {"name": "weather", "arguments": "{\"city\""}}]),
                json!([{"index": 0, "id": "a", "function": {"name": "weather", "arguments": ":\"Paris\"}"}}]),
            ]),
            one.clone(),
        ),
    ]);
}

#[test]
fn a_call_in_another_form_is_the_one_that_was_meant() {
    let paris = r#"{"city":"Paris"}"#;
    let one = r#"weather({"city":"Paris"})"#.to_owned();
    check(vec![
        (
            "the name in each fragment, with no id and no index",
            calls(&[
                json!([{"function": {"name": "weather", "arguments": "{\"city\""}}]),
                json!([{"function": {"name": "weather", "arguments": ":\"Paris\"}"}}]),
            ]),
            one.clone(),
        ),
        (
            "the name in pieces",
            calls(&[
                json!([{"index": 0, "id": "a", "function": {"name": "wea", "arguments": ""}}]),
                json!([{"index": 0, "function": {"name": "ther", "arguments": ""}}]),
                json!([{"index": 0, "function": {"arguments": paris}}]),
            ]),
            one.clone(),
        ),
        (
            "the id after the name",
            calls(&[
                json!([{"index": 0, "function": {"name": "weather"}}]),
                json!([{"index": 0, "id": "a", "function": {"arguments": paris}}]),
            ]),
            one.clone(),
        ),
        (
            "arguments before the name",
            calls(&[
                json!([{"index": 0, "id": "a", "function": {"arguments": paris}}]),
                json!([{"index": 0, "function": {"name": "weather"}}]),
            ]),
            one.clone(),
        ),
        (
            "parameters",
            calls(&[
                json!([{"index": 0, "id": "a", "function": {"name": "weather", "parameters": {"city": "Paris"}}}]),
            ]),
            one.clone(),
        ),
        (
            "input, flat",
            calls(&[
                json!([{"index": 0, "id": "a", "name": "weather", "input": {"city": "Paris"}}]),
            ]),
            one.clone(),
        ),
    ]);
}

#[test]
fn a_call_without_a_place_is_the_one_that_was_meant() {
    let paris = r#"{"city":"Paris"}"#;
    let one = r#"weather({"city":"Paris"})"#.to_owned();
    let named = |arguments: Value| json!([{"index": 0, "id": "a", "function": {"name": "weather", "arguments": arguments}}]);
    check(vec![
        (
            "closed at the end again",
            calls(&[
                named(json!("{\"city\":")),
                json!([{"index": 0, "function": {"arguments": "\"Paris\"}"}}]),
                json!([{"index": 0, "function": {"arguments": ""}}]),
            ]),
            one.clone(),
        ),
        (
            "all of it again",
            calls(&[named(json!(paris)), named(json!(paris))]),
            one.clone(),
        ),
        (
            "the whole after the pieces",
            calls(&[
                named(json!("{\"city\":")),
                json!([{"index": 0, "function": {"arguments": "\"Paris\"}"}}]),
                named(json!(paris)),
            ]),
            one.clone(),
        ),
        (
            "one object and no list",
            calls(&[
                json!({"index": 0, "id": "a", "function": {"name": "weather", "arguments": paris}}),
            ]),
            one.clone(),
        ),
        (
            "null among the calls",
            calls(&[
                json!([null, {"index": 0, "id": "a", "function": {"name": "weather", "arguments": paris}}]),
            ]),
            one.clone(),
        ),
    ]);
}

#[test]
fn reasoning_in_tags_is_told_apart() {
    let said = |text: &str| {
        let pieces = text
            .chars()
            .map(|c| delta(json!({"content": c.to_string()})));
        let chunks: Vec<Value> = pieces.chain([end("stop")]).collect();
        let answer = answer(&chunks).unwrap();
        (answer.reasoning, answer.text)
    };
    let told = ("plan".to_owned(), "Hello.".to_owned());
    check(vec![
        ("think", said("<think>plan</think>Hello."), told.clone()),
        (
            "reasoning",
            said("<reasoning>plan</reasoning>\nHello."),
            told.clone(),
        ),
        (
            "begin_of_thought",
            said("<|begin_of_thought|>plan<|end_of_thought|>\nHello."),
            told.clone(),
        ),
        (
            "cohere",
            said("<|START_THINKING|>plan<|END_THINKING|>Hello."),
            told.clone(),
        ),
        (
            "harmony",
            said(
                "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
            ),
            told.clone(),
        ),
        (
            "harmony, final alone",
            said("<|channel|>final<|message|>Hello."),
            (String::new(), "Hello.".to_owned()),
        ),
        (
            "think in the middle",
            said("I <think>plan</think>"),
            (String::new(), "I <think>plan</think>".to_owned()),
        ),
    ]);
}

#[test]
fn reasoning_in_parts_is_told_apart() {
    let told = ("plan".to_owned(), "Hello.".to_owned());
    let parts = |content: Value| {
        let answer = answer(&[delta(json!({"content": content})), end("stop")]).unwrap();
        (answer.reasoning, answer.text)
    };
    check(vec![
        (
            "a part of the content",
            parts(
                json!([{"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]}, {"type": "text", "text": "Hello."}]),
            ),
            told.clone(),
        ),
        (
            "thinking as text",
            parts(
                json!([{"type": "thinking", "thinking": "plan"}, {"type": "text", "text": "Hello."}]),
            ),
            told.clone(),
        ),
        (
            "reasoning as text",
            parts(
                json!([{"type": "reasoning", "text": "plan"}, {"type": "text", "text": "Hello."}]),
            ),
            told.clone(),
        ),
        (
            "a summary",
            parts(
                json!([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "plan"}]}, {"type": "text", "text": "Hello."}]),
            ),
            told.clone(),
        ),
        (
            "output_text",
            parts(json!([{"type": "output_text", "text": "Hello."}])),
            (String::new(), "Hello.".to_owned()),
        ),
        (
            "one object",
            parts(json!({"type": "text", "text": "Hello."})),
            (String::new(), "Hello.".to_owned()),
        ),
    ]);
}

#[test]
fn tokens_are_counted_in_each_form() {
    let counted = |usages: &[Value]| {
        let usages = usages
            .iter()
            .map(|usage| json!({"choices": [], "usage": usage}));
        let chunks: Vec<Value> = [delta(json!({"content": "Hello."})), end("stop")]
            .into_iter()
            .chain(usages)
            .collect();
        let usage = answer(&chunks).unwrap().usage.unwrap_or_default();
        [
            usage.prompt,
            usage.completion,
            usage.cache_read,
            usage.reasoning,
        ]
    };
    check(vec![
        (
            "the total alone tells the answer's",
            counted(&[json!({"prompt_tokens": 11, "total_tokens": 18})]),
            [Some(11), Some(7), None, None],
        ),
        (
            "an estimate before the count",
            counted(&[
                json!({"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}),
                json!({"prompt_tokens": 11, "completion_tokens": 7}),
            ]),
            [Some(11), Some(7), None, None],
        ),
        (
            "growing",
            counted(&[
                json!({"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12}),
                json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}),
            ]),
            [Some(11), Some(7), None, None],
        ),
        (
            "xAI",
            counted(&[
                json!({"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 18, "completion_tokens_details": {"reasoning_tokens": 5}}),
            ]),
            [Some(11), Some(7), None, Some(5)],
        ),
        (
            "nothing but thoughts",
            counted(&[json!({"prompt_tokens": 11, "completion_tokens": 0, "total_tokens": 18})]),
            [Some(11), Some(7), None, None],
        ),
        (
            "Gemini's own names",
            counted(&[
                json!({"promptTokenCount": 11, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 18, "cachedContentTokenCount": 3}),
            ]),
            [Some(11), Some(7), Some(3), Some(5)],
        ),
        (
            "Bedrock's own names",
            counted(&[json!({"inputTokens": 11, "outputTokens": 7, "totalTokens": 18})]),
            [Some(11), Some(7), None, None],
        ),
        (
            "cached twice",
            counted(&[
                json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "cache_read_input_tokens": 8, "prompt_tokens_details": {"cached_tokens": 8}}),
            ]),
            [Some(11), Some(7), Some(8), None],
        ),
    ]);
}

#[test]
fn an_answer_ends_in_each_form() {
    let ended = |choice: Value| {
        let chunks = [
            delta(json!({"content": "Hello."})),
            json!({"choices": [choice]}),
        ];
        let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        of_body(&events.collect::<String>())
            .map(|answer| answer.finish)
            .map_err(|message| message.split(':').next().unwrap_or_default().to_owned())
    };
    let broken = || Err("The model provider broke the answer off".to_owned());
    let with = |reason: &str| ended(json!({"index": 0, "delta": {}, "finish_reason": reason}));
    check(vec![
        ("COMPLETE", with("COMPLETE"), Ok(Finish::Stop)),
        ("MAX_TOKENS", with("MAX_TOKENS"), Ok(Finish::Length)),
        ("eos_token", with("eos_token"), Ok(Finish::Stop)),
        ("stop_sequence", with("stop_sequence"), Ok(Finish::Stop)),
        ("repetition", with("repetition"), broken()),
        ("timeout", with("timeout"), broken()),
        ("cancelled", with("cancelled"), broken()),
        (
            "in the message",
            ended(json!({"index": 0, "delta": {"finish_reason": "stop"}})),
            Ok(Finish::Stop),
        ),
        (
            "an object",
            ended(
                json!({"index": 0, "delta": {}, "finish_reason": {"type": "stop", "matched": 2}}),
            ),
            Ok(Finish::Stop),
        ),
        (
            "an object, length",
            ended(
                json!({"index": 0, "delta": {}, "finish_reason": {"type": "length", "length": 9}}),
            ),
            Ok(Finish::Length),
        ),
        (
            "another index",
            ended(json!({"index": 1, "delta": {}, "finish_reason": "stop"})),
            Err("The model provider's answer was cut off.".to_owned()),
        ),
    ]);
    // The older form's field.
    let whole = |choice: Value| {
        of_body(&json!({"choices": [choice]}).to_string()).map(|answer| answer.text)
    };
    check(vec![(
        "text",
        whole(json!({"index": 0, "text": "Hello.", "finish_reason": "stop"})),
        Ok("Hello.".to_owned()),
    )]);
}

#[test]
fn what_a_server_says_in_place_of_an_answer_is_said() {
    let says = |body: &str, words: &str| {
        let message = of_body(body).err().unwrap_or_default();
        if message.contains(words) {
            words.to_owned()
        } else {
            message
        }
    };
    let rows = [
        ("data: {\"error\":{\"message\":\"no room\"}}\n\n", "no room"),
        (
            "error: {\"code\":500,\"message\":\"no room\"}\n\n",
            "no room",
        ),
        ("event: error\ndata: no room\n\n", "no room"),
        (
            "event: error\ndata: {\"message\":\"no room\"}\n\n",
            "no room",
        ),
        ("data: no room\n\n", "no room"),
        ("no room for you\n", "no room"),
        ("Internal Server Error: no room", "no room"),
        ("{\"message\":\"no room\"}", "no room"),
        ("{\"success\":false,\"message\":\"no room\"}", "no room"),
        (
            "{\"success\":false,\"errors\":[{\"code\":7,\"message\":\"no room\"}]}",
            "no room",
        ),
        (
            "{\"choices\":[{\"index\":0,\"error\":{\"code\":502,\"message\":\"no room\"},\"finish_reason\":\"error\"}]}",
            "no room",
        ),
        (
            "{\"choices\":[{\"index\":0,\"delta\":{\"error\":{\"message\":\"no room\"}},\"finish_reason\":\"error\"}]}",
            "no room",
        ),
        ("{\"fault\":{\"faultstring\":\"no room\"}}", "no room"),
        (
            "{\"data\":{\"error\":{\"message\":\"no room\"}}}",
            "no room",
        ),
        (
            "{\"result\":{\"error_msg\":\"no room\",\"error_code\":7}}",
            "no room",
        ),
        (
            "{\"status\":429,\"title\":\"no room\",\"detail\":null}",
            "no room",
        ),
        ("\"no room\"", "no room"),
        ("[\"no room\"]", "no room"),
    ];
    check(
        rows.iter()
            .map(|(body, words)| (*body, says(body, words), (*words).to_owned()))
            .collect(),
    );
}
