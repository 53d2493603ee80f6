//! `agents push`: makes a file an agent's version on a running server. The same file again changes nothing.

use super::client::{Client, Which, id_of};
use super::pushed::{Pushed, Renamed, kept};
use super::terminal::{self, printable, say_json};
use super::{Failure, Outcome, World, names};
use crate::guardrails::Guardrail;
use crate::model::Parameters;
use crate::runtime::turn::definition::Limits;
use crate::store::agent_versions::Override;
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agent-runtime agents push assistant.yaml
  agent-runtime agents push assistant.yaml --project support --promote

The file, in JSON or YAML:

  name: assistant
  project: support                       or --project
  description: Answers customers.
  version: 1.0.0                         left out: the next one
  modelProvider: openai                  by name or id
  model: gpt-4o-mini
  instructions: |
    Answer briefly.
  tools: [clock, look_up_order]          of the project, by name or id
  parameters: {temperature: 0.2}
  limits: {maxSteps: 8}
  outputSchema: {type: object}
  overrides: [model, parameters]         what a run may set in their place
  guardrails: [{builtin: secrets, at: [output], action: redact}]
  streaming: held                        or unchecked: text is streamed before its verdict

Registers the agent if the project does not have it. A version is never changed. The same one again changes nothing, and \
without `version` a file that says something else than the latest version makes the next one.";

/// The fields of the file.
const FIELDS: [&str; 14] = [
    "name",
    "project",
    "description",
    "version",
    "modelProvider",
    "model",
    "instructions",
    "tools",
    "parameters",
    "limits",
    "outputSchema",
    "overrides",
    "guardrails",
    "streaming",
];

/// Which fields of a version's body have another name in the file.
const RENAMED: [Renamed<'_>; 2] = [
    ("$.modelProviderId", "$.modelProvider"),
    ("$.toolIds", "$.tools"),
];

/// Arguments of `agents push`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Push {
    /// The agent, in JSON or YAML; `-` is stdin
    file: PathBuf,
    /// The project of the agent, by id or name [default: the one that the file names]
    #[arg(long)]
    project: Option<String>,
    /// Also make it the version that runs if none is named
    #[arg(long)]
    promote: bool,
    /// Print the agent as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Pushes an agent.
///
/// # Errors
/// The file has faults, or the server does not take it.
pub(super) fn run(world: &World, arguments: &Push) -> Outcome {
    let file = Pushed::read(&arguments.which, &arguments.file, &FIELDS)?;
    let name = file.text("name")?;
    for field in ["modelProvider", "model", "instructions"] {
        file.text(field)?;
    }
    let named = file.project(arguments.project.as_deref())?;
    let mut client = arguments.which.server(world)?.client();
    let project_id = names::project(&mut client, named)?;
    // All names are looked for before anything is made.
    let version = version_of(&mut client, &file, &project_id)?;
    let agent = agent(&mut client, &file, (name, &project_id))?;
    let path = format!("/v1/agents/{}", id_of(&agent)?);
    let (number, is_new) = pushed(&mut client, &file, (&path, &agent), &version)?;
    if arguments.promote {
        client.post(&format!("{path}/promote"), &json!({"version": number}))?;
    }
    if arguments.json {
        return say_json(&client.get(&path)?);
    }
    let (name, number) = (printable(name), printable(&number));
    let what = match is_new {
        true => "is pushed",
        false => "is there already",
    };
    let live = if arguments.promote { ", and live" } else { "" };
    terminal::note(format_args!("{name} {number} {what}{live}."));
    Ok(())
}

/// The body of the version.
fn version_of(client: &mut Client, file: &Pushed, project_id: &str) -> Outcome<Value> {
    let mut body = Map::new();
    for field in [
        "version",
        "model",
        "instructions",
        "parameters",
        "limits",
        "outputSchema",
        "overrides",
        "guardrails",
        "streaming",
    ] {
        if let Some(value) = file.fields.get(field).filter(|value| !value.is_null()) {
            body.insert(field.to_owned(), value.clone());
        }
    }
    let provider = file.text("modelProvider")?;
    let known = client.all("/v1/model-providers", |one| {
        one["name"] == provider || one["id"] == provider
    })?;
    let provider = known.first().ok_or_else(|| {
        let message = format!("There is no model provider named {provider} here.");
        file.fault("$.modelProvider", &message)
    })?;
    body.insert("modelProviderId".to_owned(), provider["id"].clone());
    let tools = match file.fields.get("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tools)) => tools.clone(),
        Some(_) => return Err(file.fault("$.tools", "Expected a list of names.")),
    };
    let known = match tools.is_empty() {
        true => Vec::new(),
        false => client.all(&format!("/v1/tools?projectId={project_id}"), |_| true)?,
    };
    let mut ids = Vec::new();
    for (index, named) in tools.iter().enumerate() {
        let is_it = |tool: &&Value| tool["name"] == *named || tool["id"] == *named;
        let found = known.iter().find(is_it).ok_or_else(|| {
            let message = match named.as_str() {
                Some(named) => format!("The project has no tool named {named}."),
                None => "Expected the name of a tool.".to_owned(),
            };
            file.fault(&format!("$.tools[{index}]"), &message)
        })?;
        ids.push(found["id"].clone());
    }
    body.insert("toolIds".to_owned(), Value::Array(ids));
    Ok(Value::Object(body))
}

