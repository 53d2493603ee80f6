//! The service as it is deployed: the program in a process of its own beside a real Postgres that flushes every commit.
//! For rows about memory, starts, and more than one replica; where those do not matter, `world` is the service in this
//! process.

use super::Outcome;
use super::client::Client;
use super::openfga::{OpenFga, free_address};
use super::world::{cluster, openfga};
use agent_runtime::authn::bearer;
use agent_runtime::dev::cluster::Cluster;
use agent_runtime::ids::Clock;
use agent_runtime::server::{Replaced, Seeds};
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Where replicas of the service run. It outlives them.
pub(crate) struct Deployment {
    pub(crate) seeds: Seeds,
    settings: Vec<(String, String)>,
    openfga: Option<OpenFga>,
    cluster: Cluster,
    data_dir: PathBuf,
}

/// One running program. Dropping it kills it.
pub(crate) struct Replica {
    process: Child,
    pub(crate) client: Client,
    /// From its start to its first answer that it is ready.
    pub(crate) ready_after: Duration,
}

impl Deployment {
    /// A fresh database, and an authorization server if wanted; no replica yet. The settings are on top of what every
    /// replica needs.
    pub(crate) fn start(authorized: bool, settings: &[(&str, &str)]) -> Outcome<Self> {
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
        let mut all: Vec<(String, String)> = [
            ("SVC_DEV", "true".to_owned()),
            ("SVC_BIND_ADDRESS", "127.0.0.1".to_owned()),
            ("SVC_DATABASE_URL", cluster.url()),
            ("SVC_TENANT_ID", seeds.tenant_id.to_string()),
            ("SVC_SEED_USER_ID", seeds.user_id.to_string()),
            ("SVC_SEED_TOKEN", seeds.token.expose().to_owned()),
            ("SVC_LOG_LEVEL", "warn".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if let Some(openfga) = &openfga {
            all.push(("SVC_AUTHZ_API_URL".to_owned(), openfga.url()));
        }
        let own = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        all.extend(own);
        Ok(Self {
            seeds,
            settings: all,
            openfga,
            cluster,
            data_dir,
        })
    }

    /// Starts a replica and waits until it is ready.
    pub(crate) fn replica(&self) -> Outcome<Replica> {
        let address = free_address()?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.data_dir.join("service.log"))?;
        let started = Instant::now();
        // It is gone when this process is, however that came about.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(env!("CARGO_BIN_EXE_agent-runtime"))
            .arg("serve")
            .env_clear()
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .env("SVC_HTTP_PORT", address.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut made = Replica {
            process,
            client: Client::new(address, self.seeds.token.expose()),
            ready_after: Duration::ZERO,
        };
        made.client.await_ready(PATIENCE)?;
        made.ready_after = started.elapsed();
        Ok(made)
    }

    /// Has the database keep the moment of every commit, for those who want to know when an event was there.
    pub(crate) fn keep_commit_times(&mut self) -> Outcome {
        self.database()?
            .batch_execute("alter system set track_commit_timestamp = on")?;
        Ok(self.cluster.restart()?)
    }

    /// A connection of the benchmark's own to the service's database.
    pub(crate) fn database(&self) -> Outcome<postgres::Client> {
        let url = self.cluster.url();
        Ok(postgres::Client::connect(&url, postgres::NoTls)?)
    }

    /// The URL of a database that is made on the service's cluster for another system.
    pub(crate) fn further_database(&self, name: &str) -> Outcome<String> {
        self.database()?
            .batch_execute(&format!("create database {name}"))?;
        Ok(self.cluster.url_of(name))
    }

    /// The URL of the authorization server.
    pub(crate) fn authorization_url(&self) -> Outcome<String> {
        let openfga = self.openfga.as_ref().ok_or("authorization is off")?;
        Ok(openfga.url())
    }

    /// The URL of the service's database.
    pub(crate) fn database_url(&self) -> String {
        self.cluster.url()
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        // What is left is in the build's own directory for such things.
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}

impl Replica {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.client.address()
    }

    /// Lets it finish what it does, and waits for its end.
    pub(crate) fn stop(mut self) -> Outcome {
        let process = i32::try_from(self.process.id())?;
        let process = rustix::process::Pid::from_raw(process).ok_or("a process without id")?;
        rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        let deadline = Instant::now() + PATIENCE;
        while self.process.try_wait()?.is_none() {
            if Instant::now() > deadline {
                return Err("a replica did not stop".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
