//! Replicas of the service on one Postgres, beside what they call and who calls them: a provider of models, a receiver of
//! webhooks, and clients that go to all replicas in turn, and to the next one where one is gone.

use super::Outcome;
use super::client::agent;
use super::deployment::{Deployment, Replica};
use super::receipts::{Receipt, Receipts};
use agent_runtime::dev::provider::{Provider, Script, Step};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Clients that start runs at once.
const CLIENTS: usize = 16;
/// Runs that warm each replica up before a measurement: every connection to the database has seen every statement.
const WARM_RUNS: usize = 100;
/// The same where each run's end goes to every endpoint.
const WARM_NOTIFYING_RUNS: usize = 10;
/// How long work that nothing is lost of may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked how far the work is.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// Fields end in this order: the replicas before what they stand on.
pub(crate) struct Fleet {
    pub(crate) replicas: RefCell<Vec<Replica>>,
    /// An agent of whose runs nobody is told.
    quiet_agent: String,
    /// One of whose runs every endpoint is told.
    notifying_agent: String,
    endpoints: usize,
    /// Requests so far: each has a name of its own.
    requests: AtomicUsize,
    pub(crate) receipts: Receipts,
    /// Held for its end.
    _provider: Provider,
    pub(crate) deployment: Deployment,
    /// Held for its end.
    _keys: tempfile::TempDir,
}

/// Clients that start runs of one agent.
pub(crate) struct Clients<'a> {
    addresses: Vec<SocketAddr>,
    token: &'a str,
    agent_id: &'a str,
    requests: &'a AtomicUsize,
    /// Runs that were started so far.
    pub(crate) started: AtomicUsize,
}

impl Fleet {
    pub(crate) fn start(
        thinks: Duration,
        endpoints: usize,
        settings: &[(&str, &str)],
    ) -> Outcome<Self> {
        let keys = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let (local, aad) = (key(keys.path(), "local")?, key(keys.path(), "aad")?);
        let mut all = vec![
            ("SVC_SECRETS_BACKEND", "postgres"),
            ("SVC_SECRETS_BACKEND_KMS", "local"),
            ("SVC_SECRETS_LOCAL_KEY_PATH", local.as_str()),
            ("SVC_SECRETS_AAD_KEY_PATH", aad.as_str()),
            // Three of them stay below what the provider takes at once.
            ("SVC_RUN_THREADS", "64"),
        ];
        all.extend_from_slice(settings);
        let deployment = Deployment::start(false, &all)?;
        let replica = deployment.replica()?;
        let provider = Provider::start(Script {
            then: Step::text("A short answer of a few words.").before(thinks),
            ..Script::default()
        })?;
        let receipts = Receipts::start()?;
        let (quiet_agent, notifying_agent) = agents(&replica, &provider, &receipts, endpoints)?;
        Ok(Self {
            replicas: RefCell::new(vec![replica]),
            quiet_agent,
            notifying_agent,
            endpoints,
            requests: AtomicUsize::new(0),
            receipts,
            _provider: provider,
            deployment,
            _keys: keys,
        })
    }

    /// Starts or stops replicas until there are as many; the newest end first.
    pub(crate) fn resize(&self, count: usize) -> Outcome {
        let mut replicas = self.replicas.borrow_mut();
        while replicas.len() < count {
            replicas.push(self.deployment.replica()?);
        }
        while replicas.len() > count {
            replicas.pop().map(Replica::stop).transpose()?;
        }
        Ok(())
    }

    /// Clients of all replicas there are now.
    fn clients<'a>(&'a self, agent_id: &'a str) -> Clients<'a> {
        let replicas = self.replicas.borrow();
        Clients {
            addresses: replicas.iter().map(Replica::address).collect(),
            token: self.deployment.seeds.token.expose(),
            agent_id,
            requests: &self.requests,
            started: AtomicUsize::new(0),
        }
    }

    /// Clients that start runs of which the endpoints are told.
    pub(crate) fn notifying_clients(&self) -> Clients<'_> {
        self.clients(&self.notifying_agent)
    }

    /// How many of these runs have completed.
    pub(crate) fn completed(
        &self,
        database: &mut postgres::Client,
        run_ids: &[Uuid],
    ) -> Outcome<usize> {
        let query = "select count(*) from runs where tenant_id = $1 and run_id = any($2) and status = 'completed'";
        let tenant_id = self.deployment.seeds.tenant_id;
        let count: i64 = database.query_one(query, &[&tenant_id, &run_ids])?.get(0);
        Ok(usize::try_from(count)?)
    }

    /// What the endpoints get when these runs end.
    pub(crate) fn wanted(&self, run_ids: &[Uuid]) -> Vec<Receipt> {
        let of_run = |run_id: &Uuid| {
            let run_id = *run_id;
            (0..self.endpoints).map(move |endpoint| (run_id, endpoint))
        };
        run_ids.iter().flat_map(of_run).collect()
    }

    /// Runs a second, from the first start to the last end.
    pub(crate) fn turns(&self, count: usize) -> Outcome<f64> {
        let mut database = self.deployment.database()?;
        let clients = self.clients(&self.quiet_agent);
        let mut completed = |runs: &[Uuid]| self.completed(&mut database, runs);
        rate(
            &clients,
            WARM_RUNS * clients.addresses.len(),
            1,
            &mut completed,
        )?;
        rate(&clients, count, 1, &mut completed)
    }

    /// Deliveries a second, from the first start of a run to the last receipt.
    pub(crate) fn deliveries(&self, runs: usize) -> Outcome<f64> {
        let clients = self.notifying_clients();
        let mut arrived = |runs: &[Uuid]| Ok(self.receipts.count(&self.wanted(runs)));
        let warm = WARM_NOTIFYING_RUNS * clients.addresses.len();
        rate(&clients, warm, self.endpoints, &mut arrived)?;
        rate(&clients, runs, self.endpoints, &mut arrived)
    }
}

