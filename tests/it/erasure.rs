//! Erasing conversations, and the retention of what runs were given, said and answered.

use crate::harness::{
    App, Client, Database, NewTool, Puppet, ToolAnswer, ToolServer, eventually, made, seeds,
};
use crate::migrations::migrate;
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Stands in everything that is said.
const CANARY: &str = "canary-7f3a";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How often the canary stands in the whole database.
fn canaries(database: &Database) -> usize {
    database.count_of(CANARY)
}

/// A model that calls the tool, and one that it invents, and answers, and in the turn after that fails, saying what it was told.
fn model() -> Provider {
    let arguments = json!({"word": CANARY});
    let fails = json!({"error": {"message": format!("You said {CANARY}."), "type": "invalid_request_error"}});
    Provider::start(Script {
        queue: vec![
            Step::new(Reply::ToolCalls(vec![
                ("look_up".to_owned(), arguments),
                (CANARY.to_owned(), json!({})),
            ])),
            Step::text(format!("The answer is {CANARY}.")),
            Step::json(503, &fails),
            Step::json(400, &fails),
        ],
        then: Step::text("Well."),
    })
    .unwrap()
}

/// An agent with a tool, whose calls say the canary.
fn agent(app: &App, model: &Provider, tool: &ToolServer) -> Uuid {
    let maker = app.maker();
    let project = maker.project();
    let url = tool.url();
    let tool = maker.tool(project, &NewTool::new("look_up", &url));
    maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![tool];
    })
}

/// Says something in a conversation; the run.
fn say(client: &Client, agent: Uuid, conversation: &str, message: &str) -> String {
    let body = json!({"agentId": agent, "conversationId": conversation, "message": message});
    let started = client.post("/v1/runs", &body).expect(202);
    started["run"]["id"].as_str().unwrap().to_owned()
}

fn begin(client: &Client, agent: Uuid) -> String {
    let body = json!({"agentId": agent, "title": format!("About {CANARY}")});
    made::id(&client.post("/v1/conversations", &body).expect(201))
}

/// The conversation, once all of it is erased.
#[track_caller]
fn erased(client: &Client, conversation: &str) -> Value {
    let path = format!("/v1/conversations/{conversation}");
    eventually("the conversation to be erased", || {
        let found = client.get(&path).expect(200);
        (!found["erasedAt"].is_null()).then_some(found)
    })
}

/// The event for receivers says that this run failed, and nothing of why.
fn is_erased_in_its_webhook(app: &App, failed: &str) {
    let body: String = app
        .database
        .client()
        .query_one(
            "select body from webhook_events where run_id = $1",
            &[&failed.parse::<Uuid>().unwrap()],
        )
        .unwrap()
        .get(0);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["data"]["run"]["failureMessage"], json!("Erased."));
    assert_eq!(body["data"]["run"]["id"], json!(failed));
}

/// The run has the canary where a run of a flow has it, and one that asked for an approval.
fn says_it_beside_its_row(app: &App, run: &str) {
    let state = "insert into flow_states select tenant_id, run_id, 1, to_json($1::text), to_json($1::text), to_json($1::text), 1, 0
         from runs where run_id = $2";
    let approval = "with opened as (
         insert into approvals (tenant_id, approval_id, project_id, run_id, root_run_id, step, path, source, required_role,
           title, status, requested_by, created_at, expires_at, subject_digest, closed_at, decided_by, comment)
         select tenant_id, run_id, project_id, run_id, run_id, 1, '', 'flow', 'standard', 'Pay', 'approved', created_by, now(),
           now(), sha256('x'), now(), created_by, $1 from runs where run_id = $2 returning tenant_id, approval_id, run_id)
         insert into approval_subjects select tenant_id, approval_id, run_id, to_json($1::text), 't', to_json($1::text),
           to_json($1::text), to_json($1::text) from opened";
    let run_id: Uuid = run.parse().unwrap();
    let mut client = app.database.client();
    assert_eq!(client.execute(state, &[&CANARY, &run_id]).unwrap(), 1);
    assert_eq!(client.execute(approval, &[&CANARY, &run_id]).unwrap(), 1);
}

