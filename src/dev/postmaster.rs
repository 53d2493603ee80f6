//! The server's process: its pid file, its start, its end, and a watcher that ends it with this
//! process.
//!
//! The postmaster is a direct child in its own process group, so its end is noticed immediately.
//! Beside it runs the watcher, a small shell that reads from a pipe. The pipe closes however this
//! process ends, `kill -9` included, and the watcher then shuts the postmaster down.

use super::account::{Account, quiet_command};
use super::failure::Failure;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a fast shutdown may take, which aborts transactions in order.
const FAST_DEADLINE: Duration = Duration::from_secs(15);
/// How long an immediate shutdown may take, which needs recovery at the next start.
const IMMEDIATE_DEADLINE: Duration = Duration::from_secs(8);
/// How long a killed process may take to disappear.
const KILL_DEADLINE: Duration = Duration::from_secs(5);
/// The polling interval for states that the kernel does not announce.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The watcher's script, which acts once the pipe closes. Arguments: data, pid, things to remove.
const WATCH: &str = r#"
trap '' HUP INT TERM
read -r _
data=$1 pid=$2
shift 2
if [ "$(head -n 1 "$data/postmaster.pid" 2>/dev/null)" = "$pid" ]; then
  kill -INT "$pid" 2>/dev/null
fi
[ $# -gt 0 ] || exit 0
tries=0
while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
# A server that has started over the data since is not ours to clear away.
now=$(head -n 1 "$data/postmaster.pid" 2>/dev/null)
[ "${now:-$pid}" = "$pid" ] || exit 0
for thing; do rm -rf -- "$thing"; done
"#;

/// The content of a `postmaster.pid`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PidFile {
    pub(super) pid: u32,
    /// The postmaster accepts connections.
    pub(super) ready: bool,
    /// The directory of its socket.
    pub(super) socket_dir: Option<PathBuf>,
}

impl PidFile {
    /// Reads the pid file of a data directory; a partial one reads as none.
    pub(super) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok().filter(|pid| *pid > 1)?,
            ready: lines.get(7) == Some(&"ready"),
            socket_dir: lines
                .get(4)
                .filter(|line| !line.is_empty())
                .map(PathBuf::from),
        })
    }
}

/// A running postmaster, a child of this process.
#[derive(Debug)]
pub(super) struct Postmaster {
    child: Child,
    watch: Child,
}

