//! `runs`: lists runs of a running server, shows one with its steps, cancels one.

use super::client::{Client, Which};
use super::display::{Display, shortened, step_of, task_of, usage};
use super::table::{self, Since};
use super::terminal::{Style, say, say_json};
use super::{Failure, Outcome, World, follow, hold, names, run, signals, terminal};
use crate::ids::rfc3339;
use crate::outbound::Method;
use crate::store::runs::Status;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::HashMap;
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime runs
  agent-runtime runs --status failed --since 12h
  agent-runtime runs --children --flow billing.refund
  agent-runtime runs --label channel=mail --label ticket=1234
  agent-runtime runs --agent assistant --limit 200 --json | jq -r .id
  agent-runtime runs show 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime runs cancel 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime runs retry 01993c5e-7c1f-7d2a-9c55-0242ac120002

The list has the newest runs first, without the child runs that they began; CHILDREN is how many each began. Times are in UTC.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime runs show 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime runs show 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .run.failureMessage

Shows a run with its steps, its usage and why it failed. To watch it: agent-runtime follow.";

const CANCEL_EXAMPLES: &str = "\
Examples:
  agent-runtime runs cancel 01993c5e-7c1f-7d2a-9c55-0242ac120002

Exits 0 if the run is cancelled or was asked to cancel, 1 if it had ended otherwise.";

const RETRY_EXAMPLES: &str = "\
Examples:
  agent-runtime runs retry 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime runs retry 01993c5e-7c1f-7d2a-9c55-0242ac120002 --repeat-unknown-call

Starts a new run that goes on after the last step that was done, and watches it as `run` does. Exits 0 if it completed, 1 if \
it failed, was cancelled, or is left running.";

/// Arguments of `runs`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one run.
#[derive(Subcommand)]
enum Command {
    /// Show a run, its steps, its usage and why it failed
    Show(One),
    /// Cancel a run
    Cancel(Cancel),
    /// Continue a failed run, as a new run, and watch it
    Retry(Retry),
    /// Hold all runs until they are released; for the operator, directly in the database
    #[command(after_help = hold::HOLD_EXAMPLES)]
    Hold(hold::Database),
    /// Release all held runs; for the operator, directly in the database
    #[command(after_help = hold::RELEASE_EXAMPLES)]
    Release(hold::Database),
}

/// Which runs are listed.
#[derive(Args)]
struct List {
    /// Only runs with this status
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::text)))]
    status: Option<String>,
    /// Only runs of this agent, by id or name
    #[arg(long)]
    agent: Option<String>,
    /// Only runs of this flow: its `namespace.name`
    #[arg(long, value_name = "ID", conflicts_with = "agent")]
    flow: Option<String>,
    /// Only runs of this project, by id or name; the name of --agent is looked for there
    #[arg(long)]
    project: Option<String>,
    /// Only runs with this label; may be repeated: runs with all of them. The search begins with the first
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = run::label)]
    labels: Vec<(String, String)>,
    /// Only the run that this request created: req- and a UUID, as errors and the header x-request-id have it
    #[arg(long, value_name = "ID", value_parser = names::request)]
    request: Option<Uuid>,
    /// Only runs created since: 30m, 12h or 7d ago, or a time such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Child runs too
    #[arg(long)]
    children: bool,
    /// How many at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each run as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `runs show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct One {
    /// The run's id
    #[arg(value_parser = names::id)]
    run: Uuid,
    /// Print the run and its events as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `runs cancel`.
#[derive(Args)]
#[command(after_help = CANCEL_EXAMPLES)]
struct Cancel {
    /// The run's id
    #[arg(value_parser = names::id)]
    run: Uuid,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `runs retry`.
#[derive(Args)]
#[command(after_help = RETRY_EXAMPLES)]
struct Retry {
    /// The failed run's id
    #[arg(value_parser = names::id)]
    run: Uuid,
    /// Have a tool that is not idempotent called again, although it may have done its work
    #[arg(long)]
    repeat_unknown_call: bool,
    /// Print each event as JSON, one a line, and the run before and after them
    #[arg(long)]
    json: bool,
    /// Cancel the new run at Ctrl-C, instead of leaving it running
    #[arg(long)]
    cancel_on_interrupt: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists runs, shows one, cancels one, takes a failed one up again, or holds and releases all.
///
/// # Errors
/// The server cannot be asked, there is no such run, or what was to be cancelled had ended.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Show(one)) => show(world, one),
        Some(Command::Cancel(one)) => cancel(world, one),
        Some(Command::Retry(one)) => retry(world, one),
        Some(Command::Hold(database)) => hold::set(world, database, true),
        Some(Command::Release(database)) => hold::set(world, database, false),
    }
}

