//! `/v1/projects/{projectId}/memberships`.

use crate::harness::{Answer, App, Client, made, together};
use serde_json::{Value, json};
use uuid::Uuid;

fn path(project: &str) -> String {
    format!("/v1/projects/{project}/memberships")
}

fn one(project: &str, user_id: Uuid) -> String {
    format!("{}/{user_id}", path(project))
}

fn add(client: &Client, project: &str, user_id: Uuid, role: &str) -> Answer {
    client.post(&path(project), &json!({"userId": user_id, "role": role}))
}

/// The roles in a project, by user.
fn roles(client: &Client, project: &str) -> Vec<(String, String)> {
    let page = client
        .get(&format!("{}?limit=200&order=asc", path(project)))
        .expect(200);
    made::column(&page, "userId")
        .into_iter()
        .zip(made::column(&page, "role"))
        .collect()
}

/// How often permissions of the project were asked for.
fn desired(app: &App, project: &str) -> i64 {
    app.database
        .client()
        .query_one(
            "select desired from authz_objects where tenant_id = $1 and object = $2",
            &[&app.seeds.tenant_id, &format!("project:{project}")],
        )
        .unwrap()
        .get(0)
}

#[test]
fn a_member_is_added_read_changed_and_removed() {
    let app = App::start();
    let project = made::project(&app);
    let ann = app.person("Ann", "Ann@Example.org");
    assert_eq!(desired(&app, &project), 1, "making it marked it");
    let added = add(&app, &project, ann, "editor").expect(201);
    let joined_at = added["joinedAt"].as_str().unwrap().to_owned();
    assert!(joined_at.ends_with('Z'));
    let shown = |role: &str| {
        json!({"projectId": project, "userId": ann, "kind": "user", "displayName": "Ann",
            "primaryEmail": "Ann@Example.org", "role": role, "joinedAt": joined_at})
    };
    assert_eq!(added, shown("editor"));
    assert_eq!(desired(&app, &project), 2);
    let listed = app.get(&path(&project)).expect(200);
    let listed = listed["data"].as_array().unwrap();
    assert!(listed.contains(&shown("editor")), "{listed:?}");
    assert_eq!(listed.len(), 2, "the creator is one, too");
    for role in ["viewer", "admin", "owner", "owner"] {
        let changed = app
            .patch(&one(&project, ann), &json!({"role": role}))
            .expect(200);
        assert_eq!(changed, shown(role));
    }
    assert_eq!(desired(&app, &project), 6);
    app.delete(&one(&project, ann)).expect(204);
    assert_eq!(desired(&app, &project), 7);
    // A repeat finds it done; nobody of that id is another matter.
    app.delete(&one(&project, ann)).expect(204);
    app.delete(&one(&project, app.clock.new_id()))
        .expect_error(404, "not-found");
    app.patch(&one(&project, ann), &json!({"role": "viewer"}))
        .expect_error(404, "not-found");
}

#[test]
fn adding_a_member_once_more_keeps_the_role() {
    let app = App::start();
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    let first = add(&app, &project, ann, "editor").expect(201);
    assert_eq!(add(&app, &project, ann, "editor").expect(201), first);
    for role in ["owner", "admin", "viewer"] {
        let error = add(&app, &project, ann, role).expect_error(409, "membership-exists");
        assert_eq!(error["details"]["role"], json!("editor"));
    }
    let again = app.post(
        &path(&project),
        &json!({"email": "ANN@example.ORG", "role": "editor"}),
    );
    assert_eq!(again.expect(201), first);
}

#[test]
fn a_person_is_found_by_email_whatever_its_case() {
    let app = App::start();
    let project = made::project(&app);
    let person = app.person("Zoë", "Zoë.Älva@Example.org");
    let body = json!({"email": "zOË.älva@eXample.org", "role": "viewer"});
    let added = app.post(&path(&project), &body).expect(201);
    assert_eq!(added["userId"], json!(person));
    let unknown = json!({"email": "nobody@example.org", "role": "viewer"});
    app.post(&path(&project), &unknown)
        .expect_error(404, "not-found");
}

