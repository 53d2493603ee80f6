//! The service in this process: its real door, a real Postgres that flushes every commit, a
//! scripted provider without delay, and an agent to run.

use super::Outcome;
use super::client::Client;
use super::openfga::OpenFga;
use agent_runtime::authn::{bearer, public};
use agent_runtime::authz::permissions::{self, Model};
use agent_runtime::dev::cluster::{self, Cluster};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::http::{door, sse};
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, HostAccess, Outbound};
use agent_runtime::runtime;
use agent_runtime::secret::Secret;
use agent_runtime::secrets;
use agent_runtime::server::{Options, Replaced, Seeds, Server};
use agent_runtime::store;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

const PATIENCE: Duration = Duration::from_secs(60);

/// What the scripted provider answers.
pub(crate) const SAYS: &str = "A short answer of a few words.";

/// Fields end in this order: the server before what it stands on.
pub(crate) struct World {
    pub(crate) client: Client,
    server: Option<Server>,
    openfga: Option<OpenFga>,
    pub(crate) provider: Provider,
    pub(crate) seeds: Seeds,
    pub(crate) clock: Clock,
    cluster: Option<Cluster>,
    data_dir: PathBuf,
}

/// The service's own defaults wherever it has them.
fn options(database_url: &str, seeds: &Seeds) -> Outcome<Options> {
    Ok(Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        limits: door::Limits::default(),
        store: store::Options {
            url: Secret::new(database_url),
            pool_size: 20,
            checkout_timeout: Duration::from_secs(5),
            outage: Default::default(),
            statement_timeout: Duration::from_secs(10),
        },
        seeds: seeds.clone(),
        docs: false,
        console: false,
        allowed_origins: Vec::new(),
        sign_in: agent_runtime::authn::session::Options::default(),
        signer: Some(public::Signer::ephemeral()?),
        outbound: Outbound::new(outbound::Options::default())?,
        model_keys: runtime::ModelKeys::default(),
        license: None,
        runs: runtime::Options {
            host_access: HostAccess::Local,
            ..Default::default()
        },
        run_lease: Duration::from_secs(30),
        streams: sse::Options::default(),
        audit: agent_runtime::audit::Options::default(),
        authorization: None,
        denials_per_minute: 120,
        secrets: secrets::Options::Off,
        webhooks: agent_runtime::webhooks::Options::default(),
        traces: None,
    })
}

/// The service's own defaults.
fn authorization(openfga: &OpenFga) -> permissions::Options {
    permissions::Options {
        url: openfga.url(),
        timeout: Duration::from_secs(3),
        connections: 16,
        model: Model::own(),
    }
}

/// An authorization server with a database of its own on the cluster.
pub(crate) fn openfga(cluster: &Cluster, directory: &Path) -> Outcome<OpenFga> {
    postgres::Client::connect(&cluster.url(), postgres::NoTls)?
        .batch_execute("create database openfga")?;
    OpenFga::start(&cluster.url_of("openfga"), directory)
}

/// As in production: a logger that formats what its level lets through.
pub(crate) fn log() -> slog::Logger {
    let options = agent_runtime::log::Options {
        level: agent_runtime::log::Level::Warn,
        ..Default::default()
    };
    agent_runtime::log::open(&options, Clock::system(), std::io::stderr())
}

#[allow(
    clippy::disallowed_methods,
    reason = "where the host's PostgreSQL is searched"
)]
fn search_path() -> Option<std::ffi::OsString> {
    std::env::var_os("PATH")
}

/// A Postgres that flushes every commit, and the directory that is its own.
pub(crate) fn cluster() -> Outcome<(Cluster, PathBuf)> {
    let name = format!("bench-{}-{}", std::process::id(), Clock::system().new_id());
    let data_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let cluster = Cluster::start(cluster::Options {
        data_dir: data_dir.clone(),
        durable: true,
        bin_dir: None,
        search_path: search_path(),
        runtime_dir: None,
        log: log(),
    })?;
    Ok((cluster, data_dir))
}