/// The list that is asked for.
fn path(
    world: &World,
    client: &mut Client,
    arguments: &List,
    project: Option<&str>,
) -> Outcome<String> {
    let mut path = "/v1/runs?order=desc".to_owned();
    if let Some(project) = project {
        path += &format!("&projectId={project}");
    }
    if let Some(agent) = &arguments.agent {
        path += &format!("&agentId={}", names::agent(client, agent, project)?);
    }
    if let Some(flow) = &arguments.flow {
        path += "&flowId=";
        path.extend(byte_serialize(flow.as_bytes()));
    }
    if let Some(status) = &arguments.status {
        path += &format!("&status={status}");
    }
    for (key, value) in &arguments.labels {
        let label = format!("{key}:{value}");
        path += "&label=";
        path.extend(byte_serialize(label.as_bytes()));
    }
    if let Some(request) = arguments.request {
        path += &format!("&requestId=req-{request}");
    }
    if arguments.children {
        path += "&children=true";
    }
    let since = arguments.since.map(|since| since.time(world.clock.now()));
    if let Some(since) = since.transpose()? {
        path += &format!("&from={}", rfc3339::text(since));
    }
    Ok(path)
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let project = arguments.project.as_deref();
    let project = project.map(|project| names::project(&mut client, project));
    let project = project.transpose()?;
    let path = path(world, &mut client, arguments, project.as_deref())?;
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let agents = found.rows.iter().map(|run| &run["agent"]["id"]);
    let agents = names::names_of(&mut client, "agents", agents);
    let rows = found.rows.iter().map(|run| row(run, &agents));
    let rows: Vec<[String; 8]> = rows.collect();
    let style = Style::of_stdout(&world.vars);
    let head = [
        "STATUS",
        "CREATED",
        "TOOK",
        "AGENT OR FLOW",
        "CHILDREN",
        "COST",
        "ID",
        "WHY",
    ];
    table::print(style, head, &rows, |status, cell| {
        painted(style, status, cell)
    })?;
    found.say_what_is_left("runs", "--since, --status, --label, --agent or --flow");
    Ok(())
}

/// A run in the list.
fn row(run: &Value, agents: &HashMap<String, String>) -> [String; 8] {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let agent = run["agent"]["id"].as_str();
    let name = agent.map(|agent| agents.get(agent).map_or(agent, String::as_str));
    let mut name = name.or(run["flowId"].as_str()).unwrap_or("-").to_owned();
    if let Some(path) = run["branch"]["path"].as_str() {
        let number = run["branch"]["index"].as_i64().unwrap_or_default() + 1;
        name += &format!(" ({} {number})", task_of(path));
    }
    [
        text(&run["status"]),
        table::time(&run["createdAt"]),
        table::between(&run["createdAt"], &run["completedAt"]),
        name,
        run["childCount"].as_i64().unwrap_or_default().to_string(),
        cost(run),
        text(&run["id"]),
        run["failureMessage"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    ]
}

fn cost(run: &Value) -> String {
    format!("${}", run["usage"]["costUsd"].as_f64().unwrap_or(0.0))
}

fn painted(style: Style, status: &str, text: &str) -> String {
    match status {
        "completed" => style.green(text),
        "failed" => style.red(text),
        _ => style.yellow(text),
    }
}

fn show(world: &World, arguments: &One) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let (run, events) = client.progress(arguments.run)?;
    if arguments.json {
        return say_json(&json!({"run": run, "events": events}));
    }
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let agent = names::names_of(&mut client, "agents", [&run["agent"]["id"]]);
    let status = text(&run["status"]);
    say(painted(style, &status, &status))?;
    let line = |name: &str, value: &str| say(format_args!("{} {value}", style.dim(name)));
    line("id       ", &text(&run["id"]))?;
    let (what, name, version) = match run["agent"]["id"].as_str() {
        Some(id) => {
            let name = agent.get(id).map_or(id, String::as_str);
            ("agent    ", name.to_owned(), &run["agent"]["version"])
        }
        None => ("flow     ", text(&run["flowId"]), &run["flowVersion"]),
    };
    line(what, &format!("{name}, version {}", text(version)))?;
    if run["overrides"].is_object() {
        line("sets     ", &shortened(&run["overrides"].to_string()))?;
    }
    line("created  ", &table::time(&run["createdAt"]))?;
    line("ended    ", &table::time(&run["completedAt"]))?;
    line(
        "took     ",
        &table::between(&run["createdAt"], &run["completedAt"]),
    )?;
    if run["failureMessage"].is_string() {
        line("why      ", &style.red(&text(&run["failureMessage"])))?;
    }
    let steps = steps(&events);
    if !steps.is_empty() {
        say("")?;
        let head = ["STEP", "TRY", "KIND", "NAME", "TOOK", "OUTCOME"];
        table::print(style, head, &steps, |_, cell| cell.to_owned())?;
        say("")?;
    }
    let done = events
        .iter()
        .filter(|event| event["kind"] == "step.completed");
    say(usage(done.count(), &run))
}

