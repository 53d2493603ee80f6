//! A private PostgreSQL from the host's binaries, for `agent-runtime dev` and for the tests.
//!
//! It listens only on a Unix socket in a directory that only its account can enter, so it needs no
//! password. A file lock lets one [`Cluster`] at a time use a data directory; the kernel frees it
//! when the holder dies. The server ends with its `Cluster`. It also ends if this process is killed
//! or never drops the value, as test binaries do with statics. A server that was left behind
//! nevertheless is ended at the next start.
//!
//! Layout of a data directory: `pgdata` (the server's), `socket`, `server.log`, `initdb.log`,
//! `lock`.
//!
//! Not here: databases, roles and the schema, and any SQL.

use super::account::Account;
use super::binaries::Binaries;
use super::failure::Failure;
use super::postmaster::{self, PidFile, Postmaster};
use crate::text::hex;
use crate::uri::percent_encoded;
use sha2::{Digest, Sha256};
use slog::{Logger, info, warn};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The role that owns everything in the cluster.
const USER: &str = "agent_runtime";
/// The first database of the cluster.
const DATABASE: &str = "postgres";
/// Part of the socket's file name. There is no TCP port.
const PORT: u16 = 5432;
/// The longest path of a Unix socket in bytes, without its final NUL (Linux; elsewhere 103).
const SOCKET_PATH_MAX_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
const INITDB_DEADLINE: Duration = Duration::from_secs(120);
/// Long enough for crash recovery of a development database.
const START_DEADLINE: Duration = Duration::from_secs(120);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Attempts to start while processes of a killed server are still ending.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// A longer server log is truncated at the next start.
const LOG_MAX_BYTES: u64 = 10 * 1024 * 1024;
/// How much of the server's log an error shows.
const LOG_TAIL_LINES: usize = 15;
const LOG_TAIL_MAX_BYTES: u64 = 16 * 1024;

/// Where the cluster's files are and how it runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory for data, socket and logs; made if missing. See [`default_data_dir`].
    pub data_dir: PathBuf,
    /// `true`: every commit is flushed, and the data stays. `false` (for tests): nothing is
    /// flushed, and everything is removed when the cluster ends, also by a kill. Give each such
    /// cluster its own directory.
    pub durable: bool,
    /// The only directory to search for `initdb` and `postgres`, if given.
    pub bin_dir: Option<PathBuf>,
    /// The text of `PATH`, searched before the directories of packages.
    pub search_path: Option<OsString>,
    /// The user's runtime directory (`XDG_RUNTIME_DIR`), for the socket if its path under
    /// `data_dir` is too long; `/tmp` without it.
    pub runtime_dir: Option<PathBuf>,
    /// Gets progress and failures.
    pub log: Logger,
}

/// The data directory for `wanted` (under the user's data directory). The server's user cannot
/// enter root's home, so root's cluster is in `/var/lib/agent-runtime-dev`.
pub fn default_data_dir(wanted: &Path) -> PathBuf {
    match Account::choose() {
        Ok(account) if account.blocked_at(wanted).is_some() => {
            PathBuf::from("/var/lib/agent-runtime-dev")
        }
        _ => wanted.to_owned(),
    }
}

/// Whether there is a cluster in this data directory, running or not.
pub fn exists(data_dir: &Path) -> bool {
    data_dir.join("pgdata/PG_VERSION").exists()
}

/// The URL of the first database of the cluster that runs in this data directory, if one does. For
/// other processes of its user.
pub fn url_of_running(data_dir: &Path) -> Option<String> {
    let data = std::path::absolute(data_dir).ok()?.join("pgdata");
    let found = PidFile::read(&data).filter(|found| found.ready)?;
    let socket_dir = found.socket_dir?;
    postmaster::serves(found.pid, &data).then(|| url(&socket_dir, DATABASE))
}

fn url(socket_dir: &Path, database: &str) -> String {
    format!(
        "postgresql://{USER}@{}:{PORT}/{}",
        percent_encoded(socket_dir.as_os_str().as_bytes()),
        percent_encoded(database.as_bytes())
    )
}

