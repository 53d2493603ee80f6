//! Projects and agents that are archived: lists leave them out, nothing starts in them, and they come back.

use crate::harness::{App, Client, NewTool, Puppet, made};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

fn provider() -> Provider {
    Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap()
}

#[track_caller]
fn act(client: &Client, noun: &str, id: Uuid, act: &str) -> Value {
    let path = format!("/v1/{noun}/{id}/{act}");
    client.send("POST", &path, None, &[]).expect(200)
}

#[track_caller]
fn ids(client: &Client, path: &str) -> Vec<String> {
    made::column(&client.get(path).expect(200), "id")
}

fn turn(agent: Uuid) -> Value {
    json!({"agentId": agent, "message": "a"})
}

/// What may be made in the project and with the agent, and is refused with this code.
#[track_caller]
fn refuses(app: &App, agent: Uuid, project: Option<Uuid>, conversation: Uuid, code: &str) {
    let version = made::version(&made::provider(app), "9.0.0");
    let mut refused = vec![
        ("/v1/runs".to_owned(), turn(agent)),
        (
            "/v1/runs".to_owned(),
            json!({"agentId": agent, "message": "a", "conversationId": conversation}),
        ),
        ("/v1/conversations".to_owned(), json!({"agentId": agent})),
        (format!("/v1/agents/{agent}/versions"), version),
    ];
    if let Some(project) = project {
        let person = made::person(app, "new@example.test", "member");
        let member = json!({"userId": person["id"], "role": "viewer"});
        let grant = json!({"teamId": made::team(app, "team"), "role": "viewer"});
        refused.extend([
            (
                "/v1/agents".to_owned(),
                json!({"projectId": project, "name": "new"}),
            ),
            (
                "/v1/tools".to_owned(),
                made::tool(&project.to_string(), "new"),
            ),
            (format!("/v1/projects/{project}/memberships"), member),
            (format!("/v1/projects/{project}/team-grants"), grant),
        ]);
    }
    for (path, body) in refused {
        let fault = app.post(&path, &body).expect_error(409, code);
        let said = fault["message"].as_str().unwrap();
        assert!(said.contains("/unarchive"), "{path}: {said}");
    }
}

#[test]
fn an_archived_agent_is_hidden_starts_nothing_and_comes_back() {
    let app = App::start();
    let provider = provider();
    let maker = app.maker();
    let project = maker.project();
    let agent = maker.agent_of(project, &provider.base_url(), |_| {});
    let other = maker.agent_of(project, &provider.base_url(), |_| {});
    let path = format!("/v1/agents/{agent}");
    let before = app.get(&path).expect(200);
    assert_eq!(before["archivedAt"], Value::Null);
    let conversation = app
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect(201);
    let conversation: Uuid = made::id(&conversation).parse().unwrap();
    let archived = act(&app, "agents", agent, "archive");
    assert!(archived["archivedAt"].is_string(), "{archived}");
    assert_eq!(act(&app, "agents", agent, "archive"), archived, "again");
    assert_eq!(app.get(&path).expect(200), archived, "it is read as before");
    let of_project = format!("/v1/agents?projectId={project}");
    for list in ["/v1/agents?archived=false", "/v1/agents", &of_project] {
        assert_eq!(ids(&app, list), [other.to_string()], "{list}");
    }
    assert_eq!(ids(&app, "/v1/agents?archived=true"), [agent.to_string()]);
    refuses(&app, agent, None, conversation, "agent-archived");
    app.patch(&path, &json!({"description": "Old."}))
        .expect(200);
    let name = json!({"projectId": project, "name": before["name"]});
    app.post("/v1/agents", &name)
        .expect_error(409, "already-exists");

    let back = act(&app, "agents", agent, "unarchive");
    assert_eq!(back["archivedAt"], Value::Null);
    assert_eq!(act(&app, "agents", agent, "unarchive"), back, "again");
    assert_eq!(ids(&app, &of_project).len(), 2);
    let id = app.start_turn(agent, "Hi.");
    assert_eq!(app.finished(&id)["status"], "completed");
}

