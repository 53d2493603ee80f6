//! Every route: the API description as a snapshot, the table as a snapshot, and a sweep that calls
//! each as every kind of caller.

use crate::harness::{App, secrets};
use agent_runtime::error::Code;
use agent_runtime::http::access::Rule;
use agent_runtime::proof::Capability;
use agent_runtime::server;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn the_api_description_is_a_snapshot() {
    let app = App::start_with_secrets();
    let described = app.get("/openapi.json").expect(200);
    assert_eq!(described["openapi"], json!("3.1.0"));
    let text = described.to_string();
    for word in ["specification", "(section ", "Specification"] {
        assert!(
            !text.contains(word),
            "{word}: readers of the description have no such document"
        );
    }
    insta::assert_json_snapshot!("openapi", described);
}

/// Who may call what, and what it may answer: a change of it is a change of `routes.txt`, which
/// `UPDATE_GENERATED=1` writes anew.
#[test]
fn the_route_table_is_a_snapshot() {
    let common = &agent_runtime::http::route::COMMON_CODES;
    let texts = |codes: &[Code]| {
        codes
            .iter()
            .map(|code| code.text())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut lines = format!(
        "# method, path | operation | access | capability of the key | codes\n# every route: {}\n",
        texts(common)
    );
    for route in server::table(true, true).routes() {
        let codes: Vec<Code> = route
            .codes
            .iter()
            .filter(|code| !common.contains(code))
            .copied()
            .collect();
        lines += &format!(
            "{:6} {:52} | {:34} | {:36} | {:13} | {}\n",
            route.method.text(),
            route.path,
            route.operation.to_string(),
            route.rule.to_string(),
            route.capability.map_or("-", Capability::text),
            texts(&codes),
        );
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots/routes.txt");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&file, &lines).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    for (now, kept) in lines.lines().zip(kept.lines()) {
        assert_eq!(now, kept, "routes.txt differs: see above this test");
    }
    assert_eq!(lines.lines().count(), kept.lines().count());
}

#[test]
fn what_is_mounted_is_described_and_what_is_described_is_mounted() {
    for (docs, secrets) in [(true, true), (false, false), (true, false)] {
        let app = App::start_with(|options| {
            options.docs = docs;
            if secrets {
                options.secrets = secrets::Keys::new().options();
            }
        });
        let described = app.get("/openapi.json").expect(200);
        let mut operations = Vec::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                operations.push(format!("{} {path}", method.to_uppercase()));
            }
        }
        // What has no name is no call of a client.
        let table = server::table(docs, secrets);
        let calls = table.routes().iter();
        let calls = calls.filter(|route| route.operation.name().is_some());
        let mut mounted: Vec<String> = calls
            .map(|route| format!("{} {}", route.method.text(), route.path))
            .collect();
        operations.sort();
        mounted.sort();
        assert_eq!(operations, mounted);
        for operation in operations {
            let (method, path) = operation.split_once(' ').unwrap();
            let path = path.replace(['{', '}'], "");
            let answer = app.send(
                method,
                &path,
                (method != "GET").then(|| "{}".to_owned()),
                &[],
            );
            let code = answer.json_code();
            assert_ne!(code.as_deref(), Some("route-not-found"), "{operation}");
            assert_ne!(code.as_deref(), Some("method-not-allowed"), "{operation}");
        }
        let status = app.get("/docs").status;
        assert_eq!(status, if docs { 200 } else { 404 });
    }
}

/// A route without an operation name is no call of a client. The description lists it, with the reason.
#[test]
fn what_is_mounted_without_a_name_is_listed_with_its_reason_and_nothing_else_is() {
    for docs in [true, false] {
        let app = App::start_with(|options| options.docs = docs);
        let described = app.get("/openapi.json").expect(200);
        let text = described["info"]["description"].as_str().unwrap();
        let items = text.lines().filter_map(|line| line.strip_prefix("- `"));
        let mut listed: Vec<&str> = items
            .map(|item| {
                let (route, reason) = item.split_once("`: ").expect(item);
                assert!(reason.split_whitespace().count() > 2, "{item}");
                route
            })
            .collect();
        let table = server::table(docs, false);
        let unnamed = table.routes().iter();
        let unnamed = unnamed.filter(|route| route.operation.name().is_none());
        let mut mounted: Vec<String> = unnamed
            .map(|route| format!("{} {}", route.method.text(), route.path))
            .collect();
        listed.sort_unstable();
        mounted.sort();
        assert_eq!(listed, mounted);
        assert_eq!(listed.contains(&"GET /docs"), docs);
        for route in listed {
            let (method, path) = route.split_once(' ').unwrap();
            assert!(described["paths"].get(path).is_none(), "{route}");
            let path = path.replace(['{', '*', '}'], "");
            let body = (method != "GET").then(|| "{}".to_owned());
            let code = app.send(method, &path, body, &[]).json_code();
            assert_ne!(code.as_deref(), Some("route-not-found"), "{route}");
            assert_ne!(code.as_deref(), Some("method-not-allowed"), "{route}");
        }
    }
}

