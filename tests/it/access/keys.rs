//! What a key rules out, before the model is asked; and a credential that is refused in a loop.

use super::world::{Key, Person, Row, World};
use crate::harness::{Answer, Client, Puppet, end_of, made};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// Refused with exactly the sentence of section 7. Which check refused, and why, is in the record.
#[track_caller]
fn refused(world: &World, person: &Person, answer: Answer, stage: &str, why: &str) {
    let row = recorded(world, &answer, stage);
    let (action, resource) = (&row.action, &row.resource);
    let sentence = format!(
        "permission denied, actor user:{} lacks can_{action} on {resource}",
        person.user_id
    );
    // A record says beside that for which of the tenant's own objects it was.
    let provider = format!(", for model-provider:{}", world.model_provider);
    let reason = row.reason.replace(&provider, "");
    assert_eq!(reason, format!("{stage}: {sentence}; {why}"));
    let error = answer.expect_error(403, "permission-denied");
    assert_eq!(error["message"], json!(sentence));
    let details = json!({"action": action, "resource": resource, "reason": sentence});
    assert_eq!(error["details"], details);
}

/// Refused, because the request names another project than the key's by its id.
#[track_caller]
fn mismatched(world: &World, answer: Answer, action: &str, own: Uuid, named: Uuid) {
    let row = recorded(world, &answer, "key-project-mismatch");
    let resource = format!("project:{named}");
    assert_eq!((row.action.as_str(), &row.resource), (action, &resource));
    let sentence = format!(
        "The key is limited to project:{own}, and the request names {resource}. \
         Use a key of that project, or one without a limit."
    );
    assert_eq!(row.reason, format!("key-project-mismatch: {sentence}"));
    let error = answer.expect_error(403, "key-project-mismatch");
    assert_eq!(error["message"], json!(sentence));
    let details = json!({"action": action, "resource": resource, "reason": sentence});
    assert_eq!(error["details"], details);
}

/// The one decision of a request that a check before the model refused.
#[track_caller]
fn recorded(world: &World, answer: &Answer, stage: &str) -> Row {
    let mut rows = world.decisions(answer);
    assert_eq!(rows.len(), 1, "{rows:?} {answer:?}");
    let row = rows.remove(0);
    let found = (row.outcome.as_str(), row.stage.as_str());
    assert_eq!(found, ("denied", stage));
    let part = (row.failing_part.as_deref(), &row.check);
    assert_eq!(part, (Some(stage), &None));
    row
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
    let body = json!({"name": "new"});
    let why = "it is a member key, and this takes a tenant admin";
    let answer = member.client.post("/v1/projects", &body);
    refused(&world, &member, answer, "key-role", why);
    let path = format!("/v1/model-providers/{}", world.model_provider);
    let answer = member.client.patch(&path, &body);
    refused(&world, &member, answer, "key-role", why);
    // Of the project it allows what its owner's role on it allows: they made it.
    let path = format!("/v1/projects/{}", world.project);
    member.client.patch(&path, &body).expect(200);
    member.client.get("/v1/model-providers").expect(200);
}

#[test]
fn a_member_key_does_not_act_as_its_owner_s_being_a_tenant_admin_allows() {
    let world = World::start();
    let admin = world.person("admin");
    let mut key = Key::whole();
    key.role = "member";
    let member = world.key(admin.user_id, &key);
    let team = world.team();
    world.grant_to_team(world.project, team, "admin");
    let org = world.org_of(world.project);
    let why = "it is a member key, and no role of its owner but tenant admin allows this";
    let paths = [
        format!("/v1/projects/{}", world.project),
        format!("/v1/agents/{}", world.agent),
        format!("/v1/runs/{}", world.run),
        format!("/v1/teams/{team}"),
        format!("/v1/orgs/{org}"),
    ];
    for path in &paths {
        let answer = member.client.get(path);
        refused(&world, &member, answer, "key-role", why);
        admin.client.get(path).expect(200);
    }
    let lists = [
        "projects",
        "agents",
        "tools",
        "runs",
        "conversations",
        "teams",
        "orgs",
    ];
    let listed = |person: &Person| {
        let found = lists.iter().filter(|noun| {
            let page = person.client.get(&format!("/v1/{noun}")).expect(200);
            !page["data"].as_array().unwrap().is_empty()
        });
        found.count()
    };
    assert_eq!((listed(&member), listed(&admin)), (0, lists.len()));
    // A role of its own does, as far as it goes.
    world.grant(world.project, admin.user_id, "editor");
    for path in &paths[..3] {
        member.client.get(path).expect(200);
    }
    let access = format!("{}/access", paths[0]);
    let emails = |person: &Person| {
        let page = person.client.get(&access).expect(200);
        page.to_string().contains("primaryEmail")
    };
    world.write(
        "update users set email = 'ann@b', email_key = 'ann@b' where user_id = $1",
        &[&admin.user_id],
    );
    assert!(
        emails(&admin) && !emails(&member),
        "they are shown to admins alone"
    );
    let answer = member.client.patch(&paths[0], &json!({"name": "new"}));
    refused(&world, &member, answer, "key-role", why);
    assert_eq!(listed(&member), 5);
    world.join_team(team, admin.user_id, "member");
    member.client.get(&paths[3]).expect(200);
    member
        .client
        .patch(&paths[0], &json!({"name": "new"}))
        .expect(200);
    let answer = member.client.patch(&paths[3], &json!({"name": "new"}));
    refused(&world, &member, answer, "key-role", why);
    world.grant_by_org(world.project, admin.user_id);
    assert_eq!(listed(&member), 7);
}

