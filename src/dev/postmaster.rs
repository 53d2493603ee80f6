//! The server's process: its pid file, its start and end, and the watch over us.
//!
//! A postmaster is started directly as our child, so that its end is seen at once, in a process
//! group of its own. Beside it runs a watch: a small shell that reads a pipe from us. However we
//! end, `kill -9` included, the pipe closes, and the watch shuts the postmaster down.

use super::account::{Account, quiet_command};
use super::cluster::Failure;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a shutdown may take that lets transactions abort in order.
const FAST_DEADLINE: Duration = Duration::from_secs(15);
/// How long the shutdown may take that drops everything; recovery follows at the next start.
const IMMEDIATE_DEADLINE: Duration = Duration::from_secs(8);
/// How long a killed process may take to vanish.
const KILL_DEADLINE: Duration = Duration::from_secs(5);
/// How often a state that the kernel does not announce is looked at.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// What the watch does once our end of the pipe is closed. Arguments: data, pid, things to remove.
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

/// What a `postmaster.pid` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PidFile {
    pub(super) pid: u32,
    /// The postmaster has said that it takes connections.
    pub(super) ready: bool,
}

impl PidFile {
    /// Reads the pid file of a data directory; a half-written one reads as none.
    pub(super) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok().filter(|pid| *pid > 1)?,
            ready: lines.get(7) == Some(&"ready"),
        })
    }
}

/// A running postmaster that is our child.
#[derive(Debug)]
pub(super) struct Postmaster {
    child: Child,
    watch: Child,
}

impl Postmaster {
    /// Starts the command, and the watch beside it. `doomed` is what the watch removes at the end.
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

    /// How the postmaster ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Shuts the postmaster down and calls the watch off.
    pub(super) fn stop(mut self) {
        end_child(&mut self.child);
        // The watch has nothing left to do, and must not act on a pid that is free again.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

/// Ends our own child: in order, then at once, then by force.
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

/// Ends a postmaster that an earlier process of ours left behind over the same data.
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

/// Sends ever harder signals until `gone`, and says whether it is.
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
        // A stopped process takes no signal but this one and KILL.
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

/// Whether some process has this pid.
pub(super) fn exists(pid: u32) -> bool {
    // A refusal (EPERM) means that there is one, of somebody else.
    pid_of(pid).is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Whether the process with this pid is a live postmaster over this data. A pid file outlives its
/// process, and the number may since have gone to another.
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

/// Lets the next postmaster pass a pid file whose number now belongs to a process that is not one.
///
/// The file itself stays: it names the shared memory by which Postgres sees whether processes of the
/// dead server still work on the data. A postmaster ignores its parent's pid there, so ours goes in.
pub(super) fn disown_pid_file(data: &Path) -> Result<(), Failure> {
    let path = data.join("postmaster.pid");
    let text = fs::read_to_string(&path).map_err(|fault| Failure::io("read", &path, &fault))?;
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    fs::write(&path, format!("{}\n{rest}", std::process::id()))
        .map_err(|fault| Failure::io("write", &path, &fault))
}

/// Runs a command to its end, within a deadline, and says whether it succeeded.
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
                // With what it has started: the command leads a process group of its own.
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
                ready: true
            })
        );
        assert_eq!(
            PidFile::parse("4242\n/data\n"),
            Some(PidFile {
                pid: 4242,
                ready: false
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
        // A busy machine may not come to the child within the first ones.
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
