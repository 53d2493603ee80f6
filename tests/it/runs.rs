//! `/v1/runs`: a turn from its start to what is kept of it, and the lists.

use crate::harness::{
    App, COMPLETION_PRICE, NewTool, NewVersion, PROMPT_PRICE, Puppet, ToolAnswer, ToolServer, kinds,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// A provider that always says this.
fn saying(text: &str) -> Provider {
    Provider::start(Script {
        queue: Vec::new(),
        then: Step::text(text),
    })
    .unwrap()
}

/// An answer with these counts.
fn counted(text: &str, usage: &Value) -> Step {
    Step::new(Reply::Events(vec![
        json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string(),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string(),
        json!({"choices": [], "usage": usage}).to_string(),
        "[DONE]".to_owned(),
    ]))
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_turn_has_the_fields_of_the_specification() {
    let app = App::start();
    let provider = saying("Hello.");
    let agent = app.agent(&provider.base_url());
    let body = json!({"agentId": agent, "message": "Hi."});
    let started = app.post("/v1/runs", &body).expect(202);
    assert_eq!(keys(&started), ["publicToken", "run"]);
    let token = started["publicToken"]["token"].as_str().unwrap();
    assert!(token.starts_with("svc_pt_"));
    assert!(started["publicToken"]["expiresAt"].is_string());
    let run = &started["run"];
    let fields = "agent cancelRequested completedAt createdAt createdBy dryRun failureMessage flowId \
                  flowVersion id labels lastSeq origin projectId startedAt status usage";
    assert_eq!(keys(run).join(" "), fields);
    assert_eq!(
        (&run["status"], &run["startedAt"], &run["lastSeq"]),
        (&json!("queued"), &Value::Null, &json!(1))
    );
    assert_eq!(run["usage"]["calls"], 0);
    let id = run["id"].as_str().unwrap();
    let finished = app.finished(id);
    assert_eq!(keys(&finished), keys(run));
    // The answer is not read from the row: what it says of it must be so.
    for name in [
        "id",
        "projectId",
        "agent",
        "flowId",
        "flowVersion",
        "origin",
        "dryRun",
        "labels",
        "createdBy",
        "createdAt",
    ] {
        assert_eq!(finished[name], run[name], "{name}");
    }
    assert_eq!(finished["status"], "completed", "{finished}");
    assert_eq!(finished["flowId"], "agent.turn");
    assert_eq!(finished["flowVersion"], "1.0.0");
    assert_eq!(finished["dryRun"], false);
    assert_eq!(finished["failureMessage"], Value::Null);
    assert_eq!(finished["origin"], "app");
    assert_eq!(finished["createdBy"], json!(app.seeds.user_id));
    let at = |name: &str| finished[name].as_str().unwrap().to_owned();
    assert!(at("createdAt") <= at("startedAt") && at("startedAt") <= at("completedAt"));
    assert_eq!(at("completedAt").len(), "2026-11-21T08:00:00.000Z".len());
    assert_eq!(
        finished["agent"],
        json!({"id": agent, "version": "1.0.0", "conversationId": null, "via": "latest"})
    );
    assert_eq!(
        app.get(&format!("/v1/runs/{id}/payload")).expect(200),
        json!({"input": {"message": "Hi."}, "output": {"text": "Hello."}})
    );
    let asked = &provider.requests()[0].body;
    assert_eq!(
        asked["messages"],
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}])
    );
}

#[test]
fn what_a_run_used_is_counted_and_priced() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: vec![counted(
            "Hello.",
            &json!({"prompt_tokens": 1000, "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 200},
                "completion_tokens_details": {"reasoning_tokens": 30}}),
        )],
        then: Step::default(),
    })
    .unwrap();
    let id = app.start_turn(app.agent(&provider.base_url()), "Hi.");
    let usage = &app.finished(&id)["usage"];
    assert_eq!(keys(usage), ["calls", "costUsd", "tokens"]);
    assert_eq!(usage["calls"], 1);
    assert_eq!(
        usage["tokens"],
        json!({"prompt": 1000, "completion": 100, "cacheRead": 200, "cacheWrite": 0, "reasoning": 30})
    );
    let cost = (1000.0 * PROMPT_PRICE + 100.0 * COMPLETION_PRICE) / 1_000_000.0;
    let charged = usage["costUsd"].as_f64().unwrap();
    assert!((charged - cost).abs() < 1e-12, "{charged} is not {cost}");
}

