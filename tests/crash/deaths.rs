//! Runs whose servers die: one that goes nowhere is ended at the bound, one that moves on between the deaths never is, and one
//! that was only there when another took the server along moves on.

use crate::PATIENCE;
use crate::server::{Server, ServerConfig};
use crate::wait::{eventually, eventually_within, moment};
use crate::world::{Agents, Pace, config, id_of, shared_database};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const SETTING: &str = "SVC_MAX_RUN_DEATHS";

/// A tool that answers after this.
fn pace(tool: Duration) -> Pace {
    Pace {
        tool,
        ..Pace::default()
    }
}

fn calls_of(agents: &Agents, run_id: Uuid) -> usize {
    let calls = agents.tool.calls();
    calls.iter().filter(|call| call.run_id == run_id).count()
}

/// Kills the server once the run has called the tool more often than `before`.
fn kill_at_call(
    config: &ServerConfig,
    server: Server,
    agents: &Agents,
    run_id: Uuid,
    before: usize,
) -> Server {
    eventually("a call of the tool", || {
        (calls_of(agents, run_id) > before).then_some(())
    });
    server.kill();
    config.start()
}

fn finished(config: &ServerConfig, run_id: Uuid) -> Value {
    let client = config.client();
    eventually_within(3 * PATIENCE, "the run's end", || {
        let run = client.run(run_id);
        let is_over = ["completed", "failed", "cancelled"].contains(&run["status"].as_str()?);
        is_over.then_some(run)
    })
}

#[test]
fn a_run_whose_servers_die_in_a_row_is_ended_at_the_bound_and_says_so() {
    const DEATHS: usize = 4;
    let config = config(shared_database()).with(SETTING, DEATHS);
    let mut server = config.start();
    let client = config.client();
    // It never answers before the server is killed.
    let agents = Agents::make(&client, pace(Duration::from_secs(20)));
    let run_id = agents.start_turn(&client, agents.repeatable);
    for deaths in 0..DEATHS {
        server = kill_at_call(&config, server, &agents, run_id, deaths);
    }
    let run = finished(&config, run_id);
    assert_eq!(run["status"], "failed", "{run}");
    let message = run["failureMessage"].as_str().unwrap();
    assert!(
        message.contains("died 4 times in a row") && message.contains(SETTING),
        "{message}"
    );
    assert_eq!(
        calls_of(&agents, run_id),
        DEATHS,
        "it was not taken up again"
    );
    let steps = client
        .get(&format!("/v1/runs/{run_id}/steps"))
        .unwrap()
        .body;
    let statuses: Vec<&str> = steps["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["failed", "completed"], "{steps}");
    let metrics = client.get("/metrics").unwrap().body;
    assert!(
        metrics
            .as_str()
            .unwrap()
            .contains("agent_runtime_runs_given_up_total 1\n")
    );
    let log = std::fs::read_to_string(&config.log).unwrap();
    let record = log
        .lines()
        .find(|line| line.contains("A run was ended, because the processes"));
    let record = record.unwrap_or_else(|| panic!("no record in {}", config.log.display()));
    assert!(
        record.contains(&run_id.to_string()) && record.contains("\"deaths\":4"),
        "{record}"
    );
    drop(server);
}

#[test]
fn a_run_that_moves_on_between_the_deaths_is_never_ended_for_them() {
    const KILLS: usize = 12;
    let config = config(shared_database()).with(SETTING, 3);
    let mut server = config.start();
    let client = config.client();
    let agents = Agents::make(&client, pace(Duration::from_millis(100)));
    let agent = client
        .get(&format!("/v1/agents/{}", agents.repeatable))
        .unwrap()
        .body;
    let task = json!({"call": "tool", "with": {"tool": "record", "arguments": {"item": "lamp"}}});
    let tasks: Vec<Value> = (0..2 * KILLS)
        .map(|n| json!({format!("t{n}"): task}))
        .collect();
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "moves", "name": "on", "version": "1.0.0"},
        "do": tasks,
    });
    client.made(
        "/v1/flows",
        &json!({"projectId": agent["projectId"], "definition": definition}),
        201,
    );
    let started = client.made("/v1/runs", &json!({"flowId": "moves.on", "input": {}}), 202);
    let run_id = id_of(&started["run"]);
    for _ in 0..KILLS {
        // The call that was cut off is made again, and the next one begins once its answer is recorded.
        let before = calls_of(&agents, run_id);
        server = kill_at_call(&config, server, &agents, run_id, before + 1);
    }
    let run = finished(&config, run_id);
    assert_eq!(run["status"], "completed", "{run}");
    drop(server);
}

#[test]
fn a_run_beside_one_that_takes_the_server_along_moves_on() {
    const DEATHS: usize = 6;
    let config = config(shared_database()).with(SETTING, DEATHS);
    let mut server = config.start();
    let client = config.client();
    let agents = Agents::make(&client, pace(Duration::from_secs(1)));
    let [lethal, beside] = [(); 2].map(|()| agents.start_turn(&client, agents.repeatable));
    agents.tool.wait_for(beside);
    let (mut kills, mut before) = (0, 0);
    while client.run(lethal)["status"] != "failed" {
        if calls_of(&agents, lethal) > before {
            server.kill();
            kills += 1;
            before = calls_of(&agents, lethal);
            assert!(kills <= DEATHS, "it was not ended");
            server = config.start();
        }
        moment();
    }
    assert_eq!(kills, DEATHS);
    let run = finished(&config, beside);
    assert_eq!(run["status"], "completed", "{run}");
    drop(server);
}
