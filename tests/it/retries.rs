//! Failed runs that are taken up again.

use crate::harness::{App, NewTool, ToolAnswer, ToolServer, eventually, kinds, made, tool_results};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

fn call_of_tool() -> Step {
    calls_of_tool(1)
}

fn calls_of_tool(count: usize) -> Step {
    let call = ("pay".to_owned(), json!({}));
    Step::new(Reply::ToolCalls(vec![call; count]))
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
    agent_that_asks(app, model, tool, limits, Value::Null)
}

/// The same, where calls of the tool ask this first.
#[track_caller]
fn agent_that_asks(
    app: &App,
    model: &Provider,
    tool: &ToolServer,
    limits: &Value,
    approval: Value,
) -> Uuid {
    let maker = app.maker();
    let project = maker.project();
    let url = tool.url();
    let mut pay = NewTool::new("pay", &url);
    pay.idempotent = false;
    pay.approval = approval;
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
fn a_run_of_what_is_archived_is_not_taken_up() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("paid"));
    let model = model(vec![refusal()]);
    let agent = agent(&app, &model, &tool, &json!({}));
    let turn = app.start_turn(agent, "Hello");
    failed(&app, &turn);
    let found = app.get(&format!("/v1/agents/{agent}")).expect(200);
    let project = found["projectId"].as_str().unwrap();
    let fails = json!({"raise": {"error": {"type": "https://example.com/no", "status": 400}}});
    let (flow, run) = failed_flow(&app, project, json!([{"no": fails}]));
    let act = |what: &str, act: &str| {
        let path = format!("/v1/{what}/{act}");
        app.send("POST", &path, None, &[]).expect(200);
    };
    let refused = |run: &str, code: &str| {
        let refused = app.post(&path(run), &json!({})).expect_error(409, code);
        let said = refused["message"].as_str().unwrap();
        assert!(said.contains("/unarchive"), "{said}");
    };
    for (run, what, code) in [
        (&turn, format!("agents/{agent}"), "agent-archived"),
        (&run, format!("flows/{flow}"), "flow-archived"),
    ] {
        act(&what, "archive");
        refused(run, code);
        act(&format!("projects/{project}"), "archive");
        refused(run, "project-archived");
        act(&what, "unarchive");
        refused(run, "project-archived");
        act(&format!("projects/{project}"), "unarchive");
        app.finished(&retry(&app, run, &json!({})));
    }
}

/// A new flow, and a run of it that failed.
#[track_caller]
fn failed_flow(app: &App, project: &str, tasks: Value) -> (String, String) {
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "billing", "name": "refund", "version": "1.0.0"},
        "do": tasks,
    });
    let flow = json!({"projectId": project, "definition": definition});
    let flow = app.post("/v1/flows", &flow).expect(201);
    let start = json!({"flowId": "billing.refund", "input": {}});
    let run = app.post("/v1/runs", &start).expect(202);
    let run = made::id(&run["run"]);
    failed(app, &run);
    (made::id(&flow), run)
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

