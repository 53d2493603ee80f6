//! `/v1/projects`.

use crate::harness::{App, eventually};
use serde_json::{Value, json};

#[test]
fn a_project_is_made_read_renamed_and_listed() {
    let app = App::start();
    let made = app
        .post("/v1/projects", &json!({"name": "first"}))
        .expect(201);
    assert_eq!(made["createdBy"], json!(app.seeds.user_id));
    let path = format!("/v1/projects/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&path).expect(200), made);
    let renamed = app.patch(&path, &json!({"name": "second"})).expect(200);
    assert_eq!(renamed["name"], json!("second"));
    assert_eq!(app.get(&path).expect(200), renamed);
    let listed = app.get("/v1/projects").expect(200);
    assert_eq!(listed, json!({"data": [renamed], "hasMore": false}));
    let role: String = app
        .database
        .client()
        .query_one("select role from project_memberships", &[])
        .unwrap()
        .get(0);
    assert_eq!(role, "owner");
}

#[test]
fn a_list_pages_by_cursor_in_either_order() {
    let app = App::start();
    for number in 1..=5 {
        app.post("/v1/projects", &json!({"name": format!("p{number}")}))
            .expect(201);
    }
    for (order, expected) in [("asc", "p1 p2 p3 p4 p5"), ("desc", "p5 p4 p3 p2 p1")] {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app
                .get(&format!("/v1/projects?limit=2&order={order}{cursor}"))
                .expect(200);
            for project in page["data"].as_array().unwrap() {
                names.push(project["name"].as_str().unwrap().to_owned());
            }
            if page["hasMore"] == json!(false) {
                assert!(page.get("nextCursor").is_none());
                break;
            }
            cursor = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
        }
        assert_eq!(names.join(" "), expected);
        let reversed = if order == "asc" { "desc" } else { "asc" };
        app.get(&format!("/v1/projects?limit=2&order={reversed}{cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    app.get("/v1/projects?limit=0")
        .expect_error(400, "invalid-request");
    app.get("/v1/projects?limit=201")
        .expect_error(400, "invalid-request");
    app.get("/v1/projects?limit=x")
        .expect_error(400, "invalid-request");
    app.get("/v1/projects?colour=red")
        .expect_error(400, "invalid-request");
}

#[test]
fn what_is_wrong_with_a_body_is_said() {
    let app = App::start();
    let post = |body: &str, kind: &str| {
        let headers = [("content-type", kind)];
        app.send("POST", "/v1/projects", Some(body.to_owned()), &headers)
    };
    let error = post(r#"{"name":7}"#, "application/json").expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.name"));
    post("{", "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"a","owner":"b"}"#, "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"a\u0000b"}"#, "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"  "}"#, "application/json").expect_error(400, "invalid-body");
    post(r#"{"name":"a"}"#, "text/plain").expect_error(415, "unsupported-media-type");
    let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(300 * 1024));
    post(&long, "application/json").expect_error(413, "body-too-large");
}

#[test]
fn a_page_of_few_readable_projects_among_many_reads_few_pages_of_the_database() {
    let app = App::start();
    let (tenant_id, user_id) = (app.seeds.tenant_id, app.seeds.user_id);
    let mut database = app.database.client();
    // Most of them are somebody else's, and the user's are the oldest.
    let fill = "with other as (
          insert into users (tenant_id, user_id, display_name, created_at)
          select tenant_id, gen_random_uuid(), 'other', now() from tenants where tenant_id = $1
          returning user_id
        ), made as (
          insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
          select $1, lpad(to_hex(place), 32, '0')::uuid, 'project', user_id, now(), now()
          from other, generate_series(1, 5000) as place
          returning project_id, created_by
        )
        insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
        select $1, project_id, case when project_id < $3 then $2 else created_by end, 'editor', now()
        from made";
    let fourth = uuid::Uuid::from_u128(4);
    database
        .execute(fill, &[&tenant_id, &user_id, &fourth])
        .unwrap();
    assert_reads_few_pages(&mut database, tenant_id, user_id, 3);
}

#[test]
fn a_page_of_who_is_on_none_of_many_projects_reads_few_pages_of_the_database() {
    let app = App::start();
    let (tenant_id, user_id) = (app.seeds.tenant_id, app.seeds.user_id);
    let mut database = app.database.client();
    // All of them are one other user's and one team's, so that the planner expects as much of anyone.
    let fill = "with other as (
          insert into users (tenant_id, user_id, display_name, created_at)
          values ($1, gen_random_uuid(), 'other', now())
          returning user_id
        ), teams_made as (
          insert into teams (tenant_id, team_id, name, slug, created_by, created_at, updated_at)
          select $1, gen_random_uuid(), name, name, $2, now(), now()
          from (values ('with-grants'), ('without')) as named (name)
          returning team_id, name
        ), joined as (
          insert into team_memberships (tenant_id, team_id, user_id, role, joined_at)
          select $1, team_id, $2, 'member', now() from teams_made where name = 'without'
        ), made as (
          insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
          select $1, lpad(to_hex(place), 32, '0')::uuid, 'project', user_id, now(), now()
          from other, generate_series(1, 20000) as place
          returning project_id, created_by
        ), granted as (
          insert into team_grants (tenant_id, project_id, team_id, role, created_by, created_at, updated_at)
          select $1, project_id, team_id, 'viewer', created_by, now(), now()
          from made, teams_made where teams_made.name = 'with-grants'
        )
        insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
        select $1, project_id, created_by, 'owner', now() from made";
    database.execute(fill, &[&tenant_id, &user_id]).unwrap();
    assert_reads_few_pages(&mut database, tenant_id, user_id, 0);
}

/// A page from either end has so many projects, and takes few pages of the database.
fn assert_reads_few_pages(
    database: &mut postgres::Client,
    tenant_id: uuid::Uuid,
    user_id: uuid::Uuid,
    projects: usize,
) {
    for newest_first in [false, true] {
        let page = format!(
            "select * from readable_projects('{tenant_id}', '{user_id}', null, 51, {newest_first})"
        );
        let explain = format!("explain (analyze, buffers, format json) {page}");
        // A snapshot that the server has open meanwhile keeps VACUUM from saying that all rows of a page are visible.
        eventually("a page that reads few pages of the database", || {
            database.batch_execute("vacuum analyze").unwrap();
            // The first time it is planned.
            assert_eq!(database.query(&page, &[]).unwrap().len(), projects);
            let said: Value = database.query_one(&explain, &[]).unwrap().get(0);
            let read = &said[0]["Plan"]["Shared Hit Blocks"];
            read.as_i64().filter(|pages| *pages < 50)
        });
    }
}