#[test]
fn every_route_of_the_api_is_below_v1() {
    // Pages and files, the description itself, and the address to which a provider sends a browser back.
    const ELSEWHERE: [&str; 5] = ["", "console", "docs", "openapi.json", "sign-in"];
    let table = server::table(true, true);
    for route in table.routes() {
        let first = route.path.split('/').nth(1).unwrap();
        if first != "v1" {
            assert!(ELSEWHERE.contains(&first), "{}", route.path);
            assert_eq!(route.operation.name(), None, "{}", route.path);
        }
    }
}

#[test]
fn no_route_but_the_open_ones_answers_without_a_token() {
    let app = App::start_with_secrets();
    let nobody = app.with_token(None);
    for route in server::table(true, true).routes() {
        let path = route.path.replace(['{', '}'], "");
        let body = (route.body_bytes > 0).then(|| "{}".to_owned());
        let answer = nobody.send(route.method.text(), &path, body, &[]);
        if matches!(route.rule, Rule::Open(_)) {
            assert_eq!(answer.status, route.shape.status, "{path}");
        } else if route.rule == Rule::Enrolling {
            answer.expect_error(400, "invalid-body");
        } else if route.rule == Rule::SigningIn {
            answer.expect_error(403, "csrf-origin-mismatch");
        } else if route.rule == Rule::Returning {
            assert_eq!(answer.status, 303, "{path}");
        } else {
            answer.expect_error(401, "unauthenticated");
        }
    }
}

#[test]
fn errors_have_one_form() {
    let app = App::start();
    app.get("/nothing").expect_error(404, "route-not-found");
    let refused = app.delete("/v1/projects");
    assert_eq!(refused.header("allow"), Some("POST, GET, HEAD"));
    refused.expect_error(405, "method-not-allowed");
    app.get("/v1/projects/00000000-0000-0000-0000-000000000000")
        .expect_error(404, "not-found");
    app.get("/v1/projects/%00").expect_error(404, "not-found");
    app.get("/v1/projects/x").expect_error(404, "not-found");
}

#[test]
fn what_is_refused_before_its_body_is_read_has_the_same_form() {
    let app = App::start();
    let long = || Some(format!(r#"{{"name":"{}"}}"#, "a".repeat(64 * 1024)));
    let other = app.send("DELETE", "/v1/projects", long(), &[]);
    assert_eq!(other.header("allow"), Some("POST, GET, HEAD"));
    assert!(other.header("traceresponse").is_some());
    other.expect_error(405, "method-not-allowed");
    app.send("POST", "/nothing", long(), &[])
        .expect_error(404, "route-not-found");
    let nobody = app.with_token(None);
    nobody
        .send("POST", "/v1/projects", long(), &[])
        .expect_error(401, "unauthenticated");
    let probe = app.send("POST", "/healthz", Some("{}".to_owned()), &[]);
    assert_eq!(probe.header("allow"), Some("GET, HEAD"));
    probe.expect_error(405, "method-not-allowed");
}

#[test]
fn nothing_that_a_client_sends_is_a_fault_of_ours() {
    let app = App::start();
    app.get("/v1/projects?cursor=%00")
        .expect_error(400, "invalid-request");
    let edge = json!({"name": "edge", "expiresAt": "9999-12-31T23:59:59-23:59"});
    app.post("/v1/tokens", &edge)
        .expect_error(400, "invalid-body");
    app.post("/v1/projects?colour=red", &json!({"name": "a"}))
        .expect_error(400, "invalid-request");
}

#[test]
fn every_answer_continues_the_trace() {
    let app = App::start();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = app.send("GET", "/v1/projects", None, &[("traceparent", parent)]);
    let response = answer.header("traceresponse").unwrap();
    assert!(
        response.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{response}"
    );
    assert!(!response.contains("00f067aa0ba902b7"), "{response}");
    let fresh = app.get("/nothing");
    assert!(fresh.header("traceresponse").unwrap().starts_with("00-"));
}

#[test]
fn the_reference_loads_nothing_from_elsewhere() {
    let app = App::start();
    let nobody = app.with_token(None);
    let page = nobody.get("/docs");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe-eval"));
    assert!(!policy.contains("script-src 'self' 'unsafe-inline'"));
    assert!(!page.text.contains("http://") && !page.text.contains("https://"));
    for part in page
        .text
        .split('"')
        .filter(|part| part.starts_with("/docs/"))
    {
        assert_eq!(nobody.get(part).status, 200, "{part}");
    }
}

/// `tests/setup/browser-files` checks the version that the package names for known faults, so it is
/// to be the one that is served.
#[test]
fn the_reference_is_the_version_that_is_checked() {
    let package: Value =
        serde_json::from_str(include_str!("../../static/docs/swagger-ui/package.json")).unwrap();
    let version = package["dependencies"]["swagger-ui-dist"].as_str().unwrap();
    let app = App::start();
    let bundle = app.with_token(None).get("/docs/swagger-ui-bundle.js");
    assert!(bundle.text.contains(&format!("\"{version}\"")), "{version}");
}

impl crate::harness::Answer {
    pub(crate) fn json_code(&self) -> Option<String> {
        let body: Value = serde_json::from_str(&self.text).ok()?;
        Some(body["error"]["code"].as_str()?.to_owned())
    }
}
