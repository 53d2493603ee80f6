//! `/v1/tools`.

use crate::harness::{App, made};
use serde_json::{Value, json};

#[test]
fn a_tool_is_registered_read_listed_and_deleted() {
    let app = App::start();
    let project = made::project(&app);
    let other = made::project(&app);
    let tool = app
        .post("/v1/tools", &made::tool(&project, "clock"))
        .expect(201);
    assert_eq!(tool["timeoutMs"], json!(30_000));
    assert_eq!(tool["idempotent"], json!(false));
    assert_eq!(tool["createdBy"], json!(app.seeds.user_id));
    let path = format!("/v1/tools/{}", made::id(&tool));
    assert_eq!(app.get(&path).expect(200), tool);
    app.post("/v1/tools", &made::tool(&project, "clock"))
        .expect_error(409, "already-exists");
    app.post("/v1/tools", &made::tool(&other, "clock"))
        .expect(201);
    let listed = app
        .get(&format!("/v1/tools?projectId={project}"))
        .expect(200);
    assert_eq!(listed, json!({"data": [tool], "hasMore": false}));
    let all = app.get("/v1/tools?limit=1&order=asc").expect(200);
    let cursor = all["nextCursor"].as_str().unwrap();
    let next = app
        .get(&format!("/v1/tools?limit=1&order=asc&cursor={cursor}"))
        .expect(200);
    assert_eq!(next["data"][0]["projectId"], json!(other));
    app.get(&format!(
        "/v1/tools?order=asc&cursor={cursor}&projectId={project}"
    ))
    .expect_error(400, "invalid-cursor");
    app.delete(&path).expect(204);
    app.get(&path).expect_error(404, "not-found");
}

#[test]
fn a_tool_says_what_a_dry_run_does_with_its_calls() {
    let app = App::start();
    let project = made::project(&app);
    for (name, given, kept) in [
        ("silent", Value::Null, "simulate"),
        ("simulated", json!("simulate"), "simulate"),
        ("called", json!("call"), "call"),
    ] {
        let mut body = made::tool(&project, name);
        body["dryRun"] = given;
        let tool = app.post("/v1/tools", &body).expect(201);
        assert_eq!(tool["dryRun"], json!(kept), "{name}");
        let path = format!("/v1/tools/{}", made::id(&tool));
        assert_eq!(app.get(&path).expect(200), tool);
    }
}

#[test]
fn what_is_wrong_with_a_tool_is_named() {
    let app = App::start();
    let project = made::project(&app);
    let post = |field: &str, value: Value| {
        let mut body = made::tool(&project, "clock");
        body[field] = value;
        app.post("/v1/tools", &body)
    };
    for (field, value, path) in [
        ("name", json!("a b"), "$.name"),
        ("timeoutMs", json!(0), "$.timeoutMs"),
        ("timeoutMs", json!(600_001), "$.timeoutMs"),
        ("dryRun", json!("supported"), "$.dryRun"),
        ("dryRun", json!(true), "$.dryRun"),
        ("url", json!("ftp://example.com/"), "$.url"),
        ("url", json!("http://user:word@example.com/"), "$.url"),
        ("argumentsSchema", json!([]), "$.argumentsSchema"),
        (
            "argumentsSchema",
            json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
            "$.argumentsSchema.properties.a.type",
        ),
        (
            "argumentsSchema",
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}),
            "$.argumentsSchema.properties.a.$ref",
        ),
    ] {
        let error = post(field, value).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path), "{error}");
    }
    post("projectId", json!(app.clock.new_id())).expect_error(404, "not-found");
}

