//! Calls that wait, and what ends that: time, a cancel, several reviewers at once, a crash of the turn.

use super::{World, calls, pay, steps};
use crate::harness::{App, eventually, let_time_pass, made};
use agent_runtime::dev::provider::Step;
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::Duration;
use time::OffsetDateTime;

fn statuses(world: &World, run: &str) -> Vec<String> {
    let query =
        "select status from approvals where run_id = $1::text::uuid order by step, created_at";
    let rows = world.app.database.client().query(query, &[&run]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn what_nobody_decides_in_time_is_not_called() {
    let asks = json!({"expiresAfter": "PT0.3S"});
    let world = World::start(asks, vec![pay(5)]);
    let run = world.app.start_turn(world.agent, "Pay.");
    world.completed(&run);
    assert_eq!(statuses(&world, &run), ["expired"]);
    assert!(
        world.tool_results()[0].contains("Nobody approved"),
        "{:?}",
        world.tool_results()
    );
    assert_eq!(world.paid().len(), 0);
}

#[test]
fn the_approval_of_a_call_is_assigned_to_whom_the_tool_names() {
    let app = App::start();
    let ann = made::id(&made::person(&app, "ann@plant.example", "member"));
    let asks = json!({"assignedTo": "ann@plant.example"});
    let world = World::start_on(app, asks, vec![pay(7)]);
    let (_, approvals) = world.asked(1);
    assert_eq!(world.approval(&approvals[0])["assignedTo"], json!(ann));
}

/// Each call has its own time, whichever the run waits for.
#[test]
fn an_approval_is_escalated_in_time_while_the_run_waits_for_another() {
    let asks = json!({"escalation": [{"after": "PT0.3S", "requiredRole": "board"}]});
    let twice = calls(&[("pay", json!({"amount": 1})), ("pay", json!({"amount": 2}))]);
    let world = World::start(asks, vec![twice]);
    let run = world.app.start_turn(world.agent, "Pay.");
    eventually("both to be escalated", || {
        let statuses = statuses(&world, &run);
        (statuses == ["escalated", "waiting", "escalated", "waiting"]).then_some(())
    });
    for id in world.waiting(&run) {
        assert_eq!(world.approval(&id)["requiredRole"], json!("board"));
        world
            .decide(
                &id,
                &json!({"decision": "approve", "arguments": {"amount": 7}}),
            )
            .expect(200);
    }
    world.completed(&run);
    assert_eq!(world.paid(), [json!({"amount": 7}), json!({"amount": 7})]);
}

#[test]
fn a_cancel_voids_all_approvals_and_nothing_is_called() {
    let twice = calls(&[("pay", json!({"amount": 1})), ("pay", json!({"amount": 2}))]);
    let world = World::start(json!({}), vec![twice]);
    let (run, approvals) = world.asked(2);
    world.app.cancel(&run);
    assert_eq!(world.app.finished(&run)["status"], json!("cancelled"));
    assert_eq!(statuses(&world, &run), ["voided", "voided"]);
    for id in approvals {
        let refused = world.decide(&id, &json!({"decision": "approve"}));
        let refused = refused.expect_error(409, "approval-closed");
        assert_eq!(refused["details"]["status"], json!("voided"));
    }
    assert_eq!(world.paid().len(), 0);
}

/// A turn that fails at one call leaves no other to be decided.
#[test]
fn the_end_of_the_turn_voids_what_still_waits() {
    let twice = calls(&[("pay", json!({"amount": 1})), ("pay", json!({"amount": 2}))]);
    let world = World::start(json!({"onReject": "fail"}), vec![twice]);
    let (run, approvals) = world.asked(2);
    world
        .decide(&approvals[0], &json!({"decision": "reject"}))
        .expect(200);
    assert_eq!(world.app.finished(&run)["status"], json!("failed"));
    assert_eq!(statuses(&world, &run), ["rejected", "voided"]);
}

#[test]
fn a_dry_run_asks_nobody_and_calls_nothing() {
    let world = World::start(json!({}), vec![pay(5)]);
    let body = json!({"agentId": world.agent, "message": "Pay.", "dryRun": true});
    let run = world.app.post("/v1/runs", &body).expect(202)["run"]["id"].clone();
    let run = run.as_str().unwrap();
    world.completed(run);
    assert_eq!(statuses(&world, run).len(), 0);
    assert_eq!(world.paid().len(), 0);
    assert!(
        world.tool_results()[0].contains("dry run"),
        "{:?}",
        world.tool_results()
    );
    let done = ["model", "approval", "tool", "model"].map(|kind| format!("{kind} completed"));
    assert_eq!(steps(&world.app, run), done);
}

/// Runs both at the same moment, and says what each came to.
fn at_once<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            start.wait();
            other()
        });
        start.wait();
        (one(), other.join().unwrap())
    })
}