/// A running private PostgreSQL; dropping it stops the server.
#[derive(Debug)]
pub struct Cluster {
    options: Options,
    account: Account,
    binaries: Binaries,
    data: PathBuf,
    socket_dir: PathBuf,
    server: Option<Postmaster>,
    /// The lock on the data directory.
    _lock: File,
}

impl Cluster {
    /// Makes the data directory if needed, starts the server, and waits until it accepts
    /// connections.
    ///
    /// # Errors
    /// No usable PostgreSQL, data of another version, a directory in use or unreachable, or a
    /// server that does not start. The text says what to do, or shows the end of the server's log.
    pub fn start(options: Options) -> Result<Self, Failure> {
        let root = std::path::absolute(&options.data_dir)
            .map_err(|fault| Failure::io("resolve", &options.data_dir, &fault))?;
        let data = root.join("pgdata");
        let account = Account::choose()?;
        let binaries = Binaries::find(
            options.bin_dir.as_deref(),
            options.search_path.as_deref(),
            data_major(&data)?,
        )?;
        account.check_reach(&binaries.postgres)?;
        account.make_outer(&root)?;
        account.check_reach(&data)?;
        let lock = lock(&root.join("lock"))?;
        let socket_dir = socket_dir(&root, &account, options.runtime_dir.as_deref())?;
        let mut cluster = Self {
            options: Options {
                data_dir: root,
                ..options
            },
            account,
            binaries,
            data,
            socket_dir,
            server: None,
            _lock: lock,
        };
        cluster.initialise()?;
        cluster.server = Some(cluster.launch()?);
        Ok(cluster)
    }

    /// The URL of the cluster's first database, for libpq and the `postgres` crate.
    pub fn url(&self) -> String {
        self.url_of(DATABASE)
    }

    /// The URL of one of the cluster's databases.
    pub fn url_of(&self, database: &str) -> String {
        url(&self.socket_dir, database)
    }

