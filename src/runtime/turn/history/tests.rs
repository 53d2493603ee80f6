//! What of earlier turns a model is told.

use super::*;
use crate::runtime::turn::prompt::tests::definition;
use crate::store::turns::{Said, Tool};
use serde_json::{Value, json};

const DONE: Uuid = Uuid::from_u128(1);
const FAILED: Uuid = Uuid::from_u128(2);
const NOW: Uuid = Uuid::from_u128(3);

fn said(position: i64, role: MessageRole, content: &str, run_id: Uuid) -> Said {
    Said {
        position,
        run_id,
        role,
        content: content.to_owned(),
    }
}

fn past(run_id: Uuid, step: i32, kind: StepKind, request: Value, result: Value) -> PastStep {
    PastStep {
        run_id,
        step,
        kind,
        request,
        result,
    }
}

fn asks(run_id: Uuid, step: i32, cities: &[&str]) -> PastStep {
    let call = |city: &&str| json!({"id": "call_0", "name": "weather", "arguments": format!("{{\"city\":\"{city}\"}}")});
    let calls: Vec<Value> = cities.iter().map(call).collect();
    let result = json!({"text": "Let me see.", "toolCalls": calls, "finishReason": null});
    past(run_id, step, StepKind::Model, json!({}), result)
}

fn answers(run_id: Uuid, step: i32, (model_step, call): (i32, usize), output: &str) -> PastStep {
    let request = json!({"modelStep": model_step, "call": call});
    let result = json!({"isError": false, "output": output});
    past(run_id, step, StepKind::Tool, request, result)
}

/// A turn that was answered, one that failed between two calls, and the turn that asks.
fn turn() -> Turn {
    let mut turn = definition().turn;
    turn.input = None;
    turn.tools = vec![tool()];
    turn.history = vec![
        said(1, MessageRole::User, "Paris?", DONE),
        said(2, MessageRole::Assistant, "Sun.", DONE),
        said(3, MessageRole::User, "Kyiv and Oslo?", FAILED),
        said(4, MessageRole::User, "And now?", NOW),
    ];
    turn.past = vec![
        asks(DONE, 1, &["Paris"]),
        answers(DONE, 2, (1, 0), "sun"),
        asks(FAILED, 1, &["Kyiv", "Oslo"]),
        answers(FAILED, 2, (1, 0), "rain"),
        asks(FAILED, 3, &["Rome"]),
        past(
            FAILED,
            4,
            StepKind::Tool,
            json!("?"),
            json!({"simulated": true}),
        ),
    ];
    turn
}

fn tool() -> Tool {
    serde_json::from_value(json!({
        "id": Uuid::nil(), "name": "weather", "description": "", "argumentsSchema": {},
        "target": "http", "url": "http://a/", "timeoutMs": 1, "idempotent": true, "dryRun": "simulate",
        "headers": [], "signingSecret": null,
    }))
    .unwrap()
}

/// The messages in short: the first letter of the role, and what it says or calls.
fn short(messages: &[Message]) -> Vec<String> {
    let short = |message: &Message| match message {
        Message::System { content } => format!("s {content}"),
        Message::User { content } => format!("u {content}"),
        Message::Tool {
            tool_call_id,
            content,
        } => format!("t {tool_call_id} {content}"),
        Message::Assistant {
            content,
            tool_calls,
            ..
        } => {
            let calls: Vec<&str> = tool_calls.iter().map(|call| call.id.as_str()).collect();
            format!("a {} {}", content.as_deref().unwrap_or(""), calls.join(" "))
        }
    };
    messages.iter().map(short).collect()
}

#[test]
fn calls_stand_with_their_results_and_none_without() {
    assert_eq!(
        short(&messages(&turn())),
        [
            "u Paris?",
            "a Let me see. c00100100",
            "t c00100100 sun",
            "a Sun. ",
            "u Kyiv and Oslo?",
            "a Let me see. c00300100",
            "t c00300100 rain",
            "u And now?",
        ]
    );
}

#[test]
fn without_tools_or_steps_messages_alone_are_sent() {
    let mut turn = turn();
    turn.tools.clear();
    let alone = ["u Paris?", "a Sun. ", "u Kyiv and Oslo?", "u And now?"];
    assert_eq!(short(&messages(&turn)), alone);
    turn.tools = vec![tool()];
    turn.past.clear();
    assert_eq!(short(&messages(&turn)), alone);
}

#[test]
fn a_call_that_a_reviewer_changed_says_so_later_too() {
    let mut turn = turn();
    turn.past[1].request = json!({"modelStep": 1, "call": 0, "decided": {"decision": "approved", "arguments": {"city": "Nice"}, "isEdited": true}});
    let told = short(&messages(&turn));
    assert!(told[2].contains("{\"city\":\"Nice\"}"), "{told:?}");
}
