//! The schema serves the oldest program it names, and the one before the newest migration: each runs on today's tables and
//! functions, alone and beside today's program, on a database that it made itself.
//!
//! They are built from the history (`tests/upgrade/earlier`); where the schema of both is today's, today's program stands
//! for them. Where one cannot run, either a newer migration or function disturbs it (expand first, contract in a later
//! release) or `OLDEST_BINARY` in `src/store/db/migrations.rs` has to say so.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test throughout, its helpers included"
)]

#[path = "../crash/server.rs"]
#[allow(dead_code, reason = "the crash tests use more of it")]
mod server;
#[path = "../crash/tool.rs"]
#[allow(dead_code, reason = "the crash tests use more of it")]
mod tool;
#[path = "../crash/wait.rs"]
#[allow(dead_code, reason = "the crash tests use more of it")]
mod wait;
#[path = "../crash/world.rs"]
#[allow(dead_code, reason = "the crash tests use more of it")]
mod world;

use postgres::NoTls;
use server::{Client, ServerConfig};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uuid::Uuid;
use wait::{PATIENCE, eventually};
use world::{Agents, Pace, config, shared_database};

/// The programs that the schema must serve.
fn earlier() -> Vec<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade/earlier");
    // The directory of the binary under test is that of the profile.
    let target = Path::new(env!("CARGO_BIN_EXE_agent-runtime"))
        .ancestors()
        .nth(2);
    let built = Command::new(script)
        .env("CARGO_TARGET_DIR", target.unwrap())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(built.status.success(), "an earlier program cannot be built");
    let paths = String::from_utf8(built.stdout).unwrap();
    paths.lines().map(PathBuf::from).collect()
}

#[track_caller]
fn completes(client: &Client, run_id: Uuid) {
    eventually("the run to complete", || {
        let run = client.run(run_id);
        let status = run["status"].as_str().unwrap();
        assert!(
            ["queued", "running", "waiting", "completed"].contains(&status),
            "{run}"
        );
        (status == "completed").then_some(())
    });
}

/// The runs that a list shows.
fn listed(client: &Client) -> usize {
    let answer = client.get("/v1/runs?limit=200").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["data"].as_array().unwrap().len()
}

/// A backup that today's program makes of the earlier schema.
fn restorable(today: &ServerConfig) -> tempfile::TempDir {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("b");
    let output = today.run(&["backup", path.to_str().unwrap()]);
    let fault = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{fault}");
    directory
}

/// It is brought up to today's schema when it is put back.
fn restores(backup: &tempfile::TempDir, today: &ServerConfig, is_pending: bool) {
    let target = ServerConfig {
        database_url: shared_database(),
        ..today.replica()
    };
    let path = backup.path().join("b");
    let output = target.run(&["restore", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let fault = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{fault}");
    let is_applied = said.contains("runtime: migrations applied: ");
    assert_eq!(is_applied, is_pending, "{said}");
    let server = target.start();
    assert_eq!(listed(&target.client()), 1);
    assert!(server.terminate().0.success());
}

#[test]
fn earlier_programs_serve_the_newest_schema() {
    let programs = earlier();
    for program in &programs {
        serves(Some(program));
    }
    if programs.is_empty() {
        serves(None);
    }
}

/// The program, whose schema is another than today's, serves today's; or today's serves what it made itself.
fn serves(earlier: Option<&PathBuf>) {
    let today: ServerConfig = config(shared_database());
    let mut old = today.replica();
    old.program = earlier.unwrap_or(&old.program).clone();
    let check = |config: &ServerConfig| {
        let output = config.run(&["migrate", "--check"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let fault = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}{fault}");
        said
    };
    // An upgrade: the old program's schema, brought up to today's under its feet.
    let old_server = old.start();
    let agents = Agents::make(&old.client(), Pace::default());
    let first = agents.start_turn(&old.client(), agents.repeatable);
    // As an operator does it who has installed the new program already.
    let backup = restorable(&today);
    let pending = check(&today);
    let is_pending = pending.contains("pending: ");
    assert_eq!(is_pending, earlier.is_some(), "{pending}");
    let today_server = today.start();
    completes(&old.client(), first);
    // Both serve, and each carries on what the other began.
    for config in [&old, &today] {
        let id = agents.start_turn(&config.client(), agents.repeatable);
        completes(&old.client(), id);
        completes(&today.client(), id);
    }
    assert_eq!((listed(&old.client()), listed(&today.client())), (3, 3));
    restores(&backup, &today, is_pending);
    // The way back: the old program starts on the newest schema, alone.
    assert!(today_server.terminate().0.success());
    assert!(old_server.terminate().0.success());
    assert_eq!(check(&old), "The schema is up to date.\n");
    let again = old.start();
    let id = agents.start_turn(&old.client(), agents.repeatable);
    completes(&old.client(), id);
    assert_eq!(listed(&old.client()), 4);
    assert!(again.terminate().0.success());
    let mut sql = postgres::Client::connect(&today.database_url, NoTls).unwrap();
    let row = sql.query_one("select oldest_binary from agent_runtime_requirements", &[]);
    let oldest: String = row.unwrap().get(0);
    assert_eq!(old.run(&["--version"]).status.code(), Some(0));
    let version = String::from_utf8(old.run(&["--version"]).stdout).unwrap();
    let version = version.trim().rsplit(' ').next().unwrap().to_owned();
    let parsed = |text: &str| semver::Version::parse(text).unwrap();
    assert!(parsed(&version) >= parsed(&oldest), "{version} {oldest}");
}
