//! Values beside those of the command `jq`, in the newest version: `tests/setup/jq` builds it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::corpus::{differences, examples, random_programs, report};

/// What `tests/setup/jq` installed.
pub(crate) fn installed(name: &str) -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/setup");
    let parts = Command::new(setup.join("where")).output().unwrap();
    let parts = String::from_utf8(parts.stdout).unwrap();
    let path = Path::new(parts.trim()).join("jq").join(name);
    assert!(
        path.exists(),
        "{} is missing: run tests/setup/jq",
        path.display()
    );
    path
}

fn jq(program: &str, input: &Value) -> Option<Vec<Value>> {
    const DOES_NOT_COMPILE: i32 = 3;
    let mut child = Command::new(installed("bin/jq"))
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
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
