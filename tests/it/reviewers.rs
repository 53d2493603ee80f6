//! `/v1/reviewers`.

use crate::harness::{App, made};
use serde_json::json;

const ALL: &str = "/v1/reviewers";

#[test]
fn a_reviewer_is_registered_listed_and_removed() {
    let app = App::start();
    let ann = made::person(&app, "Ann@b", "member");
    let id = made::id(&ann);
    let strict = json!({"userId": id, "role": "strict"});
    app.post(ALL, &strict).expect(201);
    let standard = json!({"email": "ann@B", "role": "standard"});
    let held = app.post(ALL, &standard).expect(201);
    let expected = json!({"userId": id, "displayName": "Somebody", "primaryEmail": "Ann@b",
        "roles": ["standard", "strict"]});
    assert_eq!(held, expected);
    assert_eq!(app.post(ALL, &strict).expect(201), expected, "it stands");
    assert_eq!(app.get(ALL).expect(200)["data"], json!([expected]));
    app.delete(&format!("{ALL}/{id}/strict")).expect(204);
    for gone in ["strict", "never-held"] {
        app.delete(&format!("{ALL}/{id}/{gone}")).expect(204);
    }
    let (nobody, long) = (app.clock.new_id(), "a".repeat(41));
    for nothing in [
        "x/standard".to_owned(),
        format!("{nobody}/standard"),
        format!("{id}/%2A"),
        format!("{id}/{long}"),
    ] {
        app.delete(&format!("{ALL}/{nothing}"))
            .expect_error(404, "not-found");
    }
    let grants = format!("/v1/identity/users/{id}/grants");
    assert_eq!(
        app.get(&grants).expect(200)["reviewerRoles"],
        json!(["standard"])
    );
    let other = app.other_tenant();
    other
        .delete(&format!("{ALL}/{id}/standard"))
        .expect_error(404, "not-found");
    other.post(ALL, &standard).expect_error(404, "not-found");
    app.send(
        "POST",
        &format!("/v1/identity/users/{id}/deactivate"),
        None,
        &[],
    )
    .expect(200);
    assert_eq!(app.get(ALL).expect(200)["data"], json!([]));
    app.post(ALL, &standard).expect_error(409, "conflict");
}

#[test]
fn a_reviewer_role_has_a_form_and_a_person() {
    let app = App::start();
    let seed = app.seeds.user_id;
    for role in [
        "",
        "-a",
        "A",
        "a b",
        "a:b",
        "a#b",
        "*",
        "ä",
        &"a".repeat(41),
    ] {
        app.post(ALL, &json!({"userId": seed, "role": role}))
            .expect_error(400, "invalid-body");
    }
    app.post(ALL, &json!({"userId": seed, "role": "0-9"}))
        .expect(201);
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    app.post(ALL, &json!({"userId": account["id"], "role": "standard"}))
        .expect_error(404, "not-found");
    for number in 1..50 {
        app.post(ALL, &json!({"userId": seed, "role": format!("r{number}")}))
            .expect(201);
    }
    app.post(ALL, &json!({"userId": seed, "role": "too-many"}))
        .expect_error(409, "conflict");
}