#[test]
fn nothing_that_was_said_is_left_in_the_database() {
    let app = App::start_with_webhooks();
    let (model, tool) = (
        model(),
        ToolServer::start(|_, _| ToolAnswer::ok(format!("It is {CANARY}."))),
    );
    let endpoint = json!({"url": "http://127.0.0.1:9/", "events": ["run.finished"],
        "secretRef": {"envName": "live", "name": "signing"}});
    app.post("/v1/webhook-endpoints", &endpoint).expect(201);
    let agent = agent(&app, &model, &tool);
    let conversation = begin(&app, agent);
    let path = format!("/v1/conversations/{conversation}");
    let completed = say(&app, agent, &conversation, &format!("What is {CANARY}?"));
    let before = app.finished(&completed);
    assert_eq!(before["status"], json!("completed"));
    let failed = say(&app, agent, &conversation, &format!("And {CANARY}?"));
    let failure = app.finished(&failed)["failureMessage"].clone();
    assert!(failure.as_str().unwrap().contains(CANARY), "{failure}");
    says_it_beside_its_row(&app, &completed);
    // Each place is one that the erasing has to find.
    assert!(canaries(&app.database) >= 22);

    let marked = app.delete(&path).expect(202);
    assert!(!marked["erasureRequestedAt"].is_null(), "{marked}");
    let gone = erased(&app, &conversation);
    assert_eq!(canaries(&app.database), 0);
    assert_eq!(gone["title"], json!(""));
    assert_eq!(
        app.get(&format!("{path}/messages")).expect(200)["data"],
        json!([])
    );

    // The run stays, with what it used.
    let after = app.run(&completed);
    for field in [
        "status",
        "usage",
        "createdAt",
        "startedAt",
        "completedAt",
        "agent",
        "lastSeq",
    ] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert!(before["payloadErasedAt"].is_null() && !after["payloadErasedAt"].is_null());
    let payload = app
        .get(&format!("/v1/runs/{completed}/payload"))
        .expect(200);
    assert_eq!(
        payload,
        json!({"input": null, "output": null, "erasedAt": after["payloadErasedAt"]})
    );
    let steps = app.get(&format!("/v1/runs/{completed}/steps")).expect(200);
    for step in steps["data"].as_array().unwrap() {
        assert_eq!(step["result"], Value::Null, "{step}");
    }
    assert_eq!(app.run(&failed)["failureMessage"], json!("Erased."));
    readers_see_that_it_was_erased(&app, &completed, &failed);
    is_erased_in_its_webhook(&app, &failed);

    // Once more is the same, and nothing begins there any more.
    assert_eq!(app.delete(&path).expect(202), gone);
    let body = json!({"agentId": agent, "conversationId": conversation, "message": "Well?"});
    let refused = app.post("/v1/runs", &body).expect_error(409, "conflict");
    assert!(
        refused["message"].as_str().unwrap().contains("erased"),
        "{refused}"
    );
    let metrics = app.get("/metrics").text;
    assert!(
        metrics.contains("agent_runtime_payloads_erased_total 2"),
        "{metrics}"
    );
}

