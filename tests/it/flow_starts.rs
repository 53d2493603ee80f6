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
