//! `/v1/teams`.

use crate::harness::{App, made, together};
use serde_json::{Value, json};

#[test]
fn a_team_is_made_read_renamed_listed_and_deleted() {
    let app = App::start();
    let body = json!({"name": "Search", "slug": "search-2", "description": "Finds things."});
    let made = app.post("/v1/teams", &body).expect(201);
    for (key, value) in body.as_object().unwrap() {
        assert_eq!(&made[key], value);
    }
    assert_eq!(made["createdBy"], json!(app.seeds.user_id));
    let path = format!("/v1/teams/{}", made::id(&made));
    assert_eq!(app.get(&path).expect(200), made);
    let members = app.get(&format!("{path}/memberships")).expect(200);
    assert_eq!(made::column(&members, "role"), ["admin"]);
    assert_eq!(
        made::column(&members, "userId"),
        [app.seeds.user_id.to_string()]
    );
    let renamed = app.patch(&path, &json!({"name": "Finders"})).expect(200);
    let shown = |value: &Value| (value["name"].clone(), value["slug"].clone());
    assert_eq!(shown(&renamed), (json!("Finders"), json!("search-2")));
    assert_eq!(renamed["description"], made["description"]);
    let refused = app.patch(&path, &json!({"slug": "finders"}));
    refused.expect_error(400, "invalid-body");
    let listed = app.get("/v1/teams").expect(200);
    assert_eq!(listed, json!({"data": [renamed], "hasMore": false}));
    app.delete(&path).expect(204);
    for answer in [
        app.get(&path),
        app.delete(&path),
        app.patch(&path, &json!({"name": "a"})),
        app.get(&format!("{path}/memberships")),
        app.get(&format!("{path}/project-grants")),
    ] {
        answer.expect_error(404, "not-found");
    }
}

#[test]
fn a_slug_is_plain_and_one_teams_in_the_tenant() {
    let app = App::start();
    let make = |slug: &str| app.post("/v1/teams", &json!({"name": "Team", "slug": slug}));
    let long = "a".repeat(101);
    let longer = "a".repeat(10_000);
    for slug in [
        "", "A", "a b", "a_b", "ä", "team:a", "a#member", "*", "a@b", "a\u{1}", "a\n", &long,
        &longer,
    ] {
        let error = make(slug).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!("$.slug"), "{slug}");
    }
    let made = make("a-1").expect(201);
    assert_eq!(made["description"], json!(null));
    make("a-1").expect_error(409, "already-exists");
    make(&"a".repeat(100)).expect(201);
    let other = app.other_tenant();
    let theirs = json!({"name": "Team", "slug": "a-1"});
    other.post("/v1/teams", &theirs).expect(201);
    // A slug is free again once its team is gone.
    app.delete(&format!("/v1/teams/{}", made::id(&made)))
        .expect(204);
    make("a-1").expect(201);
}

#[test]
fn a_name_may_hold_what_it_likes_within_bounds() {
    let app = App::start();
    let team = made::team(&app, "a");
    let path = format!("/v1/teams/{team}");
    for name in ["user:*", "a#member", "@", "\u{1}", "*"] {
        let renamed = app.patch(&path, &json!({"name": name})).expect(200);
        assert_eq!(renamed["name"], json!(name));
    }
    let long = "a".repeat(10_000);
    for (key, value) in [
        ("name", json!("")),
        ("name", json!(long)),
        ("name", json!("a\u{0}")),
        ("description", json!(long)),
    ] {
        let error = app.patch(&path, &json!({key: value}));
        error.expect_error(400, "invalid-body");
    }
}

#[test]
fn strange_identifiers_name_no_team() {
    let app = App::start();
    let long = "a".repeat(10_000);
    for text in ["team:*", "%2a", "a%23member", "%40", "%01", "%00", &long] {
        let path = format!("/v1/teams/{text}");
        for answer in [
            app.get(&path),
            app.delete(&path),
            app.patch(&path, &json!({"name": "a"})),
            app.get(&format!("{path}/memberships")),
            app.get(&format!("{path}/project-grants")),
        ] {
            assert!([404, 431].contains(&answer.status), "{text}: {answer:?}");
        }
    }
}

