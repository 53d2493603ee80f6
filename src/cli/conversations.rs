//! `conversations`: lists the conversations of a running server, and erases one.

use super::client::Which;
use super::terminal::{Style, say_json};
use super::{Outcome, World, names, table, terminal};
use crate::outbound::Method;
use clap::{Args, Subcommand};
use serde_json::Value;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime conversations
  agent-runtime conversations --agent assistant --limit 200 --json | jq -r .id
  agent-runtime conversations erase 01993c5e-7c1f-7d2a-9c55-0242ac120002

The list is in the order of time, the newest first. Times are in UTC.";

const ERASE_EXAMPLES: &str = "\
Examples:
  agent-runtime conversations erase 01993c5e-7c1f-7d2a-9c55-0242ac120002

Erases the messages and the title, and what the runs of the conversation were given, said and
answered. It cannot be taken back. The server works on it after the answer: the same command says
how far it is. A conversation in which a run is under way is refused: cancel the run first.";

/// Arguments of `conversations`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one conversation.
#[derive(Subcommand)]
enum Command {
    /// Erase what was said in a conversation, for ever
    Erase(Erase),
}

/// Which conversations are listed.
#[derive(Args)]
struct List {
    /// Only conversations with this agent, by id or name
    #[arg(long)]
    agent: Option<String>,
    /// Only conversations in this project, by id or name; the name of --agent is looked for there
    #[arg(long)]
    project: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each conversation as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `conversations erase`.
#[derive(Args)]
#[command(after_help = ERASE_EXAMPLES)]
struct Erase {
    /// The conversation's id
    #[arg(value_parser = names::id)]
    conversation: Uuid,
    /// Print the conversation as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists conversations, or erases one.
///
/// # Errors
/// The server cannot be asked, there is no such conversation, or a run is under way in it.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Erase(one)) => erase(world, one),
    }
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let project = arguments.project.as_deref();
    let project = project.map(|project| names::project(&mut client, project));
    let project = project.transpose()?;
    let project = project.as_deref();
    let mut path = "/v1/conversations?order=desc".to_owned();
    if let Some(project) = project {
        path += &format!("&projectId={project}");
    }
    if let Some(agent) = &arguments.agent {
        path += &format!("&agentId={}", names::agent(&mut client, agent, project)?);
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let agents = found
        .rows
        .iter()
        .map(|conversation| &conversation["agentId"]);
    let agents = names::names_of(&mut client, "agents", agents);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|conversation| {
            let agent = text(&conversation["agentId"]);
            [
                text(&conversation["id"]),
                table::time(&conversation["createdAt"]),
                agents.get(&agent).cloned().unwrap_or(agent),
                state(conversation).to_owned(),
                text(&conversation["title"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["ID", "CREATED", "AGENT", "STATE", "TITLE"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("conversations", "--agent or --project");
    Ok(())
}

fn state(conversation: &Value) -> &'static str {
    let is = |field: &str| conversation[field].is_string();
    match () {
        () if is("erasedAt") => "erased",
        () if is("erasureRequestedAt") => "being erased",
        () if is("activeRunId") => "answering",
        () => "open",
    }
}

fn erase(world: &World, arguments: &Erase) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let path = format!("/v1/conversations/{}", arguments.conversation);
    let conversation = client.send(Method::DELETE, &path, None, &[])?;
    if arguments.json {
        say_json(&conversation)?;
    }
    terminal::note(match conversation["erasedAt"].is_string() {
        true => "The conversation is erased.",
        false => {
            "The conversation is being erased, and no run starts in it any more. The same command says when it is done."
        }
    });
    Ok(())
}
