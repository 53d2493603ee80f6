//! Approvals that are assigned when they are opened, to the person whom their definition names.

use super::approvals::{Scene, approval_events, asked, decide, newest};
use super::world::Scripts;
use crate::harness::{eventually, made};
use crate::runtime::world::{Process, World, YES};
use agent_runtime::store::Sql;
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};
use uuid::Uuid;

/// A person with a reviewer role, who may be gone again.
fn person(world: &World, email: &str, role: &str, is_active: bool) -> Uuid {
    let (tenant_id, user_id) = (world.tenant_id, world.clock.new_id());
    let gone = if is_active { "null" } else { "now()" };
    world.batch(&format!(
        "insert into users (tenant_id, user_id, display_name, email, email_key, created_at, deactivated_at)
         values ('{tenant_id}', '{user_id}', 'p', '{email}', lower('{email}'), now(), {gone});
         insert into reviewers (tenant_id, user_id, role, created_by, created_at)
         values ('{tenant_id}', '{user_id}', '{role}', '{user_id}', now())"
    ));
    user_id
}

/// Whom an approval is assigned to, and what its log tells.
fn assigned(world: &World, approval_id: Uuid) -> (Option<Uuid>, Vec<String>) {
    let query = "select a.assigned_to, array_agg(l.kind order by l.position) from approvals a
         join approval_log l using (tenant_id, approval_id) where a.approval_id = $1 group by a.assigned_to";
    world.read(|session| {
        let row = session.query_one(query, &[&approval_id])?;
        Ok((row.get(0), row.get(1)))
    })
}

/// What the run tells of people who were not assigned, once it is over.
fn unassigned(world: &World, process: &Process, run_id: Uuid) -> Vec<Value> {
    decide(world, newest(&world.store, run_id), &YES);
    process.runtime.wake();
    let run = world.finished(process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    approval_events(world, run_id);
    let events = world.events(run_id).into_iter();
    let of_kind = events.filter(|event| event.kind == "approval.unassigned");
    of_kind.map(|event| event.data).collect()
}

#[test]
fn an_approval_is_assigned_to_the_person_whom_its_definition_names() {
    let world = World::scripted();
    let process = world.process(1, true);
    let ann = person(&world, "Ann@plant.example", "standard", true);
    for named in ["ann@PLANT.example".to_owned(), ann.to_string()] {
        let (run_id, approval_id) = asked(&world, &process, &json!({"to": named}));
        let log = vec!["opened".to_owned(), "assigned".to_owned()];
        assert_eq!(assigned(&world, approval_id), (Some(ann), log), "{named}");
        assert_eq!(unassigned(&world, &process, run_id), Vec::<Value>::new());
    }
}

#[test]
fn an_approval_waits_for_anybody_with_the_role_if_the_named_person_cannot_have_it() {
    let world = World::scripted();
    let process = world.process(1, true);
    let bo = person(&world, "bo@plant.example", "finance", true);
    person(&world, "cy@plant.example", "standard", false);
    // Who started the run decides nothing about it.
    let (tenant_id, starter) = (world.tenant_id, world.user_id);
    world.batch(&format!(
        "insert into reviewers (tenant_id, user_id, role, created_by, created_at)
         values ('{tenant_id}', '{starter}', 'standard', '{starter}', now())"
    ));
    let (bo, starter) = (bo.to_string(), starter.to_string());
    let nobody = world.clock.new_id().to_string();
    let names = [
        "who@plant.example",
        "cy@plant.example",
        &bo,
        &nobody,
        &starter,
    ];
    for named in names {
        let (run_id, approval_id) = asked(&world, &process, &json!({"to": named}));
        let log = vec!["opened".to_owned()];
        assert_eq!(assigned(&world, approval_id), (None, log), "{named}");
        let said = json!({"step": 1, "approvalId": approval_id, "requiredRole": "standard"});
        assert_eq!(unassigned(&world, &process, run_id), [said]);
    }
}

#[test]
fn an_escalation_by_time_assigns_the_new_approval_by_the_same_rule() {
    let world = World::scripted();
    let process = world.process(1, true);
    person(&world, "ann@plant.example", "standard", true);
    let dan = person(&world, "dan@plant.example", "board", true);
    let names = [
        ("dan@plant.example", Some(dan)),
        ("ann@plant.example", None),
    ];
    for (named, expected) in names {
        let ask = json!({"to": "ann@plant.example", "escalate": [200, "board", named]});
        let (run_id, first) = asked(&world, &process, &ask);
        world.eventually(|| newest(&world.store, run_id) != first);
        let second = newest(&world.store, run_id);
        assert_eq!(assigned(&world, second).0, expected, "{named}");
        let said = json!({"step": 1, "approvalId": second, "requiredRole": "board"});
        let all = expected.map_or_else(|| vec![said], |_| Vec::new());
        assert_eq!(unassigned(&world, &process, run_id), all);
    }
}

#[test]
fn an_endpoint_and_the_inbox_say_whom_an_approval_is_assigned_to_from_its_opening() {
    let scene = Scene::new();
    // With authorization off nobody has roles.
    let ann = made::id(&made::person(&scene.app, "ann@plant.example", "member"));
    let mine = scene.start(&json!({"to": scene.user_id.to_string()}), false);
    let another = scene.start(&json!({"to": "ann@plant.example"}), false);
    let received = eventually("both to be delivered", || {
        let received = scene.receiver.received();
        (received.len() == 2).then_some(received)
    });
    let mut people: Vec<Value> = received
        .iter()
        .map(|one| one.json()["data"]["approval"]["assignedTo"].clone())
        .collect();
    people.sort_by_key(Value::to_string);
    let mut expected = vec![json!(ann), json!(scene.user_id)];
    expected.sort_by_key(Value::to_string);
    assert_eq!(people, expected);
    let inbox = scene.app.get("/v1/inbox").expect(200);
    assert_eq!(inbox["counts"], json!({"assigned": 1, "unassigned": 0}));
    let of = |run: Uuid| {
        let found = scene.app.get(&format!("/v1/approvals?runId={run}"));
        found.expect(200)["data"][0].clone()
    };
    assert_eq!(inbox["data"][0]["id"], of(mine)["id"]);
    assert_eq!(of(another)["assignedTo"], json!(ann));
}

#[test]
fn a_name_that_is_no_persons_fails_the_run() {
    let world = World::scripted();
    let process = world.process(1, true);
    let escalates = json!({"escalate": [1, "board", "Dan"]});
    for ask in [json!({"to": "Ann"}), escalates] {
        let run_id = world.start(&process, &json!({"steps": [{"ask": ask}]}));
        let message = world.finished(&process, run_id).failure_message.unwrap();
        assert!(message.contains("no user's id or email"), "{message}");
    }
}
