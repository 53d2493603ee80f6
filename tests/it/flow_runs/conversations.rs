//! Turns of agents that go into a conversation.

use super::retries::retry;
use super::world::Flows;
use crate::runtime::world::{Process, World};
use agent_runtime::dev::provider::Step;
use agent_runtime::error::Code;
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{self, Status, Via};
use serde_json::{Value, json};
use uuid::Uuid;

/// Asks the agent in the conversation that the input names. Where that does not take the turn, it answers the error.
fn asks(world: &World) {
    world.batch("update agents set latest_version = '1.0.0'");
    let ask = json!({"call": "agent", "with": {
        "agent": "a", "message": "${ .say }", "conversationId": "${ .conversation }",
    }});
    world.flow("asks", json!([{"ask": ask}]));
    let catch = json!({"do": [{"tell": {"set": "${ $error }"}}]});
    world.flow(
        "tries",
        json!([{"outer": {"try": [{"ask": ask}], "catch": catch}}]),
    );
}

fn input(world: &World, say: &str) -> Value {
    json!({"conversation": world.conversation_id, "say": say})
}

/// What was said in the conversation, in order.
fn said(world: &World) -> Vec<String> {
    world.read(|session| {
        let rows = session.query(
            "select role || ': ' || content from conversation_messages where conversation_id = $1 order by position",
            &[&world.conversation_id],
        )?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    })
}

/// Runs a flow to its end, beside others.
fn ended(world: &World, process: &Process, flow: &str, say: &str) -> Uuid {
    let run_id = world.start(process, flow, input(world, say));
    world.until(process, run_id, |run| run.status.is_finished());
    run_id
}

fn is_free(world: &World) -> bool {
    world.number("select count(*) from conversations where active_run_id is not null") == 0
}

#[test]
fn a_turn_goes_into_the_conversation_and_knows_what_was_said() {
    let world = World::new();
    asks(&world);
    world.provider.push(Step::text("Sunny."));
    world.provider.push(Step::text("Rainy."));
    let process = world.process(2, true);
    let first = world.answers(&process, "asks", input(&world, "Today?"));
    assert_eq!(first["text"], "Sunny.");
    let run = world.ends(&process, "asks", input(&world, "Tomorrow?"));
    assert_eq!(
        said(&world),
        [
            "user: Today?",
            "assistant: Sunny.",
            "user: Tomorrow?",
            "assistant: Rainy."
        ]
    );
    let turn = &world.children(run.run_id)[0];
    let agent = turn.agent.as_ref().unwrap();
    assert_eq!(agent.conversation_id, Some(world.conversation_id));
    let asked = world.provider.requests();
    let messages = asked[1].body["messages"].as_array().unwrap();
    let texts: Vec<&Value> = messages.iter().map(|message| &message["content"]).collect();
    assert_eq!(
        texts[1..],
        [&json!("Today?"), &json!("Sunny."), &json!("Tomorrow?")]
    );
    // Without a conversation the turn stands alone.
    world.provider.push(Step::text("Well."));
    let alone = json!({"conversation": null, "say": "Alone?"});
    assert_eq!(world.answers(&process, "asks", alone)["text"], "Well.");
    assert_eq!(said(&world).len(), 4);
    // A dry run leaves the conversation as it is.
    world.provider.push(Step::text("Dry."));
    let run_id = world.start_dry(&process, "asks", input(&world, "Dry?"));
    world.finished(&process, run_id);
    assert_eq!(world.output(run_id)["text"], "Dry.");
    assert_eq!(said(&world).len(), 4);
}

