//! The example agent (`examples/assistant.json`), created through the API as a user would.
//!
//! Everything is looked up by name, so a further start creates nothing twice. If the model or the
//! tool's port has changed, a new version is created and promoted, and the old ones stay.

use super::super::client::{Client, id_of};
use super::super::{Failure, Outcome};
use serde_json::{Value, json};

const ASSISTANT: &str = include_str!("../../../examples/assistant.json");

/// What the example needs and only `dev` knows.
pub(super) struct Ground<'a> {
    /// The base URL of the model provider.
    pub(super) provider_url: &'a str,
    /// The name of its API key, if it has one.
    pub(super) api_key_name: Option<&'a str>,
    /// The model; none: the example's own, of the scripted provider.
    pub(super) model: Option<&'a str>,
    /// The tool's URL without a final slash.
    pub(super) tool_url: &'a str,
}

/// What was created or found.
pub(super) struct Example {
    /// The agent's name.
    pub(super) name: String,
    /// The agent's id.
    pub(super) agent_id: String,
    /// The agent's model.
    pub(super) model: String,
}

/// Creates the example, or finds it.
pub(super) fn load(client: &mut Client, ground: &Ground<'_>) -> Outcome<Example> {
    let example: Value =
        serde_json::from_str(ASSISTANT).map_err(|error| Failure::new(error.to_string()))?;
    let project_id = named(client, "/v1/projects", "", &example["project"])?;
    let scope = format!("?projectId={project_id}");
    let (provider_id, model) = provider(client, &example, ground)?;
    let mut tool_ids = Vec::new();
    for tool in example["tools"].as_array().into_iter().flatten() {
        tool_ids.push(self::tool(client, tool, &project_id, ground)?);
    }
    let mut agent = example["agent"].clone();
    agent["projectId"] = json!(project_id);
    let agent_id = named(client, "/v1/agents", &scope, &agent)?;
    let mut version = example["version"].clone();
    version["modelProviderId"] = json!(provider_id);
    version["model"] = json!(model);
    version["toolIds"] = json!(tool_ids);
    live(client, &agent_id, &version)?;
    Ok(Example {
        name: agent["name"].as_str().unwrap_or_default().to_owned(),
        agent_id,
        model,
    })
}

/// The id of the row with the body's name, created if missing.
fn named(client: &mut Client, path: &str, filter: &str, body: &Value) -> Outcome<String> {
    let rows = format!("{path}{filter}");
    match client.find(&rows, |row| row["name"] == body["name"])? {
        Some(row) => id_of(&row),
        None => id_of(&client.post(path, body)?),
    }
}

/// The provider's id and the model's name. The provider's URL is updated.
fn provider(
    client: &mut Client,
    example: &Value,
    ground: &Ground<'_>,
) -> Outcome<(String, String)> {
    const PATH: &str = "/v1/model-providers";
    let mut body = example["modelProvider"].clone();
    body["baseUrl"] = json!(ground.provider_url);
    body["apiKeyName"] = json!(ground.api_key_name);
    let mut model = example["model"].clone();
    if let Some(name) = ground.model {
        // Prices are up to the owner of the provider.
        model = json!({"name": name});
    }
    let name = model["name"].as_str().unwrap_or_default().to_owned();
    let Some(stands) = client.find(PATH, |row| row["name"] == body["name"])? else {
        body["models"] = json!([model]);
        return Ok((id_of(&client.post(PATH, &body)?)?, name));
    };
    // Models that older versions use stay.
    let mut models = stands["models"].as_array().cloned().unwrap_or_default();
    if !models.iter().any(|known| known["name"] == name) {
        models.push(model);
    }
    body["models"] = json!(models);
    let id = id_of(&stands)?;
    client.patch(&format!("{PATH}/{id}"), &body)?;
    Ok((id, name))
}

/// The id of the tool at its present URL. A tool never changes, so if its URL differs, a new one
/// with another name is created.
fn tool(
    client: &mut Client,
    tool: &Value,
    project_id: &str,
    ground: &Ground<'_>,
) -> Outcome<String> {
    let mut body = tool.clone();
    let path = body["path"].take();
    if let Value::Object(fields) = &mut body {
        fields.remove("path");
    }
    let url = format!("{}{}", ground.tool_url, path.as_str().unwrap_or_default());
    body["url"] = json!(url);
    body["projectId"] = json!(project_id);
    let stands = client.all(&format!("/v1/tools?projectId={project_id}"), |_| true)?;
    let same = |row: &&Value| {
        ["url", "argumentsSchema", "description", "timeoutMs"]
            .iter()
            .all(|field| row[*field] == body[*field])
    };
    if let Some(row) = stands.iter().find(same) {
        return id_of(row);
    }
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    let taken = |name: &str| stands.iter().any(|row| row["name"] == name);
    let free = (2..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone())
        .chain(free)
        .find(|name| !taken(name));
    body["name"] = json!(free);
    id_of(&client.post("/v1/tools", &body)?)
}

/// Creates and promotes the version, unless the live one is equal.
fn live(client: &mut Client, agent_id: &str, version: &Value) -> Outcome {
    let path = format!("/v1/agents/{agent_id}");
    let agent = client.get(&path)?;
    if let Some(live) = agent["liveVersion"].as_str() {
        let stands = client.get(&format!("{path}/versions/{live}"))?;
        let fields = ["instructions", "modelProviderId", "model", "toolIds"];
        if fields.iter().all(|field| stands[*field] == version[*field]) {
            return Ok(());
        }
    }
    let made = client.post(&format!("{path}/versions"), version)?;
    client.post(
        &format!("{path}/promote"),
        &json!({"version": made["version"]}),
    )?;
    Ok(())
}
