//! Tools that ask a reviewer first, called by a flow and by an agent inside one.

use super::retries::{dies_during_a_call, retry};
use super::unknown_outcomes::{Does, Receiver};
use super::world::Flows;
use crate::runtime::world::{Process, World, YES};
use agent_runtime::dev::provider::{Reply, Step};
use agent_runtime::error::Code;
use agent_runtime::store::Sql;
use agent_runtime::store::approvals::{Decided, Decision};
use agent_runtime::store::runs::{Run, Status, WaitingFor};
use serde_json::{Value, json};
use uuid::Uuid;

const NO: Decision<'_> = Decision {
    is_approved: false,
    comment: Some("No receipt."),
    ..YES
};

/// Calls of `pay` ask this.
fn asking(on_reject: &str) -> World {
    let world = World::new();
    world.batch(&format!(
        "update tools set approval = '{{\"title\": \"Pay\", \"requiredRole\": \"finance\", \"expiresAfter\": \"P1D\",
           \"escalation\": [], \"onReject\": \"{on_reject}\"}}' where name = 'pay'"
    ));
    world
}

fn pay() -> Value {
    json!({"call": "tool", "with": {"tool": "pay", "arguments": {"city": "${ .city }"}}})
}

/// The run once it waits for its approval, whichever of its tree is below it.
fn decided(world: &World, process: &Process, run_id: Uuid, decision: &Decision<'_>) -> Value {
    let run = world.until(process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(run.waiting_for, Some(WaitingFor::Approval));
    let waiting = "select a.approval_id, json_build_object('source', a.source, 'title', a.title, 'path', a.path,
           'arguments', s.arguments, 'rootRunId', a.root_run_id)
         from approvals a join approval_subjects s using (tenant_id, approval_id)
         where a.run_id = $1 and a.status = 'waiting'";
    let (approval_id, asked): (Uuid, Value) = world.read(|session| {
        let row = session.query_one(waiting, &[&run_id])?;
        Ok((row.get(0), row.get(1)))
    });
    let done = world.decide(approval_id, decision);
    assert_eq!(done.unwrap(), Decided::Written { run_id });
    process.runtime.wake();
    asked
}

fn called(world: &World) -> Vec<Value> {
    let asked = world.tool.asked().into_iter();
    asked.map(|call| call.1["arguments"].clone()).collect()
}

#[test]
fn a_flows_call_waits_for_a_reviewer_and_is_made_with_what_was_approved() {
    let world = asking("tell");
    world.flow("pays", json!([{"pay": pay()}]));
    let process = world.process(1, true);
    let run_id = world.start(&process, "pays", json!({"city": "Rome"}));
    let asked = decided(&world, &process, run_id, &YES);
    assert_eq!(
        asked,
        json!({"source": "tool", "title": "Pay", "path": "/do/0/pay", "arguments": {"city": "Rome"}, "rootRunId": run_id})
    );
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let edited = json!({"city": "Oslo"});
    let run_id = world.start(&process, "pays", json!({"city": "Rome"}));
    let decision = Decision {
        arguments: Some(&edited),
        ..YES
    };
    decided(&world, &process, run_id, &decision);
    world.finished(&process, run_id);
    assert_eq!(called(&world), [json!({"city": "Rome"}), edited]);
    let steps = ["approval /do/0/pay completed", "tool /do/0/pay completed"];
    assert_eq!(world.steps(run_id), steps);
    // The key of a call is that of its own step.
    assert_eq!(world.tool.asked()[1].0, Some(format!("{run_id}-2")));
}

