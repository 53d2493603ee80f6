//! Many flows that wait at once, over a restart.

use super::world::Flows;
use crate::harness::rounds;
use crate::runtime::world::World;
use serde_json::json;

const WAITING: &str =
    "select count(*) from runs where status = 'waiting' and waiting_for = 'timer'";

#[test]
fn thousands_of_flows_that_wait_hold_nothing_and_go_on_after_a_restart() {
    let flows = i64::try_from(rounds(10_000)).unwrap();
    let world = World::new();
    let tasks = json!([
        {"sleep": {"wait": {"hours": 1}}},
        {"tell": {"set": {"number": "${ .number }"}}},
    ]);
    world.flow("sleeps", tasks);
    world.flow("passes", json!([{"pass": {"set": {}}}]));
    let before = world.process(4, true);
    for number in 0..flows {
        world.start(&before, "sleeps", json!({"number": number}));
    }
    world.eventually(|| world.number(WAITING) == flows);
    world.eventually(|| world.number("select count(*) from job_leases") == 0);
    drop(before);
    let after = world.process(4, true);
    let passed = world.start(&after, "passes", json!({}));
    world.until(&after, passed, |run| run.status.is_finished());
    assert_eq!(world.number(WAITING), flows, "one went on before its time");
    world.pass(&after, 3600);
    let ended = "select count(*) from runs where status = 'completed'";
    world.eventually(|| world.number(ended) == flows + 1);
    let steps = "select count(*) from run_steps";
    assert_eq!(world.number(steps), flows, "a wait was begun twice");
    let told = "select count(distinct output ->> 'number') from run_payloads where output ->> 'number' is not null";
    assert_eq!(world.number(told), flows);
    assert_eq!(world.number("select count(*) from job_jobs"), 0);
}
