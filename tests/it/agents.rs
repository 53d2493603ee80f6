//! `/v1/agents`: agents, versions, and which is live.

use crate::harness::{App, made};
use serde_json::{Value, json};

/// A server with an agent, its provider, and the path of the agent.
fn with_agent() -> (App, String, String, String) {
    let app = App::start();
    let project = made::project(&app);
    let provider = made::provider(&app);
    let path = format!("/v1/agents/{}", made::agent(&app, &project, "helper"));
    (app, project, provider, path)
}

#[test]
fn an_agent_is_registered_changed_and_listed() {
    let (app, project, _, path) = with_agent();
    let agent = app.get(&path).expect(200);
    assert_eq!(agent["description"], json!(""));
    assert_eq!(agent["latestVersion"], Value::Null);
    assert_eq!(agent["liveVersion"], Value::Null);
    let twin = json!({"projectId": project, "name": "helper"});
    app.post("/v1/agents", &twin)
        .expect_error(409, "already-exists");
    let second = made::agent(&app, &project, "second");
    app.patch(&format!("/v1/agents/{second}"), &json!({"name": "helper"}))
        .expect_error(409, "already-exists");
    let changed = app
        .patch(&path, &json!({"description": "Helps."}))
        .expect(200);
    assert_eq!(changed["name"], json!("helper"));
    assert_eq!(changed["description"], json!("Helps."));
    let elsewhere = made::project(&app);
    made::agent(&app, &elsewhere, "helper");
    let listed = app
        .get(&format!("/v1/agents?projectId={project}&order=asc"))
        .expect(200);
    assert_eq!(made::column(&listed, "name"), ["helper", "second"]);
    let all = app.get("/v1/agents").expect(200);
    assert_eq!(all["data"].as_array().unwrap().len(), 3);
}

#[test]
fn the_latest_version_is_the_highest_and_none_is_made_twice() {
    let (app, _, provider, path) = with_agent();
    let versions = format!("{path}/versions");
    for (version, latest) in [
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("1.9.0", "1.9.0"),
        ("1.10.0", "1.10.0"),
        ("1.2.0", "1.10.0"),
        ("3.0.0-rc.1", "1.10.0"),
        ("2.0.0", "2.0.0"),
    ] {
        let made = app
            .post(&versions, &made::version(&provider, version))
            .expect(201);
        assert_eq!(made["version"], json!(version));
        assert_eq!(app.get(&path).expect(200)["latestVersion"], json!(latest));
    }
    app.post(&versions, &made::version(&provider, "1.2.0"))
        .expect_error(409, "already-exists");
    let mut unnamed = made::version(&provider, "");
    unnamed.as_object_mut().unwrap().remove("version");
    let next = app.post(&versions, &unnamed).expect(201);
    assert_eq!(next["version"], json!("2.0.1"));
    let first = app
        .get(&format!("{versions}?limit=4&order=asc"))
        .expect(200);
    assert_eq!(
        made::column(&first, "version"),
        ["2.0.0-rc.1", "1.9.0", "1.10.0", "1.2.0"]
    );
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = app
        .get(&format!("{versions}?limit=4&order=asc&cursor={cursor}"))
        .expect(200);
    assert_eq!(
        made::column(&rest, "version"),
        ["3.0.0-rc.1", "2.0.0", "2.0.1"]
    );
    assert_eq!(rest["hasMore"], json!(false));
}