#[test]
fn what_a_body_names_is_one_user_and_a_role_that_is_given() {
    let app = App::start();
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    let invalid = [
        (json!({"role": "viewer"}), "$.userId"),
        (
            json!({"userId": null, "email": null, "role": "viewer"}),
            "$.userId",
        ),
        (
            json!({"userId": ann, "email": "ann@example.org", "role": "viewer"}),
            "$.email",
        ),
        (json!({"userId": "user:ann", "role": "viewer"}), "$.userId"),
        (json!({"userId": ann, "role": "Viewer"}), "$.role"),
        (json!({"userId": ann, "role": 1}), "$.role"),
        (json!({"email": "", "role": "viewer"}), "$.email"),
        (
            json!({"email": "a".repeat(10_000), "role": "viewer"}),
            "$.email",
        ),
    ];
    for (body, place) in invalid {
        let error = app
            .post(&path(&project), &body)
            .expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(place), "{body}");
    }
    app.post(&path(&project), &json!({"userId": ann}))
        .expect_error(400, "invalid-body");
    for given in [
        add(&app, &project, ann, "member"),
        add(&app, &project, app.clock.new_id(), "member"),
        app.patch(&one(&project, ann), &json!({"role": "member"})),
    ] {
        let error = given.expect_error(400, "role-not-given");
        assert!(error["message"].as_str().unwrap().contains("Use viewer"));
    }
    assert_eq!(roles(&app, &project).len(), 1, "nothing was added");
}

#[test]
fn strange_identifiers_name_nothing() {
    let app = App::start();
    let project = made::project(&app);
    let before = roles(&app, &project);
    let long = "a".repeat(10_000);
    let texts = [
        "user:*",
        "*",
        "a#member",
        "@",
        "\u{1}\u{7f}",
        "a b",
        "%",
        &long,
    ];
    for text in texts {
        let raw: String = text
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect::<String>();
        let raw = if text.len() > 100 { text } else { &raw };
        for answer in [
            app.patch(
                &format!("{}/{raw}", path(&project)),
                &json!({"role": "viewer"}),
            ),
            app.delete(&format!("{}/{raw}", path(&project))),
            app.get(&path(raw)),
        ] {
            assert!([404, 431].contains(&answer.status), "{text}: {answer:?}");
            assert!(answer.text.len() < 1000);
        }
        let body = json!({"userId": text, "role": "viewer"});
        app.post(&path(&project), &body)
            .expect_error(400, "invalid-body");
        let body = json!({"email": text, "role": "viewer"});
        let answer = app.post(&path(&project), &body);
        assert!([400, 404].contains(&answer.status), "{text}: {answer:?}");
        let body = json!({"email": "a@example.org", "role": text});
        let answer = app.post(&path(&project), &body);
        answer.expect_error(400, "invalid-body");
    }
    assert_eq!(roles(&app, &project), before);
}

#[test]
fn a_user_of_another_tenant_is_nobody_here() {
    let app = App::start();
    let project = made::project(&app);
    let other = app.other_tenant();
    let theirs = made::project(&other);
    let foreign = roles(&other, &theirs)[0].0.parse().unwrap();
    add(&app, &project, foreign, "viewer").expect_error(404, "not-found");
    app.patch(&one(&project, foreign), &json!({"role": "viewer"}))
        .expect_error(404, "not-found");
    app.delete(&one(&theirs, foreign))
        .expect_error(404, "not-found");
    let ann = app.person("Ann", "ann@example.org");
    add(&other, &theirs, ann, "viewer").expect_error(404, "not-found");
    let body = json!({"email": "ann@example.org", "role": "viewer"});
    other
        .post(&path(&theirs), &body)
        .expect_error(404, "not-found");
}

#[test]
fn a_service_account_is_never_an_owner() {
    let app = App::start();
    let project = made::project(&app);
    let account = app.service_account("pipeline");
    let refused = |answer: Answer| {
        let error = answer.expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!("$.role"));
    };
    refused(add(&app, &project, account, "owner"));
    let added = add(&app, &project, account, "admin").expect(201);
    assert_eq!(added["kind"], json!("service-account"));
    assert!(added.get("primaryEmail").is_none());
    refused(app.patch(&one(&project, account), &json!({"role": "owner"})));
    for role in ["editor", "viewer"] {
        let changed = app
            .patch(&one(&project, account), &json!({"role": role}))
            .expect(200);
        assert_eq!(changed["role"], json!(role));
    }
    let by_account = made::project(&app.as_user(account));
    let held = roles(&app, &by_account);
    assert_eq!(held, [(account.to_string(), "admin".to_owned())]);
}

