//! Providers that take so many calls at once: further runs wait in line, without a thread.

use super::world::{Process, World};
use crate::harness::{Call, Puppet, let_time_pass};
use agent_runtime::store::runs::{Run, Status, WaitingFor};
use std::time::Duration;
use uuid::Uuid;

/// A provider that takes this many calls at once.
fn taking(world: &World, at_once: u32) -> Puppet {
    world.batch(&format!(
        "update model_providers set options = '{{\"callsAtOnce\": {at_once}}}'"
    ));
    world.puppet()
}

fn is_in_line(run: &Run) -> bool {
    run.waiting_for == Some(WaitingFor::Model)
}

fn ended(world: &World, process: &Process, run_id: Uuid) -> Run {
    world.until(process, run_id, |run| run.status.is_finished())
}

fn nothing_is_left(world: &World) {
    world.eventually(|| world.number("select count(*) from model_call_slots") == 0);
}

#[test]
fn thirty_runs_on_a_server_with_one_slot_make_thirty_requests() {
    let world = World::new();
    let puppet = taking(&world, 1);
    // More threads than calls, of two processes.
    let processes = [world.process(4, true), world.process(4, true)];
    let runs: Vec<Uuid> = (0..30)
        .map(|n| world.create(&processes[n % 2], false))
        .collect();
    for _ in &runs {
        let mut call = puppet.call();
        call.say("Done.");
        assert!(puppet.is_idle(), "two calls at once");
        call.finish();
    }
    for run_id in &runs {
        let run = ended(&world, &processes[0], *run_id);
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        assert_eq!(run.usage.calls, 1);
    }
    assert!(puppet.is_idle());
    nothing_is_left(&world);
}

#[test]
fn runs_in_line_go_on_in_the_order_in_which_they_asked() {
    let world = World::new();
    let puppet = taking(&world, 1);
    let process = world.process(2, true);
    let first = world.create(&process, false);
    let mut call = puppet.call();
    let waiting: Vec<Uuid> = (0..3)
        .map(|_| {
            let run_id = world.create(&process, false);
            world.until(&process, run_id, is_in_line);
            run_id
        })
        .collect();
    for next in &waiting {
        call.finish();
        call = puppet.call();
        let begun = world.until(&process, *next, |run| !is_in_line(run));
        assert_eq!(begun.status, Status::Running);
    }
    call.finish();
    for run_id in waiting.iter().chain([&first]) {
        let run = ended(&world, &process, *run_id);
        assert_eq!(run.status, Status::Completed);
    }
    // A run that was parked in line made one attempt.
    let kinds = world.kinds(waiting[0]);
    let started = kinds.iter().filter(|kind| *kind == "step.started").count();
    assert_eq!(started, 1, "{kinds:?}");
}

#[test]
fn the_wait_in_line_is_no_part_of_the_turns_time() {
    let world = World::new();
    let puppet = taking(&world, 1);
    let process = world.process(2, true);
    let first = world.create(&process, false);
    let call = puppet.call();
    world.batch("update agent_versions set limits = '{\"turnTimeoutMs\": 1000}'");
    let second = world.create(&process, false);
    world.until(&process, second, is_in_line);
    let_time_pass(Duration::from_millis(1300));
    call.finish();
    puppet.call().finish();
    for run_id in [first, second] {
        let run = ended(&world, &process, run_id);
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    }
}

#[test]
fn a_run_that_is_cancelled_in_line_or_in_its_call_leaves_its_place() {
    let world = World::new();
    let puppet = taking(&world, 1);
    let process = world.process(3, true);
    let [calling, in_line, last] = [(); 3].map(|()| {
        let run_id = world.create(&process, false);
        world.until(&process, run_id, |run| {
            is_in_line(run) || run.status == Status::Running
        });
        run_id
    });
    let call = puppet.call();
    for run_id in [in_line, last] {
        world.until(&process, run_id, is_in_line);
    }
    for run_id in [in_line, calling] {
        let cancelled = process.runtime.cancel(&world.root(run_id), || Ok(()));
        cancelled.unwrap();
        process.runtime.wake();
    }
    call.wait_until_cut();
    puppet.call().finish();
    assert_eq!(ended(&world, &process, last).status, Status::Completed);
    for run_id in [calling, in_line] {
        assert_eq!(ended(&world, &process, run_id).status, Status::Cancelled);
    }
    nothing_is_left(&world);
}

#[test]
fn a_run_whose_holder_died_in_its_call_makes_it_again_and_the_line_goes_on() {
    let world = World::new();
    let puppet = taking(&world, 1);
    let process = world.process(3, true);
    let calling = world.create(&process, false);
    let lost = puppet.call();
    let in_line = world.create(&process, false);
    world.until(&process, in_line, is_in_line);
    world.expire_leases();
    process.runtime.wake();
    let again = puppet.call();
    drop(lost);
    again.finish();
    puppet.call().finish();
    for run_id in [calling, in_line] {
        assert_eq!(ended(&world, &process, run_id).status, Status::Completed);
    }
    let lost = world.number("select count(*) from run_model_calls where outcome = 'lost'");
    assert_eq!(lost, 1, "the run in line had made no call");
    nothing_is_left(&world);
}

#[test]
fn a_run_that_cannot_ask_its_model_gives_its_place_back() {
    let world = World::new();
    let puppet = taking(&world, 1);
    world.batch("update model_providers set api_key_name = 'unlisted'");
    let process = world.process(2, true);
    let run_id = world.create(&process, false);
    let run = ended(&world, &process, run_id);
    assert_eq!(run.status, Status::Failed);
    assert!(run.failure_message.unwrap().contains("unlisted"));
    nothing_is_left(&world);
    assert!(puppet.is_idle());
}

#[test]
fn more_calls_at_once_are_made_once_the_row_says_so() {
    let world = World::new();
    let puppet = taking(&world, 2);
    let process = world.process(4, true);
    let runs: Vec<Uuid> = (0..4).map(|_| world.create(&process, false)).collect();
    let two = [puppet.call(), puppet.call()];
    world.eventually(|| {
        let waiting = runs
            .iter()
            .filter(|run_id| is_in_line(&world.run(**run_id)));
        waiting.count() == 2
    });
    assert!(puppet.is_idle());
    world.batch("update model_providers set options = '{\"callsAtOnce\": 4}'");
    // The next that ends lets in as many as there is room for now.
    let [one, other] = two;
    one.finish();
    let rest = [puppet.call(), puppet.call()];
    other.finish();
    rest.into_iter().for_each(Call::finish);
    for run_id in runs {
        assert_eq!(ended(&world, &process, run_id).status, Status::Completed);
    }
}