#[test]
fn why_a_run_failed_that_names_no_event_of_webhooks_is_erased_there() {
    let app = App::start_with_webhooks();
    let fails = json!({"error": {"message": format!("You said {CANARY}."), "type": "invalid_request_error"}});
    let model = Provider::start(Script {
        queue: Vec::new(),
        then: Step::json(400, &fails),
    })
    .unwrap();
    let endpoint = json!({"url": "http://127.0.0.1:9/", "events": ["run.finished"],
        "secretRef": {"envName": "live", "name": "signing"}});
    app.post("/v1/webhook-endpoints", &endpoint).expect(201);
    let agent = app.agent(&model.base_url());
    let [erased_before, erased_after] = [(); 2].map(|()| {
        let conversation = begin(&app, agent);
        let run = say(&app, agent, &conversation, "a");
        assert_eq!(app.finished(&run)["status"], json!("failed"));
        (conversation, run)
    });
    // As a program wrote it before the column came.
    let mut client = app.database.client();
    let before = "update run_payloads set webhook_event_id = null;
        delete from agent_runtime_migrations where name like '%_failures_in_webhooks'";
    client.batch_execute(before).unwrap();
    let erase = |conversation: &str| {
        app.delete(&format!("/v1/conversations/{conversation}"))
            .expect(202);
        erased(&app, conversation);
    };
    erase(&erased_before.0);
    assert!(canaries(&app.database) > 0);
    assert_eq!(migrate(&app.database.url()).unwrap().len(), 1);
    is_erased_in_its_webhook(&app, &erased_before.1);
    erase(&erased_after.0);
    is_erased_in_its_webhook(&app, &erased_after.1);
    assert_eq!(canaries(&app.database), 0);
}

/// The events stand as they were, in their order, without what was said.
fn readers_see_that_it_was_erased(app: &App, completed: &str, failed: &str) {
    let events = app.events(completed);
    let (first, last) = (&events[0], events.last().unwrap());
    assert_eq!(
        (&first["kind"], &last["kind"]),
        (&json!("run.created"), &json!("run.completed"))
    );
    let done: Vec<&Value> = events
        .iter()
        .filter(|event| event["kind"] == "step.completed")
        .map(|event| &event["data"])
        .collect();
    assert!(
        done.iter().all(|data| data["erased"] == json!(true)),
        "{done:?}"
    );
    assert_eq!(
        (&done[0]["text"], &done[0]["toolCalls"]),
        (&json!(""), &json!([]))
    );
    assert_eq!(done[1]["output"], json!(""));
    assert_eq!(done[1]["name"], json!("look_up"));
    assert_eq!(done[2]["name"], json!(""), "the model's own text");
    assert!(!done[3]["tokens"].is_null());
    let begun = |event: &&Value| event["kind"] == "step.started" && event["data"]["name"] == "";
    assert_eq!(events.iter().filter(begun).count(), 1);
    let followed = app.get(&format!("/v1/runs/{completed}/progress/stream"));
    assert!(followed.text.contains("stream.end"), "{}", followed.text);
    assert!(!followed.text.contains(CANARY), "{}", followed.text);
    let events = app.events(failed);
    let reasons: Vec<&Value> = events
        .iter()
        .filter_map(|event| match event["kind"].as_str().unwrap() {
            "run.failed" => Some(&event["data"]["failureMessage"]),
            "run.waiting" | "step.failed" => Some(&event["data"]["reason"]),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [&json!("Erased."); 4], "{events:?}");
}

/// What thinking models send beside their answers, each with the canary.
fn thinking_model() -> Provider {
    let event = |delta: Value, reason: Value| {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).to_string()
    };
    let thinks = json!({"reasoning_content": format!("Thinking of {CANARY}."),
        "reasoning_details": [{"type": "reasoning.encrypted", "data": format!("sealed {CANARY}")}],
        "vendor_field": {CANARY: CANARY}});
    let call = json!({"tool_calls": [{"index": 0, "id": CANARY, "type": "function",
        "extra_content": {"google": {"thought_signature": CANARY}},
        "function": {"name": "look_up", "arguments": json!({"word": CANARY}).to_string()}}]});
    let words = json!({"content": format!("<think>Still {CANARY}.</think>It is {CANARY}.")});
    Provider::start(Script {
        queue: vec![
            Step::new(Reply::Events(vec![
                event(thinks, Value::Null),
                event(call, json!("tool_calls")),
                "[DONE]".to_owned(),
            ])),
            Step::new(Reply::Events(vec![
                event(words, json!("length")),
                "[DONE]".to_owned(),
            ])),
        ],
        then: Step::text("Well."),
    })
    .unwrap()
}

