//! `/v1/model-providers`.

use crate::harness::{App, Puppet, made};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::runtime::ModelKeys;
use agent_runtime::secret::Secret;
use serde_json::{Value, json};
use std::time::Duration;

fn with_key() -> App {
    App::start_with(|options| {
        let mut keys = ModelKeys::default();
        let url = url::Url::parse("https://models.example").unwrap();
        keys.add("main", &url, Secret::new("sk-never-shown"));
        options.model_keys = keys;
    })
}

#[test]
fn a_provider_is_registered_changed_and_deleted() {
    let app = App::start();
    let body = json!({
        "name": "local", "baseUrl": "http://127.0.0.1:11434/v1",
        "models": [
            {"name": "b", "prices": {"prompt": 0.15, "completion": 0.6, "cacheRead": 1e-10,
                "cacheWrite": 0.0, "reasoning": 99999.9999999999}},
            {"name": "a"},
        ],
    });
    let provider = app.post("/v1/model-providers", &body).expect(201);
    assert_eq!(
        provider["models"],
        json!([{"name": "a", "prices": {}}, body["models"][0]])
    );
    assert_eq!(provider["apiKeyName"], Value::Null);
    let path = format!("/v1/model-providers/{}", made::id(&provider));
    assert_eq!(app.get(&path).expect(200), provider);
    app.post("/v1/model-providers", &body)
        .expect_error(409, "already-exists");
    let models = json!([{"name": "a", "prices": {"prompt": 2.5}}, {"name": "c"}]);
    let changed = app
        .patch(&path, &json!({"name": "new", "models": models}))
        .expect(200);
    assert_eq!(changed["name"], json!("new"));
    assert_eq!(changed["baseUrl"], provider["baseUrl"]);
    assert_eq!(
        changed["models"],
        json!([models[0], {"name": "c", "prices": {}}])
    );
    let listed = app.get("/v1/model-providers").expect(200);
    assert_eq!(listed, json!({"data": [changed], "hasMore": false}));
    app.delete(&path).expect(204);
    app.get(&path).expect_error(404, "not-found");
}

#[test]
fn what_is_wrong_with_a_provider_is_named() {
    let app = App::start();
    let post = |field: &str, value: Value| {
        let mut body =
            json!({"name": "p", "baseUrl": "http://127.0.0.1/v1", "models": [{"name": "a"}]});
        body[field] = value;
        app.post("/v1/model-providers", &body)
    };
    for (field, value, path) in [
        ("name", json!(""), "$.name"),
        ("baseUrl", json!("nowhere"), "$.baseUrl"),
        ("models", json!([]), "$.models"),
        (
            "models",
            json!([{"name": "a"}, {"name": "a"}]),
            "$.models[1].name",
        ),
        (
            "models",
            json!([{"name": "a", "prices": {"prompt": -1}}]),
            "$.models[0].prices.prompt",
        ),
        (
            "models",
            json!([{"name": "a", "prices": {"reasoning": 0.12345678901}}]),
            "$.models[0].prices.reasoning",
        ),
        ("apiKeyName", json!("main"), "$.apiKeyName"),
    ] {
        let error = post(field, value).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path), "{error}");
    }
}

