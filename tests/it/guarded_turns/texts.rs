//! What is asked and what is answered.

use super::{CANARY, World, check, failed};
use crate::harness::{Event, Puppet, eventually, made, text_of};
use agent_runtime::dev::provider::{Reply, Step};
use serde_json::{Value, json};

fn asked() -> String {
    format!("Here is {CANARY}, grün.")
}

#[test]
fn an_input_that_is_blocked_reaches_no_model_now_or_later() {
    let world = World::start(json!([check("input", "block", json!({}))]), Vec::new());
    let conversation = world.app.maker().conversation(world.agent, None);
    let say = |message: &str| {
        let body =
            json!({"agentId": world.agent, "conversationId": conversation, "message": message});
        let started = world.app.post("/v1/runs", &body).expect(202);
        world.app.finished(&made::id(&started["run"]))
    };
    let run = say(&asked());
    failed(&run, "The guardrail no-canary refused the input.");
    assert_eq!(run["usage"]["calls"], 0);
    assert!(world.asked().is_empty());
    assert_eq!(world.decided(&run), ["input no-canary block"]);
    assert_eq!(world.told(&run), ["input no-canary block"]);
    // What is said next is sent without it, and without a word of ours.
    assert_eq!(say("Hello?")["status"], "completed");
    let asked = world.asked();
    assert_eq!(asked.len(), 1);
    assert!(
        !asked[0].contains(CANARY) && asked[0].contains("Hello?"),
        "{asked:?}"
    );
}

#[test]
fn an_input_that_is_blocked_may_be_answered() {
    let answer = json!({"onBlock": "answer", "answer": "I cannot talk about that."});
    let world = World::start(json!([check("input", "block", answer)]), Vec::new());
    let run = world.run(&asked());
    assert_eq!(run["status"], "completed", "{run}");
    let output = world.app.output(run["id"].as_str().unwrap());
    assert_eq!(
        output,
        json!({"text": "I cannot talk about that.", "blockedBy": "no-canary"})
    );
    assert!(world.asked().is_empty());
}

#[test]
fn an_input_is_redacted_for_the_model_the_conversation_and_the_record() {
    let world = World::start(json!([check("input", "redact", json!({}))]), Vec::new());
    let conversation = world.app.maker().conversation(world.agent, None);
    let redacted = "Here is [pattern], grün.";
    for (message, of_conversation) in [(asked(), true), (asked(), false)] {
        let mut body = json!({"agentId": world.agent, "message": message});
        if of_conversation {
            body["conversationId"] = json!(conversation);
        }
        let started = world.app.post("/v1/runs", &body).expect(202);
        let run = world.app.finished(&made::id(&started["run"]));
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(world.decided(&run), ["input no-canary redact"]);
    }
    for asked in world.asked() {
        assert!(
            !asked.contains(CANARY) && asked.contains(redacted),
            "{asked}"
        );
    }
    let path = format!("/v1/conversations/{conversation}/messages?order=asc");
    let messages = world.app.get(&path).expect(200);
    assert_eq!(messages["data"][0]["content"], redacted);
    assert_eq!(world.canaries(), 0);
}

#[test]
fn every_step_of_a_turn_is_asked_what_was_left_of_the_input() {
    let world = World::start(
        json!([check("input", "redact", json!({}))]),
        vec![super::calls(&[("look", json!({}))])],
    );
    let run = world.run(&asked());
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(world.asked().len(), 2);
    assert!(world.asked().iter().all(|asked| !asked.contains(CANARY)));
    // It is judged once.
    assert_eq!(world.decided(&run), ["input no-canary redact"]);
}

#[test]
fn of_an_answer_that_is_refused_no_byte_is_seen_anywhere() {
    let puppet = Puppet::start();
    let world = World::start(json!([]), Vec::new());
    let other = world.app.onlooker();
    let maker = world.app.maker();
    let agent = maker.agent_of(world.project, &puppet.base_url(), |_| {});
    let world = World { agent, ..world };
    world.guard(&json!([check("output", "block", json!({}))]), "held");
    let run = world.app.start_turn(agent, "Say it.");
    let mut readers = [world.app.follow(&run), other.follow(&run)];
    let mut call = puppet.call();
    // It reasons about it, too.
    call.think("I will say ").think(CANARY);
    for piece in ["It is ", "canary", "-7f3a", ", and an end."] {
        call.say(piece);
    }
    call.finish();
    let ended = world.app.finished(&run);
    failed(
        &ended,
        "The guardrail no-canary refused the model's answer.",
    );
    for reader in &mut readers {
        let events: Vec<Event> = reader.rest();
        let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
        assert!(!kinds.contains(&"text.delta"), "{kinds:?}");
        assert!(!kinds.contains(&"reasoning.delta"), "{kinds:?}");
        let created = &events[0].data["data"];
        assert_eq!(created["streaming"], "held", "{created}");
        assert!(!format!("{events:?}").contains(CANARY));
    }
    assert_eq!(world.canaries(), 0);
    assert_eq!(ended["usage"]["calls"], 1, "what was refused was paid for");
}

