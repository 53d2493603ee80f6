//! Calls of tools that a reviewer approves first, as turns of agents make them. With authorization off, so whoever holds a
//! token decides; who may is in `access::approvals`.

mod decisions;
mod ends;

use crate::harness::{
    Answer, App, NewTool, ToolAnswer, ToolServer, calls, eventually, tool_results,
};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// What may stand in no event that leaves the service.
const CANARY: &str = "canary-4711";

/// An agent whose model asks for these calls and then says something, and what it calls.
struct World {
    app: App,
    project: Uuid,
    tool: ToolServer,
    tools: Vec<Uuid>,
    model: Provider,
    agent: Uuid,
}

fn pay(amount: i64) -> Step {
    calls(&[("pay", json!({"amount": amount, "why": CANARY}))])
}

impl World {
    /// With a tool `pay` whose calls ask this, and a tool `look` whose calls ask nothing.
    fn start(approval: Value, answers: Vec<Step>) -> Self {
        Self::start_on(App::start(), approval, answers)
    }

    fn start_on(app: App, approval: Value, answers: Vec<Step>) -> Self {
        let tool = ToolServer::start(|_, _| ToolAnswer::ok(format!("paid {CANARY}")));
        let then = Step::text("Well.");
        let model = Provider::start(Script {
            queue: answers,
            then,
        })
        .unwrap();
        let maker = app.maker();
        let project = maker.project();
        let url = tool.url();
        let mut pay = NewTool::new("pay", &url);
        pay.idempotent = false;
        pay.approval = approval;
        pay.schema = json!({"type": "object", "required": ["amount"], "additionalProperties": false,
            "properties": {"amount": {"type": "integer", "maximum": 1000}, "why": {"type": "string"}}});
        let tools = vec![
            maker.tool(project, &pay),
            maker.tool(project, &NewTool::new("look", &url)),
        ];
        let agent = maker.agent_of(project, &model.base_url(), |version| {
            version.tools.clone_from(&tools);
        });
        Self {
            app,
            project,
            tool,
            tools,
            model,
            agent,
        }
    }

    /// With an agent that has these steps a turn.
    fn limit(&mut self, max_steps: u16) {
        let maker = self.app.maker();
        self.agent = maker.agent_of(self.project, &self.model.base_url(), |version| {
            version.tools.clone_from(&self.tools);
            version.limits = json!({"maxSteps": max_steps});
        });
    }

    /// A run that waits for so many approvals, and these, in the order of the calls.
    #[track_caller]
    fn asked(&self, count: usize) -> (String, Vec<String>) {
        let run = self.app.start_turn(self.agent, CANARY);
        let approvals = eventually("the approvals", || {
            self.app.run_once(&run, "waiting");
            Some(self.waiting(&run)).filter(|waiting| waiting.len() == count)
        });
        (run, approvals)
    }

    /// What waits of a run, in the order of the calls.
    fn waiting(&self, run: &str) -> Vec<String> {
        let found = self.app.get(&format!("/v1/approvals?runId={run}"));
        let mut rows = found.expect(200)["data"].as_array().unwrap().clone();
        rows.sort_by_key(|row| row["path"].as_str().unwrap().to_owned());
        rows.iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    }

    fn decide(&self, approval: &str, body: &Value) -> Answer {
        self.app
            .post(&format!("/v1/approvals/{approval}/decide"), body)
    }

    #[track_caller]
    fn approval(&self, id: &str) -> Value {
        self.app.get(&format!("/v1/approvals/{id}")).expect(200)
    }

    #[track_caller]
    fn completed(&self, run: &str) -> Value {
        let ended = self.app.finished(run);
        assert_eq!(ended["status"], json!("completed"), "{ended}");
        ended
    }

    /// What the tool was called with, in order.
    fn paid(&self) -> Vec<Value> {
        let asked = self.tool.asked().into_iter();
        asked.map(|call| call.body["arguments"].clone()).collect()
    }

    /// What the model got as results of its calls before its last answer.
    fn tool_results(&self) -> Vec<String> {
        tool_results(&self.model)
    }
}

/// The steps of a run: kind and status.
fn steps(app: &App, run: &str) -> Vec<String> {
    let found = app
        .get(&format!("/v1/runs/{run}/steps?order=asc"))
        .expect(200);
    let rows = found["data"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| format!("{} {}", text(&row["kind"]), text(&row["status"])))
        .collect()
}
