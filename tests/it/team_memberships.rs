//! `/v1/teams/{teamId}/memberships`.

use crate::harness::{Answer, App, Client, made, together};
use serde_json::json;
use uuid::Uuid;

fn path(team: &str) -> String {
    format!("/v1/teams/{team}/memberships")
}

fn one(team: &str, user_id: Uuid) -> String {
    format!("{}/{user_id}", path(team))
}

fn add(client: &Client, team: &str, user_id: Uuid, role: &str) -> Answer {
    client.post(&path(team), &json!({"userId": user_id, "role": role}))
}

#[test]
fn somebody_is_added_changed_and_removed() {
    let app = App::start();
    let team = made::team(&app, "team");
    let ann = app.person("Ann", "Ann@Example.org");
    let added = add(&app, &team, ann, "member").expect(201);
    let joined_at = added["joinedAt"].clone();
    let shown = |role: &str| {
        json!({"teamId": team, "userId": ann, "kind": "user", "displayName": "Ann",
            "role": role, "joinedAt": joined_at})
    };
    assert_eq!(added, shown("member"));
    assert_eq!(add(&app, &team, ann, "member").expect(201), added);
    let error = add(&app, &team, ann, "admin").expect_error(409, "membership-exists");
    assert_eq!(error["details"]["role"], json!("member"));
    let by_email = json!({"email": "aNN@example.org", "role": "member"});
    assert_eq!(app.post(&path(&team), &by_email).expect(201), added);
    let changed = app.patch(&one(&team, ann), &json!({"role": "admin"}));
    assert_eq!(changed.expect(200), shown("admin"));
    let listed = app.get(&path(&team)).expect(200);
    assert!(listed["data"].as_array().unwrap().contains(&shown("admin")));
    app.delete(&one(&team, ann)).expect(204);
    app.delete(&one(&team, ann)).expect(204);
    app.delete(&one(&team, app.clock.new_id()))
        .expect_error(404, "not-found");
    app.patch(&one(&team, ann), &json!({"role": "admin"}))
        .expect_error(404, "not-found");
    // The last admin of a team may go: tenant admins are admins of every team.
    app.delete(&one(&team, app.seeds.user_id)).expect(204);
    let desired: i64 = app
        .database
        .client()
        .query_one(
            "select desired from authz_objects where object = $1",
            &[&format!("team:{team}")],
        )
        .unwrap()
        .get(0);
    assert_eq!(desired, 8, "each 2xx marked it");
}

#[test]
fn a_service_account_may_be_in_a_team_and_the_deactivated_may_not() {
    let app = App::start();
    let team = made::team(&app, "team");
    let account = app.service_account("pipeline");
    let added = add(&app, &team, account, "member").expect(201);
    assert_eq!(added["kind"], json!("service-account"));
    let ann = app.person("Ann", "ann@example.org");
    app.deactivate(ann);
    add(&app, &team, ann, "member").expect_error(409, "conflict");
}

#[test]
fn what_is_wrong_with_a_body_or_a_path_is_said() {
    let app = App::start();
    let team = made::team(&app, "team");
    let ann = app.person("Ann", "ann@example.org");
    let long = "a".repeat(10_000);
    for (body, place) in [
        (json!({"role": "member"}), "$.userId"),
        (
            json!({"userId": ann, "email": "a@x.org", "role": "member"}),
            "$.email",
        ),
        (json!({"userId": ann, "role": "owner"}), "$.role"),
        (json!({"userId": ann, "role": "viewer"}), "$.role"),
        (json!({"userId": ann, "role": long}), "$.role"),
        (json!({"userId": long, "role": "member"}), "$.userId"),
        (json!({"userId": "user:*", "role": "member"}), "$.userId"),
        (json!({"email": long, "role": "member"}), "$.email"),
    ] {
        let error = app
            .post(&path(&team), &body)
            .expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(place), "{body}");
    }
    for email in ["*", "team#member", "a:b", "\u{1}@x"] {
        let body = json!({"email": email, "role": "member"});
        app.post(&path(&team), &body).expect_error(404, "not-found");
    }
    for user in ["user:*", "%2a", "a%23b", "%40", "%01", "%00"] {
        let path = format!("{}/{user}", path(&team));
        app.delete(&path).expect_error(404, "not-found");
        app.patch(&path, &json!({"role": "member"}))
            .expect_error(404, "not-found");
    }
    let other = app.other_tenant();
    let theirs = made::team(&other, "team");
    add(&other, &theirs, ann, "member").expect_error(404, "not-found");
    add(&other, &team, ann, "member").expect_error(404, "not-found");
    other.get(&path(&team)).expect_error(404, "not-found");
}

#[test]
fn changes_at_once_answer_as_if_one_came_first() {
    let app = App::start();
    let replica = app.replica(|_| {});
    let team = made::team(&app, "team");
    let ann = app.person("Ann", "ann@example.org");
    let member = one(&team, ann);
    for _ in 0..15 {
        let both = together(
            || add(&app, &team, ann, "member").status,
            || add(&replica, &team, ann, "member").status,
        );
        assert_eq!(both, (201, 201));
        let (changed, removed) = together(
            || app.patch(&member, &json!({"role": "admin"})).status,
            || replica.delete(&member).status,
        );
        assert!([200, 404].contains(&changed), "{changed}");
        assert_eq!(removed, 204);
        let (first, second) = together(
            || add(&app, &team, ann, "member").status,
            || add(&replica, &team, ann, "admin").status,
        );
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!(both, [201, 409]);
        app.delete(&member).expect(204);
    }
}