#[test]
fn reasoning_and_what_the_provider_is_handed_back_are_erased() {
    let app = App::start();
    let (model, tool) = (
        thinking_model(),
        ToolServer::start(|_, _| ToolAnswer::ok(format!("It is {CANARY}."))),
    );
    let agent = agent(&app, &model, &tool);
    let conversation = begin(&app, agent);
    let run = say(&app, agent, &conversation, &format!("What is {CANARY}?"));
    assert_eq!(app.finished(&run)["status"], json!("completed"));
    let asked = model.requests()[1].body["messages"].to_string();
    for given in ["sealed canary", "thought_signature", "vendor_field"] {
        assert!(asked.contains(given), "{given}: {asked}");
    }
    let steps = |app: &App| {
        app.get(&format!("/v1/runs/{run}/steps?order=asc"))
            .expect(200)["data"]
            .clone()
    };
    let before = steps(&app);
    for step in [0, 2] {
        let reasoning = before[step]["result"]["reasoning"].as_str().unwrap();
        assert!(reasoning.contains(CANARY), "{before}");
    }
    // As a process leaves it that dies while the model thinks.
    let left = "insert into run_reasoning (tenant_id, run_id, step, attempt, text_offset, text)
         select tenant_id, run_id, 1, 1, 0, $1 from runs where run_id = $2";
    let run_id: Uuid = run.parse().unwrap();
    let inserted = app.database.client().execute(left, &[&CANARY, &run_id]);
    assert_eq!(inserted.unwrap(), 1);
    assert!(canaries(&app.database) >= 14);
    app.delete(&format!("/v1/conversations/{conversation}"))
        .expect(202);
    erased(&app, &conversation);
    assert_eq!(canaries(&app.database), 0);
    for step in steps(&app).as_array().unwrap() {
        assert_eq!(step["result"], Value::Null, "{step}");
    }
    assert!(app.run(&run)["usage"]["calls"] == json!(2));
}

#[test]
fn a_conversation_in_which_a_run_is_under_way_is_not_erased() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let conversation = begin(&app, agent);
    let run = say(&app, agent, &conversation, "a");
    let mut call = puppet.call();
    let path = format!("/v1/conversations/{conversation}");
    let refused = app.delete(&path).expect_error(409, "conflict");
    assert_eq!(refused["details"]["activeRunId"], json!(run));
    assert!(app.get(&path).expect(200)["erasureRequestedAt"].is_null());
    call.say("Well.");
    call.finish();
    app.finished(&run);
    app.delete(&path).expect(202);
    erased(&app, &conversation);
}

#[test]
fn a_program_that_knows_nothing_of_erasing_starts_no_run_in_an_erased_conversation() {
    let app = App::start();
    let agent = app.maker().bare_agent(app.maker().project());
    let conversation = begin(&app, agent);
    app.delete(&format!("/v1/conversations/{conversation}"))
        .expect(202);
    erased(&app, &conversation);
    // Its statement, as far as the conversation goes.
    let turn = "update conversations set active_run_id = gen_random_uuid(), last_position = last_position + 1
         where conversation_id = $1 and active_run_id is null";
    let refused = app
        .database
        .client()
        .execute(turn, &[&conversation.parse::<Uuid>().unwrap()])
        .unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(
        refused.constraint(),
        Some("conversations_no_run_after_erasure")
    );
    let path = format!("/v1/conversations/{conversation}");
    assert!(app.get(&path).expect(200)["activeRunId"].is_null());
}

/// Finished runs of a conversation, each with a message, as many turns would have made them.
fn fill(app: &App, conversation: &str, count: i32) {
    let id: Uuid = conversation.parse().unwrap();
    app.database
        .client()
        .execute(
            "with made as (
               insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
                 conversation_id, created_by, created_at, completed_at)
               select c.tenant_id, i.id, c.project_id, 'agent.turn', '1.0.0', 'completed', 'app', i.id, false,
                 c.conversation_id, c.created_by, c.created_at, c.created_at
               from conversations c, generate_series(1, $2) n,
                 lateral (select (left(c.conversation_id::text, 24) || lpad(to_hex(n), 12, '0'))::uuid as id) i
               where c.conversation_id = $1
               returning *), paid as (
               insert into run_payloads (tenant_id, run_id, input)
               select tenant_id, run_id, json_build_object('message', 'canary-7f3a') from made)
             insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
             select tenant_id, conversation_id, row_number() over (), 'user', 'canary-7f3a', run_id, created_at from made",
            &[&id, &count],
        )
        .unwrap();
}

