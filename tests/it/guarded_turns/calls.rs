//! Calls of tools: what they are made with, and what they answer.

use super::{CANARY, World, calls, check, failed};
use serde_json::{Value, json};

fn send(to: &str) -> (&'static str, Value) {
    ("send", json!({ "to": to }))
}

fn arguments(action: &str, more: Value) -> Value {
    json!([check("tool.arguments", action, more)])
}

#[test]
fn a_call_that_is_blocked_is_not_made_and_the_model_is_told() {
    let world = World::start(arguments("block", json!({})), vec![calls(&[send(CANARY)])]);
    let run = world.run("Go.");
    assert_eq!(run["status"], "completed", "{run}");
    assert!(world.called().is_empty());
    let told = "The guardrail no-canary refused the call. It was not made. Do not ask for the same call again.";
    assert_eq!(world.tool_results(), [told]);
    assert_eq!(world.decided(&run), ["tool.arguments no-canary block"]);
    assert_eq!(world.told(&run), ["tool.arguments no-canary block"]);
    assert_eq!(world.canaries(), 0, "what was blocked stands nowhere");
}

#[test]
fn a_call_that_is_blocked_may_fail_the_turn_before_any_other_is_made() {
    let world = World::start(
        arguments("block", json!({"onBlock": "fail"})),
        vec![calls(&[send("ada"), send(CANARY)]), calls(&[send("bob")])],
    );
    let run = world.run("Go.");
    failed(
        &run,
        "The guardrail no-canary refused a call of the tool send.",
    );
    assert!(world.called().is_empty(), "not the one before it, either");
    assert_eq!(world.canaries(), 0);
    // Taken up, the model is asked again.
    let path = format!("/v1/runs/{}/retry", run["id"].as_str().unwrap());
    let again = world.app.post(&path, &json!({})).expect(202);
    let again = world.app.finished(again["run"]["id"].as_str().unwrap());
    assert_eq!(again["status"], "completed", "{again}");
    assert_eq!(world.called(), [json!({"to": "bob"})]);
}

#[test]
fn a_call_is_made_with_what_is_left_of_its_arguments() {
    let world = World::start(arguments("redact", json!({})), vec![calls(&[send(CANARY)])]);
    let run = world.run("Go.");
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(world.called(), [json!({"to": "[pattern]"})]);
    assert!(!world.asked()[1].contains(CANARY));
    assert_eq!(world.canaries(), 0);
}

#[test]
fn arguments_that_a_redaction_makes_invalid_reach_no_tool() {
    let long = json!([{"builtin": "pattern", "name": "words", "at": ["tool.arguments"], "action": "redact",
        "config": {"patterns": ["x"]}}]);
    // 20 characters fit, and each x becomes nine.
    let world = World::start(long, vec![calls(&[send("xxxxxxxxx")])]);
    let run = world.run("Go.");
    assert_eq!(run["status"], "completed", "{run}");
    assert!(world.called().is_empty());
    assert!(world.tool_results()[0].contains("do not fit the tool's schema"));
}

#[test]
fn each_call_of_an_answer_has_its_own_verdict() {
    let guardrails = json!([
        check("tool.arguments", "redact", json!({})),
        {"builtin": "pattern", "name": "no-bob", "at": ["tool.arguments"], "action": "block", "config": {"patterns": ["bob"]}},
        {"builtin": "pattern", "name": "ask-eve", "at": ["tool.arguments"], "action": "approve", "config": {"patterns": ["eve"]},
         "approval": {"title": "Eve gets mail", "requiredRole": "mail"}},
    ]);
    let asked = vec![calls(&[
        send("bob"),
        send(CANARY),
        send("eve"),
        send("ada"),
        ("unknown", json!({"to": "bob"})),
    ])];
    let world = World::start(guardrails, asked);
    let run = world.app.start_turn(world.agent, "Go.");
    let approval = world.approval(&run);
    let shown = world
        .app
        .get(&format!("/v1/approvals/{approval}"))
        .expect(200);
    assert_eq!(shown["title"], "Eve gets mail");
    assert_eq!(shown["requiredRole"], "mail");
    assert_eq!(
        world.called(),
        [json!({"to": "[pattern]"})],
        "the call before it is made"
    );
    world.decide(&approval, json!({"decision": "approve"}));
    let ended = world.app.finished(&run);
    assert_eq!(ended["status"], "completed", "{ended}");
    let expected = ["[pattern]", "eve", "ada"].map(|to| json!({ "to": to }));
    assert_eq!(world.called(), expected);
    let results = world.tool_results();
    assert_eq!(results.len(), 5);
    assert!(
        results[0].starts_with("The guardrail no-bob refused the call."),
        "{results:?}"
    );
    assert!(
        results[4].starts_with("The guardrail no-bob refused the call."),
        "{results:?}"
    );
    let blocked: Vec<String> = world
        .decided(&ended)
        .into_iter()
        .filter(|one| !one.ends_with("allow"))
        .collect();
    assert_eq!(
        blocked,
        [
            "tool.arguments no-bob block",
            "tool.arguments no-canary redact",
            "tool.arguments ask-eve approve",
            "tool.arguments no-bob block"
        ]
    );
    let calls =
        "select array_agg(distinct call order by call) from run_checks where verdict <> 'allow'";
    let calls: Vec<i32> = world
        .app
        .database
        .client()
        .query_one(calls, &[])
        .unwrap()
        .get(0);
    assert_eq!(calls, [0, 1, 2, 4]);
}

