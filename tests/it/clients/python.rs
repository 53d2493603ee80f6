//! The Python client: what the specification says of clients. Its other tests are run by `clients/python/tests/run`, which
//! has a server of its own.

use super::file;
use crate::harness::page::part;
use std::process::Command;

#[test]
fn it_calls_what_is_named_reads_events_and_tells_denials() {
    let mut tests = Command::new(part("python-client/bin/python"));
    tests
        .current_dir(file("python"))
        .args([
            "-B",
            "-m",
            "unittest",
            "tests.test_calls",
            "tests.test_webhooks",
        ])
        .arg("tests.test_protocol.Protocol.test_a_denial_is_an_auth_error");
    let output = tests.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Ran ") && !said.contains("Ran 0"), "{said}");
}
