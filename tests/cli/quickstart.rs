//! docs/quickstart.md: its commands as they stand and in their order, against the server that the first
//! of them starts.

use crate::harness::{Running, directory};
use crate::page::{blocks, free_port, path_with_program};
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/quickstart.md");

/// How long the page's commands may take together, in seconds.
const MOST_S: &str = "120";

#[test]
fn every_command_of_the_quickstart_works_as_it_stands() {
    let directory = directory();
    let path = path_with_program(directory.path());
    let data = directory.path().join("data");
    let variables = [
        ("PATH", path.as_str()),
        ("XDG_DATA_HOME", data.to_str().unwrap()),
        ("HOME", "/nonexistent"),
    ];
    let commands = blocks(PAGE, "sh");
    let (start, rest) = commands.split_first().unwrap();
    let mut dev = Command::new("bash");
    dev.args(["-c", &format!("exec {start}")])
        .env_clear()
        .envs(variables)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut dev = Running::start(dev);
    let export = dev.line_with("export AGENT_RUNTIME_URL=");
    dev.line_with("Ctrl-C stops everything.");

    let work = directory.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("order_status.py"), blocks(PAGE, "python")[0]).unwrap();
    // The tool ends with the commands, wherever these end.
    let script = format!(
        "exec 2>&1\nset -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{export}\n{}\n",
        rest.join("\n")
    );
    let output = Command::new("timeout")
        .args(["-k", "5", MOST_S, "bash", "-c", &script])
        .current_dir(&work)
        .env_clear()
        .envs(variables)
        .env("PORT", free_port())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}\n{said}", output.status);
    let answered = r#"{"orderId": "A-1001", "status": "shipped yesterday"}"#;
    for part in [
        r#""name":"shop-helper""#,
        &format!("← order_status {answered}"),
        &format!("I asked the tool, and it answered: {answered}"),
        "completed · 3 steps · 2 model calls",
    ] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

#[test]
fn the_quickstart_takes_six_requests() {
    let requests = PAGE.matches("call \"$AGENT_RUNTIME_URL/").count();
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("## "));
    let numbers: Vec<char> = headings
        .filter_map(|heading| heading.chars().next())
        .filter(char::is_ascii_digit)
        .collect();
    assert_eq!((requests, numbers), (6, ('1'..='6').collect()));
}
