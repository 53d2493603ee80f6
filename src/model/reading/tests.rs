//! Bodies as servers send them, byte by byte and at once.

use super::any_bytes::answer_to;
use super::*;
use crate::model::Finish;
use proptest::prelude::*;
use serde_json::json;

const USAGE: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#;
const HELLO: &str =
    r#"{"choices":[{"index":0,"delta":{"content":"Hello there."},"finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const WHOLE: &str =
    r#"{"choices":[{"index":0,"message":{"content":"Hello there."},"finish_reason":"stop"}]}"#;

/// The answer to a body that comes in these pieces, and what was shown of its text.
fn read<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<Completion, ModelFailure>, String) {
    let mut said = String::new();
    let answer = answer_to(pieces, &mut |piece| {
        if let Piece::Text(text) = piece {
            said.push_str(text);
        }
    });
    (answer, said)
}

#[track_caller]
fn check_says_hello(body: &str) {
    for (answer, said) in [read([body.as_bytes()]), read(body.as_bytes().chunks(1))] {
        let answer = answer.unwrap_or_else(|failure| panic!("{body:?}: {failure:?}"));
        assert_eq!(
            (answer.text.as_str(), said.as_str()),
            ("Hello there.", "Hello there."),
            "{body:?}"
        );
        assert_eq!(answer.finish, Finish::Stop);
    }
}

#[track_caller]
fn check_fails(body: &str, words: &str) {
    for (answer, _) in [read([body.as_bytes()]), read(body.as_bytes().chunks(1))] {
        let failure = answer.expect_err(body);
        let message = failure.why.message;
        assert!(message.contains(words), "{body:?}: {message}");
    }
}

#[test]
fn every_framing_is_read() {
    for body in [
        format!("data: {HELLO}\n\ndata: {STOP}\n\ndata: {USAGE}\n\ndata: [DONE]\n\n"),
        format!("data: {HELLO}\ndata: {STOP}\ndata: {USAGE}\ndata: [DONE]\n"),
        format!("data: {HELLO}\n\ndata: {STOP}"),
        format!("data: {HELLO}\n\ndata: [DONE]"),
        format!("\u{feff}data:{HELLO}\r\rdata:{STOP}\r\r"),
        format!(
            ": hello\n\nid: 4\nevent: message\ndata: {HELLO}\n\nevent: ping\ndata:\n\ndata: {STOP}\n\n"
        ),
        format!("{HELLO}\n{STOP}\n"),
        format!("{HELLO}{STOP}[DONE]"),
        format!("[{HELLO},\n{STOP}]"),
        format!("{HELLO}\n\ndata: {STOP}\n\n"),
        format!("data: {HELLO}\n\n{STOP}\n"),
        format!("\u{feff} \r\n\t{WHOLE}\n"),
        WHOLE.replace("\"stop\"", "null"),
        WHOLE.replace(',', ",\n  "),
        format!("data: {WHOLE}\n\n"),
        format!("data: {HELLO}\n\ndata: {STOP}\n\ndata: {{\"cut"),
        format!("data: {HELLO}\n\ndata: [DONE]\n\ndata: {HELLO}\n\n"),
        format!("data: {}\n\ndata: {STOP}\n\n", HELLO.replace("null", "NaN")),
    ] {
        check_says_hello(&body);
    }
}

#[test]
fn a_lone_surrogate_is_replaced() {
    let body = format!(
        "data: {}\n\ndata: {STOP}\n\n",
        HELLO.replace("lo ", r"lo \ud83d")
    );
    let (answer, _) = read([body.as_bytes()]);
    assert_eq!(answer.unwrap().text, "Hello \u{fffd}there.");
}

