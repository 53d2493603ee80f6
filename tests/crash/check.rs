//! What must hold once everything has ended, whatever happened on the way.
//!
//! Every run has reached one finished state. Its events are 1 to n in the database, and its reader
//! has the same. No step was done again after it was completed. Journal, model calls and usage agree,
//! and with what the provider and the tool saw. Nothing is left over in the queue.

use crate::follow::{Event, Seen};
use crate::server::ServerConfig;
use crate::tool::{Call, attempt_of};
use crate::world::Agents;
use postgres::{Client, NoTls};
use serde_json::Value;
use std::collections::HashSet;
use uuid::Uuid;

/// A row of the journal.
#[derive(Debug)]
struct Step {
    step: i32,
    kind: String,
    status: String,
    attempt: i32,
    failures: i32,
}

/// What the checks counted.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    /// Attempts that were lost to a crash.
    pub(crate) lost_attempts: usize,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.lost_attempts += other.lost_attempts;
    }
}

/// Which runs may end how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strict {
    /// A run fails for one reason alone: a tool that may not be called again was cut by a crash.
    Crashes,
    /// No run fails.
    Completed,
}

/// Everything about one run.
struct Ended {
    run_id: Uuid,
    events: Vec<(i64, String, Value)>,
    steps: Vec<Step>,
    calls: Vec<(i32, i32, String)>,
    asked: Vec<Call>,
    called: Vec<Call>,
    view: Value,
}

/// Checks runs that have ended, each with what its reader saw, and that nothing else is left.
pub(crate) fn check(
    config: &ServerConfig,
    agents: &Agents,
    runs: &[(Uuid, Seen)],
    strict: Strict,
) -> Figures {
    let mut sql = Client::connect(&config.database_url, NoTls).unwrap();
    let client = config.client();
    let requests = agents.provider.requests();
    assert_eq!(
        agents.provider.count(),
        requests.len() as u64,
        "the provider remembers every request"
    );
    let asked: Vec<&str> = requests
        .iter()
        .map(|request| {
            let mut headers = request.headers.iter();
            let header = headers.find(|(name, _)| name == "traceparent");
            header.unwrap().1.as_str()
        })
        .collect();
    let called = agents.tool.calls();
    let mut figures = Figures::default();
    for (agent_id, seen) in runs {
        let run_id = seen.run_id.unwrap();
        let ended = Ended {
            run_id,
            events: events(&mut sql, run_id),
            steps: steps(&mut sql, run_id),
            calls: calls(&mut sql, run_id),
            asked: asked
                .iter()
                .filter_map(|traceparent| attempt_of(traceparent, run_id))
                .collect(),
            called: called
                .iter()
                .filter(|call| call.run_id == run_id)
                .cloned()
                .collect(),
            view: client.run(run_id),
        };
        check_events(&ended, &seen.events);
        check_steps(&ended);
        check_usage(&ended);
        check_end(&ended, *agent_id == agents.repeatable, strict, &mut figures);
    }
    let made: HashSet<Uuid> = runs.iter().map(|(_, seen)| seen.run_id.unwrap()).collect();
    assert_eq!(made.len(), runs.len(), "two requests made one run");
    check_nothing_is_left(&mut sql, agents, runs.len());
    figures
}