#[test]
fn a_stream_by_a_member_key_ends_with_its_owner_s_role_on_the_project() {
    let world = World::start_with(|options| {
        options.streams.recheck_every = Duration::from_millis(100);
    });
    let puppet = Puppet::start();
    let maker = world.app.maker();
    let agent = maker.agent_of(world.project, &puppet.base_url(), |_| {});
    let run = world.app.start_turn(agent, "say");
    let _call = puppet.call();
    let admin = world.person("admin");
    let mut key = Key::whole();
    key.role = "member";
    let member = world.key(admin.user_id, &key);
    world.grant(world.project, admin.user_id, "viewer");
    let mut stream = member.client.follow(&run);
    stream.until("step.started");
    world.revoke(world.project, admin.user_id);
    assert_eq!(end_of(&stream.rest()), "permission-denied");
    let run_id: Uuid = run.parse().unwrap();
    let rows = world.rows(
        "key_id = $1 and resource = $2",
        &[&member.key_id, &format!("run:{run_id}")],
    );
    let last = rows.last().unwrap();
    assert_eq!(
        (last.outcome.as_str(), last.stage.as_str()),
        ("denied", "key-role")
    );
    world.app.cancel(&run);
}

#[test]
fn a_key_of_one_project_stays_in_it() {
    let world = World::start();
    let elsewhere = world.another_project();
    let key = admin_with(&world, |key| key.project_id = Some(world.project));
    let own = world.project;
    let why = format!("the key is limited to project:{own}");
    let agent = world.app.maker().bare_agent(elsewhere);
    let answer = key.client.get(&format!("/v1/agents/{agent}"));
    refused(&world, &key, answer, "key-project", &why);
    let answer = key
        .client
        .post("/v1/conversations", &json!({"agentId": agent}));
    refused(&world, &key, answer, "key-project", &why);
    let answer = key.client.post("/v1/projects", &json!({"name": "new"}));
    refused(&world, &key, answer, "key-project", &why);
    // In it, and what is the tenant's to read.
    let body = json!({"projectId": own, "name": "mine"});
    key.client.post("/v1/agents", &body).expect(201);
    key.client.get("/v1/model-providers").expect(200);
    let body = json!({"agentId": world.agent, "message": "a"});
    key.client.post("/v1/runs", &body).expect(202);
}

#[test]
fn a_key_of_one_project_guards_no_other() {
    let world = World::start();
    let own = world.project;
    let key = admin_with(&world, |key| key.project_id = Some(own));
    for other in [world.another_project(), world.app.clock.new_id()] {
        let text = json!({"projectId": other, "point": "output", "text": "a"});
        let answer = key.client.post("/v1/guardrails/try", &text);
        mismatched(&world, answer, "write", own, other);
        let policy = json!({"guardrails": []});
        let of_project = format!("/v1/projects/{other}/policies");
        let answer = key.client.put(&of_project, &policy);
        mismatched(&world, answer, "admin", own, other);
        key.client
            .put("/v1/policies", &policy)
            .expect_error(403, "permission-denied");
    }
}

#[test]
fn a_key_of_one_project_names_no_other() {
    let world = World::start();
    let own = world.project;
    let key = admin_with(&world, |key| key.project_id = Some(own));
    // Whether it is there or not: the id alone says that it is another one.
    for other in [world.another_project(), world.app.clock.new_id()] {
        let answer = key.client.get(&format!("/v1/projects/{other}"));
        mismatched(&world, answer, "read", own, other);
        let path = format!("/v1/projects/{other}/memberships");
        mismatched(&world, key.client.get(&path), "write", own, other);
        let body = json!({"projectId": other, "name": "theirs"});
        mismatched(
            &world,
            key.client.post("/v1/agents", &body),
            "admin",
            own,
            other,
        );
        mismatched(
            &world,
            key.client.post("/v1/tokens", &body),
            "write",
            own,
            other,
        );
        // The project is looked at before what else is wrong with the key that is asked for.
        let ended =
            json!({"projectId": other, "name": "theirs", "expiresAt": "2001-01-01T00:00:00Z"});
        mismatched(
            &world,
            key.client.post("/v1/tokens", &ended),
            "write",
            own,
            other,
        );
        let account = world.service_account();
        let keys = format!("/v1/service-accounts/{}/tokens", account.user_id);
        let answer = key.client.post(&keys, &body);
        mismatched(&world, answer, "admin", own, other);
        let endpoint = json!({"url": "https://hooks.example/r", "events": ["run.finished"],
            "secretRef": {"envName": "prod", "name": "KEY"}, "filter": {"projectId": other}});
        let answer = key.client.post("/v1/webhook-endpoints", &endpoint);
        mismatched(&world, answer, "admin", own, other);
        let of_secret =
            json!({"name": "KEY", "target": "origin:https://a.example", "projectId": other});
        let answer = key.client.post("/v1/secret-uses", &of_secret);
        mismatched(&world, answer, "admin", own, other);
        let definition = json!({"projectId": other, "definition": {}});
        let answer = key.client.post("/v1/flows/validate", &definition);
        mismatched(&world, answer, "write", own, other);
        let changes = format!("/v1/changes/stream?kind=run&projectId={other}");
        mismatched(&world, key.client.get(&changes), "read", own, other);
        for noun in ["agents", "tools", "conversations", "runs", "flows", "usage"] {
            let named = other.to_string().to_uppercase();
            let answer = key
                .client
                .get(&format!("/v1/{noun}?limit=1&projectId={named}"));
            mismatched(&world, answer, "read", own, other);
            key.client
                .get(&format!("/v1/{noun}?projectId={own}"))
                .expect(200);
            key.client
                .get(&format!("/v1/{noun}?projectId=none"))
                .expect_error(400, "invalid-request");
        }
    }
}

