//! What becomes of a model call that reaches a time limit, of a server that loads its model, and of a conversation that the
//! server finds too long.

use crate::harness::{App, NewVersion, kinds};
use agent_runtime::dev::provider::{Fault, Provider, Script, Step};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use uuid::Uuid;

fn app() -> App {
    App::start_with(|options| options.runs.first_wait = Duration::from_millis(20))
}

fn provider(queue: Vec<Step>, then: Step) -> Provider {
    Provider::start(Script { queue, then }).unwrap()
}

/// All providers have these options.
fn set_options(app: &App, options: &Value) {
    let options = options.to_string();
    let sql = "update model_providers set options = $1::text::json";
    app.database.client().execute(sql, &[&options]).unwrap();
}

/// Runs a turn to its end whose provider has these options.
#[track_caller]
fn run(app: &App, provider: &Provider, options: &Value) -> Value {
    let agent = app.agent(&provider.base_url());
    set_options(app, options);
    app.finished(&app.start_turn(agent, "a"))
}

#[track_caller]
fn check_failed(run: &Value, calls: i64, words: &[&str]) {
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["usage"]["calls"], calls, "{run}");
    let message = run["failureMessage"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

#[test]
fn each_time_limit_is_the_providers_own_and_is_named() {
    let app = app();
    let long = "word ".repeat(400);
    let pace = Duration::from_millis(50);
    for (name, setting, step, says) in [
        (
            "idleMs",
            "SVC_MODEL_IDLE_TIMEOUT_MS",
            Step::text("Cut here.").fault(2, Fault::Hang),
            "sent nothing for 1 s",
        ),
        (
            "firstByteMs",
            "SVC_MODEL_FIRST_BYTE_TIMEOUT_MS",
            Step::text("Too late.").before(Duration::from_secs(60)),
            "did not begin to answer within 1 s",
        ),
        (
            "callMs",
            "SVC_MODEL_TOTAL_TIMEOUT_MS",
            Step::text(long).between(pace),
            "did not end within 1 s",
        ),
    ] {
        let provider = provider(Vec::new(), step);
        let options = json!({"timeouts": {name: 1000}, "tries": 2});
        let run = run(&app, &provider, &options);
        check_failed(&run, 2, &[says, name, setting, "tried 2 times"]);
    }
}

#[test]
fn a_turn_without_time_says_so_and_what_it_waited_for() {
    let app = app();
    let silent = Step::text("Too late.").before(Duration::from_secs(60));
    let provider = provider(Vec::new(), silent);
    let agent = app.agent_with(&provider.base_url(), |version| {
        version.limits = json!({"turnTimeoutMs": 3000});
    });
    // A turn whose time is over before the model was asked has waited for a busy machine.
    let run = (0..10)
        .map(|_| app.finished(&app.start_turn(agent, "a")))
        .find(|run| run["usage"]["calls"] != 0);
    check_failed(&run.unwrap(), 1, &["3000 ms (turnTimeoutMs)"]);
}

#[test]
fn a_server_that_loads_its_model_is_waited_for_and_that_is_no_try() {
    let app = app();
    let body =
        json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}});
    let loading = Step::json(503, &body);
    let soon = provider(vec![loading.clone(); 6], Step::text("At last."));
    let run_of = |provider: &Provider| {
        run(
            &app,
            provider,
            &json!({"tries": 1, "timeouts": {"firstByteMs": 20_000}}),
        )
    };
    let loaded = run_of(&soon);
    assert_eq!(loaded["status"], "completed", "{loaded}");
    assert_eq!((soon.count(), &loaded["usage"]["calls"]), (7, &json!(1)));
    let never = provider(Vec::new(), loading);
    let options = json!({"tries": 4, "timeouts": {"firstByteMs": 1000}});
    let run = run(&app, &never, &options);
    check_failed(
        &run,
        1,
        &["Loading model.", "for more than 1 s", "firstByteMs"],
    );
}

