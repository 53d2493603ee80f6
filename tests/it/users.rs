//! `/v1/identity/users`.

use crate::harness::{App, Client, Puppet, end_of, eventually, made};
use agent_runtime::authz::desired_tuples::Object;
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::Duration;

const USERS: &str = "/v1/identity/users";

fn path(person: &Value) -> String {
    format!("{USERS}/{}", person["id"].as_str().unwrap())
}

fn deactivate(client: &Client, person: &Value) -> crate::harness::Answer {
    client.send("POST", &format!("{}/deactivate", path(person)), None, &[])
}

/// How often permissions of the object were asked for.
fn desired(app: &App, object: &str) -> i64 {
    let row = app.database.client().query_opt(
        "select desired from authz_objects where tenant_id = $1 and object = $2",
        &[&app.seeds.tenant_id, &object],
    );
    row.unwrap().map_or(0, |row| row.get(0))
}

fn tenant(app: &App) -> String {
    format!("tenant:{}", app.seeds.tenant_id)
}

#[test]
fn a_person_is_added_read_changed_and_listed() {
    let app = App::start();
    let before = desired(&app, &tenant(&app));
    let mut ann = made::person(&app, "Ann@Example.org", "member");
    assert_eq!(desired(&app, &tenant(&app)), before + 1);
    let enrolment = ann.as_object_mut().unwrap().remove("enrolment").unwrap();
    assert!(enrolment["code"].as_str().unwrap().starts_with("svc_en_"));
    assert_eq!(ann["email"], json!("Ann@Example.org"));
    assert_eq!(ann["tenantRole"], json!("member"));
    assert_eq!(ann["createdBy"], json!(app.seeds.user_id));
    assert_eq!(ann["deactivatedAt"], Value::Null);
    assert_eq!(app.get(&path(&ann)).expect(200), ann);
    let change = json!({"displayName": "Ann", "tenantRole": "admin"});
    let changed = app.patch(&path(&ann), &change).expect(200);
    assert_eq!(changed["displayName"], json!("Ann"));
    assert_eq!(changed["tenantRole"], json!("admin"));
    assert_eq!(desired(&app, &tenant(&app)), before + 2);
    assert_eq!(app.get(&path(&ann)).expect(200), changed);
    let listed = app.get(USERS).expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "the seed user");
    app.patch(&path(&ann), &json!({}))
        .expect_error(400, "invalid-body");
}

#[test]
fn a_person_is_matched_by_email_whatever_its_case() {
    let app = App::start();
    let ann = made::person(&app, "Ann@Example.org", "member");
    let again = json!({"email": "ANN@eXample.ORG", "displayName": "B", "tenantRole": "admin"});
    let error = app.post(USERS, &again).expect_error(409, "already-exists");
    assert_eq!(error["details"]["id"], ann["id"]);
    let found = app
        .get(&format!("{USERS}?email=aNN%40example.org"))
        .expect(200);
    assert_eq!(made::column(&found, "id"), [made::id(&ann)]);
    // The same email in another tenant is another person.
    let other = app.other_tenant();
    let theirs = made::person(&other, "ann@example.org", "member");
    assert_ne!(theirs["id"], ann["id"]);
    other.get(&path(&ann)).expect_error(404, "not-found");
    // Letters beyond ASCII, too.
    made::person(&app, "ÄRNE@example.org", "member");
    let again = json!({"email": "ärne@example.org", "displayName": "B", "tenantRole": "member"});
    app.post(USERS, &again).expect_error(409, "already-exists");
}

