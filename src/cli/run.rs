//! `run`: starts an agent's turn on a running server, and watches it.

use super::client::{Client, Server, Which, id_of};
use super::display::Display;
use super::{Failure, Outcome, World, follow, names, signals};
use crate::outbound::Method;
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::Read;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime run assistant \"What time is it?\"
  git diff | agent-runtime run reviewer -
  agent-runtime run assistant --json \"Hello\" | jq -r 'select(.kind == \"text.delta\").data.text'
  agent-runtime run assistant --label channel=mail --label ticket=1234 \"Where is my order?\"
  agent-runtime run 01993c5e-7c1f-7d2a-9c55-0242ac120002 --version 1.2.0 --dry-run \"Hello\"

The agent's text goes to stdout, its steps to stderr. Ctrl-C stops watching and leaves the run \
running. Exits 0 if the run completed, 1 if it failed, was cancelled, or is left running.";

/// The longest message that is read, in bytes; the server may accept less.
const MAX_MESSAGE_BYTES: u64 = 8 * 1024 * 1024;

/// Arguments of `run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The agent's id, or its name
    agent: String,
    /// The message; `-` reads standard input
    #[arg(required = true)]
    message: Vec<String>,
    /// The project of the agent, by id or name
    #[arg(long)]
    project: Option<String>,
    /// The agent's version, instead of the live one
    #[arg(long)]
    version: Option<String>,
    /// The conversation to continue
    #[arg(long, value_name = "ID")]
    conversation: Option<Uuid>,
    /// A label of the run, by which lists find it; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Mark the run as a dry run; its tools learn of it
    #[arg(long)]
    dry_run: bool,
    /// Print each event as JSON, one a line, and the run before and after them
    #[arg(long)]
    json: bool,
    /// Cancel the run at Ctrl-C, instead of leaving it running
    #[arg(long)]
    cancel_on_interrupt: bool,
    #[command(flatten)]
    which: Which,
}

/// Starts a run and watches it to its end.
///
/// # Errors
/// The run did not complete, or the server cannot be asked.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let message = message(arguments)?;
    let server = arguments.which.server(world)?;
    let mut client = server.client();
    let agent_id = names::agent(&mut client, &arguments.agent, arguments.project.as_deref())?;
    let mut body = json!({"agentId": agent_id, "message": message, "dryRun": arguments.dry_run});
    if let Some(version) = &arguments.version {
        body["version"] = json!(version);
    }
    if let Some(id) = arguments.conversation {
        body["conversationId"] = json!(id);
    }
    if !arguments.labels.is_empty() {
        body["labels"] = labels(&arguments.labels)?;
    }
    let display = Display::new(&world.vars, arguments.json);
    // Before the run starts: otherwise a Ctrl-C could leave a run whose id nobody knows.
    let endings = signals::endings()?;
    let run_id = start(&server, &mut client, ("/v1/runs", &body), &display)?;
    follow::watch(
        &server,
        run_id,
        display,
        &endings,
        arguments.cancel_on_interrupt,
    )?
    .outcome()
}

/// Starts the run with an idempotency key, so that a lost answer starts no second one.
pub(super) fn start(
    server: &Server,
    client: &mut Client,
    (path, body): (&str, &Value),
    display: &Display,
) -> Outcome<Uuid> {
    let key = Uuid::new_v4().to_string();
    let headers = [
        ("svc-origin", "command-line"),
        ("idempotency-key", key.as_str()),
    ];
    let mut send = || client.send(Method::POST, path, Some(body), &headers);
    let started = send()?;
    let run = &started["run"];
    display.begin(run)?;
    id_of(run)?.parse().map_err(|_| {
        Failure::new(format!(
            "{} answered with a run that has no id.",
            server.url()
        ))
    })
}

/// What stands before the first `=`, and after it.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| "expected KEY=VALUE".to_owned())
}

fn labels(given: &[(String, String)]) -> Outcome<Value> {
    let mut labels = Map::new();
    for (key, value) in given {
        if labels.insert(key.clone(), json!(value)).is_some() {
            return Err(Failure::usage(format!(
                "The label {key} is given twice. A run has one value of it."
            )));
        }
    }
    Ok(Value::Object(labels))
}

fn message(arguments: &Arguments) -> Outcome<String> {
    if arguments.message != ["-"] {
        return Ok(arguments.message.join(" "));
    }
    if arguments.which.takes_stdin() {
        return Err(Failure::usage(
            "The message and the token cannot both come from standard input.",
        ));
    }
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_MESSAGE_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("The message cannot be read: {error}.")))?;
    Ok(text)
}
