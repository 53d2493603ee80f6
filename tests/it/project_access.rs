//! `/v1/projects/{projectId}/access`.

use crate::harness::{App, Client, made};
use serde_json::{Value, json};
use uuid::Uuid;

fn path(project: &str) -> String {
    format!("/v1/projects/{project}/access")
}

fn join(client: &Client, project: &str, user_id: Uuid, role: &str) -> Value {
    let path = format!("/v1/projects/{project}/memberships");
    let body = json!({"userId": user_id, "role": role});
    client.post(&path, &body).expect(201)["joinedAt"].clone()
}

fn join_team(client: &Client, team: &str, user_id: Uuid, role: &str) {
    let path = format!("/v1/teams/{team}/memberships");
    let body = json!({"userId": user_id, "role": role});
    client.post(&path, &body).expect(201);
}

/// Everything, in pages of this many.
fn paged(client: &Client, project: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let query = format!("{}?limit={limit}{cursor}", path(project));
        let page = client.get(&query).expect(200);
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit);
        all.extend(data.iter().cloned());
        let Some(next) = page["nextCursor"].as_str() else {
            assert_eq!(page["hasMore"], json!(false));
            return all;
        };
        assert_eq!(data.len(), limit);
        cursor = format!("&cursor={next}");
    }
}

fn names(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .map(|row| row["displayName"].as_str().unwrap())
        .collect()
}

#[test]
fn without_an_authorization_server_there_is_no_access_list() {
    let app = App::start();
    let project = made::project(&app);
    app.get(&path(&project))
        .expect_error(501, "project-access-unsupported");
    app.get("/v1/projects/%2a/access")
        .expect_error(404, "not-found");
}

/// Writes the ways that no route of these makes: Ben's older role, Cleo's role without a membership
/// and Ann's behind hers, and Eve as admin of the project's org.
fn other_ways(app: &App, project: &str, [ann, ben, cleo, eve]: [Uuid; 4]) {
    let (tenant_id, seed) = (app.seeds.tenant_id, app.seeds.user_id);
    let org = app.clock.new_id();
    app.marked_sql(
        &format!("project:{project}"),
        &format!(
            "update project_memberships set role = 'member' where user_id = '{ben}';
             insert into project_direct_roles (tenant_id, project_id, user_id, role)
               values ('{tenant_id}', '{project}', '{cleo}', 'owner'),
                 ('{tenant_id}', '{project}', '{ann}', 'admin');
             insert into orgs (tenant_id, org_id, name, created_by, created_at, updated_at)
               values ('{tenant_id}', '{org}', 'org', '{seed}', now(), now());
             insert into org_admins (tenant_id, org_id, user_id, joined_at)
               values ('{tenant_id}', '{org}', '{eve}', now());
             update projects set org_id = '{org}' where project_id = '{project}'"
        ),
    );
}

fn direct(role: &str, joined_at: &Value) -> Value {
    json!({"kind": "direct", "role": role, "joinedAt": joined_at})
}

fn person(id: Uuid, name: &str, role: &str, via: &[Value]) -> Value {
    json!({"principal": {"kind": "user", "id": id}, "displayName": name,
        "primaryEmail": format!("{name}@Example.org"), "role": role, "via": via})
}

