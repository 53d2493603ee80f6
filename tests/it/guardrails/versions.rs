//! Guardrails of an agent's version: kept as they were given, and refused with the place of what is wrong.

use crate::harness::{App, made};
use serde_json::{Value, json};

/// A server, the path of an agent's versions, and the body of one.
fn with_agent() -> (App, String, Value) {
    let app = App::start();
    let project = made::project(&app);
    let provider = made::provider(&app);
    let agent = made::agent(&app, &project, "helper");
    let body = made::version(&provider, "1.0.0");
    (app, format!("/v1/agents/{agent}/versions"), body)
}

#[test]
fn a_version_keeps_its_guardrails_and_without_any_has_none() {
    let (app, versions, mut body) = with_agent();
    let made = app.post(&versions, &body).expect(201);
    assert_eq!(made["guardrails"], json!([]));
    assert_eq!(made["streaming"], json!("held"));
    body["version"] = json!("1.1.0");
    body["streaming"] = json!("unchecked");
    body["guardrails"] = json!([
        {"builtin": "secrets", "at": ["input", "tool.result", "output"], "action": "redact"},
        {"builtin": "tool-arguments", "name": "mail", "at": ["tool.arguments"], "action": "approve",
            "config": {"tool": "send_mail", "schema": {"type": "object", "required": ["to"]}}, "onBlock": "fail",
            "onError": "allow-unsafely"},
        {"builtin": "pattern", "at": ["output"], "action": "block", "config": {"patterns": ["secret project"]},
            "onBlock": "retry", "retries": 2},
        {"builtin": "links", "at": ["input", "output"], "action": "block", "config": {"hosts": ["*.example.com"]},
            "onBlock": "answer", "answer": "Not that."},
        {"builtin": "hidden-text", "at": ["tool.result"], "action": "block", "onBlock": "tell"},
    ]);
    let made = app.post(&versions, &body).expect(201);
    assert_eq!(made["guardrails"], body["guardrails"]);
    assert_eq!(made["streaming"], json!("unchecked"));
    let read = app.get(&format!("{versions}/1.1.0")).expect(200);
    assert_eq!(read, made);
}

#[test]
fn what_is_wrong_with_a_versions_guardrails_is_named_by_its_path() {
    let (app, versions, body) = with_agent();
    let good = json!({"builtin": "pii", "at": ["output"], "action": "redact"});
    let approves = json!({"builtin": "pii", "at": ["tool.arguments"], "action": "approve", "approval": {"requiredRole": "A B"}});
    for (guardrails, at) in [
        (
            json!([{"pack": "weather", "name": "no-advice", "at": ["output"], "action": "block"}]),
            "$.guardrails[0].pack",
        ),
        (
            json!([good, {"builtin": "pii", "at": ["output"], "action": "redact", "mode": 1}]),
            "$.guardrails[1].mode",
        ),
        (
            json!([{"builtin": "pattern", "at": ["output"], "action": "block", "config": {"patterns": ["a", "("]}}]),
            "$.guardrails[0].config.patterns[1]",
        ),
        (
            json!([{"builtin": "tool-arguments", "at": ["tool.arguments"], "action": "block",
            "config": {"schema": {"type": "object", "properties": {"a": {"$ref": "http://x/"}}}}}]),
            "$.guardrails[0].config.schema.properties.a.$ref",
        ),
        (
            json!([good, approves]),
            "$.guardrails[1].approval.requiredRole",
        ),
        (json!(vec![good.clone(); 21]), "$.guardrails"),
    ] {
        let mut new = body.clone();
        new["guardrails"] = guardrails;
        let refused = app.post(&versions, &new).expect_error(400, "invalid-body");
        assert_eq!(refused["details"]["path"], json!(at), "{refused}");
    }
    let mut new = body.clone();
    new["streaming"] = json!("chunked");
    let refused = app.post(&versions, &new).expect_error(400, "invalid-body");
    assert_eq!(refused["details"]["path"], json!("$.streaming"));
    assert_eq!(app.get(&versions).expect(200)["data"], json!([]));
}

#[test]
fn a_text_is_no_answer_of_a_version_with_an_output_schema() {
    let (app, versions, mut body) = with_agent();
    let good = json!({"builtin": "pii", "at": ["output"], "action": "redact"});
    let answers = |at: Value| json!([good, {"builtin": "pii", "at": at, "action": "block", "onBlock": "answer", "answer": "No."}]);
    body["outputSchema"] = json!({"type": "object"});
    body["guardrails"] = answers(json!(["input", "output"]));
    let refused = app.post(&versions, &body).expect_error(400, "invalid-body");
    let at = "$.guardrails[1].onBlock";
    assert_eq!(refused["details"]["path"], json!(at), "{refused}");
    body["outputSchema"] = Value::Null;
    app.post(&versions, &body).expect(201);
}
