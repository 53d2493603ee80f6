//! `environments`: lists the environments of a running server and their variables, puts a variable, or deletes one.

use super::client::Which;
use super::display::shortened;
use super::terminal::{Style, say, say_json};
use super::{Outcome, World, table};
use crate::uri::percent_encoded;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  agent-runtime environments
  agent-runtime environments variables production
  agent-runtime environments set production API_URL https://api.example.com
  agent-runtime environments unset production API_URL

An environment is there as soon as a variable, a secret or the server's SVC_ENVIRONMENT names it. \
Flows read the variables of the one that is served: $runtime.metadata.env.";

const VARIABLES_EXAMPLES: &str = "\
Examples:
  agent-runtime environments variables production
  agent-runtime environments variables production --json | jq -r '.name + \"=\" + .value'

Every member of the tenant reads variables. They are no secrets.";

const SET_EXAMPLES: &str = "\
Examples:
  agent-runtime environments set production API_URL https://api.example.com
  agent-runtime environments set production GREETING ''

Runs that were created before keep the earlier value. It takes a tenant admin and a key with \
env:write. A variable is no secret: put a secret with PUT /v1/secrets/{environment}/{name}.";

const UNSET_EXAMPLES: &str = "\
Examples:
  agent-runtime environments unset production API_URL

Runs that were created before keep it. It takes a tenant admin and a key with env:write.";

/// Arguments of `environments`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one environment.
#[derive(Subcommand)]
enum Command {
    /// List the variables of an environment
    Variables(Variables),
    /// Put a variable
    Set(Set),
    /// Delete a variable
    Unset(Unset),
}

/// How environments are listed.
#[derive(Args)]
struct List {
    /// Print each environment as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `environments variables`.
#[derive(Args)]
#[command(after_help = VARIABLES_EXAMPLES)]
struct Variables {
    /// The environment's name
    environment: String,
    /// Print each variable as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `environments set`.
#[derive(Args)]
#[command(after_help = SET_EXAMPLES)]
struct Set {
    /// The environment's name
    environment: String,
    /// The variable's name
    name: String,
    /// Its value
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `environments unset`.
#[derive(Args)]
#[command(after_help = UNSET_EXAMPLES)]
struct Unset {
    /// The environment's name
    environment: String,
    /// The variable's name
    name: String,
    #[command(flatten)]
    which: Which,
}

/// Lists environments or variables, puts a variable, or deletes one.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Variables(of)) => variables(world, of),
        Some(Command::Set(new)) => set(world, new),
        Some(Command::Unset(one)) => unset(world, one),
    }
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let all = client.all("/v1/environments", |_| true)?;
    if arguments.json {
        return all.iter().try_for_each(say_json);
    }
    let row = |one: &Value| {
        let served = if one["isServed"] == true {
            "served"
        } else {
            ""
        };
        let name = shortened(one["name"].as_str().unwrap_or("-"));
        [name, served.to_owned()]
    };
    let rows: Vec<[String; 2]> = all.iter().map(row).collect();
    let style = Style::of_stdout(&world.vars);
    table::print(style, ["NAME", ""], &rows, |_, cell| style.bold(cell))
}

fn variables(world: &World, arguments: &Variables) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let all = client.all(&all_of(&arguments.environment), |_| true)?;
    if arguments.json {
        return all.iter().try_for_each(say_json);
    }
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let row = |one: &Value| [text(&one["name"]), text(&one["value"])];
    let rows: Vec<[String; 2]> = all.iter().map(row).collect();
    let style = Style::of_stdout(&world.vars);
    table::print(style, ["NAME", "VALUE"], &rows, |_, cell| style.bold(cell))
}

fn set(world: &World, arguments: &Set) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let body = json!({"value": arguments.value});
    client.put(&one_of(&arguments.environment, &arguments.name), &body)?;
    say(format_args!(
        "{} is set in the environment {}.",
        arguments.name, arguments.environment
    ))
}

fn unset(world: &World, arguments: &Unset) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    client.delete(&one_of(&arguments.environment, &arguments.name))?;
    say(format_args!(
        "{} is deleted from the environment {}.",
        arguments.name, arguments.environment
    ))
}

fn all_of(environment: &str) -> String {
    let environment = percent_encoded(environment.as_bytes());
    format!("/v1/environments/{environment}/variables")
}

fn one_of(environment: &str, name: &str) -> String {
    format!(
        "{}/{}",
        all_of(environment),
        percent_encoded(name.as_bytes())
    )
}