#[test]
fn a_list_of_a_key_of_one_project_holds_that_project_alone() {
    let world = World::start();
    let elsewhere = world.another_project();
    let agent = world.app.maker().bare_agent(elsewhere);
    let key = admin_with(&world, |key| key.project_id = Some(world.project));
    let ids = |path: &str| -> Vec<String> {
        let page = key.client.get(path).expect(200);
        crate::harness::made::column(&page, "id")
    };
    assert_eq!(ids("/v1/projects"), [world.project.to_string()]);
    assert_eq!(ids("/v1/projects?order=desc"), [world.project.to_string()]);
    assert_eq!(ids("/v1/agents"), [world.agent.to_string()]);
    assert_eq!(ids("/v1/tools"), [world.tool.to_string()]);
    assert_eq!(ids("/v1/runs"), std::slice::from_ref(&world.run));
    assert_eq!(ids("/v1/conversations"), [world.conversation.to_string()]);
    assert_eq!(ids(&format!("/v1/runs?agentId={agent}")), [""; 0]);
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
        let reason = world.decisions(&answer).pop().unwrap().reason;
        answer.expect_error(403, "permission-denied");
        assert!(
            reason.ends_with("; the key lacks the capability secrets:write"),
            "{reason}"
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
    // That is recorded, once in a minute.
    let last = world.rows("key_id = $1", &[&member.key_id]).pop().unwrap();
    assert_eq!(
        (
            last.stage.as_str(),
            last.outcome.as_str(),
            last.action.as_str()
        ),
        ("denial-limit", "denied", "read")
    );
    assert_eq!(last.resource, format!("tenant:{}", world.tenant_id()));
    assert!(last.reason.starts_with("denial-limit: "), "{last:?}");
    assert_eq!(last.route.as_deref(), Some("GET /v1/projects/{projectId}"));
    assert_eq!(
        (last.check, last.failing_part.as_deref()),
        (None, Some("denial-limit"))
    );
    // Whatever it asks for; and another key of the same user is not concerned.
    member
        .client
        .get("/v1/projects")
        .expect_error(429, "too-many-requests");
    assert_eq!(mine(), 4);
    let other = world.key(member.user_id, &Key::whole());
    other.client.get("/v1/projects").expect(200);
    let nobody = Uuid::nil();
    let path = format!("/v1/projects/{nobody}");
    other.client.get(&path).expect_error(404, "not-found");
}

#[test]
fn signing_in_again_forgives_a_credential_no_denial() {
    let world = World::start_with(|options| options.denials_per_minute = 3);
    let app = &world.app;
    let path = format!("/v1/projects/{}", world.project);
    let denied = |client: &Client| {
        client.get(&path).expect_error(403, "permission-denied");
    };
    let limited = |client: &Client| {
        client.get(&path).expect_error(429, "too-many-requests");
    };
    let member = world.person("member");
    let token = member.client.token();
    denied(&app.signed_in(token));
    denied(&app.signed_in(token));
    let third = app.signed_in(token);
    denied(&third);
    limited(&third);
    // Neither the token itself nor a further session of it has a count of its own, and no further one is opened.
    limited(&member.client);
    let body = json!({"token": token});
    let again = app
        .with_token(None)
        .post_from_page("/v1/sign-in/token", &body);
    again.expect_error(429, "too-many-requests");
    let other = world.key(member.user_id, &Key::whole());
    denied(&app.signed_in(other.client.token()));
    // Without a token, as with a code, it is the person who is counted.
    let person = made::person(app, "ann@b", "member");
    let users = format!("/v1/identity/users/{}/enrolments", made::id(&person));
    for is_denied in [true, true, true, false] {
        let code = app.send("POST", &users, None, &[]).expect(201);
        let code = json!({"code": code["code"]});
        let session = app
            .with_token(None)
            .post_from_page("/v1/sign-in/enrolment", &code);
        let browser = app.browser(&session.session());
        match is_denied {
            true => denied(&browser),
            false => limited(&browser),
        }
    }
}
