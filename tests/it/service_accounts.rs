//! `/v1/service-accounts`.

use crate::harness::{App, made};
use serde_json::{Value, json};

const ALL: &str = "/v1/service-accounts";

fn path(account: &Value) -> String {
    format!("{ALL}/{}", made::id(account))
}

#[test]
fn a_service_account_is_added_read_renamed_listed_and_deactivated() {
    let app = App::start();
    let made = app.post(ALL, &json!({"name": "pipeline"})).expect(201);
    assert_eq!(made["createdBy"], json!(app.seeds.user_id));
    assert_eq!(app.get(&path(&made)).expect(200), made);
    let error = app
        .post(ALL, &json!({"name": "pipeline"}))
        .expect_error(409, "already-exists");
    assert_eq!(error["details"]["id"], made["id"]);
    let renamed = app.patch(&path(&made), &json!({"name": "app"})).expect(200);
    assert_eq!(renamed["name"], json!("app"));
    let second = app.post(ALL, &json!({"name": "pipeline"})).expect(201);
    app.patch(&path(&second), &json!({"name": "app"}))
        .expect_error(409, "already-exists");
    app.patch(&path(&second), &json!({"name": "pipeline"}))
        .expect(200);
    let listed = app.get(&format!("{ALL}?order=asc")).expect(200);
    assert_eq!(made::column(&listed, "name"), ["app", "pipeline"]);
    let end = format!("{}/deactivate", path(&second));
    let ended = app.send("POST", &end, None, &[]).expect(200);
    assert_eq!(app.send("POST", &end, None, &[]).expect(200), ended);
    let active = app.get(&format!("{ALL}?status=active")).expect(200);
    assert_eq!(made::column(&active, "name"), ["app"]);
    app.patch(&path(&second), &json!({"name": "new"}))
        .expect_error(409, "conflict");
    app.post(
        &format!("{}/tokens", path(&second)),
        &json!({"name": "key"}),
    )
    .expect_error(409, "conflict");
    app.post(ALL, &json!({"name": "pipeline"})).expect(201);
    app.get(&format!("{ALL}/{}", app.seeds.user_id))
        .expect_error(404, "not-found");
    app.other_tenant()
        .get(&path(&made))
        .expect_error(404, "not-found");
}

#[test]
fn a_service_account_has_keys_of_its_own() {
    let app = App::start();
    let account = app.post(ALL, &json!({"name": "pipeline"})).expect(201);
    let keys = format!("{}/tokens", path(&account));
    let key = app.post(&keys, &json!({"name": "key"})).expect(201);
    assert_eq!(key["role"], json!("member"), "no more than its owner's");
    // Without authorization any key may make any other.
    let higher = app.post(&keys, &json!({"name": "key", "role": "admin"}));
    let higher = made::id(&higher.expect(201));
    app.delete(&format!("{keys}/{higher}")).expect(204);
    let client = app.with_token(key["token"].as_str());
    let me = client.get("/v1/identity/me/permissions").expect(200);
    assert_eq!(me["userId"], account["id"]);
    assert_eq!(me["kind"], json!("service-account"));
    assert_eq!(me["tenantRole"], json!("member"));
    let listed = app.get(&keys).expect(200);
    assert_eq!(made::column(&listed, "id"), [made::id(&key)]);
    assert_eq!(listed, client.get("/v1/tokens").expect(200));
    let own = made::column(&app.get("/v1/tokens").expect(200), "id");
    assert!(!own.contains(&made::id(&key)));
    let second = app.post(ALL, &json!({"name": "other"})).expect(201);
    let elsewhere = format!("{}/tokens/{}", path(&second), made::id(&key));
    app.delete(&elsewhere).expect_error(404, "not-found");
    client.get("/v1/tokens").expect(200);
    app.delete(&format!("{keys}/{}", made::id(&key)))
        .expect(204);
    client
        .get("/v1/tokens")
        .expect_error(401, "unauthenticated");
}