/// Also once a reviewer has refused to make it again.
#[test]
fn a_call_whose_outcome_is_unknown_keeps_its_key_when_a_reviewer_approves_it_again() {
    let receiver = Receiver::start(&[Does::Resets]);
    let world = asking("tell");
    world.batch(&format!("update tools set url = '{}'", receiver.url()));
    let retry = json!({"delay": {"milliseconds": 1}, "limit": {"attempt": {"count": 3}}});
    let tasks = json!([{"outer": {"try": [{"pay": pay()}], "catch": {"retry": retry}}}]);
    world.flow("pays", tasks);
    let process = world.process(1, true);
    let run_id = world.start(&process, "pays", json!({"city": "Rome"}));
    let waits = |approvals: i64| {
        world.eventually(|| world.number("select count(*) from approvals") == approvals);
    };
    for (approvals, decision) in [(1, &YES), (2, &NO), (3, &YES)] {
        waits(approvals);
        decided(&world, &process, run_id, decision);
    }
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(receiver.keys(), vec![format!("{run_id}-2"); 2]);
    // Who is asked again is told which approval allowed the call that may have been made.
    let (first, earlier) = earlier_calls(&world);
    let allowed = json!({"approvalId": first, "isEdited": false});
    assert_eq!(earlier, [Value::Null, allowed.clone(), allowed]);
}

/// The first approval, and what each of them tells of an earlier call.
fn earlier_calls(world: &World) -> (Uuid, Vec<Value>) {
    let asked = "select s.approval_id, s.earlier_call from approval_subjects s join approvals a using (tenant_id, approval_id)
         order by a.created_at";
    let rows: Vec<(Uuid, Option<Value>)> = world.read(|session| {
        let rows = session.query(asked, &[])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    });
    let earlier = rows.iter().map(|row| row.1.clone().unwrap_or_default());
    (rows[0].0, earlier.collect())
}

#[test]
fn a_refused_call_is_an_error_that_a_flow_may_catch() {
    let world = asking("tell");
    world.flow("pays", json!([{"pay": pay()}]));
    let caught = json!([{"outer": {"try": [{"pay": pay()}], "catch": {"errors": {"with": {"status": 403}},
        "do": [{"tell": {"set": "${ $error.detail }"}}]}}}]);
    world.flow("catches", caught);
    let process = world.process(1, true);
    let refused = |flow: &str| -> Run {
        let run_id = world.start(&process, flow, json!({"city": "Rome"}));
        decided(&world, &process, run_id, &NO);
        world.finished(&process, run_id)
    };
    let said = "A reviewer rejected the call of the tool pay: No receipt";
    let run = refused("pays");
    let failure = run.failure_message.unwrap();
    assert!(
        failure.contains(said) && failure.contains("403"),
        "{failure}"
    );
    let summary = run.failure_summary.unwrap();
    assert_eq!(
        summary,
        "The task /do/0/pay failed: The approval was rejected (status 403)."
    );
    let run = refused("catches");
    assert_eq!(world.output(run.run_id), json!(format!("{said}.")));
    assert_eq!(called(&world).len(), 0);
}

#[test]
fn arguments_that_do_not_fit_ask_nobody() {
    let world = asking("tell");
    world.flow(
        "pays",
        json!([{"pay": {"call": "tool", "with": {"tool": "pay"}}}]),
    );
    let process = world.process(1, true);
    let run = world.ends(&process, "pays", json!({}));
    let failure = run.failure_message.unwrap();
    assert!(failure.contains("do not fit"), "{failure}");
    assert!(failure.ends_with("(status 400)."), "{failure}");
    assert_eq!(world.steps(run.run_id), ["tool /do/0/pay completed"]);
}