/// A turn that calls a tool twice and then answers.
struct WithTools {
    app: App,
    provider: Provider,
    tool: ToolServer,
    run: Value,
}

fn with_tools() -> WithTools {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: vec![
            Step::new(Reply::ToolCalls(vec![
                ("look_up".to_owned(), json!({"word": "one"})),
                ("look_up".to_owned(), json!({"word": "two"})),
            ])),
            Step::text("Both were found."),
        ],
        then: Step::default(),
    })
    .unwrap();
    let tool = ToolServer::start(|asked, _| {
        ToolAnswer::ok(format!("found {}", asked.body["arguments"]["word"]))
    });
    let maker = app.maker();
    let project = maker.project();
    let url = tool.url();
    let mut look_up = NewTool::new("look_up", &url);
    look_up.dry_run = json!("call");
    let look_up = maker.tool(project, &look_up);
    let agent = maker.agent_of(project, &provider.base_url(), |version| {
        version.tools = vec![look_up];
    });
    let body = json!({"agentId": agent, "message": "Look.", "dryRun": true});
    let headers = [("svc-origin", "command-line")];
    let started = app
        .send("POST", "/v1/runs", Some(body.to_string()), &headers)
        .expect(202);
    let run = app.finished(started["run"]["id"].as_str().unwrap());
    assert_eq!(run["status"], "completed", "{run}");
    WithTools {
        app,
        provider,
        tool,
        run,
    }
}

#[test]
fn a_turn_with_tools_tells_its_steps() {
    let WithTools { app, run, .. } = with_tools();
    let id = run["id"].as_str().unwrap();
    assert_eq!(run["origin"], "command-line");
    assert_eq!(run["dryRun"], true);
    assert_eq!(run["usage"]["calls"], 2);
    assert_eq!(app.output(id), json!({"text": "Both were found."}));
    let events = app.events(id);
    let step = "step.started step.completed ";
    let expected = format!("run.created run.started {}run.completed", step.repeat(4));
    assert_eq!(kinds(&events).join(" "), expected);
    assert_eq!(run["lastSeq"], 11);
    let of = |number: usize| &events[number]["data"];
    assert_eq!(of(0)["origin"], "command-line");
    assert_eq!(of(3)["toolCalls"][1]["name"], "look_up");
    assert_eq!(of(5)["output"], "found \"one\"");
    assert_eq!(of(7)["output"], "found \"two\"");
    assert_eq!(
        (&of(7)["type"], &of(7)["name"]),
        (&json!("tool"), &json!("look_up"))
    );
    assert_eq!(of(7)["callId"], of(3)["toolCalls"][1]["id"]);
    for name in ["prompt", "completion"] {
        let tokens = |number: usize| of(number)["tokens"][name].as_i64().unwrap();
        assert_eq!(run["usage"]["tokens"][name], json!(tokens(3) + tokens(9)));
    }
}

#[test]
fn a_turn_with_tools_is_journaled_step_by_step() {
    let WithTools {
        app,
        provider,
        tool,
        run,
    } = with_tools();
    let id = run["id"].as_str().unwrap();
    let rows = app
        .database
        .client()
        .query(
            "select step, kind, status, attempt from run_steps where run_id = $1 order by step",
            &[&id.parse::<Uuid>().unwrap()],
        )
        .unwrap();
    let journal: Vec<(i32, String, String, i32)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
        .collect();
    let step = |number, kind: &str| (number, kind.to_owned(), "completed".to_owned(), 1);
    let all = [
        step(1, "model"),
        step(2, "tool"),
        step(3, "tool"),
        step(4, "model"),
    ];
    assert_eq!(journal, all);
    let asked = tool.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].header("idempotency-key"), format!("{id}-2"));
    assert_eq!(asked[1].header("idempotency-key"), format!("{id}-3"));
    assert_eq!(
        asked[0].body,
        json!({"tool": "look_up", "arguments": {"word": "one"}, "runId": id, "step": 2, "dryRun": true})
    );
    let said: Vec<String> = provider.requests()[1].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["system", "user", "assistant", "tool", "tool"]);
}

