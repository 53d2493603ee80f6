//! `tools`: lists the tools of a running server, and shows one. Not here: `tools push` (`tool_push`).

use super::client::{Which, id_of};
use super::display::shortened;
use super::terminal::{Style, say, say_json};
use super::{Outcome, World, names, table, tool_push};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::collections::HashMap;

const EXAMPLES: &str = "\
Examples:
  agent-runtime tools
  agent-runtime tools --project support --json | jq -r '.url // .flow.flowId // .agent.id'
  agent-runtime tools show look_up_order
  agent-runtime tools push look_up_order.yaml --project support

The list is in the order of time, the newest first.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime tools show look_up_order
  agent-runtime tools show look_up_order --project support
  agent-runtime tools show 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .argumentsSchema";

/// Arguments of `tools`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one tool.
#[derive(Subcommand)]
enum Command {
    /// Show a tool: what it calls, how, and what it takes
    Show(Show),
    /// Register the tool of a file
    Push(tool_push::Push),
}

/// Which tools are listed.
#[derive(Args)]
struct List {
    /// Only tools of this project, by id or name
    #[arg(long)]
    project: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each tool as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `tools show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The tool's id, or its name
    tool: String,
    /// The project of the tool, by id or name
    #[arg(long)]
    project: Option<String>,
    /// Print the tool as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists tools, shows one, or pushes one.
///
/// # Errors
/// The server cannot be asked, or there is no such tool.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Show(show)) => self::show(world, show),
        Some(Command::Push(push)) => tool_push::run(world, push),
    }
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let mut path = "/v1/tools?order=desc".to_owned();
    if let Some(project) = &arguments.project {
        path += &format!("&projectId={}", names::project(&mut client, project)?);
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let projects = found.rows.iter().map(|tool| &tool["projectId"]);
    let projects = names::names_of(&mut client, "projects", projects);
    let agents = found.rows.iter().map(|tool| &tool["agent"]["id"]);
    let agents = names::names_of(&mut client, "agents", agents);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|tool| {
            let project = text(&tool["projectId"]);
            [
                text(&tool["name"]),
                projects.get(&project).cloned().unwrap_or(project),
                yes_or_no(&tool["idempotent"]).to_owned(),
                text(&tool["id"]),
                calls(tool, &agents),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["NAME", "PROJECT", "IDEMPOTENT", "ID", "CALLS"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("tools", "--project");
    Ok(())
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let id = names::tool(&mut client, &arguments.tool, arguments.project.as_deref())?;
    let tool = client.get(&format!("/v1/tools/{id}"))?;
    if arguments.json {
        return say_json(&tool);
    }
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let project = names::names_of(&mut client, "projects", [&tool["projectId"]]);
    let project = project.into_values().next().unwrap_or_default();
    say(style.bold(&text(&tool["name"])))?;
    let line = |name: &str, value: &str| say(format_args!("{} {value}", style.dim(name)));
    line("id             ", &id_of(&tool)?)?;
    line("project        ", &project)?;
    line("created        ", &table::time(&tool["createdAt"]))?;
    let agents = names::names_of(&mut client, "agents", [&tool["agent"]["id"]]);
    line("calls          ", &calls(&tool, &agents))?;
    if tool["target"] == "http" {
        let timeout_ms = tool["timeoutMs"].as_i64().unwrap_or_default();
        line("timeout        ", &format!("{timeout_ms} ms"))?;
        line("idempotent     ", yes_or_no(&tool["idempotent"]))?;
        line("in dry runs    ", in_dry_runs(&tool["dryRun"]))?;
        line("secret headers ", &headers(&tool["headers"]))?;
        line("signing secret ", &text(&tool["signingSecret"]))?;
    }
    line("approval       ", &approval(&tool["approval"]))?;
    line("description    ", &text(&tool["description"]))?;
    line(
        "arguments      ",
        &shortened(&tool["argumentsSchema"].to_string()),
    )
}

/// What a tool's calls go to: its URL, or the agent or the flow with the version that it names.
fn calls(tool: &Value, agents: &HashMap<String, String>) -> String {
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let version = |of: &Value| match of["version"].as_str() {
        Some(version) => format!(" {}", shortened(version)),
        None => String::new(),
    };
    let (agent, flow) = (&tool["agent"], &tool["flow"]);
    match tool["target"].as_str() {
        Some("agent") => {
            let id = text(&agent["id"]);
            let name = agents.get(&id).cloned().unwrap_or(id);
            format!("agent {name}{}", version(agent))
        }
        Some("flow") => format!("flow {}{}", text(&flow["flowId"]), version(flow)),
        _ => text(&tool["url"]),
    }
}

fn yes_or_no(value: &Value) -> &'static str {
    match value.as_bool() {
        Some(true) => "yes",
        _ => "no",
    }
}

/// What a dry run does with its calls.
fn in_dry_runs(value: &Value) -> &'static str {
    match value.as_str() {
        Some("call") => "called",
        _ => "simulated",
    }
}

/// Who approves its calls.
fn approval(approval: &Value) -> String {
    match approval["requiredRole"].as_str() {
        Some(role) => format!(
            "by {} ({})",
            shortened(role),
            shortened(approval["title"].as_str().unwrap_or("-"))
        ),
        None => "-".to_owned(),
    }
}

/// Each header with the name of its secret.
fn headers(headers: &Value) -> String {
    let all = headers.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let named = all
        .iter()
        .map(|header| format!("{} ({})", text(&header["name"]), text(&header["secret"])));
    match all {
        [] => "-".to_owned(),
        _ => named.collect::<Vec<_>>().join(", "),
    }
}
