//! `guardrails try`: what guardrails make of a text.

use super::client::Which;
use super::display::shortened;
use super::terminal::{Style, printable, say, say_json};
use super::{Outcome, World, input, names, table};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The longest text and the longest list of guardrails, in bytes.
const TEXT_BYTES: u64 = 1024 * 1024;
const GUARDRAILS_BYTES: u64 = 2 * 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  echo 'Write to ada@example.com.' | agent-runtime guardrails try - --project support --point output

What goes into runs and what comes out is judged by the guardrails of policies \
(agent-runtime policies) and of the agent's version.";

const TRY_EXAMPLES: &str = "\
Examples:
  agent-runtime guardrails try answer.txt --project support --point output
  agent-runtime guardrails try answer.txt --project support --point output --guardrails new.json --without-policies
  agent-runtime guardrails try call.json --project support --point tool.arguments --tool send_mail --json | jq .verdict

The guardrails of the tenant's and the project's policies judge the text, then those of the file, \
a JSON list as in an agent's version. Nothing is kept. It takes write on the project. The command \
ends with 0 whatever the verdict.";

/// Arguments of `guardrails`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The commands on guardrails.
#[derive(Subcommand)]
enum Command {
    /// Have guardrails judge a text
    Try(Try),
}

/// Arguments of `guardrails try`.
#[derive(Args)]
#[command(after_help = TRY_EXAMPLES)]
struct Try {
    /// The text; `-` is stdin
    file: PathBuf,
    /// The project whose policy applies, by id or name
    #[arg(long)]
    project: String,
    /// Where the text would stand
    #[arg(long, value_parser = ["input", "tool.arguments", "tool.result", "output"])]
    point: String,
    /// The tool whose arguments or result it is
    #[arg(long)]
    tool: Option<String>,
    /// A file with a JSON list of guardrails that judge after those of the policies
    #[arg(long, value_name = "FILE")]
    guardrails: Option<PathBuf>,
    /// Leave out the guardrails of the policies
    #[arg(long)]
    without_policies: bool,
    /// Print the answer as JSON, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Tries guardrails.
///
/// # Errors
/// The server cannot be asked, or refuses.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let Command::Try(arguments) = &arguments.command;
    let text = input::read_beside(&arguments.which, &arguments.file, TEXT_BYTES)?;
    let mut body = json!({
        "point": arguments.point,
        "text": text,
        "withPolicies": !arguments.without_policies,
    });
    if let Some(tool) = &arguments.tool {
        body["tool"] = json!(tool);
    }
    if let Some(file) = &arguments.guardrails {
        let written = input::read_beside(&arguments.which, file, GUARDRAILS_BYTES)?;
        body["guardrails"] = input::json(&written, &input::name(file))?;
    }
    let mut client = arguments.which.server(world)?.client();
    body["projectId"] = json!(names::project(&mut client, &arguments.project)?);
    let tried = client.post("/v1/guardrails/try", &body)?;
    match arguments.json {
        true => say_json(&tried),
        false => show(world, &tried),
    }
}

fn show(world: &World, tried: &Value) -> Outcome {
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let checks = tried["checks"].as_array().map(Vec::as_slice);
    let row = |check: &Value| {
        [
            text(&check["name"]),
            text(&check["origin"]),
            text(&check["verdict"]),
            text(&check["reason"]),
        ]
    };
    let rows: Vec<[String; 4]> = checks.unwrap_or_default().iter().map(row).collect();
    match rows.is_empty() {
        true => say("No guardrail judges this.")?,
        false => {
            let head = ["GUARDRAIL", "OF", "VERDICT", "WHY"];
            table::print(style, head, &rows, |_, cell| style.bold(cell))?;
        }
    }
    if tried["verdict"] == "block" {
        return say(format_args!("{} blocked it.", text(&tried["blockedBy"])));
    }
    let goes_on = match tried["verdict"].as_str() {
        Some("approve") => "A reviewer decides on:",
        Some("redact") => "It goes on as:",
        _ => return say("It goes on as it is."),
    };
    say(style.dim(goes_on))?;
    let text = tried["text"].as_str().unwrap_or_default();
    text.lines().map(printable).try_for_each(say)
}
