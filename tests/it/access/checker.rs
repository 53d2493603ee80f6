//! What a handler asks beyond its signature, and what routes take of a key.

use super::world::{Key, World};
use crate::harness::App;
use agent_runtime::authn::Credential;
use agent_runtime::authz::{self, Checker, Facts, Stage, Tickets};
use agent_runtime::error::Code;
use agent_runtime::proof::{
    Admin, Authorized, Caller, Capabilities, Capability, Key as KeyFacts, KeyRole, KnownBy, Read,
    Write,
};
use agent_runtime::store::projects::Project;
use agent_runtime::store::tenants::Tenant;
use uuid::Uuid;

fn facts(app: &App, capability: Option<Capability>) -> Facts {
    Facts {
        request_id: app.clock.new_id(),
        trace_id: "0".repeat(32),
        route: "POST /v1/somewhere".to_owned(),
        client_address: "192.0.2.1".parse().unwrap(),
        capability,
    }
}

fn caller_of(world: &World, header: &str) -> Caller {
    let authn = &world.app.server().shared().authn;
    match authn.credential(Some(header)).unwrap() {
        Credential::Bearer(known) | Credential::Session(known) => known.caller,
        Credential::Public(_) => panic!("it is a bearer token"),
    }
}

#[test]
fn a_key_without_the_capability_that_a_route_takes_is_refused() {
    let world = World::start();
    let shared = world.app.server().shared();
    let mut limited = Key::whole();
    limited.capabilities = vec!["env:write"];
    let person = world.key(world.app.seeds.user_id, &limited);
    let header = format!("Bearer {}", person.client.token());
    let facts = facts(&world.app, Some(Capability::AccessWrite));
    let tickets = Tickets::default();
    let caller = caller_of(&world, &header);
    let admission = shared.admission.as_deref();
    let checker = Checker::new(&shared.store, admission, caller, &facts, &tickets);
    let on_tenant = authz::on_tenant::<Admin>(&checker).map(|_: Authorized<Tenant, _>| ());
    let on_project =
        authz::on_object::<Project, Write>(&checker, world.project).map(|_: Authorized<_, _>| ());
    let known = authz::as_caller(&checker).map(|_| ());
    for refused in [on_tenant, on_project, known] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied);
        assert!(error.message().contains(" lacks can_"), "{error}");
    }
    tickets.wait().unwrap();
    let rows = world.rows("request_id = $1", &[&facts.request_id]);
    assert_eq!(rows.len(), 3);
    let why = "; the key lacks the capability access:write";
    assert!(rows.iter().all(|row| row.stage == "key-capability"
        && row.outcome == "denied"
        && row.reason.ends_with(why)));
    assert_eq!(rows[1].resource, format!("project:{}", world.project));
    assert_eq!((rows[2].action.as_str(), &rows[2].check), ("write", &None));
}

#[test]
fn a_refusal_of_a_handler_s_own_is_recorded_with_its_code() {
    let world = World::start();
    let shared = world.app.server().shared();
    let (facts, tickets) = (facts(&world.app, None), Tickets::default());
    let admission = shared.admission.as_deref();
    let header = format!("Bearer {}", world.app.token());
    let caller = caller_of(&world, &header);
    let checker = Checker::new(&shared.store, admission, caller, &facts, &tickets);
    assert!(checker.enforces());
    let error = checker.refuse(
        Stage::KeyProjectMismatch,
        "write",
        "project:1",
        "The key is another project's.",
        Code::KeyProjectMismatch,
    );
    assert_eq!(error.code(), Code::KeyProjectMismatch);
    assert_eq!(error.details()["resource"], "project:1");
    tickets.wait().unwrap();
    let rows = world.rows("request_id = $1", &[&facts.request_id]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].stage, "key-project-mismatch");
    assert_eq!(
        rows[0].reason,
        "key-project-mismatch: The key is another project's."
    );
    assert_eq!(rows[0].client_address.as_deref(), Some("192.0.2.1"));
}

#[test]
fn with_authorization_off_nothing_is_decided() {
    let app = App::start();
    let project: Uuid = app.maker().project();
    app.get(&format!("/v1/projects/{project}")).expect(200);
    app.get("/v1/projects").expect(200);
    let stranger = app.other_tenant();
    let path = format!("/v1/projects/{project}");
    stranger.get(&path).expect_error(404, "not-found");
    let rows = app
        .database
        .client()
        .query_one("select count(*) from audit_decisions", &[])
        .unwrap();
    assert_eq!(rows.get::<_, i64>(0), 0);
    // Nor do keys rule anything out.
    let shared = app.server().shared();
    let (facts, tickets) = (facts(&app, Some(Capability::KeysWrite)), Tickets::default());
    let caller = Caller {
        tenant_id: app.seeds.tenant_id,
        user_id: app.seeds.user_id,
        token_id: Uuid::nil(),
        known_by: KnownBy::Token,
        key: KeyFacts {
            role: KeyRole::Member,
            capabilities: Capabilities::default(),
            project_id: Some(Uuid::nil()),
        },
    };
    let checker = Checker::new(&shared.store, None, caller, &facts, &tickets);
    authz::on_tenant::<Admin>(&checker).unwrap();
    authz::on_object::<Project, Read>(&checker, project).unwrap();
    authz::as_caller(&checker).unwrap();
    assert!(tickets.is_empty());
}