/// Options that are not taken, and the path of each fault below `$.serverOptions`.
fn wrong_options() -> Vec<(Value, &'static str)> {
    let header = |header: Value| json!({"headers": [header]});
    vec![
        (json!({"timeout": 1}), "timeout"),
        (
            json!({"timeouts": {"firstByteMs": 9}}),
            "timeouts.firstByteMs",
        ),
        (
            json!({"timeouts": {"idleMs": 3_600_001}}),
            "timeouts.idleMs",
        ),
        (
            json!({"timeouts": {"callMs": 86_400_001}}),
            "timeouts.callMs",
        ),
        (json!({"tries": 0}), "tries"),
        (json!({"tries": 21}), "tries"),
        (json!({"callsAtOnce": 0}), "callsAtOnce"),
        (json!({"callsAtOnce": 10_001}), "callsAtOnce"),
        (json!({"apiVersion": "a&b"}), "apiVersion"),
        (json!({"keyHeader": "api key"}), "keyHeader"),
        (json!({"keyHeader": "Host"}), "keyHeader"),
        (json!({"quirks": ["no-seed", "no-seed"]}), "quirks"),
        (json!({"quirks": ["no-such"]}), "quirks[0]"),
        (
            header(json!({"name": "x-a", "value": "a\r\nb"})),
            "headers[0].value",
        ),
        (header(json!({"name": "x-a"})), "headers[0].value"),
        (
            header(json!({"name": "x-a", "value": "a", "keyName": "main"})),
            "headers[0].value",
        ),
        (
            header(json!({"name": "x-a", "keyName": "main"})),
            "headers[0].keyName",
        ),
        (
            header(json!({"name": "Authorization", "value": "Bearer a"})),
            "headers[0].value",
        ),
        (
            header(json!({"name": "content-length", "value": "1"})),
            "headers[0].name",
        ),
        (
            json!({"headers": [{"name": "x-a", "value": "1"}, {"name": "X-A", "value": "2"}]}),
            "headers[1].name",
        ),
        (
            json!({"keyHeader": "x-a", "headers": [{"name": "X-A", "value": "2"}]}),
            "headers[0].name",
        ),
        (
            json!({"headers": vec![json!({"name": "x", "value": "1"}); 21]}),
            "headers",
        ),
    ]
}

#[test]
fn what_is_wrong_with_a_providers_options_is_named() {
    let app = App::start();
    for (options, path) in wrong_options() {
        let body = json!({"name": "p", "baseUrl": "http://127.0.0.1/v1", "models": [{"name": "a"}],
            "serverOptions": options});
        let error = app.post("/v1/model-providers", &body);
        let error = error.expect_error(400, "invalid-body");
        let path = format!("$.serverOptions.{path}");
        assert_eq!(error["details"]["path"], json!(path), "{error}");
    }
}

#[test]
fn a_key_is_named_for_its_own_origin_alone() {
    let app = with_key();
    let post = |base_url: &str, key: &str| {
        let body = json!({"name": base_url, "baseUrl": base_url, "apiKeyName": key, "models": [{"name": "a"}]});
        app.post("/v1/model-providers", &body)
    };
    for (base_url, key) in [
        ("https://models.example/v1", "other"),
        ("http://models.example/v1", "main"),
        ("https://models.example.net/v1", "main"),
    ] {
        let error = post(base_url, key).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["setting"], json!("SVC_MODEL_KEYS"));
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("SVC_MODEL_KEYS")
        );
    }
    let provider = post("https://models.example/v1", "main").expect(201);
    assert!(!provider.to_string().contains("sk-never-shown"));
    let path = format!("/v1/model-providers/{}", made::id(&provider));
    app.patch(&path, &json!({"baseUrl": "https://elsewhere.example/v1"}))
        .expect_error(400, "invalid-body");
    assert_eq!(app.get(&path).expect(200), provider);
    let moved = json!({"baseUrl": "https://elsewhere.example/v1", "apiKeyName": null});
    let moved = app.patch(&path, &moved).expect(200);
    assert_eq!(moved["apiKeyName"], Value::Null);
    app.patch(&path, &json!({"apiKeyName": "main"}))
        .expect_error(400, "invalid-body");
}

#[test]
fn what_a_version_uses_stays() {
    let app = App::start();
    let provider = made::provider(&app);
    let agent = made::agent(&app, &made::project(&app), "a");
    app.post(
        &format!("/v1/agents/{agent}/versions"),
        &made::version(&provider, "1.0.0"),
    )
    .expect(201);
    let path = format!("/v1/model-providers/{provider}");
    app.delete(&path).expect_error(409, "conflict");
    app.patch(&path, &json!({"models": [{"name": "large"}]}))
        .expect_error(409, "conflict");
    let models = json!([{"name": "small", "prices": {"prompt": 3}}]);
    let changed = app.patch(&path, &json!({"models": models})).expect(200);
    assert_eq!(
        changed["models"],
        json!([{"name": "small", "prices": {"prompt": 3.0}}])
    );
}

