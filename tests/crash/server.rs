//! The program as a process of its own, and a client of it that expects nothing.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What a start of the program is given.
#[derive(Clone)]
pub(crate) struct ServerConfig {
    pub(crate) program: PathBuf,
    pub(crate) port: u16,
    pub(crate) database_url: String,
    pub(crate) tenant_id: Uuid,
    pub(crate) user_id: Uuid,
    pub(crate) token: String,
    /// Settings on top, by name.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// File descriptors at most.
    pub(crate) descriptors: Option<u32>,
    pub(crate) log: PathBuf,
}

/// A port that nothing listens on, below those that the kernel gives to connections, so that it is
/// still free when a killed server starts again.
pub(crate) fn free_port() -> u16 {
    loop {
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        let port = 10_000 + u16::from_ne_bytes(random) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A running program. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    pub(crate) spawned_at: Instant,
    config: ServerConfig,
}

impl ServerConfig {
    /// The same with a setting on top.
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// Another replica on the same database.
    pub(crate) fn replica(&self) -> Self {
        Self {
            port: free_port(),
            ..self.clone()
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.port, &self.token)
    }

    /// Starts the program; it is not ready yet.
    pub(crate) fn spawn(&self) -> Server {
        let program = &self.program;
        let mut command = match self.descriptors {
            None => Command::new(program),
            Some(most) => {
                let mut command = Command::new("/bin/sh");
                command
                    .arg("-c")
                    .arg(format!("ulimit -n {most}; exec \"$0\" \"$@\""))
                    .arg(program);
                command
            }
        };
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .unwrap();
        self.set(&mut command);
        command
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let spawned_at = Instant::now();
        Server {
            child: command.spawn().unwrap(),
            spawned_at,
            config: self.clone(),
        }
    }

    /// Runs another command of the program to its end, with the server's settings.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        self.set(&mut command);
        command.args(arguments).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn set(&self, command: &mut Command) {
        command
            .env_clear()
            .env("SVC_DEV", "true")
            .env("SVC_BIND_ADDRESS", "127.0.0.1")
            .env("SVC_HTTP_PORT", self.port.to_string())
            .env("SVC_DATABASE_URL", &self.database_url)
            .env("SVC_TENANT_ID", self.tenant_id.to_string())
            .env("SVC_SEED_USER_ID", self.user_id.to_string())
            .env("SVC_SEED_TOKEN", &self.token)
            .env("SVC_LOG_FORMAT", "json")
            .env("RUST_BACKTRACE", "1");
        for (name, value) in &self.settings {
            command.env(name, value);
        }
    }

    /// Starts the program and waits until it is ready.
    pub(crate) fn start(&self) -> Server {
        let mut server = self.spawn();
        server.wait_ready();
        server
    }
}

impl Server {
    /// Waits until the server takes work; says how long that took since its start.
    pub(crate) fn wait_ready(&mut self) -> Duration {
        let client = self.config.client();
        let deadline = self.spawned_at + crate::PATIENCE;
        loop {
            if client
                .get("/readyz")
                .is_ok_and(|answer| answer.status == 200)
            {
                return self.spawned_at.elapsed();
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!(
                    "the server ended ({status}): see {}",
                    self.config.log.display()
                );
            }
            assert!(
                Instant::now() < deadline,
                "never ready: see {}",
                self.config.log.display()
            );
            crate::wait::moment();
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; says how it ended and after how long.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Duration) {
        let asked_at = Instant::now();
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let status = crate::eventually("the end of the server", || self.child.try_wait().unwrap());
        (status, asked_at.elapsed())
    }

    /// Whether the process still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that may find nobody there.
#[derive(Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// As the server named the request.
    pub(crate) request_id: String,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) fn new(port: u16, token: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            // A killed server's connections are of no use to the next.
            .max_idle_connections(0)
            .build();
        Self {
            agent: config.into(),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            token: token.to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, String> {
        self.send("GET", path, None, &[])
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.send("POST", path, Some(body), &[])
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string()).unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut response = sent.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let request_id = response.headers().get("x-request-id");
        let request_id = request_id
            .and_then(|id| id.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let text = response
            .body_mut()
            .read_to_string()
            .map_err(|error| error.to_string())?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer {
            status,
            request_id,
            body,
        })
    }

    /// A request that must be answered so.
    #[track_caller]
    pub(crate) fn made(&self, path: &str, body: &Value, status: u16) -> Value {
        let answer = self.post(path, body).unwrap();
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        answer.body
    }

    /// A run as it stands.
    #[track_caller]
    pub(crate) fn run(&self, run_id: Uuid) -> Value {
        let answer = self.get(&format!("/v1/runs/{run_id}")).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }
}