impl Postmaster {
    /// Starts the command and its watcher. `doomed` is what the watcher removes at the end.
    pub(super) fn spawn(
        mut command: Command,
        data: &Path,
        doomed: &[PathBuf],
    ) -> Result<Self, Failure> {
        let program = PathBuf::from(command.get_program());
        let mut child = command
            .spawn()
            .map_err(|fault| Failure::io("start", &program, &fault))?;
        let watch = quiet_command(Path::new("/bin/sh"))
            .args(["-c", WATCH, "postgres-watch"])
            .arg(data)
            .arg(child.id().to_string())
            .args(doomed)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match watch {
            Ok(watch) => Ok(Self { child, watch }),
            Err(fault) => {
                end_child(&mut child);
                Err(Failure::io("start", Path::new("/bin/sh"), &fault))
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The postmaster's exit status, if it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Shuts the postmaster down and stops the watcher.
    pub(super) fn stop(mut self) {
        end_child(&mut self.child);
        // The watcher has nothing left to do, and the pid may soon belong to another process.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

/// Ends the child: fast, then immediate, then by SIGKILL.
fn end_child(child: &mut Child) {
    let pid = pid_of(child.id());
    escalate(
        |signal| {
            if let Some(pid) = pid {
                let _ = kill_process(pid, signal);
            }
        },
        || matches!(child.try_wait(), Ok(Some(_)) | Err(_)),
    );
}

/// Ends a postmaster that an earlier process left behind on the same data.
pub(super) fn end_orphan(pid: u32, data: &Path) -> Result<(), Failure> {
    let gone = escalate(
        |signal| {
            if let Some(pid) = pid_of(pid) {
                let _ = kill_process(pid, signal);
            }
        },
        || !serves(pid, data),
    );
    if gone {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "A PostgreSQL server (pid {pid}) still runs over {} and does not end. End it with: \
             kill -9 {pid}",
            data.display()
        )))
    }
}

/// Sends stronger and stronger signals until `gone`, and returns whether it is.
fn escalate(send: impl Fn(Signal), mut gone: impl FnMut() -> bool) -> bool {
    let steps = [
        (Signal::INT, FAST_DEADLINE),
        (Signal::QUIT, IMMEDIATE_DEADLINE),
        (Signal::KILL, KILL_DEADLINE),
    ];
    for (signal, patience) in steps {
        if gone() {
            return true;
        }
        send(signal);
        // A stopped process handles no signal but this one and SIGKILL.
        send(Signal::CONT);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if gone() {
                return true;
            }
            std::thread::sleep(POLL);
        }
    }
    gone()
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Whether a process has this pid.
pub(super) fn exists(pid: u32) -> bool {
    // EPERM means that it exists and belongs to another user.
    pid_of(pid).is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Whether the process with this pid is a live postmaster on this data. A pid file outlives its
/// process, and another process may have got the number since.
pub(super) fn serves(pid: u32, data: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    if !exists(pid) {
        return false;
    }
    let line = if Path::new("/proc/self/cmdline").exists() {
        fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
    } else {
        Command::new("ps")
            .args(["-ww", "-o", "command=", "-p", &pid.to_string()])
            .output()
            .map(|output| output.stdout)
            .unwrap_or_default()
    };
    let wanted = data.as_os_str().as_bytes();
    line.windows(wanted.len()).any(|part| part == wanted)
        && line.windows(8).any(|part| part == b"postgres")
}

/// Lets the next postmaster ignore a pid file whose number belongs to another process now.
///
/// The file stays, because it names the shared memory by which PostgreSQL detects processes of the
/// dead server that still use the data. A postmaster ignores its parent's pid there, so this
/// process's pid is written.
pub(super) fn disown_pid_file(data: &Path) -> Result<(), Failure> {
    let path = data.join("postmaster.pid");
    let text = fs::read_to_string(&path).map_err(|fault| Failure::io("read", &path, &fault))?;
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    fs::write(&path, format!("{}\n{rest}", std::process::id()))
        .map_err(|fault| Failure::io("write", &path, &fault))
}

/// Runs a command within a deadline, and returns whether it succeeded.
pub(super) fn run_within(mut command: Command, patience: Duration) -> Result<bool, Failure> {
    let program = PathBuf::from(command.get_program());
    let mut child = command
        .spawn()
        .map_err(|fault| Failure::io("start", &program, &fault))?;
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(None) => {
                // Kill its children too: the command leads its own process group.
                if let Some(pid) = pid_of(child.id()) {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                let _ = child.wait();
                return Err(Failure::new(format!(
                    "{} did not finish within {} s.",
                    program.display(),
                    patience.as_secs()
                )));
            }
            Err(fault) => return Err(Failure::io("wait for", &program, &fault)),
        }
    }
}

/// The command line of a postmaster.
pub(super) fn command(
    account: &Account,
    postgres: &Path,
    data: &Path,
    settings: &[(&str, String)],
) -> Command {
    let mut command = account.command(postgres);
    command.arg("-D").arg(data);
    for (name, value) in settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_is_read_whole_half_written_and_broken() {
        let whole = "4242\n/data\n1700000000\n5432\n/run\n\n  1 2\nready   \n";
        assert_eq!(
            PidFile::parse(whole),
            Some(PidFile {
                pid: 4242,
                ready: true,
                socket_dir: Some("/run".into()),
            })
        );
        assert_eq!(
            PidFile::parse("4242\n/data\n"),
            Some(PidFile {
                pid: 4242,
                ready: false,
                socket_dir: None,
            })
        );
        for broken in ["", "x\n", "-4242\n", "0\n", "1\n"] {
            assert_eq!(PidFile::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_command_past_its_deadline_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("child");
        // On a busy machine the first looks may come before the child runs.
        let mut children = [500, 2_000, 8_000, 32_000].into_iter().filter_map(|ms| {
            let mut command = quiet_command(Path::new("/bin/sh"));
            command
                .args(["-c", "sleep 61 & echo $! > \"$0\"; wait"])
                .arg(&mark);
            let ended = run_within(command, Duration::from_millis(ms));
            let text = ended.unwrap_err().to_string();
            assert!(text.contains("/bin/sh did not finish"), "{text}");
            let child = fs::read_to_string(&mark).ok()?;
            child.trim().parse::<u32>().ok()
        });
        let child = children.next().expect("a child within its time");
        let deadline = Instant::now() + KILL_DEADLINE;
        while serves_command(child, "sleep") {
            assert!(Instant::now() < deadline, "the child still runs");
            std::thread::sleep(POLL);
        }
    }

    /// Whether a live process with this pid runs this command (a zombie has no command line).
    fn serves_command(pid: u32, command: &str) -> bool {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(command))
    }

    #[test]
    fn a_process_that_is_no_postmaster_does_not_serve() {
        assert!(exists(std::process::id()));
        assert!(!serves(std::process::id(), Path::new("/no/such/data")));
        assert!(!exists(i32::MAX as u32));
    }
}
