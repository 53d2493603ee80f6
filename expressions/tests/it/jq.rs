//! Values beside those of the command `jq`.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::corpus::{differences, examples, random_programs, report};

fn jq(program: &str, input: &Value) -> Option<Vec<Value>> {
    const DOES_NOT_COMPILE: i32 = 3;
    let mut child = Command::new("jq")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("The tests of values need the command jq; install the package jq.");
    let mut pipe = child.stdin.take().unwrap();
    // A program that is refused is not waited for.
    drop(pipe.write_all(input.to_string().as_bytes()));
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(DOES_NOT_COMPILE) {
        return None;
    }
    assert!(complaint.is_empty(), "{complaint}\n{program}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let values = lines.lines().map(serde_json::from_str);
    Some(values.collect::<Result<_, _>>().unwrap())
}

#[test]
fn examples_have_the_values_of_jq() {
    let found = differences(jq, &examples(), false);
    assert!(found.is_empty(), "{}:\n{}", found.len(), report(&found));
}

#[test]
fn random_programs_have_the_values_of_jq() {
    for programs in random_programs() {
        let found = differences(jq, &programs, true);
        assert!(found.is_empty(), "{}", report(&found));
    }
}