/// They are a fault of the flow: no other try mends them, and a dry run finds them.
#[test]
fn arguments_that_do_not_fit_are_a_validation_error_also_in_a_dry_run() {
    let world = World::new();
    let call = json!({"call": "tool", "with": {"tool": "pay", "arguments": {"town": 7}}});
    let retry = json!({"delay": {"milliseconds": 1}, "limit": {"attempt": {"count": 3}}});
    let kind = |name| format!("https://serverlessworkflow.io/spec/1.0.0/errors/{name}");
    let retries = json!({"errors": {"with": {"type": kind("communication")}}, "retry": retry});
    let see = json!([{"see": {"set": "${ [$error.type, $error.status] }"}}]);
    world.flow(
        "sees",
        json!([{"try": {"try": [{"pay": call}], "catch": {"do": see}}}]),
    );
    world.flow(
        "fails",
        json!([{"try": {"try": [{"pay": call}], "catch": retries}}]),
    );
    let process = world.process(1, true);
    assert_eq!(
        world.answers(&process, "sees", json!({})),
        json!([kind("validation"), 400])
    );
    let dry = world.start_dry(&process, "sees", json!({}));
    world.finished(&process, dry);
    assert_eq!(world.output(dry), json!([kind("validation"), 400]));
    for is_dry in [false, true] {
        let run_id = match is_dry {
            false => world.start(&process, "fails", json!({})),
            true => world.start_dry(&process, "fails", json!({})),
        };
        let run = world.finished(&process, run_id);
        assert_eq!(run.status, Status::Failed);
        assert_eq!(
            world.steps(run_id),
            ["tool /do/0/try/try/0/pay completed"],
            "not tried again"
        );
        let summary = run.failure_summary.unwrap();
        assert_eq!(
            summary,
            "The task /do/0/try/try/0/pay failed: The data does not fit its schema (status 400)."
        );
    }
    assert_eq!(called(&world).len(), 0);
}

#[test]
fn a_dry_run_of_a_flow_asks_nobody_and_calls_nothing() {
    let world = asking("tell");
    world.flow("pays", json!([{"pay": pay()}]));
    let process = world.process(1, true);
    let run_id = world.start_dry(&process, "pays", json!({"city": "Rome"}));
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let opened = "select count(*) from approvals";
    let opened: i64 = world.read(|session| Ok(session.query_one(opened, &[])?.get(0)));
    assert_eq!((called(&world).len(), opened), (0, 0));
}

/// The turn inside the flow waits for itself; the flow waits for the turn.
#[test]
fn an_agent_inside_a_flow_asks_and_its_refusal_is_the_flows_to_catch() {
    let world = asking("fail");
    let ask =
        json!({"call": "agent", "with": {"agent": "a", "version": "1.0.0", "message": "Pay."}});
    let caught = json!([{"outer": {"try": [{"ask": ask}], "catch": {"errors": {"with": {"status": 403}},
        "do": [{"tell": {"set": {"caught": "${ $error.title }"}}}]}}}]);
    world.flow("asks", caught);
    let process = world.process(2, true);
    let turn = |decision: &Decision<'_>| {
        let calls = vec![("pay".to_owned(), json!({"city": "Rome"}))];
        world.provider.push(Step::new(Reply::ToolCalls(calls)));
        world.provider.push(Step::text("Paid."));
        let run_id = world.start(&process, "asks", json!({}));
        world.until(&process, run_id, |run| {
            run.waiting_for == Some(WaitingFor::Children)
        });
        let child = world.children(run_id)[0].run_id;
        let asked = decided(&world, &process, child, decision);
        assert_eq!(asked["rootRunId"], json!(run_id));
        world.finished(&process, run_id);
        world.output(run_id)
    };
    assert_eq!(turn(&YES)["text"], json!("Paid."));
    assert_eq!(called(&world), [json!({"city": "Rome"})]);
    assert_eq!(turn(&NO), json!({"caught": "The approval was rejected"}));
    assert_eq!(called(&world).len(), 1);
}

#[test]
fn a_cancel_of_a_flow_voids_what_an_agent_inside_it_asks() {
    let world = asking("tell");
    let ask =
        json!({"call": "agent", "with": {"agent": "a", "version": "1.0.0", "message": "Pay."}});
    world.flow("asks", json!([{"ask": ask}]));
    let process = world.process(2, true);
    let calls = vec![("pay".to_owned(), json!({"city": "Rome"}))];
    world.provider.push(Step::new(Reply::ToolCalls(calls)));
    let run_id = world.start(&process, "asks", json!({}));
    world.until(&process, run_id, |run| {
        run.waiting_for == Some(WaitingFor::Children)
    });
    let child = world.children(run_id)[0].run_id;
    world.until(&process, child, |run| run.status == Status::Waiting);
    let cancelled = process.runtime.cancel(&world.root(run_id), || Ok(()));
    cancelled.unwrap();
    world.finished(&process, run_id);
    let voided = "select array_agg(status) from approvals where run_id = $1";
    let voided: Vec<String> =
        world.read(|session| Ok(session.query_one(voided, &[&child])?.get(0)));
    assert_eq!(voided, ["voided"]);
    assert_eq!(called(&world).len(), 0);
}