/// Starts runs and waits until each has brought about so much: how much that is a second.
fn rate(
    clients: &Clients<'_>,
    runs: usize,
    each: usize,
    done: &mut dyn FnMut(&[Uuid]) -> Outcome<usize>,
) -> Outcome<f64> {
    let began = Instant::now();
    let runs = clients.start(runs)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = done(&runs)?;
        if now == runs.len() * each {
            return Ok(now as f64 / began.elapsed().as_secs_f64());
        }
        if Instant::now() > deadline {
            return Err(format!("{now} of {} were done", runs.len() * each).into());
        }
        std::thread::sleep(LOOK);
    }
}

impl Clients<'_> {
    /// Starts runs; their ids.
    pub(crate) fn start(&self, count: usize) -> Outcome<Vec<Uuid>> {
        let left = AtomicUsize::new(count);
        let take = |left: usize| left.checked_sub(1);
        let one = || -> Result<Vec<Uuid>, String> {
            let (http, mut started) = (agent(), Vec::new());
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok()
            {
                let run_id = self.start_one(&http);
                started.push(run_id.map_err(|error| error.to_string())?);
                self.started.fetch_add(1, Ordering::Relaxed);
            }
            Ok(started)
        };
        let started = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(one)).collect();
            let ended = threads.into_iter().map(|thread| {
                let ended = thread.join();
                ended.map_err(|_| "a client panicked".to_owned())?
            });
            ended.collect::<Result<Vec<_>, String>>()
        })?;
        let mut runs: Vec<Uuid> = started.into_iter().flatten().collect();
        runs.sort_unstable();
        runs.dedup();
        if runs.len() < count {
            return Err("two requests started one run".into());
        }
        Ok(runs)
    }

    /// Starts a run at one of the replicas, and at the next if that one is gone: the request has a name, so that the run
    /// is started once.
    fn start_one(&self, http: &ureq::Agent) -> Outcome<Uuid> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let body = json!({"agentId": self.agent_id, "message": "hello"}).to_string();
        let deadline = Instant::now() + PATIENCE;
        for address in self
            .addresses
            .iter()
            .cycle()
            .skip(number % self.addresses.len())
        {
            let sent = http
                .post(format!("http://{address}/v1/runs"))
                .header("authorization", format!("Bearer {}", self.token))
                .header("content-type", "application/json")
                .header("idempotency-key", format!("bench-{number}"))
                .send(&body);
            match sent.and_then(|mut response| response.body_mut().read_to_string()) {
                Ok(text) => {
                    let answer: Value = serde_json::from_str(&text)?;
                    let run_id = answer["run"]["id"].as_str();
                    return Ok(run_id.ok_or("a run has no id")?.parse()?);
                }
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        Err("there is no replica".into())
    }
}

/// A file of a key that its owner alone can read; its path.
fn key(directory: &Path, name: &str) -> Outcome<String> {
    let path = directory.join(name);
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    std::fs::write(&path, bytes)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path.to_str().ok_or("a path that is no text")?.to_owned())
}

/// An agent in a project of its own, and one in a project whose runs these endpoints are told of.
fn agents(
    replica: &Replica,
    provider: &Provider,
    receipts: &Receipts,
    endpoints: usize,
) -> Outcome<(String, String)> {
    let client = &replica.client;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    let value = json!({"value": format!("whsec_{}", STANDARD.encode(secret))});
    client.send("PUT", "/v1/secrets/bench/HOOKS", &value.to_string())?;
    let model = client.post(
        "/v1/model-providers",
        &json!({"name": "scripted", "baseUrl": provider.base_url(), "models": [{"name": "m"}]}),
    )?;
    let made = |name: &str| -> Outcome<(Value, String)> {
        let project = client.post("/v1/projects", &json!({"name": name}))?;
        let wanted = json!({"projectId": project["id"], "name": "bench"});
        let agent = client.post("/v1/agents", &wanted)?;
        let agent_id = agent["id"].as_str().ok_or("an agent has no id")?;
        client.post(
            &format!("/v1/agents/{agent_id}/versions"),
            &json!({"instructions": "Answer.", "modelProviderId": model["id"], "model": "m"}),
        )?;
        Ok((project["id"].clone(), agent_id.to_owned()))
    };
    let ((_, quiet), (notifying_project, notifying)) = (made("quiet")?, made("told")?);
    for endpoint in 0..endpoints {
        client.post(
            "/v1/webhook-endpoints",
            &json!({"url": receipts.url(endpoint), "events": ["run.finished"],
                "secretRef": {"envName": "bench", "name": "HOOKS"}, "filter": {"projectId": notifying_project}}),
        )?;
    }
    Ok((quiet, notifying))
}
