//! What becomes of a call that is approved, edited or rejected, and what readers and webhooks are told.

use super::{CANARY, World, calls, pay, steps};
use crate::harness::{App, Receiver, kinds};
use serde_json::json;

#[test]
fn a_call_waits_for_a_reviewer_and_is_made_once_with_what_was_shown() {
    let world = World::start(
        json!({"title": "Pay", "requiredRole": "finance"}),
        vec![pay(5)],
    );
    let (run, approvals) = world.asked(1);
    assert_eq!(world.paid().len(), 0, "nothing is paid while it waits");
    let approval = world.approval(&approvals[0]);
    assert_eq!(approval["source"], json!("tool"));
    assert_eq!(approval["title"], json!("Pay"));
    assert_eq!(approval["requiredRole"], json!("finance"));
    assert_eq!(approval["path"], json!("/1/calls/0"));
    assert_eq!(approval["mayEdit"], json!(["arguments"]));
    let shown = &approval["subject"];
    assert_eq!(shown["tool"], json!("pay"));
    assert_eq!(shown["arguments"], json!({"amount": 5, "why": CANARY}));
    let decision = json!({"decision": "approve", "expectedDigest": shown["digest"]});
    world.decide(&approvals[0], &decision).expect(200);
    let ended = world.completed(&run);
    assert_eq!(ended["usage"]["calls"], json!(2));
    assert_eq!(world.paid(), [json!({"amount": 5, "why": CANARY})]);
    assert_eq!(world.tool_results(), [format!("paid {CANARY}")]);
    let done = ["model", "approval", "tool", "model"].map(|kind| format!("{kind} completed"));
    assert_eq!(steps(&world.app, &run), done);
    let events = world.app.events(&run);
    assert_eq!(
        kinds(&events),
        [
            "run.created",
            "run.started",
            "step.started",
            "step.completed",
            "step.started",
            "approval.requested",
            "run.waiting",
            "approval.decided",
            "step.completed",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let call_id = &events[3]["data"]["toolCalls"][0]["id"];
    for event in &events[4..6] {
        assert_eq!(event["data"]["callId"], *call_id, "{event}");
        assert_eq!(event["data"]["step"], json!(2));
    }
    let closed = world.approval(&approvals[0]);
    assert_eq!(
        (&closed["mayDecide"], &closed["mayEdit"]),
        (&json!(false), &json!([]))
    );
}

#[test]
fn a_reviewer_edits_the_arguments_which_have_to_fit_and_the_record_keeps_both() {
    let world = World::start(json!({}), vec![pay(500)]);
    let (run, approvals) = world.asked(1);
    let id = &approvals[0];
    let unfit =
        json!({"decision": "approve", "arguments": {"amount": 2000, "why": 1, "more": true}});
    let refused = world.decide(id, &unfit).expect_error(400, "invalid-body");
    let faults = refused["details"]["faults"].as_array().unwrap();
    let mut paths: Vec<_> = faults
        .iter()
        .map(|fault| fault["path"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        ["$.arguments.amount", "$.arguments.more", "$.arguments.why"],
        "{refused}"
    );
    // Nor what a run could not keep.
    let deep = (0..65).fold(json!(1), |inner, _| json!([inner]));
    let unkept = json!({"decision": "approve", "arguments": {"amount": 1, "why": deep}});
    let refused = world.decide(id, &unkept).expect_error(400, "invalid-body");
    assert_eq!(refused["details"]["path"], json!("$.arguments"));
    let rejected = json!({"decision": "reject", "arguments": {"amount": 1}});
    world
        .decide(id, &rejected)
        .expect_error(400, "invalid-body");
    assert_eq!(
        world.approval(id)["status"],
        json!("waiting"),
        "nothing is decided"
    );
    let edited = json!({"decision": "approve", "comment": "Half.", "arguments": {"amount": 250}});
    world.decide(id, &edited).expect(200);
    // The same again is an answer that was lost; other arguments are another decision.
    world.decide(id, &edited).expect(200);
    world
        .decide(id, &json!({"decision": "approve"}))
        .expect_error(409, "approval-closed");
    world.completed(&run);
    assert_eq!(world.paid(), [json!({"amount": 250})]);
    let result = world.tool_results().remove(0);
    for part in ["reviewer changed", r#"{"amount":250}"#, "Half.", "paid"] {
        assert!(result.contains(part), "{part}: {result}");
    }
    let kept = world.approval(id)["subject"].clone();
    assert_eq!(kept["arguments"], json!({"amount": 500, "why": CANARY}));
    assert_eq!(kept["editedArguments"], json!({"amount": 250}));
}

#[test]
fn a_rejection_is_told_to_the_model_with_its_comment() {
    let world = World::start(json!({}), vec![pay(5)]);
    let (run, approvals) = world.asked(1);
    // Without a full stop of its own.
    let no = json!({"decision": "reject", "comment": "No receipt"});
    world.decide(&approvals[0], &no).expect(200);
    world.completed(&run);
    assert_eq!(world.paid().len(), 0);
    let result = world.tool_results().remove(0);
    for part in [
        "rejected",
        ": No receipt. It was not made.",
        "Do not ask for the same call again",
    ] {
        assert!(result.contains(part), "{part}: {result}");
    }
}

#[test]
fn a_rejection_fails_the_turn_where_the_tool_says_so() {
    let world = World::start(json!({"onReject": "fail"}), vec![pay(5)]);
    let (run, approvals) = world.asked(1);
    let no = json!({"decision": "reject", "comment": "No receipt."});
    world.decide(&approvals[0], &no).expect(200);
    let ended = world.app.finished(&run);
    assert_eq!(ended["status"], json!("failed"));
    assert_eq!(
        ended["failureMessage"],
        json!("A reviewer rejected the call of the tool pay: No receipt.")
    );
    assert_eq!(world.paid().len(), 0);
}

#[test]
fn the_third_rejection_of_the_same_call_fails_the_turn() {
    let world = World::start(json!({}), vec![pay(5), pay(5), pay(5)]);
    let (run, approvals) = world.asked(1);
    let no = json!({"decision": "reject"});
    let mut next = approvals;
    for _ in 0..3 {
        world.decide(&next[0], &no).expect(200);
        next = crate::harness::eventually("the next one or the end", || {
            let waiting = world.waiting(&run);
            let is_over = world.app.run(&run)["status"] == "failed";
            (is_over || !waiting.is_empty()).then_some(waiting)
        });
    }
    let ended = world.app.finished(&run);
    let message = ended["failureMessage"].as_str().unwrap();
    assert!(message.contains("3 times"), "{message}");
    assert_eq!(world.paid().len(), 0);
}

#[test]
fn calls_of_one_answer_are_asked_together_and_decided_in_any_order() {
    let both = calls(&[
        ("pay", json!({"amount": 1})),
        ("look", json!({"at": 2})),
        ("pay", json!({"amount": 3})),
        ("pay", json!({"amount": 4})),
    ]);
    let world = World::start(json!({}), vec![both]);
    let (run, approvals) = world.asked(3);
    let amounts = approvals
        .iter()
        .map(|id| world.approval(id)["subject"]["arguments"]["amount"].clone());
    assert_eq!(amounts.collect::<Vec<_>>(), [json!(1), json!(3), json!(4)]);
    let yes = json!({"decision": "approve"});
    world.decide(&approvals[2], &yes).expect(200);
    world
        .decide(&approvals[1], &json!({"decision": "reject"}))
        .expect(200);
    assert_eq!(world.paid().len(), 0, "calls are made in the model's order");
    world.decide(&approvals[0], &yes).expect(200);
    world.completed(&run);
    assert_eq!(
        world.paid(),
        [json!({"amount": 1}), json!({"at": 2}), json!({"amount": 4})]
    );
    let tool_results = world.tool_results();
    assert_eq!(tool_results.len(), 4);
    assert!(tool_results[2].contains("rejected"), "{tool_results:?}");
    let asked = world.app.events(&run);
    let asked = asked
        .iter()
        .filter(|event| event["kind"] == "approval.requested");
    let steps: Vec<_> = asked.map(|event| event["data"]["step"].clone()).collect();
    assert_eq!(steps, [json!(2), json!(5), json!(7)]);
}

#[test]
fn arguments_that_do_not_fit_ask_nobody() {
    let world = World::start(json!({}), vec![pay(5_000)]);
    let run = world.app.start_turn(world.agent, "Pay.");
    world.completed(&run);
    assert_eq!(
        world.app.get("/v1/approvals?status=voided").expect(200)["data"],
        json!([])
    );
    assert!(world.tool_results()[0].contains("do not fit"));
    assert_eq!(world.paid().len(), 0);
}

#[test]
fn webhooks_are_told_of_each_approval_and_never_what_it_is_about() {
    let world = World::start_on(
        App::start_with_webhooks(),
        json!({"title": "Pay"}),
        vec![
            calls(&[
                ("pay", json!({"amount": 1, "why": CANARY})),
                ("pay", json!({"amount": 2, "why": CANARY})),
            ]),
            pay(3),
        ],
    );
    let receiver = Receiver::good();
    world.app.endpoint(&receiver.url());
    let (run, approvals) = world.asked(2);
    for id in &approvals {
        let yes = json!({"decision": "approve", "comment": CANARY, "answer": CANARY});
        world.decide(id, &yes).expect(200);
    }
    // The third is asked for once the tool's answers are known.
    let third = crate::harness::eventually("the third", || world.waiting(&run).pop());
    world
        .decide(&third, &json!({"decision": "approve"}))
        .expect(200);
    world.completed(&run);
    let received = receiver.once(3);
    let mut ids: Vec<String> = Vec::new();
    for one in &received {
        let text = format!("{one:?}");
        assert!(!text.contains(CANARY), "{text}");
        ids.push(one.header("webhook-id").to_owned());
    }
    ids.sort_unstable();
    let mut expected = [approvals, vec![third]].concat();
    expected.sort_unstable();
    assert_eq!(ids, expected, "each once");
}