#[test]
fn the_version_is_chosen_as_the_specification_says() {
    let app = App::start();
    let provider = saying("Yes.");
    let maker = app.maker();
    let project = maker.project();
    let agent = maker.bare_agent(project);
    let model_provider = maker.provider(&provider.base_url(), None);
    let start = |body: Value| app.post("/v1/runs", &body);
    start(json!({"agentId": agent, "message": "a"})).expect_error(409, "conflict");
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        maker.version(agent, model_provider, &NewVersion::new(version));
    }
    let bound = maker.conversation(agent, Some("1.1.0"));
    let free = maker.conversation(agent, None);
    let chosen = |body: Value| {
        let started = start(body).expect(202);
        let run = app.finished(started["run"]["id"].as_str().unwrap());
        assert_eq!(run["agent"], started["run"]["agent"]);
        let agent = &run["agent"];
        format!(
            "{} {}",
            agent["version"].as_str().unwrap(),
            agent["via"].as_str().unwrap()
        )
    };
    let plain = json!({"agentId": agent, "message": "a"});
    let explicit = json!({"agentId": agent, "message": "a", "version": "1.0.0"});
    let in_bound = json!({"agentId": agent, "message": "a", "conversationId": bound});
    let in_free = json!({"agentId": agent, "message": "a", "conversationId": free});
    let both =
        json!({"agentId": agent, "message": "a", "version": "2.0.0", "conversationId": bound});
    assert_eq!(chosen(plain.clone()), "2.0.0 latest");
    assert_eq!(chosen(in_free.clone()), "2.0.0 latest");
    maker.promote(agent, "1.0.0");
    assert_eq!(chosen(plain), "1.0.0 live");
    assert_eq!(chosen(in_free), "1.0.0 live");
    assert_eq!(chosen(explicit), "1.0.0 explicit");
    assert_eq!(chosen(in_bound), "1.1.0 conversation");
    assert_eq!(chosen(both), "2.0.0 explicit");
    start(json!({"agentId": agent, "message": "a", "version": "9.9.9"}))
        .expect_error(404, "not-found");
    let nobody = app.clock.new_id();
    start(json!({"agentId": nobody, "message": "a"})).expect_error(404, "not-found");
    start(json!({"agentId": agent, "message": "a", "conversationId": nobody}))
        .expect_error(404, "not-found");
    let other = maker.agent_of(project, &provider.base_url(), |_| {});
    let foreign = start(json!({"agentId": other, "message": "a", "conversationId": free}));
    assert!([400, 404, 409].contains(&foreign.status), "{foreign:?}");
}

#[test]
fn a_conversation_remembers_and_has_one_turn_at_a_time() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let conversation = app.maker().conversation(agent, None);
    let start = |message: &str| {
        let body = json!({"agentId": agent, "message": message, "conversationId": conversation});
        app.post("/v1/runs", &body)
    };
    let first = start("I am blue.").expect(202);
    let mut call = puppet.call();
    start("Too early.").expect_error(409, "conflict");
    call.say("So you are blue.");
    call.finish();
    let first = app.finished(first["run"]["id"].as_str().unwrap());
    assert_eq!(first["agent"]["conversationId"], json!(conversation));
    let second = start("What am I?").expect(202);
    let mut call = puppet.call();
    assert_eq!(
        call.body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "I am blue."},
            {"role": "assistant", "content": "So you are blue."},
            {"role": "user", "content": "What am I?"},
        ])
    );
    call.say("Blue.");
    call.finish();
    app.finished(second["run"]["id"].as_str().unwrap());
    let said: Vec<(String, String)> = app
        .database
        .client()
        .query(
            "select role, content from conversation_messages order by position",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let said: Vec<(&str, &str)> = said.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        said,
        [
            ("user", "I am blue."),
            ("assistant", "So you are blue."),
            ("user", "What am I?"),
            ("assistant", "Blue."),
        ]
    );
    let listed = app
        .get(&format!("/v1/runs?conversationId={conversation}"))
        .expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
}