/// The kinds of an entry's ways.
fn kinds(entry: &Value) -> Vec<&str> {
    let ways = entry["via"].as_array().unwrap();
    ways.iter()
        .map(|way| way["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn everybody_with_access_is_listed_once_with_every_way_in() {
    let app = App::start_authorized();
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let [ann, ben, cleo, dora, eve, finn, gone] =
        ["Ann", "Ben", "Cleo", "Dora", "Eve", "Finn", "Gone"]
            .map(|name| app.person(name, &format!("{name}@Example.org")));
    let account = app.service_account("pipeline");
    let ann_joined = join(&app, &project, ann, "editor");
    let ben_joined = join(&app, &project, ben, "viewer");
    let dora_joined = join(&app, &project, dora, "admin");
    let account_joined = join(&app, &project, account, "editor");
    join(&app, &project, gone, "owner");
    made::grant(&app, &project, &team, "editor");
    for (user, role) in [(dora, "member"), (finn, "admin"), (ann, "member")] {
        join_team(&app, &team, user, role);
    }
    other_ways(&app, &project, [ann, ben, cleo, eve]);
    app.deactivate(gone);
    let by_team = json!({"kind": "team", "teamId": team, "teamName": "Team", "role": "editor"});
    let all = paged(&app, &project, 200);
    let is_seed = |entry: &Value| entry["principal"]["id"] == json!(app.seeds.user_id);
    let (seeds, others): (Vec<Value>, Vec<Value>) = all.iter().cloned().partition(is_seed);
    let without = json!({"kind": "direct", "role": "owner"});
    let ann_ways = [direct("editor", &ann_joined), by_team.clone()];
    let dora_ways = [direct("admin", &dora_joined), by_team.clone()];
    assert_eq!(
        others,
        [
            person(cleo, "Cleo", "owner", &[without]),
            person(dora, "Dora", "admin", &dora_ways),
            person(eve, "Eve", "admin", &[json!({"kind": "org-admin"})]),
            person(ann, "Ann", "editor", &ann_ways),
            person(finn, "Finn", "editor", &[by_team]),
            json!({"principal": {"kind": "service-account", "id": account},
                "displayName": "pipeline", "role": "editor",
                "via": [direct("editor", &account_joined)]}),
            person(ben, "Ben", "member", &[direct("member", &ben_joined)]),
        ]
    );
    assert_eq!((seeds.len(), &seeds[0]["role"]), (1, &json!("owner")));
    assert_eq!(kinds(&seeds[0]), ["direct", "tenant-admin", "team"]);
    for limit in [1, 2, 3] {
        assert_eq!(paged(&app, &project, limit), all);
    }
}

#[test]
fn a_tenant_admin_who_has_no_role_is_in_by_the_tenant_and_by_every_team() {
    let app = App::start_authorized();
    let (project, team) = (made::project(&app), made::team(&app, "team"));
    let ann = app.person("Ann", "ann@example.org");
    app.marked_sql(
        &format!("tenant:{}", app.seeds.tenant_id),
        &format!("update users set tenant_role = 'admin' where user_id = '{ann}'"),
    );
    let via = || {
        let all = paged(&app, &project, 50);
        let of_ann = |row: &&Value| row["displayName"] == json!("Ann");
        let entry = all.iter().find(of_ann).unwrap();
        assert_eq!(entry["role"], json!("admin"));
        entry["via"].clone()
    };
    assert_eq!(via(), json!([{"kind": "tenant-admin"}]));
    made::grant(&app, &project, &team, "viewer");
    let by_team = json!({"kind": "team", "teamId": team, "teamName": "Team", "role": "viewer"});
    assert_eq!(via(), json!([{"kind": "tenant-admin"}, by_team]));
}

#[test]
fn it_takes_write_and_emails_are_for_admins() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let [ann, ben, cleo] =
        ["Ann", "Ben", "Cleo"].map(|name| app.person(name, &format!("{name}@example.org")));
    join(&app, &project, ann, "admin");
    join(&app, &project, ben, "editor");
    join(&app, &project, cleo, "viewer");
    for route in ["access", "memberships"] {
        let path = format!("/v1/projects/{project}/{route}");
        let emails = |client: &Client| {
            let page = client.get(&path).expect(200);
            let rows = page["data"].as_array().unwrap();
            let with = |row: &&Value| row.get("primaryEmail").is_some();
            (rows.len(), rows.iter().filter(with).count())
        };
        assert_eq!(emails(&app), (4, 3));
        assert_eq!(emails(&app.as_user(ann)), (4, 3));
        assert_eq!(emails(&app.as_user(ben)), (4, 0));
        let error = app.as_user(cleo).get(&path).expect(403)["error"].clone();
        let sentence =
            format!("permission denied, actor user:{cleo} lacks can_write on project:{project}");
        assert_eq!(error["message"], json!(sentence));
    }
}

#[test]
fn pages_go_on_rightly_whatever_changes_between_them() {
    let app = App::start_authorized();
    let project = made::project(&app);
    // Equal names but for case, names that differ in one letter beyond ASCII, and long ones.
    let long = "z".repeat(200);
    let mut people = Vec::new();
    for name in ["ann", "Ann", "ANN", "Zoë", "zoe", "Älva", &long, "b"] {
        let email = format!("p{}@example.org", people.len());
        let person = app.person(name, &email);
        join(&app, &project, person, "viewer");
        people.push(person);
    }
    let all = paged(&app, &project, 200);
    assert_eq!(all.len(), 9);
    let mut ids: Vec<&str> = all
        .iter()
        .map(|row| row["principal"]["id"].as_str().unwrap())
        .collect();
    let first = names(&all);
    assert_eq!(
        first[1..4]
            .iter()
            .map(|name| name.to_lowercase())
            .collect::<Vec<_>>(),
        ["ann"; 3]
    );
    assert_eq!(first[4], "b");
    for limit in 1..=9 {
        assert_eq!(paged(&app, &project, limit), all, "{limit}");
    }
    // The row that the cursor stands on is gone, and one before it is raised.
    let page = app.get(&format!("{}?limit=4", path(&project))).expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    app.delete(&format!("/v1/projects/{project}/memberships/{}", ids[3]))
        .expect(204);
    app.patch(
        &format!("/v1/projects/{project}/memberships/{}", ids[1]),
        &json!({"role": "admin"}),
    )
    .expect(200);
    let rest = app
        .get(&format!("{}?cursor={cursor}", path(&project)))
        .expect(200);
    let rest: Vec<&str> = rest["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["principal"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(rest, ids.split_off(4));
    let other = made::project(&app);
    for path in [
        format!("{}?cursor={cursor}", path(&other)),
        format!("/v1/projects/{project}/memberships?cursor={cursor}"),
        format!("{}?cursor=AQ", path(&project)),
    ] {
        app.get(&path).expect_error(400, "invalid-cursor");
    }
    app.get(&format!("{}?order=desc", path(&project)))
        .expect_error(400, "invalid-request");
}
