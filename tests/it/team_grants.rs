//! `/v1/projects/{projectId}/team-grants` and `/v1/teams/{teamId}/project-grants`.

use crate::harness::{Answer, App, Client, made, together};
use serde_json::json;

fn path(project: &str) -> String {
    format!("/v1/projects/{project}/team-grants")
}

fn one(project: &str, team: &str) -> String {
    format!("{}/{team}", path(project))
}

fn add(client: &Client, project: &str, team: &str, role: &str) -> Answer {
    client.post(&path(project), &json!({"teamId": team, "role": role}))
}

#[test]
fn a_team_is_given_a_role_which_is_changed_and_taken() {
    let app = App::start();
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let added = add(&app, &project, &team, "viewer").expect(201);
    for (key, value) in [
        ("projectId", json!(project)),
        ("projectName", json!("project")),
        ("teamId", json!(team)),
        ("teamName", json!("Team")),
        ("role", json!("viewer")),
        ("createdBy", json!(app.seeds.user_id)),
    ] {
        assert_eq!(added[key], value);
    }
    assert_eq!(add(&app, &project, &team, "viewer").expect(201), added);
    for role in ["editor", "admin"] {
        let error = add(&app, &project, &team, role).expect_error(409, "team-grant-exists");
        assert_eq!(error["details"]["role"], json!("viewer"));
        let changed = app
            .patch(&one(&project, &team), &json!({"role": role}))
            .expect(200);
        assert_eq!(changed["role"], json!(role));
        let back = app.patch(&one(&project, &team), &json!({"role": "viewer"}));
        back.expect(200);
    }
    let of_project = app.get(&path(&project)).expect(200);
    let of_team = app
        .get(&format!("/v1/teams/{team}/project-grants"))
        .expect(200);
    assert_eq!(of_project, of_team);
    let of = made::column(&of_team, "projectId");
    assert_eq!(of, std::slice::from_ref(&project));
    app.delete(&one(&project, &team)).expect(204);
    app.delete(&one(&project, &team)).expect(204);
    app.patch(&one(&project, &team), &json!({"role": "viewer"}))
        .expect_error(404, "not-found");
    assert_eq!(app.get(&path(&project)).expect(200)["data"], json!([]));
}

#[test]
fn a_team_never_owns_a_project() {
    let app = App::start();
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let patch = |role: &str| app.patch(&one(&project, &team), &json!({"role": role}));
    for answer in [add(&app, &project, &team, "owner"), patch("owner")] {
        let error = answer.expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!("$.role"));
    }
    for answer in [add(&app, &project, &team, "member"), patch("member")] {
        let error = answer.expect_error(400, "role-not-given");
        assert!(error["message"].as_str().unwrap().contains("Use viewer"));
    }
    let long = "a".repeat(10_000);
    for role in ["", "Admin", "*", "\u{1}", &long] {
        add(&app, &project, &team, role).expect_error(400, "invalid-body");
        patch(role).expect_error(400, "invalid-body");
    }
}

#[test]
fn strange_identifiers_and_other_tenants_name_nothing() {
    let app = App::start();
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let other = app.other_tenant();
    let (theirs, foreign) = (made::project(&other), made::team(&other, "team"));
    add(&app, &project, &foreign, "viewer").expect_error(404, "not-found");
    add(&app, &theirs, &team, "viewer").expect_error(404, "not-found");
    app.delete(&one(&project, &foreign))
        .expect_error(404, "not-found");
    app.patch(&one(&project, &foreign), &json!({"role": "viewer"}))
        .expect_error(404, "not-found");
    let long = "a".repeat(10_000);
    for text in ["team:*", "*", "a#member", "@", "\u{1}", &long] {
        let error = add(&app, &project, text, "viewer").expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!("$.teamId"));
    }
    for text in ["team:*", "%2a", "a%23member", "%40", "%01", "%00"] {
        app.delete(&one(&project, text))
            .expect_error(404, "not-found");
        app.patch(&one(&project, text), &json!({"role": "viewer"}))
            .expect_error(404, "not-found");
    }
}