#[test]
fn many_runs_are_erased_in_batches_and_a_stop_loses_none() {
    let app = App::start();
    let agent = app.maker().bare_agent(app.maker().project());
    let conversation = begin(&app, agent);
    fill(&app, &conversation, 240);
    assert_eq!(canaries(&app.database), 481);
    // The third batch has to wait for the last of its runs.
    let mut holder = app.database.client();
    let mut holding = holder.transaction().unwrap();
    let of_third = "select from runs where run_id = (
        select run_id from runs where conversation_id = $1 order by run_id offset 149 limit 1) for update";
    let id: Uuid = conversation.parse().unwrap();
    assert_eq!(holding.execute(of_third, &[&id]).unwrap(), 1);
    app.delete(&format!("/v1/conversations/{conversation}"))
        .expect(202);
    eventually("two batches", || {
        (erased_runs(&app.database) == 100).then_some(())
    });
    let (database, clock, seeds) = app.stop_within(Duration::from_millis(300));
    assert_eq!(erased_runs(&database), 100, "the stop came in the middle");
    holding.rollback().unwrap();
    let app = App::start_on(database, clock, seeds, |_| {});
    erased(&app, &conversation);
    assert_eq!(canaries(&app.database), 0);
    assert_eq!(erased_runs(&app.database), 240);
}

fn erased_runs(database: &Database) -> i64 {
    let erased = "select count(*) from runs where payload_erased_at is not null";
    database.client().query_one(erased, &[]).unwrap().get(0)
}

