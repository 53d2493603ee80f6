//! Runs that set the model, parameters or limits in place of their version's own.

use crate::harness::{App, NewTool, NewVersion, ToolAnswer, ToolServer, kinds};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// A tenant with two providers, and an agent whose version asks the model `m` of the first.
struct World {
    app: App,
    own: Provider,
    other: Provider,
    /// Has the models `m` and `large`, whose tokens cost ten times as much.
    other_id: Uuid,
    agent: Uuid,
}

fn model(text: &str, queue: Vec<Step>) -> Provider {
    let then = Step::text(text);
    Provider::start(Script { queue, then }).unwrap()
}

impl World {
    /// `allowed`: the version's `overrides`.
    fn start(allowed: Value) -> Self {
        Self::with(allowed, |_, _| Vec::new())
    }

    /// The same with tools of the project.
    fn with(allowed: Value, tools: impl FnOnce(&App, Uuid) -> Vec<Uuid>) -> Self {
        let app = App::start();
        let (own, other) = (model("Own.", Vec::new()), model("Other.", Vec::new()));
        let maker = app.maker();
        let project = maker.project();
        let version = NewVersion {
            overrides: allowed,
            parameters: json!({"temperature": 0.5, "topP": 0.9}),
            limits: json!({"maxSteps": 5, "maxOutputTokens": 77}),
            tools: tools(&app, project),
            ..NewVersion::new("1.0.0")
        };
        let agent = maker.agent_of(project, &own.base_url(), |new| *new = version);
        let prices = |dollars: f64| json!({"prompt": dollars, "completion": dollars});
        let body = json!({
            "name": "other",
            "baseUrl": other.base_url(),
            "models": [{"name": "m", "prices": prices(1.0)}, {"name": "large", "prices": prices(100.0)}],
        });
        let made = app.post("/v1/model-providers", &body).expect(201);
        let other_id = made["id"].as_str().unwrap().parse().unwrap();
        Self {
            app,
            own,
            other,
            other_id,
            agent,
        }
    }

    fn body(&self, overrides: &Value) -> Value {
        json!({"agentId": self.agent, "message": "Hello.", "overrides": overrides})
    }

    /// Starts a run, and reads it once it has ended.
    #[track_caller]
    fn ran(&self, overrides: &Value) -> Value {
        let started = self.app.post("/v1/runs", &self.body(overrides)).expect(202);
        self.app.finished(started["run"]["id"].as_str().unwrap())
    }

    /// The path and the sentence of a refusal.
    #[track_caller]
    fn refused(&self, overrides: &Value, code: &str) -> (String, String) {
        let answer = self.app.post("/v1/runs", &self.body(overrides));
        let error = answer.expect_error(400, code);
        let path = error["details"]["path"].as_str().unwrap();
        let said = error["message"].as_str().unwrap();
        (path.to_owned(), said.to_owned())
    }

    fn large(&self) -> Value {
        json!({"modelProviderId": self.other_id, "model": "large"})
    }
}

#[track_caller]
fn id(run: &Value) -> &str {
    run["id"].as_str().unwrap()
}

#[test]
fn a_run_asks_its_own_model_with_its_own_parameters_and_limits() {
    let world = World::start(json!(["limits", "model", "parameters", "model"]));
    let path = format!("/v1/agents/{}/versions/1.0.0", world.agent);
    let version = world.app.get(&path).expect(200);
    assert_eq!(
        version["overrides"],
        json!(["model", "parameters", "limits"])
    );
    let mut overrides = world.large();
    overrides["parameters"] = json!({"temperature": 0, "extra": {"top_k": 3}});
    overrides["limits"] = json!({"maxOutputTokens": 33});
    let run = world.ran(&overrides);
    assert_eq!(run["status"], json!("completed"), "{run}");
    overrides["parameters"]["temperature"] = json!(0.0);
    assert_eq!(run["overrides"], overrides);
    assert_eq!(world.app.output(id(&run)), json!({"text": "Other."}));
    assert_eq!(world.own.count(), 0);
    let asked = &world.other.requests()[0].body;
    for (field, value) in [
        ("model", json!("large")),
        ("temperature", json!(0.0)),
        ("top_p", json!(0.9)),
        ("top_k", json!(3)),
        ("max_tokens", json!(33)),
    ] {
        assert_eq!(asked[field], value, "{field}: {asked}");
    }
    let events = world.app.events(id(&run));
    let begun = events.iter().find(|event| event["kind"] == "step.started");
    assert_eq!(begun.unwrap()["data"]["name"], json!("large"));
    // Costs and sums are those of the model that answered.
    let tokens = &run["usage"]["tokens"];
    let count = |name: &str| tokens[name].as_f64().unwrap();
    let cost = 100.0 * (count("prompt") + count("completion")) / 1e6;
    let said = run["usage"]["costUsd"].as_f64().unwrap();
    assert!(cost > 0.0 && (said - cost).abs() < 1e-9, "{run}");
    let path = "/v1/usage?by=model";
    let sums = world.app.get(path).expect(200);
    assert_eq!(sums["data"][0]["model"], json!("large"), "{sums}");
    // Where one run is read, and not in lists.
    let progress = format!("/v1/runs/{}/progress", id(&run));
    assert_eq!(
        world.app.get(&progress).expect(200)["run"]["overrides"],
        overrides
    );
    let listed = world.app.get("/v1/runs").expect(200);
    assert!(listed["data"][0].get("overrides").is_none(), "{listed}");
}