#[test]
fn an_email_has_a_form() {
    let app = App::start();
    let long = format!("{}@b", "a".repeat(320));
    for email in [
        "a",
        "ab",
        "abc",
        "@bc",
        "ab@",
        "a@@b",
        "a@b@c",
        "a b@c",
        "a@b\n",
        "a\u{7f}@b",
        "\u{0}a@b",
        &long,
    ] {
        let body = json!({"email": email, "displayName": "A", "tenantRole": "member"});
        let error = app.post(USERS, &body).expect_error(400, "invalid-body");
        assert!(
            error["details"]["path"]
                .as_str()
                .unwrap()
                .ends_with("email")
        );
    }
    for (name, role) in [("", "member"), (" ", "member"), ("A", "owner"), ("A", "")] {
        let body = json!({"email": "a@b", "displayName": name, "tenantRole": role});
        app.post(USERS, &body).expect_error(400, "invalid-body");
    }
    made::person(&app, "a@b", "member");
    made::person(&app, &format!("{}@b", "a".repeat(318)), "member");
}

#[test]
fn people_are_listed_by_role_status_and_pages() {
    let app = App::start();
    let (one, two) = (
        made::person(&app, "one@b", "member"),
        made::person(&app, "two@b", "admin"),
    );
    let account = json!({"name": "pipeline"});
    app.post("/v1/service-accounts", &account).expect(201);
    deactivate(&app, &one).expect(200);
    let ids = |query: &str| {
        let page = app.get(&format!("{USERS}?order=asc&{query}")).expect(200);
        made::column(&page, "id")
    };
    let (one, two) = (made::id(&one), made::id(&two));
    let seed = app.seeds.user_id.to_string();
    assert_eq!(ids(""), [seed.clone(), one.clone(), two.clone()]);
    assert_eq!(ids("status=active"), [seed.clone(), two.clone()]);
    assert_eq!(ids("status=deactivated"), std::slice::from_ref(&one));
    assert_eq!(ids("tenantRole=member"), [one]);
    assert_eq!(ids("tenantRole=admin&status=active"), [seed, two]);
    assert!(ids("email=nobody%40b").is_empty());
    let first = app.get(&format!("{USERS}?limit=2")).expect(200);
    let cursor = first["nextCursor"].as_str().unwrap();
    let next = app.get(&format!("{USERS}?limit=2&cursor={cursor}"));
    assert_eq!(next.expect(200)["data"].as_array().unwrap().len(), 1);
    app.get(&format!("{USERS}?status=active&cursor={cursor}"))
        .expect_error(400, "invalid-cursor");
    app.get(&format!("{USERS}?status=gone"))
        .expect_error(400, "invalid-request");
}

#[test]
fn strange_identifiers_name_nobody() {
    let app = App::start();
    let long = "a".repeat(4000);
    for id in ["x", "%00", "user:1", "*", "a%23member", "%40", "-", &long] {
        for path in [format!("{USERS}/{id}"), format!("{USERS}/{id}/grants")] {
            app.get(&path).expect_error(404, "not-found");
        }
    }
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    app.get(&path(&account)).expect_error(404, "not-found");
    deactivate(&app, &account).expect_error(404, "not-found");
    assert_eq!(
        app.get(USERS).expect(200)["data"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_tenant_keeps_an_admin() {
    let app = App::start();
    let seed = json!({"id": app.seeds.user_id});
    let demote = json!({"tenantRole": "member"});
    app.patch(&path(&seed), &demote)
        .expect_error(409, "last-admin");
    deactivate(&app, &seed).expect_error(409, "last-admin");
    let member = made::person(&app, "member@b", "member");
    deactivate(&app, &seed).expect_error(409, "last-admin");
    app.patch(&path(&member), &json!({"tenantRole": "admin"}))
        .expect(200);
    // To be what one is already takes nothing away.
    app.patch(&path(&seed), &json!({"tenantRole": "admin"}))
        .expect(200);
    let other = made::enrolled(&app, &member);
    other.patch(&path(&seed), &demote).expect(200);
    deactivate(&other, &member).expect_error(409, "last-admin");
}

#[test]
fn of_two_last_admins_who_go_at_once_one_stays() {
    for _ in 0..5 {
        let app = App::start();
        let second = made::person(&app, "second@b", "admin");
        let (seed, barrier) = (json!({"id": app.seeds.user_id}), Barrier::new(2));
        let client = app.with_token(Some(app.token()));
        let statuses = std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                barrier.wait();
                client
                    .patch(&path(&seed), &json!({"tenantRole": "member"}))
                    .status
            });
            let second = scope.spawn(|| {
                barrier.wait();
                deactivate(&client, &second).status
            });
            let mut both = [first.join().unwrap(), second.join().unwrap()];
            both.sort_unstable();
            both
        });
        assert_eq!(statuses, [200, 409]);
        let left: i64 = app
            .database
            .client()
            .query_one(
                "select count(*) from users where tenant_role = 'admin' and deactivated_at is null",
                &[],
            )
            .unwrap()
            .get(0);
        assert_eq!(left, 1);
    }
}

