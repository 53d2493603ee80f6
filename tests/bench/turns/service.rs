//! Our side: the program in a process of its own, an agent and a flow with one HTTP tool, and clients that start a run of
//! one of them and read its stream to the end.

use super::super::Outcome;
use super::super::client::agent;
use super::super::deployment::{Deployment, Replica};
use super::super::load::{Load, Work};
use super::{CLIENTS_AT_ONCE, Each, MESSAGE, Side, TURN, Tool, tool_schema};
use agent_runtime::dev::provider::Provider;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a run may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often a run that nobody follows is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Fields end in this order: the program before what it stands on.
pub(crate) struct Service {
    pub(crate) replica: Replica,
    pub(crate) deployment: Deployment,
    pub(crate) project_id: String,
    agent_id: String,
    /// Its version, as it was made.
    version: Value,
}

/// Clients of it that all start the same.
pub(crate) struct Clients<'a> {
    service: &'a Service,
    /// Of the request that starts a run.
    body: String,
    each: Each,
}

impl Service {
    pub(crate) fn start(provider: &Provider, tool: &Tool) -> Outcome<Self> {
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
        let version = json!({"instructions": "Answer.", "modelProviderId": provider["id"], "model": "m", "toolIds": [tool["id"]]});
        post(&format!("/v1/agents/{agent_id}/versions"), version.clone())?;
        let project_id = project["id"].as_str().ok_or("a project has no id")?;
        Ok(Self {
            agent_id: agent_id.to_owned(),
            project_id: project_id.to_owned(),
            version,
            replica,
            deployment,
        })
    }

    /// Clients that start turns of an agent that is the same but for these guardrails.
    pub(crate) fn guarded(&self, guardrails: &Value) -> Outcome<Clients<'_>> {
        let post = |path: &str, body: Value| self.replica.client.post(path, &body);
        let agent = post(
            "/v1/agents",
            json!({"projectId": self.project_id, "name": "guarded"}),
        )?;
        let agent_id = agent["id"].as_str().ok_or("an agent has no id")?;
        let mut version = self.version.clone();
        version["guardrails"] = guardrails.clone();
        post(&format!("/v1/agents/{agent_id}/versions"), version)?;
        Ok(Clients {
            service: self,
            body: json!({"agentId": agent_id, "message": MESSAGE}).to_string(),
            each: TURN,
        })
    }

    /// Clients that start turns.
    pub(crate) fn turns(&self) -> Clients<'_> {
        Clients {
            service: self,
            body: json!({"agentId": self.agent_id, "message": MESSAGE}).to_string(),
            each: TURN,
        }
    }

    /// Clients that start runs of a flow, whose runs make these calls.
    pub(crate) fn flows(&self, flow_id: &str, each: Each) -> Clients<'_> {
        let start = json!({"flowId": flow_id, "projectId": self.project_id, "input": {}});
        Clients {
            service: self,
            body: start.to_string(),
            each,
        }
    }

    /// Makes a flow of these tasks; its id.
    pub(crate) fn flow(&self, name: &str, tasks: &Value) -> Outcome<String> {
        let definition = json!({"document": {"dsl": "1.0.3", "namespace": "bench", "name": name, "version": "1.0.0"}, "do": tasks});
        let body = json!({"projectId": self.project_id, "definition": definition});
        self.replica.client.post("/v1/flows", &body)?;
        Ok(format!("bench.{name}"))
    }

    /// Starts a run of a flow that nobody follows; its id.
    pub(crate) fn start_flow(&self, flow_id: &str) -> Outcome<Uuid> {
        let start = json!({"flowId": flow_id, "projectId": self.project_id, "input": {}});
        let started = self.replica.client.post("/v1/runs", &start)?;
        let run_id = started["run"]["id"].as_str().ok_or("a run has no id")?;
        Ok(run_id.parse()?)
    }

    /// Starts at least so many runs of a flow at once, and waits until as many more wait; how many.
    pub(crate) fn park(&self, flow_id: &str, count: usize) -> Outcome<usize> {
        let mut database = self.deployment.database()?;
        let mut waiting = || -> Outcome<i64> {
            let query = "select count(*) from runs where status = 'waiting'";
            Ok(database.query_one(query, &[])?.get(0))
        };
        let clients = CLIENTS_AT_ONCE.min(count);
        let each = count.div_ceil(clients);
        let wanted = waiting()? + i64::try_from(clients * each)?;
        // Each client starts one before its clock runs.
        Load::of(clients, each - 1, &|_| {
            Ok(Box::new(move || self.start_flow(flow_id).map(|_| ())))
        })?;
        let deadline = Instant::now() + PATIENCE;
        while waiting()? < wanted {
            if Instant::now() > deadline {
                return Err("not all flows wait".into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(clients * each)
    }

    /// Waits until a run has this status.
    pub(crate) fn await_status(
        &self,
        database: &mut postgres::Client,
        run_id: Uuid,
        wanted: &str,
    ) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        let query = "select status from runs where tenant_id = $1 and run_id = $2";
        let tenant_id = self.deployment.seeds.tenant_id;
        loop {
            let row = database.query_one(query, &[&tenant_id, &run_id])?;
            let status: String = row.get(0);
            if status == wanted {
                return Ok(());
            }
            let over = ["completed", "failed", "cancelled"].contains(&status.as_str());
            if over || Instant::now() > deadline {
                return Err(format!("a run is {status}, not {wanted}").into());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Puts a fresh process in the place of the one that runs.
    pub(crate) fn restart(&mut self) -> Outcome {
        let fresh = self.deployment.replica()?;
        std::mem::replace(&mut self.replica, fresh).stop()
    }
}

impl Clients<'_> {
    pub(crate) fn deployment(&self) -> &Deployment {
        &self.service.deployment
    }

    /// Starts a run and reads its stream to the end.
    pub(crate) fn client(&self) -> Work<'_> {
        let agent = agent();
        let Service {
            replica,
            deployment,
            ..
        } = self.service;
        let runs = format!("http://{}/v1/runs", replica.address());
        let bearer = format!("Bearer {}", deployment.seeds.token.expose());
        let body = self.body.as_str();
        Box::new(move || {
            let start = agent.post(&runs).header("authorization", &bearer);
            let start = start.header("content-type", "application/json");
            let start = start.config().http_status_as_error(false).build();
            let started = text(start.send(body)?)?;
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

impl Side for Clients<'_> {
    const NAME: &'static str = "agent-runtime";
    const STEPS: &'static str = "select count(*) from run_steps where status = 'completed'";

    fn each(&self) -> Each {
        self.each
    }

    fn process(&self) -> u32 {
        self.service.replica.id()
    }

    fn database(&self) -> Outcome<postgres::Client> {
        self.service.deployment.database()
    }

    fn load(&self, clients: usize, runs: usize) -> Outcome<f64> {
        let load = Load::of(clients, runs.div_ceil(clients), &|_| Ok(self.client()))?;
        Ok(load.rate())
    }
}
