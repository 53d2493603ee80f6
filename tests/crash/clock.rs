//! The wall clock of the server set forward and back under it, further than its tables have
//! partitions for. Its database, its clients and the other sides keep theirs.

use crate::access::{Person, authorized, project, verify_audit};
use crate::check::{Strict, check};
use crate::eventually;
use crate::follow::{Follower, Seen};
use crate::openfga::OpenFga;
use crate::report;
use crate::server::{Client, ServerConfig};
use crate::world::{Agents, Pace, config, id_of, shared_database};
use agent_runtime::ids::Clock;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

pub(crate) const HOUR: i64 = 3600;
pub(crate) const DAY: i64 = 24 * HOUR;
const LEAPS: [i64; 7] = [
    3 * HOUR,
    -3 * HOUR,
    40 * DAY,
    -20 * DAY,
    400 * DAY,
    -400 * DAY,
    0,
];
const RUNS: usize = 3;

/// The library that stands between a program and its wall clock.
fn library() -> PathBuf {
    let directories = ["/usr/lib", "/usr/lib64"];
    let inside = directories.iter().flat_map(|directory| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    });
    let mut found = inside
        .map(|path| match path.ends_with("faketime") {
            true => path,
            false => path.join("faketime"),
        })
        .map(|path| path.join("libfaketimeMT.so.1"))
        .filter(|path| path.exists());
    found
        .next()
        .expect("libfaketime; tests/setup/faketime installs it")
}

/// A file that says how far the server's wall clock is ahead.
pub(crate) struct Leap(PathBuf);

impl Leap {
    pub(crate) fn set(&self, seconds: i64) {
        // The server reads it all the time, and never half of it.
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(&new, &self.0).unwrap();
    }

    /// The config whose servers go by it; time that passes stays as it is.
    pub(crate) fn govern(config: ServerConfig) -> (Self, ServerConfig) {
        let leap = Self(config.log.with_extension("clock"));
        leap.set(0);
        let file = |path: &Path| path.display().to_string();
        let config = config
            .with("LD_PRELOAD", file(&library()))
            .with("FAKETIME_TIMESTAMP_FILE", file(&leap.0))
            .with("FAKETIME_NO_CACHE", 1)
            .with("FAKETIME_DONT_FAKE_MONOTONIC", 1)
            .with("NO_FAKE_STAT", 1);
        (leap, config)
    }
}

/// Starts a turn; a month that has no partitions yet gets them within moments.
fn start(agents: &Agents, client: &Client) -> (Uuid, Follower) {
    let agent_id = agents.repeatable;
    let run_id = eventually("a run to be taken", || {
        let answer = client.post("/v1/runs", &agents.turn(agent_id)).unwrap();
        let taken = answer.status == 202;
        assert!(taken || answer.status == 500, "{answer:?}");
        taken.then(|| id_of(&answer.body["run"]))
    });
    (run_id, Follower::of(client.clone(), agent_id, run_id))
}

fn finish(followers: Vec<(Uuid, Follower)>) -> Vec<(Uuid, Seen)> {
    let each = followers.into_iter();
    each.map(|(_, follower)| (follower.agent_id, follower.finish()))
        .collect()
}

#[test]
fn runs_outlive_leaps_of_the_clock() {
    let (leap, config) = Leap::govern(config(shared_database()));
    let mut server = config.start();
    let client = config.client();
    let pace = Pace {
        tool: Duration::from_millis(300),
        ..Pace::default()
    };
    let agents = Agents::make(&client, pace);
    let mut followers = Vec::new();
    for seconds in LEAPS {
        let under_way = (0..RUNS).map(|_| start(&agents, &client));
        let under_way: Vec<_> = under_way.collect();
        for (run_id, _) in &under_way {
            agents.tool.wait_for(*run_id);
        }
        leap.set(seconds);
        followers.extend(under_way);
        followers.push(start(&agents, &client));
    }
    let mut runs = finish(followers);
    // Leases and what is due go by the database's clock: a crash in the leap is an ordinary one.
    leap.set(40 * DAY);
    let cut = start(&agents, &client);
    agents.tool.wait_for(cut.0);
    server.kill();
    server = config.start();
    runs.extend(finish(vec![cut]));
    let figures = check(&config, &agents, &runs, Strict::Completed);
    assert!(server.runs());
    report(
        "clock",
        &format!(
            "leaps={} runs={} completed={} lostAttempts={}",
            LEAPS.len() + 1,
            runs.len(),
            figures.completed,
            figures.lost_attempts
        ),
    );
}

/// How long each of the flows waits.
const WAIT: Duration = Duration::from_secs(2);

/// Registers flows that sleep, that ask nobody in time, and that try again later. Their ids.
fn flows(client: &Client) -> [&'static str; 3] {
    let project = id_of(&client.made("/v1/projects", &json!({"name": "waiting"}), 201));
    let asks = json!({"title": "Pay", "expiresAfter": "PT2S", "onExpire": "continue"});
    let busy = json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503}}});
    let retry = json!({"delay": {"seconds": 2}, "limit": {"attempt": {"count": 2}}});
    let gives_up = json!([{"say": {"set": {"gave": "up"}}}]);
    for (name, task) in [
        ("sleeps", json!({"wait": {"seconds": 2}})),
        ("asks", json!({"call": "approval", "with": asks})),
        (
            "retries",
            json!({"try": [{"busy": busy}], "catch": {"retry": retry, "do": gives_up}}),
        ),
    ] {
        let document =
            json!({"dsl": "1.0.3", "namespace": "waits", "name": name, "version": "1.0.0"});
        let definition = json!({"document": document, "do": [{"task": task}]});
        let flow = json!({"projectId": project, "definition": definition});
        client.made("/v1/flows", &flow, 201);
    }
    ["waits.sleeps", "waits.asks", "waits.retries"]
}

