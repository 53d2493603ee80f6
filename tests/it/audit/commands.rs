//! `audit verify` and `audit export`, as an operator runs them.

use super::support::{count, decision, denied, soon, writer};
use crate::harness::{Database, eventually};
use agent_runtime::audit::Retention;
use agent_runtime::ids::{Clock, rfc3339};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;
use uuid::Uuid;

struct Said {
    code: i32,
    out: String,
    err: String,
}

fn run(database: &Database, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-runtime"));
    let output = command
        .arg("audit")
        .args(arguments)
        .env_clear()
        .envs([("SVC_DEV", "true"), ("SVC_DATABASE_URL", &database.url())])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn verify_says_what_it_found_with_its_exit_code() {
    let database = Database::migrated();
    let (audit, running) = writer(&database.url(), &Clock::system(), |_| {});
    for _ in 0..3 {
        let ticket = audit.record(decision(Uuid::from_u128(1), "project:a"));
        ticket.unwrap().wait(soon()).unwrap();
    }
    assert!(running.stop(soon()));
    let said = run(&database, &["verify"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        said.out,
        "The record is complete: 3 decisions in 3 batches, 2 chains.\n"
    );
    let tampering = "update audit_decisions set reason = 'x' where position = 2";
    database.client().batch_execute(tampering).unwrap();
    let said = run(&database, &["verify"]);
    assert_eq!(said.code, 2);
    let starts = "changed: slot 1, allowed, positions 2 to 2, ";
    assert!(said.out.starts_with(starts), "{}", said.out);
    let said = run(&database, &["verify", "--json"]);
    assert_eq!(said.code, 2);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["faults"][0]["kind"], "changed");
    assert_eq!(report["faults"][0]["firstPosition"], 2);
    let said = run(&database, &["verify", "--public-key", "/etc/hostname"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(
        said.err.contains("not an Ed25519 public key"),
        "{}",
        said.err
    );
}

#[test]
fn verify_says_what_an_unsigned_anchor_cannot_prove() {
    let (database, clock) = (Database::migrated(), Clock::system());
    clock.set_back(Duration::from_secs(100 * 24 * 3600));
    let (audit, running) = writer(&database.url(), &clock, |options| {
        options.retention = Some(Retention { key: None });
    });
    let ticket = audit.record(decision(Uuid::from_u128(1), "project:a"));
    ticket.unwrap().wait(soon()).unwrap();
    clock.advance(Duration::from_secs(100 * 24 * 3600));
    audit.keep_up();
    eventually("the purge", || (count(&database) == 0).then_some(()));
    assert!(running.stop(soon()));
    let said = run(&database, &["verify"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", said.out);
    for word in ["not signed", "cannot prove", "SVC_AUDIT_SIGNING_KEY_PATH"] {
        assert!(lines[1].contains(word), "{}", said.out);
    }
    let said = run(&database, &["verify", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&report["anchors"], &report["unsignedAnchors"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn export_writes_each_decision_of_its_time_once_oldest_first() {
    let database = Database::migrated();
    let clock = Clock::system();
    let (audit, running) = writer(&database.url(), &clock, |_| {});
    let [one, other] = [1, 2].map(Uuid::from_u128);
    let write = |from: u32, to: u32| {
        for number in from..to {
            let resource = format!("project:{number:04}");
            let made = match number % 2 {
                0 => decision(one, &resource),
                _ => denied(other, &resource),
            };
            audit.record(made).unwrap();
        }
        // The writer keeps the order, so the last is written last.
        let last = audit.record(decision(one, "project:last")).unwrap();
        last.wait(soon()).unwrap();
    };
    write(0, 2500);
    clock.advance(Duration::from_secs(24 * 3600));
    let middle = rfc3339::text(clock.now());
    write(2500, 2600);
    assert!(running.stop(soon()));
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let said = run(
            &database,
            &[&["export", "--format", "jsonl"], arguments].concat(),
        );
        assert_eq!(said.code, 0, "{}", said.err);
        let lines = said.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let all = lines(&[]);
    let resources: Vec<&str> = all
        .iter()
        .map(|line| line["resource"].as_str().unwrap())
        .collect();
    let mut expected: Vec<String> = (0..2600)
        .map(|number| format!("project:{number:04}"))
        .collect();
    expected.insert(2500, "project:last".to_owned());
    expected.push("project:last".to_owned());
    assert_eq!(resources, expected);
    assert_eq!(all[1]["tenantId"], other.to_string());
    assert_eq!(
        (&all[1]["outcome"], &all[1]["slot"]),
        (&"denied".into(), &1.into())
    );
    assert_eq!(lines(&["--from", &middle]).len(), 101);
    assert_eq!(lines(&["--to", &middle]).len(), 2501);
    assert_eq!(
        lines(&["--to", &middle, "--tenant", &other.to_string()]).len(),
        1250
    );
    let wrong = run(&database, &["export", "--from", "yesterday"]);
    assert_eq!(wrong.code, 2);
}
