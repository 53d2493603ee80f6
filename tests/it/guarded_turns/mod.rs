//! What guardrails do to turns: each point with each verdict, what becomes of what is blocked, and what is kept of it. Which
//! texts the checks find is in the tests of `src/guardrails`; who may write them is in `guardrails` and `policies`.

mod calls;
mod faults;
mod texts;

use crate::harness::{App, NewTool, ToolAnswer, ToolServer, calls, eventually, tool_results};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// What the checks of these tests find, in two words: each text that has the first is redacted or blocked.
const CANARY: &str = "canary-7f3a";

/// An agent with guardrails, two tools, and a model that says this.
struct World {
    app: App,
    project: Uuid,
    tool: ToolServer,
    model: Provider,
    agent: Uuid,
}

/// A check for the canary.
fn check(at: &str, action: &str, more: Value) -> Value {
    let mut check = json!({"builtin": "pattern", "name": "no-canary", "at": [at], "action": action,
        "config": {"patterns": ["canary-[0-9a-z]+"]}});
    let fields = check.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    check
}

impl World {
    fn start(guardrails: Value, answers: Vec<Step>) -> Self {
        Self::start_with(guardrails, answers, json!("ok"))
    }

    /// With tools that answer this.
    fn start_with(guardrails: Value, answers: Vec<Step>, answer: Value) -> Self {
        Self::start_on(App::start(), guardrails, answers, answer)
    }

    fn start_on(app: App, guardrails: Value, answers: Vec<Step>, answer: Value) -> Self {
        let answer = match answer {
            Value::String(text) => text,
            value => value.to_string(),
        };
        let tool = ToolServer::start(move |_, _| ToolAnswer::ok(answer.clone()));
        let then = Step::text("Well.");
        let model = Provider::start(Script {
            queue: answers,
            then,
        })
        .unwrap();
        let maker = app.maker();
        let project = maker.project();
        let url = tool.url();
        let mut send = NewTool::new("send", &url);
        send.schema =
            json!({"type": "object", "properties": {"to": {"type": "string", "maxLength": 20}}});
        let tools = vec![
            maker.tool(project, &send),
            maker.tool(project, &NewTool::new("look", &url)),
        ];
        let agent = maker.agent_of(project, &model.base_url(), |version| version.tools = tools);
        let world = Self {
            app,
            project,
            tool,
            model,
            agent,
        };
        world.guard(&guardrails, "held");
        world
    }

    /// Gives the agent's version these guardrails, readable by this program or not.
    fn guard(&self, guardrails: &Value, streaming: &str) {
        let set = "update agent_versions set guardrails = $1, streaming = $2 where agent_id = $3";
        let mut client = self.app.database.client();
        client
            .execute(set, &[guardrails, &streaming, &self.agent])
            .unwrap();
    }

    /// The next version of the tenant's policy, or of the project's.
    fn policy(&self, of_project: bool, guardrails: &Value) {
        let project = of_project.then_some(self.project);
        let insert = "insert into policies (tenant_id, project_id, version, guardrails, streaming, created_by, created_at)
            select p.tenant_id, $1, coalesce(
              (select max(o.version) from policies o where o.project_id is not distinct from $1), 0) + 1, $2, 'held', p.created_by, now()
            from projects p where p.project_id = $3";
        let mut client = self.app.database.client();
        let written = client
            .execute(insert, &[&project, guardrails, &self.project])
            .unwrap();
        assert_eq!(written, 1);
    }

    /// The run of a message, once it has ended.
    fn run(&self, message: &str) -> Value {
        let run = self.app.start_turn(self.agent, message);
        self.app.finished(&run)
    }

    /// What was decided: point, check, verdict and policy's version, in order.
    fn decided(&self, run: &Value) -> Vec<String> {
        let id: Uuid = run["id"].as_str().unwrap().parse().unwrap();
        let all = "select point || ' ' || name || ' ' || verdict || coalesce(' ' || on_error, '') || coalesce(' v' || policy_version, '')
            from run_checks where run_id = $1 order by step, attempt, ordinal";
        let rows = self.app.database.client().query(all, &[&id]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// The kinds of events that tell of checks, with the name and the verdict.
    fn told(&self, run: &Value) -> Vec<String> {
        let events = self.app.events(run["id"].as_str().unwrap());
        let is_of_check =
            |event: &&Value| event["kind"].as_str().unwrap().starts_with("guardrail.");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = events.iter().filter(is_of_check).map(|event| {
            let data = &event["data"];
            let decided = [&data["verdict"], &data["onError"]].map(text).concat();
            format!("{} {} {decided}", text(&data["point"]), text(&data["name"]))
        });
        told.collect()
    }

    /// Everything that the model was asked, as text.
    fn asked(&self) -> Vec<String> {
        let requests = self.model.requests();
        requests.iter().map(|one| one.body.to_string()).collect()
    }

    /// What the tools were called with, in order.
    fn called(&self) -> Vec<Value> {
        let asked = self.tool.asked().into_iter();
        asked.map(|call| call.body["arguments"].clone()).collect()
    }

    fn tool_results(&self) -> Vec<String> {
        tool_results(&self.model)
    }

    /// The approval that a run waits for.
    fn approval(&self, run: &str) -> String {
        eventually("the approval", || {
            let found = self
                .app
                .get(&format!("/v1/approvals?runId={run}&status=waiting"));
            let found = found.expect(200)["data"][0]["id"]
                .as_str()
                .map(str::to_owned);
            found.filter(|_| self.app.run(run)["status"] == "waiting")
        })
    }

    #[track_caller]
    fn decide(&self, approval: &str, body: Value) {
        let path = format!("/v1/approvals/{approval}/decide");
        self.app.post(&path, &body).expect(200);
    }

    /// How often the canary stands in the whole database, but for the checks' own patterns.
    fn canaries(&self) -> usize {
        self.app.database.count_of(CANARY)
    }
}

#[track_caller]
fn failed(run: &Value, why: &str) {
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["failureMessage"], why, "{run}");
}
