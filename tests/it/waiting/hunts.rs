//! A thousand children that end while their parent is put to wait, through two processes, round after round.

use super::world::Scripts;
use crate::harness::{PATIENCE, rounds};
use crate::runtime::world::World;
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};
use std::time::Instant;

#[test]
fn a_parent_of_a_thousand_children_is_woken_whenever_they_end() {
    let world = World::scripted();
    let processes = [world.process(4, true), world.process(4, true)];
    let children: Vec<Value> = (0..1000)
        .map(|n| match n % 5 {
            0 => json!({"script": {"steps": [], "fails": "No."}}),
            1 => json!({"script": {"steps": [{"wait": 0}], "output": n}}),
            _ => json!({"script": {"steps": [], "output": n}}),
        })
        .collect();
    for _ in 0..rounds(10) {
        let root = world.start(&processes[0], &json!({"steps": [{"children": children}]}));
        let finished = "select count(*) from runs where completed_at is not null";
        let (mut seen, mut since) = (world.number(finished), Instant::now());
        while !world.run(root).status.is_finished() {
            world.nothing_is_stranded();
            let now = world.number(finished);
            if now > seen {
                (seen, since) = (now, Instant::now());
            }
            assert!(since.elapsed() < PATIENCE, "{now} runs have finished");
        }
        let run = world.run(root);
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        let output = world.output(root);
        let ends = output[0].as_array().unwrap();
        for (n, end) in ends.iter().enumerate() {
            match n % 5 {
                0 => assert_eq!(end["failureMessage"], "No."),
                _ => assert_eq!(end["output"], n),
            }
        }
        assert_eq!(ends.len(), 1000);
        world.nothing_is_stranded();
    }
}
