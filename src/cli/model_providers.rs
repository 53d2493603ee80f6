//! `model-providers`: lists the model providers of a running server, and checks one.

use super::client::Which;
use super::display::shortened;
use super::terminal::{Style, say, say_json};
use super::{Failure, Outcome, World, names, table};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  agent-runtime model-providers
  agent-runtime model-providers --json | jq -r '.models[].name'
  agent-runtime model-providers check models

The list is in the order of time, the newest first.";

const CHECK_EXAMPLES: &str = "\
Examples:
  agent-runtime model-providers check models
  agent-runtime model-providers check models --model small
  agent-runtime model-providers check models --json | jq -e .ok

The server asks the model provider as an agent does, with up to three short calls, and says what it
can do. It takes a tenant admin. The command ends with 1 if the model does not answer.";

/// Arguments of `model-providers`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one provider.
#[derive(Subcommand)]
enum Command {
    /// Ask a model one sentence, and say what its server can do
    Check(Check),
}

/// Which providers are listed.
#[derive(Args)]
struct List {
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each provider as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `model-providers check`.
#[derive(Args)]
#[command(after_help = CHECK_EXAMPLES)]
struct Check {
    /// The provider's id, or its name
    provider: String,
    /// One of its models [default: the first by name]
    #[arg(long)]
    model: Option<String>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists model providers, or checks one.
///
/// # Errors
/// The server cannot be asked, there is no such provider, or its model does not answer.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Check(check)) => self::check(world, check),
    }
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let found = client.first("/v1/model-providers?order=desc", arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|provider| {
            [
                text(&provider["name"]),
                models(provider),
                key(provider),
                text(&provider["id"]),
                text(&provider["baseUrl"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["NAME", "MODELS", "KEY", "ID", "ADDRESS"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("model providers", "--limit");
    Ok(())
}

fn models(provider: &Value) -> String {
    let models = provider["models"].as_array();
    let models = models.map(Vec::as_slice).unwrap_or_default();
    let mut names = models.iter().map(|model| &model["name"]);
    let first = names.next().and_then(Value::as_str).map(shortened);
    match (first, names.count()) {
        (None, _) => "-".to_owned(),
        (Some(first), 0) => first,
        (Some(first), more) => format!("{first} and {more} more"),
    }
}

/// By what it lets the server in; never the key.
fn key(provider: &Value) -> String {
    let secret = &provider["apiKeySecretRef"];
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    match provider["apiKeyName"].as_str() {
        Some(name) => shortened(name),
        None if secret.is_null() => "-".to_owned(),
        None => format!(
            "secret {}/{}",
            text(&secret["envName"]),
            text(&secret["name"])
        ),
    }
}

fn check(world: &World, arguments: &Check) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let id = names::model_provider(&mut client, &arguments.provider)?;
    let body = match &arguments.model {
        Some(model) => json!({"model": model}),
        None => json!({}),
    };
    let found = client.post(&format!("/v1/model-providers/{id}/check"), &body)?;
    if arguments.json {
        say_json(&found)?;
    } else {
        print(world, &found)?;
    }
    match found["ok"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(Failure::new(
            "The model provider does not answer as an agent needs it.",
        )),
    }
}

fn print(world: &World, found: &Value) -> Outcome {
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    say(format_args!("model {}", style.bold(&text(&found["model"]))))?;
    let steps = found["steps"].as_array();
    for step in steps.map(Vec::as_slice).unwrap_or_default() {
        let state = match step["ok"].as_bool() {
            Some(true) => "ok  ",
            Some(false) => "FAIL",
            None => "-   ",
        };
        let name = format!("{:13}", text(&step["step"]));
        say(format_args!(
            "{state} {} {}",
            style.dim(&name),
            text(&step["value"])
        ))?;
        if let Some(remedy) = step["whatToDo"].as_str() {
            say(format_args!(
                "     {} {}",
                " ".repeat(13),
                shortened(remedy)
            ))?;
        }
    }
    Ok(())
}