#[test]
fn what_is_left_out_stays_as_the_version_has_it() {
    let world = World::start(json!(["model", "parameters", "limits"]));
    let own = world.ran(&json!({"parameters": {"temperature": 1}}));
    assert_eq!(
        own["overrides"],
        json!({"parameters": {"temperature": 1.0}})
    );
    let asked = &world.own.requests()[0].body;
    assert_eq!(asked["model"], json!("m"));
    assert_eq!(asked["max_tokens"], json!(77));
    // The version's model of another provider.
    let run = world.ran(&json!({"modelProviderId": world.other_id}));
    let expected = json!({"modelProviderId": world.other_id, "model": "m"});
    assert_eq!(run["overrides"], expected);
    assert_eq!(world.other.requests()[0].body["temperature"], json!(0.5));
    let limits = world.ran(&json!({"limits": {"turnTimeoutMs": 60_000}}));
    assert_eq!(limits["status"], json!("completed"), "{limits}");
    for nothing in [
        json!({}),
        json!({"parameters": {}, "limits": {}}),
        Value::Null,
    ] {
        let run = world.ran(&nothing);
        assert_eq!(run["status"], json!("completed"), "{run}");
        assert!(run.get("overrides").is_none(), "{run}");
    }
}

#[test]
fn a_version_keeps_to_itself_what_it_does_not_allow() {
    let world = World::start(json!([]));
    for (overrides, field, needed) in [
        (world.large(), "modelProviderId", "model"),
        (json!({"model": "m"}), "model", "model"),
        (
            json!({"parameters": {"seed": 1}}),
            "parameters",
            "parameters",
        ),
        (json!({"limits": {"maxSteps": 2}}), "limits", "limits"),
    ] {
        let (path, said) = world.refused(&overrides, "override-not-allowed");
        assert_eq!(path, format!("$.overrides.{field}"));
        let sentence = format!(
            "Version 1.0.0 of the agent does not let a run set {field}. Leave it out, or start a version whose overrides have \"{needed}\"."
        );
        assert_eq!(said, sentence);
    }
    let world = World::start(json!(["parameters"]));
    let both = json!({"parameters": {"seed": 1}, "model": "m"});
    world.refused(&both, "override-not-allowed");
    assert_eq!(
        world.ran(&json!({"parameters": {"seed": 1}}))["status"],
        json!("completed")
    );
    let none = world.app.get("/v1/runs?status=failed").expect(200);
    assert_eq!(none["data"], json!([]), "a refused run is not made");
}

#[test]
fn what_a_run_sets_is_checked_as_a_versions_fields_are() {
    let world = World::start(json!(["model", "parameters", "limits"]));
    for (overrides, path) in [
        (json!({"model": "nobody"}), "$.overrides.model"),
        (
            json!({"modelProviderId": Uuid::nil()}),
            "$.overrides.modelProviderId",
        ),
        (
            json!({"parameters": {"temperature": 3}}),
            "$.overrides.parameters.temperature",
        ),
        (
            json!({"parameters": {"extra": {"stream": false}}}),
            "$.overrides.parameters.extra.stream",
        ),
        (
            json!({"parameters": {"heat": 3}}),
            "$.overrides.parameters.heat",
        ),
        (json!({"limits": {"maxSteps": 0}}), "$.overrides.limits"),
        (json!({"limits": {"steps": 1}}), "$.overrides.limits.steps"),
        (json!({"tools": []}), "$.overrides.tools"),
        (json!({"model": 7}), "$.overrides.model"),
        (json!(7), "$.overrides"),
    ] {
        let (said, _) = world.refused(&overrides, "invalid-body");
        assert_eq!(said, path, "{overrides}");
    }
    let flow = json!({"flowId": "test.flow", "overrides": {}});
    let answer = world.app.post("/v1/runs", &flow);
    let error = answer.expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.overrides"), "{error}");
    let body = json!({"instructions": "", "modelProviderId": world.other_id, "model": "m", "overrides": ["tools"]});
    let path = format!("/v1/agents/{}/versions", world.agent);
    let error = world
        .app
        .post(&path, &body)
        .expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], json!("$.overrides[0]"), "{error}");
}

