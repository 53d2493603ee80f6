//! README.md: the key pair that its commands make signs license keys that a build of it takes, and its
//! webhook arrives, against a real `dev`.

use crate::harness::{Running, directory, run};
use crate::page::{blocks, free_port, path_with_program};
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../README.md");

#[test]
fn the_readme_makes_a_key_pair_that_signs_license_keys() {
    let make_pair = PAGE
        .lines()
        .find(|line| line.contains("openssl genpkey"))
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new("bash")
        .args(["-euo", "pipefail", "-c", make_pair])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let keys = std::fs::read_to_string(directory.path().join("license-keys.pub")).unwrap();
    let is_hexadecimal = keys.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(keys.len() == 64 && is_hexadecimal, "{keys:?}");

    // The command of the page, with this pair.
    let issuer = directory.path().join("issuer.pem");
    let sign = "agent-runtime license sign --key issuer.pem --licensee \"Example Ltd\" --days 365";
    assert!(PAGE.contains(sign));
    let issuer = issuer.to_str().unwrap();
    let arguments = ["license", "sign", "--key", issuer];
    let more = ["--licensee", "Example Ltd", "--days", "365"];
    let signed = run(&[arguments, more].concat(), &[]).expect(0);
    assert!(signed.out.starts_with("svc_lk_"), "{}", signed.out);
}

/// The section under this heading.
fn section(heading: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

#[test]
fn the_webhook_of_the_readme_arrives_as_it_stands() {
    let directory = directory();
    let path = path_with_program(directory.path());
    let data = directory.path().join("data");
    let variables = [
        ("PATH", path.as_str()),
        ("XDG_DATA_HOME", data.to_str().unwrap()),
        ("HOME", "/nonexistent"),
    ];
    let command = |script: &str| {
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .env_clear()
            .envs(variables)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let mut dev = Running::start(command("exec agent-runtime dev"));
    dev.line_with("on, and so are webhooks");
    let export = dev.line_with("export AGENT_RUNTIME_URL=");
    dev.line_with("Ctrl-C stops everything.");

    let work = directory.path().join("work");
    fs::create_dir(&work).unwrap();
    let webhook = section("Get a webhook when a run ends");
    fs::write(work.join("receiver.py"), blocks(webhook, "python")[0]).unwrap();
    let begin = blocks(section("Use a real model"), "sh");
    let begin = begin.iter().find(|block| block.contains("> authorization"));
    let commands = [&[*begin.unwrap()], blocks(webhook, "sh").as_slice()].concat();
    let script = format!(
        "exec 2>&1\nset -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{export}\n{}\n\
         read -r end",
        commands.join("\n")
    );
    let mut example = command(&script);
    example.current_dir(&work).env("PORT", free_port());
    let mut example = Running::start(example);
    let arrived = example.line_with("genuine: ");
    for part in ["run.finished", "\"status\": \"completed\""] {
        assert!(
            arrived.replace("\":\"", "\": \"").contains(part),
            "{arrived}"
        );
    }
    // The shell reads the end of its input, and takes the receiver with it.
    drop(example.stdin());
    example.wait();
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}