/// A row for each attempt that began.
fn steps(events: &[Value]) -> Vec<[String; 6]> {
    let begun = events
        .iter()
        .filter(|event| event["kind"] == "step.started");
    let rows = begun.map(|begun| {
        let is_of = |event: &&Value| {
            let (ended, of) = (&event["data"], &begun["data"]);
            let is_lost = ended["lostAttempt"].is_i64() && ended["lostAttempt"] == of["attempt"];
            let is_end =
                ["step.completed", "step.failed"].contains(&event["kind"].as_str().unwrap_or(""));
            ended["step"] == of["step"] && (is_lost || is_end && ended["attempt"] == of["attempt"])
        };
        let end = events.iter().find(is_of);
        let data = &begun["data"];
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        [
            data["step"].to_string(),
            data["attempt"].to_string(),
            text(&data["type"]),
            step_of(data),
            end.map_or_else(
                || "-".to_owned(),
                |end| table::between(&begun["createdAt"], &end["createdAt"]),
            ),
            end.map_or_else(|| "not ended".to_owned(), outcome),
        ]
    });
    rows.collect()
}

/// How an attempt ended.
fn outcome(end: &Value) -> String {
    let data = &end["data"];
    match end["kind"].as_str() {
        Some("step.failed") => data["reason"].as_str().unwrap_or("failed").to_owned(),
        Some("step.completed") if data["isError"] == true => {
            format!("error: {}", data["output"].as_str().unwrap_or_default())
        }
        Some("step.completed") => match data["outcome"].as_str() {
            None | Some("succeeded") => "done".to_owned(),
            Some(outcome) => format!("{outcome}{}", how(data)),
        },
        _ => "lost in a crash".to_owned(),
    }
}

/// What is known of a step that did not succeed, after its outcome.
fn how(data: &Value) -> String {
    if data["statusCode"].is_u64() {
        return format!(": HTTP {}", data["statusCode"]);
    }
    if let Some(decision) = data["decision"].as_str() {
        return format!(": {}", shortened(decision));
    }
    let Some(children) = data["children"].as_array() else {
        return String::new();
    };
    let failed = children
        .iter()
        .filter(|child| child["status"] != "completed");
    let all = children.len();
    format!(": {} of {all} runs did not complete", failed.count())
}

fn cancel(world: &World, arguments: &Cancel) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let path = format!("/v1/runs/{}/cancel", arguments.run);
    let run = client.send(Method::POST, &path, None, &[])?;
    if arguments.json {
        say_json(&run)?;
    }
    match run["status"].as_str() {
        Some("completed" | "failed") => Err(Failure::new(format!(
            "The run had ended already: {}.",
            run["status"].as_str().unwrap_or_default()
        ))),
        Some("cancelled") => {
            terminal::note("The run is cancelled.");
            Ok(())
        }
        _ => {
            terminal::note("The run was asked to cancel; it ends soon.");
            Ok(())
        }
    }
}

fn retry(world: &World, arguments: &Retry) -> Outcome {
    let server = arguments.which.server(world)?;
    let mut client = server.client();
    let display = Display::new(&world.vars, arguments.json);
    // Before the run starts: otherwise a Ctrl-C could leave a run whose id nobody knows.
    let endings = signals::endings()?;
    let path = format!("/v1/runs/{}/retry", arguments.run);
    let body = json!({"repeatUnknownCall": arguments.repeat_unknown_call});
    let run_id = run::start(&server, &mut client, (&path, &body), &display)?;
    let cancels = arguments.cancel_on_interrupt;
    follow::watch(&server, run_id, display, &endings, cancels)?.outcome()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_children_and_names_the_iteration_that_a_child_is() {
        let shown = |run: Value| {
            let [_, _, _, name, children, ..] = row(&run, &HashMap::new());
            (name, children)
        };
        let root = json!({"flowId": "billing.refund", "childCount": 20});
        assert_eq!(shown(root), ("billing.refund".to_owned(), "20".to_owned()));
        let branch = json!({"path": "/do/0/each", "index": 2});
        let child = json!({"flowId": "billing.refund", "childCount": 0, "branch": branch});
        assert_eq!(
            shown(child),
            ("billing.refund (each 3)".to_owned(), "0".to_owned())
        );
    }

    #[test]
    fn each_attempt_of_a_step_is_a_row_with_its_end() {
        let event = |kind: &str, second: u8, data: Value| {
            let at = format!("2026-01-31T08:00:0{second}.000Z");
            json!({"kind": kind, "createdAt": at, "data": data})
        };
        let step = |step: i64, attempt: i64| json!({"step": step, "attempt": attempt, "type": "model", "name": "m"});
        let with = |mut data: Value, key: &str, value: Value| {
            data[key] = value;
            data
        };
        let events = [
            event("step.started", 0, step(1, 1)),
            event(
                "step.failed",
                1,
                with(step(1, 1), "reason", json!("HTTP 503.")),
            ),
            event("step.started", 2, step(1, 2)),
            event(
                "step.restarted",
                4,
                with(step(1, 3), "lostAttempt", json!(2)),
            ),
            event("step.started", 4, step(1, 3)),
            event("step.completed", 5, step(1, 3)),
            event("step.started", 6, step(2, 1)),
        ];
        let rows = steps(&events);
        let shown: Vec<String> = rows
            .iter()
            .map(|[step, attempt, _, _, took, outcome]| {
                format!("{step}.{attempt} {took} {outcome}")
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1.1 1.0 s HTTP 503.",
                "1.2 2.0 s lost in a crash",
                "1.3 1.0 s done",
                "2.1 - not ended",
            ]
        );
    }
}
