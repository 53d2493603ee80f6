//! `POST /v1/guardrails/try`: what guardrails make of a text, with the policies and without.

use crate::harness::{App, made};
use serde_json::{Value, json};

const TRY: &str = "/v1/guardrails/try";

/// A text with a card's number, which no answer but the text that goes on may have.
const CARD: &str = "4111 1111 1111 1111";

fn start() -> (App, String) {
    let app = App::start();
    let project = made::project(&app);
    (app, project)
}

fn body(project: &str, point: &str, text: &str, guardrails: Value) -> Value {
    json!({"projectId": project, "point": point, "text": text, "guardrails": guardrails})
}

fn pii(point: &str, action: &str) -> Value {
    json!({"builtin": "pii", "at": [point], "action": action})
}

#[test]
fn the_gravest_verdict_counts_and_what_matched_is_not_quoted() {
    let (app, project) = start();
    let links = json!({"builtin": "links", "at": ["tool.arguments"], "action": "block"});
    let text = format!("Card {CARD}, mail ada@example.com");
    let cards = json!({"builtin": "pii", "name": "cards", "at": ["tool.arguments"], "action": "redact", "config": {"kinds": ["card"]}});
    let mails = json!({"builtin": "pii", "name": "mails", "at": ["tool.arguments"], "action": "approve", "config": {"kinds": ["email"]}});
    let tried = |text: &str, guardrails: Value| {
        let answer = app.post(TRY, &body(&project, "tool.arguments", text, guardrails));
        answer.expect(200)
    };
    let answer = tried("nothing", json!([cards, mails, links]));
    assert_eq!(answer["verdict"], json!("allow"));
    assert_eq!(answer["text"], json!("nothing"));
    assert_eq!(
        made_of(&answer),
        json!([["cards", "allow"], ["mails", "allow"], ["links", "allow"]])
    );
    let answer = tried(&text, json!([cards]));
    assert_eq!(answer["verdict"], json!("redact"));
    assert_eq!(answer["text"], json!("Card [card], mail ada@example.com"));
    let answer = tried(&text, json!([cards, mails]));
    assert_eq!(answer["verdict"], json!("approve"));
    assert_eq!(answer["text"], json!("Card [card], mail ada@example.com"));
    assert_eq!(
        made_of(&answer),
        json!([["cards", "redact"], ["mails", "approve"]])
    );
    let blocks = json!([cards, mails, pii("tool.arguments", "block"), links]);
    let answer = tried(&text, blocks);
    assert_eq!(answer["verdict"], json!("block"));
    assert_eq!(answer["blockedBy"], json!("pii"));
    assert_eq!(answer.get("text"), None);
    // The first block ends it.
    assert_eq!(
        made_of(&answer),
        json!([["cards", "redact"], ["mails", "approve"], ["pii", "block"]])
    );
    let said = answer.to_string();
    assert!(!said.contains("4111") && !said.contains("ada@"), "{said}");
    let check = &answer["checks"][0];
    for (field, value) in [
        ("origin", json!("agent")),
        ("policyVersion", Value::Null),
        ("evaluator", json!("builtin:pii")),
        ("code", json!("card")),
        ("reason", json!("Found: card.")),
        ("onError", Value::Null),
    ] {
        assert_eq!(check[field], value, "{field}");
    }
    assert!(check["durationUs"].is_u64(), "{check}");
}

/// The names and verdicts of the checks.
fn made_of(answer: &Value) -> Value {
    let checks = answer["checks"].as_array().unwrap().iter();
    checks
        .map(|check| json!([check["name"], check["verdict"]]))
        .collect()
}

#[test]
fn the_policies_judge_first_unless_they_are_left_out() {
    let (app, project) = start();
    let named = |name: &str| json!({"guardrails": [{"builtin": "pii", "name": name, "at": ["output"], "action": "redact"}]});
    let of_project = format!("/v1/projects/{project}/policies");
    app.put("/v1/policies", &named("of-nobody-now")).expect(200);
    app.put("/v1/policies", &named("of-tenant")).expect(200);
    app.put(&of_project, &named("of-project")).expect(200);
    let elsewhere = made::project(&app);
    let own = json!([{"builtin": "pii", "name": "own", "at": ["output"], "action": "block"}]);
    let mut new = body(&project, "output", CARD, own);
    let answer = app.post(TRY, &new).expect(200);
    // Each sees what the one before left.
    let all = json!([
        ["of-tenant", "redact"],
        ["of-project", "allow"],
        ["own", "allow"]
    ]);
    assert_eq!(made_of(&answer), all);
    assert_eq!(answer["text"], json!("[card]"));
    let checks = &answer["checks"];
    assert_eq!(checks[0]["origin"], json!("tenant"));
    assert_eq!(checks[0]["policyVersion"], json!(2));
    assert_eq!(checks[1]["origin"], json!("project"));
    assert_eq!(checks[1]["policyVersion"], json!(1));
    new["projectId"] = json!(elsewhere);
    let answer = app.post(TRY, &new).expect(200);
    assert_eq!(
        made_of(&answer),
        json!([["of-tenant", "redact"], ["own", "allow"]])
    );
    new["withPolicies"] = json!(false);
    let answer = app.post(TRY, &new).expect(200);
    assert_eq!(made_of(&answer), json!([["own", "block"]]));
    let alone = json!({"projectId": project, "point": "input", "text": CARD});
    assert_eq!(app.post(TRY, &alone).expect(200)["checks"], json!([]));
}

