//! `GET /v1/changes/stream`: which hints come. Who gets which is in `access::change_streams`.

use crate::approvals::World;
use crate::harness::{App, Stream, end_of};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

pub(crate) const STREAM: &str = "/v1/changes/stream";

/// Takes hints until this one comes. Each says what to look at, and nothing of what it holds.
#[track_caller]
pub(crate) fn comes(stream: &mut Stream, wanted: &Value) {
    loop {
        let event = stream.next().expect("a hint");
        assert_eq!((event.kind.as_str(), event.id), ("changed", None));
        for name in event.data.as_object().unwrap().keys() {
            assert!(
                ["kind", "id", "projectId"].contains(&name.as_str()),
                "{event:?}"
            );
        }
        if event.data == *wanted {
            return;
        }
    }
}

/// What happens to approvals is told one by one once all that was under way before is over; then all are to be looked at.
pub(crate) fn is_looked_for(stream: &mut Stream) {
    comes(stream, &json!({"kind": "approval"}));
}

/// Waits until hints come: what happens before is told by the first one, which names no run.
fn begins(stream: &mut Stream) {
    assert_eq!(stream.next().unwrap().data, json!({"kind": "run"}));
}

/// Waits until runs are named: up to the first look for their events, a hint names none.
fn names_runs(stream: &mut Stream, run: impl Fn() -> Value) {
    begins(stream);
    run();
    stream.next().expect("the first look, or the run");
}

fn answering() -> Provider {
    Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap()
}

/// Starts a run; its hint.
pub(crate) fn run(app: &App, agent: Uuid) -> Value {
    let run = app.finished(&app.start_turn(agent, "a"));
    json!({"kind": "run", "id": run["id"], "projectId": run["projectId"]})
}

#[test]
fn it_begins_with_a_look_at_everything_and_then_names_what_changes() {
    let world = World::start();
    let app = &world.app;
    let provider = answering();
    let agent = app.agent(&provider.base_url());
    let mut all = app.open(STREAM, &[]);
    let begins = [all.next().unwrap().data, all.next().unwrap().data];
    assert_eq!(
        begins,
        [json!({"kind": "run"}), json!({"kind": "approval"})]
    );
    let hint = run(app, agent);
    comes(&mut all, &hint);
    is_looked_for(&mut all);
    let approval = world.approval("standard", 3600);
    let project = app.get(&format!("/v1/approvals/{approval}")).expect(200)["projectId"].clone();
    let hint = json!({"kind": "approval", "id": approval, "projectId": project});
    comes(&mut all, &hint);
    app.post(
        &format!("/v1/approvals/{approval}/decide"),
        &json!({"decision": "reject"}),
    )
    .expect(200);
    comes(&mut all, &hint);
    world.app.stop();
    let rest = all.rest();
    assert_eq!(end_of(&rest), "server-stopping");
}

#[test]
fn filters_keep_other_kinds_and_projects_out() {
    let world = World::start();
    let app = &world.app;
    let provider = answering();
    let (one, two) = (
        app.agent(&provider.base_url()),
        app.agent(&provider.base_url()),
    );
    let first = run(app, one);
    let project = first["projectId"].as_str().unwrap();
    let mut runs = app.open(&format!("{STREAM}?kind=run&projectId={project}"), &[]);
    begins(&mut runs);
    let mut approvals = app.open(&format!("{STREAM}?kind=approval"), &[]);
    assert_eq!(approvals.next().unwrap().data, json!({"kind": "approval"}));
    is_looked_for(&mut approvals);
    let other = run(app, two);
    let approval = world.approval("standard", 3600);
    let last = run(app, one);
    comes(&mut runs, &last);
    let mut seen = approvals.next().unwrap().data;
    while seen.get("id").is_none() {
        seen = approvals.next().unwrap().data;
    }
    assert_eq!(seen["id"], json!(approval));
    world.app.stop();
    for event in runs.rest() {
        assert_ne!(event.data, other, "of another project");
        assert_ne!(event.data["kind"], json!("approval"));
    }
    for event in approvals.rest() {
        assert_ne!(event.data["kind"], json!("run"));
    }
}

#[test]
fn a_wrong_kind_is_named() {
    let app = App::start();
    for (query, parameter) in [
        ("kind=tool", "kind"),
        ("projectId=x", "projectId"),
        ("after=1", "after"),
    ] {
        let answer = app.get(&format!("{STREAM}?{query}"));
        let error = answer.expect_error(400, "invalid-request");
        let named = error["details"]["parameter"].as_str().unwrap();
        assert_eq!(named.split('[').next(), Some(parameter), "{error}");
    }
}

#[test]
fn what_another_replica_does_is_told() {
    let app = App::start();
    let provider = answering();
    let agent = app.agent(&provider.base_url());
    let replica = app.replica(|_| {});
    let mut stream = replica.open(STREAM, &[]);
    names_runs(&mut stream, || run(&app, agent));
    let hint = run(&app, agent);
    comes(&mut stream, &hint);
}

#[test]
fn a_run_is_told_less_often_than_it_moves() {
    let app = App::start_with(|options| options.streams.tail_every = Duration::from_millis(400));
    let provider = answering();
    let agent = app.agent(&provider.base_url());
    let mut stream = app.open(&format!("{STREAM}?kind=run"), &[]);
    names_runs(&mut stream, || run(&app, agent));
    let hint = run(&app, agent);
    let last = app.run(hint["id"].as_str().unwrap())["lastSeq"]
        .as_i64()
        .unwrap();
    comes(&mut stream, &hint);
    app.stop();
    let again = stream
        .rest()
        .iter()
        .filter(|event| event.data == hint)
        .count();
    let told = i64::try_from(again).unwrap() + 1;
    assert!(told < last, "{told} hints of {last} events");
}
