//! `run`: starts an agent's turn or a flow on a running server, and watches it.

use super::client::{Client, Server, Which, id_of};
use super::display::Display;
use super::input::{self, STDIN};
use super::{Failure, Outcome, World, follow, names, signals};
use crate::outbound::Method;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime run assistant \"What time is it?\"
  git diff | agent-runtime run reviewer -
  agent-runtime run assistant --json \"Hello\" | jq -r 'select(.kind == \"text.delta\").data.text'
  agent-runtime run assistant --label channel=mail --label ticket=1234 \"Where is my order?\"
  agent-runtime run 01993c5e-7c1f-7d2a-9c55-0242ac120002 --version 1.2.0 --dry-run \"Hello\"
  agent-runtime run assistant --model gpt-4o --overrides careful.json \"Is this contract valid?\"
  agent-runtime run --flow billing.refund --input order.json
  agent-runtime run --flow billing.refund --input order.json --dry-run --fixtures answers.json --models skip

The agent's text goes to stdout, or what the flow puts out, and the steps to stderr. Ctrl-C stops watching and leaves the run \
running. Exits 0 if the run completed, 1 if it failed, was cancelled, or is left running.";

/// The longest message or input that is read, in bytes; the server may accept less.
const MAX_MESSAGE_BYTES: u64 = 8 * 1024 * 1024;

/// Arguments of `run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The agent's id, or its name
    #[arg(required_unless_present = "flow", conflicts_with = "flow")]
    agent: Option<String>,
    /// The message; `-` reads standard input
    #[arg(required_unless_present = "flow")]
    message: Vec<String>,
    /// Start this flow, by its `namespace.name`, instead of an agent
    #[arg(long, value_name = "NAMESPACE.NAME")]
    flow: Option<String>,
    /// The file with the flow's input, as JSON; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "flow")]
    input: Option<PathBuf>,
    /// The project of the agent or the flow, by id or name
    #[arg(long)]
    project: Option<String>,
    /// The version of the agent or the flow, instead of the live one
    #[arg(long)]
    version: Option<String>,
    /// The conversation to continue
    #[arg(long, value_name = "ID", conflicts_with = "flow", value_parser = names::id)]
    conversation: Option<Uuid>,
    /// The model that the run asks in place of its version's, if the version allows it
    #[arg(long, conflicts_with = "flow")]
    model: Option<String>,
    /// The provider of that model, by id or name [default: the version's]
    #[arg(long, value_name = "PROVIDER", conflicts_with = "flow")]
    model_provider: Option<String>,
    /// The file with what else the run sets in place of its version's, if the version allows it: a JSON object with `parameters` and `limits`; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "flow")]
    overrides: Option<PathBuf>,
    /// A label of the run, by which lists find it; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Start a dry run, which changes nothing: it calls only tools with `dryRun: call`, and tells them
    #[arg(long)]
    dry_run: bool,
    /// The file with the answers of steps of the flow's dry run: a JSON object, by path of the step; `-` reads standard input
    #[arg(long, value_name = "FILE", requires_all = ["flow", "dry_run"])]
    fixtures: Option<PathBuf>,
    /// Whether the flow's dry run asks models; with `skip` it begins no agent's turn
    #[arg(long, value_parser = ["call", "skip"], requires_all = ["flow", "dry_run"])]
    models: Option<String>,
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
    let server = arguments.which.server(world)?;
    let mut client = server.client();
    let mut body = match &arguments.flow {
        Some(flow_id) => flow(arguments, &mut client, flow_id)?,
        None => turn(arguments, &mut client)?,
    };
    body["dryRun"] = json!(arguments.dry_run);
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

fn turn(arguments: &Arguments, client: &mut Client) -> Outcome<Value> {
    let message = match arguments.message.as_slice() {
        [one] if one == STDIN => {
            input::read_beside(&arguments.which, Path::new(STDIN), MAX_MESSAGE_BYTES)?
        }
        words => words.join(" "),
    };
    let agent = arguments.agent.as_deref().unwrap_or_default();
    let agent_id = names::agent(client, agent, arguments.project.as_deref())?;
    let mut body = json!({"agentId": agent_id, "message": message});
    if let Some(version) = &arguments.version {
        body["version"] = json!(version);
    }
    if let Some(id) = arguments.conversation {
        body["conversationId"] = json!(id);
    }
    if let Some(overrides) = overrides(arguments, client)? {
        body["overrides"] = overrides;
    }
    Ok(body)
}

/// What the run sets in place of its version's own.
fn overrides(arguments: &Arguments, client: &mut Client) -> Outcome<Option<Value>> {
    let mut set = match &arguments.overrides {
        None => json!({}),
        Some(file) if file == Path::new(STDIN) && arguments.message == [STDIN] => {
            return Err(Failure::usage(
                "The message and --overrides cannot both come from standard input.",
            ));
        }
        Some(file) => json_of(arguments, "file of overrides", file)?,
    };
    let Some(fields) = set.as_object_mut() else {
        return Err(Failure::usage("The file of overrides is no JSON object."));
    };
    if let Some(provider) = &arguments.model_provider {
        let id = names::model_provider(client, provider)?;
        fields.insert("modelProviderId".to_owned(), json!(id));
    }
    if let Some(model) = &arguments.model {
        fields.insert("model".to_owned(), json!(model));
    }
    Ok(Some(set).filter(|set| *set != json!({})))
}

fn flow(arguments: &Arguments, client: &mut Client, flow_id: &str) -> Outcome<Value> {
    let mut body = json!({"flowId": flow_id});
    let is_stdin = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new(STDIN));
    if is_stdin(&arguments.input) && is_stdin(&arguments.fixtures) {
        return Err(Failure::usage(
            "--input and --fixtures cannot both come from standard input.",
        ));
    }
    let files = [
        ("input", "input", &arguments.input),
        ("fixtures", "file of fixtures", &arguments.fixtures),
    ];
    for (field, name, file) in files {
        if let Some(file) = file {
            body[field] = json_of(arguments, name, file)?;
        }
    }
    if let Some(models) = &arguments.models {
        body["models"] = json!(models);
    }
    if let Some(project) = &arguments.project {
        body["projectId"] = json!(names::project(client, project)?);
    }
    if let Some(version) = &arguments.version {
        body["flowVersion"] = json!(version);
    }
    Ok(body)
}

/// What a file holds, or standard input.
fn json_of(arguments: &Arguments, name: &str, file: &Path) -> Outcome<Value> {
    let text = input::read_beside(&arguments.which, file, MAX_MESSAGE_BYTES)?;
    input::json(&text, &format!("The {name}"))
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