#[test]
fn deleting_a_team_takes_the_access_that_it_gave() {
    let app = App::start();
    let (first, second) = (made::project(&app), made::project(&app));
    let (team, other) = (made::team(&app, "a"), made::team(&app, "b"));
    for project in [&first, &second] {
        for team in [&team, &other] {
            made::grant(&app, project, team, "editor");
        }
    }
    let desired = |object: &str| -> i64 {
        let asked = "select coalesce(sum(desired), 0)::bigint from authz_objects where object = $1";
        let mut client = app.database.client();
        client.query_one(asked, &[&object]).unwrap().get(0)
    };
    let objects = [
        format!("team:{team}"),
        format!("project:{first}"),
        format!("project:{second}"),
    ];
    let before: Vec<i64> = objects.iter().map(|object| desired(object)).collect();
    let other_before = desired(&format!("team:{other}"));
    app.delete(&format!("/v1/teams/{team}")).expect(204);
    let after: Vec<i64> = objects.iter().map(|object| desired(object)).collect();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before + 1, *after, "each is told of");
    }
    assert_eq!(other_before, desired(&format!("team:{other}")));
    for project in [&first, &second] {
        let grants = app
            .get(&format!("/v1/projects/{project}/team-grants"))
            .expect(200);
        let of = made::column(&grants, "teamId");
        assert_eq!(of, std::slice::from_ref(&other));
    }
}

#[test]
fn a_team_that_is_deleted_while_it_is_granted_or_joined_leaves_nothing_behind() {
    let app = App::start();
    let replica = app.replica(|_| {});
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    let left = || -> i64 {
        let all =
            "select (select count(*) from team_grants) + (select count(*) from team_memberships)";
        app.database.client().query_one(all, &[]).unwrap().get(0)
    };
    for round in 0..12 {
        let team = made::team(&app, &format!("t{round}"));
        let path = format!("/v1/teams/{team}");
        let other = || match round % 3 {
            0 => {
                let body = json!({"teamId": team, "role": "admin"});
                replica.post(&format!("/v1/projects/{project}/team-grants"), &body)
            }
            1 => {
                let body = json!({"userId": ann, "role": "member"});
                replica.post(&format!("{path}/memberships"), &body)
            }
            _ => replica.delete(&path),
        };
        let (deleted, other) = together(|| app.delete(&path).status, || other().status);
        if round % 3 == 2 {
            let mut both = [deleted, other];
            both.sort_unstable();
            assert_eq!(both, [204, 404]);
        } else {
            assert_eq!(deleted, 204);
            assert!([201, 404].contains(&other), "{other}");
        }
        assert_eq!(left(), 0);
    }
}

#[test]
fn of_two_teams_with_one_slug_one_is_made() {
    let app = App::start();
    let replica = app.replica(|_| {});
    for round in 0..8 {
        let body = json!({"name": "Team", "slug": format!("s{round}")});
        let (first, second) = together(
            || app.post("/v1/teams", &body).status,
            || replica.post("/v1/teams", &body).status,
        );
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!(both, [201, 409]);
    }
}

