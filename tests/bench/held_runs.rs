//! Runs that are held at once, each reading a slow provider's stream: how many of a thousand really are, and what each
//! adds to the program's resident memory.
//!
//! A round starts the program anew, so that nothing of an earlier round is in its memory already; creates the runs; waits
//! until the provider streams to all of them at once; reads the memory once the streams are a minute old; lets the
//! provider end; and looks in the database that all runs completed.

use super::deployment::{Deployment, Replica};
use super::load::Load;
use super::machine::{Moment, Used, resident_kib};
use super::plan::Plan;
use super::rounds::{Figure, alone};
use super::row::{About, Growth, Line, Target};
use super::slow_provider::SlowProvider;
use super::{Done, Outcome};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const RUNS: usize = 1000;
/// Where what grows is runs.
const GROWTH: [usize; 4] = [64, 256, 1000, 2000];
const GROWTH_STREAMS: Duration = Duration::from_secs(15);
const CREATORS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(120);

/// What a round found.
struct Held {
    runs: usize,
    /// Of each.
    kib: f64,
}

/// Every run costs this process, whose limit the program inherits, a descriptor at the provider, and the program one.
fn allow_descriptors() -> Outcome {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )?;
    Ok(())
}

/// An agent that asks the provider; its id.
fn agent(replica: &Replica, provider: &SlowProvider) -> Outcome<String> {
    let post = |path: &str, body| replica.client.post(path, &body);
    let project = post("/v1/projects", json!({"name": "held"}))?;
    let model_provider = post(
        "/v1/model-providers",
        json!({"name": provider.base_url(), "baseUrl": provider.base_url(), "models": [{"name": "m"}]}),
    )?;
    let agent = post(
        "/v1/agents",
        json!({"projectId": project["id"], "name": "held"}),
    )?;
    let agent_id = agent["id"].as_str().ok_or("an agent has no id")?;
    post(
        &format!("/v1/agents/{agent_id}/versions"),
        json!({"instructions": "Answer.", "modelProviderId": model_provider["id"], "model": "m"}),
    )?;
    Ok(agent_id.to_owned())
}

/// Waits until what is counted is there, or for as long as anybody waits; what there was at most.
fn wait_for(wanted: usize, count: impl Fn() -> Outcome<usize>) -> Outcome<usize> {
    let deadline = Instant::now() + PATIENCE;
    let mut most = 0;
    while most < wanted && Instant::now() < deadline {
        most = most.max(count()?);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(most)
}

/// Holds this many runs for as long as each stream is.
fn hold(deployment: &Deployment, runs: usize, streams: Duration) -> Outcome<Held> {
    let provider = SlowProvider::start(streams)?;
    let replica = deployment.replica()?;
    let agent_id = agent(&replica, &provider)?;
    let body = json!({"agentId": agent_id, "message": "hello"});
    let before = resident_kib(replica.id())?;
    // Each of them works once before the clock runs.
    let each = runs / CREATORS - 1;
    Load::of(CREATORS, each, &|_| {
        Ok(Box::new(|| {
            replica.client.post("/v1/runs", &body).map(|_| ())
        }))
    })?;
    let held = wait_for(runs, || Ok(provider.streaming()))?;
    std::thread::sleep(streams);
    if held == runs && provider.streaming() != runs {
        return Err("the program let go of a run before its stream ended".into());
    }
    let kib = (resident_kib(replica.id())? - before) / held.max(1) as f64;
    provider.let_go();
    let mut database = deployment.database()?;
    let completed = database.prepare(
        "select count(*) from runs where agent_id = $1::text::uuid and status = 'completed'",
    )?;
    let database = RefCell::new(database);
    let completed = wait_for(runs, || {
        let row = database.borrow_mut().query_one(&completed, &[&agent_id])?;
        Ok(usize::try_from(row.get::<_, i64>(0))?)
    })?;
    if completed != runs || provider.finished() != runs {
        return Err(format!("of {runs} runs {completed} completed").into());
    }
    Ok(Held { runs: held, kib })
}

const HELD: About = About {
    name: "held-runs",
    work: "runs held at once by one process, each reading a provider's stream of a word a second for a minute",
    beside: "a thousand are asked for",
    unit: "runs",
    target: Target::AtLeast(1000.0),
    says_not: "How many it could hold: its setting allows 2,048. The provider's words are short.",
};
const MEMORY: About = About {
    name: "held-run-memory",
    work: "resident memory of each of a thousand runs that are held at once: what they add to a process that has just \
        started",
    beside: "160 KiB a run",
    unit: "KiB",
    target: Target::AtMost(160.0),
    says_not: "What the kernel holds for sockets, and what Postgres holds, are not in it.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    allow_descriptors()?;
    let deployment = Deployment::start(
        false,
        &[("SVC_RUN_THREADS", "2048"), ("SVC_HOST_ACCESS", "local")],
    )?;
    let streams = plan.pick(Duration::from_secs(3), Duration::from_secs(60));
    // A round of the whole suite takes more than a minute: as few of them as in the short form.
    let rounds = Plan { short: true };
    let memory = RefCell::new(VecDeque::new());
    let figure = |value, used| Figure {
        value,
        used,
        note: String::new(),
    };
    // Nothing is warm from one round to the next, so the one that does not count is left out.
    let mut counts = false;
    let mut held = alone(rounds, &HELD, || {
        if !std::mem::replace(&mut counts, true) {
            return Ok(figure(0.0, Used::default()));
        }
        let before = Moment::now();
        let held = hold(&deployment, RUNS, streams)?;
        let used = before.until_now();
        memory.borrow_mut().push_back(figure(held.kib, used));
        Ok(figure(held.runs as f64, used))
    })?;
    // The same rounds once more, told from their memory.
    let mut counts = false;
    let mut each = alone(rounds, &MEMORY, || {
        if !std::mem::replace(&mut counts, true) {
            return Ok(figure(0.0, Used::default()));
        }
        let figure = memory.borrow_mut().pop_front();
        figure.ok_or_else(|| "a round has no memory".into())
    })?;
    held.limit = Some("One thread and one socket a run.".to_owned());
    each.limit.clone_from(&held.limit);
    if !plan.short {
        let growth = growth(&deployment)?;
        held.growth.push(growth.0);
        each.growth.push(growth.1);
    }
    done(held)?;
    done(each)
}

/// Runs held, and the memory of each, over the runs asked for.
fn growth(deployment: &Deployment) -> Outcome<(Growth, Growth)> {
    let (mut held, mut memory) = (Vec::new(), Vec::new());
    for runs in GROWTH {
        let found = hold(deployment, runs, GROWTH_STREAMS)?;
        held.push((runs as f64, found.runs as f64));
        memory.push((runs as f64, found.kib));
    }
    let growth = |unit: &str, points| Growth {
        over: "runs asked for".to_owned(),
        unit: unit.to_owned(),
        lines: vec![Line {
            label: "agent-runtime".to_owned(),
            points,
        }],
    };
    Ok((growth("runs", held), growth("KiB", memory)))
}
