//! Data of a run never leaves the service with the news that it failed: no webhook event, no log record, no list and no metric
//! has it. The run itself quotes it for those who may read the run.
//!
//! Each way to fail has the text [`CANARY`] in other data: input, context, operands, arguments, answers, errors, a comment.

use super::world::{SECRET, webhooks};
use crate::harness::{
    App, Database, LogLines, NewTool, Receiver, ToolAnswer, ToolServer, eventually, made, seeds,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const CANARY: &str = "Canary7Tweets";

struct World {
    app: App,
    lines: LogLines,
    receiver: Receiver,
    project: Uuid,
}

impl World {
    fn new() -> Self {
        let (lines, clock) = (LogLines::default(), Clock::system());
        let (seeds, log) = (seeds(&clock), lines.debug_logger());
        let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
            webhooks(options);
            options.runs.first_wait = Duration::from_millis(10);
        });
        let put = app.put("/v1/secrets/test/hook", &json!({"value": SECRET}));
        assert!([200, 201].contains(&put.status), "{put:?}");
        let receiver = Receiver::good();
        let endpoint = json!({"url": receiver.url(), "events": ["run.finished", "approval.requested"],
            "secretRef": {"envName": "test", "name": "hook"}});
        app.post("/v1/webhook-endpoints", &endpoint).expect(201);
        let project = app.maker().project();
        Self {
            app,
            lines,
            receiver,
            project,
        }
    }

    fn flow(&self, name: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut definition = json!({
            "document": {"dsl": "1.0.3", "namespace": "canary", "name": name, "version": "1.0.0"},
            "do": [],
        });
        change(&mut definition);
        let body = json!({"projectId": self.project, "definition": definition});
        self.app.post("/v1/flows", &body).expect(201);
        let input = json!({"flowId": format!("canary.{name}"), "input": {"text": CANARY, "n": 1}});
        made::id(&self.app.post("/v1/runs", &input).expect(202)["run"])
    }

    fn task(&self, name: &str, task: &Value) -> String {
        self.flow(name, |definition| {
            definition["do"] = json!([{ "go": task }])
        })
    }

    /// The runs of flows, by what fails in them. Of each the run has the canary.
    fn flows(&self, server: &ToolServer) -> Vec<(&'static str, String)> {
        let raise = |error: Value| json!({"raise": {"error": error}});
        let kind = "https://example.com/no";
        let mut runs = vec![
            (
                "operands",
                self.task("operands", &json!({"set": {"sum": "${ .text + .n }"}})),
            ),
            (
                "context",
                self.flow("context", |definition| {
                    definition["do"] = json!([
                        {"keep": {"set": {"a": 1}, "export": {"as": "{ kept: $workflow.input.text }"}}},
                        {"go": {"set": {"sum": "${ $context.kept - 1 }"}}},
                    ]);
                }),
            ),
            (
                "output",
                self.task(
                    "output",
                    &json!({"set": {"a": "${ .text }"}, "output": {"schema": {"document":
                        {"properties": {"a": {"type": "integer"}}}}}}),
                ),
            ),
            (
                "title",
                self.task(
                    "title",
                    &raise(json!({"type": kind, "status": 409, "title": "${ .text }", "detail": "${ .text }"})),
                ),
            ),
        ];
        runs.extend(self.calls(server));
        // Of a run below: the same error is that of the run above it.
        let below = json!({"run": {"workflow": {"namespace": "canary", "name": "title", "version": "1.0.0", "input": {"text": CANARY}}}});
        runs.push(("below", self.task("below", &below)));
        let branches =
            json!([{"one": raise(json!({"type": kind, "status": 409, "title": "${ .text }"}))}]);
        runs.push((
            "fork",
            self.task("fork", &json!({"fork": {"branches": branches}})),
        ));
        runs
    }

    /// The same of tasks that call a server or a tool.
    fn calls(&self, server: &ToolServer) -> Vec<(&'static str, String)> {
        vec![
            (
                "answer",
                self.task(
                    "answer",
                    &json!({"call": "http", "with": {"method": "post", "endpoint": server.url(), "body": {"a": "${ .text }"}}}),
                ),
            ),
            (
                "query",
                self.task(
                    "query",
                    &json!({"call": "http", "with": {"method": "get", "endpoint": "${ \"http://127.0.0.1:1/\" + .text }"}}),
                ),
            ),
            (
                "tool",
                self.task(
                    "tool",
                    &json!({"call": "tool", "with": {"tool": "look_up", "arguments": {"a": "${ .text }"}}}),
                ),
            ),
            (
                "arguments",
                self.task(
                    "arguments",
                    &json!({"call": "tool", "with": {"tool": "strict", "arguments": {"a": "${ .text }"}}}),
                ),
            ),
        ]
    }

    /// A run whose reviewer says no, with the canary.
    fn rejected(&self) -> String {
        let with = json!({"title": "Pay", "requiredRole": "finance", "expiresAfter": "P1D", "context": "${ . }"});
        let run = self.task("rejected", &json!({"call": "approval", "with": with}));
        let id = eventually("the approval", || {
            let found = self
                .app
                .get(&format!("/v1/approvals?runId={run}"))
                .expect(200);
            found["data"][0]["id"].as_str().map(str::to_owned)
        });
        let decision = json!({"decision": "reject", "comment": CANARY});
        let decide = format!("/v1/approvals/{id}/decide");
        self.app.post(&decide, &decision).expect(200);
        run
    }

    fn turn(&self, answer: Step, server: &ToolServer) -> String {
        let provider = Provider::start(Script {
            queue: Vec::new(),
            then: answer,
        })
        .unwrap();
        let maker = self.app.maker();
        let project = maker.project();
        let tool = maker.tool(project, &NewTool::new("look_up", &server.url()));
        let agent = maker.agent_of(project, &provider.base_url(), |version| {
            version.tools = vec![tool];
            version.output_schema = json!({"type": "object", "required": ["never"]});
            version.limits = json!({"maxSteps": 3});
        });
        let run = self.app.start_turn(agent, CANARY);
        self.app.finished(&run);
        run
    }

    fn turns(&self, server: &ToolServer) -> Vec<(&'static str, String)> {
        let call = vec![("look_up".to_owned(), json!({"a": CANARY}))];
        let refusal = json!({"error": {"message": CANARY}});
        vec![
            ("provider", self.turn(Step::json(400, &refusal), server)),
            (
                "misfit",
                self.turn(Step::text(format!("{{\"{CANARY}\": 1}}")), server),
            ),
            (
                "steps",
                self.turn(Step::new(Reply::ToolCalls(call)), server),
            ),
        ]
    }
}