#[test]
fn what_is_no_whole_answer_fails() {
    for (body, words) in [
        (String::new(), "cut off"),
        (format!("data: {HELLO}\n\n"), "cut off"),
        (format!("data: {HELLO}\n\ndata: {{\"choi"), "cut off"),
        (HELLO.to_owned() + "\n", "cut off"),
        ("{\"choices\":[".to_owned(), "not valid JSON"),
        ("{\"choices\":null}".to_owned(), "no choices"),
        ("\"no\"".to_owned(), "JSON object was expected"),
        (" <!doctype html>".to_owned(), "web page"),
        ("data: nonsense\n\n".to_owned(), "not JSON"),
        (format!("data: {STOP}\n\ndata: [DONE]\n\n"), "empty answer"),
        (
            "event: error\ndata: overloaded\n\n".to_owned(),
            "overloaded",
        ),
        (
            format!(
                "data: {HELLO}\n\ndata: {}\n\n",
                STOP.replace("stop", "error")
            ),
            "\"error\"",
        ),
    ] {
        check_fails(&body, words);
    }
    check_fails(&" ".repeat(70_000), "blanks");
}

/// Feeds the piece again and again until the answer fails. Returns what was fed, in bytes, and the failure.
fn flood(start: &str, piece: &str) -> (usize, String) {
    let mut reading = Reading::new(Hidden::default(), 200, Vec::new());
    reading.take(start.as_bytes(), &mut |_| {}).unwrap();
    let mut fed = 0;
    loop {
        fed += piece.len();
        assert!(fed < 64 * 1024 * 1024, "{}", &piece[..60.min(piece.len())]);
        if let Err(failure) = reading.take(piece.as_bytes(), &mut |_| {}) {
            return (fed, failure.why.message);
        }
    }
}

#[test]
fn what_a_server_sends_without_end_is_bounded() {
    let kilobytes = "x".repeat(100 * 1024);
    let delta = |fields: &str| format!("data: {{\"choices\":[{{\"delta\":{fields}}}]}}\n\n");
    for (start, piece, words) in [
        ("data: ", kilobytes.clone(), "16 MiB"),
        (": ", kilobytes.clone(), "16 MiB"),
        ("{\"a\":\"", kilobytes.clone(), "16 MiB"),
        (": x\n", format!("data: {kilobytes}\n"), "16 MiB"),
        (
            "",
            delta(&format!("{{\"content\":\"{kilobytes}\"}}")),
            "text is longer",
        ),
        (
            "",
            delta(&format!("{{\"refusal\":\"{kilobytes}\"}}")),
            "refusal is longer",
        ),
        (
            "",
            delta(&format!("{{\"reasoning_content\":\"{kilobytes}\"}}")),
            "such as reasoning",
        ),
        (
            "",
            delta(&format!(
                "{{\"reasoning_details\":[{{\"data\":\"{kilobytes}\"}}]}}"
            )),
            "such as reasoning",
        ),
        (
            "",
            delta(&format!(
                "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"f\",\"arguments\":\"{kilobytes}\"}}}}]}}"
            )),
            "arguments of its calls",
        ),
        (
            "",
            delta(
                "{\"tool_calls\":[{\"id\":\"\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
            ),
            "128 tools",
        ),
    ] {
        let (fed, message) = flood(start, &piece);
        assert!(message.contains(words), "{message} after {fed} bytes");
    }
}

#[test]
fn deep_json_ends_no_thread() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let arguments = json!(deep).to_string();
    for body in [
        format!("data: {{\"choices\":[{{\"delta\":{{\"x\":{deep}}}}}]}}\n\n"),
        deep.clone(),
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"function\":{{\"name\":\"weather\",\"arguments\":{arguments}}}}}]}}}}]}}\n\ndata: {STOP}\n\n"
        ),
    ] {
        let (answer, _) = read([body.as_bytes()]);
        if let Ok(answer) = answer {
            assert_eq!(answer.tool_calls[0].arguments, deep);
        }
    }
    let many = format!("data: [{}0]\n\n", "0,".repeat(600_000));
    check_fails(&many, "500,000 JSON values");
}