#[test]
fn held_text_is_shown_once_it_is_allowed_or_as_it_was_redacted() {
    let puppet = Puppet::start();
    let world = World::start(json!([]), Vec::new());
    let agent = world
        .app
        .maker()
        .agent_of(world.project, &puppet.base_url(), |_| {});
    let world = World { agent, ..world };
    let redact = json!([check("output", "redact", json!({}))]);
    for (streaming, pieces, shown) in [
        ("held", ["It is ", "grün."], "It is grün."),
        ("held", ["It is ", CANARY], "It is [pattern]"),
        // Whoever says so has readers see what is written.
        ("unchecked", ["It is ", CANARY], "It is canary-7f3a"),
    ] {
        world.guard(&redact, streaming);
        let run = world.app.start_turn(agent, "Say it.");
        let mut reader = world.app.follow(&run);
        let mut events = reader.until("step.started");
        let mut call = puppet.call();
        pieces.iter().for_each(|piece| {
            call.say(piece);
        });
        call.finish();
        events.extend(reader.rest());
        assert_eq!(text_of(&events, 1, 1), shown);
        assert_eq!(events[0].data["data"]["streaming"], streaming);
        let whole = shown.replace(CANARY, "[pattern]");
        assert_eq!(world.app.output(&run)["text"], whole.as_str());
        let completed = events
            .iter()
            .find(|event| event.kind == "step.completed")
            .unwrap();
        assert_eq!(completed.data["data"]["text"], whole.as_str());
    }
    // Without a check at the output nothing is held, and nothing is said.
    world.guard(&json!([check("input", "block", json!({}))]), "held");
    let run = world.app.start_turn(agent, "Say it.");
    let mut reader = world.app.follow(&run);
    let mut call = puppet.call();
    call.say("It");
    let events = reader.until("text.delta");
    assert!(events[0].data["data"].get("streaming").is_none());
    call.finish();
    world.app.finished(&run);
}

#[test]
fn a_model_is_asked_again_for_an_answer_that_was_refused() {
    let retry = json!({"onBlock": "retry", "retries": 2});
    let bad = || Step::text(format!("It is {CANARY}."));
    let world = World::start(
        json!([check("output", "block", retry)]),
        vec![bad(), bad(), Step::text("It is a bird.")],
    );
    let run = world.run("What is it?");
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(
        world.app.output(run["id"].as_str().unwrap())["text"],
        "It is a bird."
    );
    let asked = world.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|asked| !asked.contains(CANARY)));
    assert!(
        asked[1].contains("The guardrail no-canary refused your answer"),
        "{}",
        asked[1]
    );
    let blocked = "output no-canary block";
    assert_eq!(
        world.decided(&run),
        [blocked, blocked, "output no-canary allow"]
    );
    // Three in a row are too many.
    let world = World::start(
        json!([check(
            "output",
            "block",
            json!({"onBlock": "retry", "retries": 2})
        )]),
        vec![bad(), bad(), bad(), bad()],
    );
    let run = world.run("What is it?");
    failed(&run, "The guardrail no-canary refused the model's answer.");
    assert_eq!(world.asked().len(), 3);
    assert_eq!(world.canaries(), 0);
}

#[test]
fn an_answer_that_is_refused_may_be_replaced() {
    let answer = json!({"onBlock": "answer", "answer": "Ask somebody else."});
    let bad = Step::text(format!("It is {CANARY}."));
    let world = World::start(json!([check("output", "block", answer)]), vec![bad]);
    let conversation = world.app.maker().conversation(world.agent, None);
    let body =
        json!({"agentId": world.agent, "conversationId": conversation, "message": "What is it?"});
    let started = world.app.post("/v1/runs", &body).expect(202);
    let run = world.app.finished(&made::id(&started["run"]));
    assert_eq!(run["status"], "completed", "{run}");
    let path = format!("/v1/conversations/{conversation}/messages?order=asc");
    let messages = world.app.get(&path).expect(200);
    assert_eq!(messages["data"][1]["content"], "Ask somebody else.");
    assert_eq!(world.canaries(), 0);
}