#[test]
fn who_was_deactivated_is_not_added() {
    let app = App::start();
    let project = made::project(&app);
    let (ann, ben) = (app.person("Ann", "a@x.org"), app.person("Ben", "b@x.org"));
    add(&app, &project, ben, "editor").expect(201);
    app.deactivate(ann);
    app.deactivate(ben);
    add(&app, &project, ann, "editor").expect_error(409, "conflict");
    let body = json!({"email": "A@x.org", "role": "editor"});
    app.post(&path(&project), &body)
        .expect_error(409, "conflict");
    add(&app, &project, ben, "editor").expect_error(409, "conflict");
    let listed = app.get(&path(&project)).expect(200);
    let shown: Vec<&Value> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row.get("deactivatedAt").is_some())
        .collect();
    assert_eq!(shown.len(), 1, "{listed}");
    app.delete(&one(&project, ben)).expect(204);
}

#[test]
fn an_older_member_reads_back_and_moves_on() {
    let app = App::start();
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    add(&app, &project, ann, "viewer").expect(201);
    app.sql(&format!(
        "update project_memberships set role = 'member' where user_id = '{ann}'"
    ));
    assert!(roles(&app, &project).contains(&(ann.to_string(), "member".to_owned())));
    let error = add(&app, &project, ann, "viewer").expect_error(409, "membership-exists");
    assert_eq!(error["details"]["role"], json!("member"));
    add(&app, &project, ann, "member").expect_error(400, "role-not-given");
    let changed = app.patch(&one(&project, ann), &json!({"role": "viewer"}));
    assert_eq!(changed.expect(200)["role"], json!("viewer"));
}

#[test]
fn adding_a_membership_takes_the_place_of_a_role_without_one() {
    let app = App::start();
    let project = made::project(&app);
    let (ann, ben) = (app.person("Ann", "a@x.org"), app.person("Ben", "b@x.org"));
    let seed = app.seeds.user_id;
    let direct = |user: Uuid, role: &str| {
        app.sql(&format!(
            "insert into project_direct_roles (tenant_id, project_id, user_id, role)
             values ('{}', '{project}', '{user}', '{role}')",
            app.seeds.tenant_id
        ));
    };
    let left = || -> i64 {
        let all = "select count(*) from project_direct_roles";
        app.database.client().query_one(all, &[]).unwrap().get(0)
    };
    direct(ann, "editor");
    assert_eq!(roles(&app, &project).len(), 1, "it is no membership");
    app.patch(&one(&project, ann), &json!({"role": "viewer"}))
        .expect_error(404, "not-found");
    app.delete(&one(&project, ann))
        .expect_error(404, "not-found");
    add(&app, &project, ann, "viewer").expect(201);
    assert_eq!(left(), 0);
    // An owner without a membership is an owner.
    direct(ben, "owner");
    app.delete(&one(&project, seed)).expect(204);
    add(&app, &project, ben, "viewer").expect_error(409, "last-owner");
    assert_eq!(left(), 1);
    add(&app, &project, ben, "owner").expect(201);
    assert_eq!(left(), 0);
    // One that stands behind a membership goes with it.
    direct(ann, "admin");
    app.delete(&one(&project, ann)).expect(204);
    assert_eq!(left(), 0);
}

#[test]
fn a_project_keeps_an_owner() {
    let app = App::start();
    let project = made::project(&app);
    let seed = app.seeds.user_id;
    let ann = app.person("Ann", "ann@example.org");
    app.delete(&one(&project, seed))
        .expect_error(409, "last-owner");
    app.patch(&one(&project, seed), &json!({"role": "admin"}))
        .expect_error(409, "last-owner");
    app.patch(&one(&project, seed), &json!({"role": "owner"}))
        .expect(200);
    add(&app, &project, ann, "owner").expect(201);
    app.deactivate(ann);
    app.delete(&one(&project, seed))
        .expect_error(409, "last-owner");
    app.delete(&one(&project, ann)).expect(204);
    app.delete(&one(&project, seed))
        .expect_error(409, "last-owner");
}

