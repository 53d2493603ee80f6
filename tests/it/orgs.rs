//! `/v1/orgs`.

use crate::harness::{App, made};
use serde_json::{Value, json};

fn org(app: &App, name: &str) -> Value {
    app.post("/v1/orgs", &json!({"name": name})).expect(201)
}

fn path(org: &Value) -> String {
    format!("/v1/orgs/{}", made::id(org))
}

fn desired(app: &App, object: &str) -> i64 {
    let row = app.database.client().query_opt(
        "select desired from authz_objects where tenant_id = $1 and object = $2",
        &[&app.seeds.tenant_id, &object],
    );
    row.unwrap().map_or(0, |row| row.get(0))
}

#[test]
fn an_org_is_made_read_renamed_and_listed() {
    let app = App::start();
    let first = org(&app, "first");
    assert_eq!(desired(&app, &format!("org:{}", made::id(&first))), 1);
    assert_eq!(app.get(&path(&first)).expect(200), first);
    app.post("/v1/orgs", &json!({"name": "first"}))
        .expect_error(409, "already-exists");
    let second = org(&app, "second");
    app.patch(&path(&second), &json!({"name": "first"}))
        .expect_error(409, "already-exists");
    let renamed = app
        .patch(&path(&first), &json!({"name": "third"}))
        .expect(200);
    assert_eq!(renamed["name"], json!("third"));
    let listed = app.get("/v1/orgs?order=asc").expect(200);
    assert_eq!(made::column(&listed, "name"), ["third", "second"]);
    let other = app.other_tenant();
    other.get(&path(&first)).expect_error(404, "not-found");
    other
        .post("/v1/orgs", &json!({"name": "third"}))
        .expect(201);
}

#[test]
fn an_org_has_admins() {
    let app = App::start();
    let org = org(&app, "org");
    let object = format!("org:{}", made::id(&org));
    let admins = format!("{}/admins", path(&org));
    let ann = made::person(&app, "Ann@b", "member");
    let added = app.post(&admins, &json!({"email": "aNN@b"})).expect(201);
    assert_eq!(added["userId"], ann["id"]);
    assert_eq!(added["primaryEmail"], json!("Ann@b"));
    let again = app.post(&admins, &json!({"userId": ann["id"]})).expect(201);
    assert_eq!(again, added, "whoever is one stays so");
    assert_eq!(app.get(&admins).expect(200)["data"], json!([added]));
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    let nobody = app.clock.new_id();
    for body in [
        json!({"userId": account["id"]}),
        json!({"userId": nobody}),
        json!({"email": "nobody@b"}),
    ] {
        app.post(&admins, &body).expect_error(404, "not-found");
    }
    for body in [
        json!({}),
        json!({"userId": nobody, "email": "a@b"}),
        json!({"userId": "x"}),
    ] {
        app.post(&admins, &body).expect_error(400, "invalid-body");
    }
    let before = desired(&app, &object);
    let one = format!("{admins}/{}", made::id(&ann));
    app.delete(&one).expect(204);
    assert_eq!(desired(&app, &object), before + 1);
    app.delete(&one).expect(204);
    app.delete(&format!("{admins}/{}", app.clock.new_id()))
        .expect_error(404, "not-found");
    app.delete(&format!("{admins}/x"))
        .expect_error(404, "not-found");
    assert_eq!(app.get(&admins).expect(200)["data"], json!([]));
    app.send(
        "POST",
        &format!("/v1/identity/users/{}/deactivate", made::id(&ann)),
        None,
        &[],
    )
    .expect(200);
    app.post(&admins, &json!({"userId": ann["id"]}))
        .expect_error(409, "conflict");
}

#[test]
fn a_project_is_made_in_an_org() {
    let app = App::start();
    let org = org(&app, "org");
    let ann = made::person(&app, "ann@b", "member");
    app.post(
        &format!("{}/admins", path(&org)),
        &json!({"userId": ann["id"]}),
    )
    .expect(201);
    let project = app
        .post(
            &format!("{}/projects", path(&org)),
            &json!({"name": "project"}),
        )
        .expect(201);
    let id = made::id(&project);
    assert_eq!(app.get(&format!("/v1/projects/{id}")).expect(200), project);
    assert!(desired(&app, &format!("project:{id}")) >= 1);
    let grants = app
        .get(&format!("/v1/identity/users/{}/grants", made::id(&ann)))
        .expect(200);
    assert_eq!(
        grants["orgs"],
        json!([{"orgId": org["id"], "orgName": "org"}])
    );
    assert_eq!(
        grants["projects"],
        json!([{"projectId": id, "projectName": "project", "role": "admin",
            "via": [{"kind": "org-admin"}]}])
    );
    let nowhere = format!("/v1/orgs/{}/projects", app.clock.new_id());
    app.post(&nowhere, &json!({"name": "project"}))
        .expect_error(404, "not-found");
}

#[test]
fn an_org_s_admins_work_in_it_and_see_no_other() {
    let app = App::start_authorized();
    let (own, other) = (org(&app, "own"), org(&app, "other"));
    let ann = made::person(&app, "ann@b", "member");
    let client = made::enrolled(&app, &ann);
    assert_eq!(client.get("/v1/orgs").expect(200)["data"], json!([]));
    client.get(&path(&own)).expect(403);
    let admins = format!("{}/admins", path(&own));
    app.post(&admins, &json!({"userId": ann["id"]})).expect(201);
    let listed = client.get("/v1/orgs").expect(200);
    assert_eq!(made::column(&listed, "id"), [made::id(&own)]);
    let all = app.get("/v1/orgs").expect(200);
    assert_eq!(all["data"].as_array().unwrap().len(), 2);
    client.get(&path(&own)).expect(200);
    client
        .patch(&path(&own), &json!({"name": "new"}))
        .expect(200);
    let projects = format!("{}/projects", path(&own));
    let project = client.post(&projects, &json!({"name": "a"})).expect(201);
    let later = app.post(&projects, &json!({"name": "b"})).expect(201);
    for project in [&project, &later] {
        let path = format!("/v1/projects/{}", made::id(project));
        client.patch(&path, &json!({"name": "c"})).expect(200);
    }
    client.get(&path(&other)).expect(403);
    client
        .post(&format!("{}/projects", path(&other)), &json!({"name": "a"}))
        .expect(403);
    app.delete(&format!("{admins}/{}", made::id(&ann)))
        .expect(204);
    client.get(&path(&own)).expect(403);
    let later = format!("/v1/projects/{}", made::id(&later));
    client.get(&later).expect(403);
}

#[test]
fn a_key_s_limit_to_a_project_takes_no_org_and_no_team_away() {
    let app = App::start_authorized();
    let (org, team) = (org(&app, "org"), made::team(&app, "team"));
    let limits = json!({"name": "limited", "projectId": made::project(&app)});
    let key = app.post("/v1/tokens", &limits).expect(201);
    let limited = app.with_token(key["token"].as_str());
    for (list, id) in [("/v1/orgs", made::id(&org)), ("/v1/teams", team)] {
        let listed = limited.get(list).expect(200);
        assert_eq!(made::column(&listed, "id"), std::slice::from_ref(&id));
        limited.get(&format!("{list}/{id}")).expect(200);
    }
}
