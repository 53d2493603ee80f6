//! What the caller may do, and which roles a user has.

use crate::harness::{App, Client, license, made};
use serde_json::{Value, json};
use time::Duration;

#[test]
fn a_caller_learns_who_they_are_and_what_roles_allow() {
    let app = App::start();
    let me = app.get("/v1/identity/me/permissions").expect(200);
    assert_eq!(me["tenantId"], json!(app.seeds.tenant_id));
    assert_eq!(me["userId"], json!(app.seeds.user_id));
    assert_eq!(me["kind"], json!("user"));
    assert_eq!(me["tenantRole"], json!("admin"));
    assert_eq!(me["reviewerRoles"], json!([]));
    assert_eq!(me["inTeam"], json!(false));
    assert_eq!(me["key"]["role"], json!("admin"));
    let roles = me["roles"].as_array().unwrap();
    assert_eq!(roles.len(), 9);
    let editor = roles.iter().find(|role| role["role"] == "editor").unwrap();
    assert_eq!(editor["scope"], json!("project"));
    assert_eq!(editor["allows"]["run"], json!(["read", "write"]));
    assert_eq!(editor["allows"]["tenant"], json!([]));
    // No role but a reviewer's allows anything on approvals, a tenant admin's included.
    assert!(
        roles
            .iter()
            .all(|role| role["allows"]["approval"] == json!([]))
    );
    app.with_token(None)
        .get("/v1/identity/me/permissions")
        .expect_error(401, "unauthenticated");
}

/// What each role allows on each kind of object, as sections 5.3 and 5.4 have it.
#[test]
fn a_caller_learns_what_every_role_allows() {
    const OF_PROJECT: [&str; 6] = ["project", "agent", "flow", "tool", "conversation", "run"];
    let app = App::start();
    let me = app.get("/v1/identity/me/permissions").expect(200);
    let allows = |scope: &str, role: &str, kind: &str| {
        let roles = me["roles"].as_array().unwrap();
        let mut found = roles
            .iter()
            .filter(|one| one["scope"] == scope && one["role"] == role);
        let allows = found.next().unwrap()["allows"][kind].clone();
        assert!(found.next().is_none(), "{scope} {role} once");
        allows
    };
    let [none, read, write, admin] = [
        json!([]),
        json!(["read"]),
        json!(["read", "write"]),
        json!(["read", "write", "admin"]),
    ];
    for (scope, role, of_tenant, of_org, of_team, of_project) in [
        ("tenant", "admin", &admin, &admin, &admin, &admin),
        ("tenant", "member", &read, &none, &none, &none),
        ("org", "admin", &none, &admin, &none, &admin),
        ("team", "admin", &none, &none, &admin, &none),
        ("team", "member", &none, &none, &read, &none),
        ("project", "owner", &none, &none, &none, &admin),
        ("project", "admin", &none, &none, &none, &admin),
        ("project", "editor", &none, &none, &none, &write),
        ("project", "viewer", &none, &none, &none, &read),
    ] {
        let kinds = [("tenant", of_tenant), ("org", of_org), ("team", of_team)];
        let inside = OF_PROJECT.map(|kind| (kind, of_project));
        for (kind, expected) in kinds.into_iter().chain(inside) {
            assert_eq!(
                &allows(scope, role, kind),
                expected,
                "{scope} {role} on {kind}"
            );
        }
    }
}

#[test]
fn a_tenant_admin_learns_in_time_that_the_license_ends() {
    let app = App::start_with(|options| options.license = Some(license(60)));
    let said = |client: &Client| {
        let permissions = client.get("/v1/identity/me/permissions").expect(200);
        permissions.get("licenseWarning").cloned()
    };
    let person = made::person(&app, "ann@b", "member");
    let member = made::enrolled(&app, &person);
    let limits = json!({"name": "narrow", "role": "member", "capabilities": []});
    let narrow = app.post("/v1/tokens", &limits).expect(201);
    let narrow = app.with_token(narrow["token"].as_str());
    for (days, word) in [
        (1, None),
        (40, Some("ends at")),
        (21, Some("starts with it until")),
        // The server goes on after its grace.
        (13, Some("does not start again with it")),
    ] {
        app.clock.advance((Duration::days(days)).unsigned_abs());
        let warning = said(&app);
        match word {
            None => assert_eq!(warning, None),
            Some(word) => {
                let warning = warning.unwrap();
                let warning = warning.as_str().unwrap();
                assert!(warning.contains(word), "{warning}");
                assert!(warning.contains("SVC_LICENSE_KEY"), "{warning}");
            }
        }
        for other in [&member, &narrow] {
            assert_eq!(said(other), None);
        }
    }
}