#[test]
fn the_version_of_the_conversation_is_that_of_the_turn() {
    let world = World::new();
    world.batch(
        "insert into agent_versions (tenant_id, agent_id, version, position, instructions, model_provider_id, model, parameters, limits, created_by, created_at)
           select tenant_id, agent_id, '0.9.0', 2, 'Be old.', model_provider_id, model, parameters, limits, created_by, created_at
           from agent_versions;
         update conversations set version = '0.9.0'",
    );
    asks(&world);
    let named = json!({"call": "agent", "with": {
        "agent": "a", "version": "1.0.0", "message": "?", "conversationId": "${ .conversation }",
    }});
    world.flow("names", json!([{"ask": named}]));
    let process = world.process(2, true);
    for (flow, version, via) in [
        ("asks", "0.9.0", Via::Conversation),
        ("names", "1.0.0", Via::Explicit),
    ] {
        world.provider.push(Step::text("Well."));
        let run = world.ends(&process, flow, input(&world, "Which?"));
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        let turn = &world.children(run.run_id)[0];
        let agent = turn.agent.clone().unwrap();
        assert_eq!((agent.version.as_str(), agent.via), (version, via));
        let created = &world.events(turn.run_id)[0].data;
        assert_eq!(created["agent"], json!(agent));
    }
}

#[test]
fn a_conversation_takes_one_turn_at_a_time_and_the_others_get_an_error() {
    let world = World::new();
    asks(&world);
    let puppet = world.puppet();
    let process = world.process(3, true);
    let turn = world.create(&process, true);
    let mut call = puppet.call();
    let run = ended(&world, &process, "tries", "Me too?");
    let error = world.output(run);
    assert_eq!(
        (&error["status"], &error["title"], &error["instance"]),
        (
            &json!(409),
            &json!("The conversation is busy"),
            &json!("/do/0/outer/try/0/ask")
        )
    );
    let refused = &world.children(run)[0];
    assert_eq!(refused.status, Status::Failed);
    let message = refused.failure_message.clone().unwrap();
    assert_eq!(
        message,
        format!(
            "A turn of the conversation {} is under way.",
            world.conversation_id
        )
    );
    let kinds: Vec<String> = world.kinds(refused.run_id);
    assert_eq!(kinds, ["run.created", "run.failed"]);
    assert_eq!(said(&world), ["user: How is the weather?"]);
    let failed = ended(&world, &process, "asks", "And now?");
    let sentence = world.run(failed).failure_message.unwrap();
    assert!(
        sentence.starts_with("The task /do/0/ask failed: A turn of the conversation"),
        "{sentence}"
    );
    // The turn that was there before goes on, and then the conversation takes the failed one again.
    call.say("Sunny.");
    call.finish();
    world.until(&process, turn, |run| run.status.is_finished());
    let again = retry(&world, &process, failed, false).unwrap();
    let mut call = puppet.call();
    call.say("Rainy.");
    call.finish();
    let run = world.until(&process, again, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        said(&world),
        [
            "user: How is the weather?",
            "assistant: Sunny.",
            "user: And now?",
            "assistant: Rainy."
        ]
    );
    assert!(is_free(&world));
}

#[test]
fn a_conversation_that_is_not_there_is_an_error() {
    let world = World::new();
    asks(&world);
    let process = world.process(2, true);
    let of = |conversation: Value| {
        let input = json!({"conversation": conversation, "say": "?"});
        world.answers(&process, "tries", input)
    };
    let unknown = of(json!(Uuid::nil()));
    assert_eq!(
        (&unknown["status"], &unknown["title"]),
        (&json!(404), &json!("There is no such conversation"))
    );
    world.batch("update conversations set erasure_requested_at = now()");
    assert_eq!(of(json!(world.conversation_id))["status"], 404);
    assert_eq!(of(json!("yesterday's"))["status"], 400);
    assert_eq!(of(json!(7))["status"], 400);
    let blank = json!({"conversation": null, "say": " "});
    let blank = world.answers(&process, "tries", blank);
    assert_eq!(blank["detail"], "The message to the agent is blank");
    assert!(said(&world).is_empty() && is_free(&world));
}

