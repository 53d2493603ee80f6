//! From a run's creation to the first text of its model at the SSE client, beside what nobody can go
//! below: a one-row commit on the same database, plus the provider's own first byte.
//!
//! The clock of ours starts before `POST /v1/runs` is sent, so the creation's own commit is in it,
//! and so is opening the stream. The baseline's commit is alone on its connection, and the provider
//! is asked directly, by the same client.

use super::Outcome;
use super::client::agent;
use super::rounds::{Pair, ROUNDS, Target, conclude, median, say};
use super::world::World;
use serde_json::json;
use std::io::Read;
use std::time::Instant;

/// Measured in each round, each beside its baseline.
const RUNS: usize = 60;

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Milliseconds to the first text; reads the stream to its end, so that runs do not overlap.
fn first_text(world: &World, agent_id: &str) -> Outcome<f64> {
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

fn first_byte(agent: &ureq::Agent, url: &str) -> Outcome<f64> {
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

pub(crate) fn run() -> Outcome<bool> {
    println!("first-text: created run to first text at the client, p50 of {RUNS} a round");
    let world = World::start()?;
    let agent_id = world.agent()?;
    let mut database = world.database()?;
    database.batch_execute("create table bench_commits (at timestamptz not null)")?;
    let insert = database.prepare("insert into bench_commits values (now())")?;
    let direct = agent();
    let url = format!("{}/chat/completions", world.provider.base_url());
    let mut pairs = Vec::with_capacity(ROUNDS);
    for round in 0..=ROUNDS {
        let (mut ours, mut commits, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            ours.push(first_text(&world, &agent_id)?);
            commits.push(commit(&mut database, &insert)?);
            bytes.push(first_byte(&direct, &url)?);
        }
        let (commit, byte) = (median(commits), median(bytes));
        let pair = Pair {
            ours: median(ours),
            baseline: commit + byte,
        };
        // The first round warms up.
        if let Some(round) = round.checked_sub(1) {
            println!("  (commit {commit:.2} ms, provider's first byte {byte:.2} ms)");
            say(round, pair, "ms");
            pairs.push(pair);
        }
    }
    Ok(conclude("first-text", &pairs, &Target::AtMost(10.0)))
}