#[test]
fn who_may_do_what_with_a_team() {
    let app = App::start_authorized();
    let (team, other) = (made::team(&app, "team"), made::team(&app, "other"));
    let path = format!("/v1/teams/{team}");
    let [ann, ben, cleo, dora] =
        ["Ann", "Ben", "Cleo", "Dora"].map(|name| app.person(name, &format!("{name}@x.org")));
    let members = format!("{path}/memberships");
    let body = |user, role: &str| json!({"userId": user, "role": role});
    app.post(&members, &body(ann, "admin")).expect(201);
    app.post(&members, &body(ben, "member")).expect(201);
    let [by_ann, by_ben, by_cleo] = [ann, ben, cleo].map(|user| app.as_user(user));
    // A plain member sees the team and not who else is in it; a stranger not even the team.
    let listed = |client: &crate::harness::Client| {
        made::column(&client.get("/v1/teams?order=asc").expect(200), "id")
    };
    assert_eq!(listed(&app), [team.clone(), other.clone()]);
    assert_eq!(listed(&by_ann), std::slice::from_ref(&team));
    assert_eq!(listed(&by_ben), std::slice::from_ref(&team));
    assert!(listed(&by_cleo).is_empty());
    by_ben.get(&path).expect(200);
    assert_eq!(by_ben.get(&format!("/v1/teams/{other}")).status, 403);
    for (client, user) in [(&by_ben, ben), (&by_cleo, cleo)] {
        let to = json!({"role": "admin"});
        for answer in [
            client.get(&members),
            client.get(&format!("{path}/project-grants")),
            client.patch(&path, &json!({"name": "mine"})),
            client.delete(&path),
            client.post(&members, &body(dora, "member")),
            client.patch(&format!("{members}/{user}"), &to),
            client.delete(&format!("{members}/{ann}")),
        ] {
            let error = answer.expect(403)["error"].clone();
            let sentence =
                format!("permission denied, actor user:{user} lacks can_admin on team:{team}");
            assert_eq!(error["message"], json!(sentence));
        }
    }
    assert_eq!(by_cleo.get(&path).status, 403);
    // Its admins decide about it; making one takes a tenant admin.
    by_ann.get(&members).expect(200);
    by_ann.get(&format!("{path}/project-grants")).expect(200);
    by_ann.patch(&path, &json!({"name": "Ours"})).expect(200);
    by_ann.post(&members, &body(dora, "admin")).expect(201);
    by_ann.delete(&format!("{members}/{dora}")).expect(204);
    let new = json!({"name": "New", "slug": "new"});
    let error = by_ann.post("/v1/teams", &new).expect(403)["error"].clone();
    let tenant = format!("tenant:{}", app.seeds.tenant_id);
    assert_eq!(error["details"]["resource"], json!(tenant));
    by_ann.delete(&path).expect(204);
}

#[test]
fn what_a_team_gives_and_takes_every_replica_knows() {
    let app = App::start_authorized();
    let replica = app.replica(|_| {});
    replica.is_in_step();
    let project = made::project(&app);
    let ann = app.person("Ann", "ann@example.org");
    let elsewhere = replica.with_token(Some(app.as_user(ann).token()));
    let may = || {
        [
            format!("/v1/projects/{project}"),
            format!("/v1/projects/{project}/memberships"),
        ]
        .map(|path| elsewhere.get(&path).status)
    };
    for round in 0..4 {
        let team = made::team(&app, &format!("t{round}"));
        let path = format!("/v1/teams/{team}");
        let member =
            json!({"userId": ann, "role": if round % 2 == 0 { "member" } else { "admin" }});
        let join = || {
            app.post(&format!("{path}/memberships"), &member)
                .expect(201)
        };
        assert_eq!(may(), [403, 403]);
        join();
        assert_eq!(may(), [403, 403]);
        made::grant(&app, &project, &team, "viewer");
        assert_eq!(may(), [200, 403]);
        let grant = format!("/v1/projects/{project}/team-grants/{team}");
        app.patch(&grant, &json!({"role": "editor"})).expect(200);
        assert_eq!(may(), [200, 200]);
        app.delete(&format!("{path}/memberships/{ann}")).expect(204);
        assert_eq!(may(), [403, 403]);
        join();
        assert_eq!(may(), [200, 200]);
        app.delete(&grant).expect(204);
        assert_eq!(may(), [403, 403]);
        made::grant(&app, &project, &team, "admin");
        assert_eq!(may(), [200, 200]);
        assert_eq!(elsewhere.get(&path).status, 200);
        app.delete(&path).expect(204);
        assert_eq!(may(), [403, 403]);
        assert_eq!(elsewhere.get(&path).status, 404);
    }
}
