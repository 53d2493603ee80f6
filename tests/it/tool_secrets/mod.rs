//! HTTP tools that a secret goes to: who may name one, what the tool receives, and that nobody else does.

mod calls;
mod leaks;
mod naming;
mod uses;

use crate::harness::{App, Database, LogLines, ToolServer, secrets::Keys, seeds};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use agent_runtime::secrets::Options;
use serde_json::{Value, json};
use uuid::Uuid;

const KEY: &str = "a-key-of-the-tool";

/// A server of the environment `prod` with this secrets backend, and what it logs.
fn start_over(secrets: Options) -> (App, LogLines) {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let seeds = seeds(&clock);
    let log = lines.debug_logger();
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
        options.secrets = secrets;
        options.runs.environment = Some("prod".to_owned());
        options.webhooks.development = true;
    });
    (app, lines)
}

fn start() -> (App, LogLines) {
    start_over(Keys::new().options())
}

#[track_caller]
fn put(app: &App, name: &str, value: &str) {
    let answer = app.put(
        &format!("/v1/secrets/prod/{name}"),
        &json!({"value": value}),
    );
    assert!([200, 201].contains(&answer.status), "{}", answer.text);
}

/// The body that registers the tool `look_up`.
fn tool(project_id: Uuid, url: &str, more: &Value) -> Value {
    let mut body = json!({
        "projectId": project_id,
        "name": "look_up",
        "description": "Looks it up.",
        "argumentsSchema": {"type": "object"},
        "url": url,
    });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

fn bearer() -> Value {
    json!({"headers": [{"name": "Authorization", "secret": "KEY", "prefix": "Bearer "}]})
}

/// An agent whose model calls the tool so often in each turn, one call a step.
struct Turns {
    model: Provider,
    agent: Uuid,
    calls: usize,
}

/// A turn that has ended.
struct Turn {
    id: String,
    run: Value,
    /// What the model was told of each call.
    results: Vec<String>,
}

impl Turns {
    #[track_caller]
    fn of(app: &App, server: &ToolServer, calls: usize, more: &Value) -> Self {
        Self::at(app, &server.url(), calls, more)
    }

    #[track_caller]
    fn at(app: &App, url: &str, calls: usize, more: &Value) -> Self {
        let model = Provider::start(Script {
            queue: Vec::new(),
            then: Step::text("Well."),
        })
        .unwrap();
        let maker = app.maker();
        let project = maker.project();
        let made = app.post("/v1/tools", &tool(project, url, more)).expect(201);
        let made = made["id"].as_str().unwrap().parse().unwrap();
        let agent = maker.agent_of(project, &model.base_url(), |version| {
            version.tools = vec![made];
        });
        Self {
            model,
            agent,
            calls,
        }
    }

    #[track_caller]
    fn take(&self, app: &App) -> Turn {
        let asked = self.model.requests().len();
        for _ in 0..self.calls {
            let call = ("look_up".to_owned(), json!({}));
            self.model.push(Step::new(Reply::ToolCalls(vec![call])));
        }
        let id = app.start_turn(self.agent, "a");
        let run = app.finished(&id);
        assert_eq!(run["status"], "completed", "{run}");
        let requests = self.model.requests();
        assert_eq!(requests.len(), asked + self.calls + 1);
        let messages = requests.last().unwrap().body["messages"].clone();
        let messages = messages.as_array().unwrap().iter();
        let results = messages
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect();
        Turn { id, run, results }
    }
}