#[test]
fn a_caller_learns_what_a_console_has_to_know_to_offer_what_they_may() {
    let app = App::start();
    let project = made::project(&app);
    let person = made::person(&app, "ann@b", "member");
    let ann = made::enrolled(&app, &person);
    let before = ann.get("/v1/identity/me").expect(200);
    assert_eq!(
        (&before["inTeam"], &before["reviewerRoles"]),
        (&json!(false), &json!([]))
    );
    let team = json!({"name": "Payments", "slug": "payments"});
    let team = app.post("/v1/teams", &team).expect(201)["id"].clone();
    let member = json!({"userId": person["id"], "role": "member"});
    let members = format!("/v1/teams/{}/memberships", team.as_str().unwrap());
    app.post(&members, &member).expect(201);
    let reviewer = json!({"userId": person["id"], "role": "finance"});
    app.post("/v1/reviewers", &reviewer).expect(201);
    let limits = json!({"name": "narrow", "capabilities": ["env:write"], "projectId": project});
    let narrow = ann.post("/v1/tokens", &limits).expect(201);
    let me = app
        .with_token(narrow["token"].as_str())
        .get("/v1/identity/me")
        .expect(200);
    assert_eq!(me["inTeam"], json!(true));
    assert_eq!(me["reviewerRoles"], json!(["finance"]));
    let credential = json!({"kind": "token", "id": narrow["id"], "expiresAt": null, "role": "member",
        "capabilities": ["env:write"], "projectId": project});
    assert_eq!(me["credential"], credential);
    let permissions = ann.get("/v1/identity/me/permissions").expect(200);
    assert_eq!(permissions["inTeam"], json!(true));
    let roles = permissions["roles"].as_array().unwrap().iter();
    let reviewers: Vec<&Value> = roles.filter(|role| role["scope"] == "reviewer").collect();
    assert_eq!(reviewers.len(), 1, "{permissions}");
    assert_eq!(reviewers[0]["role"], json!("finance"));
    assert_eq!(reviewers[0]["allows"]["approval"], json!(["read", "write"]));
    assert_eq!(reviewers[0]["allows"]["project"], json!([]));
}

#[test]
fn a_user_s_roles_name_every_way() {
    let app = App::start();
    let ann = made::person(&app, "ann@b", "member");
    let id = made::id(&ann);
    let path = format!("/v1/identity/users/{id}/grants");
    let (one, two) = (made::project(&app), made::project(&app));
    let members = format!("/v1/projects/{one}/memberships");
    let joined = app
        .post(&members, &json!({"userId": id, "role": "viewer"}))
        .expect(201);
    let (tenant_id, team) = (app.seeds.tenant_id, app.clock.new_id());
    app.sql(&format!(
        "insert into project_direct_roles values ('{tenant_id}', '{two}', '{id}', 'editor');
         insert into teams values ('{tenant_id}', '{team}', 'Team', 'team', null, '{id}', now(), now());
         insert into team_memberships values ('{tenant_id}', '{team}', '{id}', 'member', now());
         insert into team_grants values ('{tenant_id}', '{one}', '{team}', 'admin', '{id}', now(), now())"
    ));
    let grants = app.get(&path).expect(200);
    let through_team = json!({"kind": "team", "teamId": team, "teamName": "Team", "role": "admin"});
    let first = json!({"projectId": one, "projectName": "project", "role": "admin", "via": [
        {"kind": "direct", "role": "viewer", "joinedAt": joined["joinedAt"]}, through_team]});
    let second = json!({"projectId": two, "projectName": "project", "role": "editor",
        "via": [{"kind": "direct", "role": "editor"}]});
    assert_eq!(grants["projects"], json!([first, second]));
    assert_eq!(
        grants["teams"],
        json!([{"teamId": team, "teamName": "Team", "role": "member"}])
    );
    assert_eq!(grants["tenantRole"], json!("member"));
    let page = app.get(&format!("{path}?limit=1")).expect(200);
    assert_eq!(page["projects"], json!([first]));
    assert_eq!(page["hasMore"], json!(true));
    let cursor = page["nextCursor"].as_str().unwrap();
    let page = app
        .get(&format!("{path}?limit=1&cursor={cursor}"))
        .expect(200);
    assert_eq!(page["projects"], json!([second]));
    assert_eq!(page["hasMore"], json!(false));
    app.patch(
        &format!("/v1/identity/users/{id}"),
        &json!({"tenantRole": "admin"}),
    )
    .expect(200);
    let projects = app.get(&path).expect(200)["projects"].clone();
    assert_eq!(projects[1]["role"], json!("admin"));
    let last = projects[1]["via"].as_array().unwrap().last().cloned();
    assert_eq!(last, Some(json!({"kind": "tenant-admin"})));
}

