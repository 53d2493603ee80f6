//! Registering tools that are agents and flows: what is taken, and what is refused by name.

use super::{World, definition};
use crate::harness::made;
use crate::runtime::world::World as Rows;
use serde_json::{Value, json};

#[test]
fn a_tool_is_an_agent_or_a_flow_and_says_so() {
    let world = World::start();
    let clerk = world.clerk(vec![]);
    let schema = json!({"required": ["order"], "properties": {"order": {"type": "string"}}});
    world.flow("refund", json!([{"one": {"set": {"n": 1}}}]), schema);
    let post = |name: &str, fields: Value| {
        let body = world.body(name, &fields);
        world.app.post("/v1/tools", &body).expect(201)
    };
    let agent = post("clerk", json!({"agent": {"id": clerk}}));
    assert_eq!(agent["target"], json!("agent"));
    assert_eq!(agent["agent"], json!({"id": clerk, "version": null}));
    for field in ["flow", "url", "timeoutMs", "dryRun", "signingSecret"] {
        assert_eq!(agent[field], Value::Null, "{field}: {agent}");
    }
    let message = &agent["argumentsSchema"];
    assert_eq!(message["required"], json!(["message"]));
    assert_eq!(message["additionalProperties"], json!(false));
    let flow = json!({"flowId": "test.refund", "version": "1.0.0"});
    let named = post(
        "refund",
        json!({"flow": flow, "approval": {"title": "Refund"}}),
    );
    assert_eq!((&named["target"], &named["flow"]), (&json!("flow"), &flow));
    assert_eq!(named["agent"], Value::Null);
    assert_eq!(named["approval"]["title"], json!("Refund"));
    assert_eq!(
        named["argumentsSchema"],
        json!({"required": ["order"], "properties": {"order": {"type": "string"}}, "type": "object"})
    );
    let own = json!({"type": "object", "properties": {"o": {"const": 1}}});
    let given = post(
        "own",
        json!({"flow": {"flowId": "test.refund"}, "argumentsSchema": own}),
    );
    assert_eq!(given["argumentsSchema"], own);
    world.flow("anything", json!([{"one": {"set": {"n": 1}}}]), Value::Null);
    let any = post("any", json!({"flow": {"flowId": "test.anything"}}));
    assert_eq!(any["argumentsSchema"], json!({"type": "object"}));
    let path = format!("/v1/tools/{}", made::id(&named));
    assert_eq!(world.app.get(&path).expect(200), named);
    let listed = world.app.get("/v1/tools?order=asc").expect(200);
    assert_eq!(listed["data"], json!([agent, named, given, any]));
    world.app.delete(&path).expect(204);
}

