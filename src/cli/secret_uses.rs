//! `secrets uses`: lists, adds and deletes the uses of secrets of a running server.

use super::client::Which;
use super::display::shortened;
use super::terminal::{Style, say, say_json};
use super::{Outcome, World, names, table};
use crate::uri::percent_encoded;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime secrets uses
  agent-runtime secrets uses --name WEATHER_KEY
  agent-runtime secrets uses add WEATHER_KEY https://api.example.com --project support
  agent-runtime secrets uses delete 01993c5e-7c1f-7d2a-9c55-0242ac120002

A use allows a secret to be sent to one origin, for one project or for every project. Tools that \
name the secret can then be registered by project admins, and their calls are made. The list is in \
the order of time, the newest first. It takes a tenant admin.";

const ADD_EXAMPLES: &str = "\
Examples:
  agent-runtime secrets uses add WEATHER_KEY https://api.example.com
  agent-runtime secrets uses add WEATHER_KEY https://api.example.com:8443 --project support

It takes a tenant admin and a key with secrets:write. The secret need not be there yet.";

const DELETE_EXAMPLES: &str = "\
Examples:
  agent-runtime secrets uses delete 01993c5e-7c1f-7d2a-9c55-0242ac120002

Calls of tools that need the use are not made any more, also those of runs under way. It takes a \
tenant admin and a key with secrets:write.";

/// Arguments of `secrets uses`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one use.
#[derive(Subcommand)]
enum Command {
    /// Allow a secret to be sent to an origin
    Add(Add),
    /// Delete a use
    Delete(Delete),
}

/// Which uses are listed.
#[derive(Args)]
struct List {
    /// Only uses of the secret of this name
    #[arg(long)]
    name: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each use as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `secrets uses add`.
#[derive(Args)]
#[command(after_help = ADD_EXAMPLES)]
struct Add {
    /// The secret's name
    name: String,
    /// Scheme, host and port of the servers that may get it
    origin: String,
    /// For this project alone, by id or name [default: for every project]
    #[arg(long)]
    project: Option<String>,
    /// Print the use as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `secrets uses delete`.
#[derive(Args)]
#[command(after_help = DELETE_EXAMPLES)]
struct Delete {
    /// The use's id
    #[arg(value_parser = names::id)]
    id: Uuid,
    #[command(flatten)]
    which: Which,
}

/// Lists uses, adds one, or deletes one.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub(super) fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Add(new)) => add(world, new),
        Some(Command::Delete(one)) => delete(world, one),
    }
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let mut path = "/v1/secret-uses?order=desc".to_owned();
    if let Some(name) = &arguments.name {
        path += &format!("&name={}", percent_encoded(name.as_bytes()));
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let projects = found.rows.iter().map(|one| &one["projectId"]);
    let projects = projects.filter(|id| id.is_string());
    let projects = names::names_of(&mut client, "projects", projects);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let row = |one: &Value| {
        let project = one["projectId"].as_str();
        let project = project.map(|id| projects.get(id).cloned().unwrap_or(id.to_owned()));
        [
            text(&one["name"]),
            text(&one["target"]),
            project.map_or("every project".to_owned(), |name| shortened(&name)),
            text(&one["id"]),
        ]
    };
    let rows: Vec<[String; 4]> = found.rows.iter().map(row).collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["SECRET", "TARGET", "PROJECT", "ID"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("uses of secrets", "--name");
    Ok(())
}

fn add(world: &World, arguments: &Add) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let origin = &arguments.origin;
    let target = match origin.starts_with("origin:") {
        true => origin.clone(),
        false => format!("origin:{origin}"),
    };
    let mut body = json!({"name": arguments.name, "target": target});
    if let Some(project) = &arguments.project {
        body["projectId"] = json!(names::project(&mut client, project)?);
    }
    let made = client.post("/v1/secret-uses", &body)?;
    if arguments.json {
        return say_json(&made);
    }
    let text = |key: &str| shortened(made[key].as_str().unwrap_or("-"));
    say(format_args!(
        "The secret {} may be sent to {} now: {}.",
        text("name"),
        text("target"),
        text("id")
    ))
}

fn delete(world: &World, arguments: &Delete) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    client.delete(&format!("/v1/secret-uses/{}", arguments.id))?;
    say("The use is deleted.")
}