#[test]
fn a_conversation_is_free_again_however_its_turn_ended() {
    let app = App::start();
    let puppet = Puppet::start();
    let maker = app.maker();
    let (agent, model) = (
        maker.bare_agent(maker.project()),
        maker.provider(&puppet.base_url(), None),
    );
    maker.version(agent, model, &NewVersion::new("1.0.0"));
    let mut hurried = NewVersion::new("1.0.1");
    hurried.limits = json!({"turnTimeoutMs": 1000});
    maker.version(agent, model, &hurried);
    let conversation = maker.conversation(agent, None);
    let start = |version: &str, message: &str| {
        let body = json!({"agentId": agent, "version": version, "message": message,
            "conversationId": conversation});
        let started = app.post("/v1/runs", &body).expect(202);
        started["run"]["id"].as_str().unwrap().to_owned()
    };
    let cancelled = start("1.0.0", "Cancelled.");
    let call = puppet.call();
    app.cancel(&cancelled);
    assert_eq!(app.finished(&cancelled)["status"], "cancelled");
    drop(call);
    // Whether the model is asked within its time is up to the machine.
    let failed = start("1.0.1", "Failed.");
    assert_eq!(app.finished(&failed)["status"], "failed");
    let completed = start("1.0.0", "Completed.");
    loop {
        let mut call = puppet.call();
        let messages = call.body["messages"].as_array().unwrap();
        let asked = messages.last().unwrap()["content"].as_str().unwrap();
        // The messages of the turns that were not answered stand before it.
        if asked.ends_with("Completed.") {
            call.say("Well.");
            break call.finish();
        }
    }
    assert_eq!(app.finished(&completed)["status"], "completed");
    let path = format!("/v1/conversations/{conversation}");
    assert_eq!(app.get(&path).expect(200)["activeRunId"], Value::Null);
}

#[test]
fn a_message_of_one_mebibyte_works_and_a_longer_one_does_not() {
    let app = App::start();
    let provider = saying("Long.");
    let agent = app.agent(&provider.base_url());
    let message = "é".repeat(512 * 1024);
    let id = app.start_turn(agent, &message);
    assert_eq!(app.finished(&id)["status"], "completed");
    assert_eq!(
        provider.requests()[0].body["messages"][1]["content"],
        json!(message)
    );
    let payload = app.get(&format!("/v1/runs/{id}/payload")).expect(200);
    assert_eq!(payload["input"]["message"], json!(message));
    let start =
        |message: &str| app.post("/v1/runs", &json!({"agentId": agent, "message": message}));
    let longer = start(&format!("{message}a")).expect_error(413, "body-too-large");
    assert_eq!(longer["details"]["mostBytes"], 1_048_576);
    let body = json!({"agentId": agent, "message": "a".repeat(2 * 1024 * 1024)}).to_string();
    // It asks before it sends, so that it is there for the answer.
    let headers = [("expect", "100-continue")];
    app.send("POST", "/v1/runs", Some(body), &headers)
        .expect_error(413, "body-too-large");
    start(" \n").expect_error(400, "invalid-body");
    start("a\0b").expect_error(400, "invalid-body");
    let headers = [("svc-origin", "moon")];
    let body = json!({"agentId": agent, "message": "a"}).to_string();
    app.send("POST", "/v1/runs", Some(body), &headers)
        .expect_error(400, "invalid-request");
    assert_eq!(provider.count(), 1);
}

/// What a list is asked to find.
struct Made {
    id: String,
    project: Uuid,
    agent: Uuid,
    origin: &'static str,
}

/// Two projects with two agents each, and for each two runs.
fn eight_runs(app: &App) -> Vec<Made> {
    let provider = saying("Yes.");
    let maker = app.maker();
    let mut made = Vec::new();
    for project in [maker.project(), maker.project()] {
        for _ in 0..2 {
            let agent = maker.agent_of(project, &provider.base_url(), |_| {});
            for origin in ["app", "command-line"] {
                let body = json!({"agentId": agent, "message": "a"}).to_string();
                let headers = [("svc-origin", origin)];
                let started = app
                    .send("POST", "/v1/runs", Some(body), &headers)
                    .expect(202);
                let id = started["run"]["id"].as_str().unwrap().to_owned();
                app.finished(&id);
                made.push(Made {
                    id,
                    project,
                    agent,
                    origin,
                });
            }
        }
    }
    made
}

