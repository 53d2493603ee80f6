//! `/v1/tokens`, and credentials in general.

use crate::harness::{App, Client, eventually, made};
use agent_runtime::ids::rfc3339;
use serde_json::{Value, json};
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
fn a_use_of_a_token_is_noted_to_the_minute_and_once_an_hour() {
    let app = App::start();
    let minted = app
        .post("/v1/tokens", &json!({"name": "pipeline"}))
        .expect(201);
    assert_eq!(minted["lastUsedAt"], json!(null));
    let id = minted["id"].clone();
    let used = || {
        let listed = app.get("/v1/tokens").expect(200);
        let rows = listed["data"].as_array().unwrap();
        rows.iter().find(|row| row["id"] == id).unwrap()["lastUsedAt"].clone()
    };
    // Which transaction wrote the row.
    let version = || -> String {
        let row = "select xmin::text from tokens where token_id = $1::text::uuid";
        let mut client = app.database.client();
        client.query_one(row, &[&id.as_str()]).unwrap().get(0)
    };
    let other = app.with_token(minted["token"].as_str());
    let minute =
        |at: time::OffsetDateTime| rfc3339::text(at).split_at(16).0.to_owned() + ":00.000Z";
    let before = minute(app.clock.now());
    other.get("/v1/projects").expect(200);
    let after = minute(app.clock.now());
    let first = eventually("the use to be noted", || {
        Some(used()).filter(|used| !used.is_null())
    });
    let first = first.as_str().unwrap().to_owned();
    assert!(
        before <= first && first <= after,
        "{before} {first} {after}"
    );
    // Within the hour nothing more is written, however often it is looked up.
    let written = version();
    app.clock.advance(Duration::from_secs(50 * 60));
    other.get("/v1/projects").expect(200);
    app.server().shared().authn.write_uses().unwrap();
    assert_eq!(used(), json!(first));
    assert_eq!(version(), written);
    app.clock.advance(Duration::from_secs(11 * 60));
    eventually("the next hour's use to be noted", || {
        other.get("/v1/projects").expect(200);
        (used() != json!(first)).then_some(())
    });
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

/// Mints a key with this one, and gives a client that holds it.
fn mint(app: &App, client: &Client, body: &Value) -> (Value, Client) {
    let minted = client.post("/v1/tokens", body).expect(201);
    let holder = app.with_token(minted["token"].as_str());
    (minted, holder)
}

#[test]
fn a_key_inherits_what_its_request_leaves_out() {
    let app = App::start();
    let project = made::project(&app);
    let end = rfc3339::text(app.clock.now() + Duration::from_secs(3600));
    let limits = json!({"name": "first", "role": "member", "projectId": project,
        "capabilities": ["keys:write", "env:write", "env:write"], "expiresAt": end});
    let (first, client) = mint(&app, &app, &limits);
    assert_eq!(first["role"], json!("member"));
    assert_eq!(first["capabilities"], json!(["env:write", "keys:write"]));
    assert_eq!(first["projectId"], json!(project));
    let (second, _) = mint(&app, &client, &json!({"name": "second"}));
    for field in ["role", "capabilities", "projectId", "expiresAt"] {
        assert_eq!(second[field], first[field], "{field}");
    }
    let me = client.get("/v1/identity/me/permissions").expect(200);
    for field in ["id", "role", "capabilities", "projectId"] {
        assert_eq!(me["key"][field], first[field], "{field}");
    }
    let listed = app.get("/v1/tokens?order=asc").expect(200);
    assert_eq!(listed["data"][1]["capabilities"], first["capabilities"]);
    let (none, _) = mint(&app, &client, &json!({"name": "none", "capabilities": []}));
    assert_eq!(none["capabilities"], json!([]));
}

#[test]
fn a_key_never_exceeds_its_maker() {
    let app = App::start_authorized();
    let (own, other) = (made::project(&app), made::project(&app));
    let end = |seconds| rfc3339::text(app.clock.now() + Duration::from_secs(seconds));
    let (_, member) = mint(
        &app,
        &app,
        &json!({"name": "member", "role": "member", "expiresAt": end(3600),
            "capabilities": ["keys:write", "env:write"]}),
    );
    let error = member
        .post("/v1/tokens", &json!({"name": "a", "role": "admin"}))
        .expect_error(400, "role-exceeds-principal");
    assert_eq!(error["details"]["mostRole"], json!("member"));
    member
        .post("/v1/tokens", &json!({"name": "a", "expiresAt": end(3601)}))
        .expect_error(400, "invalid-body");
    let beyond = json!({"name": "a", "capabilities": ["env:write", "secrets:write"]});
    let refused = member.post("/v1/tokens", &beyond).expect(403)["error"].clone();
    let (user, tenant) = (app.seeds.user_id, app.seeds.tenant_id);
    let said = format!("permission denied, actor user:{user} lacks can_write on tenant:{tenant}");
    let details =
        json!({"action": "write", "resource": format!("tenant:{tenant}"), "reason": said});
    assert_eq!(refused["code"], json!("permission-denied"));
    assert_eq!(
        (&refused["message"], &refused["details"]),
        (&json!(said), &details)
    );
    let reasons = "select reason from audit_decisions where stage = 'capability-not-held'";
    let reason: String = app
        .database
        .client()
        .query_one(reasons, &[])
        .unwrap()
        .get(0);
    let why = "the key does not hold secrets:write and cannot give it to another key";
    assert_eq!(reason, format!("capability-not-held: {said}; {why}"));
    let (_, limited) = mint(&app, &app, &json!({"name": "limited", "projectId": own}));
    for project in [other, app.clock.new_id().to_string()] {
        let body = json!({"name": "a", "projectId": project});
        let refused = limited.post("/v1/tokens", &body).expect(403)["error"].clone();
        assert_eq!(refused["code"], json!("key-project-mismatch"));
    }
    let (same, _) = mint(&app, &limited, &json!({"name": "a", "projectId": own}));
    assert_eq!(same["projectId"], json!(own));
}

#[test]
fn a_key_is_no_admin_s_whose_owner_is_none() {
    for (app, is_on) in [(App::start_authorized(), true), (App::start(), false)] {
        let ann = made::person(&app, "ann@b", "admin");
        let client = made::enrolled(&app, &ann);
        let path = format!("/v1/identity/users/{}", made::id(&ann));
        app.patch(&path, &json!({"tenantRole": "member"}))
            .expect(200);
        let (key, _) = mint(&app, &client, &json!({"name": "a"}));
        assert_eq!(key["role"], json!("member"));
        let minted = client.post("/v1/tokens", &json!({"name": "a", "role": "admin"}));
        if is_on {
            minted.expect_error(400, "role-exceeds-principal");
        } else {
            // Whoever holds a token of the tenant may do anything in it.
            assert_eq!(minted.expect(201)["role"], json!("admin"));
        }
    }
}

#[test]
fn what_a_key_may_be_limited_to_exists() {
    let app = App::start();
    let theirs = made::project(&app.other_tenant());
    for project in [theirs, app.clock.new_id().to_string()] {
        app.post("/v1/tokens", &json!({"name": "a", "projectId": project}))
            .expect_error(404, "not-found");
    }
    for (field, value) in [
        ("projectId", json!("project:*")),
        ("role", json!("owner")),
        ("capabilities", json!(["everything"])),
        ("capabilities", json!("env:write")),
    ] {
        let mut body = json!({"name": "a"});
        body[field] = value;
        app.post("/v1/tokens", &body)
            .expect_error(400, "invalid-body");
    }
}

#[test]
fn refused_keys_and_enrolments_are_recorded_and_roles_that_exceed_are_not() {
    let app = App::start_authorized();
    let (own, other) = (made::project(&app), made::project(&app));
    let ann = made::person(&app, "ann@b", "member");
    let client = made::enrolled(&app, &ann);
    client
        .post("/v1/tokens", &json!({"name": "a", "role": "admin"}))
        .expect_error(400, "role-exceeds-principal");
    client
        .post("/v1/tokens", &json!({"name": "a", "projectId": own}))
        .expect(403);
    let few = json!({"name": "few", "capabilities": ["keys:write"], "projectId": own});
    let (_, few) = mint(&app, &app, &few);
    let many = json!({"name": "a", "capabilities": ["env:write"]});
    few.post("/v1/tokens", &many).expect(403);
    few.post("/v1/tokens", &json!({"name": "a", "projectId": other}))
        .expect(403);
    let none = json!({"name": "none", "capabilities": []});
    let (_, none) = mint(&app, &app, &none);
    none.post("/v1/tokens", &json!({"name": "a"})).expect(403);
    let mut stages: Vec<String> = app
        .database
        .client()
        .query(
            "select stage from audit_decisions where stage <> 'model' or outcome = 'denied'",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    stages.sort();
    let expected = [
        "capability-not-held",
        "enrolment",
        "key-capability",
        "key-project-mismatch",
        "model",
    ];
    assert_eq!(stages, expected);
}

#[test]
fn a_service_account_s_key_is_limited_to_what_it_reads() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    let keys = format!("/v1/service-accounts/{}/tokens", made::id(&account));
    let limited = json!({"name": "key", "projectId": project});
    app.post(&keys, &limited).expect_error(409, "conflict");
    let members = format!("/v1/projects/{project}/memberships");
    app.post(
        &members,
        &json!({"userId": account["id"], "role": "viewer"}),
    )
    .expect(201);
    let key = app.post(&keys, &limited).expect(201);
    let client = app.with_token(key["token"].as_str());
    client.get(&format!("/v1/projects/{project}")).expect(200);
    client.post(&keys, &json!({"name": "own"})).expect(403);
    client
        .post("/v1/tokens", &json!({"name": "own"}))
        .expect(201);
}

#[test]
fn a_limited_key_sees_and_ends_no_more_than_its_limits_reach() {
    let app = App::start_authorized();
    let (own, other) = (made::project(&app), made::project(&app));
    let path = |key: &Value| format!("/v1/tokens/{}", made::id(key));
    let named = |name: &str, project: &str| json!({"name": name, "projectId": project});
    let (wide, _) = mint(&app, &app, &json!({"name": "wide"}));
    let (elsewhere, _) = mint(&app, &app, &named("elsewhere", &other));
    let (_, limited) = mint(&app, &app, &named("limited", &own));
    let (beside, _) = mint(&app, &app, &named("beside", &own));
    let mut few = named("few", &own);
    few["capabilities"] = json!(["access:write", "env:write", "secrets:write"]);
    let (few, plain) = mint(&app, &app, &few);
    for (client, order, names) in [
        (&limited, "asc", ["limited", "beside", "few"]),
        (&plain, "desc", ["few", "beside", "limited"]),
    ] {
        let listed = client.get(&format!("/v1/tokens?order={order}")).expect(200);
        assert_eq!(made::column(&listed, "name"), names);
    }
    for key in [&wide, &elsewhere] {
        limited.delete(&path(key)).expect_error(404, "not-found");
    }
    let refused = plain.delete(&path(&beside));
    refused.expect_error(403, "permission-denied");
    let listed = app.get("/v1/tokens").expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 6, "none ended");
    limited.delete(&path(&beside)).expect(204);
    // Whoever holds a key may end it.
    plain.delete(&path(&few)).expect(204);
    plain.get("/v1/tokens").expect_error(401, "unauthenticated");
}

