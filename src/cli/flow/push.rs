//! `flow push`: makes a definition a version of a flow of a running server.

use super::super::client::{Which, id_of};
use super::super::terminal::{self, Style, say_json};
use super::super::{Failure, Outcome, World, input, names};
use super::{Examined, show};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agent-runtime flow push refund.yaml --project billing
  agent-runtime flow push refund.yaml --project billing --promote

Registers the flow if the project does not have it. A version is never changed: raise \
`document.version` to push another definition. The same one again changes nothing.";

/// Arguments of `flow push`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Push {
    /// The definition, in JSON or YAML; `-` is stdin
    file: PathBuf,
    /// The project of the flow, by id or name
    #[arg(long)]
    project: String,
    /// Also make it the version that runs if none is named
    #[arg(long)]
    promote: bool,
    /// Print the flow as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Pushes a definition.
///
/// # Errors
/// The definition has faults, or the server does not take it.
pub(super) fn run(world: &World, arguments: &Push) -> Outcome {
    input::check_beside(&arguments.which, &arguments.file)?;
    let Examined {
        name,
        source,
        report,
    } = Examined::of(&arguments.file)?;
    let Some(definition) = &report.definition else {
        show(&name, &source, &report, Style::of_stdout(&world.vars))?;
        return Err(Failure::found());
    };
    let style = Style::of_stderr(&world.vars);
    for warning in &report.warnings {
        let word = style.yellow("warning");
        terminal::note(super::shown((&name, &source), (warning, &word), style));
    }
    let document = &definition.document;
    let (flow_id, version) = (document.flow_id(), document.version.to_string());
    let mut client = arguments.which.server(world)?.client();
    let project_id = names::project(&mut client, &arguments.project)?;
    let path = format!("/v1/flows?projectId={project_id}&flowId={flow_id}");
    let flow = match client.find(&path, |_| true)? {
        None => {
            let archived = client.find(&format!("{path}&archived=true"), |_| true)?;
            if let Some(flow) = archived {
                return Err(Failure::new(format!(
                    "The flow {flow_id} is archived and gets no versions. Bring it back first, as an admin of the project: POST /v1/flows/{}/unarchive.",
                    id_of(&flow)?
                )));
            }
            let body = json!({"projectId": project_id, "definition": source.value});
            client.post("/v1/flows", &body)?
        }
        Some(flow) => {
            let path = format!("/v1/flows/{}/versions", id_of(&flow)?);
            client.post(&path, &json!({"definition": source.value}))?;
            flow
        }
    };
    let path = format!("/v1/flows/{}", id_of(&flow)?);
    if arguments.promote {
        client.post(&format!("{path}/promote"), &json!({"version": version}))?;
    }
    if arguments.json {
        return say_json(&client.get(&path)?);
    }
    let live = if arguments.promote { ", and live" } else { "" };
    terminal::note(format_args!("{flow_id} {version} is pushed{live}."));
    Ok(())
}
