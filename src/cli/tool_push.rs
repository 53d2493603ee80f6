//! `tools push`: registers the tool of a file on a running server. The same file again changes nothing.

use super::client::{Client, Which, id_of};
use super::pushed::{Pushed, Renamed, kept};
use super::terminal::{self, printable, say_json};
use super::{Failure, Outcome, World, names};
use crate::api::tools::{DRY_RUN_DEFAULT, TIMEOUT_MS_DEFAULT};
use crate::store::tool_approvals::ToolApproval;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agent-runtime tools push look_up_order.yaml
  agent-runtime tools push look_up_order.yaml --project support

The file, in JSON or YAML, with one of url, agent and flow:

  name: look_up_order
  project: support                       or --project
  description: Says where an order is.
  argumentsSchema: {type: object, properties: {order: {type: string}}, required: [order]}
  url: https://tools.example.com/orders
  agent: researcher                      or {name: researcher, version: 1.0.0}, by name or id
  flow: billing.refund                   or {flowId: billing.refund, version: 1.0.0}
  timeoutMs: 5000                        and idempotent, dryRun, headers, signingSecret, approval

The same tool again changes nothing. A tool is never changed: for something else, give it another name.";

/// The fields of the file.
const FIELDS: [&str; 13] = [
    "name",
    "project",
    "description",
    "argumentsSchema",
    "url",
    "agent",
    "flow",
    "timeoutMs",
    "idempotent",
    "dryRun",
    "headers",
    "signingSecret",
    "approval",
];

/// Arguments of `tools push`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Push {
    /// The tool, in JSON or YAML; `-` is stdin
    file: PathBuf,
    /// The project of the tool, by id or name [default: the one that the file names]
    #[arg(long)]
    project: Option<String>,
    /// Print the tool as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Pushes a tool.
///
/// # Errors
/// The file has faults, the server does not take it, or a tool with the name is there and is another one.
pub(super) fn run(world: &World, arguments: &Push) -> Outcome {
    let file = Pushed::read(&arguments.which, &arguments.file, &FIELDS)?;
    let name = file.text("name")?;
    let named = file.project(arguments.project.as_deref())?;
    let mut client = arguments.which.server(world)?.client();
    let project_id = names::project(&mut client, named)?;
    let (body, renamed) = body_of(&mut client, &file, &project_id)?;
    let list = format!("/v1/tools?projectId={project_id}");
    let stands = client.find(&list, |tool| tool["name"] == name)?;
    let (tool, what) = match stands {
        None => {
            let made = file.post(&mut client, "/v1/tools", &body, &renamed)?;
            (made, "is pushed")
        }
        Some(tool) => {
            let other = differs(&tool, &body);
            if !other.is_empty() {
                return Err(Failure::new(format!(
                    "The tool {} is there and has another {}. A tool is never changed: give this one another name. Or delete that one first, if no version of an agent or of a flow calls it: DELETE /v1/tools/{}.",
                    printable(name),
                    other.join(", "),
                    id_of(&tool)?
                )));
            }
            (tool, "is there already")
        }
    };
    if arguments.json {
        return say_json(&tool);
    }
    terminal::note(format_args!("{} {what}.", printable(name)));
    Ok(())
}

/// The request's body, and which of its fields have another name in the file.
fn body_of(
    client: &mut Client,
    file: &Pushed,
    project_id: &str,
) -> Outcome<(Value, Vec<Renamed<'static>>)> {
    let mut body: Map<String, Value> = file.fields.clone();
    body.remove("project");
    body.insert("projectId".to_owned(), json!(project_id));
    let mut renamed = vec![("$.projectId", "$.project")];
    if let Some(agent) = file.fields.get("agent") {
        let (at, named) = match agent {
            Value::String(_) => ("$.agent", agent),
            _ if agent["id"].is_string() => ("$.agent.id", &agent["id"]),
            _ => ("$.agent.name", &agent["name"]),
        };
        let named = named.as_str().ok_or_else(|| {
            file.fault(
                "$.agent",
                "Expected the name of an agent, or an object with its name.",
            )
        })?;
        let list = format!("/v1/agents?projectId={project_id}");
        let found = client.find(&list, |one| one["name"] == named || one["id"] == named)?;
        let found = found
            .ok_or_else(|| file.fault(at, &format!("The project has no agent named {named}.")))?;
        let mut target = match agent {
            Value::Object(fields) => fields.clone(),
            _ => Map::new(),
        };
        target.remove("name");
        target.insert("id".to_owned(), found["id"].clone());
        body.insert("agent".to_owned(), Value::Object(target));
        renamed.push(("$.agent.id", at));
    }
    if let Some(Value::String(flow)) = file.fields.get("flow") {
        body.insert("flow".to_owned(), json!({"flowId": flow}));
        renamed.push(("$.flow.flowId", "$.flow"));
    }
    Ok((Value::Object(body), renamed))
}

