//! `Idempotency-Key` on `POST /v1/runs`.

use crate::harness::{Answer, App, Client, made};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

fn provider() -> Provider {
    Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap()
}

fn start(client: &Client, agent: Uuid, message: &str, key: &str) -> Answer {
    let body = json!({"agentId": agent, "message": message}).to_string();
    client.send("POST", "/v1/runs", Some(body), &[("idempotency-key", key)])
}

fn id_of(started: &Value) -> &str {
    started["run"]["id"].as_str().unwrap()
}

fn count_runs(app: &App) -> usize {
    let listed = app.get("/v1/runs?limit=200").expect(200);
    listed["data"].as_array().unwrap().len()
}

#[test]
fn a_repetition_answers_with_the_same_run_and_a_fresh_token() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    let first = start(&app, agent, "a", "key-1").expect(202);
    app.finished(id_of(&first));
    app.clock.advance(Duration::from_secs(600));
    let again = start(&app, agent, "a", "key-1").expect(202);
    assert_eq!(id_of(&again), id_of(&first));
    assert_eq!(again["run"]["status"], "completed", "as it stands now");
    let ends = |started: &Value| {
        started["publicToken"]["expiresAt"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(ends(&again) > ends(&first));
    app.clock.advance(Duration::from_secs(600));
    let old = app.with_token(first["publicToken"]["token"].as_str());
    let fresh = app.with_token(again["publicToken"]["token"].as_str());
    let progress = format!("/v1/runs/{}/progress", id_of(&first));
    old.get(&progress).expect_error(401, "unauthenticated");
    fresh.get(&progress).expect(200);
    start(&app, agent, "b", "key-1").expect_error(422, "idempotency-mismatch");
    let other = start(&app, agent, "a", "key-2").expect(202);
    assert_ne!(id_of(&other), id_of(&first));
    app.finished(id_of(&other));
    assert_eq!(count_runs(&app), 2);
    assert_eq!(provider.count(), 2);
    let kept: String = app
        .database
        .client()
        .query_one(
            "select string_agg(to_jsonb(k)::text, ' ') from idempotency_keys k",
            &[],
        )
        .unwrap()
        .get(0);
    assert!(!kept.contains("svc_pt_"), "no token is kept: {kept}");
}

#[test]
fn two_at_once_make_one_run() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    for round in 0..5 {
        let key = format!("round-{round}");
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let one = || start(&app, agent, "a", &key);
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut made: Vec<String> = Vec::new();
        for answer in answers {
            match answer.status {
                202 => made.push(id_of(&answer.json()).to_owned()),
                _ => drop(answer.expect_error(409, "idempotency-in-flight")),
            }
        }
        made.dedup();
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(count_runs(&app), round + 1);
    }
}

#[test]
fn a_repetition_of_what_is_still_worked_on_is_told_so() {
    let app = App::start_with(|options| {
        // Half of it is how long a lock is waited for.
        options.store.statement_timeout = Duration::from_secs(6);
    });
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    let first = start(&app, agent, "a", "key-1").expect(202);
    app.finished(id_of(&first));
    let mut client = app.database.client();
    let mut other = client.transaction().unwrap();
    other
        .execute(
            "insert into idempotency_keys (tenant_id, principal, route, key, body_digest, object_id, created_at)
             select tenant_id, principal, route, 'key-2', body_digest, object_id, created_at
             from idempotency_keys where tenant_id = $1",
            &[&app.seeds.tenant_id],
        )
        .unwrap();
    start(&app, agent, "a", "key-2").expect_error(409, "idempotency-in-flight");
    other.rollback().unwrap();
    start(&app, agent, "a", "key-2").expect(202);
    assert_eq!(count_runs(&app), 2);
}

#[test]
fn a_key_is_its_callers_own() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    let first = start(&app, agent, "a", "key").expect(202);
    let other = app.other_tenant();
    let others = other.agent(&provider.base_url());
    let second = start(&other, others, "b", "key").expect(202);
    assert_ne!(id_of(&second), id_of(&first));
    // A second user of the same tenant.
    let user = app.clock.new_id();
    let token = agent_runtime::authn::bearer::mint().unwrap();
    let mut sql = app.database.client();
    sql.execute(
        "insert into users (tenant_id, user_id, display_name, created_at) values ($1, $2, 'second', now())",
        &[&app.seeds.tenant_id, &user],
    )
    .unwrap();
    sql.execute(
        "insert into tokens (tenant_id, token_id, user_id, name, digest, last_four, created_at)
         values ($1, $2, $3, 'second', $4, 'last', now())",
        &[
            &app.seeds.tenant_id,
            &app.clock.new_id(),
            &user,
            &agent_runtime::authn::bearer::digest(token.expose()).as_slice(),
        ],
    )
    .unwrap();
    let second_user = app.with_token(Some(token.expose()));
    let third = start(&second_user, agent, "c", "key").expect(202);
    assert_ne!(id_of(&third), id_of(&first));
    assert_eq!(third["run"]["createdBy"], json!(user));
}

#[test]
fn a_key_has_bounds() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    start(&app, agent, "a", &"k".repeat(255)).expect(202);
    start(&app, agent, "a", &"k".repeat(256)).expect_error(400, "invalid-request");
    start(&app, agent, "a", "").expect_error(400, "invalid-request");
    assert_eq!(count_runs(&app), 1);
}

#[test]
fn a_request_that_made_nothing_keeps_no_key() {
    let app = App::start();
    let provider = provider();
    let nobody = app.clock.new_id();
    start(&app, nobody, "a", "key").expect_error(404, "not-found");
    let agent = app.agent(&provider.base_url());
    start(&app, agent, "a", "key").expect(202);
    assert_eq!(count_runs(&app), 1);
}

#[test]
fn a_key_of_another_project_does_not_get_the_run() {
    let app = App::start_authorized();
    let limited: Vec<Client> = ["one", "two"]
        .map(|name| {
            let project = made::project(&app);
            let definition = json!({
                "document": {"dsl": "1.0.3", "namespace": "billing", "name": "refund", "version": "1.0.0"},
                "do": [{"one": {"set": {"done": true}}}],
            });
            app.post("/v1/flows", &json!({"projectId": project, "definition": definition}))
                .expect(201);
            let key = json!({"name": name, "projectId": project});
            let key = app.post("/v1/tokens", &key).expect(201);
            app.with_token(key["token"].as_str())
        })
        .into();
    let start = |client: &Client| {
        let body = json!({"flowId": "billing.refund"}).to_string();
        client.send("POST", "/v1/runs", Some(body), &[("idempotency-key", "k")])
    };
    let first = start(&limited[0]).expect(202);
    let refused = start(&limited[1]).expect_error(422, "idempotency-mismatch");
    let said = refused.to_string();
    assert!(!said.contains(id_of(&first)), "{said}");
    // The same project gets it still.
    let again = start(&limited[0]).expect(202);
    assert_eq!(id_of(&again), id_of(&first));
    assert_eq!(count_runs(&app), 1);
}