#[test]
fn the_retired_role_member_reads_back_as_it_is_stored() {
    let app = App::start();
    let ann = made::person(&app, "ann@b", "member");
    let (id, project) = (made::id(&ann), made::project(&app));
    let tenant_id = app.seeds.tenant_id;
    app.sql(&format!(
        "insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
         values ('{tenant_id}', '{project}', '{id}', 'member', now())"
    ));
    let path = format!("/v1/identity/users/{id}/grants");
    let grants = app.get(&path).expect(200);
    assert_eq!(grants["projects"][0]["role"], json!("member"));
    assert_eq!(grants["projects"][0]["via"][0]["role"], json!("member"));
    // It grants what `viewer` grants, so any other role is higher or names the same.
    let team = app.clock.new_id();
    app.sql(&format!(
        "insert into teams values ('{tenant_id}', '{team}', 'Team', 'team', null, '{id}', now(), now());
         insert into team_memberships values ('{tenant_id}', '{team}', '{id}', 'member', now());
         insert into team_grants values ('{tenant_id}', '{project}', '{team}', 'viewer', '{id}', now(), now())"
    ));
    let grants = app.get(&path).expect(200);
    assert_eq!(grants["projects"][0]["role"], json!("viewer"));
    assert_eq!(grants["projects"][0]["via"][0]["role"], json!("member"));
}

#[test]
fn a_user_reads_their_own_roles_within_what_the_key_is_limited_to() {
    let app = App::start_authorized();
    let ann = made::person(&app, "ann@b", "member");
    let client = made::enrolled(&app, &ann);
    let path = format!("/v1/identity/users/{}/grants", made::id(&ann));
    let projects: Vec<String> = (0..2).map(|_| made::project(&app)).collect();
    for project in &projects {
        let role = json!({"userId": ann["id"], "role": "viewer"});
        let members = format!("/v1/projects/{project}/memberships");
        app.post(&members, &role).expect(201);
    }
    let own = client.get(&path).expect(200);
    assert_eq!(
        made::column(&json!({"data": own["projects"]}), "projectId"),
        projects
    );
    let key = client
        .post(
            "/v1/tokens",
            &json!({"name": "one", "projectId": projects[1]}),
        )
        .expect(201);
    let limited = app.with_token(key["token"].as_str());
    let seen = limited.get(&path).expect(200);
    assert_eq!(
        made::column(&json!({"data": seen["projects"]}), "projectId"),
        projects[1..]
    );
    app.other_tenant().get(&path).expect_error(404, "not-found");
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    let of_account = format!("/v1/identity/users/{}/grants", made::id(&account));
    let seen = app.get(&of_account).expect(200);
    assert_eq!(seen["kind"], json!("service-account"));
    assert_eq!(seen["projects"], Value::Array(Vec::new()));
}

#[test]
fn the_roles_of_others_are_a_tenant_admin_s() {
    let app = App::start_authorized();
    let ann = made::person(&app, "ann@b", "member");
    let client = made::enrolled(&app, &ann);
    let nobody = app.clock.new_id();
    for user in [app.seeds.user_id, nobody] {
        let path = format!("/v1/identity/users/{user}/grants");
        let refused = client.get(&path).expect(403)["error"].clone();
        assert_eq!(refused["code"], json!("permission-denied"));
        let tenant = format!("tenant:{}", app.seeds.tenant_id);
        assert_eq!(refused["details"]["resource"], json!(tenant));
        assert_eq!(refused["details"]["action"], json!("admin"));
    }
    let path = format!("/v1/identity/users/{nobody}/grants");
    app.get(&path).expect_error(404, "not-found");
    client.get("/v1/identity/me/permissions").expect(200);
}
