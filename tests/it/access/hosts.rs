//! Hosts that a deployment does not let its tenants reach: what the API refuses is recorded.

use super::world::{World, authorized};
use crate::harness::openfga::OpenFga;
use crate::harness::{App, Client, made};
use agent_runtime::outbound::{self, HostAccess, OperatorEndpoint, Outbound};
use serde_json::{Value, json};

#[test]
fn a_refused_host_is_recorded_where_the_api_answers_it_and_not_where_a_run_meets_it() {
    let local = World::start();
    let (database, clock, seeds) = local.app.stop();
    let app = App::start_on(database, clock, seeds, |options| {
        authorized(options, &OpenFga::shared().url());
        options.runs.host_access = HostAccess::Deployed;
    });
    app.is_in_step();
    let world = World { app, ..local };
    // The agent's provider is on this host.
    let run = world.app.start_turn(world.agent, "say");
    let run = world.app.finished(&run);
    assert_eq!(run["status"], json!("failed"), "{run}");
    let refused = || world.rows("stage = 'host-access-denied'", &[]);
    assert_eq!(refused(), [], "the attempt of a run is no request");

    let (tenant, project) = (
        format!("tenant:{}", world.tenant_id()),
        format!("project:{}", world.project),
    );
    let tool = |url: &str| {
        let body = json!({
            "projectId": world.project, "name": "clock", "description": "Tells the time.",
            "argumentsSchema": {"type": "object"}, "url": url,
        });
        world.app.post("/v1/tools", &body)
    };
    let models = json!([{"name": "model"}]);
    let provider = |url: &str| {
        let body = json!({"name": "a provider", "baseUrl": url, "models": models});
        world.app.post("/v1/model-providers", &body)
    };
    let one = format!("/v1/model-providers/{}", world.model_provider);
    let change = |url: &str| world.app.patch(&one, &json!({"baseUrl": url}));
    let mut count = 0;
    for url in ["http://127.0.0.1:9/v1", "http://169.254.169.254/v1"] {
        for (answer, resource) in [
            (tool(url), &project),
            (provider(url), &tenant),
            (change(url), &tenant),
        ] {
            let recorded = world.decisions(&answer);
            let message = answer.expect_error(403, "host-access-denied")["message"].clone();
            let last = recorded.last().unwrap();
            assert_eq!(
                (
                    last.stage.as_str(),
                    last.outcome.as_str(),
                    last.action.as_str()
                ),
                ("host-access-denied", "denied", "admin")
            );
            assert_eq!(&last.resource, resource);
            let reason = format!("host-access-denied: {}", message.as_str().unwrap());
            assert_eq!(last.reason, reason);
            count += 1;
        }
        assert_eq!(refused().len(), count, "once each");
    }
    // A URL that is none, and one that may be reached, are no refusals of access.
    provider("not a url").expect_error(400, "invalid-body");
    tool("http://10.0.0.1/clock").expect(201);
    assert_eq!(refused().len(), count);
}

/// OpenFGA here is on loopback, which is why everything else may be reached: without a rule of its own
/// the flow would write its author's permissions.
#[test]
fn a_flow_does_not_write_permissions_into_the_authorization_server() {
    let fga = OpenFga::shared();
    let world = World::start_with(|options| {
        options.runs.host_access = HostAccess::Local;
        options.outbound = Outbound::new(outbound::Options {
            operator_endpoints: vec![OperatorEndpoint::authorization_server(fga.url())],
            ..outbound::Options::default()
        })
        .unwrap();
    });
    let tenant_id = world.tenant_id();
    let author = world.person("member");
    world.grant(world.project, author.user_id, "admin");
    let store = "select store_id from authz_stores where tenant_id = $1";
    let store = world
        .app
        .database
        .client()
        .query_one(store, &[&tenant_id])
        .unwrap();
    let store: String = store.get(0);
    let tuple = json!({
        "user": format!("user:{}", author.user_id),
        "relation": "admin",
        "object": format!("tenant:{tenant_id}"),
    });
    let write = json!({"call": "http", "with": {
        "method": "post",
        "endpoint": format!("{}/stores/{store}/write", fga.url()),
        "body": {"writes": {"tuple_keys": [tuple]}},
    }});
    let document =
        json!({"dsl": "1.0.3", "namespace": "test", "name": "climbs", "version": "1.0.0"});
    let definition = json!({"document": document, "do": [{"write": write}]});
    let body = json!({"projectId": world.project, "definition": definition});
    author.client.post("/v1/flows", &body).expect(201);
    let start = json!({"flowId": "test.climbs", "input": {}});
    let started = author.client.post("/v1/runs", &start).expect(202);
    let run = author.client.finished(&made::id(&started["run"]));
    assert_eq!(run["status"], json!("failed"), "{run}");
    let message = run["failureMessage"].as_str().unwrap();
    assert!(message.contains("SVC_AUTHZ_API_URL"), "{message}");
    let read = Client::new(fga.address(), None)
        .post(
            &format!("/stores/{store}/read"),
            &json!({"tuple_key": tuple}),
        )
        .expect(200);
    assert_eq!(read["tuples"], Value::Array(Vec::new()), "{read}");
    world.app.get("/v1/agents").expect(200);
}
