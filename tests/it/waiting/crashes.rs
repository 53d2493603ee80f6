//! A parent whose process dies before each of its tree's commits, parked or not, and is carried on.

use super::world::Scripts;
use crate::runtime::world::World;
use agent_runtime::dev::provider::Step;
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};

/// Writes of events, which every commit has, fail from a chosen one on, as those of a process that lost its
/// connection. The count goes on whatever is rolled back.
const FAILING: &str = "
    create sequence commits;
    create table failing (from_commit bigint not null);
    insert into failing values (9223372036854775807);
    create function fail_commit() returns trigger language plpgsql as $$
    begin
      if nextval('commits') >= (select from_commit from failing) then
        raise exception 'the process is dead' using errcode = '57P01';
      end if;
      return null;
    end $$;
    create trigger fail_commit before insert on run_events for each statement execute function fail_commit();";

fn script(world: &World) -> Value {
    let nested = json!({"steps": [{"children": [world.a_turn(), {"script": {"steps": [], "fails": "No."}}]}]});
    json!({"steps": [
        {"wait": 0},
        {"children": [world.a_turn(), {"script": {"steps": [{"wait": 0}], "output": 1}}, {"script": nested}]},
        {"wait": 0},
        {"children": [{"script": {"steps": [], "output": 2}}]},
    ]})
}

/// Runs the script, by processes of which the first is dead from this commit on. Says how many commits it
/// took.
fn dies_before(world: &World, commit: i64) -> i64 {
    world.batch(&format!(
        "update failing set from_commit = {commit}; select setval('commits', 1, false)"
    ));
    for _ in 0..8 {
        world.provider.push(Step::text("sunny"));
    }
    let creator = world.process(0, false);
    let run_id = world.start(&creator, &script(world));
    let dying = world.process(2, true);
    world.eventually(|| {
        world.number("select last_value from commits") >= commit
            || world.run(run_id).status.is_finished()
    });
    // It dies: its leases run out, and what it still does meets the fence.
    world.expire_leases();
    world.batch("update failing set from_commit = 9223372036854775807");
    let next = world.process(2, true);
    next.shard.follow(run_id);
    let run = world.until(&next, run_id, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    drop(dying);
    judge(world, run_id);
    world.number("select last_value from commits")
}

fn judge(world: &World, root: uuid::Uuid) {
    let runs = [vec![root], world.runs_below(root)].concat();
    assert_eq!(runs.len(), 7, "no child is begun twice");
    for run_id in &runs {
        let kinds = world.kinds(*run_id);
        let count = |kind: &str| kinds.iter().filter(|one| *one == kind).count();
        assert_eq!(count("run.started"), 1, "{kinds:?}");
        let ends = count("run.completed") + count("run.failed");
        assert_eq!(ends, 1, "{kinds:?}");
        assert!(world.run(*run_id).status.is_finished());
    }
    let output = world.output(root);
    let answers = |at: usize| -> Vec<&Value> {
        let ends = output[at].as_array().unwrap().iter();
        ends.map(|end| &end["output"]).collect()
    };
    assert_eq!(answers(0)[..2], [&json!({"text": "sunny"}), &json!(1)]);
    assert_eq!(answers(1), [&json!(2)]);
    world.usage_adds_up(root);
    world.nothing_is_stranded();
    world.eventually(|| world.number("select count(*) from job_jobs") == 0);
}

#[test]
fn a_tree_whose_process_dies_before_any_commit_is_carried_on() {
    let world = World::scripted();
    world.batch(FAILING);
    let whole = dies_before(&world, i64::MAX);
    assert!(whole > 20, "{whole}");
    // The first is the run's creation, which is not the dying process's.
    for commit in 2..=whole {
        dies_before(&world, commit);
    }
}