#[test]
fn a_provider_whose_newest_calls_failed_says_since_when_and_why() {
    let app = App::start_with(|options| options.runs.model_attempts = 1);
    let wrong = json!({"error": {"message": "No such model."}});
    let queue = vec![
        Step::text("Yes."),
        Step::json(404, &wrong),
        Step::json(404, &wrong),
        Step::text("Yes."),
    ];
    let script = Script {
        queue,
        then: Step::json(404, &wrong),
    };
    let scripted = Provider::start(script).unwrap();
    let agent = app.agent(&scripted.base_url());
    let run = |status: &str| {
        let run = app.finished(&app.start_turn(agent, "a"));
        assert_eq!(run["status"], json!(status));
        run
    };
    let failing = || {
        let listed = app.get("/v1/model-providers").expect(200);
        let rows = listed["data"].as_array().unwrap();
        let is_it = |row: &&Value| row["baseUrl"] == json!(scripted.base_url());
        let row = rows.iter().find(is_it).unwrap();
        let path = format!("/v1/model-providers/{}", made::id(row));
        assert_eq!(&app.get(&path).expect(200), row);
        row.get("failing").cloned()
    };
    assert_eq!(failing(), None);
    run("completed");
    assert_eq!(failing(), None);
    run("failed");
    let first = failing().unwrap();
    assert_eq!(first["calls"], json!(1));
    assert_eq!(first["firstAt"], first["lastAt"]);
    assert!(
        first["failure"]
            .as_str()
            .unwrap()
            .contains("No such model.")
    );
    app.clock.advance(Duration::from_secs(60));
    run("failed");
    let second = failing().unwrap();
    assert_eq!(
        (&second["calls"], &second["firstAt"]),
        (&json!(2), &first["firstAt"])
    );
    assert!(
        second["lastAt"].as_str() > first["lastAt"].as_str(),
        "{second}"
    );
    run("completed");
    assert_eq!(failing(), None);
    run("failed");
    assert_eq!(failing().unwrap()["calls"], json!(1));
    app.clock.advance(Duration::from_secs(25 * 3600));
    assert_eq!(failing(), None, "it was a day ago");
}

#[test]
fn a_provider_is_the_tenants_own() {
    let app = App::start();
    let stranger = app.other_tenant();
    let path = format!("/v1/model-providers/{}", made::provider(&app));
    stranger.get(&path).expect_error(404, "not-found");
    stranger
        .patch(&path, &json!({"name": "theirs"}))
        .expect_error(404, "not-found");
    stranger.delete(&path).expect_error(404, "not-found");
    let listed = stranger.get("/v1/model-providers").expect(200);
    assert_eq!(listed["data"], json!([]));
    // Names are the tenant's own too.
    made::provider(&stranger);
    assert_eq!(app.get(&path).expect(200)["name"], json!("provider"));
}

