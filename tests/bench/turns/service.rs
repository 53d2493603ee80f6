//! Our side: the program in a process of its own, an agent with one HTTP tool, and clients that start a run and read its
//! stream to the end.

use super::super::Outcome;
use super::super::client::agent;
use super::super::deployment::{Deployment, Replica};
use super::super::load::{Load, Work};
use super::{MESSAGE, Side, Tool, tool_schema};
use agent_runtime::dev::provider::Provider;
use serde_json::{Value, json};

/// Fields end in this order: the program before what it stands on.
pub(super) struct Service {
    pub(super) replica: Replica,
    pub(super) deployment: Deployment,
    agent_id: String,
}

impl Service {
    pub(super) fn start(provider: &Provider, tool: &Tool) -> Outcome<Self> {
        let deployment = Deployment::start(false, &[])?;
        let replica = deployment.replica()?;
        let post = |path: &str, body: Value| replica.client.post(path, &body);
        let project = post("/v1/projects", json!({"name": "bench"}))?;
        let provider = post(
            "/v1/model-providers",
            json!({"name": "scripted", "baseUrl": provider.base_url(), "models": [{"name": "m"}]}),
        )?;
        let schema = tool_schema();
        let tool = post(
            "/v1/tools",
            json!({"projectId": project["id"], "name": schema["name"], "description": schema["description"],
                "argumentsSchema": schema["parameters"], "url": tool.url(), "idempotent": true}),
        )?;
        let agent = post(
            "/v1/agents",
            json!({"projectId": project["id"], "name": "bench"}),
        )?;
        let agent_id = agent["id"].as_str().ok_or("an agent has no id")?;
        post(
            &format!("/v1/agents/{agent_id}/versions"),
            json!({"instructions": "Answer.", "modelProviderId": provider["id"], "model": "m", "toolIds": [tool["id"]]}),
        )?;
        Ok(Self {
            agent_id: agent_id.to_owned(),
            replica,
            deployment,
        })
    }

    /// Starts a turn and reads its stream to the end.
    fn client(&self) -> Work<'_> {
        let agent = agent();
        let runs = format!("http://{}/v1/runs", self.replica.address());
        let bearer = format!("Bearer {}", self.deployment.seeds.token.expose());
        let body = json!({"agentId": self.agent_id, "message": MESSAGE}).to_string();
        Box::new(move || {
            let start = agent.post(&runs).header("authorization", &bearer);
            let start = start.header("content-type", "application/json");
            let start = start.config().http_status_as_error(false).build();
            let started = text(start.send(body.as_str())?)?;
            let started: Value = serde_json::from_str(&started)?;
            let run_id = started["run"]["id"].as_str().ok_or("a run has no id")?;
            let follow = agent.get(format!("{runs}/{run_id}/progress/stream"));
            let follow = follow.header("authorization", &bearer);
            let follow = follow.config().http_status_as_error(false).build();
            let events = text(follow.call()?)?;
            if events.contains("event: run.completed\n") {
                Ok(())
            } else {
                Err(format!("a run did not complete: {events}").into())
            }
        })
    }
}

/// What a request that must succeed was answered.
fn text(mut response: ureq::http::Response<ureq::Body>) -> Outcome<String> {
    let text = response.body_mut().read_to_string()?;
    if response.status().is_success() {
        Ok(text)
    } else {
        Err(format!("{}: {text}", response.status()).into())
    }
}

impl Side for Service {
    const NAME: &'static str = "agent-runtime";
    const STEPS: &'static str = "select count(*) from run_steps where status = 'completed'";

    fn process(&self) -> u32 {
        self.replica.id()
    }

    fn database(&self) -> Outcome<postgres::Client> {
        self.deployment.database()
    }

    fn load(&self, clients: usize, turns: usize) -> Outcome<f64> {
        let load = Load::of(clients, turns.div_ceil(clients), &|_| Ok(self.client()))?;
        Ok(load.rate())
    }
}