#[test]
fn data_of_a_run_does_not_leave_with_the_news_that_it_failed() {
    let world = World::new();
    let app = &world.app;
    let server = ToolServer::start(|_, _| ToolAnswer::Status(404, format!("{CANARY} is gone")));
    let maker = app.maker();
    maker.tool(world.project, &NewTool::new("look_up", &server.url()));
    let url = server.url();
    let mut strict = NewTool::new("strict", &url);
    strict.schema = json!({"type": "object", "properties": {"a": {"enum": [1]}}});
    maker.tool(world.project, &strict);
    let mut runs = world.flows(&server);
    runs.push(("rejected", world.rejected()));
    runs.extend(world.turns(&server));
    for (name, run) in &runs {
        let ended = app.finished(run);
        assert_eq!(ended["status"], "failed", "{name}: {ended}");
        let message = ended["failureMessage"].as_str().unwrap();
        // Of the others the message has a place or a number.
        let is_quoted = !["query", "arguments", "misfit", "steps"].contains(name);
        assert!(message.contains(CANARY) || !is_quoted, "{name}: {message}");
    }
    let all = runs.len();
    // Each run, and the approval.
    let received = world.receiver.once(all + 1);
    let listed = app.get("/v1/runs?limit=100&children=true").expect(200);
    for (name, run) in &runs {
        let is_own = |one: &&Value| one["id"] == json!(run);
        let told = received.iter().map(|one| one.json()["data"]["run"].clone());
        let told: Vec<Value> = told.collect();
        let told = told
            .iter()
            .find(is_own)
            .unwrap_or_else(|| panic!("{name} was not told"));
        let item = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .find(is_own)
            .unwrap();
        let records = world.lines.records("A run ended");
        let record = records
            .iter()
            .find(|one| one["runId"] == json!(run))
            .unwrap();
        let summary = told["failureMessage"].as_str().unwrap();
        assert!(summary.len() > 10, "{name}: {summary}");
        assert_eq!(item["failureMessage"], json!(summary), "{name}");
        assert_eq!(record["failureMessage"], json!(summary), "{name}");
    }
    for one in &received {
        assert!(!one.json().to_string().contains(CANARY), "{}", one.json());
    }
    let list = listed.to_string();
    assert!(!list.contains(CANARY), "{list}");
    let lines = world.lines.with(CANARY);
    assert!(lines.is_empty(), "{lines:#?}");
    assert!(!app.get("/metrics").text.contains(CANARY));
}

/// What the author or the service wrote is said.
#[test]
fn a_summary_names_the_task_the_status_and_a_literal_title() {
    let world = World::new();
    let server = ToolServer::start(|_, _| ToolAnswer::Status(404, CANARY.to_owned()));
    let raised = |title: Value| json!({"raise": {"error": {"type": "https://example.com/no", "status": 409, "title": title, "detail": "${ .text }"}}});
    let http =
        json!({"call": "http", "with": {"method": "post", "endpoint": server.url(), "body": {}}});
    let fork = json!({"fork": {"branches": [{"one": raised(json!("Taken"))}]}});
    for (name, task, summary) in [
        (
            "literal",
            raised(json!("Taken")),
            "The task /do/0/go failed: Taken (status 409).",
        ),
        (
            "computed",
            raised(json!("${ .text }")),
            "The task /do/0/go failed (status 409).",
        ),
        (
            "http",
            http,
            "The task /do/0/go failed: The call failed (status 404).",
        ),
        (
            "fork",
            fork,
            "The task /do/0/go failed: Taken (status 409).",
        ),
    ] {
        let run = world.task(name, &task);
        world.app.finished(&run);
        let listed = world.app.get("/v1/runs?limit=1&origin=app").expect(200);
        assert_eq!(listed["data"][0]["id"], json!(run));
        assert_eq!(
            listed["data"][0]["failureMessage"],
            json!(summary),
            "{name}"
        );
        let steps = world.app.get(&format!("/v1/runs/{run}/steps")).expect(200);
        for step in steps["data"].as_array().unwrap() {
            assert_eq!(step["status"], "completed", "{name}");
            assert_eq!(step["outcome"], "failed", "{name}");
        }
    }
}
