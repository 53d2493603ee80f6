//! The operator's file of providers, and the lock that it is.

use super::{PROVIDERS, body, claims, come, memberships, provider, session, with_groups};
use crate::harness::openfga::OpenFga;
use crate::harness::{App, authorization, made};
use agent_runtime::config::EmailTrust;
use agent_runtime::config::identity_providers::{
    IdentityProviders, OperatorGroup, OperatorProvider,
};
use agent_runtime::server::Options;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

fn of_file(tenant_id: Uuid, name: &str, domains: &[&str]) -> OperatorProvider {
    let issuer = format!("https://{}.example", name.to_lowercase());
    OperatorProvider {
        id: OperatorProvider::id_of(tenant_id, &issuer, "agent-runtime"),
        tenant_id,
        name: name.to_owned(),
        issuer,
        client_id: "agent-runtime".to_owned(),
        client_secret: None,
        scopes: Vec::new(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        email_trust: EmailTrust::Claim,
        creates_people: false,
        groups_claim: Some("groups".to_owned()),
        groups: Vec::new(),
    }
}

fn file(options: &mut Options, providers: Vec<OperatorProvider>) {
    options.sign_in.operator_providers = Some(Arc::new(IdentityProviders(providers)));
}

/// Another start with this file.
fn start_again(app: &App, providers: Vec<OperatorProvider>) -> App {
    app.replica(|options| file(options, providers))
}

fn names(app: &App) -> Vec<String> {
    let ways = app.with_token(None).get("/v1/sign-in").expect(200);
    made::column(&json!({"data": ways["providers"]}), "name")
}

#[test]
fn nobody_but_the_operator_changes_providers_where_there_is_a_file() {
    let fga = OpenFga::shared();
    let app = App::start_with(|options| {
        let plant = of_file(options.seeds.tenant_id, "Plant", &["plant.example"]);
        file(options, vec![plant]);
        options.authorization = Some(authorization(&fga.url()));
    });
    app.is_in_step();
    let id = made::id(&app.get(PROVIDERS).expect(200)["data"][0]);
    let one = format!("{PROVIDERS}/{id}");
    let settings = json!({"tokenSignIn": "on", "sessionIdleMinutes": 10, "sessionHours": null});
    for refused in [
        app.post(PROVIDERS, &body("Own", &[])),
        app.patch(&one, &json!({"name": "Other"})),
        app.delete(&one),
        app.put("/v1/sign-in-settings", &settings),
    ] {
        refused.expect_error(403, "identity-providers-operator-managed");
    }
    let shown = app.get(&one).expect(200);
    assert_eq!(shown["managedBy"], json!("operator"));
    assert_eq!(shown["name"], json!("Plant"));
    assert_eq!(shown["createdBy"], Value::Null);
    let read = app.get("/v1/sign-in-settings").expect(200);
    assert_eq!(read["managedBy"], json!("operator"));
    let recorded = app.get("/v1/audit/authz?outcome=denied").expect(200);
    let recorded = recorded["data"].as_array().unwrap();
    let stages: Vec<&Value> = recorded.iter().map(|row| &row["stage"]).collect();
    assert_eq!(
        stages,
        vec![&json!("identity-providers-operator-managed"); 4]
    );
    assert_eq!(recorded[0]["action"], json!("admin"));
    assert_eq!(
        recorded[0]["resource"],
        json!(format!("tenant:{}", app.seeds.tenant_id))
    );
}

#[test]
fn while_there_is_a_file_its_providers_alone_serve() {
    let app = App::start();
    let own = provider(&app, "Own", &["plant.example"], &json!({}));
    assert_eq!(names(&app), ["Own"]);
    let tenant_id = app.seeds.tenant_id;
    // One of the same name, with the same domain: the file does not clash with what stood before.
    let with_file = start_again(&app, vec![of_file(tenant_id, "Own", &["plant.example"])]);
    assert_eq!(names(&with_file), ["Own"]);
    let listed = with_file.get(PROVIDERS).expect(200);
    let serving: Vec<(&Value, &Value)> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["managedBy"], &row["serves"]))
        .collect();
    assert!(serving.contains(&(&json!("tenant"), &json!(false))));
    assert!(serving.contains(&(&json!("operator"), &json!(true))));
    // Without the file, the tenant's own serve again.
    let without = app.replica(|_| {});
    let listed = without.get(PROVIDERS).expect(200);
    assert_eq!(made::column(&listed, "id"), [own.to_string()]);
    assert_eq!(listed["data"][0]["serves"], json!(true));
}

