//! `/v1/projects`.

use crate::harness::App;
use serde_json::json;

#[test]
fn a_project_is_made_read_renamed_and_listed() {
    let app = App::start();
    let made = app
        .post("/v1/projects", &json!({"name": "first"}))
        .expect(201);
    assert_eq!(made["createdBy"], json!(app.seeds.user_id));
    let path = format!("/v1/projects/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&path).expect(200), made);
    let renamed = app.patch(&path, &json!({"name": "second"})).expect(200);
    assert_eq!(renamed["name"], json!("second"));
    assert_eq!(app.get(&path).expect(200), renamed);
    let listed = app.get("/v1/projects").expect(200);
    assert_eq!(listed, json!({"data": [renamed], "hasMore": false}));
    let role: String = app
        .database
        .client()
        .query_one("select role from project_memberships", &[])
        .unwrap()
        .get(0);
    assert_eq!(role, "owner");
}

#[test]
fn a_list_pages_by_cursor_in_either_order() {
    let app = App::start();
    for number in 1..=5 {
        app.post("/v1/projects", &json!({"name": format!("p{number}")}))
            .expect(201);
    }
    for (order, expected) in [("asc", "p1 p2 p3 p4 p5"), ("desc", "p5 p4 p3 p2 p1")] {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app
                .get(&format!("/v1/projects?limit=2&order={order}{cursor}"))
                .expect(200);
            for project in page["data"].as_array().unwrap() {
                names.push(project["name"].as_str().unwrap().to_owned());
            }
            if page["hasMore"] == json!(false) {
                assert!(page.get("nextCursor").is_none());
                break;
            }
            cursor = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
        }
        assert_eq!(names.join(" "), expected);
        let reversed = if order == "asc" { "desc" } else { "asc" };
        app.get(&format!("/v1/projects?limit=2&order={reversed}{cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    app.get("/v1/projects?limit=0")
        .expect_error(400, "invalid-request");
    app.get("/v1/projects?limit=201")
        .expect_error(400, "invalid-request");
    app.get("/v1/projects?limit=x")
        .expect_error(400, "invalid-request");
    app.get("/v1/projects?colour=red")
        .expect_error(400, "invalid-request");
}

#[test]
fn what_is_wrong_with_a_body_is_said() {
    let app = App::start();
    let post = |body: &str, kind: &str| {
        let headers = [("content-type", kind)];
        app.send("POST", "/v1/projects", Some(body.to_owned()), &headers)
    };
    let error = post(r#"{"name":7}"#, "application/json").expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.name"));
    post("{", "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"a","owner":"b"}"#, "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"a\u0000b"}"#, "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"  "}"#, "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"a"}"#, "text/plain").expect_error(415, "unsupported-media-type");
    let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(300 * 1024));
    post(&long, "application/json").expect_error(413, "body-too-large");
}
