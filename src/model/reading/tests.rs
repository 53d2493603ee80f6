//! An answer is the same wherever its bytes are split.

use super::*;
use proptest::prelude::*;
use serde_json::json;

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
    let mut reading = Reading {
        first_byte_at: None,
        shape: Shape::Unknown(Vec::new()),
        assembly: Assembly::default(),
        key: None,
        status: 200,
    };
    let mut said = String::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([bytes.len()]) {
        reading
            .take(&bytes[from..to], &mut |text| said.push_str(text))
            .unwrap();
        from = to;
    }
    (reading.assembly.complete().unwrap(), said)
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
