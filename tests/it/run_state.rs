//! Where a run stands, as the API shows it. Of flows that run: `flow_runs::state`.

use crate::harness::App;
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::store::flow_states::FORMAT;
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn where_a_run_stands_is_shown_within_a_bound_and_a_later_form_is_refused() {
    let app = App::start();
    let then = Step::text("Well.");
    let queue = Vec::new();
    let model = Provider::start(Script { queue, then }).unwrap();
    let run = app.start_turn(app.agent(&model.base_url()), "Hello");
    app.finished(&run);
    let path = format!("/v1/runs/{run}/state");
    let state = app.get(&path).expect(200);
    assert_eq!(state["status"], "completed");
    assert_eq!((&state["step"], &state["flow"]), (&json!(1), &Value::Null));
    assert!(state.get("waitingFor").is_none() && state.get("path").is_none());
    let run_id: Uuid = run.parse().unwrap();
    let mut client = app.database.client();
    client
        .execute(
            "update run_steps set path = '/do/1/each/do/0/nap' where run_id = $1",
            &[&run_id],
        )
        .unwrap();
    let frames = json!([
        {"task": 1, "input": "x".repeat(20_000), "began": "2026-01-02T03:04:05Z",
            "at": {"for": {"items": [1, 2, 3], "item": 2}}},
        {"task": 0, "input": {"n": 1}, "began": "2026-01-02T03:04:06Z", "at": "effect"},
    ]);
    let insert = "insert into flow_states (tenant_id, run_id, format, frames, data, context, tasks, slots)
        select tenant_id, run_id, 1, $2, '[1]', '{\"kept\": true}', 7, 0 from runs where run_id = $1";
    client.execute(insert, &[&run_id, &frames]).unwrap();
    let state = app.get(&path).expect(200);
    assert_eq!(state["path"], "/do/1/each/do/0/nap");
    let flow = &state["flow"];
    let expected = json!([
        {"path": "/do/1/each", "position": "for", "startedAt": "2026-01-02T03:04:05.000Z", "index": 2, "items": 3,
            "input": {"bytes": 20_002, "value": null}},
        {"path": "/do/1/each/do/0/nap", "position": "effect", "startedAt": "2026-01-02T03:04:06.000Z",
            "input": {"bytes": 7, "value": {"n": 1}}},
    ]);
    assert_eq!(flow["tasks"], expected);
    assert_eq!(flow["data"], json!({"bytes": 3, "value": [1]}));
    assert_eq!(flow["context"]["value"], json!({"kept": true}));
    assert_eq!(
        (&flow["format"], &flow["tasksEntered"]),
        (&json!(1), &json!(7))
    );
    app.other_tenant().get(&path).expect_error(404, "not-found");
    client
        .execute(
            "update flow_states set format = $2 where run_id = $1",
            &[&run_id, &(FORMAT + 1)],
        )
        .unwrap();
    app.get(&path).expect_error(503, "newer-format");
}