#[test]
fn a_secret_is_the_key_as_it_is_at_each_call() {
    let app = App::start_with_secrets();
    let scripted = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let reference = json!({"envName": "prod", "name": "MODEL_KEY"});
    let mut body = json!({"name": "a", "baseUrl": scripted.base_url(),
        "apiKeySecretRef": reference, "models": [{"name": "m"}]});
    let all = "/v1/model-providers";
    let error = app.post(all, &body).expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.apiKeySecretRef"));
    let secret = "/v1/secrets/prod/MODEL_KEY";
    app.put(secret, &json!({"value": "sk-first"})).expect(201);
    body["apiKeyName"] = json!("main");
    app.post(all, &body).expect_error(400, "invalid-body");
    body["apiKeyName"] = json!(null);
    let provider = app.post(all, &body).expect(201);
    assert_eq!(provider["apiKeySecretRef"], reference);
    let path = format!("{all}/{}", made::id(&provider));
    assert_eq!(app.get(&path).expect(200), provider);
    let agent = made::agent(&app, &made::project(&app), "a");
    let mut version = made::version(&made::id(&provider), "1.0.0");
    version["model"] = json!("m");
    app.post(&format!("/v1/agents/{agent}/versions"), &version)
        .expect(201);
    let run = || {
        let body = json!({"agentId": agent, "message": "a"});
        let started = app.post("/v1/runs", &body).expect(202);
        app.finished(started["run"]["id"].as_str().unwrap())
    };
    let sent = || {
        let last = scripted.requests().pop().unwrap();
        let mut headers = last.headers.into_iter();
        headers.find_map(|(name, value)| (name == "authorization").then_some(value))
    };
    assert_eq!(run()["status"], json!("completed"));
    assert_eq!(sent().as_deref(), Some("Bearer sk-first"));
    app.put(secret, &json!({"value": "sk-second"})).expect(200);
    assert_eq!(run()["status"], json!("completed"));
    assert_eq!(sent().as_deref(), Some("Bearer sk-second"));
    let calls = scripted.count();
    app.put(secret, &json!({"value": "two lines\nof it"}))
        .expect(200);
    let failed = run();
    let message = failed["failureMessage"].as_str().unwrap();
    assert!(
        message.contains("no API key") && !message.contains("two lines"),
        "{message}"
    );
    app.delete(secret).expect(204);
    let failed = run();
    let message = failed["failureMessage"].as_str().unwrap();
    assert!(
        message.contains("There is no secret MODEL_KEY"),
        "{message}"
    );
    assert_eq!(scripted.count(), calls, "nothing was sent");
    let without = app
        .patch(&path, &json!({"apiKeySecretRef": null}))
        .expect(200);
    assert_eq!(without["apiKeySecretRef"], Value::Null);
    app.patch(&path, &json!({"apiKeySecretRef": reference}))
        .expect_error(400, "invalid-body");
    assert_eq!(run()["status"], json!("completed"));
    assert_eq!(sent(), None);
}

#[test]
fn without_a_secrets_store_no_secret_is_a_key() {
    let app = App::start();
    let body = json!({"name": "a", "baseUrl": "http://127.0.0.1:9/v1", "models": [{"name": "m"}],
        "apiKeySecretRef": {"envName": "prod", "name": "KEY"}});
    let error = app
        .post("/v1/model-providers", &body)
        .expect_error(400, "invalid-body");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("SVC_SECRETS_BACKEND")
    );
}

#[test]
fn a_provider_is_asked_as_its_options_say() {
    let app = App::start_with(|options| {
        let mut keys = ModelKeys::default();
        let url = url::Url::parse("http://127.0.0.1:1").unwrap();
        keys.add("unused", &url, Secret::new("k"));
        options.model_keys = keys;
    });
    let puppet = Puppet::start();
    let agent = app.agent(&format!("{}?team=a", puppet.base_url()));
    let providers = app.get("/v1/model-providers").expect(200);
    let path = format!("/v1/model-providers/{}", made::id(&providers["data"][0]));
    let options = json!({
        "timeouts": {"idleMs": 5000},
        "tries": 2,
        "callsAtOnce": 3,
        "headers": [{"name": "X-Team", "value": "claims and refunds"}],
        "apiVersion": "2024-10-21",
        "quirks": ["no-seed"],
    });
    let changed = app
        .patch(&path, &json!({"serverOptions": options}))
        .expect(200);
    assert_eq!(changed["serverOptions"], options);
    let same = app.patch(&path, &json!({"name": "other"})).expect(200);
    assert_eq!(same["serverOptions"], options, "what is left out stays");
    app.start_turn(agent, "a");
    let call = puppet.call();
    assert_eq!(
        call.target,
        "/v1/chat/completions?team=a&api-version=2024-10-21"
    );
    assert_eq!(call.header("x-team"), Some("claims and refunds"));
    assert_eq!(call.header("authorization"), None);
    call.finish();
}

