//! `/v1/identity-providers`.

use super::{PROVIDERS, body, claims, come, provider};
use crate::harness::{App, Client, made};
use serde_json::{Value, json};
use uuid::Uuid;

fn one(id: Uuid) -> String {
    format!("{PROVIDERS}/{id}")
}

#[test]
fn a_provider_is_registered_read_changed_listed_and_deleted() {
    let app = App::start();
    let team = made::team(&app, "ops");
    let full = json!({
        "name": "Plant", "issuer": "https://id.plant.example/realms/plant", "clientId": "agent-runtime",
        "scopes": ["groups"], "emailDomains": ["Plant.example"], "emailTrust": "provider",
        "createsPeople": true, "groupsClaim": "groups",
        "groups": [{"group": "ops", "teamId": team, "role": "member"}],
    });
    let made = app.post(PROVIDERS, &full).expect(201);
    let id: Uuid = made::id(&made).parse().unwrap();
    for field in [
        "name",
        "issuer",
        "clientId",
        "scopes",
        "emailTrust",
        "groupsClaim",
        "groups",
    ] {
        assert_eq!(made[field], full[field], "{field}");
    }
    assert_eq!(made["emailDomains"], json!(["plant.example"]));
    assert_eq!(made["managedBy"], json!("tenant"));
    assert_eq!(made["serves"], json!(true));
    assert_eq!(made["clientSecretRef"], Value::Null);
    assert_eq!(made["createdBy"], json!(app.seeds.user_id));
    // In development there is no one address.
    assert_eq!(made["callbackUrl"], Value::Null);
    assert_eq!(app.get(&one(id)).expect(200), made);
    let lab = provider(&app, "Lab", &[], &json!({}));
    let listed = app.get(&format!("{PROVIDERS}?order=asc")).expect(200);
    assert_eq!(
        made::column(&listed, "id"),
        [id.to_string(), lab.to_string()]
    );
    let change = json!({"name": "Works", "emailDomains": ["works.example"], "groupsClaim": null, "groups": []});
    let changed = app.patch(&one(id), &change).expect(200);
    assert_eq!(changed["name"], json!("Works"));
    assert_eq!(changed["groups"], json!([]));
    assert_eq!(changed["groupsClaim"], Value::Null);
    assert_eq!(changed["issuer"], full["issuer"]);
    let ways = app.with_token(None).get("/v1/sign-in").expect(200);
    assert_eq!(
        made::column(&json!({"data": ways["providers"]}), "name"),
        ["Lab", "Works"]
    );
    assert_eq!(ways["tenantId"], json!(app.seeds.tenant_id));
    app.delete(&one(id)).expect(204);
    app.get(&one(id)).expect_error(404, "not-found");
    app.delete(&one(id)).expect_error(404, "not-found");
}

#[test]
fn a_callback_address_is_shown_where_the_server_has_one() {
    let app = App::start_with(|options| {
        let own = "https://agents.example.com";
        options.sign_in.public_url = agent_runtime::config::Origin::parse(own);
    });
    let plant = provider(&app, "Plant", &[], &json!({}));
    let shown = app.get(&one(plant)).expect(200);
    let callback = format!("https://agents.example.com/sign-in/callback/{plant}");
    assert_eq!(shown["callbackUrl"], json!(callback));
}

#[test]
fn a_name_a_client_and_a_domain_are_one_providers() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let mut other = body("Lab", &["lab.example"]);
    other["name"] = json!("Plant");
    app.post(PROVIDERS, &other)
        .expect_error(409, "already-exists");
    other["name"] = json!("Lab");
    other["issuer"] = json!("https://plant.example");
    let error = app
        .post(PROVIDERS, &other)
        .expect_error(409, "already-exists");
    assert_eq!(error["details"]["path"], json!("$.clientId"));
    other["clientId"] = json!("other");
    other["emailDomains"] = json!(["PLANT.example"]);
    let error = app
        .post(PROVIDERS, &other)
        .expect_error(409, "already-exists");
    assert_eq!(error["details"]["path"], json!("$.emailDomains"));
    other["emailDomains"] = json!([]);
    let lab = made::id(&app.post(PROVIDERS, &other).expect(201));
    let path = format!("{PROVIDERS}/{lab}");
    let take = json!({"emailDomains": ["plant.example"]});
    app.patch(&path, &take).expect_error(409, "already-exists");
    app.delete(&one(plant)).expect(204);
    app.patch(&path, &take).expect(200);
}

#[test]
fn a_tenant_has_twenty_providers_at_most() {
    let app = App::start();
    for number in 0..20 {
        provider(&app, &format!("p{number}"), &[], &json!({}));
    }
    let refused = app.post(PROVIDERS, &body("more", &[]));
    refused.expect_error(409, "conflict");
    // Changing one of them is no further one.
    let listed = app.get(PROVIDERS).expect(200);
    let path = format!("{PROVIDERS}/{}", made::id(&listed["data"][0]));
    app.patch(&path, &json!({"name": "renamed"})).expect(200);
}