#[test]
fn versions_made_at_once_are_each_made_once() {
    let (app, _, provider, path) = with_agent();
    let mut body = made::version(&provider, "");
    body.as_object_mut().unwrap().remove("version");
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let (client, body, path) = ((*app).clone(), body.clone(), format!("{path}/versions"));
            std::thread::spawn(move || client.post(&path, &body).expect(201))
        })
        .collect();
    let mut made: Vec<String> = threads
        .into_iter()
        .map(|thread| {
            thread.join().unwrap()["version"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    made.sort();
    assert_eq!(made, ["0.1.0", "0.1.1", "0.1.2", "0.1.3", "0.1.4", "0.1.5"]);
    assert_eq!(app.get(&path).expect(200)["latestVersion"], json!("0.1.5"));
}

#[test]
fn a_version_keeps_what_it_was_given() {
    let (app, project, provider, path) = with_agent();
    let tools: Vec<String> = ["b", "a"]
        .iter()
        .map(|name| {
            made::id(
                &app.post("/v1/tools", &made::tool(&project, name))
                    .expect(201),
            )
        })
        .collect();
    let mut body = made::version(&provider, "1.0.0");
    body["toolIds"] = json!(tools);
    body["parameters"] =
        json!({"temperature": 0.5, "stop": ["END"], "extra": {"reasoning_effort": "low"}});
    body["limits"] = json!({"maxSteps": 3});
    let made = app.post(&format!("{path}/versions"), &body).expect(201);
    assert_eq!(made["toolIds"], body["toolIds"]);
    assert_eq!(made["parameters"], body["parameters"]);
    assert_eq!(made["limits"]["maxSteps"], json!(3));
    assert_eq!(made["limits"]["turnTimeoutMs"], json!(600_000));
    let one = format!("{path}/versions/1.0.0");
    assert_eq!(app.get(&one).expect(200), made);
    app.get(&format!("{path}/versions/1.0.1"))
        .expect_error(404, "not-found");
    app.delete(&format!("/v1/tools/{}", tools[0]))
        .expect_error(409, "conflict");
    let instructions = "é".repeat(200_000);
    body["instructions"] = json!(instructions);
    body["version"] = json!("2.0.0");
    let long = app.post(&format!("{path}/versions"), &body).expect(201);
    assert_eq!(long["instructions"], json!(instructions));
}

#[test]
fn what_is_wrong_with_a_version_is_named() {
    let (app, _, provider, path) = with_agent();
    let elsewhere = made::project(&app);
    let tool = app
        .post("/v1/tools", &made::tool(&elsewhere, "clock"))
        .expect(201);
    let theirs = made::provider(&app.other_tenant());
    for (field, value, place) in [
        ("version", json!("1.0"), "$.version"),
        ("version", json!("1.0.0+build"), "$.version"),
        ("modelProviderId", json!(theirs), "$.modelProviderId"),
        ("model", json!("medium"), "$.model"),
        ("toolIds", json!([made::id(&tool)]), "$.toolIds[0]"),
        ("limits", json!({"maxSteps": 0}), "$.limits"),
        ("parameters", json!({"topK": 1}), "$.parameters.topK"),
        ("parameters", json!({"topP": 2}), "$.parameters.topP"),
    ] {
        let mut body = made::version(&provider, "1.0.0");
        body[field] = value;
        let error = app
            .post(&format!("{path}/versions"), &body)
            .expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(place), "{error}");
    }
    assert_eq!(app.get(&path).expect(200)["latestVersion"], Value::Null);
}

#[test]
fn a_version_is_live_until_another_or_none_is() {
    let (app, _, provider, path) = with_agent();
    for version in ["1.0.0", "1.1.0"] {
        app.post(
            &format!("{path}/versions"),
            &made::version(&provider, version),
        )
        .expect(201);
    }
    let promote =
        |version: Value| app.post(&format!("{path}/promote"), &json!({"version": version}));
    for version in [json!("1.0.0"), json!("1.1.0"), Value::Null] {
        let agent = promote(version.clone()).expect(200);
        assert_eq!(agent["liveVersion"], version);
        assert_eq!(agent["latestVersion"], json!("1.1.0"));
        assert_eq!(app.get(&path).expect(200), agent);
    }
    promote(json!("9.9.9")).expect_error(404, "not-found");
    app.post(&format!("{path}/promote"), &json!({}))
        .expect_error(400, "invalid-body");
}

#[test]
fn an_agent_is_the_tenants_own() {
    let (app, project, provider, path) = with_agent();
    let stranger = app.other_tenant();
    let versions = format!("{path}/versions");
    let version = made::version(&provider, "1.0.0");
    app.post(&versions, &version).expect(201);
    let agent = app.get(&path).expect(200);
    for get in [&path, &versions, &format!("{versions}/1.0.0")] {
        stranger.get(get).expect_error(404, "not-found");
    }
    stranger
        .patch(&path, &json!({"name": "theirs"}))
        .expect_error(404, "not-found");
    stranger
        .post(&versions, &version)
        .expect_error(404, "not-found");
    stranger
        .post(&format!("{path}/promote"), &json!({"version": "1.0.0"}))
        .expect_error(404, "not-found");
    stranger
        .post(
            "/v1/agents",
            &json!({"projectId": project, "name": "theirs"}),
        )
        .expect_error(404, "not-found");
    assert_eq!(stranger.get("/v1/agents").expect(200)["data"], json!([]));
    assert_eq!(app.get(&path).expect(200), agent);
}

#[test]
fn a_turn_runs_the_version_that_was_chosen_for_it() {
    let (app, project, provider, path) = with_agent();
    let agent_id = path.rsplit('/').next().unwrap();
    let start = |fields: Value| {
        let mut body = json!({"agentId": agent_id, "message": "hello"});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        app.post("/v1/runs", &body)
    };
    let chosen = |fields: Value| {
        let agent = start(fields).expect(202)["run"]["agent"].clone();
        let text = |key: &str| agent[key].as_str().unwrap().to_owned();
        (text("version"), text("via"))
    };
    let pair = |version: &str, via: &str| (version.to_owned(), via.to_owned());
    start(json!({})).expect_error(409, "conflict");
    for version in ["1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
        app.post(
            &format!("{path}/versions"),
            &made::version(&provider, version),
        )
        .expect(201);
    }
    assert_eq!(chosen(json!({})), pair("1.3.0", "latest"));
    app.post(&format!("{path}/promote"), &json!({"version": "1.1.0"}))
        .expect(200);
    assert_eq!(chosen(json!({})), pair("1.1.0", "live"));
    let begin = |fields: Value| {
        let begun = app.post("/v1/conversations", &fields).expect(201);
        made::id(&begun)
    };
    let own = begin(json!({"agentId": agent_id, "version": "1.0.0"}));
    let free = begin(json!({"agentId": agent_id}));
    let both = begin(json!({"agentId": agent_id, "version": "1.0.0"}));
    assert_eq!(
        chosen(json!({"conversationId": own})),
        pair("1.0.0", "conversation")
    );
    assert_eq!(
        chosen(json!({"conversationId": free})),
        pair("1.1.0", "live")
    );
    let named = json!({"conversationId": both, "version": "1.2.0"});
    assert_eq!(chosen(named), pair("1.2.0", "explicit"));
    start(json!({"version": "9.9.9"})).expect_error(404, "not-found");
    let other = made::agent(&app, &project, "other");
    let theirs = begin(json!({"agentId": other}));
    start(json!({"conversationId": theirs})).expect_error(404, "not-found");
}