fn events(sql: &mut Client, run_id: Uuid) -> Vec<(i64, String, Value)> {
    let rows = sql.query(
        "select seq, kind, data from run_events where run_id = $1 order by seq",
        &[&run_id],
    );
    let rows = rows.unwrap();
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

fn steps(sql: &mut Client, run_id: Uuid) -> Vec<Step> {
    let rows = sql.query(
        "select step, kind, status, attempt, failures from run_steps where run_id = $1 order by step",
        &[&run_id],
    );
    rows.unwrap()
        .iter()
        .map(|row| Step {
            step: row.get(0),
            kind: row.get(1),
            status: row.get(2),
            attempt: row.get(3),
            failures: row.get(4),
        })
        .collect()
}

fn calls(sql: &mut Client, run_id: Uuid) -> Vec<(i32, i32, String)> {
    let rows = sql.query(
        "select step, attempt, outcome from run_model_calls where run_id = $1 order by step, attempt",
        &[&run_id],
    );
    let rows = rows.unwrap();
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

fn is_last(kind: &str) -> bool {
    ["run.completed", "run.failed", "run.cancelled"].contains(&kind)
}

/// 1 to n, the last one last, and the reader has each of them once.
fn check_events(run: &Ended, seen: &[Event]) {
    let run_id = run.run_id;
    let stand: Vec<(i64, &str)> = run
        .events
        .iter()
        .map(|(seq, kind, _)| (*seq, kind.as_str()))
        .collect();
    let numbers: Vec<i64> = stand.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<i64> = (1..=i64::try_from(stand.len()).unwrap()).collect();
    assert_eq!(numbers, expected, "run {run_id}");
    assert_eq!(
        run.view["lastSeq"].as_i64(),
        numbers.last().copied(),
        "run {run_id}"
    );
    let lasts: Vec<usize> = (0..stand.len())
        .filter(|at| is_last(stand[*at].1))
        .collect();
    assert_eq!(lasts, [stand.len() - 1], "run {run_id}: {stand:?}");
    let read: Vec<(i64, &str)> = seen
        .iter()
        .map(|event| (event.seq, event.kind.as_str()))
        .collect();
    assert_eq!(read, stand, "run {run_id}: what its reader has");
    for ((_, _, data), event) in run.events.iter().zip(seen) {
        assert_eq!(data, &event.data, "run {run_id}, event {}", event.seq);
    }
}

/// Steps are 1 to n and all ended, and nobody was asked for one that was never begun.
fn check_steps(run: &Ended) {
    let run_id = run.run_id;
    for (index, step) in run.steps.iter().enumerate() {
        let number = usize::try_from(step.step).unwrap();
        assert_eq!(number, index + 1, "run {run_id}");
        assert_ne!(step.status, "running", "run {run_id}: {step:?}");
        check_step_events(run, step);
        check_other_side(run, step);
    }
    let known = i32::try_from(run.steps.len()).unwrap();
    let mut calls = run.asked.iter().chain(&run.called);
    assert!(
        calls.all(|call| call.step <= known),
        "run {run_id}: a call of a step that has no row"
    );
}

/// A step's events are its attempts in order, the last of which may be completed, and nothing after.
fn check_step_events(run: &Ended, step: &Step) {
    let of_step = run
        .events
        .iter()
        .filter(|(_, kind, data)| kind.starts_with("step.") && data["step"] == step.step);
    let attempts: Vec<(&str, i64)> = of_step
        .map(|(_, kind, data)| (kind.as_str(), data["attempt"].as_i64().unwrap()))
        .collect();
    let context = format!("run {}, step {}: {attempts:?}", run.run_id, step.step);
    let begun = attempts.iter().filter(|(kind, _)| *kind == "step.started");
    let begun: Vec<i64> = begun.map(|(_, attempt)| *attempt).collect();
    let expected: Vec<i64> = (1..=i64::from(step.attempt)).collect();
    assert_eq!(begun, expected, "{context}");
    let completed = attempts
        .iter()
        .filter(|(kind, _)| *kind == "step.completed");
    let is_completed = step.status == "completed";
    assert_eq!(completed.count(), usize::from(is_completed), "{context}");
    if is_completed {
        let last = ("step.completed", i64::from(step.attempt));
        assert_eq!(attempts.last(), Some(&last), "{context}");
    }
}

/// The provider or the tool was asked for no attempt twice, for none that was not begun, and for
/// the one that completed the step.
fn check_other_side(run: &Ended, step: &Step) {
    let calls = match step.kind.as_str() {
        "model" => &run.asked,
        _ => &run.called,
    };
    let of_step = calls.iter().filter(|call| call.step == step.step);
    let mut attempts: Vec<i32> = of_step.map(|call| call.attempt).collect();
    attempts.sort_unstable();
    let context = format!("run {}, {step:?}: {attempts:?}", run.run_id);
    assert!(attempts.windows(2).all(|two| two[0] != two[1]), "{context}");
    let begun = 1..=step.attempt;
    assert!(
        attempts.iter().all(|attempt| begun.contains(attempt)),
        "{context}"
    );
    if step.status == "completed" {
        assert_eq!(attempts.last(), Some(&step.attempt), "{context}");
    }
}

/// Every attempt of a model step is counted once, and the run's usage is the sum.
fn check_usage(run: &Ended) {
    let run_id = run.run_id;
    let mut expected = Vec::new();
    for step in run.steps.iter().filter(|step| step.kind == "model") {
        expected.extend((1..=step.attempt).map(|attempt| (step.step, attempt)));
        let completed = run
            .calls
            .iter()
            .filter(|(at, _, outcome)| *at == step.step && outcome == "completed");
        let completed: Vec<i32> = completed.map(|(_, attempt, _)| *attempt).collect();
        let wanted: &[i32] = if step.status == "completed" {
            &[step.attempt]
        } else {
            &[]
        };
        assert_eq!(completed, wanted, "run {run_id}: {:?}", run.calls);
    }
    let counted: Vec<(i32, i32)> = run
        .calls
        .iter()
        .map(|(step, attempt, _)| (*step, *attempt))
        .collect();
    assert_eq!(counted, expected, "run {run_id}: {:?}", run.calls);
    let usage = &run.view["usage"];
    assert_eq!(
        usage["calls"].as_u64(),
        Some(counted.len() as u64),
        "run {run_id}: {usage}"
    );
}

/// How it ended, and that it was allowed to.
fn check_end(run: &Ended, repeatable: bool, strict: Strict, figures: &mut Figures) {
    let run_id = run.run_id;
    let lost: i32 = run
        .steps
        .iter()
        .map(|step| step.attempt - 1 - step.failures.min(step.attempt - 1))
        .sum();
    figures.lost_attempts += usize::try_from(lost).unwrap();
    if !repeatable {
        assert!(
            run.called.len() <= 1,
            "run {run_id}: its tool was called {} times",
            run.called.len()
        );
    }
    match run.view["status"].as_str().unwrap() {
        "completed" => {
            figures.completed += 1;
            let all = run
                .steps
                .iter()
                .map(|step| (step.kind.as_str(), step.status.as_str()));
            let wanted = [
                ("model", "completed"),
                ("tool", "completed"),
                ("model", "completed"),
            ];
            assert!(all.eq(wanted), "run {run_id}: {:?}", run.steps);
        }
        "failed" => {
            figures.failed += 1;
            let message = run.view["failureMessage"].as_str().unwrap();
            let allowed = strict == Strict::Crashes
                && !repeatable
                && message.contains("not declared idempotent");
            assert!(allowed, "run {run_id} failed: {message}");
        }
        other => panic!("run {run_id} is {other}"),
    }
}

/// No job, no lease, no run that nobody knows of, and no text that the upkeep would not remove: a
/// piece may be written in the very moment in which its step ends, and stays until the next round.
fn check_nothing_is_left(sql: &mut Client, agents: &Agents, runs: usize) {
    let mine: [&(dyn postgres::types::ToSql + Sync); 2] =
        [&agents.repeatable, &agents.unrepeatable];
    let made: i64 = sql
        .query_one(
            "select count(*) from runs where agent_id in ($1, $2)",
            &mine,
        )
        .unwrap()
        .get(0);
    assert_eq!(
        usize::try_from(made).unwrap(),
        runs,
        "one run for each request"
    );
    let upkeep = include_str!("../../sql/queries/deltas/sweep.sql");
    sql.execute(upkeep, &[&1000_i64]).unwrap();
    let unfinished = "select count(*) from runs where status in ('queued', 'running', 'waiting')";
    for (what, query) in [
        ("unfinished runs", unfinished),
        ("jobs", "select count(*) from job_jobs"),
        ("leases", "select count(*) from job_leases"),
        ("pieces of text", "select count(*) from run_deltas"),
        ("pieces of reasoning", "select count(*) from run_reasoning"),
    ] {
        crate::eventually(&format!("no {what} to be left"), || {
            let left: i64 = sql.query_one(query, &[]).unwrap().get(0);
            (left == 0).then_some(())
        });
    }
    let dead = sql.query("select reason from job_dead", &[]).unwrap();
    let dead: Vec<String> = dead.iter().map(|row| row.get(0)).collect();
    assert!(dead.is_empty(), "dead jobs: {dead:?}");
}
