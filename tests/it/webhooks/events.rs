//! Which endpoints are told of what (specification sections 6.1 and 6.3).

use super::world::{World, webhooks};
use crate::harness::{App, Puppet, Receiver};
use agent_runtime::store::Store;
use agent_runtime::webhooks::event::{Approval, Event, ImprovementPass, PassStatus};
use serde_json::{Value, json};
use uuid::Uuid;

/// The paths that an event came to, once none waits any more.
fn paths(world: &World, receiver: &Receiver) -> Vec<String> {
    crate::harness::eventually("all to be delivered", || {
        let waiting = "select count(*) from webhook_deliveries where state = 'being-sent'";
        (world.number(waiting) == 0).then_some(())
    });
    let received = receiver.received();
    let mut paths: Vec<String> = received.into_iter().map(|one| one.path).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn filters_of_finished_runs() {
    let world = World::new();
    let receiver = Receiver::good();
    let run_id = world.run();
    let project = world.app.run(&run_id)["projectId"].clone();
    let other = world.app.maker().project();
    for (path, filter) in [
        ("all", Value::Null),
        ("project", json!({"projectId": project})),
        ("other", json!({"projectId": other})),
        ("flow", json!({"flowIds": ["agent.turn", "test.more"]})),
        ("no-flow", json!({"flowIds": ["test.more"]})),
        ("dry", json!({"includeDryRuns": true})),
        ("not-dry", json!({"includeDryRuns": false})),
        (
            "both",
            json!({"projectId": project, "flowIds": ["test.more"]}),
        ),
    ] {
        let url = format!("http://{}/{path}", receiver.address());
        world.endpoint_with(&url, &["run.finished", "approval.requested"], &filter);
    }
    world.endpoint_with(
        &format!("http://{}/passes", receiver.address()),
        &["improvement-pass.finished"],
        &Value::Null,
    );
    world.run();
    assert_eq!(
        paths(&world, &receiver),
        ["/all", "/dry", "/flow", "/not-dry", "/project"]
    );
    world.run_of(&json!({"agentId": world.agent, "message": "Go.", "dryRun": true}));
    assert_eq!(
        paths(&world, &receiver),
        [
            "/all", "/all", "/dry", "/dry", "/flow", "/not-dry", "/project"
        ]
    );
}

#[test]
fn where_no_endpoint_matches_nothing_is_written() {
    let world = World::new();
    world.endpoint_with("http://127.0.0.1:9/", &["approval.requested"], &Value::Null);
    world.run();
    for table in ["webhook_events", "webhook_deliveries"] {
        assert_eq!(world.number(&format!("select count(*) from {table}")), 0);
    }
    assert_eq!(world.number("select count(*) from job_jobs"), 0);
}

#[test]
fn every_way_a_run_ends_is_told_and_runs_inside_runs_are_not() {
    let app = App::start_with(|options| {
        webhooks(options);
        options.runs.threads = 1;
    });
    app.put(
        "/v1/secrets/test/hook",
        &json!({"value": super::world::SECRET}),
    )
    .expect(201);
    let receiver = Receiver::good();
    let body = json!({"url": receiver.url(), "events": ["run.finished"],
        "secretRef": {"envName": "test", "name": "hook"}});
    app.post("/v1/webhook-endpoints", &body).expect(201);
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let told = |count: usize, run_id: &str, status: &str| {
        let all = receiver.once(count);
        assert_eq!(all.len(), count);
        let run = all[count - 1].json()["data"]["run"].clone();
        assert_eq!(
            (&run["id"], &run["status"]),
            (&json!(run_id), &json!(status))
        );
        run
    };
    let running = app.start_turn(agent, "a");
    let call = puppet.call();
    let queued = app.start_turn(agent, "b");
    app.cancel(&queued);
    told(1, &queued, "cancelled");
    app.cancel(&running);
    told(2, &running, "cancelled");
    drop(call);
    let inside = app.start_turn(agent, "c");
    let call = puppet.call();
    app.sql(&format!(
        "update runs set origin = 'run' where run_id = '{inside}'"
    ));
    call.finish();
    app.finished(&inside);
    let cli = app
        .send(
            "POST",
            "/v1/runs",
            Some(json!({"agentId": agent, "message": "d"}).to_string()),
            &[("svc-origin", "command-line")],
        )
        .expect(202);
    let cli = cli["run"]["id"].as_str().unwrap().to_owned();
    puppet.call().finish();
    told(3, &cli, "completed");
    let failing = app.start_turn(agent, "e");
    // Neither text nor a call: the model's answer cannot be used, however often it is asked.
    while !crate::harness::is_finished(&app.run(&failing)) {
        if let Some(call) = puppet.waiting() {
            drop(call);
        }
        crate::harness::moment();
    }
    let run = told(4, &failing, "failed");
    assert!(run["failureMessage"].is_string());
}

#[test]
fn passes_and_approvals_know_the_project_alone() {
    let world = World::new();
    let receiver = Receiver::good();
    let project = world.app.maker().project();
    let both = ["improvement-pass.finished", "approval.requested"];
    for (path, filter) in [
        ("all", Value::Null),
        ("here", json!({"projectId": project})),
        ("there", json!({"projectId": world.app.maker().project()})),
    ] {
        let url = format!("http://{}/{path}", receiver.address());
        world.endpoint_with(&url, &both, &filter);
    }
    let now = world.app.clock.now().into();
    let id = world.app.clock.new_id();
    let approval = Event::ApprovalRequested {
        approval: Approval {
            approval_id: id,
            project_id: project,
            required_role: "admin".to_owned(),
            title: "Send it".to_owned(),
            assigned_to: None,
            created_at: now,
            expires_at: now,
            url: None,
        },
    };
    emit(&world, &approval, true);
    assert_eq!(paths(&world, &receiver), ["/all", "/here"]);
    for one in receiver.received() {
        assert_eq!(one.header("webhook-id"), id.to_string());
        assert_eq!(one.json()["data"]["approval"]["approvalId"], json!(id));
    }
    let pass = Event::ImprovementPassFinished {
        pass: ImprovementPass {
            id,
            project_id: project,
            status: PassStatus::Cancelled,
            outcome: None,
            created_at: now,
            completed_at: now,
        },
    };
    emit(&world, &pass, false);
    assert_eq!(
        world.number("select count(*) from webhook_events"),
        1,
        "rolled back"
    );
    emit(&world, &pass, true);
    assert_eq!(paths(&world, &receiver), ["/all", "/all", "/here", "/here"]);
    let ids: std::collections::HashSet<Uuid> = receiver
        .received()
        .iter()
        .map(|one| one.header("webhook-id").parse().unwrap())
        .collect();
    assert_eq!(ids.len(), 2);
}

fn emit(world: &World, event: &Event, commit: bool) {
    let shared = world.app.server().shared();
    let store: &Store = &shared.store;
    let tenant_id = world.app.seeds.tenant_id;
    let done = store.transact(|tx| {
        shared.webhooks.emit(tx, tenant_id, event)?;
        match commit {
            true => Ok(()),
            false => Err(agent_runtime::error::Error::internal("changed our mind")),
        }
    });
    assert_eq!(done.is_ok(), commit);
}

#[test]
fn another_tenants_runs_are_not_told() {
    let world = World::new();
    let receiver = Receiver::good();
    world.endpoint(&receiver.url());
    let other = world.app.other_tenant();
    let puppet = Puppet::start();
    let agent = other.agent(&puppet.base_url());
    let run_id = other.start_turn(agent, "a");
    puppet.call().finish();
    other.finished(&run_id);
    assert_eq!(world.number("select count(*) from webhook_events"), 0);
    world.run();
    receiver.once(1);
}

#[test]
fn without_a_backend_of_secrets_nothing_is_sent() {
    let world = World::new();
    let receiver = Receiver::good();
    world.endpoint(&receiver.url());
    let World { app, .. } = world;
    let (database, clock, seeds) = app.stop();
    let app = App::start_on(database, clock, seeds, |_| {});
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let run_id = app.start_turn(agent, "a");
    puppet.call().finish();
    app.finished(&run_id);
    let mut client = app.database.client();
    let events = client.query_one("select count(*) from webhook_events", &[]);
    assert_eq!(events.unwrap().get::<_, i64>(0), 0);
    assert_eq!(receiver.received().len(), 0);
}
