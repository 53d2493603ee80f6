//! Tasks whose effect is other runs, and approvals.

use super::world::Flows;
use crate::runtime::world::{World, YES};
use agent_runtime::dev::provider::Step;
use agent_runtime::store::Sql;
use agent_runtime::store::approvals::Decision;
use agent_runtime::store::runs::{Origin, Status, WaitingFor};
use serde_json::{Value, json};
use uuid::Uuid;

fn busy() -> Value {
    json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503}}})
}

#[test]
fn an_agent_answers_and_its_usage_is_the_flows_too() {
    let world = World::new();
    let ask = json!({"call": "agent", "with": {"agent": "a", "version": "1.0.0", "message": "${ .question }"}});
    world.flow("asks", json!([{"ask": ask}]));
    let none = json!({"call": "agent", "with": {"agent": "nobody", "message": "?"}});
    world.flow("nobody", json!([{"ask": none}]));
    world.provider.push(Step::text("sunny"));
    let process = world.process(2, true);
    let run = world.ends(&process, "asks", json!({"question": "How is the weather?"}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let turn = &world.children(run.run_id)[0];
    let answer = json!({"text": "sunny", "runId": turn.run_id, "usage": turn.usage});
    assert_eq!(world.output(run.run_id), answer);
    assert_eq!((run.usage.calls, run.usage), (1, turn.usage));
    assert_eq!(
        (turn.flow_id.as_str(), turn.origin),
        ("agent.turn", Origin::Run)
    );
    let run = world.ends(&process, "nobody", json!({}));
    let said = "The task /do/0/ask failed: There is no agent nobody with a version (status 404).";
    assert_eq!(run.failure_message.as_deref(), Some(said));
}

#[test]
fn branches_run_beside_each_other_and_answer_in_order() {
    let world = World::new();
    let fork = json!({"fork": {"branches": [
        {"slow": {"do": [{"sleep": {"wait": {"milliseconds": 1}}}, {"tell": {"set": "${ [.n, $context, $x] }"}}]}},
        {"quick": {"set": "${ $x }"}},
        {"nested": {"fork": {"branches": [{"deep": {"set": "${ [$x, $workflow.input.n] }"}}]}}},
    ]}});
    world.flow(
        "forks",
        json!([
            {"keep": {"set": "${ . }", "export": {"as": "{ kept: .n }"}}},
            {"each": {"for": {"each": "x", "in": "[7]"}, "do": [{"split": fork}]}},
        ]),
    );
    let process = world.process(3, true);
    let run = world.ends(&process, "forks", json!({"n": 5}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        world.output(run.run_id),
        json!([[5, {"kept": 5}, 7], 7, [[7, 5]]])
    );
    let children = world.children(run.run_id);
    assert_eq!(children.len(), 3);
    assert!(children.iter().all(|child| child.flow_id == "test.forks"));
}

#[test]
fn a_branch_that_fails_ends_the_others_and_its_error_is_caught() {
    let world = World::new();
    let fork = json!({"fork": {"branches": [
        {"sleeps": {"wait": {"days": 300}}},
        {"fails": busy()},
    ]}});
    world.flow("forks", json!([{"outer": {
        "try": [{"split": fork}],
        "catch": {"errors": {"with": {"status": 503}}, "do": [{"tell": {"set": "${ $error.instance }"}}]},
    }}]));
    let process = world.process(3, true);
    let run = world.ends(&process, "forks", json!({}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run.run_id), json!("/do/0/outer/try/0/split"));
    let states: Vec<Status> = world
        .children(run.run_id)
        .iter()
        .map(|run| run.status)
        .collect();
    assert_eq!(states, [Status::Cancelled, Status::Failed]);
}

#[test]
fn the_time_of_a_task_ends_its_branches() {
    let world = World::new();
    let fork = json!({"timeout": {"after": "PT10S"}, "fork": {"branches": [
        {"outer": {"try": [{"sleeps": {"wait": {"days": 300}}}], "catch": {}}},
    ]}});
    world.flow(
        "forks",
        json!([{"outer": {
            "try": [{"split": fork}],
            "catch": {"errors": {"with": {"status": 408}}, "do": [{"tell": {"set": "${ \"late\" }"}}]},
        }}]),
    );
    let process = world.process(2, true);
    let run_id = world.start(&process, "forks", json!({}));
    world.eventually(|| {
        let children = world.children(run_id);
        children.len() == 1 && children[0].status == Status::Waiting
    });
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.pass(&process, 11);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id), json!("late"));
    assert!(world.children(run_id)[0].status.is_finished());
}

#[test]
fn a_parallel_loop_maps_its_items_in_order() {
    let world = World::new();
    let each = |on_error: &str| {
        json!([{"each": {
            "for": {"each": "x", "in": ".items"},
            "metadata": {"concurrency": 2, "onError": on_error},
            "do": [
                {"odd": {"if": "$x == 3", "do": [{"fails": busy()}]}},
                {"sleep": {"wait": {"milliseconds": 0}}},
                {"square": {"set": "${ [$index, $x * $x] }"}},
            ],
        }}])
    };
    world.flow("maps", each("fail-fast"));
    world.flow("collects", each("collect"));
    let process = world.process(3, true);
    let items = json!({"items": [1, 2, 4, 5, 6]});
    let mapped = world.answers(&process, "maps", items);
    assert_eq!(mapped, json!([[0, 1], [1, 4], [2, 16], [3, 25], [4, 36]]));
    let none = world.answers(&process, "maps", json!({"items": []}));
    assert_eq!(none, json!([]));
    let collected = world.answers(&process, "collects", json!({"items": [1, 3, 4]}));
    assert_eq!(
        (&collected[0], &collected[2]),
        (&json!([0, 1]), &json!([2, 16]))
    );
    assert_eq!(collected[1]["error"]["status"], 503);
    let run = world.ends(&process, "maps", json!({"items": [1, 3]}));
    let said = "The task /do/0/each failed: The flow raised an error (status 503).";
    assert_eq!(run.failure_message.as_deref(), Some(said));
}

#[test]
fn a_flow_runs_another_and_so_deep_and_no_deeper() {
    let world = World::new();
    let other = |name: &str| json!({"run": {"workflow": {"namespace": "test", "name": name, "version": "1.0.0"}}});
    world.flow("inner", json!([{"add": {"set": "${ .n + 1 }"}}]));
    world.flow("outer", json!([{"run": other("inner")}]));
    world.flow("fails", json!([{"no": busy()}]));
    world.flow(
        "catches",
        json!([{"outer": {
            "try": [{"run": other("fails")}],
            "catch": {"errors": {"with": {"status": 503}}, "do": [{"tell": {"set": "${ \"caught\" }"}}]},
        }}]),
    );
    world.flow("endless", json!([{"again": other("endless")}]));
    let process = world.process(2, true);
    assert_eq!(world.answers(&process, "outer", json!({"n": 1})), json!(2));
    assert_eq!(
        world.answers(&process, "catches", json!({})),
        json!("caught")
    );
    let run = world.ends(&process, "endless", json!({}));
    let said = run.failure_message.unwrap();
    assert!(said.contains("more than 8 levels deep"), "{said}");
}

pub(super) fn decide(world: &World, run_id: Uuid, is_approved: bool) {
    let newest =
        "select approval_id from approvals where run_id = $1 order by created_at desc limit 1";
    let approval_id: Uuid = world.read(|session| Ok(session.query_one(newest, &[&run_id])?.get(0)));
    let decision = Decision {
        is_approved,
        comment: Some("So be it."),
        ..YES
    };
    world.decide(approval_id, &decision).unwrap();
}

#[test]
fn a_person_is_asked_and_the_flow_goes_on_with_the_decision() {
    let world = World::new();
    let ask = |on_reject: &str| {
        json!([{"ask": {"call": "approval", "with": {
            "title": "Refund", "context": "${ . }", "onReject": on_reject, "expiresAfter": "P2D", "assignedTo": "who@plant.example",
            "escalation": [{"after": "P1D", "requiredRole": "board", "assignedTo": "dan@plant.example"}],
            "form": {"type": "object", "properties": {"amount": {"type": "number"}}},
        }}}])
    };
    world.flow("asks", ask("raise"));
    world.flow("goes-on", ask("continue"));
    let process = world.process(1, true);
    let asked = |flow: &str, is_approved: bool| {
        let run_id = world.start(&process, flow, json!({"amount": 50}));
        let run = world.until(&process, run_id, |run| run.status == Status::Waiting);
        assert_eq!(run.waiting_for, Some(WaitingFor::Approval));
        decide(&world, run_id, is_approved);
        process.runtime.wake();
        world.finished(&process, run_id)
    };
    let run = asked("asks", true);
    let output = world.output(run.run_id);
    assert_eq!(
        (&output["decision"], &output["comment"]),
        (&json!("approved"), &json!("So be it."))
    );
    assert_eq!(output["decidedBy"], json!(world.user_id));
    let run = asked("asks", false);
    let said = "The task /do/0/ask failed: A reviewer rejected it: So be it (status 403).";
    assert_eq!(run.failure_message.as_deref(), Some(said));
    let run = asked("goes-on", false);
    assert_eq!(world.output(run.run_id)["decision"], "rejected");
    // Nobody has these addresses.
    let told = "select count(*) from run_events where kind = 'approval.unassigned'";
    assert_eq!(world.number(told), 3);
    let kept = "select count(*) from approvals where escalate_assignee = 'dan@plant.example' and assigned_to is null";
    assert_eq!(world.number(kept), 3);
    let shown = "select count(*) from approval_subjects where form->'properties' is not null";
    assert_eq!(world.number(shown), 3);
}