/// A receiver that pays once a key, as its documentation says to, and whose answers to these calls are lost.
struct Ledger {
    tool: ToolServer,
    receipts: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Ledger {
    fn start(lost: Range<usize>) -> Self {
        let receipts = Arc::<Mutex<BTreeMap<String, String>>>::default();
        let kept = Arc::clone(&receipts);
        let tool = ToolServer::start(move |asked, before| {
            let mut paid = kept.lock().unwrap();
            let next = format!("receipt {}", paid.len() + 1);
            let key = asked.header("idempotency-key").to_owned();
            let receipt = paid.entry(key).or_insert(next);
            match lost.contains(&before) {
                true => ToolAnswer::Hang,
                false => ToolAnswer::ok(receipt.clone()),
            }
        });
        Self { tool, receipts }
    }

    fn payments(&self) -> usize {
        self.receipts.lock().unwrap().len()
    }

    fn keys(&self) -> Vec<String> {
        let asked = self.tool.asked().into_iter();
        asked
            .map(|call| call.header("idempotency-key").to_owned())
            .collect()
    }
}

/// What becomes of a run whose call hangs, soon.
fn soon() -> Value {
    json!({"turnTimeoutMs": 2000})
}

fn repeats() -> Value {
    json!({"repeatUnknownCall": true})
}

#[test]
fn a_call_whose_answer_was_lost_keeps_its_key_over_retries_so_it_is_paid_once() {
    let app = App::start();
    let ledger = Ledger::start(1..3);
    let model = model(vec![calls_of_tool(3)]);
    let agent = agent(&app, &model, &ledger.tool, &soon());
    let first = app.start_turn(agent, "Pay three times.");
    failed(&app, &first);
    let second = retry(&app, &first, &repeats());
    failed(&app, &second);
    let third = retry(&app, &second, &repeats());
    assert_eq!(app.finished(&third)["status"], json!("completed"));
    let (answered, lost) = (format!("{first}-2"), format!("{first}-3"));
    let own = format!("{third}-4");
    assert_eq!(
        ledger.keys(),
        [&*answered, &lost, &lost, &lost, &own],
        "a call that was not made before has a key of its own"
    );
    assert_eq!(ledger.payments(), 3);
    assert_eq!(
        tool_results(&model),
        ["receipt 1", "receipt 2", "receipt 3"]
    );
    let call = ledger.tool.asked().pop().unwrap();
    assert_eq!(call.body["runId"], json!(third));
}

/// Decides what a run waits for.
fn decide(app: &App, run: &str, decision: &Value) {
    let path = format!("/v1/approvals?runId={run}");
    let waiting = eventually("the approval", || {
        let found = app.get(&path).expect(200);
        found["data"].as_array()?.first().cloned()
    });
    let path = format!("/v1/approvals/{}/decide", waiting["id"].as_str().unwrap());
    app.post(&path, decision).expect(200);
}

#[test]
fn a_call_that_a_reviewer_approves_again_keeps_its_key() {
    let app = App::start();
    let ledger = Ledger::start(0..1);
    let model = model(vec![call_of_tool()]);
    let approval = json!({"title": "Pay", "onReject": "fail"});
    let agent = agent_that_asks(&app, &model, &ledger.tool, &soon(), approval);
    let decide = |run: &str, decision: &str| decide(&app, run, &json!({"decision": decision}));
    let first = app.start_turn(agent, "Pay.");
    decide(&first, "approve");
    failed(&app, &first);
    // The approval was for the first run's call. The second run's is rejected, so nobody knows yet what became of that call.
    let second = retry(&app, &first, &repeats());
    decide(&second, "reject");
    failed(&app, &second);
    let refused = app
        .post(&path(&second), &json!({}))
        .expect_error(409, "outcome-unknown");
    assert_eq!(refused["details"]["tool"], json!("pay"), "{refused}");
    let third = retry(&app, &second, &repeats());
    decide(&third, "approve");
    assert_eq!(app.finished(&third)["status"], json!("completed"));
    assert_eq!(ledger.keys(), vec![format!("{first}-3"); 2]);
    assert_eq!(ledger.payments(), 1);
    assert_eq!(tool_results(&model), ["receipt 1"]);
}

/// A reviewer's arguments make it another call, which the receiver is not to take for the one before.
#[test]
fn a_call_with_edited_arguments_keeps_the_key_of_no_other_call() {
    for (before, after, is_same) in [
        (json!({}), json!({"arguments": {"word": "two"}}), false),
        (
            json!({"arguments": {"word": "one"}}),
            json!({"arguments": {"word": "two"}}),
            false,
        ),
        (
            json!({"arguments": {"word": "one"}}),
            json!({"arguments": {"word": "one"}}),
            true,
        ),
    ] {
        let app = App::start();
        let ledger = Ledger::start(0..1);
        let model = model(vec![call_of_tool()]);
        let approval = json!({"title": "Pay", "onReject": "fail"});
        let agent = agent_that_asks(&app, &model, &ledger.tool, &soon(), approval);
        let approve = |run: &str, with: &Value| {
            let mut decision = json!({"decision": "approve"});
            let fields = decision.as_object_mut().unwrap();
            fields.extend(with.as_object().unwrap().clone());
            decide(&app, run, &decision);
        };
        let first = app.start_turn(agent, "Pay.");
        approve(&first, &before);
        failed(&app, &first);
        let second = retry(&app, &first, &repeats());
        approve(&second, &after);
        assert_eq!(app.finished(&second)["status"], json!("completed"));
        let made = if is_same { &first } else { &second };
        assert_eq!(ledger.keys(), [format!("{first}-3"), format!("{made}-3")]);
    }
}

#[test]
fn a_turn_inside_a_flow_makes_the_call_whose_answer_was_lost_with_its_key() {
    let app = App::start();
    let ledger = Ledger::start(0..1);
    let model = model(vec![call_of_tool()]);
    let agent = agent(&app, &model, &ledger.tool, &soon());
    let agent = app.get(&format!("/v1/agents/{agent}")).expect(200);
    let with = json!({"agent": agent["name"], "version": "1.0.0", "message": "Pay."});
    let tasks = json!([{"ask": {"call": "agent", "with": with}}]);
    let project = agent["projectId"].as_str().unwrap();
    let (_, first) = failed_flow(&app, project, tasks);
    app.post(&path(&first), &json!({}))
        .expect_error(409, "outcome-unknown");
    let again = retry(&app, &first, &repeats());
    let ended = app.finished(&again);
    assert_eq!(ended["status"], json!("completed"), "{ended}");
    let keys = ledger.keys();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(ledger.payments(), 1);
}

/// Flows call each other eight levels deep, and in each branches of `fork` nest as deep as a definition may: 128 runs, each
/// below the one before. What reads them all goes down as far.
#[test]
fn the_deepest_tree_of_runs_is_taken_up() {
    const FLOWS: usize = 8;
    const FORKS: usize = 15;
    let app = App::start();
    let project = app.maker().project();
    for level in (0..FLOWS).rev() {
        let innermost = match level + 1 == FLOWS {
            true => json!({"raise": {"error": {"type": "https://example.com/no", "status": 409}}}),
            false => json!({"run": {"workflow": {
                "namespace": "deep", "name": format!("l{}", level + 1), "version": "1.0.0"}}}),
        };
        let task = (0..FORKS).fold(
            innermost,
            |inner, _| json!({"fork": {"branches": [{"only": inner}]}}),
        );
        let definition = json!({
            "document": {"dsl": "1.0.3", "namespace": "deep", "name": format!("l{level}"), "version": "1.0.0"},
            "do": [{"first": task}],
        });
        let flow = json!({"projectId": project, "definition": definition});
        app.post("/v1/flows", &flow).expect(201);
    }
    let start = json!({"flowId": "deep.l0", "input": {}});
    let run = made::id(&app.post("/v1/runs", &start).expect(202)["run"]);
    failed(&app, &run);
    let again = retry(&app, &run, &json!({}));
    failed(&app, &again);
}
