//! `usage`: sums what the model calls of runs used and cost.

use super::client::{Client, Which};
use super::table::{self, Since};
use super::terminal::{self, Style, say_json};
use super::{Outcome, World, names};
use crate::ids::rfc3339;
use clap::Args;
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  agent-runtime usage
  agent-runtime usage --by day --since 7d
  agent-runtime usage --by agent --by model --project payments
  agent-runtime usage --by day --by model --json | jq -r '[.day, .model, .costUsd] | @csv'

Sums are of the runs that you may read, from their model calls. A run counts on the day (UTC) on
which it was created. A time covers 92 days at most.";

/// Arguments of `usage`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Sum separately by this; may be repeated [default: one sum of all]
    #[arg(long, value_parser = ["day", "project", "agent", "model"])]
    by: Vec<String>,
    /// Of runs created since then: 12h, 7d ago, or a time such as 2026-01-31T08:00:00Z [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only runs of this agent, by id or name
    #[arg(long)]
    agent: Option<String>,
    /// Only runs of this project, by id or name; the name of --agent is looked for there
    #[arg(long)]
    project: Option<String>,
    /// Print each sum as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Prints the sums.
///
/// # Errors
/// The server cannot be asked, or refuses the time.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let path = format!("/v1/usage?{}", query(world, arguments, &mut client)?);
    let mut report = client.get(&path)?;
    let Value::Array(sums) = report["data"].take() else {
        return Err(super::Failure::new("The server's sums are no list."));
    };
    if arguments.json {
        return sums.iter().try_for_each(say_json);
    }
    if sums.is_empty() {
        terminal::note("No model was asked in this time.");
        return Ok(());
    }
    let projects = sums.iter().map(|sum| &sum["projectId"]);
    let projects = names::names_of(&mut client, "projects", projects);
    let agents = sums.iter().map(|sum| &sum["agentId"]);
    let agents = names::names_of(&mut client, "agents", agents);
    let named = |names: &std::collections::HashMap<String, String>, id: &Value| {
        let id = id.as_str().unwrap_or("-");
        names.get(id).map_or(id, String::as_str).to_owned()
    };
    let of = |sum: &Value| {
        let parts = arguments.by.iter().map(|by| match by.as_str() {
            "project" => named(&projects, &sum["projectId"]),
            "agent" => named(&agents, &sum["agentId"]),
            other => sum[other].as_str().unwrap_or("-").to_owned(),
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<[String; 5]> = sums
        .iter()
        .map(|sum| {
            [
                if arguments.by.is_empty() {
                    "all".to_owned()
                } else {
                    of(sum)
                },
                format!("${}", sum["costUsd"].as_f64().unwrap_or(0.0)),
                sum["calls"].to_string(),
                sum["tokens"]["prompt"].to_string(),
                sum["tokens"]["completion"].to_string(),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["OF", "COST", "CALLS", "TOKENS READ", "TOKENS WRITTEN"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    let unknown = sums
        .iter()
        .filter_map(|sum| sum["callsWithoutCost"].as_i64());
    let unknown: i64 = unknown.sum();
    if unknown > 0 {
        terminal::note(format_args!(
            "Of {unknown} of these calls the cost is not known, and counts 0: their model has no price, or they did not say what they used."
        ));
    }
    Ok(())
}

/// What the server is asked for.
fn query(world: &World, arguments: &Arguments, client: &mut Client) -> Outcome<String> {
    let project = arguments.project.as_deref();
    let project = project.map(|project| names::project(client, project));
    let project = project.transpose()?;
    let mut query: Vec<String> = arguments.by.iter().map(|by| format!("by={by}")).collect();
    if let Some(project) = &project {
        query.push(format!("projectId={project}"));
    }
    if let Some(agent) = &arguments.agent {
        let agent = names::agent(client, agent, project.as_deref())?;
        query.push(format!("agentId={agent}"));
    }
    if let Some(since) = arguments.since {
        let from = since.time(world.clock.now())?;
        query.push(format!("from={}", rfc3339::text(from)));
    }
    Ok(query.join("&"))
}
