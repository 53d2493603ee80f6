//! Who names a secret in a tool decides where it is sent, so that takes what putting one takes.

use super::world::{Key, Person, World};
use crate::harness::Answer;
use serde_json::{Value, json};

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