    /// The postmaster's process id.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Postmaster::pid)
    }

    /// The server's log.
    pub fn log_path(&self) -> PathBuf {
        self.options.data_dir.join("server.log")
    }

    /// Whether the server runs; it may have been killed or have crashed.
    pub fn is_running(&mut self) -> bool {
        self.server
            .as_mut()
            .is_some_and(|server| server.ended().is_none())
    }

    /// Stops the server if it runs, and starts it again on the same data.
    ///
    /// # Errors
    /// As for [`Cluster::start`].
    pub fn restart(&mut self) -> Result<(), Failure> {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        self.server = Some(self.launch()?);
        Ok(())
    }

    /// Stops the server, as dropping does.
    pub fn stop(self) {}

    /// What is removed when a cluster that is not durable ends.
    fn doomed(&self) -> Vec<PathBuf> {
        if self.options.durable {
            return Vec::new();
        }
        let root = &self.options.data_dir;
        let mut doomed = vec![self.socket_dir.clone(), self.data.clone()];
        doomed.extend(["server.log", "initdb.log", "lock"].map(|name| root.join(name)));
        doomed
    }

    /// Runs `initdb` once. The new directory is renamed when it is complete, so an interrupted run
    /// leaves nothing that looks finished.
    fn initialise(&self) -> Result<(), Failure> {
        if self.data.join("PG_VERSION").exists() {
            return Ok(());
        }
        info!(self.options.log, "preparing a private PostgreSQL (first start only)";
            "directory" => %self.data.display(), "major" => self.binaries.major);
        let fresh = self.options.data_dir.join("pgdata.new");
        // The C library's UTF-8 locale, else plain C. Their sort order never changes with an
        // upgrade.
        for locale in ["C.UTF-8", "C"] {
            remove_tree(&fresh)?;
            self.account.make_private(&fresh)?;
            if self.initdb(&fresh, locale)? {
                return fs::rename(&fresh, &self.data)
                    .map_err(|fault| Failure::io("create", &self.data, &fault));
            }
            let said = tail(&self.options.data_dir.join("initdb.log"), 0);
            if !said.contains("locale") {
                remove_tree(&fresh)?;
                return Err(Failure::new(format!(
                    "PostgreSQL could not prepare its data directory {}. It said:\n{said}",
                    self.data.display()
                )));
            }
        }
        Err(Failure::new(
            "PostgreSQL knows neither the locale C.UTF-8 nor C.".to_owned(),
        ))
    }

    fn initdb(&self, fresh: &Path, locale: &str) -> Result<bool, Failure> {
        let log = log_file(&self.options.data_dir.join("initdb.log"), true)?;
        let mut command = self.account.command(&self.binaries.initdb);
        command.arg("--pgdata").arg(fresh).args([
            "--auth=trust",
            "--encoding=UTF8",
            "--no-instructions",
            &format!("--username={USER}"),
            &format!("--locale={locale}"),
        ]);
        if !self.options.durable {
            command.arg("--no-sync");
        }
        let (out, err) = outputs(log, &self.options.data_dir)?;
        command.stdout(out).stderr(err);
        postmaster::run_within(command, INITDB_DEADLINE)
    }

    /// Starts the server and waits until it is ready. Retries while a killed one is still ending.
    fn launch(&self) -> Result<Postmaster, Failure> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            self.clear_way()?;
            let log = log_file(&self.log_path(), false)?;
            let begin = log.metadata().map_or(0, |found| found.len());
            let (out, err) = outputs(log, &self.options.data_dir)?;
            let mut command = postmaster::command(
                &self.account,
                &self.binaries.postgres,
                &self.data,
                &self.settings(),
            );
            command.stdout(out).stderr(err);
            let mut server = Postmaster::spawn(command, &self.data, &self.doomed())?;
            if self.wait_ready(&mut server, deadline) {
                return Ok(server);
            }
            let ended = server.ended();
            server.stop();
            let said = tail(&self.log_path(), begin);
            // Processes of a killed server need a moment to notice that their postmaster is gone.
            let passing = said.contains("is still in use") || said.contains("already exists");
            if passing && Instant::now() < deadline {
                std::thread::sleep(RETRY_INTERVAL);
                continue;
            }
            let what = match ended {
                Some(status) => format!("ended immediately ({status})"),
                None => format!("was not ready within {} s", START_DEADLINE.as_secs()),
            };
            return Err(Failure::new(format!(
                "The private PostgreSQL {what}. The end of its log, {}:\n{said}",
                self.log_path().display()
            )));
        }
    }

    /// Ends a server that was left behind on this data. This process holds the lock, so no other
    /// uses it.
    fn clear_way(&self) -> Result<(), Failure> {
        let Some(PidFile { pid, .. }) = PidFile::read(&self.data) else {
            return Ok(());
        };
        if postmaster::serves(pid, &self.data) {
            warn!(self.options.log, "ending a PostgreSQL that an earlier start left behind";
                "pid" => pid);
            postmaster::end_orphan(pid, &self.data)
        } else if postmaster::exists(pid) {
            postmaster::disown_pid_file(&self.data)
        } else {
            Ok(())
        }
    }

    /// The pid file says when the server is ready. That needs no connection, which could hang.
    fn wait_ready(&self, server: &mut Postmaster, deadline: Instant) -> bool {
        let begin = Instant::now();
        let mut next_word = begin + PROGRESS_INTERVAL;
        while Instant::now() < deadline && server.ended().is_none() {
            let found = PidFile::read(&self.data);
            if found.is_some_and(|found| found.ready && found.pid == server.pid()) {
                return true;
            }
            if Instant::now() >= next_word {
                info!(self.options.log, "waiting for the private PostgreSQL";
                    "waitedS" => begin.elapsed().as_secs());
                next_word += PROGRESS_INTERVAL;
            }
            std::thread::sleep(postmaster::POLL);
        }
        false
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let socket_dir = self.socket_dir.display().to_string().replace('"', "\"\"");
        let mut settings = vec![
            ("listen_addresses", String::new()),
            ("port", PORT.to_string()),
            ("unix_socket_directories", format!("\"{socket_dir}\"")),
            ("unix_socket_permissions", "0700".to_owned()),
            ("max_connections", "300".to_owned()),
            ("timezone", "UTC".to_owned()),
            ("log_timezone", "UTC".to_owned()),
            ("logging_collector", "off".to_owned()),
            ("log_destination", "stderr".to_owned()),
        ];
        if !self.options.durable {
            // synchronous_commit stays on: tests kill the server and expect what it had committed.
            settings.push(("fsync", "off".to_owned()));
            settings.push(("full_page_writes", "off".to_owned()));
        }
        settings
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        for path in self.doomed() {
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            if let Err(fault) = removed {
                warn!(self.options.log, "could not remove a part of a private PostgreSQL";
                    "path" => %path.display(), crate::log::ErrorValue(&fault));
            }
        }
    }
}