#[test]
fn a_turn_that_failed_in_a_conversation_is_taken_up_while_it_is_the_newest() {
    let world = World::new();
    asks(&world);
    let no = json!({"error": {"message": "No."}});
    world.provider.push(Step::json(400, &no));
    world.provider.push(Step::text("Sunny."));
    let process = world.process(2, true);
    let failed = world.ends(&process, "asks", input(&world, "Today?")).run_id;
    let again = retry(&world, &process, failed, false).unwrap();
    let run = world.finished(&process, again);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(said(&world), ["user: Today?", "assistant: Sunny."]);
    world.provider.push(Step::json(400, &no));
    let failed = world
        .ends(&process, "asks", input(&world, "Tomorrow?"))
        .run_id;
    world.provider.push(Step::text("Well."));
    world.answers(&process, "asks", input(&world, "Else?"));
    let refused = retry(&world, &process, failed, false).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict, "{refused:?}");
    assert!(
        refused.message().contains("has gone on since"),
        "{refused:?}"
    );
    assert!(is_free(&world));
}

#[test]
fn a_cancel_of_the_flow_frees_the_conversation() {
    let world = World::new();
    asks(&world);
    let puppet = world.puppet();
    let process = world.process(2, true);
    let run_id = world.start(&process, "asks", input(&world, "Today?"));
    let _call = puppet.call();
    process
        .runtime
        .cancel(&world.root(run_id), || Ok(()))
        .unwrap();
    let run = world.until(&process, run_id, |run| run.status.is_finished());
    assert_eq!(run.status, Status::Cancelled);
    // The turn is asked, and ends a moment later.
    world.eventually(|| is_free(&world) && world.number("select count(*) from job_jobs") == 0);
}

/// Two flows for one conversation at the same time: one turn goes in, or both one after the other, and each flow ends.
#[test]
fn of_flows_that_race_for_a_conversation_each_ends() {
    let world = World::new();
    asks(&world);
    let process = world.process(4, true);
    for round in 0..10 {
        world.provider.push(Step::text("Well."));
        world.provider.push(Step::text("Well."));
        let runs = [(); 2].map(|()| world.start(&process, "tries", input(&world, "?")));
        let ended = runs.map(|run| world.until(&process, run, |run| run.status.is_finished()));
        assert!(ended.iter().all(|run| run.status == Status::Completed));
        let answered = runs
            .iter()
            .filter(|run| world.output(**run)["text"] == "Well.");
        assert!(answered.count() >= 1, "round {round}");
        assert!(is_free(&world), "round {round}");
    }
    let said = said(&world);
    let turns = said
        .chunks(2)
        .all(|turn| turn == ["user: ?", "assistant: Well."]);
    assert!(turns, "{said:?}");
}

#[test]
fn a_turn_whose_answer_the_flow_has_yet_to_take_is_not_erased() {
    let world = World::new();
    asks(&world);
    world.provider.push(Step::text("Sunny."));
    let process = world.process(2, true);
    let run = world.ends(&process, "asks", input(&world, "Today?"));
    drop(process);
    let erase = || {
        let (tenant_id, conversation_id) = (world.tenant_id, world.conversation_id);
        let erased = world.store.transact(|tx| {
            let first = Uuid::nil();
            let ids = runs::unerased_of_conversation(tx, tenant_id, conversation_id, first, 10)?;
            let erased = runs::erase_payloads(tx, tenant_id, &ids, world.clock.now())?;
            Ok((erased, !ids.is_empty()))
        });
        erased.unwrap()
    };
    let of_flow = format!("where run_id = '{}'", run.run_id);
    world.batch(&format!(
        "update run_children set seen = false; update runs set status = 'running', completed_at = null {of_flow}"
    ));
    assert_eq!(erase(), (0, true), "it is to be looked at again");
    world.batch(&format!(
        "update runs set status = 'completed', completed_at = now() {of_flow}"
    ));
    assert_eq!(erase(), (1, true));
    assert_eq!(erase(), (0, false));
    // What the flow took of it is the flow's.
    assert_eq!(world.output(run.run_id)["text"], "Sunny.");
}