#[test]
fn lists_page_by_cursor() {
    let app = App::start();
    let projects: Vec<String> = (0..4).map(|_| made::project(&app)).collect();
    let teams: Vec<String> = (0..4)
        .map(|number| made::team(&app, &format!("t{number}")))
        .collect();
    for other in 1..4 {
        add(&app, &projects[0], &teams[other], "viewer").expect(201);
        add(&app, &projects[other], &teams[0], "viewer").expect(201);
    }
    add(&app, &projects[0], &teams[0], "viewer").expect(201);
    let of_team = format!("/v1/teams/{}/project-grants", teams[0]);
    for (path, key, expected) in [
        (path(&projects[0]), "teamId", teams),
        (of_team, "projectId", projects),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app
                .get(&format!("{path}?limit=3&order=asc{cursor}"))
                .expect(200);
            seen.extend(made::column(&page, key));
            let Some(next) = page["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, expected);
    }
}

#[test]
fn changes_at_once_answer_as_if_one_came_first() {
    let app = App::start();
    let replica = app.replica(|_| {});
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let grant = one(&project, &team);
    for _ in 0..15 {
        let both = together(
            || add(&app, &project, &team, "editor").status,
            || add(&replica, &project, &team, "editor").status,
        );
        assert_eq!(both, (201, 201));
        let (changed, removed) = together(
            || app.patch(&grant, &json!({"role": "admin"})).status,
            || replica.delete(&grant).status,
        );
        assert!([200, 404].contains(&changed), "{changed}");
        assert_eq!(removed, 204);
        let (first, second) = together(
            || add(&app, &project, &team, "viewer").status,
            || add(&replica, &project, &team, "admin").status,
        );
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!(both, [201, 409]);
        app.delete(&grant).expect(204);
    }
}

#[test]
fn a_grant_takes_admin_on_the_project_and_read_on_the_team() {
    let app = App::start_authorized();
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let [ann, ben, cleo] =
        ["Ann", "Ben", "Cleo"].map(|name| app.person(name, &format!("{name}@x.org")));
    let join = |path: String, user, role: &str| {
        let body = json!({"userId": user, "role": role});
        app.post(&path, &body).expect(201);
    };
    let (of_project, of_team) = (
        format!("/v1/projects/{project}/memberships"),
        format!("/v1/teams/{team}/memberships"),
    );
    join(of_project.clone(), ann, "admin");
    join(of_project.clone(), ben, "editor");
    join(of_project, cleo, "viewer");
    join(of_team.clone(), ben, "admin");
    let denied = |answer: Answer, user, lacks: &str| {
        let error = answer.expect(403)["error"].clone();
        let sentence = format!("permission denied, actor user:{user} lacks {lacks}");
        assert_eq!(error["message"], json!(sentence));
    };
    let by_ann = app.as_user(ann);
    let reads = format!("can_read on team:{team}");
    denied(add(&by_ann, &project, &team, "viewer"), ann, &reads);
    let admins = format!("can_admin on project:{project}");
    let by_ben = app.as_user(ben);
    denied(add(&by_ben, &project, &team, "viewer"), ben, &admins);
    by_ben.get(&path(&project)).expect(200);
    let writes = format!("can_write on project:{project}");
    denied(app.as_user(cleo).get(&path(&project)), cleo, &writes);
    join(of_team, ann, "member");
    add(&by_ann, &project, &team, "viewer").expect(201);
    let to = json!({"role": "editor"});
    denied(by_ben.patch(&one(&project, &team), &to), ben, &admins);
    denied(by_ben.delete(&one(&project, &team)), ben, &admins);
    by_ann.patch(&one(&project, &team), &to).expect(200);
    by_ann.delete(&one(&project, &team)).expect(204);
    // A team that is admin hands the project to whoever the team's admins add to it.
    add(&by_ann, &project, &team, "admin").expect(201);
    by_ben.patch(&one(&project, &team), &to).expect(200);
}
