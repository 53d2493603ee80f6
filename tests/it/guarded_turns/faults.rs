//! Whose checks count, when, and what becomes of one that fails.

use super::{CANARY, World, calls, check, failed};
use agent_runtime::dev::provider::Step;
use serde_json::{Value, json};

fn named(name: &str, at: &str, action: &str) -> Value {
    let mut check = check(at, action, json!({}));
    check["name"] = json!(name);
    check
}

#[test]
fn policies_come_first_and_no_agent_takes_one_away() {
    let world = World::start(json!([named("own", "input", "redact")]), Vec::new());
    world.policy(false, &json!([named("of-tenant", "input", "redact")]));
    world.policy(true, &json!([named("of-project", "input", "block")]));
    let run = world.run(CANARY);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(
        world.decided(&run),
        [
            "input of-tenant redact v1",
            "input of-project allow v1",
            "input own allow"
        ]
    );
    world.policy(false, &json!([]));
    let run = world.run(CANARY);
    failed(&run, "The guardrail of-project refused the input.");
    assert_eq!(world.decided(&run), ["input of-project block v1"]);
    // Of another project nothing is judged.
    let other = world.app.maker().project();
    let agent = world
        .app
        .maker()
        .agent_of(other, &world.model.base_url(), |_| {});
    let run = world.app.start_turn(agent, CANARY);
    assert_eq!(world.app.finished(&run)["status"], "completed");
}

#[test]
fn the_policy_counts_that_stands_when_the_check_is_made() {
    let guardrails = json!([named("ask", "tool.arguments", "approve")]);
    let answer = Step::text(format!("It is {CANARY}."));
    let world = World::start(
        guardrails,
        vec![calls(&[("send", json!({"to": CANARY}))]), answer],
    );
    world.policy(true, &json!([named("of-project", "output", "redact")]));
    let run = world.app.start_turn(world.agent, "Go.");
    let approval = world.approval(&run);
    world.policy(true, &json!([named("of-project", "output", "block")]));
    world.decide(&approval, json!({"decision": "approve"}));
    let ended = world.app.finished(&run);
    failed(
        &ended,
        "The guardrail of-project refused the model's answer.",
    );
    assert_eq!(
        world.decided(&ended).last().unwrap(),
        "output of-project block v2"
    );
}

#[test]
fn a_policy_changed_under_a_long_call_counts_for_its_answer() {
    let puppet = crate::harness::Puppet::start();
    let world = World::start(json!([]), Vec::new());
    let agent = world
        .app
        .maker()
        .agent_of(world.project, &puppet.base_url(), |_| {});
    let run = world.app.start_turn(agent, "Go.");
    let mut call = puppet.call();
    world.policy(true, &json!([named("of-project", "output", "block")]));
    crate::harness::let_time_pass(std::time::Duration::from_millis(1100));
    call.say(CANARY);
    call.finish();
    let ended = world.app.finished(&run);
    failed(
        &ended,
        "The guardrail of-project refused the model's answer.",
    );
}

/// Checks that cannot judge: one of a later program, one that is no check, a text that is too long for any.
fn broken() -> Vec<Value> {
    vec![
        json!({"builtin": "of-tomorrow", "name": "later", "at": ["input", "tool.arguments", "tool.result", "output"], "action": "block"}),
        json!({"builtin": "pattern", "name": "later", "at": ["input", "tool.arguments", "tool.result", "output"], "action": "redact",
            "config": {"patterns": ["("]}}),
    ]
}

#[test]
fn a_check_that_fails_blocks_unless_its_author_said_otherwise() {
    for broken in broken() {
        let at = |point: &str| {
            let mut check = broken.clone();
            check["at"] = json!([point]);
            json!([check])
        };
        let world = World::start(json!([broken]), Vec::new());
        let run = world.run("Go.");
        failed(&run, "The guardrail later refused the input.");
        assert_eq!(world.decided(&run), ["input later failed block"]);
        assert_eq!(world.told(&run), ["input later block"]);
        assert!(world.asked().is_empty());
        // At the other points: nothing is called, and nothing is answered.
        let calls_once = || vec![calls(&[("look", json!({}))])];
        let world = World::start(at("tool.arguments"), calls_once());
        let run = world.run("Go.");
        assert_eq!(run["status"], "completed", "{run}");
        assert!(world.called().is_empty());
        assert_eq!(world.decided(&run), ["tool.arguments later failed block"]);
        let world = World::start(at("tool.result"), calls_once());
        assert_eq!(world.run("Go.")["status"], "completed");
        assert_eq!(
            world.tool_results(),
            ["The guardrail later withheld what the tool answered."]
        );
        let world = World::start(at("output"), vec![Step::text(CANARY)]);
        failed(
            &world.run("Go."),
            "The guardrail later refused the model's answer.",
        );
        assert_eq!(world.canaries(), 0);
        // The other word.
        let mut open = broken.clone();
        open["onError"] = json!("allow-unsafely");
        let world = World::start(json!([open]), calls_once());
        let run = world.run("Go.");
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(world.called().len(), 1);
        let decided = world.decided(&run);
        assert!(
            decided
                .iter()
                .all(|one| one.ends_with("later failed allow-unsafely")),
            "{decided:?}"
        );
        assert_eq!(decided.len(), 4);
        assert_eq!(world.told(&run).len(), 4);
    }
}

#[test]
fn what_was_judged_is_left_alone_by_earlier_programs() {
    let world = World::start(
        json!([named("own", "output", "block")]),
        vec![calls(&[("look", json!({}))])],
    );
    let run = world.run("Go.");
    assert_eq!(run["status"], "completed", "{run}");
    let formats = "select array_agg(kind || ' ' || format order by step) from run_steps";
    let formats: Vec<String> = world
        .app
        .database
        .client()
        .query_one(formats, &[])
        .unwrap()
        .get(0);
    // The first answer calls a tool without a word, and nothing of it was judged.
    assert_eq!(formats, ["model 1", "tool 1", "model 2"]);
}

#[test]
fn checks_are_counted_by_point_and_verdict() {
    let world = World::start(
        json!([
            named("own", "input", "redact"),
            named("out", "output", "block")
        ]),
        vec![Step::text("Fine.")],
    );
    world.run(CANARY);
    let metrics = world.app.send("GET", "/metrics", None, &[]).text;
    for line in [
        r#"agent_runtime_guardrails_total{point="input",verdict="redact"} 1"#,
        r#"agent_runtime_guardrails_total{point="output",verdict="allow"} 1"#,
        r#"agent_runtime_guardrails_total{point="tool.result",verdict="failed"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[test]
fn an_erased_run_keeps_its_checks_without_their_reasons() {
    let world = World::start(json!([named("own", "input", "redact")]), Vec::new());
    let conversation = world.app.maker().conversation(world.agent, None);
    let body = json!({"agentId": world.agent, "conversationId": conversation, "message": CANARY});
    let started = world.app.post("/v1/runs", &body).expect(202);
    let run = world.app.finished(started["run"]["id"].as_str().unwrap());
    let reasons = "select count(*) filter (where reason is not null or digest <> ''), count(*) from run_checks";
    let count = || {
        let row = world.app.database.client().query_one(reasons, &[]).unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    assert_eq!(count(), (1, 1));
    world
        .app
        .send(
            "DELETE",
            &format!("/v1/conversations/{conversation}"),
            None,
            &[],
        )
        .expect(202);
    crate::harness::eventually("the run to be erased", || (count() == (0, 1)).then_some(()));
    assert_eq!(world.decided(&run), ["input own redact"]);
}
