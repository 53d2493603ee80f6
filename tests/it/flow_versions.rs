//! Flows, their versions, and what a run finds of them.

use crate::harness::{App, made};
use agent_runtime::store::flow_versions::{self, Use, UseKind};
use agent_runtime::store::flows;
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn a_run_finds_its_definition_with_what_the_version_was_made_with() {
    let app = App::start();
    let project: Uuid = made::project(&app).parse().unwrap();
    let tool = app
        .post("/v1/tools", &made::tool(&project.to_string(), "orders_get"))
        .expect(201);
    let tool: Uuid = made::id(&tool).parse().unwrap();
    let (tenant, user, flow) = (app.seeds.tenant_id, app.seeds.user_id, Uuid::from_u128(7));
    let definition = json!({"z": 1, "a": [{"order": {"call": "tool"}}]});
    let mut client = app.database.client();
    let fill = format!(
        "insert into flows (tenant_id, id, project_id, flow_id, title, description, created_by, created_at, updated_at)
           values ('{tenant}', '{flow}', '{project}', 'billing.refund', '', '', '{user}', now(), now());
         insert into flow_versions (tenant_id, id, version, position, definition, digest, created_by, created_at)
           values ('{tenant}', '{flow}', '1.2.0', 1, '{definition}', sha256('x'), '{user}', now());
         insert into flow_version_uses (tenant_id, id, version, position, kind, name, tool_id, used_id, used_version)
           values ('{tenant}', '{flow}', '1.2.0', 2, 'flow', 'billing.refund', null, '{flow}', '1.2.0'),
             ('{tenant}', '{flow}', '1.2.0', 1, 'tool', 'orders_get', '{tool}', null, null);
         update flows set latest_version = '1.2.0'"
    );
    client.batch_execute(&fill).unwrap();
    let mut sql = app.server().shared().store.session().unwrap();
    let mut find = |tenant, project, flow_id: &str, version: &str| {
        flow_versions::definition_of(&mut sql, (tenant, project), flow_id, version).unwrap()
    };
    let found = find(tenant, project, "billing.refund", "1.2.0").unwrap();
    assert_eq!(found.id, flow);
    assert_eq!(found.definition.to_string(), definition.to_string());
    let used = |kind, name: &str, version: Option<&str>, id| Use {
        kind,
        name: name.to_owned(),
        version: version.map(str::to_owned),
        id,
    };
    let expected = [
        used(UseKind::Tool, "orders_get", None, tool),
        used(UseKind::Flow, "billing.refund", Some("1.2.0"), flow),
    ];
    assert_eq!(found.uses, expected);
    for (tenant, project, flow_id, version) in [
        (user, project, "billing.refund", "1.2.0"),
        (tenant, user, "billing.refund", "1.2.0"),
        (tenant, project, "billing.other", "1.2.0"),
        (tenant, project, "billing.refund", "1.2.1"),
    ] {
        assert_eq!(find(tenant, project, flow_id, version), None);
    }
    let named = flows::named(&mut sql, (tenant, project), "billing.refund").unwrap();
    assert_eq!(named.unwrap().current_version(), Some("1.2.0"));
    client
        .execute(
            "update flows set live_version = '1.2.0', latest_version = null",
            &[],
        )
        .unwrap();
    let named = flows::named(&mut sql, (tenant, project), "billing.refund").unwrap();
    assert_eq!(named.unwrap().current_version(), Some("1.2.0"));
    // What it names stays: a tool that a version names is not deleted.
    let gone = app.delete(&format!("/v1/tools/{tool}"));
    let refused: Value = gone.expect_error(409, "conflict");
    assert!(
        refused["message"].as_str().unwrap().contains("flow"),
        "{refused}"
    );
}