/// The major version that made the data, or `None` if there is none.
fn data_major(data: &Path) -> Result<Option<u32>, Failure> {
    let path = data.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => Err(Failure::new(format!(
                "{} does not hold a PostgreSQL version.",
                path.display()
            ))),
        },
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(Failure::io("read", &path, &fault)),
    }
}

/// Locks the data directory for this process.
fn lock(path: &Path) -> Result<File, Failure> {
    use rustix::fs::{FlockOperation, flock};
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|fault| Failure::io("open", path, &fault))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Failure::new(format!(
            "The data directory {} is in use by another agent-runtime. Stop that one, or start with \
             another data directory.",
            path.parent().unwrap_or(path).display()
        ))),
        Err(fault) => Err(Failure::io("lock", path, &fault.into())),
    }
}

/// A private directory for the socket: under the data directory, or a shorter one if that path is
/// too long.
fn socket_dir(
    root: &Path,
    account: &Account,
    runtime_dir: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let digest = Sha256::digest(root.as_os_str().as_bytes());
    let tag = hex(&digest[..6]);
    let short = format!("agent-runtime-{}-{tag}", account.uid);
    let mut choices = vec![root.join("socket")];
    choices.extend(runtime_dir.map(|dir| dir.join(&short)));
    choices.push(Path::new("/tmp").join(&short));
    let name_bytes = format!("/.s.PGSQL.{PORT}").len();
    let fitting = choices.into_iter().find(|dir| {
        dir.as_os_str().len() + name_bytes <= SOCKET_PATH_MAX_BYTES
            && dir.to_str().is_some()
            && dir.parent().is_some_and(Path::is_dir)
            && account.blocked_at(dir).is_none()
    });
    let dir = fitting.ok_or_else(|| {
        Failure::new("There is no directory with a path short enough for a socket.".to_owned())
    })?;
    account.make_private(&dir)?;
    Ok(dir)
}

/// Opens a log. It is truncated on request or if it has grown long.
pub(super) fn log_file(path: &Path, anew: bool) -> Result<File, Failure> {
    let long = fs::metadata(path).is_ok_and(|found| found.size() > LOG_MAX_BYTES);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|fault| Failure::io("open", path, &fault))?;
    if anew || long {
        file.set_len(0)
            .map_err(|fault| Failure::io("empty", path, &fault))?;
    }
    Ok(file)
}

pub(super) fn outputs(log: File, root: &Path) -> Result<(Stdio, Stdio), Failure> {
    let second = log
        .try_clone()
        .map_err(|fault| Failure::io("open a log in", root, &fault))?;
    Ok((log.into(), second.into()))
}

/// The last lines of a log from `begin` on.
pub(super) fn tail(path: &Path, begin: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            begin.max(length.saturating_sub(LOG_TAIL_MAX_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_else(|fault| format!("(its log cannot be read: {fault})"));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

fn remove_tree(path: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(path) {
        Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io("remove", path, &fault))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_directory_survives_in_a_url() {
        assert_eq!(percent_encoded(b"/tmp/a b").to_string(), "%2Ftmp%2Fa%20b");
    }

    #[test]
    fn the_tail_is_the_end_of_this_start_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, format!("old\n{}", "line\n".repeat(40))).unwrap();
        assert_eq!(tail(&path, 4).lines().count(), LOG_TAIL_LINES);
        fs::write(&path, "old\nnew\n").unwrap();
        assert_eq!(tail(&path, 4), "new");
        assert!(tail(&dir.path().join("none"), 0).contains("cannot be read"));
    }
}
