//! `/v1/tokens`, and credentials in general.

use crate::harness::App;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_token_is_shown_once_and_works_until_it_is_revoked() {
    let app = App::start();
    let minted = app
        .post("/v1/tokens", &json!({"name": "pipeline"}))
        .expect(201);
    let token = minted["token"].as_str().unwrap();
    assert!(token.starts_with("svc_bt_") && token.ends_with(minted["lastFour"].as_str().unwrap()));
    let other = app.with_token(Some(token));
    let listed = other.get("/v1/tokens").expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "{listed}");
    assert!(!listed.to_string().contains(token));
    let stored: i64 = app
        .database
        .client()
        .query_one(
            "select count(*) from tokens t where to_jsonb(t)::text like '%' || $1 || '%'",
            &[&&token[7..40]],
        )
        .unwrap()
        .get(0);
    assert_eq!(stored, 0, "the token is not stored");
    app.delete(&format!("/v1/tokens/{}", minted["id"].as_str().unwrap()))
        .expect(204);
    other.get("/v1/tokens").expect_error(401, "unauthenticated");
    let again = format!("/v1/tokens/{}", minted["id"].as_str().unwrap());
    app.delete(&again).expect(204);
    app.delete("/v1/tokens/not-an-id")
        .expect_error(404, "not-found");
}

#[test]
fn a_token_ends_by_itself() {
    let app = App::start();
    let end = agent_runtime::ids::rfc3339::text(app.clock.now() + Duration::from_secs(60));
    let minted = app
        .post("/v1/tokens", &json!({"name": "short", "expiresAt": end}))
        .expect(201);
    let other = app.with_token(minted["token"].as_str());
    other.get("/v1/projects").expect(200);
    app.clock.advance(Duration::from_secs(61));
    other
        .get("/v1/projects")
        .expect_error(401, "unauthenticated");
    let past = "2020-01-01T00:00:00Z";
    app.post("/v1/tokens", &json!({"name": "past", "expiresAt": past}))
        .expect_error(400, "invalid-body");
}

#[test]
fn whoever_is_not_known_is_refused() {
    let app = App::start();
    app.with_token(None)
        .get("/v1/projects")
        .expect_error(401, "unauthenticated");
    for token in ["svc_bt_wrong", "svc_pt_wrong", "svc_pt_e30.AAAA", "x"] {
        app.with_token(Some(token))
            .get("/v1/projects")
            .expect_error(401, "unauthenticated");
    }
    let basic = app.with_token(None).send(
        "GET",
        "/v1/projects",
        None,
        &[("authorization", "Basic YTpi")],
    );
    assert_eq!(basic.header("www-authenticate"), Some("Bearer"));
    basic.expect_error(401, "unauthenticated");
}