#[test]
fn without_authorization_a_key_s_limits_refuse_no_minting() {
    let app = App::start();
    let (own, other) = (made::project(&app), made::project(&app));
    let end = |seconds| rfc3339::text(app.clock.now() + Duration::from_secs(seconds));
    let least = json!({"name": "least", "role": "member", "capabilities": [], "projectId": own,
        "expiresAt": end(3600)});
    let (_, least) = mint(&app, &app, &least);
    let most = json!({"name": "most", "role": "admin", "projectId": other, "expiresAt": end(7200),
        "capabilities": ["access:write", "env:write", "keys:write", "secrets:write"]});
    let (minted, most_of) = mint(&app, &least, &most);
    for field in ["role", "capabilities", "projectId", "expiresAt"] {
        assert_eq!(minted[field], most[field], "{field}");
    }
    // What is left out is as the minting key has it, all the same.
    let (heir, _) = mint(&app, &least, &json!({"name": "heir"}));
    assert_eq!(
        (&heir["role"], &heir["projectId"]),
        (&json!("member"), &json!(own))
    );
    // And neither is making a code, or a service account's key.
    let ann = made::person(&least, "ann@b", "admin");
    made::enrolled(&app, &ann).get("/v1/projects").expect(200);
    let account = least
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    let keys = format!("/v1/service-accounts/{}/tokens", made::id(&account));
    most_of
        .post(&keys, &json!({"name": "key", "projectId": own}))
        .expect(201);
}

#[test]
fn without_authorization_a_key_s_limits_hide_no_key() {
    let app = App::start();
    let project = made::project(&app);
    let limits = json!({"name": "a", "projectId": project, "capabilities": []});
    let (_, limited) = mint(&app, &app, &limits);
    let (wide, _) = mint(&app, &app, &json!({"name": "wide"}));
    let listed = limited.get("/v1/tokens").expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 3);
    limited
        .delete(&format!("/v1/tokens/{}", made::id(&wide)))
        .expect(204);
}
