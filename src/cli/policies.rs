//! `policies`: shows the guardrails of the tenant or of a project, and puts them from a file.

use super::client::{Client, Which};
use super::display::plural;
use super::pushed::Pushed;
use super::terminal::{Style, printable, say, say_json, say_line};
use super::{Failure, Outcome, World, names};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agent-runtime policies show
  agent-runtime policies show --project support
  agent-runtime policies put policy.yaml --project support

The guardrails of the tenant's policy judge first, then those of the project's, then those of the \
agent's version. No version takes one away.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime policies show
  agent-runtime policies show --project support --json | jq .guardrails

The tenant's policy is shown to all its members, a project's to who may read the project.";

const PUT_EXAMPLES: &str = "\
Examples:
  agent-runtime policies put policy.yaml
  agent-runtime policies put policy.yaml --project support --expected-version 3

The file, in JSON or YAML:

  guardrails:
  - builtin: secrets
    at: [tool.result, output]
    action: redact
  streaming: held                        or unchecked: text is streamed before its verdict

It becomes the next version as a whole, also for runs under way; earlier versions stay. With \
--expected-version nothing changes if another version is the newest by then; 0 stands for none. \
The tenant's policy takes a tenant admin, a project's an admin of the project.";

/// The fields of the file.
const FIELDS: [&str; 2] = ["guardrails", "streaming"];

/// Arguments of `policies`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands on a policy.
#[derive(Subcommand)]
enum Command {
    /// Show the newest version of a policy
    Show(Show),
    /// Put a policy from a file
    Put(Put),
}

/// Arguments of `policies show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The policy of this project, by id or name [default: the tenant's]
    #[arg(long)]
    project: Option<String>,
    /// Print the policy as JSON, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `policies put`.
#[derive(Args)]
#[command(after_help = PUT_EXAMPLES)]
struct Put {
    /// The policy, in JSON or YAML; `-` is stdin
    file: PathBuf,
    /// The policy of this project, by id or name [default: the tenant's]
    #[arg(long)]
    project: Option<String>,
    /// The version that it takes the place of [default: whichever is the newest]
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<u32>,
    /// Print the policy as JSON, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Shows a policy, or puts one.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::Show(one) => show(world, one),
        Command::Put(new) => put(world, new),
    }
}

/// Where the policy is.
fn path(client: &mut Client, project: Option<&str>) -> Outcome<String> {
    Ok(match project {
        Some(named) => format!("/v1/projects/{}/policies", names::project(client, named)?),
        None => "/v1/policies".to_owned(),
    })
}

fn owner(project: Option<&str>) -> &'static str {
    match project {
        Some(_) => "project",
        None => "tenant",
    }
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let project = arguments.project.as_deref();
    let path = path(&mut client, project)?;
    let policy = client.get(&path)?;
    if arguments.json {
        return say_json(&policy);
    }
    if policy["version"] == json!(0) {
        return say(format_args!("The {} has no policy yet.", owner(project)));
    }
    let style = Style::of_stdout(&world.vars);
    say_line(style, "version", &policy["version"].to_string())?;
    let text = |field: &str| printable(policy[field].as_str().unwrap_or("-"));
    say_line(style, "put at", &text("createdAt"))?;
    say_line(style, "put by", &text("createdBy"))?;
    say_line(style, "streaming", &text("streaming"))?;
    let guardrails = serde_json::to_string_pretty(&policy["guardrails"])
        .map_err(|error| Failure::new(error.to_string()))?;
    let lines = guardrails.lines().map(printable);
    lines.into_iter().try_for_each(say)
}

fn put(world: &World, arguments: &Put) -> Outcome {
    let file = Pushed::read(&arguments.which, &arguments.file, &FIELDS)?;
    let project = arguments.project.as_deref();
    let mut client = arguments.which.server(world)?.client();
    let path = path(&mut client, project)?;
    let mut body = file.fields.clone();
    if let Some(version) = arguments.expected_version {
        body.insert("expectedVersion".to_owned(), json!(version));
    }
    let policy = file.put(&mut client, &path, &Value::Object(body))?;
    if arguments.json {
        return say_json(&policy);
    }
    let count = policy["guardrails"].as_array().map_or(0, Vec::len);
    let noun = plural(count, "guardrail");
    say(format_args!(
        "The {}'s policy is version {} now, with {count} {noun}.",
        owner(project),
        policy["version"]
    ))
}