#[test]
fn a_check_of_arguments_judges_those_of_its_tool() {
    let (app, project) = start();
    let schema = json!({"type": "object", "properties": {"to": {"type": "string", "pattern": "@example\\.com$"}}});
    let mail = json!([{"builtin": "tool-arguments", "at": ["tool.arguments"], "action": "block",
        "config": {"tool": "send_mail", "schema": schema}}]);
    let tried = |tool: &str, text: &str| {
        let mut new = body(&project, "tool.arguments", text, mail.clone());
        new["tool"] = json!(tool);
        app.post(TRY, &new).expect(200)["verdict"].clone()
    };
    let (inside, outside) = (r#"{"to": "a@example.com"}"#, r#"{"to": "a@evil.example"}"#);
    assert_eq!(tried("send_mail", inside), json!("allow"));
    assert_eq!(tried("send_mail", outside), json!("block"));
    assert_eq!(tried("send_mail", "no JSON"), json!("block"));
    assert_eq!(tried("look_up", outside), json!("allow"));
}

/// A newer version of the service stored it.
#[test]
fn a_check_that_cannot_be_read_fails_and_blocks_unless_it_says_otherwise() {
    let (app, project) = start();
    let put = |version: i32, on_error: &str| {
        app.sql(&format!(
            r#"insert into policies select tenant_id, null, {version}, '[{{"builtin": "future", "at": ["output"], "action": "block",
                 "onError": "{on_error}"}}]', 'held', user_id, now() from users where user_id = '{}'"#,
            app.seeds.user_id
        ));
    };
    let new = body(&project, "output", "a", json!([]));
    put(1, "block");
    let answer = app.post(TRY, &new).expect(200);
    assert_eq!(answer["verdict"], json!("block"));
    assert_eq!(answer["blockedBy"], json!("future"));
    let check = &answer["checks"][0];
    assert_eq!(check["verdict"], json!("failed"));
    assert_eq!(check["code"], json!("failed"));
    assert_eq!(check["onError"], json!("block"));
    put(2, "allow-unsafely");
    let answer = app.post(TRY, &new).expect(200);
    assert_eq!(answer["verdict"], json!("allow"));
    assert_eq!(answer["text"], json!("a"));
    assert_eq!(answer["checks"][0]["verdict"], json!("failed"));
    assert_eq!(answer["checks"][0]["onError"], json!("allow-unsafely"));
}

#[test]
fn what_is_wrong_with_a_try_is_named_by_its_path() {
    let (app, project) = start();
    let good = body(&project, "output", "a", json!([]));
    let with = |field: &str, value: Value| {
        let mut new = good.clone();
        new[field] = value;
        new
    };
    for (new, at) in [
        (with("point", json!("model")), "$.point"),
        (with("point", Value::Null), "$.point"),
        (with("text", json!(1)), "$.text"),
        (with("text", json!("é".repeat(512 * 1024) + "a")), "$.text"),
        (with("text", json!("a\0")), "$.text"),
        (with("tool", json!("send_mail")), "$.tool"),
        (with("withPolicies", json!("no")), "$.withPolicies"),
        (with("other", json!(1)), "$.other"),
        (
            with("guardrails", json!([{"pack": "a", "name": "b"}])),
            "$.guardrails[0].pack",
        ),
        (
            with(
                "guardrails",
                json!([pii("output", "redact"), pii("input", "approve")]),
            ),
            "$.guardrails[1].at",
        ),
    ] {
        let refused = app.post(TRY, &new).expect_error(400, "invalid-body");
        let refused = refused.to_string();
        assert!(refused.contains(at), "{at}: {refused:.500}");
    }
    let mut new = with("point", json!("tool.result"));
    new["tool"] = json!("a b");
    let refused = app.post(TRY, &new).expect_error(400, "invalid-body");
    assert_eq!(refused["details"]["path"], json!("$.tool"));
    app.other_tenant()
        .post(TRY, &good)
        .expect_error(404, "not-found");
}

#[test]
fn a_mebibyte_is_tried_and_comes_back_as_it_was() {
    let (app, project) = start();
    let text = "é\"\n".repeat(1024 * 1024 / 4);
    let guardrails = json!([pii("output", "redact"), {"builtin": "secrets", "at": ["output"], "action": "block"}]);
    let answer = app.post(TRY, &body(&project, "output", &text, guardrails));
    let answer = answer.expect(200);
    assert_eq!(answer["verdict"], json!("allow"));
    assert!(answer["text"] == json!(text));
    let rows = "select count(*) from run_checks";
    let rows = app.database.client().query_one(rows, &[]).unwrap();
    assert_eq!(rows.get::<_, i64>(0), 0);
}