#[test]
fn the_list_pages_by_cursor_in_either_order() {
    let app = App::start();
    let project = made::project(&app);
    let mut ids = vec![app.seeds.user_id.to_string()];
    for number in 0..6 {
        let person = app.person("Person", &format!("p{number}@example.org"));
        add(&app, &project, person, "viewer").expect(201);
        ids.push(person.to_string());
    }
    ids.sort();
    for order in ["asc", "desc"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let query = format!("{}?limit=2&order={order}{cursor}", path(&project));
            let page = app.get(&query).expect(200);
            seen.extend(made::column(&page, "userId"));
            let Some(next) = page["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, ids);
        ids.reverse();
        let other = made::project(&app);
        app.get(&format!("{}?order={order}{cursor}", path(&other)))
            .expect_error(400, "invalid-cursor");
    }
}

#[test]
fn changes_at_once_answer_as_if_one_came_first() {
    let app = App::start();
    let replica = app.replica(|_| {});
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    let member = one(&project, ann);
    let to = |role: &str| json!({"role": role});
    let held = || -> Option<String> {
        let all = roles(&app, &project);
        let found = all.into_iter().find(|(user, _)| *user == ann.to_string());
        found.map(|(_, role)| role)
    };
    for _ in 0..15 {
        // Nobody yet: equal adds.
        let both = together(
            || add(&app, &project, ann, "editor").status,
            || add(&replica, &project, ann, "editor").status,
        );
        assert_eq!(both, (201, 201));
        // Change against change.
        let both = together(
            || app.patch(&member, &to("viewer")).status,
            || replica.patch(&member, &to("admin")).status,
        );
        assert_eq!(both, (200, 200));
        assert!(["viewer", "admin"].contains(&held().unwrap().as_str()));
        // Change against removal.
        let (changed, removed) = together(
            || app.patch(&member, &to("editor")).status,
            || replica.delete(&member).status,
        );
        assert!([200, 404].contains(&changed) && removed == 204);
        assert_eq!(held(), None);
        // Different adds.
        let both = together(
            || add(&app, &project, ann, "viewer").status,
            || add(&replica, &project, ann, "admin").status,
        );
        let role = held().unwrap();
        assert!(
            (both == (201, 409) && role == "viewer") || (both == (409, 201) && role == "admin"),
            "{both:?} {role}"
        );
        // Add against removal.
        let (added, removed) = together(
            || add(&app, &project, ann, &role).status,
            || replica.delete(&member).status,
        );
        assert_eq!((added, removed), (201, 204));
        // Removals, whether the add before them stands or not.
        let both = together(
            || app.delete(&member).status,
            || replica.delete(&member).status,
        );
        assert_eq!((both, held()), ((204, 204), None));
    }
}

#[test]
fn of_two_owners_who_remove_each_other_one_stays() {
    let app = App::start();
    let replica = app.replica(|_| {});
    for _ in 0..10 {
        let project = made::project(&app);
        let ann = app.person("Ann", &format!("{project}@example.org"));
        add(&app, &project, ann, "owner").expect(201);
        let (first, second) = together(
            || app.delete(&one(&project, ann)).status,
            || {
                replica
                    .patch(
                        &one(&project, app.seeds.user_id),
                        &json!({"role": "viewer"}),
                    )
                    .status
            },
        );
        assert!(
            [(204, 409), (409, 200)].contains(&(first, second)),
            "{first} {second}"
        );
    }
}

#[test]
fn after_each_answer_every_replica_knows() {
    let app = App::start_authorized();
    let replica = app.replica(|_| {});
    replica.is_in_step();
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    let token = app.as_user(ann);
    let elsewhere = replica.with_token(Some(token.token()));
    let read = format!("/v1/projects/{project}");
    // What she may do there: read it, see its members, change them.
    let may = || {
        let rename = json!({"name": "project"});
        [
            elsewhere.get(&read).status,
            elsewhere.get(&path(&project)).status,
            elsewhere.patch(&read, &rename).status,
        ]
    };
    for _ in 0..5 {
        assert_eq!(may(), [403, 403, 403]);
        add(&app, &project, ann, "viewer").expect(201);
        assert_eq!(may(), [200, 403, 403]);
        for (role, expected) in [
            ("editor", [200, 200, 403]),
            ("owner", [200, 200, 200]),
            ("admin", [200, 200, 200]),
            ("viewer", [200, 403, 403]),
        ] {
            let changed = app.patch(&one(&project, ann), &json!({"role": role}));
            changed.expect(200);
            assert_eq!(may(), expected, "{role}");
        }
        app.delete(&one(&project, ann)).expect(204);
    }
    assert_eq!(may(), [403, 403, 403]);
}

#[test]
fn who_changes_members_is_an_admin_of_the_project() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let [ann, ben, cleo, dora] =
        ["Ann", "Ben", "Cleo", "Dora"].map(|name| app.person(name, &format!("{name}@x.org")));
    add(&app, &project, ann, "admin").expect(201);
    add(&app, &project, ben, "editor").expect(201);
    add(&app, &project, cleo, "viewer").expect(201);
    let denied = |answer: Answer, user: Uuid, action: &str| {
        let error = answer.expect(403)["error"].clone();
        let sentence =
            format!("permission denied, actor user:{user} lacks can_{action} on project:{project}");
        assert_eq!(error["code"], json!("permission-denied"));
        assert_eq!(error["message"], json!(sentence));
        let details = json!({"action": action, "resource": format!("project:{project}"),
            "reason": sentence});
        assert_eq!(error["details"], details);
    };
    for user in [ben, cleo, dora] {
        let client = app.as_user(user);
        denied(add(&client, &project, dora, "viewer"), user, "admin");
        denied(add(&client, &project, dora, "member"), user, "admin");
        let to = json!({"role": "owner"});
        denied(client.patch(&one(&project, user), &to), user, "admin");
        denied(client.delete(&one(&project, cleo)), user, "admin");
    }
    for user in [cleo, dora] {
        denied(app.as_user(user).get(&path(&project)), user, "write");
    }
    let by_ann = app.as_user(ann);
    add(&by_ann, &project, dora, "owner").expect(201);
    by_ann.delete(&one(&project, app.seeds.user_id)).expect(204);
    // A tenant admin needs no role on the project.
    app.delete(&one(&project, ann)).expect(204);
    denied(by_ann.get(&path(&project)), ann, "write");
    // A key without the capability is refused, whoever holds it.
    let by_dora = app.as_user(dora);
    add(&by_dora, &project, ann, "viewer").expect(201);
    app.sql(&format!(
        "update tokens set capabilities = '{{keys:write}}' where user_id = '{dora}'"
    ));
    let replica = app.replica(|_| {});
    replica.is_in_step();
    let without = replica.with_token(Some(by_dora.token()));
    let refused = without.delete(&one(&project, ann)).expect(403);
    assert_eq!(refused["error"]["code"], json!("permission-denied"));
    without.get(&path(&project)).expect(200);
}

#[test]
fn a_role_without_a_membership_and_an_older_one_count_until_they_are_changed() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let [ann, ben] = ["Ann", "Ben"].map(|name| app.person(name, &format!("{name}@x.org")));
    let tenant_id = app.seeds.tenant_id;
    app.marked_sql(
        &format!("project:{project}"),
        &format!(
            "insert into project_direct_roles (tenant_id, project_id, user_id, role)
               values ('{tenant_id}', '{project}', '{ann}', 'owner');
             insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
               values ('{tenant_id}', '{project}', '{ben}', 'member', now())"
        ),
    );
    let (by_ann, by_ben) = (app.as_user(ann), app.as_user(ben));
    by_ann.get(&path(&project)).expect(200);
    by_ben.get(&format!("/v1/projects/{project}")).expect(200);
    assert_eq!(by_ben.get(&path(&project)).status, 403);
    add(&app, &project, ann, "viewer").expect(201);
    assert_eq!(by_ann.get(&path(&project)).status, 403);
    app.delete(&one(&project, ann)).expect(204);
    assert_eq!(by_ann.get(&format!("/v1/projects/{project}")).status, 403);
}
