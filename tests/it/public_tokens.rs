//! Public run tokens: what they open, and that they open nothing else.

use crate::harness::{App, Client, secrets};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::http::access::Rule;
use agent_runtime::server;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

struct Scene {
    app: App,
    _provider: Provider,
    agent: Uuid,
}

fn scene(change: impl FnOnce(&mut server::Options)) -> Scene {
    let app = App::start_with(change);
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    Scene {
        app,
        _provider: provider,
        agent,
    }
}

impl Scene {
    /// A finished run and the token that came with it.
    fn run(&self) -> (String, Value) {
        let body = json!({"agentId": self.agent, "message": "a"});
        let started = self.app.post("/v1/runs", &body).expect(202);
        let id = started["run"]["id"].as_str().unwrap().to_owned();
        self.app.finished(&id);
        (id, started["publicToken"].clone())
    }

    fn holder(&self, token: &Value) -> Client {
        self.app.with_token(token["token"].as_str())
    }
}

fn progress(run_id: &str) -> String {
    format!("/v1/runs/{run_id}/progress")
}

#[test]
fn it_opens_the_progress_of_its_runs_and_no_other_route() {
    let scene = scene(|options| options.secrets = secrets::Keys::new().options());
    let (id, token) = scene.run();
    let holder = scene.holder(&token);
    let own = scene.app.get(&progress(&id)).expect(200);
    assert_eq!(holder.get(&progress(&id)).expect(200), own);
    assert!(!holder.follow(&id).rest().is_empty());
    let mut opened = Vec::new();
    for route in server::table(true, true).routes() {
        let path = route.path.replace("{runId}", &id).replace(['{', '}'], "");
        let body = (route.body_bytes > 0).then(|| "{}".to_owned());
        let answer = match route.path.ends_with("/stream") {
            true => continue,
            false => holder.send(route.method.text(), &path, body, &[]),
        };
        match route.rule {
            Rule::Open(_) => assert_eq!(answer.status, route.shape.status, "{path}"),
            // It is asked by no page of the server.
            Rule::SigningIn => drop(answer.expect_error(403, "csrf-origin-mismatch")),
            // It did not begin a sign-in.
            Rule::Returning => assert_eq!(answer.status, 303, "{path}"),
            Rule::Session => drop(answer.expect_error(401, "unauthenticated")),
            // It takes no token, but a code.
            Rule::Enrolling => drop(answer.expect_error(400, "invalid-body")),
            _ if answer.status == 200 => opened.push(route.path),
            _ => drop(answer.expect_error(403, "public-run-token-not-allowed")),
        }
    }
    assert_eq!(opened, ["/v1/runs/{runId}/progress"]);
    // One that is none is not known, wherever it is used.
    let other = scene.app.with_token(Some("svc_pt_e30.AAAA"));
    other
        .get("/v1/projects")
        .expect_error(401, "unauthenticated");
}

#[test]
fn it_opens_no_other_run() {
    let scene = scene(|_| {});
    let (first, of_first) = scene.run();
    let (second, _) = scene.run();
    let unknown = Uuid::now_v7().to_string();
    for other in [&second, &unknown] {
        let holder = scene.holder(&of_first);
        holder
            .get(&progress(other))
            .expect_error(403, "public-run-token-not-allowed");
        let Err(refused) = holder.try_open(&Client::stream_of(other), &[]) else {
            panic!("the token is not for this run");
        };
        refused.expect_error(403, "public-run-token-not-allowed");
    }
    let body = json!({"runIds": [first, second]});
    let both = scene.app.post("/v1/tokens/public", &body).expect(201);
    for run in [&first, &second] {
        scene.holder(&both).get(&progress(run)).expect(200);
    }
    let mint = |body: Value| scene.app.post("/v1/tokens/public", &body);
    mint(json!({"runIds": [first, unknown]})).expect_error(404, "not-found");
    mint(json!({"runIds": []})).expect_error(400, "invalid-body");
    mint(json!({"runIds": vec![&first; 51]})).expect_error(400, "invalid-body");
    mint(json!({"runIds": [first], "expiresInSeconds": 901})).expect_error(400, "invalid-body");
    mint(json!({"runIds": [first], "expiresInSeconds": 0})).expect_error(400, "invalid-body");
    let other = scene.app.other_tenant();
    other
        .post("/v1/tokens/public", &json!({"runIds": [first]}))
        .expect_error(404, "not-found");
}

/// Child runs are not known when it is minted.
#[test]
fn of_the_run_at_the_top_of_a_tree_it_opens_those_below_and_of_one_below_it_opens_that_one_alone() {
    let scene = scene(|_| {});
    let (root, of_root) = scene.run();
    let (child, of_child) = scene.run();
    let [root_id, child_id] = [&root, &child].map(|id| id.parse::<Uuid>().unwrap());
    let below = "update runs set root_run_id = $1, parent_run_id = $1, parent_slot = 0, origin = 'run' where run_id = $2";
    let mut client = scene.app.database.client();
    client.execute(below, &[&root_id, &child_id]).unwrap();
    let holder = scene.holder(&of_root);
    let own = scene.app.get(&progress(&child)).expect(200);
    assert_eq!(holder.get(&progress(&child)).expect(200), own);
    assert!(!holder.follow(&child).rest().is_empty());
    let holder = scene.holder(&of_child);
    holder.get(&progress(&child)).expect(200);
    holder
        .get(&progress(&root))
        .expect_error(403, "public-run-token-not-allowed");
}

#[test]
fn it_ends_with_its_life() {
    let scene = scene(|_| {});
    let (id, token) = scene.run();
    let body = json!({"runIds": [id], "expiresInSeconds": 10});
    let short = scene.app.post("/v1/tokens/public", &body).expect(201);
    scene.holder(&short).get(&progress(&id)).expect(200);
    scene.app.clock.advance(Duration::from_secs(11));
    scene
        .holder(&short)
        .get(&progress(&id))
        .expect_error(401, "unauthenticated");
    scene.holder(&token).get(&progress(&id)).expect(200);
    scene.app.clock.advance(Duration::from_secs(900));
    scene
        .holder(&token)
        .get(&progress(&id))
        .expect_error(401, "unauthenticated");
}

#[test]
fn another_key_signs_for_another_server() {
    let scene = scene(|_| {});
    let (id, token) = scene.run();
    // Each test server has a key of its own.
    let other = scene.app.replica(|_| {});
    other
        .with_token(token["token"].as_str())
        .get(&progress(&id))
        .expect_error(401, "unauthenticated");
}

#[test]
fn it_is_off_without_a_key() {
    let on = scene(|_| {});
    let (_, token) = on.run();
    let off = scene(|options| options.signer = None);
    let (id, none) = off.run();
    assert_eq!(none, Value::Null);
    let error = off
        .app
        .post("/v1/tokens/public", &json!({"runIds": [id]}))
        .expect_error(501, "not-configured");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH"),
        "{message}"
    );
    off.holder(&token)
        .get(&progress(&id))
        .expect_error(401, "unauthenticated");
}
