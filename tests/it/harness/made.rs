//! What most tests begin with, made over the API: a project, a model provider, a tool, an agent.

use super::Client;
use serde_json::{Value, json};

/// The id of what was made.
pub(crate) fn id(made: &Value) -> String {
    made["id"].as_str().unwrap().to_owned()
}

pub(crate) fn project(client: &Client) -> String {
    id(&client
        .post("/v1/projects", &json!({"name": "project"}))
        .expect(201))
}

/// A provider with the models `small` and `large`, which nobody calls.
pub(crate) fn provider(client: &Client) -> String {
    let body = json!({
        "name": "provider",
        "baseUrl": "http://127.0.0.1:9/v1",
        "models": [{"name": "small", "prices": {"prompt": 0.15}}, {"name": "large"}],
    });
    id(&client.post("/v1/model-providers", &body).expect(201))
}

/// The body that registers a tool.
pub(crate) fn tool(project_id: &str, name: &str) -> Value {
    json!({
        "projectId": project_id,
        "name": name,
        "description": "Tells the time.",
        "argumentsSchema": {"type": "object", "properties": {"zone": {"type": "string"}}},
        "url": "http://127.0.0.1:9/clock",
    })
}

pub(crate) fn agent(client: &Client, project_id: &str, name: &str) -> String {
    let body = json!({"projectId": project_id, "name": name});
    id(&client.post("/v1/agents", &body).expect(201))
}

/// The body that makes a version.
pub(crate) fn version(provider_id: &str, version: &str) -> Value {
    json!({
        "version": version,
        "instructions": "Be brief.",
        "modelProviderId": provider_id,
        "model": "small",
    })
}

/// The strings under a key of a list's rows, in order.
pub(crate) fn column(page: &Value, key: &str) -> Vec<String> {
    let rows = page["data"].as_array().unwrap();
    rows.iter()
        .map(|row| row[key].as_str().unwrap().to_owned())
        .collect()
}

/// A person who was added, as the answer shows them.
pub(crate) fn person(client: &Client, email: &str, tenant_role: &str) -> Value {
    let body = json!({"email": email, "displayName": "Somebody", "tenantRole": tenant_role});
    client.post("/v1/identity/users", &body).expect(201)
}

/// A client with the first key of a person who was added.
pub(crate) fn enrolled(app: &super::App, person: &Value) -> Client {
    let body = json!({"code": person["enrolment"]["code"]});
    let nobody = app.with_token(None);
    let key = nobody.post("/v1/identity/enrolments", &body).expect(201);
    app.with_token(key["token"].as_str())
}

/// A team named `Team`.
pub(crate) fn team(client: &Client, slug: &str) -> String {
    let body = json!({"name": "Team", "slug": slug});
    id(&client.post("/v1/teams", &body).expect(201))
}

/// Gives a team a role on a project.
pub(crate) fn grant(client: &Client, project_id: &str, team_id: &str, role: &str) {
    let path = format!("/v1/projects/{project_id}/team-grants");
    let body = json!({"teamId": team_id, "role": role});
    client.post(&path, &body).expect(201);
}