/// Where a body is refused.
#[track_caller]
fn refused(world: &World, fields: &Value) -> Vec<String> {
    let body = world.body("tool", fields);
    let refused = world.app.post("/v1/tools", &body);
    let refused = refused.expect_error(400, "invalid-body");
    let faults = refused["details"]["faults"].as_array().cloned();
    let faults = faults.unwrap_or_else(|| vec![refused["details"].clone()]);
    let mut paths: Vec<String> = faults
        .iter()
        .map(|fault| fault["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[test]
fn fields_of_another_kind_of_tool_are_refused_by_name() {
    let world = World::start();
    let clerk = world.clerk(vec![]);
    world.flow("tells", json!([{"one": {"set": {"n": 1}}}]), Value::Null);
    let agent = json!({"id": clerk});
    let flow = json!({"flowId": "test.tells"});
    let of_http = json!({"url": "http://127.0.0.1:9/", "timeoutMs": 5, "idempotent": true, "dryRun": "call",
        "headers": [{"name": "X-Key", "secret": "KEY"}], "signingSecret": "KEY"});
    let http = [
        "$.dryRun",
        "$.headers",
        "$.idempotent",
        "$.signingSecret",
        "$.timeoutMs",
        "$.url",
    ];
    let with = |own: Value| {
        let mut fields = of_http.clone();
        fields
            .as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        fields
    };
    assert_eq!(refused(&world, &with(json!({"flow": flow}))), http);
    assert_eq!(refused(&world, &with(json!({"agent": agent}))), http);
    let schema = json!({"type": "object"});
    let both = json!({"agent": agent, "flow": flow, "argumentsSchema": schema});
    assert_eq!(refused(&world, &both), ["$.argumentsSchema", "$.flow"]);
    assert_eq!(refused(&world, &json!({})), ["$.argumentsSchema", "$.url"]);
    let url = json!({"url": "http://127.0.0.1:9/"});
    assert_eq!(refused(&world, &url), ["$.argumentsSchema"]);
    for (fields, path) in [
        (
            json!({"agent": {"id": clerk, "version": "1"}}),
            "$.agent.version",
        ),
        (json!({"agent": {"id": "clerk"}}), "$.agent.id"),
        (json!({"flow": {"id": clerk}}), "$.flow.id"),
        (
            json!({"agent": {"id": clerk, "version": "9.9.9"}}),
            "$.agent.version",
        ),
        (json!({"flow": {"flowId": "test.nothing"}}), "$.flow.flowId"),
        (
            json!({"flow": {"flowId": "test.tells", "version": "9.9.9"}}),
            "$.flow.version",
        ),
    ] {
        let found = refused(&world, &fields);
        assert!(
            found.iter().any(|found| found == path),
            "{fields}: {found:?}"
        );
    }
}

#[test]
fn a_flow_whose_input_is_no_object_needs_a_schema_of_the_tools_own() {
    let world = World::start();
    let list = json!({"type": "array"});
    world.flow("lists", json!([{"one": {"set": {"n": 1}}}]), list);
    let of = json!({"flow": {"flowId": "test.lists"}});
    assert_eq!(refused(&world, &of), ["$.argumentsSchema"]);
}

#[test]
fn what_is_of_another_project_or_archived_is_no_tool() {
    let world = World::start();
    let clerk = world.clerk(vec![]);
    let flow = world.flow("tells", json!([{"one": {"set": {"n": 1}}}]), Value::Null);
    let agent = json!({"agent": {"id": clerk}});
    let of_flow = json!({"flow": {"flowId": "test.tells"}});
    // Another project of the tenant, and one of another tenant.
    let stranger = World::start();
    let elsewhere = world.app.maker().project();
    for (app, project) in [(&world.app, elsewhere), (&stranger.app, stranger.project)] {
        for (fields, path) in [(&agent, "$.agent.id"), (&of_flow, "$.flow.flowId")] {
            let mut body = world.body("tool", fields);
            body["projectId"] = json!(project);
            let said = app
                .post("/v1/tools", &body)
                .expect_error(400, "invalid-body");
            assert_eq!(said["details"]["path"], json!(path), "{said}");
        }
    }
    for (path, fields, code) in [
        (format!("/v1/agents/{clerk}"), &agent, "agent-archived"),
        (format!("/v1/flows/{flow}"), &of_flow, "flow-archived"),
    ] {
        world
            .app
            .send("POST", &format!("{path}/archive"), None, &[])
            .expect(200);
        let body = world.body("tool", fields);
        world.app.post("/v1/tools", &body).expect_error(409, code);
    }
}

#[test]
fn the_database_holds_that_a_tool_and_what_it_calls_are_of_one_project() {
    let rows = Rows::new();
    let other = rows.clock.new_id();
    rows.batch(&format!(
        "insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
         values ('{}', '{other}', 'other', '{}', now(), now())",
        rows.tenant_id, rows.user_id
    ));
    rows.batch(&format!(
        "insert into flows (tenant_id, id, project_id, flow_id, title, description, last_position, created_by, created_at, updated_at)
         values ('{}', '{}', '{}', 'test.tells', '', '', 0, '{}', now(), now())",
        rows.tenant_id,
        rows.clock.new_id(),
        rows.project_id,
        rows.user_id
    ));
    let insert = |project, fields: &str, values: &str| {
        let statement = format!(
            "insert into tools (tenant_id, tool_id, project_id, name, description, arguments_schema, timeout_ms, idempotent,
               created_by, created_at, {fields})
             values ('{}', '{}', '{project}', '{}', '', '{{}}', 1, false, '{}', now(), {values})",
            rows.tenant_id,
            rows.clock.new_id(),
            rows.clock.new_id().simple(),
            rows.user_id
        );
        let inserted = rows
            .store
            .transact(|tx| Ok(tx.raw().batch_execute(&statement)?));
        inserted.is_ok()
    };
    let agent = format!("'agent', '', '{}'", rows.agent_id);
    for (project, is_taken) in [(rows.project_id, true), (other, false)] {
        assert_eq!(insert(project, "target, url, agent_id", &agent), is_taken);
        let flow = "'flow', '', 'test.tells'";
        assert_eq!(insert(project, "target, url, flow_id", flow), is_taken);
    }
    let wrong = [
        ("target, url", "'agent', ''".to_owned()),
        ("target, url", "'flow', ''".to_owned()),
        ("target, url", "'http', ''".to_owned()),
        (
            "target, url, agent_id",
            format!("'http', 'http://a', '{}'", rows.agent_id),
        ),
        (
            "target, url, agent_id, agent_version",
            format!("{agent}, '9.9.9'"),
        ),
        (
            "target, url, agent_id, flow_version",
            format!("{agent}, '1.0.0'"),
        ),
    ];
    for (fields, values) in &wrong {
        assert!(
            !insert(rows.project_id, fields, values),
            "{fields}: {values}"
        );
    }
    let kept = "select count(*) from tools where target <> 'http'";
    assert_eq!(rows.number(kept), 2);
}

#[test]
fn a_tool_of_a_live_flow_takes_the_input_of_the_version_that_runs_now() {
    let world = World::start();
    let one = json!([{"one": {"set": {"n": 1}}}]);
    let schema = |name: &str| json!({"type": "object", "required": [name]});
    let flow = world.flow("tells", one.clone(), schema("old"));
    let next = definition("tells", "2.0.0", one, schema("new"));
    let path = format!("/v1/flows/{flow}");
    let body = json!({"definition": next});
    world
        .app
        .post(&format!("{path}/versions"), &body)
        .expect(201);
    let of = |name: &str| {
        let body = world.body(name, &json!({"flow": {"flowId": "test.tells"}}));
        world.app.post("/v1/tools", &body).expect(201)["argumentsSchema"].clone()
    };
    assert_eq!(of("latest"), schema("new"));
    let live = json!({"version": "1.0.0"});
    world
        .app
        .post(&format!("{path}/promote"), &live)
        .expect(200);
    assert_eq!(of("live"), schema("old"));
}
