//! From a run's creation to the first text of its model at the SSE client, beside what nobody can go
//! below: a one-row commit on the same database, plus the provider's own first byte.
//!
//! The clock of ours starts before `POST /v1/runs` is sent, so the creation's own commit is in it,
//! and so is opening the stream. The baseline's commit is alone on its connection, and the provider
//! is asked directly, by the same client.

use super::client::agent;
use super::machine::Moment;
use super::plan::Plan;
use super::rounds::{Figure, compare, median};
use super::row::{About, Target};
use super::world::World;
use super::{Done, Outcome};
use serde_json::json;
use std::io::Read;
use std::time::Instant;

/// Measured in each round, each beside its baseline.
const RUNS: usize = 60;

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Milliseconds to the first text; reads the stream to its end, so that runs do not overlap.
pub(crate) fn first_text(world: &World, agent_id: &str) -> Outcome<f64> {
    let began = Instant::now();
    let body = json!({"agentId": agent_id, "message": "hello"});
    let started = world.client.post("/v1/runs", &body)?;
    let run_id = started["run"]["id"].as_str().ok_or("a run has no id")?;
    let mut first = None;
    for line in world.client.follow(run_id)? {
        let line = line?;
        if first.is_none() && is_text(&line) {
            first = Some(milliseconds(began));
        }
        if line == "event: run.failed" {
            return Err("a run failed".into());
        }
    }
    first.ok_or_else(|| "a run ended without text".into())
}

/// Text as it is said, or the step's whole message where that came first.
fn is_text(line: &str) -> bool {
    matches!(line, "event: text.delta" | "event: step.completed")
}

fn commit(database: &mut postgres::Client, insert: &postgres::Statement) -> Outcome<f64> {
    let began = Instant::now();
    database.execute(insert, &[])?;
    Ok(milliseconds(began))
}

/// Milliseconds to the provider's first byte, asked directly.
pub(crate) fn first_byte(agent: &ureq::Agent, url: &str) -> Outcome<f64> {
    let body =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let began = Instant::now();
    let response = agent
        .post(url)
        .header("content-type", "application/json")
        .send(body.to_string())?;
    let mut reader = response.into_body().into_reader();
    let mut bytes = [0; 1];
    reader.read_exact(&mut bytes)?;
    let first = milliseconds(began);
    std::io::copy(&mut reader, &mut std::io::sink())?;
    Ok(first)
}

/// Runs one after the other, each with its first text.
fn runs(world: &World, agent_id: &str) -> Outcome<f64> {
    let mut figures = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        figures.push(first_text(world, agent_id)?);
    }
    Ok(median(figures))
}

const ABOUT: About = About {
    name: "first-text",
    work: "a created run's first text at its reader, idle server, p50",
    beside: "a one-row commit, plus the provider's own first byte",
    unit: "ms",
    target: Target::AtMost(10.0),
    says_not: "The baseline is a floor that no service with a journal reaches.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start()?;
    let agent_id = world.agent()?;
    let mut database = world.database()?;
    database.batch_execute("create table bench_commits (at timestamptz not null)")?;
    let insert = database.prepare("insert into bench_commits values (now())")?;
    let direct = agent();
    let url = format!("{}/chat/completions", world.provider.base_url());
    let baseline = || {
        let (mut commits, mut bytes) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
        let before = Moment::now();
        for _ in 0..RUNS {
            commits.push(commit(&mut database, &insert)?);
            bytes.push(first_byte(&direct, &url)?);
        }
        let (commit, byte) = (median(commits), median(bytes));
        Ok(Figure {
            value: commit + byte,
            used: before.until_now(),
            note: format!(" (commit {commit:.2} + first byte {byte:.2})"),
        })
    };
    let ours = || Figure::of(|| runs(&world, &agent_id));
    done(compare(plan, &ABOUT, ours, baseline)?)
}