#[test]
fn a_tool_says_who_approves_its_calls_and_all_that_is_wrong_with_that() {
    let app = App::start();
    let project = made::project(&app);
    let post = |name: &str, approval: Value| {
        let mut body = made::tool(&project, name);
        body["approval"] = approval;
        app.post("/v1/tools", &body)
    };
    let plain = app
        .post("/v1/tools", &made::tool(&project, "plain"))
        .expect(201);
    assert_eq!(plain["approval"], Value::Null);
    let of_default = post("default", json!({})).expect(201);
    assert_eq!(
        of_default["approval"],
        json!({"title": "A tool call waits for approval", "requiredRole": "standard", "expiresAfter": "P1D",
            "escalation": [], "onReject": "tell"})
    );
    let whole = json!({"title": "Pay a refund", "requiredRole": "finance", "assignedTo": "ann@plant.example",
        "expiresAfter": "P2D", "onReject": "fail",
        "escalation": [{"after": "PT8H", "requiredRole": "board", "assignedTo": app.seeds.user_id}]});
    let tool = post("whole", whole.clone()).expect(201);
    assert_eq!(tool["approval"], whole);
    let path = format!("/v1/tools/{}", made::id(&tool));
    assert_eq!(app.get(&path).expect(200), tool);
    let wrong = json!({"title": "a\nb", "requiredRole": "Finance", "assignedTo": "Ann", "expiresAfter": "P31D",
        "escalation": [{"after": "8h", "requiredRole": "-", "assignedTo": "@"}, {"after": "PT1H", "requiredRole": "a"}]});
    let refused = post("wrong", wrong).expect_error(400, "invalid-body");
    let faults = refused["details"]["faults"].as_array().unwrap();
    let paths = faults.iter().map(|fault| fault["path"].as_str().unwrap());
    let paths: std::collections::BTreeSet<_> = paths.collect();
    for path in [
        ".assignedTo",
        ".escalation",
        ".escalation[0].after",
        ".escalation[0].assignedTo",
        ".escalation[0].requiredRole",
        ".expiresAfter",
        ".requiredRole",
        ".title",
    ] {
        let path = format!("$.approval{path}");
        assert!(paths.contains(path.as_str()), "{path}: {refused}");
    }
    let late =
        json!({"expiresAfter": "PT1H", "escalation": [{"after": "PT1H", "requiredRole": "board"}]});
    let late = post("late", late).expect_error(400, "invalid-body");
    assert_eq!(
        late["details"]["path"],
        json!("$.approval.escalation[0].after")
    );
    let unknown = post("unknown", json!({"quorum": 2})).expect_error(400, "invalid-body");
    assert_eq!(unknown["details"]["path"], json!("$.approval.quorum"));
    post("never", json!({"onReject": "approve"})).expect_error(400, "invalid-body");
}

#[test]
fn in_a_deployment_a_tool_is_not_on_this_host() {
    let app = App::start_with(|options| {
        options.runs.host_access = agent_runtime::outbound::HostAccess::Deployed;
    });
    let project = made::project(&app);
    let mut body = made::tool(&project, "clock");
    let error = app
        .post("/v1/tools", &body)
        .expect_error(403, "host-access-denied");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("SVC_HOST_ACCESS_ORIGINS"), "{message}");
    body["url"] = json!("http://10.0.0.1/clock");
    app.post("/v1/tools", &body).expect(201);
}

#[test]
fn a_tool_is_the_tenants_own() {
    let app = App::start();
    let stranger = app.other_tenant();
    let project = made::project(&app);
    let tool = app
        .post("/v1/tools", &made::tool(&project, "clock"))
        .expect(201);
    let path = format!("/v1/tools/{}", made::id(&tool));
    stranger.get(&path).expect_error(404, "not-found");
    stranger.delete(&path).expect_error(404, "not-found");
    stranger
        .post("/v1/tools", &made::tool(&project, "theirs"))
        .expect_error(404, "not-found");
    for list in [
        "/v1/tools".to_owned(),
        format!("/v1/tools?projectId={project}"),
    ] {
        assert_eq!(stranger.get(&list).expect(200)["data"], json!([]));
    }
    assert_eq!(app.get(&path).expect(200), tool);
}