#[test]
fn what_runs_said_is_erased_after_its_time_by_both_clocks() {
    let clock = Clock::system();
    clock.set_back(3 * DAY);
    let seeds = seeds(&clock);
    let app = App::start_on(Database::migrated(), clock, seeds, |options| {
        options.runs.payload_retention = Some(2 * DAY);
    });
    let model = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text(format!("The answer is {CANARY}.")),
    })
    .unwrap();
    let agent = app.agent(&model.base_url());
    let conversation = begin(&app, agent);
    let old = say(&app, agent, &conversation, CANARY);
    app.finished(&old);
    let runtime = &app.server().shared().runtime;
    runtime.erase_old_payloads().unwrap();
    assert!(app.run(&old)["payloadErasedAt"].is_null(), "it is not old");
    app.clock.advance(3 * DAY);
    let new = say(&app, agent, &conversation, CANARY);
    app.finished(&new);
    runtime.erase_old_payloads().unwrap();
    assert!(!app.run(&old)["payloadErasedAt"].is_null());
    assert!(app.run(&new)["payloadErasedAt"].is_null());
    // A clock that runs ahead erases nothing before its time.
    app.clock.advance(30 * DAY);
    runtime.erase_old_payloads().unwrap();
    assert!(app.run(&new)["payloadErasedAt"].is_null());
    // The conversation goes on with what is left of it.
    let messages = app
        .get(&format!("/v1/conversations/{conversation}/messages"))
        .expect(200);
    let runs = made::column(&messages, "runId");
    assert_eq!(runs, [new.as_str(), new.as_str()]);
    let asked = model.requests();
    assert_eq!(
        asked.last().unwrap().body["messages"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

/// Makes the erasing of a run's payload fail.
fn refuse_to_erase(app: &App, run_id: Uuid) {
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
         create trigger refuse before delete on run_payloads for each row
           when (old.run_id = '{run_id}') execute function refuse()"
    );
    app.database.client().batch_execute(&refuse).unwrap();
}

#[test]
fn a_run_that_cannot_be_erased_holds_up_no_other() {
    let clock = Clock::system();
    clock.set_back(3 * DAY);
    let seeds = seeds(&clock);
    let app = App::start_on(Database::migrated(), clock, seeds, |options| {
        options.runs.payload_retention = Some(2 * DAY);
    });
    let stranger = app.other_tenant();
    for (client, count) in [(&*app, 60), (&stranger, 3)] {
        let maker = client.maker();
        let agent = maker.bare_agent(maker.project());
        let conversation = begin(client, agent);
        fill(&app, &conversation, count);
    }
    // The newest of the first tenant: all before it fit smaller batches.
    let newest = app
        .database
        .client()
        .query_one(
            "select run_id from run_payloads order by tenant_id, run_id desc limit 1",
            &[],
        )
        .unwrap();
    refuse_to_erase(&app, newest.get(0));
    app.clock.advance(3 * DAY);
    app.server().shared().runtime.erase_old_payloads().unwrap();
    let left: i64 = app
        .database
        .client()
        .query_one("select count(*) from run_payloads", &[])
        .unwrap()
        .get(0);
    assert_eq!(left, 1);
    let metrics = app.get("/metrics").text;
    assert!(
        metrics.contains("agent_runtime_payloads_erased_total 62"),
        "{metrics}"
    );
}

#[test]
fn a_run_that_cannot_be_erased_holds_up_no_other_of_its_conversation() {
    let app = App::start();
    let agent = app.maker().bare_agent(app.maker().project());
    let conversation = begin(&app, agent);
    fill(&app, &conversation, 120);
    let mut client = app.database.client();
    let first: Uuid = client
        .query_one(
            "select run_id from run_payloads order by run_id limit 1",
            &[],
        )
        .unwrap()
        .get(0);
    refuse_to_erase(&app, first);
    let path = format!("/v1/conversations/{conversation}");
    app.delete(&path).expect(202);
    eventually("all others to be erased", || {
        (erased_runs(&app.database) == 119).then_some(())
    });
    let left: Uuid = client
        .query_one("select run_id from run_payloads", &[])
        .unwrap()
        .get(0);
    assert_eq!(left, first);
    assert!(app.get(&path).expect(200)["erasedAt"].is_null());
    // The job comes back to it.
    app.sql("drop trigger refuse on run_payloads; update job_jobs set run_at = now() where queue = 'erasures'");
    erased(&app, &conversation);
    assert_eq!(canaries(&app.database), 0);
}

#[test]
fn a_conversation_is_erased_by_who_began_it_or_an_admin_of_the_project() {
    let app = App::start_authorized();
    let agent_id = app.maker().bare_agent(app.maker().project());
    let agent = app.get(&format!("/v1/agents/{agent_id}")).expect(200);
    let project = agent["projectId"].as_str().unwrap();
    let joined = |email: &str, role: &str| {
        let person = made::person(&app, email, "member");
        let members = format!("/v1/projects/{project}/memberships");
        app.post(
            &members,
            &json!({"userId": made::id(&person), "role": role}),
        )
        .expect(201);
        made::enrolled(&app, &person)
    };
    let (ann, bob, eve) = (
        joined("ann@example.test", "editor"),
        joined("bob@example.test", "editor"),
        joined("eve@example.test", "admin"),
    );
    let path = |id: String| format!("/v1/conversations/{id}");
    let (first, second) = (begin(&ann, agent_id), begin(&ann, agent_id));
    bob.delete(&path(first.clone()))
        .expect_error(403, "permission-denied");
    ann.delete(&path(first.clone())).expect(202);
    erased(&ann, &first);
    eve.delete(&path(second.clone())).expect(202);
    let decided = app
        .get(&format!("/v1/audit/authz?resource=conversation:{first}"))
        .expect(200);
    let decided: Vec<(&str, &str)> = decided["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["action"].as_str().unwrap(),
                row["outcome"].as_str().unwrap(),
            )
        })
        .filter(|(action, _)| *action != "read")
        .collect();
    assert_eq!(decided, [("admin", "denied"), ("write", "allowed")]);
}