impl World {
    pub(crate) fn start() -> Outcome<Self> {
        Self::start_with(false, |_| {})
    }

    /// With authorization on.
    pub(crate) fn start_authorized() -> Outcome<Self> {
        Self::start_with(true, |_| {})
    }

    /// With a backend of secrets, and receivers of webhooks on this machine.
    pub(crate) fn start_with_webhooks() -> Outcome<Self> {
        let mut keys = [[0; 32]; 2];
        for key in &mut keys {
            getrandom::fill(key)?;
        }
        let [local, aad] = keys;
        Self::start_with(false, |options| {
            options.secrets = secrets::Options::Postgres(Box::new(secrets::PostgresOptions {
                kms: secrets::kms::Options::Local {
                    key: secrets::kms::LocalKey::new(Zeroizing::new(local)),
                    previous: None,
                },
                aad_key: secrets::AadKey::new(&aad),
                kept_for: secrets::KEPT_FOR,
            }));
            options.webhooks.development = true;
        })
    }

    fn start_with(authorized: bool, change: impl FnOnce(&mut Options)) -> Outcome<Self> {
        let (cluster, data_dir) = cluster()?;
        let clock = Clock::system();
        let seeds = Seeds {
            tenant_id: clock.new_id(),
            user_id: clock.new_id(),
            token: bearer::mint()?,
            replaces: Replaced::All,
            email: None,
        };
        let openfga = authorized
            .then(|| openfga(&cluster, &data_dir))
            .transpose()?;
        let mut options = options(&cluster.url(), &seeds)?;
        options.authorization = openfga.as_ref().map(authorization);
        if authorized {
            // Half of them may ask for access at once: as many as there are clients at most.
            options.limits.request_threads = 32;
            options.store.pool_size = 32;
        }
        change(&mut options);
        let server = Server::start(options, &clock, &log())?;
        server.ready().recv_timeout(PATIENCE)??;
        let client = Client::new(server.local_addr(), seeds.token.expose());
        client.await_ready(PATIENCE)?;
        Ok(Self {
            client,
            server: Some(server),
            openfga,
            provider: Provider::start(Script {
                then: Step::text(SAYS),
                ..Script::default()
            })?,
            seeds,
            clock,
            cluster: Some(cluster),
            data_dir,
        })
    }

    pub(crate) fn server(&self) -> Outcome<&Server> {
        self.server.as_ref().ok_or_else(|| "stopped".into())
    }

    pub(crate) fn token(&self) -> &str {
        self.seeds.token.expose()
    }

    /// How the authorization server is reached.
    pub(crate) fn authorization(&self) -> Outcome<permissions::Options> {
        let openfga = self.openfga.as_ref().ok_or("authorization is off")?;
        Ok(authorization(openfga))
    }

    /// A connection of the benchmark's own to the service's database.
    pub(crate) fn database(&self) -> Outcome<postgres::Client> {
        let cluster = self.cluster.as_ref().ok_or("stopped")?;
        Ok(postgres::Client::connect(&cluster.url(), postgres::NoTls)?)
    }

    /// An agent that asks the scripted provider; its id.
    pub(crate) fn agent(&self) -> Outcome<String> {
        let post = |path: &str, body: Value| self.client.post(path, &body);
        let project = post("/v1/projects", json!({"name": "bench"}))?;
        let provider = post(
            "/v1/model-providers",
            json!({"name": "scripted", "baseUrl": self.provider.base_url(), "models": [{"name": "m"}]}),
        )?;
        let agent = post(
            "/v1/agents",
            json!({"projectId": project["id"], "name": "bench"}),
        )?;
        let agent_id = agent["id"].as_str().ok_or("an agent has no id")?;
        post(
            &format!("/v1/agents/{agent_id}/versions"),
            json!({"instructions": "Answer.", "modelProviderId": provider["id"], "model": "m"}),
        )?;
        Ok(agent_id.to_owned())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(Duration::from_secs(5));
        }
        drop(self.openfga.take());
        drop(self.cluster.take());
        // What is left is in the build's own directory for such things.
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}
