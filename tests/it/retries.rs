//! Failed runs that are taken up again.

use crate::harness::{App, NewTool, ToolAnswer, ToolServer, kinds};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

fn call_of_tool() -> Step {
    Step::new(Reply::ToolCalls(vec![("pay".to_owned(), json!({}))]))
}

fn refusal() -> Step {
    Step::json(400, &json!({"error": {"message": "No."}}))
}

fn model(queue: Vec<Step>) -> Provider {
    let then = Step::text("Well.");
    Provider::start(Script { queue, then }).unwrap()
}

/// An agent with a tool that may not be called twice.
#[track_caller]
fn agent(app: &App, model: &Provider, tool: &ToolServer, limits: &Value) -> Uuid {
    let maker = app.maker();
    let project = maker.project();
    let url = tool.url();
    let mut pay = NewTool::new("pay", &url);
    pay.idempotent = false;
    let pay = maker.tool(project, &pay);
    maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![pay];
        version.limits = limits.clone();
    })
}

#[track_caller]
fn failed(app: &App, run: &str) -> Value {
    let ended = app.finished(run);
    assert_eq!(ended["status"], json!("failed"), "{ended}");
    ended
}

fn path(run: &str) -> String {
    format!("/v1/runs/{run}/retry")
}

/// Takes the run up, and says the new one's id.
#[track_caller]
fn retry(app: &App, run: &str, body: &Value) -> String {
    let started = app.post(&path(run), body).expect(202);
    assert_eq!(started["run"]["retryOf"], json!(run));
    started["run"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_retry_goes_on_after_the_last_step_that_was_done_and_says_so() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("paid"));
    let model = model(vec![call_of_tool(), refusal()]);
    let agent = agent(&app, &model, &tool, &json!({}));
    let body = json!({"agentId": agent, "message": "Pay.", "labels": {"ticket": "7"}});
    let first = app.post("/v1/runs", &body).expect(202);
    let first = first["run"]["id"].as_str().unwrap().to_owned();
    failed(&app, &first);
    let again = retry(&app, &first, &json!({}));
    let run = app.finished(&again);
    assert_eq!(run["status"], json!("completed"), "{run}");
    assert_eq!(run["retryOf"], json!(first));
    assert_eq!(run["labels"], json!({"ticket": "7"}));
    assert_eq!(run["usage"]["calls"], json!(1));
    assert_eq!(app.output(&again), json!({"text": "Well."}));
    assert_eq!(tool.asked().len(), 1, "it was paid once");
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 4, "{messages}");
    assert_eq!(messages[3]["content"], json!("paid"));
    let events = app.events(&again);
    assert_eq!(
        kinds(&events),
        [
            "run.created",
            "run.retried",
            "run.started",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    assert_eq!(events[1]["data"], json!({"retryOf": first, "steps": 2}));
    assert_eq!(events[3]["data"]["step"], json!(3));
    assert_eq!(app.run(&first)["status"], json!("failed"));
}

#[test]
fn a_call_whose_outcome_nobody_knows_is_made_again_only_if_the_caller_says_so() {
    let app = App::start();
    let tool = ToolServer::start(|_, before| match before {
        0 => ToolAnswer::Hang,
        _ => ToolAnswer::ok("paid"),
    });
    let model = model(vec![call_of_tool()]);
    let agent = agent(&app, &model, &tool, &json!({"turnTimeoutMs": 2000}));
    let run = app.start_turn(agent, "Pay.");
    failed(&app, &run);
    let refused = app
        .post(&path(&run), &json!({}))
        .expect_error(409, "outcome-unknown");
    assert!(refused.to_string().contains("pay"), "{refused}");
    assert_eq!(tool.asked().len(), 1);
    let again = retry(&app, &run, &json!({"repeatUnknownCall": true}));
    assert_eq!(app.finished(&again)["status"], json!("completed"));
    assert_eq!(tool.asked().len(), 2);
}

#[test]
fn one_retry_at_a_time_takes_up_a_run_that_failed() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("paid"));
    let model = model(vec![refusal(), refusal()]);
    let agent = agent(&app, &model, &tool, &json!({}));
    let first = app.start_turn(agent, "Hello");
    failed(&app, &first);
    let second = retry(&app, &first, &json!({}));
    failed(&app, &second);
    // A retry that failed is no reason not to try again; neither of the two is.
    let key = [("idempotency-key", "once")];
    let send = |run: &str| app.send("POST", &path(run), Some("{}".to_owned()), &key);
    let third = send(&first).expect(202)["run"]["id"].clone();
    assert_eq!(send(&first).expect(202)["run"]["id"], third);
    app.finished(third.as_str().unwrap());
    app.post(&path(&first), &json!({}))
        .expect_error(409, "conflict");
    app.post(&path(third.as_str().unwrap()), &json!({}))
        .expect_error(409, "conflict");
    let unknown = Uuid::now_v7().to_string();
    app.post(&path(&unknown), &json!({}))
        .expect_error(404, "not-found");
    assert_eq!(
        app.finished(&retry(&app, &second, &json!({})))["status"],
        json!("completed")
    );
}

#[test]
fn a_turn_of_a_conversation_is_taken_up_while_its_message_is_the_newest() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("paid"));
    let model = model(vec![refusal(), refusal()]);
    let agent = agent(&app, &model, &tool, &json!({}));
    let conversation = app.maker().conversation(agent, None);
    let say = |message: &str| {
        let body = json!({"agentId": agent, "message": message, "conversationId": conversation});
        let started = app.post("/v1/runs", &body).expect(202);
        started["run"]["id"].as_str().unwrap().to_owned()
    };
    let first = say("one");
    failed(&app, &first);
    let second = retry(&app, &first, &json!({}));
    failed(&app, &second);
    let third = retry(&app, &second, &json!({}));
    assert_eq!(app.finished(&third)["status"], json!("completed"));
    let messages = app
        .get(&format!(
            "/v1/conversations/{conversation}/messages?order=asc"
        ))
        .expect(200);
    let said: Vec<_> = messages["data"].as_array().unwrap().iter().collect();
    assert_eq!(said.len(), 2, "{messages}");
    assert_eq!(said[0]["content"], json!("one"));
    assert_eq!(said[1]["content"], json!("Well."));
    app.post(&path(&first), &json!({}))
        .expect_error(409, "conflict");
}

#[test]
fn answers_that_did_not_fit_are_not_taken_over() {
    let app = App::start();
    let model = model((0..3).map(|_| Step::text("No.")).collect());
    let agent = app.agent_with(&model.base_url(), |version| {
        version.output_schema = json!({"type": "object"});
    });
    let run = app.start_turn(agent, "Hello");
    failed(&app, &run);
    let again = retry(&app, &run, &json!({}));
    failed(&app, &again);
    let requests = model.requests();
    assert_eq!(requests.len(), 6, "it was asked three times again");
    let asked = |n: usize| requests[n].body["messages"].as_array().unwrap().len();
    assert_eq!((asked(0), asked(3), asked(5)), (2, 2, 6));
}
