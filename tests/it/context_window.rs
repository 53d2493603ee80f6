//! Conversations that are longer than the model's context window.

use crate::harness::{App, Puppet};
use serde_json::{Value, json};
use uuid::Uuid;

/// The window of the agent's model. A quarter of it is kept for the answer.
const WINDOW: u32 = 1000;
/// A message of so many letters is about 630 bytes of a request, or 210 tokens where nothing was counted.
const LETTERS: usize = 600;

/// A server whose agent has a model with a context window, the agent, and a conversation of six long messages.
fn with_long_conversation(puppet: &Puppet) -> (App, Uuid, Uuid) {
    let app = App::start();
    let maker = app.maker();
    let project = maker.project();
    let provider = maker.provider(&puppet.base_url(), None);
    let models = json!([{"name": "m", "contextWindow": WINDOW}]);
    let path = format!("/v1/model-providers/{provider}");
    let changed = app.patch(&path, &json!({"models": models})).expect(200);
    assert_eq!(
        changed["models"],
        json!([{"name": "m", "contextWindow": WINDOW, "prices": {}}])
    );
    let agent = maker.bare_agent(project);
    maker.version(agent, provider, &crate::harness::NewVersion::new("1.0.0"));
    let conversation = maker.conversation(agent, None);
    app.database
        .client()
        .execute(
            "with said as (
               insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
               select tenant_id, conversation_id, n, 'user', n || repeat('x', $2), conversation_id, now()
               from conversations, generate_series(1, 6) n where conversation_id = $1)
             update conversations set last_position = 6 where conversation_id = $1",
            &[&conversation, &i32::try_from(LETTERS - 1).unwrap()],
        )
        .unwrap();
    (app, agent, conversation)
}

fn say(app: &App, agent: Uuid, conversation: Uuid, message: &str) -> String {
    let body = json!({"agentId": agent, "message": message, "conversationId": conversation});
    let started = app.post("/v1/runs", &body).expect(202);
    started["run"]["id"].as_str().unwrap().to_owned()
}

/// The first letters of what the model was asked. Messages of the user in a row are joined.
fn starts(asked: &Value) -> Vec<String> {
    let messages = asked["messages"].as_array().unwrap();
    let content = messages
        .iter()
        .map(|message| message["content"].as_str().unwrap());
    let said = content.flat_map(|content| content.split("\n\n"));
    said.map(|said| said[..2].to_owned()).collect()
}

fn trimmed(app: &App, run_id: &str) -> Vec<Value> {
    let events = app.events(run_id);
    let kind = |event: &Value| event["kind"] == "context.trimmed";
    events
        .into_iter()
        .filter(kind)
        .map(|event| event["data"].clone())
        .collect()
}

#[test]
fn the_oldest_exchanges_are_left_out_and_an_event_says_how_many() {
    let puppet = Puppet::start();
    let (app, agent, conversation) = with_long_conversation(&puppet);
    let run = say(&app, agent, conversation, "now");
    let mut call = puppet.call();
    assert_eq!(starts(&call.body), ["Be", "4x", "5x", "6x", "no"]);
    call.say("Well.");
    call.finish();
    assert_eq!(app.finished(&run)["status"], json!("completed"));
    let told = json!({"step": 1, "attempt": 1, "exchanges": 3, "contextWindow": WINDOW});
    assert_eq!(trimmed(&app, &run), [told]);
    let kinds: Vec<Value> = app
        .events(&run)
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.started",
            "step.started",
            "context.trimmed",
            "step.completed",
            "run.completed"
        ]
    );
    // The provider counted 10 tokens, so the same text counts less now.
    let run = say(&app, agent, conversation, "then");
    let mut call = puppet.call();
    assert_eq!(
        starts(&call.body),
        ["Be", "2x", "3x", "4x", "5x", "6x", "no", "We", "th"]
    );
    call.say("Well.");
    call.finish();
    app.finished(&run);
    assert_eq!(trimmed(&app, &run)[0]["exchanges"], json!(1));
}

#[test]
fn a_message_that_cannot_fit_fails_its_turn_and_nothing_is_sent() {
    let puppet = Puppet::start();
    let (app, agent, conversation) = with_long_conversation(&puppet);
    let run = say(&app, agent, conversation, &"x".repeat(7000));
    let run = app.finished(&run);
    assert_eq!(run["status"], json!("failed"));
    let said = run["failureMessage"].as_str().unwrap();
    assert!(said.contains("context window of 1000 tokens"), "{said}");
    assert!(puppet.is_idle());
    assert_eq!(run["usage"]["calls"], json!(0));
}

#[test]
fn without_a_window_all_of_it_is_sent() {
    let puppet = Puppet::start();
    let (app, agent, conversation) = with_long_conversation(&puppet);
    let provider = app.get("/v1/model-providers").expect(200)["data"][0]["id"].clone();
    let path = format!("/v1/model-providers/{}", provider.as_str().unwrap());
    let changed = app
        .patch(&path, &json!({"models": [{"name": "m"}]}))
        .expect(200);
    assert_eq!(changed["models"], json!([{"name": "m", "prices": {}}]));
    let run = say(&app, agent, conversation, "now");
    let mut call = puppet.call();
    assert_eq!(starts(&call.body).len(), 8);
    call.say("Well.");
    call.finish();
    app.finished(&run);
    assert_eq!(trimmed(&app, &run), [] as [Value; 0]);
}

#[test]
fn a_window_has_bounds() {
    let app = App::start();
    for wrong in [json!(0), json!(255), json!(100_000_001)] {
        let body = json!({"name": "p", "baseUrl": "https://models.example/v1",
            "models": [{"name": "m", "contextWindow": wrong}]});
        let refused = app.post("/v1/model-providers", &body);
        let refused = refused.expect_error(400, "invalid-body");
        assert_eq!(
            refused["details"]["path"],
            json!("$.models[0].contextWindow")
        );
    }
}
