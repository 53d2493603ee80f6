//! Who puts variables, secrets and uses of secrets, by the capabilities, the role and the project of the key.

use super::world::{Key, World};
use crate::harness::secrets::Keys;
use serde_json::json;

const VARIABLES: &str = "/v1/environments/local/variables";

fn start() -> World {
    World::start_with(|options| options.secrets = Keys::new().options())
}

#[test]
fn each_capability_opens_its_own_writes() {
    let world = start();
    let value = json!({"value": "a-value"});
    for (capability, [variable, secret, of_secret]) in [
        ("env:write", [201, 403, 403]),
        ("secrets:write", [403, 201, 201]),
        ("keys:write", [403, 403, 403]),
        ("access:write", [403, 403, 403]),
    ] {
        let mut key = Key::whole();
        key.capabilities = vec![capability];
        let by = world.key(world.app.seeds.user_id, &key).client;
        let name = capability.replace(':', "_").to_uppercase();
        let one = format!("{VARIABLES}/{name}");
        let put = by.put(&one, &value);
        assert_eq!(put.status, variable, "{capability}: {put:?}");
        let put = by.put(&format!("/v1/secrets/local/S_{name}"), &value);
        assert_eq!(put.status, secret, "{capability}: {put:?}");
        let new = json!({"name": name, "target": "origin:https://a.example"});
        let made = by.post("/v1/secret-uses", &new);
        assert_eq!(made.status, of_secret, "{capability}: {made:?}");
        by.get("/v1/environments").expect(200);
        by.get(VARIABLES).expect(200);
        let gone = by.delete(&one).status;
        assert_eq!(
            gone,
            if variable == 201 { 204 } else { 403 },
            "{capability}"
        );
    }
}

#[test]
fn members_read_variables_and_tenant_admins_alone_put_them() {
    let world = start();
    let value = json!({"value": "a-value"});
    let one = format!("{VARIABLES}/MODE");
    world.app.put(&one, &value).expect(201);
    let padmin = world.person("member");
    world.grant(world.project, padmin.user_id, "admin");
    let stranger = world.person("member");
    let mut member = Key::whole();
    member.role = "member";
    let member = world.key(world.app.seeds.user_id, &member);
    let mut of_project = Key::whole();
    of_project.project_id = Some(world.project);
    let of_project = world.key(world.app.seeds.user_id, &of_project);
    for by in [&padmin, &stranger, &member, &of_project] {
        let by = &by.client;
        assert_eq!(by.get(&one).expect(200)["value"], "a-value");
        by.get(VARIABLES).expect(200);
        by.get("/v1/environments").expect(200);
        by.put(&one, &value).expect_error(403, "permission-denied");
        by.delete(&one).expect_error(403, "permission-denied");
        by.get("/v1/secret-uses")
            .expect_error(403, "permission-denied");
    }
}
