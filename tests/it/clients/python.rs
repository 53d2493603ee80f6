//! The Python client: what the specification says of clients. Its other tests are run by `clients/python/tests/run`, which
//! has a server of its own.

use super::file;
use crate::harness::page::part;
use crate::harness::{App, made};
use serde_json::json;
use std::process::Command;

#[test]
fn it_calls_what_is_named_reads_events_and_tells_denials() {
    run(
        &[
            "tests.test_calls",
            "tests.test_webhooks",
            "tests.test_protocol.Protocol.test_a_denial_is_an_auth_error",
        ],
        &[],
    );
}

#[test]
fn a_denial_of_a_server_reaches_it_as_the_specification_says() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let viewer = app.person("Viewer", "viewer@example.com");
    let membership = json!({"userId": viewer, "role": "viewer"});
    let path = format!("/v1/projects/{project}/memberships");
    app.post(&path, &membership).expect(201);
    app.is_in_step();
    let token = app.as_user(viewer);
    let url = format!("http://{}", app.address());
    run(
        &["tests.server.denied"],
        &[
            ("URL", &url),
            ("AGENT_RUNTIME_URL", &url),
            ("TOKEN", app.token()),
            ("AGENT_RUNTIME_TOKEN", app.token()),
            ("PROJECT", &project),
            ("VIEWER", &viewer.to_string()),
            ("TOKEN_OF_VIEWER", token.token()),
        ],
    );
}

fn run(tests: &[&str], variables: &[(&str, &str)]) {
    let output = Command::new(part("python-client/bin/python"))
        .current_dir(file("python"))
        .args(["-B", "-m", "unittest"])
        .args(tests)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Ran ") && !said.contains("Ran 0"), "{said}");
}
