//! Runs of flows, as a client starts them.

use crate::harness::{App, made};
use serde_json::{Value, json};

fn definition(version: &str) -> Value {
    json!({
        "document": {"dsl": "1.0.3", "namespace": "billing", "name": "refund", "version": version},
        "input": {"schema": {"format": "json", "document": {
            "type": "object", "required": ["orderId"], "properties": {"orderId": {"type": "string"}},
        }}},
        "do": [{"one": {"set": {"order": "${ .orderId }", "by": version}}}],
    })
}

#[track_caller]
fn register(app: &App, project: &str) -> String {
    let body = json!({"projectId": project, "definition": definition("1.0.0")});
    made::id(&app.post("/v1/flows", &body).expect(201))
}

fn start(fields: Value) -> Value {
    let mut body = json!({"flowId": "billing.refund", "input": {"orderId": "1234"}});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn a_flow_runs_in_the_version_that_is_named_or_live_or_latest() {
    let app = App::start();
    let project = made::project(&app);
    let flow = register(&app, &project);
    let next = json!({"definition": definition("1.1.0")});
    app.post(&format!("/v1/flows/{flow}/versions"), &next)
        .expect(201);
    let run = |fields: Value| {
        let started = app.post("/v1/runs", &start(fields)).expect(202);
        let run = started["run"].clone();
        assert_eq!(
            (&run["flowId"], &run["projectId"]),
            (&json!("billing.refund"), &json!(project))
        );
        assert!(run.get("agent").is_none(), "{run}");
        let id = made::id(&run);
        assert_eq!(app.finished(&id)["status"], "completed");
        let output = app.output(&id);
        assert_eq!(output, json!({"order": "1234", "by": run["flowVersion"]}));
        run
    };
    assert_eq!(run(json!({}))["flowVersion"], "1.1.0");
    app.post(
        &format!("/v1/flows/{flow}/promote"),
        &json!({"version": "1.0.0"}),
    )
    .expect(200);
    assert_eq!(
        run(json!({"labels": {"a": "b"}}))["labels"],
        json!({"a": "b"})
    );
    assert_eq!(run(json!({"dryRun": true}))["dryRun"], true);
    assert_eq!(run(json!({}))["flowVersion"], "1.0.0");
    assert_eq!(run(json!({"flowVersion": "1.1.0"}))["flowVersion"], "1.1.0");
    let page = app.get("/v1/runs?flowId=billing.refund").expect(200);
    assert_eq!(page["data"].as_array().unwrap().len(), 5);
}

#[test]
fn a_start_that_cannot_run_makes_no_run() {
    let app = App::start();
    let project = made::project(&app);
    let flow = register(&app, &project);
    let refused = |fields: Value, status: u16, code: &str| {
        app.post("/v1/runs", &start(fields))
            .expect_error(status, code)
    };
    let said = refused(json!({"input": {"orderId": 7}}), 400, "input-invalid");
    assert!(
        said["message"].as_str().unwrap().contains("orderId"),
        "{said}"
    );
    refused(json!({"input": null}), 400, "input-invalid");
    refused(json!({"flowVersion": "9.9.9"}), 404, "not-found");
    refused(json!({"flowId": "billing.other"}), 404, "not-found");
    refused(json!({"projectId": made::project(&app)}), 404, "not-found");
    let two = refused(json!({"message": "Hello"}), 400, "invalid-body");
    let faults = two["details"]["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 1, "{two}");
    let many = refused(
        json!({"flowVersion": "1", "labels": {"A": "b"}, "dryRun": 1}),
        400,
        "invalid-body",
    );
    assert_eq!(
        many["details"]["faults"].as_array().unwrap().len(),
        3,
        "{many}"
    );
    let act = |act: &str| {
        app.send("POST", &format!("/v1/flows/{flow}/{act}"), None, &[])
            .expect(200)
    };
    act("archive");
    refused(json!({}), 409, "flow-archived");
    act("unarchive");
    app.send(
        "POST",
        &format!("/v1/projects/{project}/archive"),
        None,
        &[],
    )
    .expect(200);
    refused(json!({}), 409, "project-archived");
    assert_eq!(app.get("/v1/runs").expect(200)["data"], json!([]));
}

#[test]
fn a_flow_id_of_two_projects_needs_the_project() {
    let app = App::start();
    let projects = [made::project(&app), made::project(&app)];
    for project in &projects {
        register(&app, project);
    }
    let refused = app
        .post("/v1/runs", &start(json!({})))
        .expect_error(409, "conflict");
    let said = refused["message"].as_str().unwrap();
    assert!(said.contains("projectId"), "{said}");
    let shown = projects
        .iter()
        .any(|project| said.contains(project.as_str()));
    assert!(!shown, "not everyone may know of each: {said}");
    for project in &projects {
        let started = app
            .post("/v1/runs", &start(json!({"projectId": project})))
            .expect(202);
        assert_eq!(started["run"]["projectId"], json!(project));
    }
}

#[test]
fn the_same_key_starts_one_run() {
    let app = App::start();
    register(&app, &made::project(&app));
    let send = |fields: Value| {
        let body = start(fields).to_string();
        app.send("POST", "/v1/runs", Some(body), &[("idempotency-key", "k")])
    };
    let first = send(json!({})).expect(202);
    assert_eq!(send(json!({})).expect(202)["run"]["id"], first["run"]["id"]);
    send(json!({"input": {"orderId": "1"}})).expect_error(422, "idempotency-mismatch");
    app.finished(&made::id(&first["run"]));
}

/// Calls a tool and runs another flow, which asks an agent.
fn dry(app: &App, project: &str) {
    let own = |name: &str, tasks: Value| {
        let document =
            json!({"dsl": "1.0.3", "namespace": "billing", "name": name, "version": "1.0.0"});
        let definition = json!({"document": document, "do": tasks});
        let body = json!({"projectId": project, "definition": definition});
        app.post("/v1/flows", &body).expect(201);
    };
    let get = json!({"method": "get", "endpoint": "http://127.0.0.1:1/"});
    own("inner", json!([{"read": {"call": "http", "with": get}}]));
    let inner = json!({"workflow": {"namespace": "billing", "name": "inner", "version": "1.0.0"}});
    own(
        "dry",
        json!([{"keep": {"set": {"n": 1}}}, {"list": {"do": [{"read": {"call": "http", "with": get}}]}}, {"run": {"run": inner}}]),
    );
}

#[test]
fn a_dry_run_is_started_with_answers_for_its_steps() {
    let app = App::start();
    dry(&app, &made::project(&app));
    let fixtures = json!({"/do/1/list/do/0/read": {"a": 1}, "billing.inner/do/0/read": [2]});
    let body =
        json!({"flowId": "billing.dry", "dryRun": true, "fixtures": fixtures, "models": "skip"});
    let started = app.post("/v1/runs", &body).expect(202);
    let id = made::id(&started["run"]);
    assert_eq!(app.finished(&id)["status"], "completed");
    let payload = app.get(&format!("/v1/runs/{id}/payload")).expect(200);
    let expected = json!({"input": {}, "output": [2], "fixtures": fixtures, "models": "skip"});
    assert_eq!(payload, expected);
    let body = json!({"flowId": "billing.inner", "dryRun": true, "fixtures": {"/do/0/read": null}});
    let started = app.post("/v1/runs", &body).expect(202);
    let id = made::id(&started["run"]);
    assert_eq!(app.finished(&id)["status"], "completed");
    let payload = app.get(&format!("/v1/runs/{id}/payload")).expect(200);
    assert_eq!(payload.get("models"), None);
}

#[test]
fn a_repeated_start_finds_its_run_whatever_the_flow_has_become() {
    let app = App::start();
    let project = made::project(&app);
    let flow = register(&app, &project);
    let fixtures = json!({"/do/0/read": {"a": 1}});
    let get = json!({"method": "get", "endpoint": "http://127.0.0.1:1/"});
    let next = |version: &str, fields: Value| {
        let mut next = definition(version);
        for (name, value) in fields.as_object().unwrap() {
            next[name] = value.clone();
        }
        let path = format!("/v1/flows/{flow}/versions");
        app.post(&path, &json!({"definition": next})).expect(201);
    };
    next(
        "1.1.0",
        json!({"do": [{"read": {"call": "http", "with": get}}]}),
    );
    let body = start(json!({"dryRun": true, "fixtures": fixtures})).to_string();
    let send = |key: &str| {
        let headers = [("idempotency-key", key)];
        app.send("POST", "/v1/runs", Some(body.clone()), &headers)
    };
    let first = send("k").expect(202);
    app.finished(&made::id(&first["run"]));
    let is_found = || {
        let again = send("k").expect(202);
        assert_eq!(again["run"]["id"], first["run"]["id"]);
        assert_eq!(again["run"]["flowVersion"], json!("1.1.0"));
    };
    // The next version has no such step, and the one after it takes another input.
    next("1.2.0", json!({}));
    send("other").expect_error(400, "invalid-body");
    is_found();
    let schema = json!({"type": "object", "required": ["other"]});
    let other = json!({"schema": {"format": "json", "document": schema}});
    next("1.3.0", json!({"input": other}));
    send("other").expect_error(400, "input-invalid");
    is_found();
    // A start that was refused keeps no key.
    app.post(
        &format!("/v1/flows/{flow}/promote"),
        &json!({"version": "1.1.0"}),
    )
    .expect(200);
    let late = send("other").expect(202);
    assert_ne!(late["run"]["id"], first["run"]["id"]);
    app.finished(&made::id(&late["run"]));
}

#[test]
fn options_that_do_not_suit_a_run_are_refused_by_name() {
    let app = App::start();
    dry(&app, &made::project(&app));
    let refused = |fields: Value| {
        let mut body = json!({"flowId": "billing.dry", "dryRun": true});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let error = app
            .post("/v1/runs", &body)
            .expect_error(400, "invalid-body");
        let path = error["details"]["path"].as_str().unwrap_or_default();
        format!("{path} {}", error["message"].as_str().unwrap())
    };
    let many: Value = (0..501).map(|n| (format!("/do/{n}/x"), json!(n))).collect();
    let large = json!({"/do/1/list/do/0/read": "x".repeat(256 * 1024)});
    for (fields, says) in [
        (
            json!({"dryRun": false, "fixtures": {"/do/2/run": 1}}),
            "$.fixtures: it is for dry runs alone",
        ),
        (
            json!({"dryRun": false, "models": "skip"}),
            "$.models: it is for dry runs alone",
        ),
        (json!({"models": "none"}), "$.models"),
        (json!({"fixtures": [1]}), "$.fixtures"),
        (
            json!({"fixtures": {"/do/9/read": 1}}),
            "the flow billing.dry has no step at \"/do/9/read\"",
        ),
        (
            json!({"fixtures": {"/do/0/keep": 1}}),
            "the flow billing.dry has no step at \"/do/0/keep\"",
        ),
        (json!({"fixtures": {"read": 1}}), "has no step at \"read\""),
        (
            json!({"fixtures": {"billing.inner/do/9/read": 1}}),
            "the flow billing.inner has no step at",
        ),
        (
            json!({"fixtures": {"billing.other/do/0/read": 1}}),
            "does not run the flow \"billing.other\"",
        ),
        (
            json!({"fixtures": many}),
            "$.fixtures: there are 501, and a run takes 500",
        ),
        (json!({"fixtures": large}), "a run takes 262144"),
    ] {
        let said = refused(fields.clone());
        assert!(said.contains(says), "{said}");
    }
    let turn =
        json!({"agentId": uuid::Uuid::nil(), "message": "?", "dryRun": true, "models": "skip"});
    app.post("/v1/runs", &turn)
        .expect_error(400, "invalid-body");
    assert_eq!(app.get("/v1/runs").expect(200)["data"], json!([]));
}