/// The events of a run that was parked.
fn waits(client: &Client, run_id: Uuid) -> Vec<Value> {
    let path = format!("/v1/runs/{run_id}/progress?limit=200");
    let events = client.get(&path).unwrap().body["data"].clone();
    let events = events.as_array().unwrap().iter();
    let waits = events.filter(|event| event["kind"] == "run.waiting");
    waits.cloned().collect()
}

#[test]
fn flows_that_wait_outlive_leaps_of_the_clock() {
    let (leap, config) = Leap::govern(config(shared_database()));
    let mut server = config.start();
    let client = config.client();
    let flows = flows(&client);
    let mut longest = Duration::ZERO;
    for seconds in [3 * HOUR, -3 * HOUR, 0] {
        let began = Instant::now();
        let runs = flows.map(|flow| {
            let started = client.made("/v1/runs", &json!({"flowId": flow, "input": {}}), 202);
            id_of(&started["run"])
        });
        for run_id in runs {
            eventually("the flow to wait", || {
                (client.run(run_id)["status"] == "waiting").then_some(())
            });
        }
        leap.set(seconds);
        for run_id in runs {
            let ended = eventually("the flow to end", || {
                let run = client.run(run_id);
                run["completedAt"].is_string().then_some(run)
            });
            assert_eq!(ended["status"], "completed", "{ended}");
            let waits = waits(&client, run_id);
            assert_eq!(waits.len(), 1, "woken before its time: {waits:#?}");
        }
        assert!(began.elapsed() >= WAIT, "a wait ended early");
        longest = longest.max(began.elapsed());
    }
    assert!(server.runs());
    report("clock waits", &format!("longestMs={}", longest.as_millis()));
}

/// A key of the caller's own that ends in an hour.
fn key_for_an_hour(client: &Client) -> String {
    let ends = Clock::system().now() + Duration::from_secs(3600);
    let body = json!({"name": "for an hour", "expiresAt": ends.format(&Rfc3339).unwrap()});
    let minted: Value = client.made("/v1/tokens", &body, 201);
    minted["token"].as_str().unwrap().to_owned()
}

/// What somebody may do, once the server can say.
#[track_caller]
fn decided(member: &Person, config: &ServerConfig, project_id: Uuid) -> [bool; 2] {
    eventually("an answer", || member.may(config, project_id))
}

fn signing_key(path: &Path) -> String {
    let key = SigningKey::from_bytes(&[7; 32]);
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).mode(0o600).open(path);
    opened.unwrap().write_all(pem.as_bytes()).unwrap();
    path.display().to_string()
}

#[test]
fn keys_and_decisions_outlive_leaps_of_the_clock() {
    let fga = OpenFga::own_in_memory();
    let config = authorized(shared_database(), &fga.url());
    let key = signing_key(&config.log.with_extension("pem"));
    // Whatever the server's clock says, nothing is old enough to be purged.
    let config = config
        .with("SVC_COMPLIANCE_CLASSIFIER", "shipped")
        .with("SVC_AUDIT_SIGNING_KEY_PATH", key);
    let (leap, config) = Leap::govern(config);
    let mut server = config.start();
    let admin = config.client();
    let project_id = project(&admin);
    let member = Person::add(&admin);
    let path = format!("/v1/projects/{project_id}/memberships");
    admin.made(&path, &json!({"userId": member.id, "role": "viewer"}), 201);
    let key = Client::new(config.port, &key_for_an_hour(&admin));
    let read = format!("/v1/projects/{project_id}");
    let mut asked = 0;
    for seconds in LEAPS {
        leap.set(seconds);
        for _ in 0..5 {
            assert_eq!(decided(&member, &config, project_id), [true, false]);
            asked += 2;
        }
        // A key is over once this clock says so, and only for as long as it does.
        let expected = if seconds > HOUR { 401 } else { 200 };
        let answered = eventually("the key's end to be seen", || {
            let status = key.get(&read).unwrap().status;
            (status == expected).then_some(status)
        });
        asked += u64::from(answered == 200);
    }
    assert!(server.runs());
    // A start at another time than the last one's.
    leap.set(100 * DAY);
    server.kill();
    server = config.start();
    assert_eq!(decided(&member, &config, project_id), [true, false]);
    asked += 2;
    assert!(server.terminate().0.success());
    let mut sql = postgres::Client::connect(&config.database_url, postgres::NoTls).unwrap();
    let row = sql.query_one("select count(*) from audit_decisions", &[]);
    let recorded: i64 = row.unwrap().get(0);
    assert!(
        u64::try_from(recorded).unwrap() >= asked,
        "{recorded} of {asked}"
    );
    leap.set(0);
    verify_audit(&config);
    report(
        "clock decisions",
        &format!("asked={asked} recorded={recorded}"),
    );
}
