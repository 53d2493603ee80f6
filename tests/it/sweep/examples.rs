//! The examples of the API description: each is taken as it stands, with an id of the world in the place of one that is
//! invented.

use super::requests;
use super::rows::Rows;
use super::world::World;
use crate::harness::OWN_PAGE;
use agent_runtime::http::access::Rule;
use agent_runtime::server;
use serde_json::{Value, json};

/// Puts what the world has in the place of what an example invents.
fn fill(world: &World, provider: &Value, name: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| fill(world, provider, name, item)),
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(name, field)| fill(world, provider, name, field)),
        _ => {
            *value = match name {
                "projectId" | "agentId" | "toolIds" | "runIds" => {
                    json!(world.id(&name.replace("Ids", "Id")))
                }
                "userId" => json!(world.id("stranger")),
                "teamId" => json!(world.id("grantedTeamId")),
                // The version's model is one of the provider of another example.
                "modelProviderId" => provider.clone(),
                "code" => json!(world.code()),
                "token" => json!(world.client("admin").token()),
                _ => return,
            }
        }
    }
}

#[test]
fn every_example_of_the_description_is_taken() {
    let world = World::start(false);
    let described = world.app.get("/openapi.json").expect(200);
    let example_of = |reference: &Value| {
        let name = reference.as_str().unwrap().rsplit('/').next().unwrap();
        described["components"]["schemas"][name]["examples"][0].clone()
    };
    let signing = json!("#/components/schemas/PutSecret");
    let signing = example_of(&signing);
    for name in ["SIGNING", "OIDC_PLANT"] {
        let path = format!("/v1/secrets/production/{name}");
        let put = world.app.put(&path, &signing);
        assert!(put.status < 300, "{}", put.text);
    }
    let provider = json!("#/components/schemas/NewModelProvider");
    let mut provider = example_of(&provider);
    provider["name"] = json!("of the example");
    let provider = world.app.post("/v1/model-providers", &provider).expect(201);
    let mut before = Rows::read(&mut world.database());
    let mut taken = 0;
    for route in server::table(true, true).routes() {
        let method = route.method.text();
        let operation = &described["paths"][route.path][method.to_lowercase()];
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        if body.is_null() {
            continue;
        }
        let mut body = example_of(body);
        fill(&world, &provider["id"], "", &mut body);
        let path = requests::path(&world, route);
        let from: &[(&str, &str)] = match route.rule {
            Rule::SigningIn => &[OWN_PAGE],
            _ => &[],
        };
        let answer = world.app.send(method, &path, Some(body.to_string()), from);
        assert!(
            answer.status < 300,
            "{method} {path} {body}: {}",
            answer.text
        );
        taken += 1;
        requests::await_end(&world, route, &answer);
        let mut database = world.database();
        let after = Rows::read(&mut database);
        before.restore(&mut database, &after);
    }
    assert!(taken > 30, "{taken}");
}