#[test]
fn many_small_pieces_of_reasoning_are_no_large_answer() {
    let filler = "x".repeat(250);
    let piece = format!(
        "data: {{\"id\":\"{filler}\",\"choices\":[{{\"delta\":{{\"reasoning_content\":\" tok\"}}}}]}}\n\n"
    );
    let mut body = piece.repeat(20_000).into_bytes();
    body.extend_from_slice(format!("data: {HELLO}\n\ndata: {STOP}\n\n").as_bytes());
    let (answer, _) = read(body.chunks(8192));
    let answer = answer.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.reasoning.len()),
        ("Hello there.", 80_000)
    );
}

/// Pieces of bodies, whole and broken.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let texts = prop::sample::select(vec![
        "data: ",
        "data:",
        "\n",
        "\n\n",
        "\r",
        ": x\n",
        "event: error\n",
        "[DONE]",
        HELLO,
        STOP,
        USAGE,
        WHOLE,
        "{",
        "}",
        "[",
        "]",
        "\"",
        "{\"choices\":[{\"delta\":",
        "}]}",
        "{\"content\":\"<think>",
        "</think>\"}",
        "\\ud83d",
        "NaN",
        "null",
        "\u{feff}",
        "{\"error\":1}",
        "{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"weather\",\"arguments\":\"{}\"}}]}",
        "{\"tool_calls\":[{\"function\":{\"arguments\":\"\\\"{\"}}]}",
        "{\"reasoning_details\":[{\"index\":0,\"text\":\"a\"}]}",
        "{\"message\":{\"content\":[{\"thinking\":[{\"text\":\"a\"}]}]}}",
    ]);
    prop_oneof![
        8 => texts.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn no_body_panics_and_any_split_gives_the_same(
        pieces in prop::collection::vec(piece(), 0..24),
        size in 1_usize..64,
    ) {
        let body = pieces.concat();
        let at_once = read([body.as_slice()]);
        let split = read(body.chunks(size));
        prop_assert_eq!(&split.0, &at_once.0);
        if at_once.0.is_ok() {
            prop_assert_eq!(&split.1, &at_once.1);
        }
    }
}

fn recorded_stream() -> Vec<u8> {
    let pieces = [
        json!({"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "é€"}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "😀 x"}}]}),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"k\""}}]}}]}),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "function": {"arguments": ":1}"}}]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ];
    let mut text = "\u{feff}: hello\r\n\r\n".to_owned();
    for piece in pieces {
        text.push_str(&format!("data: {piece}\r\n\r\n"));
    }
    text.push_str("data: [DONE]\n\n");
    text.into_bytes()
}

fn read_in_pieces(bytes: &[u8], cuts: &[usize]) -> (Completion, String) {
    let mut reading = Reading::new(Hidden::default(), 200, Vec::new());
    let mut said = String::new();
    let mut on_piece = |piece: Piece<'_>| {
        if let Piece::Text(text) = piece {
            said.push_str(text);
        }
    };
    let mut from = 0;
    for to in cuts.iter().copied().chain([bytes.len()]) {
        reading.take(&bytes[from..to], &mut on_piece).unwrap();
        from = to;
    }
    (reading.complete(&mut on_piece).unwrap(), said)
}

proptest! {
    #[test]
    fn an_answer_split_anywhere_is_the_same(cuts in prop::collection::vec(0_usize..4096, 0..30)) {
        let bytes = recorded_stream();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).collect();
        cuts.sort_unstable();
        let (completion, said) = read_in_pieces(&bytes, &cuts);
        prop_assert_eq!(&completion.text, "é€😀 x");
        prop_assert_eq!(&said, "é€😀 x");
        prop_assert_eq!(&completion.tool_calls[0].arguments, "{\"k\":1}");
        prop_assert_eq!(completion.usage.unwrap().prompt, Some(3));
    }
}

#[test]
fn an_answer_byte_by_byte_is_the_same() {
    let bytes = recorded_stream();
    let cuts: Vec<usize> = (1..bytes.len()).collect();
    assert_eq!(read_in_pieces(&bytes, &cuts), read_in_pieces(&bytes, &[]));
}