#[test]
fn of_two_reviewers_at_once_one_decides() {
    let rounds = 8;
    let world = World::start(
        json!({}),
        (0..rounds)
            .flat_map(|_| [pay(5), Step::text("Well.")])
            .collect(),
    );
    let mut paid = 0;
    for _ in 0..rounds {
        let (run, approvals) = world.asked(1);
        let decide = |decision: &str| {
            let body: Value = json!({"decision": decision});
            world.decide(&approvals[0], &body).status
        };
        let (yes, no) = at_once(|| decide("approve"), || decide("reject"));
        let mut answers = [yes, no];
        answers.sort_unstable();
        assert_eq!(answers, [200, 409]);
        world.completed(&run);
        paid += usize::from(yes == 200);
        assert_eq!(
            world.paid().len(),
            paid,
            "what was decided is what happened"
        );
    }
}

/// The approval of a new run, whatever has become of it, and when it expires.
fn asks(world: &World) -> (String, String, OffsetDateTime) {
    let run = world.app.start_turn(world.agent, "Pay.");
    let asked = "select approval_id::text, expires_at from approvals where run_id = $1::text::uuid";
    let mut database = world.app.database.client();
    let row = eventually("the approval", || {
        database.query_opt(asked, &[&run]).unwrap()
    });
    (run, row.get(0), row.get(1))
}

#[test]
fn a_decision_while_its_time_runs_out_leaves_one_end() {
    let rounds: i32 = 8;
    let answers = (0..rounds).flat_map(|_| [pay(5), Step::text("Well.")]);
    let world = World::start(json!({"expiresAfter": "PT0.5S"}), answers.collect());
    let (mut approved, mut expired) = (0, 0);
    for round in 0..rounds {
        let (run, approval, expires_at) = asks(&world);
        // From a bit before its time to a bit after.
        let at = expires_at + time::Duration::milliseconds(i64::from(4 * round - 14));
        let left = Duration::try_from(at - world.app.clock.now()).unwrap_or_default();
        let_time_pass(left);
        let decided = world.decide(&approval, &json!({"decision": "approve"}));
        world.completed(&run);
        let status = match decided.status {
            200 => "approved",
            _ => {
                let refused = decided.expect_error(409, "approval-closed");
                assert_eq!(refused["details"]["status"], json!("expired"), "{refused}");
                "expired"
            }
        };
        assert_eq!(statuses(&world, &run), [status]);
        approved += usize::from(status == "approved");
        expired += usize::from(status == "expired");
        assert_eq!(world.paid().len(), approved, "no silence approves");
    }
    assert!(expired > 0, "{approved} were approved");
}

#[test]
fn a_decision_and_an_escalation_at_once_leave_one_end() {
    let rounds = 8;
    let answers = (0..rounds).flat_map(|_| [pay(5), Step::text("Well.")]);
    let world = World::start(json!({}), answers.collect());
    let yes = json!({"decision": "approve"});
    for round in 1..=rounds {
        let (run, approvals) = world.asked(1);
        let path = format!("/v1/approvals/{}/escalate", approvals[0]);
        let board = json!({"requiredRole": "board"});
        let (decided, escalated) = at_once(
            || world.decide(&approvals[0], &yes).status,
            || world.app.post(&path, &board).status,
        );
        let expected = match decided {
            200 => {
                assert_eq!(escalated, 409);
                vec!["approved"]
            }
            _ => {
                assert_eq!((decided, escalated), (409, 201));
                let second = world.waiting(&run);
                world.decide(&second[0], &yes).expect(200);
                vec!["escalated", "approved"]
            }
        };
        world.completed(&run);
        assert_eq!(statuses(&world, &run), expected);
        assert_eq!(world.paid().len(), round, "it is paid once");
    }
}