#[test]
fn what_a_reviewer_rejects_for_a_guardrail_is_not_called() {
    for (on_reject, status) in [("tell", "completed"), ("fail", "failed")] {
        let asks = json!({"approval": {"onReject": on_reject}});
        let world = World::start(arguments("approve", asks), vec![calls(&[send(CANARY)])]);
        let run = world.app.start_turn(world.agent, "Go.");
        let approval = world.approval(&run);
        world.decide(&approval, json!({"decision": "reject", "comment": "No."}));
        assert_eq!(world.app.finished(&run)["status"], status);
        assert!(world.called().is_empty());
    }
}

#[test]
fn arguments_that_a_reviewer_edits_are_judged_again() {
    let guardrails = |on_block: &str| {
        json!([
            {"builtin": "pattern", "name": "ask-eve", "at": ["tool.arguments"], "action": "approve", "config": {"patterns": ["eve"]}},
            check("tool.arguments", "block", json!({"onBlock": on_block})),
            {"builtin": "pattern", "name": "no-zoe", "at": ["tool.arguments"], "action": "redact", "config": {"patterns": ["zoe"]}},
        ])
    };
    let edited = |on_block: &str, to: &str| {
        let world = World::start(guardrails(on_block), vec![calls(&[send("eve")])]);
        let run = world.app.start_turn(world.agent, "Go.");
        let approval = world.approval(&run);
        world.decide(
            &approval,
            json!({"decision": "approve", "arguments": {"to": to}}),
        );
        let ended = world.app.finished(&run);
        (world, ended)
    };
    let (world, ended) = edited("tell", CANARY);
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(world.called().is_empty());
    assert!(
        world.tool_results()[0].contains("no-canary refused the call"),
        "{:?}",
        world.tool_results()
    );
    let (world, ended) = edited("fail", CANARY);
    failed(
        &ended,
        "The guardrail no-canary refused a call of the tool send.",
    );
    assert!(world.called().is_empty());
    // Who has approved it need not do so twice; what is redacted is redacted.
    let (world, ended) = edited("tell", "eve, zoe");
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(world.called(), [json!({"to": "eve, [pattern]"})]);
    let last = world.decided(&ended).split_off(3);
    let expected = ["ask-eve approve", "no-canary allow", "no-zoe redact"];
    assert_eq!(last, expected.map(|one| format!("tool.arguments {one}")));
}

#[test]
fn a_model_reads_what_is_left_of_a_tools_answer() {
    let answer = json!({"found": [CANARY, 4], "ünï": 1.50});
    for (action, read) in [
        ("redact", r#"{"found":["[pattern]",4],"ünï":1.5}"#),
        (
            "block",
            "The guardrail no-canary withheld what the tool answered.",
        ),
    ] {
        let world = World::start_with(
            json!([check("tool.result", action, json!({}))]),
            vec![calls(&[("look", json!({}))])],
            answer.clone(),
        );
        let run = world.run("Go.");
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(world.tool_results(), [read]);
        assert_eq!(
            world.decided(&run),
            [format!("tool.result no-canary {action}")]
        );
        assert_eq!(world.canaries(), 0);
    }
}

#[test]
fn a_run_that_is_called_is_judged_as_a_tool_is() {
    let below = agent_runtime::dev::provider::Step::text(format!("It is {CANARY}."));
    let world = World::start(json!([]), vec![below]);
    let maker = world.app.maker();
    let tool = json!({"projectId": world.project, "name": "ask", "description": "", "agent": {"id": world.agent}});
    let tool = crate::harness::made::id(&world.app.post("/v1/tools", &tool).expect(201));
    let tool: uuid::Uuid = tool.parse().unwrap();
    let model =
        agent_runtime::dev::provider::Provider::start(agent_runtime::dev::provider::Script {
            queue: vec![
                calls(&[("ask", json!({"message": "One?"}))]),
                calls(&[("ask", json!({"message": CANARY}))]),
            ],
            then: agent_runtime::dev::provider::Step::text("Well."),
        })
        .unwrap();
    let agent = maker.agent_of(world.project, &model.base_url(), |version| {
        version.tools = vec![tool]
    });
    let caller = World { agent, ..world };
    caller.guard(
        &json!([
            check("tool.result", "redact", json!({})),
            check("tool.arguments", "block", json!({}))
        ]),
        "held",
    );
    let run = caller.run("Go.");
    assert_eq!(run["status"], "completed", "{run}");
    let results = crate::harness::tool_results(&model);
    assert_eq!(results[0], "It is [pattern].");
    assert!(
        results[1].contains("no-canary refused the call"),
        "{results:?}"
    );
    let runs = "select count(*) from runs where parent_run_id is not null";
    let begun: i64 = caller
        .app
        .database
        .client()
        .query_one(runs, &[])
        .unwrap()
        .get(0);
    assert_eq!(begun, 1, "the second call began no run");
}

#[test]
fn a_dry_run_is_judged_too() {
    let guardrails = json!([
        check("input", "redact", json!({})),
        check("tool.arguments", "block", json!({})),
        check("output", "redact", json!({}))
    ]);
    let last = agent_runtime::dev::provider::Step::text(CANARY);
    let world = World::start(guardrails, vec![calls(&[send(CANARY)]), last]);
    let body = json!({"agentId": world.agent, "message": CANARY, "dryRun": true});
    let started = world.app.post("/v1/runs", &body).expect(202);
    let run = world.app.finished(started["run"]["id"].as_str().unwrap());
    assert_eq!(run["status"], "completed", "{run}");
    assert!(world.called().is_empty());
    let decided = world.decided(&run);
    assert_eq!(
        decided,
        [
            "input no-canary redact",
            "tool.arguments no-canary block",
            "output no-canary redact"
        ]
    );
    assert_eq!(world.canaries(), 0);
}