#[test]
fn an_archived_project_is_hidden_starts_nothing_and_comes_back() {
    // The limit of a key counts where authorization is on.
    let app = App::start_authorized();
    let provider = provider();
    let maker = app.maker();
    let (project, other) = (maker.project(), maker.project());
    let agent = maker.agent_of(project, &provider.base_url(), |_| {});
    let tool = maker.tool(project, &NewTool::new("tool", "http://127.0.0.1:9/"));
    let conversation = app
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect(201);
    let conversation: Uuid = made::id(&conversation).parse().unwrap();
    let first = app.start_turn(agent, "Hi.");
    app.finished(&first);
    let minted = json!({"name": "limited", "projectId": project});
    let limited = app.post("/v1/tokens", &minted).expect(201);
    let limited = app.with_token(limited["token"].as_str());
    let archived = act(&app, "projects", project, "archive");
    assert!(archived["archivedAt"].is_string(), "{archived}");
    assert_eq!(act(&app, "projects", project, "archive"), archived, "again");
    refuses(&app, agent, Some(project), conversation, "project-archived");
    for client in [&*app, &limited] {
        assert_eq!(
            client.get(&format!("/v1/projects/{project}")).expect(200),
            archived
        );
        client.get(&format!("/v1/runs/{first}")).expect(200);
        assert_eq!(
            ids(client, "/v1/projects?archived=true"),
            [project.to_string()]
        );
        assert_eq!(ids(client, "/v1/agents?archived=true"), [agent.to_string()]);
        assert_eq!(ids(client, "/v1/agents"), [""; 0]);
        assert_eq!(ids(client, "/v1/tools"), [tool.to_string()]);
        assert_eq!(ids(client, "/v1/runs"), std::slice::from_ref(&first));
    }
    assert_eq!(ids(&app, "/v1/projects"), [other.to_string()]);
    assert_eq!(ids(&limited, "/v1/projects"), [""; 0]);
    limited
        .post("/v1/runs", &turn(agent))
        .expect_error(409, "project-archived");
    // What takes away stays possible.
    app.delete(&format!("/v1/tools/{tool}")).expect(204);

    act(&app, "agents", agent, "archive");
    let back = act(&app, "projects", project, "unarchive");
    assert_eq!(back["archivedAt"], Value::Null);
    assert_eq!(ids(&limited, "/v1/projects"), [project.to_string()]);
    app.post("/v1/runs", &turn(agent))
        .expect_error(409, "agent-archived");
    act(&app, "agents", agent, "unarchive");
    app.finished(&app.start_turn(agent, "Hi."));
}

#[test]
fn what_is_under_way_ends_and_its_request_may_be_repeated() {
    let app = App::start();
    let puppet = Puppet::start();
    let maker = app.maker();
    let project = maker.project();
    let agent = maker.agent_of(project, &puppet.base_url(), |_| {});
    let send = || {
        let headers = [("idempotency-key", "k")];
        app.send("POST", "/v1/runs", Some(turn(agent).to_string()), &headers)
    };
    let started = send().expect(202);
    let call = puppet.call();
    act(&app, "agents", agent, "archive");
    act(&app, "projects", project, "archive");
    let again = send().expect(202);
    assert_eq!(again["run"]["id"], started["run"]["id"]);
    call.finish();
    let id = started["run"]["id"].as_str().unwrap();
    assert_eq!(app.finished(id)["status"], "completed");
}

#[test]
fn lists_are_bound_to_whether_they_are_of_what_is_archived() {
    let app = App::start();
    let maker = app.maker();
    let projects: Vec<Uuid> = (0..6).map(|_| maker.project()).collect();
    for project in &projects[..4] {
        act(&app, "projects", *project, "archive");
    }
    let page = app.get("/v1/projects?archived=true&limit=3").expect(200);
    assert_eq!(page["hasMore"], true);
    let cursor = page["nextCursor"].as_str().unwrap();
    app.get(&format!("/v1/projects?limit=3&cursor={cursor}"))
        .expect_error(400, "invalid-cursor");
    let rest = format!("/v1/projects?archived=true&limit=3&cursor={cursor}");
    assert_eq!(ids(&app, &rest), [projects[0].to_string()]);
    app.get("/v1/agents?archived=maybe")
        .expect_error(400, "invalid-request");
}

/// Whatever begins first: once an archive is answered, no start that is sent after it succeeds, and each start is answered with
/// its run or with the refusal.
#[test]
fn a_start_beside_an_archive_is_whole_or_refused() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    for _ in 0..10 {
        let client: &Client = &app;
        let start = || {
            let answer = client.post("/v1/runs", &turn(agent));
            (answer.status, answer.json())
        };
        let starting = || (0..5).map(|_| start()).collect::<Vec<_>>();
        let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..3).map(|_| scope.spawn(starting)).collect();
            act(&app, "agents", agent, "archive");
            app.post("/v1/runs", &turn(agent))
                .expect_error(409, "agent-archived");
            starts
                .into_iter()
                .flat_map(|one| one.join().unwrap())
                .collect()
        });
        for (status, answer) in answers {
            match status {
                202 => {
                    app.finished(answer["run"]["id"].as_str().unwrap());
                }
                _ => assert_eq!(answer["error"]["code"], "agent-archived", "{answer}"),
            }
        }
        let events = "select count(*) from run_events e where not exists (
             select from runs r where r.tenant_id = e.tenant_id and r.run_id = e.run_id)";
        let left: i64 = app.database.client().query_one(events, &[]).unwrap().get(0);
        assert_eq!(left, 0);
        act(&app, "agents", agent, "unarchive");
    }
}