/// The agent, registered or described anew if need be.
fn agent(client: &mut Client, file: &Pushed, (name, project_id): (&str, &str)) -> Outcome<Value> {
    let list = format!("/v1/agents?projectId={project_id}");
    let description = file.fields.get("description");
    let Some(agent) = client.find(&list, |one| one["name"] == name)? else {
        let archived = client.find(&format!("{list}&archived=true"), |one| one["name"] == name)?;
        if let Some(agent) = archived {
            return Err(Failure::new(format!(
                "The agent {} is archived and gets no versions. Bring it back first, as an admin of the project: POST /v1/agents/{}/unarchive.",
                printable(name),
                id_of(&agent)?
            )));
        }
        let mut body = json!({"projectId": project_id, "name": name});
        if let Some(description) = description {
            body["description"] = description.clone();
        }
        return file.post(client, "/v1/agents", &body, &[("$.projectId", "$.project")]);
    };
    match description {
        Some(description) if *description != agent["description"] => {
            let path = format!("/v1/agents/{}", id_of(&agent)?);
            client.patch(&path, &json!({"description": description}))
        }
        _ => Ok(agent),
    }
}

/// The number of the version that the file is, and whether it was made now.
fn pushed(
    client: &mut Client,
    file: &Pushed,
    (path, agent): (&str, &Value),
    version: &Value,
) -> Outcome<(String, bool)> {
    let given = version["version"].as_str();
    let stands = match given {
        Some(given) => {
            let list = format!("{path}/versions");
            client.find(&list, |one| one["version"] == given)?
        }
        None => None,
    };
    let stands = match (given, &stands) {
        (Some(_), Some(stands)) => stands["version"].as_str(),
        (Some(_), None) => None,
        (None, _) => agent["latestVersion"].as_str(),
    };
    if let Some(number) = stands {
        let whole = client.get(&format!("{path}/versions/{number}"))?;
        if is_same(&whole, version) {
            return Ok((number.to_owned(), false));
        }
        if given.is_some() {
            let message = format!(
                "The version {number} is there and says something else. A version is never changed: raise the number."
            );
            return Err(file.fault("$.version", &message));
        }
    }
    let made = file.post(client, &format!("{path}/versions"), version, &RENAMED)?;
    let number = made["version"].as_str().unwrap_or_default();
    Ok((number.to_owned(), true))
}

/// Whether a version says what a body does. What the body leaves out has its default.
fn is_same(stands: &Value, body: &Value) -> bool {
    let or = |value: &Value, empty: Value| match value.is_null() {
        true => empty,
        false => value.clone(),
    };
    let of = |value: &Value| or(value, json!({}));
    let list_of = |value: &Value| or(value, json!([]));
    [
        "instructions",
        "modelProviderId",
        "model",
        "toolIds",
        "outputSchema",
    ]
    .iter()
    .all(|field| stands[*field] == body[*field])
        && kept::<Parameters>(&of(&body["parameters"])).as_ref() == Some(&of(&stands["parameters"]))
        && kept::<BTreeSet<Override>>(&list_of(&body["overrides"]))
            == kept::<BTreeSet<Override>>(&list_of(&stands["overrides"]))
        && kept::<Vec<Guardrail>>(&list_of(&body["guardrails"]))
            == kept::<Vec<Guardrail>>(&list_of(&stands["guardrails"]))
        && or(&body["streaming"], json!("held")) == stands["streaming"]
        && kept::<Limits>(&of(&body["limits"])) == kept::<Limits>(&of(&stands["limits"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_same_if_what_is_left_out_has_its_default() {
        let limits = kept::<Limits>(&json!({})).unwrap();
        let stands = json!({"instructions": "a", "modelProviderId": "p", "model": "m", "toolIds": [], "outputSchema": null,
            "parameters": {}, "limits": limits, "overrides": [], "guardrails": [], "streaming": "held"});
        let body =
            json!({"instructions": "a", "modelProviderId": "p", "model": "m", "toolIds": []});
        assert!(is_same(&stands, &body));
        for (field, other) in [
            ("instructions", json!("b")),
            ("toolIds", json!(["t"])),
            ("parameters", json!({"temperature": 0.5})),
            ("limits", json!({"maxSteps": 3})),
            ("outputSchema", json!({"type": "object"})),
            ("overrides", json!(["model"])),
            (
                "guardrails",
                json!([{"builtin": "pii", "at": ["output"], "action": "redact"}]),
            ),
            ("streaming", json!("unchecked")),
        ] {
            let mut changed = body.clone();
            changed[field] = other;
            assert!(!is_same(&stands, &changed), "{field}");
        }
        let mut same = body.clone();
        same["limits"] = json!({"maxSteps": limits["maxSteps"]});
        assert!(is_same(&stands, &same));
    }
}
