//! Agents and flows as tools of agents and flows. With authorization off, so whoever holds a token decides approvals. What
//! becomes of crashes and retries is in `flow_runs::tool_children`.

mod bounds;
mod calls;
mod dry_runs;
mod flows;
mod registration;

use crate::harness::{App, calls, eventually, made};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use std::cell::RefCell;
use uuid::Uuid;

/// A project whose agents and flows call each other.
struct World {
    app: App,
    project: Uuid,
    /// Models of agents that a test asks nothing of.
    kept: RefCell<Vec<Provider>>,
}

/// A call of an agent.
fn asks(tool: &str, message: &str) -> Step {
    calls(&[(tool, json!({"message": message}))])
}

/// A model that gives these answers, and then says `Well.`
fn model(queue: Vec<Step>) -> Provider {
    let then = Step::text("Well.");
    Provider::start(Script { queue, then }).unwrap()
}

/// A task that asks a reviewer.
fn asks_a_reviewer() -> Value {
    json!({"call": "approval", "with": {"title": "Pay"}})
}

impl World {
    fn start() -> Self {
        Self::on(App::start())
    }

    fn on(app: App) -> Self {
        let project = app.maker().project();
        let kept = RefCell::default();
        Self { app, project, kept }
    }

    /// An agent with version 1.0.0, which asks this model and has these tools.
    #[track_caller]
    fn agent(&self, model: &Provider, tools: &[Uuid]) -> Uuid {
        let maker = self.app.maker();
        maker.agent_of(self.project, &model.base_url(), |version| {
            version.tools = tools.to_vec();
        })
    }

    /// An agent without tools whose model gives these answers.
    #[track_caller]
    fn clerk(&self, answers: Vec<Step>) -> Uuid {
        let model = model(answers);
        let agent = self.agent(&model, &[]);
        self.kept.borrow_mut().push(model);
        agent
    }

    /// A flow `test.NAME` of these tasks; its row's id.
    #[track_caller]
    fn flow(&self, name: &str, tasks: Value, schema: Value) -> String {
        let definition = definition(name, "1.0.0", tasks, schema);
        let body = json!({"projectId": self.project, "definition": definition});
        made::id(&self.app.post("/v1/flows", &body).expect(201))
    }

    /// The body that registers a tool.
    fn body(&self, name: &str, fields: &Value) -> Value {
        let mut body = json!({"projectId": self.project, "name": name, "description": "A tool."});
        let body_fields = body.as_object_mut().unwrap();
        body_fields.extend(fields.as_object().unwrap().clone());
        body
    }

    #[track_caller]
    fn tool(&self, name: &str, fields: Value) -> Uuid {
        let body = self.body(name, &fields);
        let tool = self.app.post("/v1/tools", &body).expect(201);
        made::id(&tool).parse().unwrap()
    }

    #[track_caller]
    fn agent_tool(&self, name: &str, agent: Uuid) -> Uuid {
        self.tool(name, json!({"agent": {"id": agent}}))
    }

    #[track_caller]
    fn flow_tool(&self, name: &str, flow: &str) -> Uuid {
        self.tool(name, json!({"flow": {"flowId": format!("test.{flow}")}}))
    }

    /// Starts a run of a flow; its id.
    #[track_caller]
    fn start_flow(&self, flow: &str, input: Value) -> String {
        let body = json!({"flowId": format!("test.{flow}"), "input": input});
        made::id(&self.app.post("/v1/runs", &body).expect(202)["run"])
    }

    /// The runs that a run began, in their order.
    #[track_caller]
    fn children(&self, run: &str) -> Vec<Value> {
        let path = format!("/v1/runs?order=asc&parentRunId={run}");
        let found = self.app.get(&path).expect(200);
        found["data"].as_array().unwrap().clone()
    }

    /// The only run that a run began, once it is there.
    #[track_caller]
    fn child(&self, run: &str) -> String {
        let children = eventually("the child", || {
            Some(self.children(run)).filter(|children| !children.is_empty())
        });
        assert_eq!(children.len(), 1, "{children:?}");
        made::id(&children[0])
    }

    /// The approval that a run waits for.
    #[track_caller]
    fn approval(&self, run: &str) -> Value {
        eventually("the approval", || {
            let found = self.app.get(&format!("/v1/approvals?runId={run}"));
            found.expect(200)["data"]
                .as_array()
                .unwrap()
                .first()
                .cloned()
        })
    }

    #[track_caller]
    fn decide(&self, run: &str, decision: &Value) {
        let approval = made::id(&self.approval(run));
        let path = format!("/v1/approvals/{approval}/decide");
        self.app.post(&path, decision).expect(200);
    }

    #[track_caller]
    fn completed(&self, run: &str) -> Value {
        let ended = self.app.finished(run);
        assert_eq!(ended["status"], json!("completed"), "{ended}");
        ended
    }

    /// The steps of a run: kind, name and status.
    #[track_caller]
    fn steps(&self, run: &str) -> Vec<String> {
        let path = format!("/v1/runs/{run}/steps?order=asc");
        let found = self.app.get(&path).expect(200);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let rows = found["data"].as_array().unwrap().iter();
        rows.map(|row| {
            let (kind, name) = (text(&row["kind"]), text(&row["name"]));
            format!("{kind} {name} {}", text(&row["status"]))
        })
        .collect()
    }
}

fn definition(name: &str, version: &str, tasks: Value, schema: Value) -> Value {
    let mut definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "test", "name": name, "version": version},
        "do": tasks,
    });
    if !schema.is_null() {
        definition["input"] = json!({"schema": {"format": "json", "document": schema}});
    }
    definition
}
