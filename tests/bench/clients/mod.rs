//! The TypeScript client: reads one after the other beside bare `fetch`, and events of a stream from memory.

use super::peer::source;
use super::plan::Plan;
use super::read_run::finished_run;
use super::rounds::{Figure, alone, compare};
use super::row::{About, Target};
use super::world::World;
use super::{Done, Outcome};
use std::process::Command;

const READS: About = About {
    name: "client-reads",
    work: "`runtime.runs.get`, 1,000 times one after the other",
    beside: "bare `fetch` and its JSON",
    unit: "requests/s",
    // 1.15 times the time.
    target: Target::AtLeast(0.87),
    says_not: "One process, one connection, one request at a time.",
};

const EVENTS: About = About {
    name: "client-events",
    work: "events of a stream that the client reads from memory",
    beside: "nothing",
    unit: "events/s",
    target: Target::AtLeast(50_000.0),
    says_not: "No network: what parsing and handing over cost.",
};

/// What the program says.
fn said(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome<f64> {
    let mut node = Command::new("node");
    node.arg(source("tests/bench/clients/typescript.mjs"))
        .args(arguments)
        .envs(environment.iter().copied());
    let output = node.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start()?;
    let run = finished_run(&world)?;
    let url = format!("http://{}", world.client.address());
    let environment = [
        ("AGENT_RUNTIME_URL", url.as_str()),
        ("AGENT_RUNTIME_TOKEN", world.token()),
    ];
    let reads = |how| Figure::of(|| said(&["reads", how, &run], &environment));
    done(compare(
        plan,
        &READS,
        || reads("client"),
        || reads("fetch"),
    )?)?;
    done(alone(plan, &EVENTS, || {
        Figure::of(|| said(&["events"], &[]))
    })?)
}
