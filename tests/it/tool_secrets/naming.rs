//! Which headers and secrets a tool may name. By whom is in `access`.

use super::{bearer, start, tool};
use serde_json::{Value, json};

#[test]
fn a_tool_names_secrets_and_shows_their_names_alone() {
    let (app, _) = start();
    let project = app.maker().project();
    let named = json!({
        "headers": [
            {"name": "Authorization", "secret": "KEY", "prefix": "Bearer "},
            {"name": "X-Tenant", "secret": "TENANT"},
        ],
        "signingSecret": "SIGNING",
    });
    let made = app
        .post("/v1/tools", &tool(project, "http://127.0.0.1:9/", &named))
        .expect(201);
    assert_eq!(made["headers"], named["headers"]);
    assert_eq!(made["signingSecret"], named["signingSecret"]);
    let path = format!("/v1/tools/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&path).expect(200), made);
    let list = app
        .get(&format!("/v1/tools?projectId={project}"))
        .expect(200);
    assert_eq!(list["data"], json!([made]));
    app.delete(&path).expect(204);
    let plain = app
        .post(
            "/v1/tools",
            &tool(project, "http://127.0.0.1:9/", &json!({})),
        )
        .expect(201);
    assert_eq!(plain["headers"], json!([]));
    assert_eq!(plain["signingSecret"], Value::Null);
}

#[test]
fn what_is_wrong_with_a_header_is_named() {
    let (app, _) = start();
    let project = app.maker().project();
    let refused = |more: &Value, path: &str| {
        let body = tool(project, "http://127.0.0.1:9/", more);
        let error = app
            .post("/v1/tools", &body)
            .expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path), "{error}");
    };
    for name in [
        "",
        "a b",
        "a:b",
        "é",
        "a\r\nb",
        "Host",
        "Content-Type",
        "CONTENT-LENGTH",
        "connection",
        "Transfer-Encoding",
        "Idempotency-Key",
        "traceparent",
        "Webhook-Signature",
    ] {
        let headers = json!({"headers": [{"name": name, "secret": "KEY"}]});
        refused(&headers, "$.headers[0].name");
    }
    let twice =
        json!({"headers": [{"name": "X-A", "secret": "A"}, {"name": "x-a", "secret": "B"}]});
    refused(&twice, "$.headers[1].name");
    for secret in ["", "a-b", "1a", "SVC_DATABASE_URL", "svc_x"] {
        let headers = json!({"headers": [{"name": "X-A", "secret": secret}]});
        refused(&headers, "$.headers[0].secret");
        refused(&json!({"signingSecret": secret}), "$.signingSecret");
    }
    for prefix in [" a", "a\n", "é", &"a".repeat(65)] {
        let headers = json!({"headers": [{"name": "X-A", "secret": "A", "prefix": prefix}]});
        refused(&headers, "$.headers[0].prefix");
    }
    let header = |n: usize| json!({"name": format!("X-{n}"), "secret": "A"});
    let most: Vec<Value> = (0..8).map(header).collect();
    let body = tool(project, "http://127.0.0.1:9/", &json!({"headers": most}));
    app.post("/v1/tools", &body).expect(201);
    let more: Vec<Value> = (0..9).map(header).collect();
    refused(&json!({"headers": more}), "$.headers");
}

/// Tools are made and deleted, never changed: a tool at another address is another tool.
#[test]
fn the_address_of_a_tool_that_names_a_secret_does_not_change() {
    let (app, _) = start();
    let project = app.maker().project();
    let body = tool(project, "http://127.0.0.1:9/", &bearer());
    let made = app.post("/v1/tools", &body).expect(201);
    let path = format!("/v1/tools/{}", made["id"].as_str().unwrap());
    let change = json!({"url": "http://127.0.0.1:10/"});
    app.patch(&path, &change)
        .expect_error(405, "method-not-allowed");
}
