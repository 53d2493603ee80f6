//! `agents`: lists the agents of a running server, and shows one. Not here: `agents push` (`agent_push`).

use super::client::{Client, Which, id_of};
use super::display::shortened;
use super::terminal::{Style, say, say_json};
use super::{Outcome, World, agent_push, names, table, terminal};
use clap::{Args, Subcommand};
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  agent-runtime agents
  agent-runtime agents --project support --json | jq -r .name
  agent-runtime agents show assistant
  agent-runtime agents push assistant.yaml --project support

The list is in the order of time, the newest first.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime agents show assistant
  agent-runtime agents show assistant --project support
  agent-runtime agents show 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .liveVersion";

/// Arguments of `agents`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one agent.
#[derive(Subcommand)]
enum Command {
    /// Show an agent and the version that runs
    Show(Show),
    /// Make a file an agent's version, and the agent if there is none
    Push(agent_push::Push),
}

/// Which agents are listed.
#[derive(Args)]
struct List {
    /// Only agents of this project, by id or name
    #[arg(long)]
    project: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each agent as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `agents show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The agent's id, or its name
    agent: String,
    /// The project of the agent, by id or name
    #[arg(long)]
    project: Option<String>,
    /// Print the agent as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists agents, shows one, or pushes one.
///
/// # Errors
/// The server cannot be asked, or there is no such agent.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Show(show)) => self::show(world, show),
        Some(Command::Push(push)) => agent_push::run(world, push),
    }
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let mut path = "/v1/agents?order=desc".to_owned();
    if let Some(project) = &arguments.project {
        path += &format!("&projectId={}", names::project(&mut client, project)?);
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let projects = found.rows.iter().map(|agent| &agent["projectId"]);
    let projects = names::names_of(&mut client, "projects", projects);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|agent| {
            let project = text(&agent["projectId"]);
            [
                text(&agent["name"]),
                projects.get(&project).cloned().unwrap_or(project),
                text(&agent["liveVersion"]),
                text(&agent["latestVersion"]),
                text(&agent["id"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["NAME", "PROJECT", "LIVE", "LATEST", "ID"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("agents", "--project");
    Ok(())
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let id = names::agent(&mut client, &arguments.agent, arguments.project.as_deref())?;
    let agent = client.get(&format!("/v1/agents/{id}"))?;
    if arguments.json {
        return say_json(&agent);
    }
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let project = names::names_of(&mut client, "projects", [&agent["projectId"]]);
    let project = project.into_values().next().unwrap_or_default();
    say(style.bold(&text(&agent["name"])))?;
    let line = |name: &str, value: &str| say(format_args!("{} {value}", style.dim(name)));
    line("id           ", &id_of(&agent)?)?;
    line("project      ", &project)?;
    line("live         ", &text(&agent["liveVersion"]))?;
    line("latest       ", &text(&agent["latestVersion"]))?;
    line("created      ", &table::time(&agent["createdAt"]))?;
    if agent["description"]
        .as_str()
        .is_some_and(|text| !text.is_empty())
    {
        line("description  ", &text(&agent["description"]))?;
    }
    let runs = match agent["liveVersion"].as_str() {
        Some(live) => Some(live),
        None => agent["latestVersion"].as_str(),
    };
    let Some(version) = runs else {
        terminal::note("It has no version yet, so it cannot run.");
        return Ok(());
    };
    let version = client.get(&format!("/v1/agents/{id}/versions/{version}"))?;
    line("version      ", &text(&version["version"]))?;
    line("model        ", &text(&version["model"]))?;
    line("tools        ", &tools(&mut client, &version))?;
    let overrides = version["overrides"].as_array().map(Vec::as_slice);
    let overrides = overrides.unwrap_or_default().iter();
    let overrides: Vec<&str> = overrides.filter_map(Value::as_str).collect();
    if !overrides.is_empty() {
        line("runs may set ", &shortened(&overrides.join(", ")))?;
    }
    let guardrails = version["guardrails"].as_array().map(Vec::as_slice);
    let name = |one: &Value| text(one.get("name").unwrap_or(&one["builtin"]));
    let guardrails: Vec<String> = guardrails.unwrap_or_default().iter().map(name).collect();
    if !guardrails.is_empty() {
        line("guardrails   ", &shortened(&guardrails.join(", ")))?;
    }
    if !version["outputSchema"].is_null() {
        line(
            "output       ",
            &shortened(&version["outputSchema"].to_string()),
        )?;
    }
    line("instructions ", &text(&version["instructions"]))
}

/// The names of a version's tools.
fn tools(client: &mut Client, version: &Value) -> String {
    let ids = version["toolIds"].as_array().map(Vec::as_slice);
    let ids = ids.unwrap_or_default();
    let names = names::names_of(client, "tools", ids);
    let named = ids.iter().filter_map(|id| names.get(id.as_str()?).cloned());
    match ids {
        [] => "-".to_owned(),
        _ => named.collect::<Vec<_>>().join(", "),
    }
}
