//! Where a run of a flow stands, and who reads it.

use super::retries::retry;
use super::world::Flows;
use crate::runtime::world::World;
use agent_runtime::runtime::FlowPosition;
use agent_runtime::store::flow_states;
use agent_runtime::store::runs::{Status, WaitingFor};
use serde_json::{Value, json};
use uuid::Uuid;

/// The tasks under way: path and position of each.
fn tasks(world: &World, run_id: Uuid) -> (Option<WaitingFor>, Vec<String>) {
    let stands = world.read(|session| flow_states::stands(session, &world.root(run_id)));
    assert_eq!(
        stands.waiting_since.is_some(),
        stands.waiting_for.is_some(),
        "{stands:?}"
    );
    let position = FlowPosition::of(&stands.state.unwrap(), &stands.path).unwrap();
    let position = json!(position);
    let of = |task: &Value| format!("{} {}", task["path"], task["position"]).replace('"', "");
    let tasks = position["tasks"].as_array().unwrap().iter().map(of);
    (stands.waiting_for, tasks.collect())
}

#[test]
fn the_place_of_a_run_is_told_from_its_rows() {
    let world = World::new();
    let fails = json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503}}});
    let nap = json!({"nap": {"wait": {"days": 1}}});
    let handled = json!({"try": [{"fails": fails}], "catch": {"do": [{"list": {"do": [nap]}}]}});
    world.flow(
        "nested",
        json!([{"each": {"for": {"in": "[1, 2]"}, "do": [{"outer": handled}]}}]),
    );
    let fork = json!({"fork": {"branches": [{"a": {"do": [{"nap": {"wait": {"days": 1}}}]}}]}});
    world.flow("forks", json!([{"split": fork}]));
    let process = world.process(2, true);
    let run_id = world.start(&process, "nested", json!({}));
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    let outer = "/do/0/each/do/0/outer";
    let expected = [
        "/do/0/each for".to_owned(),
        format!("{outer} catch"),
        format!("{outer}/catch/do/0/list do"),
        format!("{outer}/catch/do/0/list/do/0/nap effect"),
    ];
    let timer = Some(WaitingFor::Timer);
    assert_eq!(tasks(&world, run_id), (timer, expected.to_vec()));
    let run_id = world.start(&process, "forks", json!({}));
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.eventually(|| {
        let children = world.children(run_id);
        children.len() == 1 && children[0].status == Status::Waiting
    });
    let split = "/do/0/split";
    let children = Some(WaitingFor::Children);
    assert_eq!(
        tasks(&world, run_id),
        (children, vec![format!("{split} effect")])
    );
    let branch = world.children(run_id)[0].run_id;
    let inside = [
        format!("{split} branch"),
        format!("{split}/fork/branches/0/a do"),
        format!("{split}/fork/branches/0/a/do/0/nap effect"),
    ];
    assert_eq!(tasks(&world, branch), (timer, inside.to_vec()));
}

/// Older programs wrote JSON nulls where a run that failed before its first step has no state.
#[test]
fn a_run_without_a_state_is_taken_up_whichever_program_failed_it() {
    let world = World::new();
    let fails = json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503}}});
    world.flow("fails", json!([{"fails": fails}]));
    let process = world.process(1, true);
    let failed = world.ends(&process, "fails", json!({}));
    world.batch(
        "update flow_states set format = 1, frames = 'null', data = 'null', context = 'null', tasks = 0, slots = 0",
    );
    let root = world.root(failed.run_id);
    let stands = world.read(|session| flow_states::stands(session, &root));
    assert_eq!(stands.state, None);
    let again = retry(&world, &process, failed.run_id, false).unwrap();
    let run = world.finished(&process, again);
    assert_eq!(run.failure_message, failed.failure_message);
}

#[test]
fn a_run_whose_state_a_later_version_wrote_is_left_to_that() {
    let world = World::new();
    world.flow("waits", json!([{"nap": {"wait": {"hours": 1}}}]));
    let process = world.process(1, true);
    let run_id = world.start(&process, "waits", json!({"n": 1}));
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.batch(&format!(
        "update flow_states set format = {}",
        flow_states::FORMAT + 1
    ));
    let put_off = "select count(*) from job_jobs where lease_id is null and run_at > now() + interval '1 second'";
    world.pass(&process, 3600);
    world.eventually(|| world.number(put_off) == 1);
    let run = world.run(run_id);
    assert_eq!(run.status, Status::Waiting, "{:?}", run.failure_message);
    world.batch("update flow_states set format = 1");
    world.pass(&process, 0);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id), json!({"n": 1}));
}
