//! Runs that an operator holds, as after a restore.

use crate::harness::{App, Puppet};
use serde_json::json;
use std::time::Duration;

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
    let hold = "insert into run_hold (since) values (now())";
    client.execute(hold, &[]).unwrap();
    let app = App::start_on(database, clock, seeds, |_| {});
    let new = app.start_turn(agent, "b");
    for _ in 0..100 {
        assert_eq!(app.run(&new)["status"], json!("queued"));
    }
    let metrics = app.get("/metrics").text;
    assert!(metrics.contains("agent_runtime_runs_held 1\n"), "{metrics}");
    assert!(puppet.is_idle(), "a model was asked");
    client.execute("delete from run_hold", &[]).unwrap();
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