/// The ids of a whole list, by pages of three.
fn list(app: &App, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app
            .get(&format!("/v1/runs?limit=3{query}{cursor}"))
            .expect(200);
        let runs = page["data"].as_array().unwrap();
        ids.extend(
            runs.iter()
                .map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        if page["hasMore"] == json!(false) {
            assert!(runs.len() <= 3 && page.get("nextCursor").is_none());
            return ids;
        }
        assert_eq!(runs.len(), 3);
        cursor = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
    }
}

#[test]
fn runs_are_listed_by_filters_and_pages() {
    let app = App::start();
    let made = eight_runs(&app);
    let ids = |wanted: &dyn Fn(&Made) -> bool| -> Vec<String> {
        let found = made.iter().filter(|one| wanted(one));
        found.map(|one| one.id.clone()).collect()
    };
    let Made { project, agent, .. } = made[5];
    let all = ids(&|_| true);
    assert_eq!(list(&app, "&order=asc"), all);
    let newest: Vec<String> = all.iter().rev().cloned().collect();
    assert_eq!(list(&app, ""), newest);
    let of_app = |one: &Made| one.origin == "app";
    for (query, expected) in [
        (
            format!("&projectId={project}"),
            ids(&|one| one.project == project),
        ),
        (format!("&agentId={agent}"), ids(&|one| one.agent == agent)),
        ("&origin=command-line".to_owned(), ids(&|one| !of_app(one))),
        (
            format!("&projectId={project}&origin=app&status=completed"),
            ids(&|one| one.project == project && of_app(one)),
        ),
        (
            format!("&agentId={agent}&origin=app"),
            ids(&|one| one.agent == agent && of_app(one)),
        ),
        ("&status=failed".to_owned(), Vec::new()),
        (format!("&conversationId={agent}"), Vec::new()),
    ] {
        assert_eq!(
            list(&app, &format!("{query}&order=asc")),
            expected,
            "{query}"
        );
    }
    let page = app.get("/v1/runs?limit=3").expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    for other in [
        "/v1/runs?limit=3&status=completed",
        "/v1/runs?order=asc",
        "/v1/projects?limit=3",
    ] {
        app.get(&format!("{other}&cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    for bad in [
        "status=done",
        "origin=x",
        "projectId=x",
        "cursor=x",
        "limit=0",
        "colour=red",
    ] {
        let answer = app.get(&format!("/v1/runs?{bad}"));
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
}

#[test]
fn progress_is_read_by_pages() {
    let app = App::start();
    let provider = saying("Yes.");
    let agent = app.agent(&provider.base_url());
    let id = app.start_turn(agent, "a");
    let run = app.finished(&id);
    let path = format!("/v1/runs/{id}/progress");
    let whole = app.get(&path).expect(200);
    assert_eq!(whole["run"], run);
    assert_eq!(whole["hasMore"], false);
    let events = whole["data"].as_array().unwrap();
    assert_eq!(events.len(), 5);
    for event in events {
        assert_eq!(keys(event), ["createdAt", "data", "kind", "seq"]);
    }
    let mut paged = Vec::new();
    for after in 0..3 {
        let page = app
            .get(&format!("{path}?after={}&limit=2", after * 2))
            .expect(200);
        paged.extend(page["data"].as_array().unwrap().iter().cloned());
        assert_eq!(page["hasMore"], json!(after < 2));
    }
    assert_eq!(&paged, events);
    let last = app.get(&format!("{path}?after=5")).expect(200);
    assert_eq!(last["data"], json!([]));
    let beyond = app
        .get(&format!("{path}?after=6"))
        .expect_error(400, "invalid-request");
    assert_eq!(beyond["details"]["lastSeq"], 5);
    for bad in ["after=-1", "after=x", "limit=0", "limit=201", "cursor=x"] {
        app.get(&format!("{path}?{bad}"))
            .expect_error(400, "invalid-request");
    }
}