#[test]
fn each_start_follows_the_file() {
    let app = App::start();
    let tenant_id = app.seeds.tenant_id;
    let ops = made::team(&app, "ops");
    let row = |team: &str| OperatorGroup {
        group: "ops".to_owned(),
        team: team.to_owned(),
        is_admin: false,
    };
    let mut plant = of_file(tenant_id, "Plant", &["plant.example"]);
    plant.groups = vec![row("ops"), row("to-come")];
    let lab = of_file(tenant_id, "Lab", &["lab.example"]);
    let first = start_again(&app, vec![plant.clone(), lab.clone()]);
    assert_eq!(names(&first), ["Lab", "Plant"]);
    let shown = |app: &App| app.get(&format!("{PROVIDERS}/{}", plant.id)).expect(200);
    // A team that is not there yet has no members.
    assert_eq!(shown(&first)["groups"].as_array().unwrap().len(), 1);
    let ann: Uuid = made::id(&made::person(&app, "ann@plant.example", "member"))
        .parse()
        .unwrap();
    let said = with_groups("s-1", "ann@plant.example", &["ops"]);
    assert_eq!(come(&first, plant.id, &said).unwrap().user_id, ann);
    assert_eq!(memberships(&first, ann).len(), 1);
    let value = session(&first, plant.id, ann);
    first.browser(&value).get("/v1/identity/me").expect(200);
    // The same file writes nothing.
    let written = shown(&first)["updatedAt"].clone();
    app.clock.advance(std::time::Duration::from_secs(60));
    let again = start_again(&app, vec![plant.clone(), lab.clone()]);
    assert_eq!(shown(&again)["updatedAt"], written);
    // Two swap their names and domains, and the team has come.
    made::team(&app, "to-come");
    let (mut one, mut other) = (plant.clone(), lab.clone());
    (one.name, other.name) = ("Lab".to_owned(), "Plant".to_owned());
    (one.domains, other.domains) = (lab.domains.clone(), plant.domains.clone());
    let swapped = start_again(&app, vec![one, other]);
    assert_eq!(shown(&swapped)["name"], json!("Lab"));
    assert_eq!(shown(&swapped)["emailDomains"], json!(["lab.example"]));
    assert_eq!(shown(&swapped)["groups"].as_array().unwrap().len(), 2);
    // One that is named no more ends what it gave, and is nobody's until the file names it again.
    let gone = start_again(&app, vec![lab.clone()]);
    assert_eq!(names(&gone), ["Lab"]);
    gone.browser(&value)
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
    assert!(memberships(&gone, ann).is_empty());
    gone.get(&format!("{PROVIDERS}/{}", plant.id))
        .expect_error(404, "not-found");
    let refused = super::try_to_come(&gone, plant.id, &said);
    assert_eq!(refused.unwrap_err().code().text(), "not-found");
    let back = start_again(&app, vec![plant.clone(), lab]);
    let come_back = come(&back, plant.id, &claims("s-1", "other@plant.example")).unwrap();
    assert_eq!((come_back.user_id, come_back.binding), (ann, None));
    assert!(!ops.is_empty());
}

#[test]
fn a_tenant_that_is_not_here_stops_no_start() {
    let app = App::start();
    let elsewhere = of_file(app.clock.new_id(), "Plant", &[]);
    let started = start_again(&app, vec![elsewhere]);
    assert_eq!(names(&started), Vec::<String>::new());
}

#[test]
fn the_seed_user_gets_the_email_that_they_lack() {
    let app = App::start();
    let with_email = |email: &str| {
        let replica = app.replica(|options| options.seeds.email = Some(email.to_owned()));
        let path = format!("/v1/identity/users/{}", app.seeds.user_id);
        replica.get(&path).expect(200)["email"].clone()
    };
    // Somebody else's stays theirs.
    made::person(&app, "ann@plant.example", "member");
    assert_eq!(with_email("ANN@plant.example"), Value::Null);
    assert_eq!(with_email("Ada@Plant.example"), json!("Ada@Plant.example"));
    // One that they have stays, too.
    assert_eq!(
        with_email("other@plant.example"),
        json!("Ada@Plant.example")
    );
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let come = come(&app, plant, &claims("s-1", "ada@plant.example")).unwrap();
    assert_eq!(come.user_id, app.seeds.user_id);
}