#[test]
fn the_wait_in_a_servers_words_is_kept() {
    let app = app();
    let body = json!({"error": {"message": "Rate limit reached. Please try again in 1.2s."}});
    let provider = provider(vec![Step::json(429, &body)], Step::text("At last."));
    let began = Instant::now();
    let run = run(&app, &provider, &json!({}));
    assert_eq!(run["status"], "completed", "{run}");
    assert!(
        began.elapsed() >= Duration::from_millis(1200),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_wait_beyond_the_turns_time_is_told() {
    let app = app();
    let busy = Step::json(429, &json!({"error": {"message": "Slow."}}))
        .header("x-ratelimit-reset-tokens", "59m0s");
    let provider = provider(vec![busy], Step::text("Unreached."));
    let run = run(&app, &provider, &json!({}));
    check_failed(&run, 1, &["HTTP 429", "3540 s", "turnTimeoutMs"]);
}

/// An agent, and a conversation of six exchanges.
fn with_conversation(app: &App, provider: &Provider) -> (Uuid, Uuid) {
    let maker = app.maker();
    let agent = maker.bare_agent(maker.project());
    let provider = maker.provider(&provider.base_url(), None);
    maker.version(agent, provider, &NewVersion::new("1.0.0"));
    let conversation = maker.conversation(agent, None);
    app.database
        .client()
        .execute(
            "with said as (
               insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
               select tenant_id, conversation_id, 2 * n - answers, case when answers = 0 then 'assistant' else 'user' end,
                 case when answers = 0 then 'a' else n || repeat('x', 599) end, conversation_id, now()
               from conversations, generate_series(1, 6) n, generate_series(0, 1) answers where conversation_id = $1)
             update conversations set last_position = 12 where conversation_id = $1",
            &[&conversation],
        )
        .unwrap();
    (agent, conversation)
}

#[track_caller]
fn say(app: &App, (agent, conversation): (Uuid, Uuid)) -> Value {
    let body = json!({"agentId": agent, "message": "now", "conversationId": conversation});
    let started = app.post("/v1/runs", &body).expect(202);
    app.finished(started["run"]["id"].as_str().unwrap())
}

/// The first letters of what the model was asked in each call.
fn asked(provider: &Provider) -> Vec<String> {
    let start = |message: &Value| message["content"].as_str().unwrap()[..1].to_owned();
    let of_call = |body: &Value| {
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(start)
            .collect()
    };
    provider
        .requests()
        .iter()
        .map(|request| of_call(&request.body))
        .collect()
}

fn too_long(message: &str) -> Step {
    Step::json(400, &json!({"error": {"message": message}}))
}

#[test]
fn a_conversation_that_is_too_long_is_shortened_once() {
    let app = app();
    for (message, second, data) in [
        (
            "Input is too long for requested model.",
            "B5a6an",
            json!({"step": 1, "attempt": 1, "exchanges": 4}),
        ),
        (
            "prompt is too long: 4000 tokens > 3000 maximum",
            "B4a5a6an",
            json!({"step": 1, "attempt": 1, "exchanges": 3, "contextWindow": 3000}),
        ),
    ] {
        let provider = provider(vec![too_long(message)], Step::text("At last."));
        let run = say(&app, with_conversation(&app, &provider));
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(asked(&provider), ["B1a2a3a4a5a6an", second], "{message}");
        assert_eq!(run["usage"]["calls"], 1);
        let events = app.events(run["id"].as_str().unwrap());
        assert!(!kinds(&events).contains(&"step.failed"), "{events:?}");
        let trimmed = events
            .iter()
            .find(|event| event["kind"] == "context.trimmed");
        assert_eq!(trimmed.unwrap()["data"], data, "{message}");
    }
}

#[test]
fn a_conversation_that_stays_too_long_fails_and_says_by_how_much() {
    let app = app();
    let message =
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.";
    let provider = provider(Vec::new(), too_long(message));
    let run = say(&app, with_conversation(&app, &provider));
    check_failed(
        &run,
        1,
        &[
            message,
            "by 8928 tokens",
            "contextWindow",
            "oldest exchanges left out, too",
        ],
    );
    assert_eq!(provider.count(), 2);
    let alone = app.agent(&provider.base_url());
    let run = app.finished(&app.start_turn(alone, "a"));
    check_failed(
        &run,
        1,
        &["contextWindow", "No older exchange could be left out."],
    );
    assert_eq!(provider.count(), 3);
}