#[test]
fn a_turn_of_a_conversation_and_its_retry_keep_what_the_run_sets() {
    let world = World::start(json!(["model", "limits"]));
    let conversation = world.app.maker().conversation(world.agent, None);
    let refusal = json!({"error": {"message": "No."}});
    world.other.push(Step::json(400, &refusal));
    let mut body = world.body(&world.large());
    body["conversationId"] = json!(conversation);
    let started = world.app.post("/v1/runs", &body).expect(202);
    let failed = world.app.finished(id(&started["run"]));
    assert_eq!(failed["status"], json!("failed"), "{failed}");
    let path = format!("/v1/runs/{}/retry", id(&failed));
    let again = world.app.post(&path, &json!({})).expect(202);
    let again = world.app.finished(id(&again["run"]));
    assert_eq!(again["status"], json!("completed"), "{again}");
    assert_eq!(again["overrides"], world.large());
    assert_eq!(world.app.output(id(&again)), json!({"text": "Other."}));
    // The next turn is its version's again.
    body.as_object_mut().unwrap().remove("overrides");
    let next = world.app.post("/v1/runs", &body).expect(202);
    let next = world.app.finished(id(&next["run"]));
    assert_eq!(world.app.output(id(&next)), json!({"text": "Own."}));
    let asked = &world.own.requests()[0].body["messages"];
    assert_eq!(asked[2]["content"], json!("Other."), "{asked}");
}

#[test]
fn a_run_below_has_its_own_versions_model() {
    let clerks = model("Clerk.", Vec::new());
    let world = World::with(json!(["model", "limits"]), |app, project| {
        let maker = app.maker();
        let clerk = maker.agent_of(project, &clerks.base_url(), |_| {});
        let body = json!({"projectId": project, "name": "clerk", "description": "A clerk.", "agent": {"id": clerk}});
        let made = app.post("/v1/tools", &body).expect(201);
        vec![made["id"].as_str().unwrap().parse().unwrap()]
    });
    let call = ("clerk".to_owned(), json!({"message": "Look."}));
    world.other.push(Step::new(Reply::ToolCalls(vec![call])));
    let mut overrides = world.large();
    overrides["limits"] = json!({"maxSteps": 4});
    let run = world.ran(&overrides);
    assert_eq!(run["status"], json!("completed"), "{run}");
    assert_eq!(clerks.count(), 1);
    assert_eq!(clerks.requests()[0].body["model"], json!("m"));
    let path = format!("/v1/runs?rootRunId={}", id(&run));
    let below = world.app.get(&path).expect(200);
    let below = world.app.run(id(&below["data"][0]));
    assert!(below.get("overrides").is_none(), "{below}");
}

#[test]
fn a_limit_of_the_run_holds() {
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("fine"));
    let url = tool.url();
    let world = World::with(json!(["limits"]), |app, project| {
        vec![app.maker().tool(project, &NewTool::new("look", &url))]
    });
    for _ in 0..2 {
        let call = ("look".to_owned(), json!({}));
        world.own.push(Step::new(Reply::ToolCalls(vec![call])));
    }
    let run = world.ran(&json!({"limits": {"maxSteps": 2}}));
    assert_eq!(run["status"], json!("failed"), "{run}");
    let said = run["failureMessage"].as_str().unwrap();
    assert!(said.contains("2 steps"), "{said}");
}

#[test]
fn a_run_whose_model_was_removed_meanwhile_fails_and_says_so() {
    let world = World::start(json!(["model"]));
    let refusal = json!({"error": {"message": "No."}});
    world.other.push(Step::json(400, &refusal));
    let failed = world.ran(&world.large());
    assert_eq!(failed["status"], json!("failed"), "{failed}");
    let path = format!("/v1/model-providers/{}", world.other_id);
    let models = json!({"models": [{"name": "m"}]});
    world.app.patch(&path, &models).expect(200);
    let path = format!("/v1/runs/{}/retry", id(&failed));
    let again = world.app.post(&path, &json!({})).expect(202);
    let run = world.app.finished(id(&again["run"]));
    assert_eq!(run["status"], json!("failed"), "{run}");
    let said = "The model that the run sets in place of its version's was removed from its provider. Start a run with another one.";
    assert_eq!(run["failureMessage"], json!(said));
    let events = world.app.events(id(&run));
    assert_eq!(kinds(&events), ["run.created", "run.retried", "run.failed"]);
}

#[test]
fn what_a_run_sets_is_erased_with_its_payload() {
    let world = World::start(json!(["parameters"]));
    let conversation = world.app.maker().conversation(world.agent, None);
    let mut body = world.body(&json!({"parameters": {"stop": ["canary"]}}));
    body["conversationId"] = json!(conversation);
    let started = world.app.post("/v1/runs", &body).expect(202);
    let run = world.app.finished(id(&started["run"]));
    assert_eq!(
        run["overrides"],
        json!({"parameters": {"stop": ["canary"]}})
    );
    let path = format!("/v1/conversations/{conversation}");
    world.app.send("DELETE", &path, None, &[]);
    let erased = crate::harness::eventually("the run to be erased", || {
        Some(world.app.run(id(&run))).filter(|run| run["payloadErasedAt"].is_string())
    });
    assert!(erased.get("overrides").is_none(), "{erased}");
}
