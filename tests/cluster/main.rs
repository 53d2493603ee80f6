//! The private Postgres of `dev` and of the tests, against the host's real binaries: start, restart,
//! what is left behind by kills, and what its errors say.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "this is a test throughout, its helpers included"
)]

use agent_runtime::dev::cluster::{Cluster, Options};
use agent_runtime::dev::failure::Failure;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(60);
/// Set for the child process of one test: where it starts its cluster.
const HOLDER_DIR: &str = "CLUSTER_TEST_HOLDER_DIR";

/// A directory that the server's user can pass, whoever runs the tests.
fn open_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("cluster-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .unwrap()
}

fn options(data_dir: impl Into<PathBuf>, durable: bool) -> Options {
    Options {
        data_dir: data_dir.into(),
        durable,
        bin_dir: None,
        search_path: None,
        runtime_dir: None,
        log: slog::Logger::root(slog::Discard, slog::o!()),
    }
}

fn text_of(failed: Result<Cluster, Failure>) -> String {
    failed.map(|_| ()).unwrap_err().to_string()
}

fn query(cluster: &Cluster, sql: &str) -> String {
    let mut client = postgres::Client::connect(&cluster.url(), postgres::NoTls).unwrap();
    client.query_one(sql, &[]).unwrap().get(0)
}

