//! `call: guardrail` as it is taken. What is refused is in `refused.jsonl`.

use super::super::tree::{Call, GuardrailCall, TaskKind, Template};
use super::{check, graph, with_task};
use crate::guardrails::Point;
use serde_json::{Value, json};

fn taken(with: &Value) -> GuardrailCall {
    let definition = with_task(&json!({"call": "guardrail", "with": with}));
    let flow = check(&definition).unwrap_or_else(|faults| panic!("{with}: {faults:?}"));
    assert_eq!(flow.steps(), ["/do/0/it"]);
    let node = &graph::of(&flow).children[0];
    assert_eq!(
        (json!(node.kind), node.target.as_ref()),
        (json!("guardrail"), None)
    );
    let task = flow.tasks.into_iter().next().unwrap();
    let TaskKind::Call(Call::Guardrail(call)) = task.kind else {
        panic!("{task:?}")
    };
    call
}

#[test]
fn guardrails_judge_what_is_written_or_computed() {
    let check = json!({"builtin": "pattern", "at": ["input", "output"], "action": "redact",
        "config": {"patterns": ["a$", "\\$\\{x"]}});
    let call = taken(&json!({"text": "as it is", "guardrails": [check]}));
    assert_eq!(call.point, Point::Output);
    assert!(matches!(&call.text, Template::Literal(text) if text == "as it is"));
    assert_eq!(call.guardrails, json!([check]));
    for (point, named) in [
        ("input", Point::Input),
        ("tool.result", Point::ToolResult),
        ("output", Point::Output),
    ] {
        let check = json!({"builtin": "pii", "name": "own", "at": [point], "action": "block",
            "config": {"kinds": ["card"]}, "onError": "allow-unsafely"});
        let other = json!({"builtin": "secrets", "at": ["input"], "action": "block"});
        let with = json!({"text": "${ .text }", "point": point, "guardrails": [check, other]});
        let call = taken(&with);
        assert_eq!(call.point, named);
        assert!(matches!(call.text, Template::Expression(_)));
        assert_eq!(call.guardrails, json!([check, other]));
    }
}
