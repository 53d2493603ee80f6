//! Who names a secret in a tool decides where it is sent, so that takes what putting one takes, or a use that stands.

use super::world::{Key, Person, World};
use crate::harness::{Answer, App, made};
use serde_json::{Value, json};

/// What a refusal says of the use that is missing.
const WHICH: &str = "The secret KEY has no use for http://127.0.0.1:9 in this project. A tenant admin whose key has secrets:write can create it (POST /v1/secret-uses), or register the tool.";

fn register(world: &World, by: &Person, more: &Value) -> Answer {
    let mut body = json!({
        "projectId": world.project, "name": "clock", "description": "Tells the time.",
        "argumentsSchema": {"type": "object"}, "url": "http://127.0.0.1:9/",
    });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    by.client.post("/v1/tools", &body)
}

/// Outcome, stage and resource of each decision, and the last one's reason.
fn decided(world: &World, answer: &Answer) -> (Vec<String>, String) {
    let rows = world.decisions(answer);
    let of = |row: &super::world::Row| format!("{} {} {}", row.outcome, row.stage, row.resource);
    (
        rows.iter().map(of).collect(),
        rows.last().unwrap().reason.clone(),
    )
}

#[test]
fn naming_a_secret_in_a_tool_takes_a_tenant_admin_who_may_write_secrets() {
    let world = World::start();
    let (project, tenant) = (
        format!("project:{}", world.project),
        format!("tenant:{}", world.tenant_id()),
    );
    let named = [
        json!({"headers": [{"name": "Authorization", "secret": "KEY"}]}),
        json!({"signingSecret": "KEY"}),
    ];
    let padmin = world.person("member");
    world.grant(world.project, padmin.user_id, "admin");
    let mut limited = Key::whole();
    limited.capabilities = vec!["access:write", "env:write", "keys:write"];
    let nocap = world.key(world.app.seeds.user_id, &limited);
    let mut member = Key::whole();
    member.role = "member";
    let owner = world.key(padmin.user_id, &member);
    let mut of_project = Key::whole();
    of_project.project_id = Some(world.project);
    let keyhere = world.key(world.app.seeds.user_id, &of_project);
    for more in &named {
        let of_project = format!("allowed model {project}");
        for (by, refused) in [
            (&padmin, vec![format!("denied model {tenant}")]),
            (&owner, vec![format!("denied key-role {tenant}")]),
            (&keyhere, vec![format!("denied key-project {tenant}")]),
            (
                &nocap,
                vec![
                    format!("allowed model {tenant}"),
                    format!("denied key-capability {tenant}"),
                ],
            ),
        ] {
            let answer = register(&world, by, more);
            let (decisions, reason) = decided(&world, &answer);
            assert_eq!(decisions, [vec![of_project.clone()], refused].concat());
            let error = answer.expect_error(403, "permission-denied");
            assert_eq!(error["details"]["resource"], json!(tenant), "{error}");
            let said = error["message"].as_str().unwrap();
            assert!(said.ends_with(WHICH), "{said}");
            if by.key_id == nocap.key_id {
                assert!(
                    reason.ends_with("lacks the capability secrets:write"),
                    "{reason}"
                );
            }
        }
    }
    // A tool that names none is the project admin's business, as before.
    register(&world, &padmin, &json!({})).expect(201);
    let admin = world.key(world.app.seeds.user_id, &Key::whole());
    let mut more = named[0].clone();
    more["name"] = json!("other");
    let answer = register(&world, &admin, &more);
    let (decisions, _) = decided(&world, &answer);
    let expected = [
        format!("allowed model {project}"),
        format!("allowed model {tenant}"),
    ];
    assert_eq!(decisions, expected);
    answer.expect(201);
}

#[test]
fn a_project_admin_sends_a_secret_where_its_use_allows_and_nowhere_else() {
    let world = World::start();
    let named = json!({"headers": [{"name": "Authorization", "secret": "KEY"}]});
    let padmin = world.person("member");
    world.grant(world.project, padmin.user_id, "admin");
    let elsewhere = world.another_project();
    world.grant(elsewhere, padmin.user_id, "admin");
    let editor = world.person("member");
    world.grant(world.project, editor.user_id, "editor");
    let mut member = Key::whole();
    member.role = "member";
    let member = world.key(padmin.user_id, &member);
    let mut of_project = Key::whole();
    of_project.project_id = Some(world.project);
    let of_project = world.key(padmin.user_id, &of_project);
    let mut limited = Key::whole();
    limited.capabilities = Vec::new();
    let nocap = world.key(padmin.user_id, &limited);
    let target = "origin:http://127.0.0.1:9";
    let new = json!({"name": "KEY", "target": target, "projectId": world.project});
    // A project admin does not allow the use, whatever the key may do.
    for by in [&padmin, &member, &of_project, &nocap] {
        let refused = by.client.post("/v1/secret-uses", &new);
        refused.expect_error(403, "permission-denied");
    }
    let of_secret = world.app.post("/v1/secret-uses", &new).expect(201);
    let one = format!("/v1/secret-uses/{}", of_secret["id"].as_str().unwrap());
    padmin
        .client
        .delete(&one)
        .expect_error(403, "permission-denied");
    for (number, by) in [&padmin, &member, &of_project, &nocap]
        .into_iter()
        .enumerate()
    {
        let mut more = named.clone();
        more["name"] = json!(format!("clock{number}"));
        let answer = register(&world, by, &more);
        let (decisions, _) = decided(&world, &answer);
        assert_eq!(
            decisions,
            [format!("allowed model project:{}", world.project)]
        );
        answer.expect(201);
    }
    register(&world, &editor, &named).expect_error(403, "permission-denied");
    // Another host, another port, another project, another secret.
    for more in [
        json!({"url": "http://attacker.example/"}),
        json!({"url": "http://127.0.0.1:10/"}),
        json!({"url": "https://127.0.0.1:9/"}),
        json!({"url": "http://127.0.0.1:9@attacker.example/"}),
        json!({"projectId": elsewhere}),
        json!({"headers": [{"name": "Authorization", "secret": "OTHER"}]}),
        json!({"signingSecret": "OTHER"}),
    ] {
        let mut body = named.clone();
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let refused = register(&world, &padmin, &body);
        let error = refused.expect_error(403, "permission-denied");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("has no use for"), "{more}: {said}");
    }
    world.app.delete(&one).expect(204);
    let mut more = named.clone();
    more["name"] = json!("late");
    register(&world, &padmin, &more).expect_error(403, "permission-denied");
}

/// Without authorization everybody may register the tool. The use is written all the same, and its end stops the calls.
#[test]
fn without_authorization_a_tool_brings_its_uses_too() {
    let app = App::start();
    let project = app.maker().project();
    let member = made::person(&app, "ada@example.com", "member");
    let member = made::enrolled(&app, &member);
    let body = json!({
        "projectId": project, "name": "clock", "description": "", "argumentsSchema": {"type": "object"},
        "url": "http://127.0.0.1:9/", "signingSecret": "KEY",
    });
    member.post("/v1/tools", &body).expect(201);
    let uses = app.get("/v1/secret-uses").expect(200);
    assert_eq!(uses["data"][0]["projectId"], json!(project), "{uses}");
    assert_eq!(uses["data"][0]["target"], "origin:http://127.0.0.1:9");
}
