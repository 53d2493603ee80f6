//! Two replicas on one database, one of which dies.

use crate::check::{Strict, check};
use crate::follow::Follower;
use crate::world::{Agents, Pace, config, shared_database};
use crate::{eventually, report};
use serde_json::json;
use std::time::{Duration, Instant};

fn pace() -> Pace {
    Pace {
        tool: Duration::from_millis(500),
        ..Pace::default()
    }
}

#[test]
fn a_replica_takes_over_the_runs_of_one_that_died() {
    let config = config(shared_database());
    let dying = config.start();
    let agents = Agents::make(&config.client(), pace());
    let other = config.replica();
    let run_ids: Vec<_> = (0..4)
        .map(|_| agents.start_turn(&config.client(), agents.repeatable))
        .collect();
    for run_id in &run_ids {
        agents.tool.wait_for(*run_id);
    }
    // It holds every run: the other one starts only now.
    let _survivor = other.start();
    let followers: Vec<Follower> = run_ids
        .iter()
        .map(|run_id| Follower::of(other.client(), agents.repeatable, *run_id))
        .collect();
    dying.kill();
    let killed_at = Instant::now();
    let runs: Vec<_> = followers
        .into_iter()
        .map(|follower| (follower.agent_id, follower.finish()))
        .collect();
    let took = killed_at.elapsed();
    let figures = check(&other, &agents, &runs, Strict::Completed);
    report(
        "takeover",
        &format!(
            "runs={} lostAttempts={} allOverAfterMs={}",
            runs.len(),
            figures.lost_attempts,
            took.as_millis()
        ),
    );
}

#[test]
fn a_cancel_reaches_a_run_whose_holder_is_dead() {
    // The run is cancelled before anybody may take it up.
    let config = config(shared_database()).with("SVC_RUN_LEASE_MS", 10_000);
    let dying = config.start();
    let agents = Agents::make(&config.client(), pace());
    agents.tool.take(Duration::from_secs(30));
    let other = config.replica();
    let run_id = agents.start_turn(&config.client(), agents.repeatable);
    agents.tool.wait_for(run_id);
    let _survivor = other.start();
    dying.kill();
    let client = other.client();
    let cancelled_at = Instant::now();
    client.made(&format!("/v1/runs/{run_id}/cancel"), &json!({}), 202);
    eventually("the run to be cancelled", || {
        (client.run(run_id)["status"] == "cancelled").then_some(())
    });
    report(
        "cancel of the dead",
        &format!("tookMs={}", cancelled_at.elapsed().as_millis()),
    );
    assert_eq!(
        agents.tool.calls().len(),
        1,
        "a cancelled run goes on no more"
    );
}

#[test]
fn a_cancel_reaches_a_run_on_another_replica() {
    let config = config(shared_database());
    let _holder = config.start();
    let agents = Agents::make(&config.client(), pace());
    // Longer than anything here waits: the run cannot end by the tool's answer.
    agents.tool.take(Duration::from_secs(3600));
    let run_id = agents.start_turn(&config.client(), agents.repeatable);
    agents.tool.wait_for(run_id);
    let other = config.replica();
    let _other = other.start();
    let client = other.client();
    let cancelled_at = Instant::now();
    client.made(&format!("/v1/runs/{run_id}/cancel"), &json!({}), 202);
    eventually("the run to be cancelled", || {
        (client.run(run_id)["status"] == "cancelled").then_some(())
    });
    let took = cancelled_at.elapsed();
    report("cancel elsewhere", &format!("tookMs={}", took.as_millis()));
}