/// A run whose process dies while the tool is called that a reviewer approved. The run, which failed, and the next process.
fn dies_during_its_approved_call(world: &World, decision: &Decision<'_>) -> (Uuid, Process) {
    dies_during_a_call(world, true, |dying| {
        let run_id = world.start(dying, "pays", json!({"city": "Rome"}));
        decided(world, dying, run_id, decision);
        run_id
    })
}

fn keys(world: &World) -> Vec<String> {
    let asked = world.tool.asked().into_iter();
    asked.map(|call| call.0.unwrap()).collect()
}

/// The definition of the flow is another one for the next process.
fn rewrites(world: &World, from: &str, to: &str) {
    world.batch(&format!(
        "update flow_versions set definition = replace(definition::text, '{from}', '{to}')::json"
    ));
}

/// Nobody knows what became of the lost call until it is made again, whatever the runs between come to.
#[test]
fn a_call_whose_answer_was_lost_is_approved_again_and_keeps_its_key() {
    let world = asking("tell");
    world.flow("pays", json!([{"pay": pay()}]));
    let refused = |process: &Process, run_id: Uuid| {
        let refused = retry(&world, process, run_id, false).unwrap_err();
        assert_eq!(refused.code(), Code::OutcomeUnknown, "{refused:?}");
        assert!(refused.message().contains("the tool pay"), "{refused:?}");
    };
    let (first, process) = dies_during_its_approved_call(&world, &YES);
    refused(&process, first);
    let second = retry(&world, &process, first, true).unwrap();
    decided(&world, &process, second, &NO);
    assert_eq!(world.finished(&process, second).status, Status::Failed);
    refused(&process, second);
    drop(process);
    // This one fails before it comes to ask.
    rewrites(&world, ".city }", ".city + 1 }");
    let process = world.process(1, true);
    let third = retry(&world, &process, second, true).unwrap();
    let run = world.finished(&process, third);
    assert_eq!(run.status, Status::Failed);
    // It took over that the first was approved, and asked nothing.
    assert_eq!(world.steps(third), ["approval /do/0/pay completed"]);
    drop(process);
    rewrites(&world, ".city + 1 }", ".city }");
    let process = world.process(1, true);
    refused(&process, third);
    let fourth = retry(&world, &process, third, true).unwrap();
    decided(&world, &process, fourth, &YES);
    let run = world.finished(&process, fourth);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(keys(&world), vec![format!("{first}-2"); 2]);
    let (approval, earlier) = earlier_calls(&world);
    let allowed = json!({"approvalId": approval, "isEdited": false});
    assert_eq!(earlier, [Value::Null, allowed.clone(), allowed]);
}

#[test]
fn a_call_with_other_arguments_than_the_lost_one_has_a_key_of_its_own() {
    let edited = json!({"city": "Oslo"});
    let edits = Decision {
        arguments: Some(&edited),
        ..YES
    };
    for (before, after, is_same) in [
        (&YES, &edits, false),
        (&edits, &YES, false),
        (&edits, &edits, true),
    ] {
        let world = asking("tell");
        world.flow("pays", json!([{"pay": pay()}]));
        let (first, process) = dies_during_its_approved_call(&world, before);
        let second = retry(&world, &process, first, true).unwrap();
        decided(&world, &process, second, after);
        let run = world.finished(&process, second);
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        // It took over that the first was approved, and asked again.
        let made = match is_same {
            true => format!("{first}-2"),
            false => format!("{second}-3"),
        };
        assert_eq!(keys(&world), [format!("{first}-2"), made]);
    }
}
