//! PostgreSQL's programs as child processes: their stderr, and their end on SIGINT and SIGTERM.
//!
//! Guarantees: no child survives this process's orderly end, SIGINT or SIGTERM. After `kill -9` of
//! this process each child meets a closed pipe and ends by itself, with nothing committed.

use super::super::{Failure, Outcome, signals, terminal};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How much of a program's stderr is kept, in bytes.
const SAID_MAX_BYTES: usize = 8 * 1024;
/// How much of it an error shows.
const SAID_LINES: usize = 12;

/// Ends the running programs when this process gets a signal. The thread `ending` waits for it
/// until the process ends.
pub(in crate::cli) struct Watch(Arc<State>);

#[derive(Default)]
struct State {
    running: Mutex<Vec<Pid>>,
    is_signalled: AtomicBool,
    /// True while nothing would be lost by ending immediately.
    may_leave: AtomicBool,
}

/// A running program. Dropping it kills it.
pub(in crate::cli) struct Program {
    name: &'static str,
    child: std::process::Child,
    said: Option<JoinHandle<String>>,
    state: Arc<State>,
}

/// How a program ended.
pub(in crate::cli) struct Ended {
    /// None: a signal ended it.
    pub(in crate::cli) code: Option<i32>,
    /// None: it succeeded.
    pub(in crate::cli) failure: Option<Failure>,
}

impl State {
    fn running(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Starts to listen for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The system accepts no handler, or refuses a thread.
    pub(in crate::cli) fn start() -> Outcome<Self> {
        let state = Arc::new(State::default());
        let kept = Arc::clone(&state);
        let endings = signals::endings()?;
        std::thread::Builder::new()
            .name("ending".to_owned())
            .spawn(move || {
                for () in &endings {
                    let again = kept.is_signalled.swap(true, Ordering::SeqCst);
                    let running = kept.running();
                    let signal = if again { Signal::KILL } else { Signal::TERM };
                    for pid in running.iter() {
                        let _ = kill_process(*pid, signal);
                    }
                    if running.is_empty() && (again || kept.may_leave.load(Ordering::SeqCst)) {
                        terminal::note("agent-runtime: Interrupted.");
                        std::process::exit(1);
                    }
                }
            })?;
        Ok(Self(state))
    }

    /// From now on a signal ends this process immediately if no program runs.
    pub(in crate::cli) fn may_leave(&self) {
        self.0.may_leave.store(true, Ordering::SeqCst);
    }

    /// # Errors
    /// Whether this process got a signal to end.
    pub(in crate::cli) fn check(&self) -> Outcome {
        match self.0.is_signalled.load(Ordering::SeqCst) {
            true => Err(Failure::new("Interrupted.")),
            false => Ok(()),
        }
    }

    /// The signal as an error, if there was one; it is the cause of later failures.
    pub(in crate::cli) fn failure(&self, failure: Failure) -> Failure {
        self.check().err().unwrap_or(failure)
    }

    /// Starts a program, with stdout piped to us.
    ///
    /// # Errors
    /// It cannot be started, or this process got a signal to end.
    pub(in crate::cli) fn spawn(
        &self,
        name: &'static str,
        command: &mut Command,
    ) -> Outcome<Program> {
        // In its own process group, so that Ctrl-C reaches only this process, which ends it.
        std::os::unix::process::CommandExt::process_group(command, 0);
        command.stderr(Stdio::piped());
        let mut running = self.0.running();
        self.check()?;
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().display();
            Failure::new(format!("{program} cannot be started: {error}."))
        })?;
        running.extend(pid_of(&child));
        drop(running);
        let stderr = child.stderr.take();
        let mut program = Program {
            name,
            child,
            said: None,
            state: Arc::clone(&self.0),
        };
        program.said = stderr.map(listen).transpose()?;
        Ok(program)
    }
}

fn pid_of(child: &std::process::Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Reads to the end and keeps the last part.
fn listen(mut stderr: std::process::ChildStderr) -> Outcome<JoinHandle<String>> {
    let listener = std::thread::Builder::new().name("stderr".to_owned());
    Ok(listener.spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 1024];
        while let Ok(amount @ 1..) = stderr.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..amount]);
            let over = kept.len().saturating_sub(SAID_MAX_BYTES);
            kept.drain(..over);
        }
        String::from_utf8_lossy(&kept).into_owned()
    })?)
}

impl Program {
    pub(in crate::cli) fn stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    pub(in crate::cli) fn stdin(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The program failed; the text includes its stderr.
    pub(in crate::cli) fn finish(self) -> Outcome {
        match self.end()?.failure {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    /// As [`Program::finish`], with its exit code.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(in crate::cli) fn end(mut self) -> Outcome<Ended> {
        let status = self.wait()?;
        let said = self.said.take().and_then(|said| said.join().ok());
        let sentence = || sentence(self.name, status, &said.unwrap_or_default());
        Ok(Ended {
            code: status.code(),
            failure: (!status.success()).then(|| Failure::new(sentence())),
        })
    }

    fn wait(&mut self) -> Outcome<ExitStatus> {
        let status = self.child.wait();
        // From now on the pid may belong to another process.
        let pid = pid_of(&self.child);
        self.state.running().retain(|running| Some(*running) != pid);
        Ok(status?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let pid = pid_of(&self.child);
        let mut running = self.state.running();
        if running.iter().any(|running| Some(*running) == pid) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            running.retain(|running| Some(*running) != pid);
        }
    }
}

/// The stderr to show with a failure.
fn sentence(name: &str, status: ExitStatus, said: &str) -> String {
    let said = terminal::printable(said.trim());
    let lines: Vec<&str> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(SAID_LINES)..];
    match last {
        [] => format!("{name} failed ({status})."),
        last => format!(
            "{name} failed ({status}). It said:\n  {}",
            last.join("\n  ")
        ),
    }
}
