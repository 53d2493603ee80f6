//! `/v1/secret-uses`: created once, listed, deleted; and what is refused. Who may is in `access` and the sweep, what comes of it
//! for calls in `tool_secrets`.

use crate::harness::{App, made};
use serde_json::{Value, json};

const ALL: &str = "/v1/secret-uses";

fn body(name: &str, target: &str) -> Value {
    json!({"name": name, "target": target})
}

#[test]
fn a_use_is_created_listed_and_deleted() {
    let app = App::start();
    let project = app.maker().project();
    let mut of_project = body("KEY", "origin:HTTPS://API.example.com:443/");
    of_project["projectId"] = json!(project);
    let first = app.post(ALL, &of_project).expect(201);
    assert_eq!(first["name"], "KEY");
    assert_eq!(first["target"], "origin:https://api.example.com");
    assert_eq!(first["projectId"], json!(project));
    assert_eq!(first["createdBy"], json!(app.seeds.user_id));
    let second = body("KEY", "origin:https://api.example.com");
    let second = app.post(ALL, &second).expect(201);
    assert_eq!(second["projectId"], Value::Null);
    let other = app
        .post(ALL, &body("OTHER", "origin:http://127.0.0.1:9"))
        .expect(201);
    let list = |query: &str| app.get(&format!("{ALL}{query}")).expect(200)["data"].clone();
    assert_eq!(list(""), json!([other, second, first]));
    assert_eq!(list("?name=KEY&order=asc"), json!([first, second]));
    assert_eq!(list("?name=key"), json!([]));
    let page = app.get(&format!("{ALL}?limit=2")).expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(list(&format!("?limit=2&cursor={cursor}")), json!([first]));
    let one = format!("{ALL}/{}", made::id(&second));
    app.delete(&one).expect(204);
    app.delete(&one).expect_error(404, "not-found");
    assert_eq!(list(""), json!([other, first]));
}

#[test]
fn a_use_stands_once_for_a_project_and_once_for_all() {
    let app = App::start();
    let maker = app.maker();
    let (one, another) = (maker.project(), maker.project());
    let mut new = body("KEY", "origin:https://api.example.com");
    for project in [json!(one), json!(another), Value::Null] {
        new["projectId"] = project;
        app.post(ALL, &new).expect(201);
        new["target"] = json!("origin:https://API.example.com:443");
        app.post(ALL, &new).expect_error(409, "already-exists");
        new["target"] = json!("origin:https://api.example.com");
    }
    assert_eq!(
        app.get(ALL).expect(200)["data"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn what_is_wrong_with_a_use_is_named() {
    let app = App::start();
    let refused = |body: &Value, path: &str| {
        let error = app.post(ALL, body).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path), "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    for name in ["", "1A", "A-B", "é", "SVC_KEY", "svc_key", "A\0"] {
        refused(&body(name, "origin:https://api.example.com"), "$.name");
    }
    for target in [
        "",
        "https://api.example.com",
        "origin:https://api.example.com/v1",
    ] {
        refused(&body("KEY", target), "$.target");
    }
    let said = refused(&body("KEY", "pack:weather"), "$.target");
    assert!(said.contains("Packs are not built yet"), "{said}");
    let mut new = body("KEY", "origin:https://api.example.com");
    new["projectId"] = json!(app.clock.new_id());
    let said = refused(&new, "$.projectId");
    assert!(said.contains("there is no project"), "{said}");
    new["projectId"] = json!(app.other_tenant().maker().project());
    refused(&new, "$.projectId");
    assert_eq!(app.get(ALL).expect(200)["data"], json!([]));
}
