//! Whole sign-ins through a provider, as far as they are about who it is: what is recorded, what the session may do, and an
//! authorization server that is away. And the check of a provider.

use super::PROVIDERS;
use crate::harness::identity_provider::IdentityProvider;
use crate::harness::openfga::OpenFga;
use crate::harness::{App, OWN_PAGE, eventually, made};
use serde_json::{Value, json};
use url::Position;

/// Registers the provider of a public client.
fn register(app: &App, provider: &IdentityProvider, beside: &Value) -> String {
    provider.says().is_public = true;
    let mut body = json!({"name": "Plant", "issuer": provider.issuer(), "clientId": "agent-runtime",
        "emailDomains": ["plant.example"]});
    for (field, value) in beside.as_object().unwrap() {
        body[field] = value.clone();
    }
    made::id(&app.post(PROVIDERS, &body).expect(201))
}

/// A session of whom the provider names.
#[track_caller]
fn sign_in(app: &App, provider: &IdentityProvider, id: &str) -> String {
    let nobody = app.with_token(None);
    let start = format!("/v1/sign-in/providers/{id}/start");
    let body = json!({"returnTo": "/console/"}).to_string();
    let begun = nobody.send("POST", &start, Some(body), &[OWN_PAGE]);
    let cookie = begun.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let back = provider.opened(begun.expect(200)["url"].as_str().unwrap());
    let path = &back.url[Position::BeforePath..];
    let headers = [
        ("sec-fetch-site", "cross-site"),
        ("cookie", cookie.as_str()),
    ];
    let answer = nobody.send("GET", path, None, &headers);
    assert_eq!(answer.header("location"), Some("/console/"), "{answer:?}");
    answer.session()
}

fn recorded(app: &App) -> Vec<(String, String, String)> {
    let page = app.get("/v1/audit/authz?action=sign-in").expect(200);
    let rows = page["data"].as_array().unwrap().iter();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    rows.map(|row| {
        (
            text(row, "stage"),
            text(row, "resource"),
            text(row, "reason"),
        )
    })
    .collect()
}

#[test]
fn a_first_sign_in_is_recorded_as_bound_and_the_next_one_is_not() {
    let app = App::start_authorized();
    let provider = IdentityProvider::start();
    let id = register(&app, &provider, &json!({}));
    let ada = made::id(&made::person(&app, "ada@plant.example", "member"));
    let session = sign_in(&app, &provider, &id);
    let me = app.browser(&session).get("/v1/identity/me").expect(200);
    assert_eq!(me["id"], json!(ada));
    let rows = recorded(&app);
    assert_eq!(rows.len(), 2, "{rows:?}");
    let (_, _, by) = rows.iter().find(|row| row.0 == "sign-in").unwrap();
    assert!(
        by.contains(&format!("user:{ada} signed in with identity-provider:{id}")),
        "{by}"
    );
    let (_, on, why) = rows.iter().find(|row| row.0 == "identity-bound").unwrap();
    assert_eq!(*on, format!("user:{ada}"));
    assert!(
        why.contains(&id) && why.contains("ada@plant.example"),
        "{why}"
    );
    sign_in(&app, &provider, &id);
    let stages: Vec<String> = recorded(&app).into_iter().map(|row| row.0).collect();
    assert_eq!(
        stages
            .iter()
            .filter(|stage| *stage == "identity-bound")
            .count(),
        1
    );
    assert_eq!(stages.len(), 3);
}

#[test]
fn a_session_does_what_its_person_may_now() {
    let app = App::start_authorized();
    let provider = IdentityProvider::start();
    let id = register(&app, &provider, &json!({}));
    let ada = made::id(&made::person(&app, "ada@plant.example", "member"));
    let browser = app.browser(&sign_in(&app, &provider, &id));
    let people = "/v1/identity/users";
    browser.get(people).expect_error(403, "permission-denied");
    // A key that it mints is a member's, as its person is.
    let key = browser
        .post("/v1/tokens", &json!({"name": "a"}))
        .expect(201);
    assert_eq!(key["role"], json!("member"));
    let path = format!("{people}/{ada}");
    app.patch(&path, &json!({"tenantRole": "admin"}))
        .expect(200);
    browser.get(people).expect(200);
    app.patch(&path, &json!({"tenantRole": "member"}))
        .expect(200);
    browser.get(people).expect_error(403, "permission-denied");
}