#[test]
fn a_key_goes_into_the_header_that_the_options_name() {
    let puppet = Puppet::start();
    let url = puppet.base_url();
    let app = App::start_with(|options| {
        let mut keys = ModelKeys::default();
        let url = url::Url::parse(&url).unwrap();
        keys.add("main", &url, Secret::new("k-1"));
        keys.add("gateway", &url, Secret::new("Basic Zw=="));
        options.model_keys = keys;
    });
    let agent = app.agent(&url);
    let providers = app.get("/v1/model-providers").expect(200);
    let path = format!("/v1/model-providers/{}", made::id(&providers["data"][0]));
    let options = json!({
        "keyHeader": "api-key",
        "headers": [{"name": "authorization", "keyName": "gateway"}],
    });
    let change = json!({"apiKeyName": "main", "serverOptions": options});
    let changed = app.patch(&path, &change).expect(200);
    assert!(!changed.to_string().contains("k-1") && !changed.to_string().contains("Zw=="));
    app.start_turn(agent, "a");
    let call = puppet.call();
    assert_eq!(call.header("api-key"), Some("k-1"));
    assert_eq!(call.header("authorization"), Some("Basic Zw=="));
    call.finish();
    // The keys of headers are listed for one origin, as the provider's own.
    let moved = json!({"baseUrl": "https://elsewhere.example/v1", "apiKeyName": null});
    let error = app.patch(&path, &moved).expect_error(400, "invalid-body");
    assert_eq!(
        error["details"]["path"],
        json!("$.serverOptions.headers[0].keyName")
    );
}

/// What a check said of a step: whether it is well, and the sentence.
fn step<'a>(found: &'a Value, name: &str) -> (&'a Value, &'a str) {
    let steps = found["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["step"] == name).unwrap();
    (&step["ok"], step["value"].as_str().unwrap())
}

#[test]
fn a_check_asks_a_model_and_says_what_its_server_can_do() {
    let app = App::start();
    let server = Provider::start(Script::default()).unwrap();
    app.agent(&server.base_url());
    let providers = app.get("/v1/model-providers").expect(200);
    let provider = &providers["data"][0];
    let path = format!("/v1/model-providers/{}/check", made::id(provider));
    let found = app.post(&path, &json!({})).expect(200);
    assert_eq!(found["ok"], true, "{found}");
    assert_eq!(found["model"], provider["models"][0]["name"]);
    for name in ["answer", "usage", "tools", "outputSchema"] {
        assert_eq!(step(&found, name).0, &json!(true), "{name}: {found}");
    }
    assert!(!found["listed"].as_array().unwrap().is_empty(), "{found}");
    assert_eq!(server.requests().len(), 3);
    app.post(&path, &json!({"model": "other"}))
        .expect_error(400, "invalid-body");
    let usage = app.get("/v1/usage").expect(200);
    assert_eq!(usage["data"], json!([]), "a check is no usage");
}

#[test]
fn a_check_of_a_server_that_fails_says_what_it_said() {
    let app = App::start();
    let refuses = Step::new(Reply::Plain {
        status: 401,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: json!({"error": {"message": "No such key."}}).to_string(),
    });
    let server = Provider::start(Script {
        queue: Vec::new(),
        then: refuses,
    });
    let server = server.unwrap();
    app.agent(&server.base_url());
    let providers = app.get("/v1/model-providers").expect(200);
    let path = format!(
        "/v1/model-providers/{}/check",
        made::id(&providers["data"][0])
    );
    let found = app.post(&path, &json!({})).expect(200);
    assert_eq!(found["ok"], false);
    let (ok, said) = step(&found, "answer");
    assert!(
        ok == &json!(false) && said.contains("No such key."),
        "{found}"
    );
    assert_eq!(step(&found, "tools").0, &Value::Null);
    assert_eq!(server.requests().len(), 1, "nothing else is asked");
}
