//! A cluster, a database, an agent with a tool: what the program carries runs on in.

use crate::server::{Client, ServerConfig, free_port};
use crate::tool::Tool;
use agent_runtime::dev::cluster::{Cluster, Options};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use postgres::NoTls;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use uuid::Uuid;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{}-{name}", std::process::id()))
}

/// A cluster of its own, for tests that hurt it.
pub(crate) fn cluster(name: &str) -> Cluster {
    cluster_in(directory(name))
}

/// The same in a directory that stands.
pub(crate) fn cluster_in(data_dir: PathBuf) -> Cluster {
    let started = Cluster::start(Options {
        data_dir,
        durable: false,
        bin_dir: None,
        search_path: None,
        runtime_dir: None,
        log: slog::Logger::root(slog::Discard, slog::o!()),
    });
    started.unwrap_or_else(|failure| panic!("{failure}"))
}

/// The URL of a fresh database on the cluster that the gentler tests share. It ends with the process.
pub(crate) fn shared_database() -> String {
    static CLUSTER: OnceLock<Mutex<Cluster>> = OnceLock::new();
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let cluster = CLUSTER.get_or_init(|| Mutex::new(cluster("shared")));
    let name = format!("crash_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let (admin, url) = {
        let cluster = cluster.lock().unwrap();
        (cluster.url(), cluster.url_of(&name))
    };
    let mut admin = postgres::Client::connect(&admin, NoTls).unwrap();
    admin
        .batch_execute(&format!("create database {name}"))
        .unwrap();
    url
}

/// A database on that cluster, as the harness of OpenFGA wants it.
pub(crate) struct Database(String);

impl Database {
    pub(crate) fn empty() -> Self {
        Self(shared_database())
    }

    pub(crate) fn url(&self) -> String {
        self.0.clone()
    }
}

/// How servers are started: leases are short, so that tests need not wait for long ones.
pub(crate) fn config(database_url: String) -> ServerConfig {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let clock = Clock::system();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    ServerConfig {
        program: env!("CARGO_BIN_EXE_agent-runtime").into(),
        port: free_port(),
        database_url,
        tenant_id: clock.new_id(),
        user_id: clock.new_id(),
        token: format!("crash-test-token-{}", clock.new_id().simple()),
        settings: Vec::new(),
        descriptors: None,
        log: directory("logs").with_extension(format!("{number}.log")),
    }
    .with("SVC_RUN_LEASE_MS", 700)
    .with("SVC_JOB_POLL_MS", 50)
    .with("SVC_RUN_THREADS", 16)
}

/// The pace of the other sides.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Before each piece of the model's stream.
    pub(crate) between: Duration,
    /// Each call of the tool.
    pub(crate) tool: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            between: Duration::from_millis(10),
            tool: Duration::from_millis(60),
        }
    }
}

/// A scripted provider, a tool, and two agents that use them: the tool of one may be called again.
pub(crate) struct Agents {
    pub(crate) provider: Provider,
    pub(crate) tool: Tool,
    pub(crate) repeatable: Uuid,
    pub(crate) unrepeatable: Uuid,
}

/// The id of what was made.
pub(crate) fn id_of(made: &serde_json::Value) -> Uuid {
    made["id"].as_str().unwrap().parse().unwrap()
}

impl Agents {
    /// Makes them through the API of a ready server.
    pub(crate) fn make(client: &Client, pace: Pace) -> Self {
        let mut answers = Step::new(Reply::Scripted);
        answers.between = pace.between;
        let provider = Provider::start(Script {
            queue: Vec::new(),
            then: answers,
        })
        .unwrap();
        let tool = Tool::start(pace.tool);
        let name = Clock::system().new_id().to_string();
        let project = id_of(&client.made("/v1/projects", &json!({"name": name}), 201));
        let model = json!({"name": name, "baseUrl": provider.base_url(),
            "models": [{"name": "scripted", "prices": {"prompt": 1, "completion": 2}}]});
        let model_provider = id_of(&client.made("/v1/model-providers", &model, 201));
        let agent = |idempotent: bool| {
            let tool_name = if idempotent { "record" } else { "charge" };
            let wanted = json!({"projectId": project, "name": tool_name, "description": "Does it.",
                "argumentsSchema": {"type": "object", "required": ["item"],
                    "properties": {"item": {"type": "string"}}},
                "url": tool.url(), "timeoutMs": 20_000, "idempotent": idempotent});
            let tool_id = id_of(&client.made("/v1/tools", &wanted, 201));
            let wanted = json!({"projectId": project, "name": tool_name});
            let agent_id = id_of(&client.made("/v1/agents", &wanted, 201));
            let version = json!({"instructions": "Be exact.", "modelProviderId": model_provider,
                "model": "scripted", "toolIds": [tool_id]});
            client.made(&format!("/v1/agents/{agent_id}/versions"), &version, 201);
            agent_id
        };
        Self {
            repeatable: agent(true),
            unrepeatable: agent(false),
            provider,
            tool,
        }
    }

    /// What makes the scripted model call the agent's tool.
    pub(crate) fn turn(&self, agent_id: Uuid) -> serde_json::Value {
        let tool = if agent_id == self.repeatable {
            "record"
        } else {
            "charge"
        };
        json!({"agentId": agent_id, "message": format!("Please {tool} the item lamp")})
    }

    /// Starts a turn on a ready server.
    pub(crate) fn start_turn(&self, client: &Client, agent_id: Uuid) -> Uuid {
        let started = client.made("/v1/runs", &self.turn(agent_id), 202);
        id_of(&started["run"])
    }
}
