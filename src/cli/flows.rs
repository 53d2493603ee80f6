//! `flows`: lists the flows of a running server.

use super::client::Which;
use super::terminal::{Style, say_json};
use super::{Outcome, World, names, table};
use clap::Args;
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  agent-runtime flows
  agent-runtime flows --project billing --json | jq -r .flowId

The list is in the order of time, the newest first. To start one: agent-runtime run --flow NAMESPACE.NAME.";

/// Arguments of `flows`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Only flows of this project, by id or name
    #[arg(long)]
    project: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each flow as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists flows.
///
/// # Errors
/// The server cannot be asked.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let mut path = "/v1/flows?order=desc".to_owned();
    if let Some(project) = &arguments.project {
        path += &format!("&projectId={}", names::project(&mut client, project)?);
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let projects = found.rows.iter().map(|flow| &flow["projectId"]);
    let projects = names::names_of(&mut client, "projects", projects);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|flow| {
            let project = text(&flow["projectId"]);
            [
                text(&flow["flowId"]),
                projects.get(&project).cloned().unwrap_or(project),
                text(&flow["liveVersion"]),
                text(&flow["latestVersion"]),
                text(&flow["title"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["FLOW", "PROJECT", "LIVE", "LATEST", "TITLE"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("flows", "--project");
    Ok(())
}