/// The fields in which a tool is not what a body says. What the body leaves out has its default; the schema of a flow's or an
/// agent's arguments is then the server's.
fn differs(tool: &Value, body: &Value) -> Vec<&'static str> {
    let is_http = tool["target"] == "http";
    let or = |value: &Value, default: Value| match value.is_null() {
        true => default,
        false => value.clone(),
    };
    let of_http = |default: Value| if is_http { default } else { Value::Null };
    let target = |of: &Value, id: &str| match of.is_null() {
        true => Value::Null,
        false => json!([of[id], of["version"]]),
    };
    let approval = |of: &Value| match of.is_null() {
        true => Some(Value::Null),
        false => kept::<ToolApproval>(of),
    };
    let timeout = of_http(json!(TIMEOUT_MS_DEFAULT));
    let dry_run = of_http(json!(DRY_RUN_DEFAULT));
    let schema = &body["argumentsSchema"];
    let same = [
        (
            "description",
            tool["description"] == or(&body["description"], json!("")),
        ),
        (
            "argumentsSchema",
            schema.is_null() || tool["argumentsSchema"] == *schema,
        ),
        ("url", tool["url"] == body["url"]),
        (
            "agent",
            target(&tool["agent"], "id") == target(&body["agent"], "id"),
        ),
        (
            "flow",
            target(&tool["flow"], "flowId") == target(&body["flow"], "flowId"),
        ),
        (
            "timeoutMs",
            tool["timeoutMs"] == or(&body["timeoutMs"], timeout),
        ),
        (
            "idempotent",
            tool["idempotent"] == or(&body["idempotent"], json!(false)),
        ),
        ("dryRun", tool["dryRun"] == or(&body["dryRun"], dry_run)),
        (
            "headers",
            or(&tool["headers"], json!([])) == or(&body["headers"], json!([])),
        ),
        (
            "signingSecret",
            tool["signingSecret"] == body["signingSecret"],
        ),
        (
            "approval",
            approval(&tool["approval"]) == approval(&body["approval"]),
        ),
    ];
    let other = same.into_iter().filter(|(_, is_same)| !is_same);
    other.map(|(field, _)| field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_compared_field_by_field_with_its_defaults() {
        let tool = json!({"target": "http", "description": "a", "argumentsSchema": {"type": "object"},
            "url": "https://a.example/", "agent": null, "flow": null, "timeoutMs": TIMEOUT_MS_DEFAULT, "idempotent": false,
            "dryRun": DRY_RUN_DEFAULT, "headers": [], "signingSecret": null, "approval": null});
        let body = json!({"description": "a", "argumentsSchema": {"type": "object"}, "url": "https://a.example/"});
        assert_eq!(differs(&tool, &body), [""; 0]);
        for (field, other) in [
            ("url", json!("https://b.example/")),
            ("timeoutMs", json!(1)),
            ("idempotent", json!(true)),
            ("headers", json!([{"name": "a", "secret": "b"}])),
            ("approval", json!({})),
        ] {
            let mut changed = body.clone();
            changed[field] = other;
            assert_eq!(differs(&tool, &changed), [field]);
        }
        let of_flow = json!({"target": "flow", "description": "a", "argumentsSchema": {"type": "object"}, "url": null,
            "flow": {"flowId": "a.b", "version": null}, "idempotent": false, "headers": []});
        let body = json!({"description": "a", "flow": {"flowId": "a.b"}});
        assert_eq!(differs(&of_flow, &body), [""; 0]);
    }
}
