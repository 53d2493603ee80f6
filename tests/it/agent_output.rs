//! Versions with an output schema: answers that are JSON and fit it.

use crate::harness::{App, Puppet, kinds, made};
use serde_json::{Value, json};
use uuid::Uuid;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["decision", "amount"],
        "properties": {"decision": {"enum": ["refund", "refuse"]}, "amount": {"type": "number"}},
        "additionalProperties": false,
    })
}

/// A server with an agent whose answers fit the schema.
fn with_agent(puppet: &Puppet, parameters: &Value) -> (App, Uuid) {
    let app = App::start();
    let agent = app.agent_with(&puppet.base_url(), |version| {
        version.output_schema = schema();
        version.parameters = parameters.clone();
    });
    (app, agent)
}

/// Answers the next call, and says what was asked.
#[track_caller]
fn answer(puppet: &Puppet, text: &str) -> Value {
    let mut call = puppet.call();
    let asked = call.body.clone();
    call.say(text);
    call.finish();
    asked
}

#[track_caller]
fn last_message(asked: &Value) -> (&str, &str) {
    let message = asked["messages"].as_array().unwrap().last().unwrap();
    let text = |field: &str| message[field].as_str().unwrap();
    (text("role"), text("content"))
}

#[test]
fn an_answer_that_fits_is_read_as_json_and_the_provider_is_told_of_the_schema() {
    let puppet = Puppet::start();
    let (app, agent) = with_agent(&puppet, &json!({}));
    let version = app
        .get(&format!("/v1/agents/{agent}/versions/1.0.0"))
        .expect(200);
    assert_eq!(version["outputSchema"], schema());
    let run = app.start_turn(agent, "Refund A-1?");
    let said = r#"{"decision": "refund", "amount": 12.5}"#;
    let asked = answer(&puppet, said);
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema()}});
    assert_eq!(asked["response_format"], format);
    assert_eq!(asked["messages"][0]["content"], json!("Be brief."));
    assert_eq!(app.finished(&run)["status"], json!("completed"));
    let output = json!({"text": said, "json": {"decision": "refund", "amount": 12.5}});
    assert_eq!(app.output(&run), output);
}

#[test]
fn a_model_whose_answer_does_not_fit_is_told_why_and_asked_again() {
    let puppet = Puppet::start();
    let (app, agent) = with_agent(&puppet, &json!({}));
    let run = app.start_turn(agent, "Refund A-1?");
    answer(&puppet, "I would refund it.");
    let asked = answer(&puppet, r#"{"decision": "maybe", "amount": 1}"#);
    let (role, said) = last_message(&asked);
    assert_eq!(role, "user");
    assert!(said.contains("it is not JSON"), "{said}");
    assert!(said.contains(&schema().to_string()), "{said}");
    assert_eq!(asked["messages"][2]["content"], json!("I would refund it."));
    let asked = answer(&puppet, r#"{"decision": "refuse", "amount": 0}"#);
    let (_, said) = last_message(&asked);
    assert!(said.contains("at \"/decision\": \"maybe\""), "{said}");
    let run_row = app.finished(&run);
    assert_eq!(run_row["status"], json!("completed"));
    assert_eq!(run_row["usage"]["calls"], json!(3));
    assert_eq!(
        app.output(&run)["json"],
        json!({"decision": "refuse", "amount": 0})
    );
    let step = ["step.started", "step.completed"];
    let expected = [["run.created", "run.started"], step, step, step].concat();
    assert_eq!(
        kinds(&app.events(&run)),
        [expected, vec!["run.completed"]].concat()
    );
}

#[test]
fn after_three_answers_that_do_not_fit_the_turn_fails_and_says_nothing_of_them() {
    let puppet = Puppet::start();
    let (app, agent) = with_agent(&puppet, &json!({}));
    let run = app.start_turn(agent, "Refund A-1?");
    for _ in 0..3 {
        answer(&puppet, r#"{"decision": "canary", "amount": 1}"#);
    }
    let run = app.finished(&run);
    assert_eq!(run["status"], json!("failed"));
    let why = run["failureMessage"].as_str().unwrap();
    assert!(why.contains("3 times in a row"), "{why}");
    assert!(why.contains("/properties/decision/enum"), "{why}");
    assert!(!why.contains("canary"), "{why}");
    assert!(puppet.is_idle());
}

#[test]
fn a_correction_does_not_push_the_question_out_of_the_window() {
    let puppet = Puppet::start();
    let (app, agent) = with_agent(&puppet, &json!({}));
    let version = app
        .get(&format!("/v1/agents/{agent}/versions/1.0.0"))
        .expect(200);
    let provider = version["modelProviderId"].as_str().unwrap();
    let models = json!({"models": [{"name": "m", "contextWindow": 1024}]});
    app.patch(&format!("/v1/model-providers/{provider}"), &models)
        .expect(200);
    let run = app.start_turn(agent, &format!("Refund A-1? {}", "x".repeat(2500)));
    answer(&puppet, &"no".repeat(600));
    let asked = answer(&puppet, r#"{"decision": "refuse", "amount": 0}"#);
    let question = asked["messages"][1]["content"].as_str().unwrap();
    assert!(question.starts_with("Refund A-1?"), "{question}");
    assert_eq!(app.finished(&run)["status"], json!("completed"));
}

#[test]
fn where_the_author_says_the_format_the_instructions_tell_of_the_schema() {
    let puppet = Puppet::start();
    let parameters = json!({"extra": {"response_format": null}});
    let (app, agent) = with_agent(&puppet, &parameters);
    let run = app.start_turn(agent, "Refund A-1?");
    let asked = answer(&puppet, r#"{"decision": "refuse", "amount": 0}"#);
    assert_eq!(asked.get("response_format"), None);
    let instructions = asked["messages"][0]["content"].as_str().unwrap();
    assert!(instructions.starts_with("Be brief.\n\n"), "{instructions}");
    assert!(
        instructions.contains(&schema().to_string()),
        "{instructions}"
    );
    assert_eq!(app.finished(&run)["status"], json!("completed"));
}

#[test]
fn a_schema_that_is_not_taken_is_refused_with_its_place() {
    let app = App::start();
    let project = made::project(&app);
    let provider = made::provider(&app);
    let agent = made::agent(&app, &project, "helper");
    let mut version = made::version(&provider, "1.0.0");
    for (schema, path, expected) in [
        (
            json!({"type": "string"}),
            "$.outputSchema.type",
            "\"object\"",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "http://x/"}}}),
            "$.outputSchema.properties.a.$ref",
            "#/$defs/name",
        ),
    ] {
        version["outputSchema"] = schema;
        let versions = format!("/v1/agents/{agent}/versions");
        let refused = app
            .post(&versions, &version)
            .expect_error(400, "invalid-body");
        let said = refused.to_string();
        assert!(said.contains(path), "{said}");
        assert!(
            said.contains(expected) || said.contains(&expected.replace('"', "\\\"")),
            "{said}"
        );
    }
}
