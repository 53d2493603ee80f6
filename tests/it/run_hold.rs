//! Runs that an operator holds, as after a restore.

use crate::harness::{App, Puppet, eventually, made};
use serde_json::json;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const HOLD: &str = "insert into run_hold (since) values (now())";
const RELEASE: &str = "delete from run_hold";

/// Waits until the claimer has looked twice whether runs are held. In between it would have claimed whatever was due.
fn wait_for_two_looks(app: &App) {
    let waits = "select from pg_locks where relation = 'run_hold'::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())";
    for _ in 0..2 {
        let mut client = app.database.client();
        let mut locking = client.transaction().unwrap();
        locking
            .batch_execute("lock table run_hold in access exclusive mode")
            .unwrap();
        eventually("the claimer to look whether runs are held", || {
            let waiting = locking.query(waits, &[]).unwrap();
            (!waiting.is_empty()).then_some(())
        });
        locking.commit().unwrap();
    }
}

#[test]
fn held_runs_call_nothing_until_they_are_released_and_new_ones_wait() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let under_way = app.start_turn(agent, "a");
    let mut cut = puppet.call();
    cut.say("Lost ");
    let (database, clock, seeds) = app.stop_within(Duration::from_millis(300));
    let mut client = database.client();
    client.execute(HOLD, &[]).unwrap();
    let app = App::start_on(database, clock, seeds, |_| {});
    let new = app.start_turn(agent, "b");
    for _ in 0..100 {
        assert_eq!(app.run(&new)["status"], json!("queued"));
    }
    let metrics = app.get("/metrics").text;
    assert!(metrics.contains("agent_runtime_runs_held 1\n"), "{metrics}");
    assert!(puppet.is_idle(), "a model was asked");
    client.execute(RELEASE, &[]).unwrap();
    for _ in 0..2 {
        let mut call = puppet.call();
        call.say("Found.");
        call.finish();
    }
    for run in [&under_way, &new] {
        assert_eq!(app.finished(run)["status"], json!("completed"));
    }
    let metrics = app.get("/metrics").text;
    assert!(metrics.contains("agent_runtime_runs_held 0\n"), "{metrics}");
}

#[test]
fn a_flow_whose_wait_ends_while_runs_are_held_goes_on_once_they_are_released() {
    let app = App::start();
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "test", "name": "sleeps", "version": "1.0.0"},
        "do": [{"sleep": {"wait": {"hours": 1}}}, {"tell": {"set": {"is": "awake"}}}],
    });
    let flow = json!({"projectId": made::project(&app), "definition": definition});
    app.post("/v1/flows", &flow).expect(201);
    let start = json!({"flowId": "test.sleeps", "input": {}});
    let run = made::id(&app.post("/v1/runs", &start).expect(202)["run"]);
    app.run_once(&run, "waiting");
    let events = app.events(&run);
    app.sql(HOLD);
    eventually("the hold to be noticed", || {
        let metrics = app.get("/metrics").text;
        metrics
            .contains("agent_runtime_runs_held 1\n")
            .then_some(())
    });
    app.clock.advance(HOUR);
    app.sql("update job_jobs set run_at = now() where lease_id is null");
    wait_for_two_looks(&app);
    assert_eq!(app.run(&run)["status"], json!("waiting"));
    assert_eq!(app.events(&run), events, "it went on while it was held");
    app.sql(RELEASE);
    assert_eq!(app.finished(&run)["status"], json!("completed"));
    assert_eq!(app.output(&run), json!({"is": "awake"}));
}
