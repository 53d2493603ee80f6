//! Child runs send no webhooks.

use super::world::{built_in, scripted};
use crate::harness::secrets::Keys;
use crate::harness::{App, eventually};
use crate::runtime::world::{Root, started_by};
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{self, Labels, NewRun, Origin, Run, StartOptions};
use serde_json::json;
use uuid::Uuid;

#[test]
fn child_runs_are_told_to_no_endpoint() {
    let app = App::start_with(|options| {
        options.secrets = Keys::new().options();
        options.runs.built_in = built_in();
    });
    let shared = app.server().shared();
    let number = |query: &'static str| -> i64 {
        let mut session = shared.store.session().unwrap();
        session.query_one(query, &[]).unwrap().get(0)
    };
    let (tenant_id, user_id, project_id): (Uuid, Uuid, Uuid) = {
        let mut session = shared.store.session().unwrap();
        let row = session
            .query_one(
                "select tenant_id, user_id, gen_random_uuid() from users limit 1",
                &[],
            )
            .unwrap();
        (row.get(0), row.get(1), row.get(2))
    };
    shared
        .store
        .transact(|tx| {
            Ok(tx.raw().batch_execute(&format!(
                "insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
                 values ('{tenant_id}', '{project_id}', 'p', '{user_id}', now(), now());
                 insert into webhook_endpoints (tenant_id, endpoint_id, url, events, secret_environment, secret_name,
                   has_filter, created_by, created_at, updated_at)
                 values ('{tenant_id}', gen_random_uuid(), 'http://127.0.0.1:1/', '{{run.finished}}', 'test', 'hook',
                   false, '{user_id}', now(), now())"
            ))?)
        })
        .unwrap();
    let run = NewRun {
        run_id: app.clock.new_id(),
        project_id,
        flow_id: String::new(),
        flow_version: "1.0.0".to_owned(),
        origin: Origin::App,
        dry_run: false,
        agent: None,
        labels: Labels::default(),
        options: StartOptions::default(),
        input: json!({}),
        message: None,
        created_by: user_id,
        request_id: Uuid::nil(),
        created_at: app.clock.now(),
    };
    let children = json!([{"script": {"steps": []}}, {"script": {"steps": [], "fails": "No."}}]);
    let run = scripted(run, &json!({"steps": [{"children": children}]}));
    let may = Root(tenant_id, project_id);
    shared
        .store
        .transact(|tx| shared.runtime.create::<Run>(tx, &may, &run, started_by()))
        .unwrap();
    shared.runtime.wake();
    eventually("the run to end", || {
        let mut session = shared.store.session().unwrap();
        let run = runs::find(&mut session, tenant_id, run.run_id).unwrap();
        run.status.is_finished().then_some(())
    });
    assert_eq!(number("select count(*) from runs"), 3);
    assert_eq!(
        number("select count(*) from webhook_events"),
        1,
        "of the root alone"
    );
}