#[test]
fn a_decision_and_a_cancel_at_once_leave_one_end() {
    let rounds = 8;
    let world = World::start(json!({}), (0..rounds).map(|_| pay(5)).collect());
    let mut approved = 0;
    for _ in 0..rounds {
        let (run, approvals) = world.asked(1);
        let yes = json!({"decision": "approve"});
        let (decided, _) = at_once(
            || world.decide(&approvals[0], &yes).status,
            || world.app.cancel(&run),
        );
        let ended = world.app.finished(&run);
        let status = if decided == 200 { "approved" } else { "voided" };
        assert_eq!(statuses(&world, &run), [status]);
        approved += usize::from(decided == 200);
        if decided != 200 {
            assert_eq!((decided, &ended["status"]), (409, &json!("cancelled")));
        }
        assert!(
            world.paid().len() <= approved,
            "what nobody approved is not called"
        );
    }
}

#[test]
fn a_retry_asks_again_for_what_was_not_done() {
    let twice = calls(&[("pay", json!({"amount": 1})), ("pay", json!({"amount": 2}))]);
    let world = World::start(json!({"onReject": "fail"}), vec![twice]);
    let (run, approvals) = world.asked(2);
    let yes = json!({"decision": "approve"});
    world.decide(&approvals[0], &yes).expect(200);
    world
        .decide(&approvals[1], &json!({"decision": "reject"}))
        .expect(200);
    assert_eq!(world.app.finished(&run)["status"], json!("failed"));
    let again = world
        .app
        .post(&format!("/v1/runs/{run}/retry"), &json!({}))
        .expect(202);
    assert_eq!(world.paid(), [json!({"amount": 1})]);
    let again = again["run"]["id"].as_str().unwrap().to_owned();
    let asked = eventually("the approval", || world.waiting(&again).pop());
    assert_eq!(
        world.approval(&asked)["subject"]["arguments"],
        json!({"amount": 2})
    );
    world.decide(&asked, &yes).expect(200);
    world.completed(&again);
    assert_eq!(
        world.paid(),
        [json!({"amount": 1}), json!({"amount": 2})],
        "each once"
    );
    assert_eq!(statuses(&world, &again), ["approved"]);
}

/// Steps that wait for approvals do not count, and what cannot be called any more is not asked.
#[test]
fn max_steps_counts_models_and_tools() {
    let thrice = calls(&[
        ("pay", json!({"amount": 1})),
        ("pay", json!({"amount": 2})),
        ("pay", json!({"amount": 3})),
    ]);
    let mut world = World::start(json!({}), vec![thrice]);
    world.limit(3);
    let (run, approvals) = world.asked(2);
    for id in approvals {
        world
            .decide(&id, &json!({"decision": "approve"}))
            .expect(200);
    }
    let ended = world.app.finished(&run);
    assert!(
        ended["failureMessage"]
            .as_str()
            .unwrap()
            .contains("maxSteps"),
        "{ended}"
    );
    assert_eq!(world.paid().len(), 2);
}

/// The turn's time does not run while it waits: its approval has its own.
#[test]
fn a_turn_that_waits_holds_nothing() {
    let world = World::start(json!({}), vec![pay(5)]);
    let (run, approvals) = world.asked(1);
    let held: i64 = world
        .app
        .database
        .client()
        .query_one(
            "select count(*) from job_jobs where lease_id is not null",
            &[],
        )
        .unwrap()
        .get(0);
    assert_eq!(held, 0);
    let waits = world.app.run(&run);
    assert_eq!(waits["waitingFor"], json!("approval"), "{waits}");
    world
        .decide(&approvals[0], &json!({"decision": "approve"}))
        .expect(200);
    world.completed(&run);
}

#[test]
fn a_conversation_whose_turn_waits_names_the_approval_and_until_when() {
    let world = World::start(json!({}), vec![pay(5)]);
    let conversation = world.app.maker().conversation(world.agent, None);
    let turn = json!({"agentId": world.agent, "conversationId": conversation, "message": "Pay."});
    let started = world.app.post("/v1/runs", &turn).expect(202);
    let run = started["run"]["id"].as_str().unwrap().to_owned();
    world.app.run_once(&run, "waiting");
    let approval = world.approval(&world.waiting(&run)[0]);
    let busy = world.app.post("/v1/runs", &turn);
    let error = busy.expect_error(409, "conflict");
    let sentence = format!(
        "A turn of this conversation waits for the approval {} until {}. Have it decided, or cancel the turn.",
        approval["id"].as_str().unwrap(),
        approval["expiresAt"].as_str().unwrap()
    );
    assert_eq!(error["message"], json!(sentence));
}
