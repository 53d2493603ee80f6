//! Where a run of a flow stands is written with the step that begins, by the run's holder alone.

use super::stepped::{transact, whole};
use super::world::{World, completed, end_of, event};
use agent_runtime::error::{Code, Error};
use agent_runtime::store::flow_parts;
use agent_runtime::store::flow_states::{FORMAT, FlowState};
use agent_runtime::store::runs::{Held, Outcome, StepCommit};
use agent_runtime::store::steps::{Begun, Ended, StepKind, StepStatus};
use serde_json::{Value, json};

/// A step begins, and the one before it has ended.
fn step(number: i32, state: FlowState) -> StepCommit {
    let ended = (number > 1).then(|| Ended {
        step: number - 1,
        status: StepStatus::Completed,
        result: Some(json!({"of": number - 1})),
        failures: 0,
    });
    StepCommit {
        events: vec![event("step.started")],
        ended,
        begun: Some(Begun {
            step: number,
            kind: StepKind::Wait,
            name: "wait".to_owned(),
            path: format!("/do/{number}"),
            attempt: 1,
            failures: 0,
            request: json!({}),
        }),
        flow_state: Some(state),
        ..StepCommit::default()
    }
}

fn state(tasks: i32) -> FlowState {
    FlowState {
        format: FORMAT,
        frames: json!([{"task": tasks, "at": "effect"}]),
        data: Value::Null,
        context: json!({"z": 1, "a": "\u{0}"}),
        tasks,
        slots: 0,
    }
}

fn loaded(world: &World, held: &Held) -> flow_parts::Loaded {
    let lease = held.lease;
    whole(&mut world.client(), |sql| {
        flow_parts::load(sql, &lease, true, &[])
    })
}

fn stands(world: &World, held: &Held) -> Option<FlowState> {
    loaded(world, held).state
}

#[test]
fn a_state_is_written_with_the_step_that_begins() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let root = world.root(&mut client);
    let (_, mut held) = world.hold(&mut client, root);
    assert_eq!(stands(&world, &held), None, "before the first step");
    for number in 1..=3 {
        let outcome = world.commit(&mut client, none, &mut held, &step(number, state(number)));
        assert_eq!(outcome.unwrap(), Outcome::Written);
        let read = stands(&world, &held).unwrap();
        assert_eq!((read.tasks, read.format), (number, FORMAT));
        assert_eq!(read.frames, json!([{"task": number, "at": "effect"}]));
        assert_eq!(read.data, Value::Null, "null is data too");
        let keys: Vec<&String> = read.context.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["z", "a"], "the order of keys is kept");
    }
    // A commit that begins no step leaves it.
    let mut ends = end_of(completed());
    ends.events.insert(0, event("step.completed"));
    let outcome = world.commit(&mut client, none, &mut held, &ends);
    assert_eq!(outcome.unwrap(), Outcome::Written);
    assert_eq!(stands(&world, &held).unwrap().tasks, 3);
    let newest = loaded(&world, &held).newest.unwrap();
    assert_eq!((newest.step, newest.path.as_str()), (3, "/do/3"));
}

#[test]
fn who_has_lost_a_run_does_not_write_its_state() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let root = world.root(&mut client);
    let (_, mut lost) = world.hold(&mut client, root);
    let first = world.commit(&mut client, none, &mut lost, &step(1, state(1)));
    assert_eq!(first.unwrap(), Outcome::Written);
    client
        .batch_execute("update job_jobs set lease_id = null")
        .unwrap();
    let (_, mut held) = world.hold(&mut client, root);
    let late = world.commit(&mut client, none, &mut lost, &step(2, state(20)));
    assert_eq!(late.unwrap(), Outcome::Lost);
    assert_eq!(stands(&world, &held).unwrap().tasks, 1);
    // A commit that is cut leaves the state with the step as it was.
    let mut left = 2;
    let cut = &mut || {
        left -= 1;
        match left {
            0 => Err(Error::new(Code::DatabaseUnavailable, "It is cut.")),
            _ => Ok(()),
        }
    };
    let written = world.commit(&mut client, cut, &mut held, &step(2, state(2)));
    assert!(written.is_err());
    drop(client);
    assert_eq!(stands(&world, &held).unwrap().tasks, 1);
    let newest = loaded(&world, &held).newest.unwrap();
    assert_eq!(newest.step, 1);
}

#[test]
fn a_state_of_a_later_version_is_not_read() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let root = world.root(&mut client);
    let (_, mut held) = world.hold(&mut client, root);
    let written = world.commit(&mut client, none, &mut held, &step(1, state(1)));
    assert_eq!(written.unwrap(), Outcome::Written);
    client
        .execute("update flow_states set format = $1", &[&(FORMAT + 1)])
        .unwrap();
    let lease = held.lease;
    let refused = transact(&mut client, none, |sql| {
        flow_parts::load(sql, &lease, true, &[])
    });
    assert_eq!(refused.unwrap_err().code(), Code::NewerFormat);
}
