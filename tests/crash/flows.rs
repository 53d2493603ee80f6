//! The database is restarted and killed under a server whose flows wait: for a time, for branches, for a reviewer who decides
//! meanwhile.

use crate::database::send;
use crate::follow::start;
use crate::random::Random;
use crate::server::Client;
use crate::wait::{eventually_within, moment};
use crate::world::{cluster, config, id_of};
use crate::{PATIENCE, report, setting};
use agent_runtime::ids::Clock;
use postgres::NoTls;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// Flows that are started before each fault.
const FLOWS: usize = 3;

fn register(client: &Client) {
    let project = id_of(&client.made("/v1/projects", &json!({"name": "waiting"}), 201));
    let ask = json!({"call": "approval", "with": {"title": "Pay", "expiresAfter": "PT1H"}, "output": {"as": ".decision"}});
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "waits", "name": "both", "version": "1.0.0"},
        "do": [
            {"both": {"fork": {"branches": [{"nap": {"wait": {"milliseconds": 300}}}, {"ask": ask}]}}},
            {"rest": {"wait": {"milliseconds": 200}}},
        ],
    });
    let flow = json!({"projectId": project, "definition": definition});
    client.made("/v1/flows", &flow, 201);
}

/// Approves what waits, again and again. A request that the database's absence cut off is sent again.
fn review(client: &Client, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        let listed = client.get("/v1/approvals").ok();
        let waiting = listed.and_then(|answer| answer.body["data"].as_array().cloned());
        for approval in waiting.unwrap_or_default() {
            let path = format!("/v1/approvals/{}/decide", approval["id"].as_str().unwrap());
            if let Ok(answer) = client.post(&path, &json!({"decision": "approve"})) {
                let fine = [200, 503, 504].contains(&answer.status);
                assert!(fine, "{path}: {}", answer.body);
            }
        }
        moment();
    }
}

/// Ends the reviewer however the test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn flows_that_wait_outlive_restarts_and_crashes_of_the_database() {
    let mut cluster = cluster("waiting");
    let config = config(cluster.url());
    let mut server = config.start();
    let client = config.client();
    register(&client);
    let mut random = Random::seeded("flows");
    let (faults, is_over) = (setting("CRASH_RESTARTS", 4), AtomicBool::new(false));
    let mut runs: Vec<Uuid> = Vec::new();
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| review(&client, &is_over));
        for number in 0..faults {
            for _ in 0..FLOWS {
                let key = Clock::system().new_id().to_string();
                let body = json!({"flowId": "waits.both", "input": {}});
                runs.push(start(&client, &body, &key));
            }
            random.let_pass(0, 600);
            if number % 2 == 1 {
                send(cluster.pid().unwrap(), Signal::KILL);
                random.let_pass(0, 300);
            }
            cluster.restart().unwrap();
        }
        for run_id in &runs {
            let ended: Value = eventually_within(PATIENCE, "the flow to end", || {
                let run = client.get(&format!("/v1/runs/{run_id}")).ok()?.body;
                run["completedAt"].is_string().then_some(run)
            });
            assert_eq!(ended["status"], "completed", "{ended}");
            let payload = client.get(&format!("/v1/runs/{run_id}/payload")).unwrap();
            assert_eq!(payload.body["output"], json!([{}, "approved"]));
        }
    });
    assert!(server.runs());
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let closed = "select count(*), count(distinct a.root_run_id) from approvals a
        join approval_log l using (tenant_id, approval_id) where l.kind <> 'opened' and a.status = 'approved'";
    let row = sql.query_one(closed, &[]).unwrap();
    let count = i64::try_from(runs.len()).unwrap();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (count, count),
        "each was asked and decided once"
    );
    report("flows", &format!("restarts={faults} flows={count}"));
}
