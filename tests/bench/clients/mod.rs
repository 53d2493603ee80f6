//! The clients: reads one after the other beside bare `fetch` and bare httpx2, events of a stream from memory, and what an
//! import of the Python one takes.

use super::peer::{parts, source};
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

const PYTHON_READS: About = About {
    name: "client-python-reads",
    work: "`runtime.runs.get` in Python, 1,000 times one after the other",
    beside: "bare httpx2 and its JSON",
    unit: "requests/s",
    // 1.15 times the time.
    target: Target::AtLeast(0.87),
    says_not: "One process, one connection, one request at a time; the synchronous client.",
};

const PYTHON_EVENTS: About = About {
    name: "client-python-events",
    work: "events of a stream that the Python client reads from memory",
    beside: "nothing",
    unit: "events/s",
    target: Target::AtLeast(50_000.0),
    says_not: "No network, and no field of an event is read: what parsing and handing over cost.",
};

const PYTHON_IMPORT: About = About {
    name: "client-python-import",
    work: "`import agent_runtime`, beyond that of httpx2",
    beside: "nothing",
    unit: "ms",
    target: Target::AtMost(60.0),
    says_not: "The least of nine processes, whose files are in the memory of the system.",
};

/// What a client's program says.
fn said(mut program: Command, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome<f64> {
    let program = program.args(arguments).envs(environment.iter().copied());
    let output = program.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

fn typescript() -> Command {
    let mut node = Command::new("node");
    node.arg(source("tests/bench/clients/typescript.mjs"));
    node
}

fn python() -> Outcome<Command> {
    let interpreter = parts()?.join("python-client/bin/python");
    if !interpreter.exists() {
        return Err(
            "What the Python client needs is missing: run tests/setup/python-client".into(),
        );
    }
    let mut python = Command::new(interpreter);
    python.arg(source("tests/bench/clients/python.py"));
    Ok(python)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start()?;
    let run = finished_run(&world)?;
    let url = format!("http://{}", world.client.address());
    let environment = [
        ("AGENT_RUNTIME_URL", url.as_str()),
        ("AGENT_RUNTIME_TOKEN", world.token()),
    ];
    let reads = |how| Figure::of(|| said(typescript(), &["reads", how, &run], &environment));
    done(compare(
        plan,
        &READS,
        || reads("client"),
        || reads("fetch"),
    )?)?;
    done(alone(plan, &EVENTS, || {
        Figure::of(|| said(typescript(), &["events"], &[]))
    })?)?;
    let reads = |how| Figure::of(|| said(python()?, &["reads", how, &run], &environment));
    done(compare(
        plan,
        &PYTHON_READS,
        || reads("client"),
        || reads("httpx2"),
    )?)?;
    for (about, what) in [(&PYTHON_EVENTS, "events"), (&PYTHON_IMPORT, "import")] {
        done(alone(plan, about, || {
            Figure::of(|| said(python()?, &[what], &[]))
        })?)?;
    }
    Ok(())
}
