//! Another system that does the same work, as a process that takes orders: one JSON object a line on its input, one
//! JSON object a line as the answer. It says `{"versions": ["name 1.2.3"]}` once it is ready, and ends with its input.
//!
//! Peers are installed by `tests/setup/bench`; each stands in `tests/bench/peers`.

use super::Outcome;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long an order may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running peer. It ends with this value, or when this process is gone.
pub(crate) struct Peer {
    process: Child,
    answers: Receiver<std::io::Result<String>>,
    /// Names and versions of what runs.
    pub(crate) versions: Vec<String>,
}

impl Peer {
    /// Starts it and waits until it is ready. What it says on standard error goes to ours.
    pub(crate) fn start(mut command: Command) -> Outcome<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                format!(
                    "{}: {error} (tests/setup/bench installs it)",
                    command.get_program().display()
                )
            })?;
        let output = process.stdout.take().ok_or("a peer without output")?;
        let (sender, answers) = bounded(16);
        std::thread::Builder::new()
            .name("peer-output".to_owned())
            .spawn(move || {
                for line in BufReader::new(output).lines() {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            })?;
        let mut made = Self {
            process,
            answers,
            versions: Vec::new(),
        };
        let ready = made.answer()?;
        let versions = ready["versions"].as_array();
        let versions = versions.ok_or("a peer named no versions")?.iter();
        made.versions = versions
            .filter_map(|version| version.as_str().map(str::to_owned))
            .collect();
        Ok(made)
    }

    /// What it answers to an order.
    pub(crate) fn ask(&mut self, order: &Value) -> Outcome<Value> {
        let input = self.process.stdin.as_mut().ok_or("a peer has ended")?;
        writeln!(input, "{order}")?;
        input.flush()?;
        self.answer()
    }

    /// A number of the answer to an order.
    pub(crate) fn number(&mut self, order: &Value, name: &str) -> Outcome<f64> {
        let answer = self.ask(order)?;
        answer[name]
            .as_f64()
            .ok_or_else(|| format!("a peer answered {answer} to {order}").into())
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    fn answer(&mut self) -> Outcome<Value> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => Ok(serde_json::from_str(&line?)?),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("a peer has not answered for {} s", PATIENCE.as_secs()).into())
            }
            // Its output has ended, so it has, or is about to.
            Err(RecvTimeoutError::Disconnected) => {
                drop(self.process.stdin.take());
                let status = self.process.wait()?;
                Err(format!("a peer has ended: {status} (it says why on standard error)").into())
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its input's end is its end.
        drop(self.process.stdin.take());
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) {
            if std::time::Instant::now() > deadline {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where `tests/setup` puts what the benchmarks need.
pub(crate) fn parts() -> Outcome<PathBuf> {
    let output = Command::new(source("tests/setup/where")).output()?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// A file of the repository.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