fn execute(cluster: &Cluster, sql: &str) {
    let mut client = postgres::Client::connect(&cluster.url(), postgres::NoTls).unwrap();
    client.batch_execute(sql).unwrap();
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn pid_of(pid: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn kill_hard(pid: u32) {
    rustix::process::kill_process(pid_of(pid), rustix::process::Signal::KILL).unwrap();
}

/// Whether a live process with this pid is a server over this directory.
fn serves(pid: u32, dir: &Path) -> bool {
    let line = Command::new("ps")
        .args(["-ww", "-o", "command=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    String::from_utf8_lossy(&line.stdout).contains(dir.to_str().unwrap())
}

#[test]
fn a_restart_keeps_the_data_and_only_a_socket_listens() {
    let dir = open_dir();
    let cluster = Cluster::start(options(dir.path(), true)).unwrap();
    execute(&cluster, "CREATE TABLE kept AS SELECT 'grün' AS word");
    assert_eq!(query(&cluster, "SHOW server_encoding"), "UTF8");
    assert_eq!(query(&cluster, "SHOW listen_addresses"), "");
    assert_eq!(query(&cluster, "SHOW fsync"), "on");
    let socket_dir = dir.path().join("socket");
    let mode = fs::metadata(&socket_dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let group_of = |pid| rustix::process::getpgid(pid).unwrap();
    let server = pid_of(cluster.pid().unwrap());
    assert_ne!(
        group_of(Some(server)),
        group_of(None),
        "a Ctrl-C would reach the server"
    );
    cluster.stop();

    let mut cluster = Cluster::start(options(dir.path(), true)).unwrap();
    assert_eq!(query(&cluster, "SELECT word FROM kept"), "grün");
    cluster.restart().unwrap();
    assert_eq!(query(&cluster, "SELECT word FROM kept"), "grün");
    let pid = cluster.pid().unwrap();
    drop(cluster);
    assert!(!serves(pid, dir.path()));
}

#[test]
fn what_is_not_durable_is_removed_at_the_end() {
    let dir = open_dir();
    let inner = dir.path().join("inner");
    let cluster = Cluster::start(options(&inner, false)).unwrap();
    assert_eq!(query(&cluster, "SHOW fsync"), "off");
    assert_eq!(query(&cluster, "SHOW synchronous_commit"), "on");
    drop(cluster);
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
}

#[test]
fn a_killed_server_starts_again_with_what_it_had_committed() {
    let dir = open_dir();
    let mut cluster = Cluster::start(options(dir.path(), false)).unwrap();
    execute(&cluster, "CREATE TABLE kept AS SELECT 'still here' AS word");
    kill_hard(cluster.pid().unwrap());
    wait_until("the end of the server is seen", || !cluster.is_running());
    cluster.restart().unwrap();
    assert_eq!(query(&cluster, "SELECT word FROM kept"), "still here");
}

#[test]
fn a_stopped_server_can_be_ended() {
    let dir = open_dir();
    let cluster = Cluster::start(options(dir.path(), false)).unwrap();
    let pid = cluster.pid().unwrap();
    rustix::process::kill_process(pid_of(pid), rustix::process::Signal::STOP).unwrap();
    drop(cluster);
    assert!(!serves(pid, dir.path()));
}

#[test]
fn two_clusters_run_at_once_and_one_directory_serves_one() {
    let (first_dir, second_dir) = (open_dir(), open_dir());
    let first = Cluster::start(options(first_dir.path(), false)).unwrap();
    let second = Cluster::start(options(second_dir.path(), false)).unwrap();
    execute(&first, "CREATE TABLE mine AS SELECT 1");
    execute(&second, "CREATE TABLE mine AS SELECT 2");
    let text = text_of(Cluster::start(options(first_dir.path(), false)));
    assert!(text.contains("in use by another agent-runtime"), "{text}");
    assert_eq!(query(&first, "SELECT 'up'"), "up");
}

#[test]
fn a_path_too_long_for_a_socket_gets_a_short_private_one() {
    let dir = open_dir();
    let long = dir.path().join("d".repeat(60)).join("e'\" ,".repeat(12));
    let cluster = Cluster::start(options(&long, false)).unwrap();
    assert!(cluster.url().contains("%2Ftmp%2Fagent-runtime-"));
    assert_eq!(query(&cluster, "SELECT 'up'"), "up");
    let socket_dir = query(&cluster, "SHOW unix_socket_directories");
    let socket_dir = Path::new(socket_dir.trim_matches('"')).to_owned();
    let mode = fs::metadata(&socket_dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(cluster);
    assert!(!socket_dir.exists());
}

#[test]
fn a_path_with_odd_characters_is_carried_to_the_server_and_into_the_url() {
    let dir = open_dir();
    let odd = dir.path().join("a b,\"c\" %41'é");
    let cluster = Cluster::start(options(&odd, false)).unwrap();
    assert!(odd.join("socket/.s.PGSQL.5432").exists());
    assert_eq!(query(&cluster, "SELECT 'up'"), "up");
}

#[test]
fn a_stale_pid_file_that_names_a_foreign_process_is_passed() {
    let dir = open_dir();
    let mut cluster = Cluster::start(options(dir.path(), false)).unwrap();
    let pid_file = dir.path().join("pgdata/postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    kill_hard(cluster.pid().unwrap());
    wait_until("the end of the server is seen", || !cluster.is_running());
    let mut foreign = Command::new("sleep").arg("600").spawn().unwrap();
    let rest = text.split_once('\n').unwrap().1;
    fs::write(&pid_file, format!("{}\n{rest}", foreign.id())).unwrap();
    cluster.restart().unwrap();
    assert_eq!(query(&cluster, "SELECT 'up'"), "up");
    assert!(foreign.try_wait().unwrap().is_none(), "it was not ours");
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[test]
fn missing_binaries_are_an_error_with_the_line_that_installs_them() {
    let (dir, empty) = (open_dir(), open_dir());
    let text = text_of(Cluster::start(Options {
        bin_dir: Some(empty.path().to_owned()),
        ..options(dir.path(), false)
    }));
    assert!(text.contains("not installed"), "{text}");
    assert!(text.contains("install"), "{text}");
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing made yet"
    );
}

#[test]
fn data_of_another_major_version_names_both() {
    let dir = open_dir();
    fs::create_dir(dir.path().join("pgdata")).unwrap();
    fs::write(dir.path().join("pgdata/PG_VERSION"), "9\n").unwrap();
    let text = text_of(Cluster::start(options(dir.path(), true)));
    assert!(text.contains("made by PostgreSQL 9"), "{text}");
    assert!(text.contains("the PostgreSQL here is 1"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn another_version_comes_from_a_given_directory() {
    let where_script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setup/where");
    let parts = Command::new(where_script).output().unwrap();
    let parts = PathBuf::from(String::from_utf8(parts.stdout).unwrap().trim());
    let bin_dir = parts.join("postgres18/bin");
    assert!(
        bin_dir.join("postgres").exists(),
        "PostgreSQL 18 is not set up: run tests/setup/postgres18"
    );
    let dir = open_dir();
    let with_18 = Options {
        bin_dir: Some(bin_dir),
        ..options(dir.path(), true)
    };
    let cluster = Cluster::start(with_18.clone()).unwrap();
    assert!(query(&cluster, "SHOW server_version").starts_with("18."));
    drop(cluster);

    let other = open_dir();
    fs::create_dir(other.path().join("pgdata")).unwrap();
    fs::write(other.path().join("pgdata/PG_VERSION"), "14\n").unwrap();
    let text = text_of(Cluster::start(Options {
        data_dir: other.path().to_owned(),
        ..with_18
    }));
    assert!(text.contains("made by PostgreSQL 14"), "{text}");
    assert!(text.contains("the PostgreSQL here is 18"), "{text}");
}

#[test]
fn a_server_that_does_not_come_up_shows_its_log() {
    let dir = open_dir();
    Cluster::start(options(dir.path(), true)).unwrap().stop();
    let settings = dir.path().join("pgdata/postgresql.conf");
    fs::write(&settings, "no_such_setting = 1\n").unwrap();
    let text = text_of(Cluster::start(options(dir.path(), true)));
    assert!(text.contains("no_such_setting"), "{text}");
    assert!(text.contains("server.log"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = open_dir();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let text = text_of(Cluster::start(options(file.join("inner"), true)));
    assert!(text.contains("file/inner"), "{text}");
}

/// Not a test of its own: the process that the next tests kill.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "how the next tests speak to their child process"
)]
fn holder_of_a_cluster() {
    let Some(dir) = std::env::var_os(HOLDER_DIR) else {
        return;
    };
    let durable = !Path::new(&dir).ends_with("scratch");
    let cluster = Cluster::start(options(dir, durable)).unwrap();
    println!("\nholding {}", cluster.pid().unwrap());
    loop {
        std::thread::park();
    }
}

/// Starts a process that holds a cluster, kills it, and gives the pid of its server.
fn kill_a_holder(dir: &Path) -> u32 {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder_of_a_cluster", "--nocapture"])
        .env(HOLDER_DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid: u32 = BufReader::new(holder.stdout.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("holding ")?.parse().ok())
        .expect("the holder started no cluster");
    assert!(serves(pid, dir));
    holder.kill().unwrap();
    holder.wait().unwrap();
    pid
}

#[test]
fn a_killed_parent_takes_its_server_along_and_the_next_start_works() {
    let dir = open_dir();
    let pid = kill_a_holder(dir.path());
    // At once: the server may still be there, and is then ended first.
    let cluster = Cluster::start(options(dir.path(), true)).unwrap();
    assert_eq!(query(&cluster, "SELECT 'up'"), "up");
    assert!(!serves(pid, dir.path()));
}

#[test]
fn a_killed_parent_leaves_nothing_of_what_is_not_durable() {
    let dir = open_dir();
    let scratch = dir.path().join("scratch");
    let pid = kill_a_holder(&scratch);
    wait_until("the server is gone", || !serves(pid, &scratch));
    wait_until("its files are gone", || {
        fs::read_dir(&scratch).unwrap().count() == 0
    });
}
