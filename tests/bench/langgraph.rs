//! LangGraph's development server with the graph of one node in `peers/langgraph`, which streams one chat completion.
//!
//! As its documentation has it for a server on this machine: `--no-reload` watches no files, `--no-browser` opens none.
//! The ten jobs at once that the command's own help names as the default are given, since this version starts one
//! without them. Its tracing and its analytics are off. It keeps everything in memory.

use super::Outcome;
use super::client::agent;
use super::openfga::{UNTIL_WE_END, free_address};
use super::peer::{parts, source};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// It loads its modules for many seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// How a run is created and followed.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// One request creates the run, another joins its stream.
    Joined,
    /// One request that answers with the stream.
    OneCall,
}

/// A running server. It ends with this value, or when this process is gone.
pub(crate) struct LangGraph {
    address: SocketAddr,
    server: Child,
    directory: PathBuf,
    /// Names and versions of what runs.
    pub(crate) versions: Vec<String>,
}

impl LangGraph {
    /// Starts it; its graph asks the provider of this URL.
    pub(crate) fn start(provider_url: &str) -> Outcome<Self> {
        let bin = parts()?.join("peer-langgraph/bin");
        if !bin.join("langgraph").exists() {
            return Err("LangGraph is not set up: run tests/setup/peer-langgraph".into());
        }
        let name = format!("langgraph-{}", Clock::system().new_id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory)?;
        // It keeps files of its own beside these.
        for file in ["graph.py", "langgraph.json"] {
            let from = source("tests/bench/peers/langgraph").join(file);
            std::fs::copy(from, directory.join(file))?;
        }
        let log = File::create(directory.join("log"))?;
        let address = free_address()?;
        let server = Command::new("/bin/sh")
            .args(["-c", UNTIL_WE_END])
            .arg(bin.join("langgraph"))
            .args(["dev", "--no-browser", "--no-reload"])
            .args(["--n-jobs-per-worker", "10"])
            .args(["--host", "127.0.0.1"])
            .args(["--port", &address.port().to_string()])
            .args(["--server-log-level", "warning"])
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("HOME", &directory)
            .env("LANGSMITH_TRACING", "false")
            .env("LANGGRAPH_CLI_NO_ANALYTICS", "1")
            .env("LOG_LEVEL", "WARNING")
            .env("PROVIDER_URL", provider_url)
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut made = Self {
            address,
            server,
            directory,
            versions: Vec::new(),
        };
        made.versions = made.ready()?;
        Ok(made)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until it answers; what it says that it is.
    fn ready(&self) -> Outcome<Vec<String>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(mut answer) = ureq::get(&self.url("/info")).call() {
                let text = answer.body_mut().read_to_string()?;
                let info: Value = serde_json::from_str(&text)?;
                let version = |name: &str| info[name].as_str().unwrap_or("unknown").to_owned();
                return Ok(vec![
                    format!("langgraph {}", version("langgraph_py_version")),
                    format!("langgraph-api {} (`langgraph dev`)", version("version")),
                ]);
            }
            if Instant::now() > deadline {
                return Err("LangGraph did not answer".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A client of it.
    pub(crate) fn client(&self) -> Client<'_> {
        Client {
            server: self,
            agent: agent(),
        }
    }
}

impl Drop for LangGraph {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
        // What is left is in the build's own directory for such things.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub(crate) struct Client<'a> {
    server: &'a LangGraph,
    agent: ureq::Agent,
}

impl Client<'_> {
    /// Milliseconds from a run's creation to its first text. The stream is read to its end, which must have said this.
    pub(crate) fn first_text(&self, way: Way, says: &str) -> Outcome<f64> {
        let began = Instant::now();
        let lines = match way {
            Way::Joined => self.joined()?,
            Way::OneCall => self.one_call()?,
        };
        let (mut first, mut text, mut event) = (None, String::new(), String::new());
        for line in BufReader::new(lines).lines() {
            let line = line?;
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut event);
            } else if let ("messages", Some(data)) = (event.as_str(), line.strip_prefix("data: ")) {
                let said: Value = serde_json::from_str(data)?;
                let said = said[0]["content"].as_str().unwrap_or_default();
                if first.is_none() && !said.is_empty() {
                    first = Some(began.elapsed().as_secs_f64() * 1000.0);
                }
                text.push_str(said);
            }
        }
        match first {
            Some(first) if text == says => Ok(first),
            _ => Err(format!("LangGraph's run said {text:?}, not {says:?}").into()),
        }
    }

    /// A thread that is made with the run, so that creation is one request; its stream keeps what the joining client
    /// came too late for.
    fn joined(&self) -> Outcome<ureq::BodyReader<'static>> {
        let thread_id = Clock::system().new_id();
        let mut body = order();
        body["if_not_exists"] = json!("create");
        body["stream_resumable"] = json!(true);
        let path = format!("/threads/{thread_id}/runs");
        let text = self.post(&path, &body)?.read_to_string()?;
        let made: Value = serde_json::from_str(&text)?;
        let run_id = made["run_id"].as_str().ok_or("a run has no id")?;
        let stream = self.server.url(&format!("{path}/{run_id}/stream"));
        Ok(self.agent.get(stream).call()?.into_body().into_reader())
    }

    fn one_call(&self) -> Outcome<ureq::BodyReader<'static>> {
        Ok(self.post("/runs/stream", &order())?.into_reader())
    }

    fn post(&self, path: &str, body: &Value) -> Outcome<ureq::Body> {
        let request = self.agent.post(self.server.url(path));
        let request = request.header("content-type", "application/json");
        Ok(request.send(body.to_string())?.into_body())
    }
}

fn order() -> Value {
    json!({"assistant_id": "bench", "stream_mode": "messages-tuple",
        "input": {"messages": [{"role": "user", "content": "hello"}]}})
}
