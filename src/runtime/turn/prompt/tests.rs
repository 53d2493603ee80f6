//! What a model is asked of a turn.

use super::*;
use crate::runtime::TraceContext;
use crate::runtime::turn::definition::Limits;
use crate::store::steps::{Prices, StepStatus};
use crate::store::turns::Turn;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

pub(in crate::runtime::turn) fn definition() -> Definition {
    Definition {
        turn: Turn {
            instructions: "Be brief.".to_owned(),
            model: "m".to_owned(),
            parameters: json!({}),
            limits: json!({}),
            output_schema: None,
            guardrails: json!([]),
            streaming: crate::guardrails::Streaming::Held,
            policies: Vec::new(),
            model_provider_id: Uuid::nil(),
            base_url: "http://127.0.0.1:1".to_owned(),
            api_key_name: None,
            api_key_secret: None,
            provider_options: json!({}),
            prices: Prices::default(),
            context_window: None,
            last_prompt: None,
            tools: Vec::new(),
            history: Vec::new(),
            past: Vec::new(),
            journal: Vec::new(),
            input: Some(json!({"message": "Weather?"})),
            levels: 1,
        },
        limits: Limits::default(),
        asked: Default::default(),
        is_dry_run: false,
        read_at: std::time::Instant::now(),
    }
}

fn step(step: i32, kind: StepKind, request: Value, result: Value) -> Step {
    Step {
        step,
        kind,
        name: String::new(),
        path: String::new(),
        status: StepStatus::Completed,
        attempt: 1,
        failures: 0,
        request,
        result: Some(result),
        started_at: OffsetDateTime::UNIX_EPOCH,
        completed_at: None,
    }
}

fn origin(step: i32) -> Origin {
    Origin {
        run_id: Uuid::nil(),
        step,
        attempt: 1,
        dry_run: false,
        trace: TraceContext::fresh(),
    }
}

/// Two calls with the same id, of which the first is signed, and their results.
fn journal(provider_id: Uuid, model: &str) -> Vec<Step> {
    let call = |city: &str| json!({"id": "call_0", "name": "weather", "arguments": format!("{{\"city\":\"{city}\"}}")});
    let said = json!({
        "text": "", "toolCalls": [call("Paris"), call("Kyiv")], "finishReason": "tool_calls", "reasoning": "hm",
        "kept": {"message": {"reasoning_content": "hm"}, "calls": [{"signature": "SIG"}]},
        "keptFor": {"providerId": provider_id, "model": model},
    });
    let result = |call: usize, output: &str| {
        let result = json!({"isError": false, "output": output});
        let number = 2 + i32::try_from(call).unwrap();
        step(
            number,
            StepKind::Tool,
            json!({"modelStep": 1, "call": call}),
            result,
        )
    };
    vec![
        step(1, StepKind::Model, json!({}), said),
        result(0, "sun"),
        result(1, "rain"),
        step(4, StepKind::Model, json!({}), json!({})),
    ]
}

#[test]
fn what_a_model_gave_is_handed_back_to_it_alone() {
    let asked = |provider_id, model: &str| {
        let prompt = prompt(&definition(), &journal(provider_id, model), &origin(4)).unwrap();
        match &prompt.request.messages[2] {
            Message::Assistant { kept, .. } => kept.clone(),
            other => panic!("{other:?}"),
        }
    };
    let kept = asked(Uuid::nil(), "m");
    assert_eq!(kept.message["reasoning_content"], "hm");
    assert_eq!(kept.calls[0]["signature"], "SIG");
    assert!(asked(Uuid::nil(), "other").is_empty());
    assert!(asked(Uuid::max(), "m").is_empty());
}

#[test]
fn calls_have_ids_of_nine_letters_and_digits_whatever_the_server_sent() {
    let prompt = prompt(&definition(), &journal(Uuid::nil(), "m"), &origin(4)).unwrap();
    let mut ids = Vec::new();
    for message in &prompt.request.messages {
        match message {
            Message::Assistant { tool_calls, .. } => {
                ids.extend(tool_calls.iter().map(|call| call.id.clone()));
            }
            Message::Tool { tool_call_id, .. } => ids.push(tool_call_id.clone()),
            _ => {}
        }
    }
    assert_eq!(ids, ["c00000100", "c00000101", "c00000100", "c00000101"]);
    assert_eq!(call_id(200, 199, 127), "c05k05j3j");
    assert_eq!(call_id(i64::MAX, i32::MAX, usize::MAX).len(), 9);
}

#[test]
fn a_choice_of_a_tool_holds_until_one_was_called() {
    let chosen = |choice: &str, step: i32| {
        let mut definition = definition();
        definition.turn.parameters = json!({"toolChoice": choice});
        let mut journal = journal(Uuid::nil(), "m");
        journal.truncate(usize::try_from(step).unwrap());
        let prompt = prompt(&definition, &journal, &origin(step));
        prompt.map(|prompt| prompt.request.parameters.tool_choice)
    };
    assert_eq!(chosen("required", 1), Ok(Some("required".to_owned())));
    assert_eq!(chosen("required", 4), Ok(None));
    assert_eq!(chosen("none", 4), Ok(Some("none".to_owned())));
    let refused = chosen("no-such-tool", 1).unwrap_err();
    assert!(refused.contains("no-such-tool"), "{refused}");
}