#[test]
fn what_a_provider_cannot_be_is_refused_at_its_place() {
    let app = App::start();
    let team = made::team(&app, "ops");
    let row = |group: &str| json!({"group": group, "teamId": team, "role": "member"});
    let many = |count: usize| {
        (0..count)
            .map(|n| row(&format!("g{n}")))
            .collect::<Vec<_>>()
    };
    for (field, value, path) in [
        ("issuer", json!("http://id.plant.example"), "$.issuer"),
        ("issuer", json!("https://id.plant.example?a"), "$.issuer"),
        ("issuer", json!("plant"), "$.issuer"),
        ("scopes", json!(["a b"]), "$.scopes[0]"),
        (
            "emailDomains",
            json!(["a.example", "plant.example."]),
            "$.emailDomains[1]",
        ),
        (
            "emailDomains",
            json!(["müller.example"]),
            "$.emailDomains[0]",
        ),
        ("groups", json!([row("ops")]), "$.groups"),
        ("emailTrust", json!("always"), "$.emailTrust"),
        ("name", json!(""), "$.name"),
    ] {
        let mut wrong = body("Plant", &[]);
        wrong[field] = value;
        let error = app
            .post(PROVIDERS, &wrong)
            .expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path), "{field}");
    }
    let mut grouped = body("Plant", &[]);
    grouped["groupsClaim"] = json!("groups");
    grouped["groups"] = json!([row("ops"), row("ops")]);
    let error = app
        .post(PROVIDERS, &grouped)
        .expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.groups[1]"));
    grouped["groups"] = json!(many(201));
    app.post(PROVIDERS, &grouped)
        .expect_error(400, "invalid-body");
    grouped["groups"] = json!([{"group": "ops", "teamId": app.clock.new_id(), "role": "member"}]);
    let error = app
        .post(PROVIDERS, &grouped)
        .expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.groups"));
    grouped["groups"] = json!(many(200));
    let made = app.post(PROVIDERS, &grouped).expect(201);
    assert_eq!(made["groups"].as_array().unwrap().len(), 200);
    // An issuer never changes.
    let path = format!("{PROVIDERS}/{}", made::id(&made));
    let change = json!({"issuer": "https://other.example"});
    app.patch(&path, &change).expect_error(400, "invalid-body");
}

#[test]
fn a_tenants_provider_reaches_what_tenants_reach() {
    let app = App::start_with(|options| {
        options.runs.host_access = agent_runtime::outbound::HostAccess::Deployed;
    });
    for issuer in [
        "http://127.0.0.1:9000",
        "https://169.254.169.254",
        "https://localhost",
    ] {
        let mut wrong = body("Plant", &[]);
        wrong["issuer"] = json!(issuer);
        let refused = app.post(PROVIDERS, &wrong);
        refused.expect_error(403, "host-access-denied");
    }
}

#[test]
fn a_secret_is_named_and_has_to_be_there() {
    let app = App::start_with_secrets();
    let mut with_secret = body("Plant", &[]);
    with_secret["clientSecretRef"] = json!({"envName": "production", "name": "OIDC"});
    let error = app
        .post(PROVIDERS, &with_secret)
        .expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.clientSecretRef"));
    app.put("/v1/secrets/production/OIDC", &json!({"value": "a-secret"}));
    let made = app.post(PROVIDERS, &with_secret).expect(201);
    assert_eq!(made["clientSecretRef"], with_secret["clientSecretRef"]);
    assert!(!made.to_string().contains("a-secret"));
    let path = format!("{PROVIDERS}/{}", made::id(&made));
    let public = app
        .patch(&path, &json!({"clientSecretRef": null}))
        .expect(200);
    assert_eq!(public["clientSecretRef"], Value::Null);
}

#[test]
fn deciding_who_arrives_takes_keys_write_too() {
    let app = App::start_authorized();
    let limited = |capabilities: Value| -> Client {
        let key = json!({"name": "limited", "role": "admin", "capabilities": capabilities});
        let key = app.post("/v1/tokens", &key).expect(201);
        app.with_token(key["token"].as_str())
    };
    let (access, both) = (
        limited(json!(["access:write"])),
        limited(json!(["access:write", "keys:write"])),
    );
    let mut trusted = body("Evil", &["plant.example"]);
    trusted["emailTrust"] = json!("provider");
    access
        .post(PROVIDERS, &trusted)
        .expect_error(403, "permission-denied");
    let plant = made::id(&both.post(PROVIDERS, &body("Plant", &[])).expect(201));
    let path = format!("{PROVIDERS}/{plant}");
    let changes = [
        json!({"clientId": "other"}),
        json!({"clientSecretRef": null}),
        json!({"scopes": ["groups"]}),
        json!({"emailDomains": ["plant.example"]}),
        json!({"emailTrust": "provider"}),
        json!({"createsPeople": true}),
        json!({"groupsClaim": "groups"}),
        json!({"groups": []}),
    ];
    for change in &changes {
        access
            .patch(&path, change)
            .expect_error(403, "permission-denied");
        both.patch(&path, change).expect(200);
    }
    // A name decides about nobody.
    access.patch(&path, &json!({"name": "Works"})).expect(200);
    // The sessions of whoever came by it end, and nobody comes by it any more.
    access.delete(&path).expect(204);
    let refused = "select count(*) from audit_decisions
        where stage = 'key-capability' and outcome = 'denied'";
    let mut client = app.database.client();
    let count: i64 = client.query_one(refused, &[]).unwrap().get(0);
    assert_eq!(count, 1 + i64::try_from(changes.len()).unwrap());
}

#[test]
fn unlinking_takes_keys_write_too_as_somebody_else_is_bound_then() {
    let app = App::start_authorized();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let ann = made::id(&made::person(&app, "ann@plant.example", "admin"));
    come(&app, plant, &claims("ann", "ann@plant.example")).unwrap();
    let identities = format!("/v1/identity/users/{ann}/identities");
    let listed = app.get(&identities).expect(200);
    let path = format!("{identities}/{}", made::id(&listed["data"][0]));
    let key = json!({"name": "limited", "role": "admin", "capabilities": ["access:write"]});
    let key = app.post("/v1/tokens", &key).expect(201);
    app.with_token(key["token"].as_str())
        .delete(&path)
        .expect_error(403, "permission-denied");
    app.delete(&path).expect(204);
}