/// An answer that says this and calls a tool.
fn says_and_calls(text: &str) -> Step {
    let delta = json!({"content": text, "tool_calls": [{"index": 0, "id": "a", "type": "function",
        "function": {"name": "look", "arguments": "{}"}}]});
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        .to_string()
    };
    Step::new(Reply::Events(vec![
        chunk(delta, Value::Null),
        chunk(json!({}), json!("tool_calls")),
        "[DONE]".to_owned(),
    ]))
}

#[test]
fn text_beside_calls_is_dropped_and_the_calls_go_on() {
    for (action, left) in [("block", ""), ("redact", "Look at [pattern].")] {
        let world = World::start(
            json!([check("output", action, json!({}))]),
            vec![says_and_calls(&format!("Look at {CANARY}."))],
        );
        let run = world.run("Go.");
        assert_eq!(run["status"], "completed", "{action}: {run}");
        assert_eq!(world.called().len(), 1);
        let steps = world.app.get(&format!(
            "/v1/runs/{}/steps?order=asc",
            run["id"].as_str().unwrap()
        ));
        assert_eq!(steps.expect(200)["data"][0]["result"]["text"], left);
        assert!(!world.asked()[1].contains(CANARY));
        assert_eq!(world.canaries(), 0);
    }
}

#[test]
fn json_that_is_redacted_still_fits_its_schema() {
    let world = World::start(json!([]), Vec::new());
    let maker = world.app.maker();
    let puppet = Puppet::start();
    let agent = maker.agent_of(world.project, &puppet.base_url(), |version| {
        version.output_schema = json!({"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]});
    });
    let world = World { agent, ..world };
    world.guard(&json!([check("output", "redact", json!({}))]), "held");
    let run = world.app.start_turn(agent, "Say it.");
    let mut call = puppet.call();
    call.say(&json!({"said": format!("\"{CANARY}\"")}).to_string());
    call.finish();
    assert_eq!(world.app.finished(&run)["status"], "completed");
    assert_eq!(
        world.app.output(&run)["json"],
        json!({"said": "\"[pattern]\""})
    );
}

#[test]
fn what_was_refused_is_asked_anew_when_the_run_is_taken_up() {
    for at in ["input", "output"] {
        let bad = Step::text(format!("It is {CANARY}."));
        let world = World::start(json!([check(at, "block", json!({}))]), vec![bad]);
        let conversation = world.app.maker().conversation(world.agent, None);
        let body =
            json!({"agentId": world.agent, "conversationId": conversation, "message": asked()});
        let id = made::id(&world.app.post("/v1/runs", &body).expect(202)["run"]);
        if at == "output" {
            world.guard(&json!([check("output", "block", json!({}))]), "held");
        }
        assert_eq!(world.app.finished(&id)["status"], "failed");
        // Nothing has changed, and it is refused once more.
        let path = format!("/v1/runs/{id}/retry");
        if at == "input" {
            let again = made::id(&world.app.post(&path, &json!({})).expect(202)["run"]);
            failed(
                &world.app.finished(&again),
                "The guardrail no-canary refused the input.",
            );
            let path = format!("/v1/runs/{again}/retry");
            world.guard(&json!([]), "held");
            let last = made::id(&world.app.post(&path, &json!({})).expect(202)["run"]);
            assert_eq!(world.app.finished(&last)["status"], "completed");
            assert!(world.asked()[0].contains(CANARY), "it is allowed now");
        } else {
            let again = made::id(&world.app.post(&path, &json!({})).expect(202)["run"]);
            assert_eq!(world.app.finished(&again)["status"], "completed");
            assert_eq!(world.asked().len(), 2);
        }
    }
}

#[test]
fn a_run_that_waits_for_its_model_is_judged_once_it_goes_on() {
    let world = World::start(json!([check("input", "redact", json!({}))]), Vec::new());
    let set =
        "update model_providers set options = (options::jsonb || '{\"callsAtOnce\": 1}')::json";
    world.app.database.client().execute(set, &[]).unwrap();
    let runs: Vec<String> = (0..6)
        .map(|_| world.app.start_turn(world.agent, &asked()))
        .collect();
    for run in runs {
        let ended = eventually("the run", || {
            let run = world.app.run(&run);
            crate::harness::is_finished(&run).then_some(run)
        });
        assert_eq!(ended["status"], "completed", "{ended}");
        let decided = world.decided(&ended);
        assert!(
            decided.iter().all(|one| one == "input no-canary redact") && !decided.is_empty(),
            "{decided:?}"
        );
    }
    assert!(world.asked().iter().all(|asked| !asked.contains(CANARY)));
    assert_eq!(world.canaries(), 0);
}
