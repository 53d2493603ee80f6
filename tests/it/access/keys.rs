//! What a key rules out, before the model is asked; and a credential that is refused in a loop.

use super::world::{Key, Person, World};
use crate::harness::Answer;
use serde_json::{Value, json};
use uuid::Uuid;

#[track_caller]
fn refused(world: &World, answer: Answer, stage: &str, sentence: &str) -> Value {
    let rows = world.decisions(&answer);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (rows[0].outcome.as_str(), rows[0].stage.as_str()),
        ("denied", stage)
    );
    // A record says beside that for which of the tenant's own objects it was.
    let provider = format!(", for model-provider:{}", world.model_provider);
    assert_eq!(rows[0].reason.replace(&provider, ""), sentence);
    assert_eq!(
        (rows[0].failing_part.as_deref(), &rows[0].check),
        (Some(stage), &None)
    );
    let error = answer.expect_error(403, "permission-denied");
    assert_eq!(error["message"], json!(sentence));
    let details =
        json!({"action": rows[0].action, "resource": rows[0].resource, "reason": sentence});
    assert_eq!(error["details"], details);
    error
}

/// An admin of the tenant with a key that may less.
fn admin_with(world: &World, change: impl FnOnce(&mut Key)) -> Person {
    let mut key = Key::whole();
    change(&mut key);
    world.key(world.app.seeds.user_id, &key)
}

#[test]
fn a_member_key_does_nothing_that_takes_a_tenant_admin() {
    let world = World::start();
    let member = admin_with(&world, |key| key.role = "member");
    let (user, tenant) = (member.user_id, world.tenant_id());
    let body = json!({"name": "new"});
    let answer = member.client.post("/v1/projects", &body);
    refused(
        &world,
        answer,
        "key-role",
        &format!(
            "permission denied, the key of actor user:{user} does not allow can_write on tenant:{tenant}: \
         it is a member key, and this takes a tenant admin"
        ),
    );
    let path = format!("/v1/model-providers/{}", world.model_provider);
    let answer = member.client.patch(&path, &body);
    refused(
        &world,
        answer,
        "key-role",
        &format!(
            "permission denied, the key of actor user:{user} does not allow can_admin on tenant:{tenant}: \
         it is a member key, and this takes a tenant admin"
        ),
    );
    // Of the project it allows whatever its owner may.
    let path = format!("/v1/projects/{}", world.project);
    member.client.patch(&path, &body).expect(200);
    member.client.get("/v1/model-providers").expect(200);
}

#[test]
fn a_key_of_one_project_stays_in_it() {
    let world = World::start();
    let elsewhere = world.another_project();
    let key = admin_with(&world, |key| key.project_id = Some(world.project));
    let (user, own) = (key.user_id, world.project);
    let sentence = |relation: &str, on: &str| {
        format!(
            "permission denied, the key of actor user:{user} does not allow {relation} on {on}: \
             it is limited to project:{own}"
        )
    };
    let answer = key.client.get(&format!("/v1/projects/{elsewhere}"));
    let told = sentence("can_read", &format!("project:{elsewhere}"));
    refused(&world, answer, "key-project", &told);
    let agent = world.app.maker().bare_agent(elsewhere);
    let answer = key
        .client
        .post("/v1/conversations", &json!({"agentId": agent}));
    let told = sentence("can_write", &format!("agent:{agent}"));
    refused(&world, answer, "key-project", &told);
    let answer = key.client.post("/v1/projects", &json!({"name": "new"}));
    let told = sentence("can_write", &format!("tenant:{}", world.tenant_id()));
    refused(&world, answer, "key-project", &told);
    // In it, and what is the tenant's to read.
    let body = json!({"projectId": own, "name": "mine"});
    key.client.post("/v1/agents", &body).expect(201);
    key.client.get("/v1/model-providers").expect(200);
    let body = json!({"agentId": world.agent, "message": "a"});
    key.client.post("/v1/runs", &body).expect(202);
}

#[test]
fn a_list_of_a_key_of_one_project_holds_that_project_alone() {
    let world = World::start();
    let elsewhere = world.another_project();
    world.app.maker().bare_agent(elsewhere);
    let key = admin_with(&world, |key| key.project_id = Some(world.project));
    let ids = |path: &str| -> Vec<String> {
        let page = key.client.get(path).expect(200);
        crate::harness::made::column(&page, "id")
    };
    assert_eq!(ids("/v1/projects"), [world.project.to_string()]);
    assert_eq!(ids("/v1/projects?order=desc"), [world.project.to_string()]);
    assert_eq!(ids("/v1/agents"), [world.agent.to_string()]);
    assert_eq!(ids(&format!("/v1/agents?projectId={elsewhere}")), [""; 0]);
    assert_eq!(ids("/v1/tools"), [world.tool.to_string()]);
    assert_eq!(ids("/v1/runs"), std::slice::from_ref(&world.run));
    assert_eq!(ids("/v1/conversations"), [world.conversation.to_string()]);
}

#[test]
fn a_key_that_may_not_write_secrets_sends_none_to_a_model_provider() {
    let keys = crate::harness::secrets::Keys::new();
    let world = World::start_with(|options| options.secrets = keys.options());
    world
        .app
        .put("/v1/secrets/prod/KEY", &json!({"value": "k-1"}))
        .expect(201);
    let mut limited = Key::whole();
    limited.capabilities = vec!["access:write"];
    let key = world.key(world.app.seeds.user_id, &limited);
    let all = "/v1/model-providers";
    let provider = |name: &str| {
        json!({"name": name, "baseUrl": "https://models.example/v1", "models": [{"name": "m"}],
            "apiKeySecretRef": {"envName": "prod", "name": "KEY"}})
    };
    let refused = |answer: Answer| {
        let error = answer.expect_error(403, "permission-denied");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.ends_with(": it lacks the capability secrets:write"),
            "{message}"
        );
    };
    refused(key.client.post(all, &provider("a")));
    let made = world.app.post(all, &provider("b")).expect(201);
    let one = format!("{all}/{}", made["id"].as_str().unwrap());
    refused(
        key.client
            .patch(&one, &json!({"baseUrl": "https://elsewhere.example/v1"})),
    );
    refused(key.client.patch(
        &one,
        &json!({"apiKeySecretRef": {"envName": "prod", "name": "KEY"}}),
    ));
    assert_eq!(world.app.get(&one).expect(200)["baseUrl"], made["baseUrl"]);
    let renamed = key.client.patch(&one, &json!({"name": "c"})).expect(200);
    assert_eq!(renamed["name"], json!("c"));
}

#[test]
fn a_credential_that_is_denied_in_a_loop_meets_a_limit_before_any_decision() {
    let world = World::start_with(|options| options.denials_per_minute = 3);
    let member = world.person("member");
    let path = format!("/v1/projects/{}", world.project);
    for _ in 0..3 {
        member
            .client
            .get(&path)
            .expect_error(403, "permission-denied");
    }
    let mine = || world.rows("key_id = $1", &[&member.key_id]).len();
    assert_eq!(mine(), 3);
    let answer = member.client.get(&path);
    assert_eq!(answer.header("retry-after"), Some("1"));
    answer.expect_error(429, "too-many-requests");
    // Whatever it asks for; and another key of the same user is not concerned.
    member
        .client
        .get("/v1/projects")
        .expect_error(429, "too-many-requests");
    assert_eq!(mine(), 3);
    let other = world.key(member.user_id, &Key::whole());
    other.client.get("/v1/projects").expect(200);
    let nobody = Uuid::nil();
    let path = format!("/v1/projects/{nobody}");
    other.client.get(&path).expect_error(404, "not-found");
}
