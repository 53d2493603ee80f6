//! The TypeScript client.

use super::file;
use crate::harness::webhooks::SIGNING;
use crate::harness::{App, made, rounds};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Cuts of connections in one test, where all rounds are made.
const CUTS: usize = 500;

/// Tasks of the flow that has many events.
const TASKS: usize = 120;

/// An answer that takes about half a second, so that its text is seen while it is written.
const ANSWER: &str = "Grüße 👋 aus dem Modell, das sich mit jedem Wort ein wenig Zeit lässt.";
const PACE: Duration = Duration::from_millis(40);

/// Runs files of tests, which say what was wrong.
#[track_caller]
fn run(files: &[PathBuf], environment: &[(&str, &str)]) {
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"]).args(files);
    node.envs(environment.iter().copied());
    node.env("AGENT_RUNTIME_CUTS", rounds(CUTS).to_string());
    // A server that somebody has is no server of this test.
    node.env_remove("AGENT_RUNTIME_URL")
        .env_remove("AGENT_RUNTIME_TOKEN");
    let output = node.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("pass "), "no test ran: {said}");
}

#[test]
fn its_own_tests_hold() {
    let listed = std::fs::read_dir(file("typescript/test")).unwrap();
    let files = listed.map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files
        .filter(|path| path.to_string_lossy().ends_with(".test.js"))
        .collect();
    assert!(files.len() >= 8, "{files:?}");
    run(&files, &[]);
}

fn flow(app: &App, project: &str, name: &str, tasks: Value) {
    let document = json!({"dsl": "1.0.3", "namespace": "tests", "name": name, "version": "1.0.0"});
    flow_of(app, project, document, tasks);
}

fn flow_of(app: &App, project: &str, document: Value, tasks: Value) {
    let definition = json!({"document": document, "do": tasks});
    let body = json!({"projectId": project, "definition": definition});
    app.post("/v1/flows", &body).expect(201);
}

#[test]
fn it_loses_nothing_between_itself_and_a_server_and_its_readme_runs() {
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text(ANSWER).between(PACE),
    })
    .unwrap();
    let app = App::start_with_webhooks();
    let agent = app.agent(&provider.base_url());
    let project = made::project(&app);
    let many: Vec<Value> = (0..TASKS)
        .map(|number| json!({(format!("task{number}")): {"set": {"at": number, "text": "Grüße 👋"}}}))
        .collect();
    flow(&app, &project, "many", json!(many));
    let document =
        json!({"dsl": "1.0.3", "namespace": "billing", "name": "refund", "version": "1.0.0"});
    let ask = json!([{"ask": {"call": "approval", "with": {"title": "Pay a refund", "requiredRole": "standard"}}}]);
    flow_of(&app, &project, document, ask);
    let ada = app.person("Ada", "ada@example.com");
    let membership = json!({"userId": ada, "role": "viewer"});
    let path = format!("/v1/projects/{project}/memberships");
    app.post(&path, &membership).expect(201);

    run(
        &[file("typescript/test/server/server.test.js")],
        &[
            ("URL", &format!("http://{}", app.address())),
            ("TOKEN", app.token()),
            ("AGENT", &agent.to_string()),
            ("PROJECT", &project),
            ("SECRET", SIGNING),
            ("ENVIRONMENT", "live"),
        ],
    );
    let count = "select count(*) from run_labels where key = 'test' and value = 'lost'";
    let count: i64 = app.database.client().query_one(count, &[]).unwrap().get(0);
    assert_eq!(count, 1, "runs of a start that was sent again");
}

#[test]
fn a_denial_reaches_it_as_the_specification_says() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let stranger = app.person("Stranger", "stranger@example.com");
    app.is_in_step();
    let stranger = app.as_user(stranger);
    run(
        &[file("typescript/test/server/denied.test.js")],
        &[
            ("URL", &format!("http://{}", app.address())),
            ("TOKEN", stranger.token()),
            ("PROJECT", &project),
        ],
    );
}
