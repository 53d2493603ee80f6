//! `approvals`, `approve` and `reject`: lists what waits for a person, shows one, and decides it.
//!
//! A decision is bound to what the command has read just before: if that is another approval's subject, the server refuses.

use super::client::{Client, Which};
use super::display::shortened;
use super::terminal::{self, Style, say, say_json};
use super::{Outcome, World, names, table};
use crate::outbound::Method;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime approvals
  agent-runtime approvals --role finance --json | jq -r .id
  agent-runtime approvals show 01993c5e-7c1f-7d2a-9c55-0242ac120002

The list has what waits for the roles that you hold, the oldest first. Times are in UTC.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime approvals show 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime approvals show 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .subject";

const APPROVE_EXAMPLES: &str = "\
Examples:
  agent-runtime approve 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime approve 01993c5e-7c1f-7d2a-9c55-0242ac120002 --comment \"The photo is clear.\"

Read it first: agent-runtime approvals show ID. The same decision again changes nothing.";

const REJECT_EXAMPLES: &str = "\
Examples:
  agent-runtime reject 01993c5e-7c1f-7d2a-9c55-0242ac120002 --comment \"Ask for the receipt.\"

Read it first: agent-runtime approvals show ID. The same decision again changes nothing.";

/// Arguments of `approvals`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one approval.
#[derive(Subcommand)]
enum Command {
    /// Show an approval: what it is about, and who did what to it
    Show(Show),
}

/// Which approvals are listed.
#[derive(Args)]
struct List {
    /// Those that this role decides
    #[arg(long)]
    role: Option<String>,
    /// Those of this project, by id or name
    #[arg(long)]
    project: Option<String>,
    /// Those in this state, instead of those that wait
    #[arg(long, value_parser = ["waiting", "approved", "rejected", "escalated", "expired", "voided"])]
    status: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each approval as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `approvals show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The approval's id
    approval: Uuid,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `approve`.
#[derive(Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub struct Approve {
    #[command(flatten)]
    decide: Decide,
}

/// Arguments of `reject`.
#[derive(Args)]
#[command(after_help = REJECT_EXAMPLES)]
pub struct Reject {
    #[command(flatten)]
    decide: Decide,
}

/// What a decision is about.
#[derive(Args)]
struct Decide {
    /// The approval's id
    approval: Uuid,
    /// Why, for those who read the approval later
    #[arg(long)]
    comment: Option<String>,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists approvals, or shows one.
///
/// # Errors
/// The server cannot be asked, or there is no such approval.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Show(show)) => self::show(world, show),
    }
}

/// Approves what an approval is about.
///
/// # Errors
/// The server cannot be asked, or does not take the decision.
pub fn approve(world: &World, arguments: &Approve) -> Outcome {
    decide(world, &arguments.decide, "approve")
}

/// Rejects what an approval is about.
///
/// # Errors
/// The server cannot be asked, or does not take the decision.
pub fn reject(world: &World, arguments: &Reject) -> Outcome {
    decide(world, &arguments.decide, "reject")
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let status = arguments.status.as_deref().unwrap_or("waiting");
    let mut path = format!("/v1/approvals?status={status}");
    if let Some(role) = &arguments.role {
        path += &format!("&role={role}");
    }
    if let Some(project) = &arguments.project {
        path += &format!("&projectId={}", names::project(&mut client, project)?);
    }
    let found = client.first(&path, arguments.limit.into(), |_| true)?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|approval| {
            [
                text(&approval["id"]),
                text(&approval["status"]),
                text(&approval["requiredRole"]),
                table::time(&approval["expiresAt"]),
                text(&approval["title"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["ID", "STATUS", "ROLE", "EXPIRES", "TITLE"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("approvals", "--role or --project");
    Ok(())
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let approval = read(&mut client, arguments.approval)?;
    if arguments.json {
        return say_json(&approval);
    }
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let line = |name: &str, value: &str| say(format_args!("{} {value}", style.dim(name)));
    say(style.bold(&text(&approval["title"])))?;
    line("id        ", &text(&approval["id"]))?;
    line("status    ", &text(&approval["status"]))?;
    line("role      ", &text(&approval["requiredRole"]))?;
    line("run       ", &text(&approval["runId"]))?;
    line("created   ", &table::time(&approval["createdAt"]))?;
    line("expires   ", &table::time(&approval["expiresAt"]))?;
    let subject = &approval["subject"];
    for (name, field) in [
        ("tool      ", "tool"),
        ("arguments ", "arguments"),
        ("context   ", "context"),
    ] {
        match &subject[field] {
            Value::Null => {}
            Value::String(text) => line(name, &shortened(text))?,
            value => line(name, &shortened(&value.to_string()))?,
        }
    }
    if approval["mayDecide"] == json!(false) {
        line("not yours ", &text(&approval["mayNotBecause"]))?;
    }
    let log = approval["log"].as_array().map(Vec::as_slice);
    for entry in log.unwrap_or_default() {
        let said = format!("{} {}", table::time(&entry["at"]), text(&entry["kind"]));
        match entry["userId"].as_str() {
            Some(user_id) => line("log       ", &format!("{said} by {user_id}"))?,
            None => line("log       ", &said)?,
        }
    }
    Ok(())
}

fn decide(world: &World, arguments: &Decide, decision: &str) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let read = read(&mut client, arguments.approval)?;
    let mut body = json!({"decision": decision, "expectedDigest": read["subject"]["digest"]});
    if let Some(comment) = &arguments.comment {
        body["comment"] = json!(comment);
    }
    let path = format!("/v1/approvals/{}/decide", arguments.approval);
    let approval = client.send(Method::POST, &path, Some(&body), &[])?;
    if arguments.json {
        return say_json(&approval);
    }
    let title = shortened(approval["title"].as_str().unwrap_or("-"));
    let status = shortened(approval["status"].as_str().unwrap_or("-"));
    terminal::note(format_args!("{title}: {status}."));
    Ok(())
}

fn read(client: &mut Client, approval: Uuid) -> Outcome<Value> {
    client.get(&format!("/v1/approvals/{approval}"))
}