#[test]
fn groups_reach_the_authorization_server_before_the_answer() {
    let app = App::start_authorized();
    let provider = IdentityProvider::start();
    let (team, project) = (made::team(&app, "ops"), made::project(&app));
    made::grant(&app, &project, &team, "viewer");
    let groups = json!({"groupsClaim": "groups", "createsPeople": true,
        "groups": [{"group": "ops", "teamId": team, "role": "member"}]});
    let id = register(&app, &provider, &groups);
    let path = format!("/v1/projects/{project}");
    let says = |groups: Value| drop(provider.says().claims.insert("groups".to_owned(), groups));
    says(json!(["ops"]));
    let in_team = app.browser(&sign_in(&app, &provider, &id));
    in_team.get(&path).expect(200);
    says(json!([]));
    sign_in(&app, &provider, &id);
    in_team.get(&path).expect_error(403, "permission-denied");
}

#[test]
fn an_authorization_server_that_is_away_keeps_nobody_out() {
    let fga = OpenFga::own();
    let (app, log) = App::start_at_logged(&fga.url());
    app.is_in_step();
    let provider = IdentityProvider::start();
    let (team, project) = (made::team(&app, "ops"), made::project(&app));
    made::grant(&app, &project, &team, "viewer");
    let groups = json!({"groupsClaim": "groups", "createsPeople": true,
        "groups": [{"group": "ops", "teamId": team, "role": "member"}]});
    let id = register(&app, &provider, &groups);
    provider
        .says()
        .claims
        .insert("groups".to_owned(), json!(["ops"]));
    fga.kill();
    let session = sign_in(&app, &provider, &id);
    let told = "whose teams the authorization server does not know yet";
    let record = eventually(told, || log.records(told).into_iter().next());
    assert_eq!(record["level"], json!("warn"));
    assert_eq!(record["identityProviderId"], json!(id));
    // The change stands, and is told once it is back.
    fga.start();
    let path = format!("/v1/projects/{project}");
    eventually("the team's role", || {
        (app.browser(&session).get(&path).status == 200).then_some(())
    });
}

/// What the check says of each step: its name, and whether it is well.
fn steps(app: &App, id: &str) -> (bool, Vec<(String, Value)>) {
    let path = format!("{PROVIDERS}/{id}/check");
    let said = app.send("POST", &path, None, &[]).expect(200);
    let steps = said["steps"].as_array().unwrap().iter();
    let steps = steps.map(|step| {
        assert!(
            step["value"]
                .as_str()
                .is_some_and(|value| !value.is_empty()),
            "{step}"
        );
        assert_eq!(
            step["whatToDo"].is_string(),
            step["ok"] == json!(false),
            "{step}"
        );
        (
            step["step"].as_str().unwrap().to_owned(),
            step["ok"].clone(),
        )
    });
    (said["ok"] == json!(true), steps.collect())
}

#[test]
fn a_check_says_of_each_step_what_was_found() {
    let app = App::start();
    let provider = IdentityProvider::start();
    let id = register(&app, &provider, &json!({}));
    let (ok, all) = steps(&app, &id);
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert!(ok, "{all:?}");
    for name in ["discovery", "issuer", "keys", "algorithms", "callback"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // With a slash at its end it is another issuer.
    let slashed =
        json!({"issuer": format!("{}/", provider.issuer()), "name": "Slash", "emailDomains": []});
    let slashed = register(&app, &provider, &slashed);
    let (ok, all) = steps(&app, &slashed);
    assert!(!ok);
    assert!(
        all.contains(&("issuer".to_owned(), json!(false))),
        "{all:?}"
    );
    drop(provider);
    let (ok, all) = steps(&app, &id);
    assert!(!ok);
    assert_eq!(all[0], ("discovery".to_owned(), json!(false)));
}

#[test]
fn a_check_names_a_secret_that_cannot_be_read() {
    let app = App::start_with_secrets();
    let provider = IdentityProvider::start();
    app.put("/v1/secrets/live/OIDC", &json!({"value": "a"}))
        .expect(201);
    let secret = json!({"clientSecretRef": {"envName": "live", "name": "OIDC"}});
    let id = register(&app, &provider, &secret);
    app.delete("/v1/secrets/live/OIDC").expect(204);
    let path = format!("{PROVIDERS}/{id}/check");
    let refused = app.send("POST", &path, None, &[]);
    let error = refused.expect_error(503, "secrets-unavailable");
    assert!(
        error["message"].as_str().unwrap().contains("OIDC"),
        "{error}"
    );
}
