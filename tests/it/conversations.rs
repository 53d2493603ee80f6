//! `/v1/conversations`.

use crate::harness::{App, Puppet, made};
use serde_json::{Value, json};
use uuid::Uuid;

/// A server with an agent that has a version 1.0.0, and the agent's id.
fn with_agent() -> (App, String) {
    let app = App::start();
    let provider = made::provider(&app);
    let agent = made::agent(&app, &made::project(&app), "helper");
    app.post(
        &format!("/v1/agents/{agent}/versions"),
        &made::version(&provider, "1.0.0"),
    )
    .expect(201);
    (app, agent)
}

/// Messages as turns would have written them.
fn say(app: &App, conversation: &Value, content: &str, count: i64) {
    let id: Uuid = made::id(conversation).parse().unwrap();
    app.database
        .client()
        .execute(
            "insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
             select tenant_id, conversation_id, number, 'user', $2, conversation_id, now()
             from conversations, generate_series(1, $3::bigint) number where conversation_id = $1",
            &[&id, &content, &count],
        )
        .unwrap();
}

fn positions(page: &Value) -> Vec<i64> {
    let rows = page["data"].as_array().unwrap();
    rows.iter()
        .map(|row| row["position"].as_i64().unwrap())
        .collect()
}

#[test]
fn the_list_says_whose_newest_answer_was_cut() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let [cut, whole, empty] = [(); 3].map(|()| app.maker().conversation(agent, None));
    let turn = |conversation: Uuid, reason: &str| {
        let body = json!({"agentId": agent, "conversationId": conversation, "message": "Go on."});
        let started = app.post("/v1/runs", &body).expect(202);
        let mut call = puppet.call();
        call.say("And");
        call.finish_for(reason);
        app.finished(&made::id(&started["run"]))
    };
    let marked = || {
        let listed = app.get("/v1/conversations").expect(200);
        let rows = listed["data"].as_array().unwrap().clone();
        let rows = rows.iter().filter(|row| row["answerCut"] == json!(true));
        rows.map(made::id).collect::<Vec<_>>()
    };
    turn(whole, "stop");
    turn(cut, "length");
    assert_eq!(marked(), [cut.to_string()]);
    turn(whole, "length");
    assert_eq!(marked(), [whole.to_string(), cut.to_string()]);
    turn(whole, "stop");
    turn(empty, "stop");
    assert_eq!(marked(), [cut.to_string()]);
}

#[test]
fn a_conversation_is_begun_read_and_listed() {
    let (app, agent) = with_agent();
    let begun = app
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect(201);
    assert_eq!(begun["title"], json!(""));
    assert_eq!(begun["version"], Value::Null);
    assert_eq!(begun["activeRunId"], Value::Null);
    let path = format!("/v1/conversations/{}", made::id(&begun));
    assert_eq!(app.get(&path).expect(200), begun);
    let body = json!({"agentId": agent, "version": "1.0.0", "title": "pinned"});
    let pinned = app.post("/v1/conversations", &body).expect(201);
    assert_eq!(pinned["version"], json!("1.0.0"));
    let project = begun["projectId"].as_str().unwrap();
    let second = made::agent(&app, project, "second");
    let other = app
        .post("/v1/conversations", &json!({"agentId": second}))
        .expect(201);
    let elsewhere = made::project(&app);
    for (query, expected) in [
        (String::new(), json!([other, pinned, begun])),
        (format!("?agentId={agent}"), json!([pinned, begun])),
        (
            format!("?agentId={agent}&order=asc"),
            json!([begun, pinned]),
        ),
        (
            format!("?projectId={project}"),
            json!([other, pinned, begun]),
        ),
        (
            format!("?projectId={project}&agentId={second}"),
            json!([other]),
        ),
        (
            format!("?projectId={elsewhere}&agentId={second}"),
            json!([]),
        ),
        (format!("?projectId={elsewhere}&order=asc"), json!([])),
    ] {
        let listed = app.get(&format!("/v1/conversations{query}")).expect(200);
        assert_eq!(listed["data"], expected, "{query}");
    }
    let wrong = json!({"agentId": agent, "version": "1.0.1"});
    app.post("/v1/conversations", &wrong)
        .expect_error(404, "not-found");
}

#[test]
fn messages_page_by_their_positions() {
    let (app, agent) = with_agent();
    let begin = || {
        app.post("/v1/conversations", &json!({"agentId": agent}))
            .expect(201)
    };
    let (conversation, other) = (begin(), begin());
    say(&app, &conversation, "hello", 5);
    let path = format!("/v1/conversations/{}/messages", made::id(&conversation));
    let first = app.get(&format!("{path}?limit=2")).expect(200);
    assert_eq!(positions(&first), [5, 4]);
    assert_eq!(first["data"][0]["content"], json!("hello"));
    assert_eq!(first["data"][0]["role"], json!("user"));
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = app
        .get(&format!("{path}?limit=3&cursor={cursor}"))
        .expect(200);
    assert_eq!(positions(&rest), [3, 2, 1]);
    assert_eq!(rest["hasMore"], json!(false));
    assert!(rest.get("nextCursor").is_none());
    let other = format!("/v1/conversations/{}/messages", made::id(&other));
    app.get(&format!("{other}?cursor={cursor}"))
        .expect_error(400, "invalid-cursor");
    assert_eq!(
        app.get(&other).expect(200),
        json!({"data": [], "hasMore": false})
    );
}

#[test]
fn a_page_of_long_messages_holds_fewer_and_none_is_lost() {
    let (app, agent) = with_agent();
    let conversation = app
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect(201);
    say(&app, &conversation, &"x".repeat(1_000_000), 12);
    let path = format!("/v1/conversations/{}/messages", made::id(&conversation));
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = app.get(&format!("{path}?order=asc{cursor}")).expect(200);
        seen.extend(positions(&page));
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, (1..=12).collect::<Vec<_>>());
    assert_eq!(pages, 3);
}

#[test]
fn a_conversation_is_the_tenants_own() {
    let (app, agent) = with_agent();
    let stranger = app.other_tenant();
    let begun = app
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect(201);
    let path = format!("/v1/conversations/{}", made::id(&begun));
    stranger.get(&path).expect_error(404, "not-found");
    stranger
        .get(&format!("{path}/messages"))
        .expect_error(404, "not-found");
    stranger
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect_error(404, "not-found");
    for query in [String::new(), format!("?agentId={agent}")] {
        let listed = stranger
            .get(&format!("/v1/conversations{query}"))
            .expect(200);
        assert_eq!(listed["data"], json!([]));
    }
}
