//! What flows read of the variables: those of the environment that is served, as they were when the root run was created.

use super::{path, put, start};
use crate::harness::{App, NewTool, ToolAnswer, ToolServer, made};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// A flow of the project.
#[track_caller]
fn flow(app: &App, project: Uuid, name: &str, tasks: &Value) {
    let document = json!({"dsl": "1.0.3", "namespace": "test", "name": name, "version": "1.0.0"});
    let definition = json!({"document": document, "do": tasks});
    let body = json!({"projectId": project, "definition": definition});
    app.post("/v1/flows", &body).expect(201);
}

#[track_caller]
fn run(app: &App, flow_id: &str) -> String {
    let started = app
        .post("/v1/runs", &json!({"flowId": flow_id}))
        .expect(202);
    started["run"]["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn output(app: &App, run: &str) -> Value {
    let ended = app.finished(run);
    assert_eq!(ended["status"], json!("completed"), "{ended}");
    let payload = app.get(&format!("/v1/runs/{run}/payload")).expect(200);
    payload["output"].clone()
}

/// A tool that changes the variables while a run waits for its answer.
fn changing(app: &App) -> ToolServer {
    let admin = app.with_token(Some(app.token()));
    ToolServer::start(move |_, _| {
        let value = json!({"value": "two"});
        admin.put(&path("prod", "MODE"), &value).expect(200);
        admin.delete(&path("prod", "GONE"));
        admin.put(&path("prod", "NEW"), &value);
        ToolAnswer::ok("{}")
    })
}

fn inner() -> Value {
    json!([{"read": {"set": {"mode": "${ $runtime.metadata.env.MODE }"}}}])
}

#[test]
fn a_flow_reads_the_variables_as_they_were_when_its_run_was_created() {
    let app = start();
    for (environment, name, value) in [
        ("prod", "MODE", "one"),
        ("prod", "GONE", "é\"\n"),
        ("test", "MODE", "other"),
        ("test", "OTHER", "other"),
    ] {
        put(&app, environment, name, value);
    }
    app.other_tenant()
        .put(&path("prod", "THEIRS"), &json!({"value": "theirs"}))
        .expect(201);
    let server = changing(&app);
    let maker = app.maker();
    let project = maker.project();
    maker.tool(project, &NewTool::new("change", &server.url()));
    flow(&app, project, "inner", &inner());
    let sub = json!({"workflow": {"namespace": "test", "name": "inner", "version": "1.0.0"}});
    let branch = json!([{"read": {"set": {"mode": "${ $runtime.metadata.env.MODE }"}}}]);
    let tasks = json!([
        {"first": {"set": {"mode": "${ $runtime.metadata.env.MODE }"}, "export": {"as": "${ {first: .mode} }"}}},
        {"change": {"call": "tool", "with": {"tool": "change", "arguments": {}}}},
        {"inner": {"run": sub, "export": {"as": "${ $context + {inner: .mode} }"}}},
        {"fork": {"fork": {"branches": [{"branch": {"do": branch}}]}, "export": {"as": "${ $context + {branch: .} }"}}},
        {"last": {"set": {
            "before": "${ $context }",
            "all": "${ $runtime.metadata.env }",
            "missing": "${ $runtime.metadata.env.OTHER }",
            "name": "${ $runtime.name }",
        }}},
    ]);
    flow(&app, project, "outer", &tasks);
    let said = output(&app, &run(&app, "test.outer"));
    assert_eq!(said["before"]["first"], "one", "{said}");
    assert_eq!(said["before"]["inner"], "one", "{said}");
    assert!(
        said["before"]["branch"].to_string().contains("one"),
        "{said}"
    );
    assert_eq!(said["all"], json!({"GONE": "é\"\n", "MODE": "one"}));
    assert_eq!(said["missing"], Value::Null);
    assert_eq!(said["name"], "agent-runtime");
    // The next one has them as they are now.
    let said = output(&app, &run(&app, "test.outer"));
    assert_eq!(said["all"], json!({"MODE": "two", "NEW": "two"}));
    assert_eq!(said["before"]["inner"], "two");
}

#[test]
fn a_dry_run_reads_them_beside_its_fixtures() {
    let app = start();
    put(&app, "prod", "MODE", "one");
    let project = app.maker().project();
    let tasks = json!([
        {"ask": {"call": "http", "with": {"method": "get", "endpoint": "http://127.0.0.1:9/"}, "export": {"as": "${ . }"}}},
        {"last": {"set": {"asked": "${ $context }", "mode": "${ $runtime.metadata.env.MODE }"}}},
    ]);
    flow(&app, project, "dry", &tasks);
    let body = json!({"flowId": "test.dry", "dryRun": true, "fixtures": {"/do/0/ask": {"output": {"a": [2, 1]}}}});
    let started = app.post("/v1/runs", &body).expect(202);
    let said = output(&app, started["run"]["id"].as_str().unwrap());
    assert_eq!(said["mode"], "one", "{said}");
    assert!(said["asked"].to_string().contains("[2,1]"), "{said}");
}

#[test]
fn without_variables_or_an_environment_there_is_none() {
    for app in [start(), App::start()] {
        let project = app.maker().project();
        put(&app, "test", "MODE", "other");
        let tasks = json!([{"read": {"set": {"env": "${ $runtime.metadata.env }"}}}]);
        flow(&app, project, "reads", &tasks);
        let said = output(&app, &run(&app, "test.reads"));
        assert_eq!(said, json!({"env": {}}));
    }
}

#[test]
fn a_run_that_is_taken_up_again_keeps_its_variables() {
    let app = start();
    put(&app, "prod", "MODE", "bad");
    let project = app.maker().project();
    let error = json!({"type": "https://example.com/no", "status": 500});
    let tasks = json!([
        {"check": {"if": "${ $runtime.metadata.env.MODE == \"bad\" }", "raise": {"error": error}}},
        {"last": {"set": {"mode": "${ $runtime.metadata.env.MODE }"}}},
    ]);
    flow(&app, project, "checks", &tasks);
    let first = run(&app, "test.checks");
    assert_eq!(app.finished(&first)["status"], "failed");
    put(&app, "prod", "MODE", "good");
    let again = app
        .post(&format!("/v1/runs/{first}/retry"), &json!({}))
        .expect(202);
    let again = again["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(app.finished(&again)["status"], "failed");
    let said = output(&app, &run(&app, "test.checks"));
    assert_eq!(said, json!({"mode": "good"}));
}

/// The run at the top is a turn, of a conversation and of none.
#[test]
fn a_flow_that_a_turn_calls_reads_the_turns_variables() {
    let app = start();
    put(&app, "prod", "MODE", "one");
    let server = changing(&app);
    let model = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Well."),
    });
    let model = model.unwrap();
    let maker = app.maker();
    let project = maker.project();
    flow(&app, project, "inner", &inner());
    let change = maker.tool(project, &NewTool::new("change", &server.url()));
    let body = json!({"projectId": project, "name": "read", "description": "", "flow": {"flowId": "test.inner"}});
    let read = app.post("/v1/tools", &body).expect(201);
    let agent = maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![change, made::id(&read).parse().unwrap()];
    });
    let conversation = maker.conversation(agent, None);
    for more in [json!({}), json!({"conversationId": conversation})] {
        put(&app, "prod", "MODE", "one");
        for tool in ["change", "read"] {
            let call = (tool.to_owned(), json!({}));
            model.push(Step::new(Reply::ToolCalls(vec![call])));
        }
        let mut body = json!({"agentId": agent, "message": "a"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let started = app.post("/v1/runs", &body).expect(202);
        let id = started["run"]["id"].as_str().unwrap();
        assert_eq!(app.finished(id)["status"], "completed");
        let told = model.requests().last().unwrap().body["messages"].to_string();
        assert!(told.contains(r#"\"mode\":\"one\""#), "{told}");
    }
}

/// Nothing of a variable is shown beside what a flow makes of it.
#[test]
fn variables_are_not_in_events_or_payloads_of_runs_that_do_not_read_them() {
    let app = start();
    put(&app, "prod", "MODE", "canary-of-a-variable");
    let project = app.maker().project();
    flow(&app, project, "plain", &json!([{"say": {"set": {"a": 1}}}]));
    let id = run(&app, "test.plain");
    output(&app, &id);
    for part in ["", "/payload", "/steps", "/state"] {
        let shown = app.get(&format!("/v1/runs/{id}{part}"));
        assert!(!shown.text.contains("canary"), "{part}: {}", shown.text);
    }
    assert!(!format!("{:?}", app.events(&id)).contains("canary"));
}
