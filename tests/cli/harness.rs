//! Starts the binary with an environment of the test's own, and a private database for it.

use agent_runtime::dev::cluster::{Cluster, Options};
use postgres::{Client, NoTls};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a finished process said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// The binary with these arguments and these variables alone.
pub(crate) fn command(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-runtime"));
    command.args(arguments).env_clear();
    for name in ["PATH", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Said {
    said(command(arguments, variables).output().unwrap())
}

/// Runs it to its end with a text on its standard input.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Said {
    let mut command = command(arguments, &[]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    said(child.wait_with_output().unwrap())
}

fn said(output: std::process::Output) -> Said {
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running process, its lines as they come. It is killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    stdin: Option<ChildStdin>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (told, lines) = channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for output in outputs {
            let told = told.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if told.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The next line that has this in it.
    #[track_caller]
    pub(crate) fn line_with(&mut self, what: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(what) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no line with {what:?} came:\n{}", self.seen.join("\n"))
                }
            }
        }
    }

    /// All that it said so far.
    pub(crate) fn seen(&self) -> String {
        self.seen.join("\n")
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Its standard input, whose end it sees when the value is dropped.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    /// Its exit code, once it has ended.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let status = eventually("its end", || self.child.try_wait().unwrap());
        status.code()
    }
}

/// Waits until `look` gives something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory that the private PostgreSQL's user can pass, where the test runs as root.
pub(crate) fn directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// The URL of a fresh database. The cluster ends with the process.
pub(crate) fn database() -> String {
    static CLUSTER: OnceLock<Mutex<Cluster>> = OnceLock::new();
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let cluster = CLUSTER.get_or_init(|| {
        let started = Cluster::start(Options {
            data_dir: Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("cli-{}", std::process::id())),
            durable: false,
            bin_dir: std::env::var_os("AGENT_RUNTIME_TEST_POSTGRES_BIN").map(Into::into),
            search_path: std::env::var_os("PATH"),
            runtime_dir: None,
            log: slog::Logger::root(slog::Discard, slog::o!()),
        });
        Mutex::new(started.unwrap_or_else(|failure| panic!("{failure}")))
    });
    let cluster = cluster.lock().unwrap();
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Client::connect(&cluster.url(), NoTls)
        .unwrap()
        .batch_execute(&format!("create database {name}"))
        .unwrap();
    cluster.url_of(&name)
}

/// What a server answers: the status, and the body.
pub(crate) fn call(method: &str, url: &str, token: &str, body: Option<&Value>) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .into();
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(url)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json");
    let mut answer = match body {
        Some(body) => agent.run(request.body(body.to_string()).unwrap()),
        None => agent.run(request.body(()).unwrap()),
    }
    .unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (
        answer.status().as_u16(),
        serde_json::from_str(&text).unwrap_or(Value::Null),
    )
}