#[test]
fn of_equal_adds_at_once_one_makes_the_person() {
    let app = App::start();
    let (barrier, client) = (Barrier::new(4), app.with_token(Some(app.token())));
    let add = |email: &str| {
        barrier.wait();
        let body = json!({"email": email, "displayName": "A", "tenantRole": "member"});
        client.post(USERS, &body).status
    };
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let adding: Vec<_> = ["a@b", "A@b", "a@B", "A@B"]
            .map(|email| scope.spawn(move || add(email)))
            .into_iter()
            .collect();
        adding.into_iter().map(|one| one.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
}

#[test]
fn a_deactivated_person_can_do_nothing_any_more_anywhere() {
    let app = App::start();
    let replica = app.replica(|_| {});
    let project = made::project(&app);
    let ann = made::person(&app, "ann@b", "member");
    let here = made::enrolled(&app, &ann);
    let there = replica.with_token(Some(here.token()));
    let members = format!("/v1/projects/{project}/memberships");
    let grant = json!({"userId": ann["id"], "role": "editor"});
    app.post(&members, &grant).expect(201);
    let code = app
        .send("POST", &format!("{}/enrolments", path(&ann)), None, &[])
        .expect(201);
    let second = here
        .post("/v1/tokens", &json!({"name": "second"}))
        .expect(201);
    let second = app.with_token(second["token"].as_str());
    for client in [&here, &there, &second] {
        client.get("/v1/tokens").expect(200);
    }
    let objects = [tenant(&app), format!("project:{project}")];
    let before = objects.each_ref().map(|object| desired(&app, object));
    let ended = deactivate(&app, &ann).expect(200);
    assert!(ended["deactivatedAt"].is_string());
    for client in [&here, &second] {
        client
            .get("/v1/tokens")
            .expect_error(401, "unauthenticated");
    }
    eventually("the other replica to refuse the key", || {
        (there.get("/v1/tokens").status == 401).then_some(())
    });
    let after = objects.each_ref().map(|object| desired(&app, object));
    assert_eq!(after, before.map(|desired| desired + 1));
    app.with_token(None)
        .post("/v1/identity/enrolments", &json!({"code": code["code"]}))
        .expect_error(401, "unauthenticated");
    // Repeated, it answers the same, and nothing happens.
    app.clock.advance(std::time::Duration::from_secs(5));
    assert_eq!(deactivate(&app, &ann).expect(200), ended);
    assert_eq!(app.get(&path(&ann)).expect(200), ended);
    let name = json!({"displayName": "B"});
    app.patch(&path(&ann), &name).expect_error(409, "conflict");
    app.send("POST", &format!("{}/enrolments", path(&ann)), None, &[])
        .expect_error(409, "conflict");
    let grants = app.get(&format!("{}/grants", path(&ann))).expect(200);
    assert_eq!(grants["projects"], json!([]));
    assert_eq!(grants["tenantRole"], Value::Null);
}

#[test]
fn every_object_where_a_user_stands_is_marked_when_they_go() {
    let app = App::start();
    let ann = made::person(&app, "ann@b", "member");
    let id = |path: &str, body: Value| made::id(&app.post(path, &body).expect(201));
    let org = id("/v1/orgs", json!({"name": "org"}));
    let user = json!({"userId": ann["id"]});
    app.post(&format!("/v1/orgs/{org}/admins"), &user)
        .expect(201);
    let (member, direct) = (made::project(&app), made::project(&app));
    let (tenant_id, team, user) = (app.seeds.tenant_id, app.clock.new_id(), made::id(&ann));
    app.sql(&format!(
        "insert into project_memberships values ('{tenant_id}', '{member}', '{user}', 'viewer', now());
         insert into project_direct_roles values ('{tenant_id}', '{direct}', '{user}', 'owner');
         insert into teams values ('{tenant_id}', '{team}', 'team', 'team', null, '{user}', now(), now());
         insert into team_memberships values ('{tenant_id}', '{team}', '{user}', 'member', now())"
    ));
    let objects = [
        tenant(&app),
        format!("org:{org}"),
        format!("team:{team}"),
        format!("project:{member}"),
        format!("project:{direct}"),
    ];
    let before = objects.each_ref().map(|object| desired(&app, object));
    deactivate(&app, &ann).expect(200);
    let after = objects.each_ref().map(|object| desired(&app, object));
    assert_eq!(after, before.map(|desired| desired + 1));
}

#[test]
fn a_role_given_while_its_user_goes_comes_before_or_is_refused() {
    let app = App::start();
    let client = app.with_token(Some(app.token()));
    for round in 0..10 {
        let ann = made::person(&app, &format!("ann{round}@b"), "member");
        let project = made::project(&app);
        let barrier = Barrier::new(2);
        let members = format!("/v1/projects/{project}/memberships");
        let grant = json!({"userId": ann["id"], "role": "editor"});
        let (added, ended) = std::thread::scope(|scope| {
            let adding = scope.spawn(|| {
                barrier.wait();
                client.post(&members, &grant).status
            });
            barrier.wait();
            let ended = deactivate(&client, &ann).status;
            (adding.join().unwrap(), ended)
        });
        assert_eq!(ended, 200);
        assert!([201, 409].contains(&added), "{added}");
        // Made, given a role, and ended with it: the end marked the project too.
        let marks = if added == 201 { 3 } else { 1 };
        assert_eq!(desired(&app, &format!("project:{project}")), marks);
    }
}

#[test]
fn open_streams_of_a_deactivated_person_end() {
    let app = App::start_with(|options| options.streams.recheck_every = Duration::from_millis(100));
    let puppet = Puppet::start();
    let ann = made::person(&app, "ann@b", "member");
    let client = made::enrolled(&app, &ann);
    let run = app.start_turn(app.agent(&puppet.base_url()), "a");
    let call = puppet.call();
    let open = |client: &Client| {
        let mut stream = client.follow(&run);
        stream.until("step.started");
        stream
    };
    let (mut ending, mut staying) = (open(&client), open(&app));
    // As another replica would have done it.
    app.deactivate(made::id(&ann).parse().unwrap());
    assert_eq!(end_of(&ending.rest()), "credential-ended");
    call.finish();
    assert_eq!(end_of(&staying.rest()), "run-finished");
}

#[test]
fn what_a_person_may_follows_their_tenant_role_and_ends_with_them() {
    let app = App::start_authorized();
    let replica = app.replica(|_| {});
    replica.is_in_step();
    let ann = made::person(&app, "ann@b", "member");
    let client = made::enrolled(&app, &ann);
    let user = made::id(&ann).parse().unwrap();
    let may = |at: &App, relation| at.may_soon(user, relation, Object::Tenant(app.seeds.tenant_id));
    assert!(may(&replica, "can_read") && !may(&replica, "can_admin"));
    for answer in [
        client.get(USERS),
        client.get(&path(&ann)),
        client.post("/v1/service-accounts", &json!({"name": "a"})),
        client.get("/v1/service-accounts"),
        client.post("/v1/orgs", &json!({"name": "a"})),
        client.get("/v1/reviewers"),
        client.post(
            "/v1/reviewers",
            &json!({"userId": ann["id"], "role": "standard"}),
        ),
        client.patch(&path(&ann), &json!({"tenantRole": "admin"})),
        deactivate(&client, &ann),
    ] {
        assert_eq!(
            answer.expect(403)["error"]["code"],
            json!("permission-denied")
        );
    }
    app.patch(&path(&ann), &json!({"tenantRole": "admin"}))
        .expect(200);
    assert!(may(&replica, "can_admin"));
    // The key stays a member's.
    assert_eq!(
        client.get(USERS).expect(403)["error"]["code"],
        json!("permission-denied")
    );
    app.patch(&path(&ann), &json!({"tenantRole": "member"}))
        .expect(200);
    assert!(!may(&replica, "can_admin"));
    deactivate(&app, &ann).expect(200);
    assert!(!may(&replica, "can_read") && !may(&app, "can_read"));
}

#[test]
fn a_record_says_for_whom_a_change_was() {
    let app = App::start_authorized();
    // Her key is an admin's, and she is none any more: the model refuses her.
    let ann = made::person(&app, "ann@b", "admin");
    let (client, user) = (made::enrolled(&app, &ann), made::id(&ann));
    app.patch(&path(&ann), &json!({"tenantRole": "member"}))
        .expect(200);
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    let account = made::id(&account);
    let fewer = app
        .post("/v1/tokens", &json!({"name": "few", "capabilities": []}))
        .expect(201);
    let fewer = app.with_token(fewer["token"].as_str());
    let (tenant, seed) = (tenant(&app), app.seeds.user_id);
    let one = path(&ann);
    let allowed = |about: &str| format!("user:{seed} has can_admin on {tenant}, for {about}");
    for (method, path, client, about) in [
        (
            "POST",
            format!("{one}/enrolments"),
            &*app,
            format!("user:{user}"),
        ),
        (
            "GET",
            format!("{one}/grants"),
            &*app,
            format!("user:{user}"),
        ),
        (
            "DELETE",
            format!("/v1/reviewers/{user}/strict"),
            &*app,
            format!("user:{user}"),
        ),
        (
            "POST",
            format!("/v1/service-accounts/{account}/deactivate"),
            &*app,
            format!("service-account:{account}"),
        ),
    ] {
        let answer = client.send(method, &path, None, &[]);
        assert!(answer.status < 300, "{answer:?}");
        assert_eq!(reason(&app, &answer), allowed(&about), "{path}");
    }
    let refused = client.send("POST", &format!("{one}/deactivate"), None, &[]);
    let said = format!("permission denied, actor user:{user} lacks can_admin on {tenant}");
    let recorded = reason(&app, &refused);
    assert_eq!(recorded, format!("{said}, for user:{user}"));
    let error = refused.expect_error(403, "permission-denied");
    assert_eq!(error["message"], json!(said), "the form of section 7");
    assert_eq!(error["details"]["reason"], json!(said));
    let refused = fewer.send("POST", &format!("{one}/deactivate"), None, &[]);
    let said = format!("permission denied, actor user:{seed} lacks can_admin on {tenant}");
    let why = format!("for user:{user}; the key lacks the capability access:write");
    let recorded = reason(&app, &refused);
    assert_eq!(recorded, format!("key-capability: {said}, {why}"));
    let error = refused.expect_error(403, "permission-denied");
    assert_eq!(
        error["message"],
        json!(said),
        "the record alone says which check refused"
    );
}

/// The reason of the one decision of a request.
fn reason(app: &App, answer: &crate::harness::Answer) -> String {
    let id = answer.header("x-request-id").unwrap();
    let id: uuid::Uuid = id.trim_start_matches("req-").parse().unwrap();
    let all = "select reason from audit_decisions where request_id = $1";
    let row = app.database.client().query_one(all, &[&id]);
    row.unwrap().get(0)
}
