//! Disks that fill up: the database's under a server that stays up, and the one with the state
//! directory.
//!
//! They are small file systems in memory, which takes the right to mount: as root, or through sudo
//! without a password.

use crate::access::{Person, authorized, project, verify_audit};
use crate::check::{Strict, check};
use crate::follow::Follower;
use crate::openfga::OpenFga;
use crate::server::{Answer, Client, ServerConfig};
use crate::world::{Agents, Pace, cluster_in, config, shared_database};
use crate::{eventually, report};
use rustix::process::geteuid;
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A file system of a few megabytes. It goes with this value; one that a killed test left behind goes
/// at the next.
struct Disk(PathBuf);

impl Disk {
    fn mount(name: &str, megabytes: u32) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("full-{name}"));
        std::fs::create_dir_all(&path).unwrap();
        let disk = Self(path);
        disk.unmount();
        let options = format!("size={megabytes}m,mode=0755,uid={}", geteuid().as_raw());
        let mounted = as_root(&["mount", "-t", "tmpfs", "-o", &options, "tmpfs"], &disk.0);
        assert!(
            mounted,
            "This test mounts a tmpfs on {}, which takes root: run the tests as root, or let sudo \
             mount without a password.",
            disk.0.display()
        );
        disk
    }

    fn unmount(&self) {
        // Whatever is left on it is a killed test's.
        while as_root(&["umount", "-l"], &self.0) {}
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Takes what room there is.
    fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        for size in [1 << 20, 4096, 1] {
            let piece = vec![b'x'; size];
            let fault = loop {
                if let Err(fault) = file.write_all(&piece) {
                    break fault;
                }
            };
            assert_eq!(fault.kind(), ErrorKind::StorageFull, "{fault}");
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn as_root(command: &[&str], path: &Path) -> bool {
    let sudo: &[&str] = match geteuid().is_root() {
        true => &[],
        false => &["sudo", "-n"],
    };
    let words = [sudo, command].concat();
    let status = Command::new(words[0])
        .args(&words[1..])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn write(client: &Client) -> Answer {
    let name = "a project with a long name ".repeat(6);
    client
        .post("/v1/projects", &json!({"name": name.trim()}))
        .unwrap()
}

fn message(answer: &Answer) -> &str {
    answer.body["error"]["message"].as_str().unwrap_or_default()
}

/// Asks until it is refused so: what is left of a page is still written to.
#[track_caller]
fn refused(code: &str, mut ask: impl FnMut() -> Answer) -> Answer {
    eventually(code, || {
        let answer = ask();
        if answer.status < 300 {
            return None;
        }
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.body["error"]["code"], code, "{answer:?}");
        Some(answer)
    })
}

/// The servers of one database: one that checks what somebody may, and one that checks keys alone.
struct Scene {
    checking: ServerConfig,
    open: ServerConfig,
    member: Person,
    project: String,
}

impl Scene {
    fn make(url: &str, fga: &OpenFga) -> Self {
        let checking = authorized(url.to_owned(), &fga.url());
        let open = config(url.to_owned());
        let _started = checking.start();
        let admin = checking.client();
        let project_id = project(&admin);
        let member = Person::add(&admin);
        let path = format!("/v1/projects/{project_id}/memberships");
        admin.made(&path, &json!({"userId": member.id, "role": "viewer"}), 201);
        Self {
            checking,
            open,
            member,
            project: format!("/v1/projects/{project_id}"),
        }
    }

    fn checked_read(&self) -> Answer {
        self.member.at(&self.checking).get(&self.project).unwrap()
    }

    #[track_caller]
    fn works(&self) {
        eventually("everything to work again", || {
            let wrote = write(&self.open.client()).status == 201;
            (wrote && self.checked_read().status == 200).then_some(())
        });
    }
}

#[test]
fn a_full_disk_refuses_what_writes_and_nothing_else() {
    let disk = Disk::mount("database", 224);
    let mut cluster = cluster_in(disk.0.join("cluster"));
    let fga = OpenFga::own_in_memory();
    let scene = Scene::make(&cluster.url(), &fga);
    let mut servers = [scene.checking.start(), scene.open.start()];
    let open = scene.open.client();
    let pace = Pace {
        tool: Duration::from_secs(2),
        ..Pace::default()
    };
    let agents = Agents::make(&open, pace);
    let run_id = agents.start_turn(&open, agents.repeatable);
    let follower = Follower::of(open.clone(), agents.repeatable, run_id);
    agents.tool.wait_for(run_id);
    // A segment of the log stands whole before the disk is full: PostgreSQL goes on, and only its
    // tables cannot grow.
    let mut sql = postgres::Client::connect(&cluster.url(), postgres::NoTls).unwrap();
    sql.batch_execute("select pg_switch_wal(); checkpoint")
        .unwrap();
    disk.fill();

    let answer = refused("database-unavailable", || write(&open));
    assert!(message(&answer).contains("disk is full"), "{answer:?}");
    let answer = refused("audit-unavailable", || scene.checked_read());
    assert!(message(&answer).contains("audit: the disk"), "{answer:?}");
    for _ in 0..20 {
        for path in [
            "/v1/projects?limit=5",
            "/v1/runs?limit=5",
            "/healthz",
            "/readyz",
        ] {
            let answer = open.get(path).unwrap();
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
        }
    }
    disk.make_room();
    scene.works();
    let seen = follower.finish();
    check(
        &scene.open,
        &agents,
        &[(agents.repeatable, seen)],
        Strict::Completed,
    );

    // No room for the log either: PostgreSQL ends, and comes back once its operator has made some.
    disk.fill();
    let more = "select pg_logical_emit_message(false, 'full', repeat('x', 1000000))";
    eventually("the database to give up", || sql.batch_execute(more).err());
    let answer = refused("database-unavailable", || {
        open.get("/v1/projects?limit=5").unwrap()
    });
    assert!(!message(&answer).is_empty());
    assert_eq!(open.get("/healthz").unwrap().status, 200);
    disk.make_room();
    cluster.restart().unwrap();
    scene.works();
    for server in &mut servers {
        assert!(server.runs());
    }
    drop(servers);
    verify_audit(&scene.checking);
    report(
        "full disk",
        &format!("refused={}", answer.body["error"]["code"]),
    );
}

#[test]
fn a_state_directory_without_room_is_named_and_nothing_half_is_left() {
    let disk = Disk::mount("state", 1);
    let state = disk.0.join("state");
    std::fs::create_dir(&state).unwrap();
    disk.fill();
    // What it keeps between starts is written once it serves.
    let output = Command::new(env!("CARGO_BIN_EXE_agent-runtime"))
        .args(["dev", "--database-url", &shared_database()])
        .env_clear()
        .env("XDG_DATA_HOME", &state)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains(&state.display().to_string()), "{said}");
    let mut files = Vec::new();
    let mut waiting = vec![state.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => waiting.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    assert!(files.is_empty(), "{files:?}");
}
