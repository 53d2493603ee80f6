//! What is left out of a prompt, and how its tokens are estimated.

use super::*;
use crate::model::{Kept, ToolCall};
use proptest::prelude::*;

fn user(content: &str) -> Message {
    Message::User {
        content: content.to_owned(),
    }
}

fn assistant(content: &str) -> Message {
    Message::Assistant {
        content: Some(content.to_owned()),
        tool_calls: Vec::new(),
        kept: Kept::default(),
    }
}

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        model: "m".to_owned(),
        messages,
        ..ChatRequest::default()
    }
}

/// Instructions, three exchanges of about 100 tokens, and a newest one with a call of a tool.
fn long() -> ChatRequest {
    let text = "x".repeat(120);
    let mut messages = vec![Message::System {
        content: "Be brief.".to_owned(),
    }];
    for n in 0..3 {
        messages.push(user(&format!("{n}{text}")));
        messages.push(assistant(&text));
    }
    messages.push(user("now"));
    messages.push(Message::Assistant {
        content: None,
        tool_calls: vec![ToolCall {
            id: "1".to_owned(),
            name: "clock".to_owned(),
            arguments: "{}".to_owned(),
        }],
        kept: Kept::default(),
    });
    messages.push(Message::Tool {
        tool_call_id: "1".to_owned(),
        content: "noon".to_owned(),
    });
    request(messages)
}

/// Nothing of the turn itself stands in it.
fn fit_all(
    request: &mut ChatRequest,
    window: u32,
    counted: Option<PromptSize>,
    most: Option<usize>,
) -> Result<PromptSize, String> {
    let said = request.messages.len();
    fit(request, said, window, counted, most)
}

fn fitted(
    window: u32,
    counted: Option<PromptSize>,
    most: Option<usize>,
) -> (ChatRequest, PromptSize) {
    let mut request = long();
    let size = fit_all(&mut request, window, counted, most).unwrap();
    (request, size)
}

#[test]
fn the_oldest_whole_exchanges_are_left_out_and_no_more() {
    let (whole, size) = fitted(1000, None, None);
    assert_eq!(whole.messages, long().messages);
    assert_eq!(size.exchanges_left_out, 0);
    let (less, size) = fitted(500, None, None);
    assert_eq!(size.exchanges_left_out, 1);
    assert_eq!(less.messages[0], long().messages[0]);
    assert_eq!(less.messages[1..], long().messages[3..]);
    let (least, size) = fitted(220, None, None);
    assert_eq!(size.exchanges_left_out, 3);
    assert_eq!(least.messages[1..], long().messages[7..]);
}

#[test]
fn what_was_left_out_stays_out() {
    let (request, size) = fitted(1000, None, Some(2));
    assert_eq!(size.exchanges_left_out, 2);
    assert_eq!(request.messages[1..], long().messages[5..]);
}

#[test]
fn what_is_erased_meanwhile_takes_the_place_of_what_was_left_out() {
    let mut request = long();
    request.messages.drain(1..3);
    let size = fit_all(&mut request, 1000, None, Some(2)).unwrap();
    assert_eq!(size.exchanges_left_out, 1);
    assert_eq!(request.messages[1..], long().messages[5..]);
    let mut request = long();
    request.messages.drain(1..7);
    let size = fit_all(&mut request, 1000, None, Some(2)).unwrap();
    assert_eq!(size.exchanges_left_out, 0);
    assert_eq!(size.exchanges_sent, Some(1));
}

#[test]
fn the_providers_count_corrects_the_estimate() {
    let bytes = fitted(1000, None, None).1.bytes;
    let counted = |tokens| {
        Some(PromptSize {
            bytes,
            tokens: Some(tokens),
            exchanges_left_out: 0,
            exchanges_sent: None,
        })
    };
    assert_eq!(fitted(500, counted(200), None).1.exchanges_left_out, 0);
    assert_eq!(fitted(1000, counted(bytes), None).1.exchanges_left_out, 2);
    let unknown = Some(PromptSize {
        bytes,
        tokens: None,
        exchanges_left_out: 0,
        exchanges_sent: None,
    });
    assert_eq!(fitted(500, unknown, None).1.exchanges_left_out, 1);
}

#[test]
fn the_answer_has_its_room() {
    let mut request = long();
    request.parameters.max_tokens = Some(850);
    assert_eq!(
        fit_all(&mut request, 1000, None, None)
            .unwrap()
            .exchanges_left_out,
        3
    );
    let mut request = long();
    request
        .parameters
        .extra
        .insert("max_completion_tokens".to_owned(), 1.into());
    assert_eq!(
        fit_all(&mut request, 400, None, None)
            .unwrap()
            .exchanges_left_out,
        0
    );
}

#[test]
fn a_newest_exchange_that_cannot_fit_is_refused_with_what_to_do() {
    let mut request = request(vec![user("a"), assistant("b"), user(&"x".repeat(3000))]);
    let said = fit_all(&mut request, 256, None, None).unwrap_err();
    assert!(said.contains("window of 256 tokens"), "{said}");
    assert!(said.contains("64 of them"), "{said}");
    assert!(said.contains("maxOutputTokens"), "{said}");
}

#[test]
fn an_answer_before_the_first_question_goes_first() {
    let mut request = request(vec![assistant(&"x".repeat(900)), user("now")]);
    let size = fit_all(&mut request, 256, None, None).unwrap();
    assert_eq!(size.exchanges_left_out, 1);
    assert_eq!(request.messages, [user("now")]);
}

#[test]
fn older_results_are_shortened_before_anything_is_left_out() {
    let result = |id: &str| Message::Tool {
        tool_call_id: id.to_owned(),
        content: "y".repeat(900),
    };
    let mut messages = Vec::new();
    for id in ["1", "2"] {
        messages.extend([
            user("what?"),
            assistant("let me see"),
            result(id),
            assistant("so"),
        ]);
    }
    messages.push(user("now"));
    let is_whole = |message: &Message| matches!(message, Message::Tool { content, .. } if content.len() == 900);
    for (window, whole, left_out) in [(1200, 2, 0), (900, 1, 0), (600, 0, 0), (340, 0, 1)] {
        let mut request = request(messages.clone());
        let size = fit_all(&mut request, window, None, None).unwrap();
        let count = request
            .messages
            .iter()
            .filter(|message| is_whole(message))
            .count();
        assert_eq!(
            (count, size.exchanges_left_out),
            (whole, left_out),
            "{window}"
        );
        let bytes: u64 = request.messages.iter().map(bytes_of).sum();
        assert_eq!(size.bytes, bytes);
    }
    // Those of the turn itself stay.
    let mut request = request(messages.clone());
    fit(&mut request, 0, 900, None, None).unwrap();
    assert_eq!(request.messages, messages);
}

proptest! {
    #[test]
    fn the_estimate_grows_with_the_bytes(bytes in 0..10_000_000_u64, more in 0..10_000_u64,
        known in 0..10_000_000_u64, count in 0..u64::MAX) {
        let counted = Some(PromptSize { bytes: known, tokens: Some(count), exchanges_left_out: 0, exchanges_sent: None });
        prop_assert!(tokens(bytes, counted) <= tokens(bytes + more, counted));
        prop_assert!(tokens(bytes, counted) <= bytes + 1);
        prop_assert!(tokens(bytes, counted) >= bytes / (BYTES_A_TOKEN_MOST + 1));
    }
}
