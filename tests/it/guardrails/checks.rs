//! `GET /v1/runs/{runId}/checks`: the rows in order, page by page, and without reasons once the run is erased.

use crate::harness::{App, eventually, made};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// A server with a run that has ended, in a conversation.
fn with_run() -> (App, Provider, String, String) {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Well."),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    let conversation = made::id(
        &app.post("/v1/conversations", &json!({"agentId": agent}))
            .expect(201),
    );
    let body = json!({"agentId": agent, "message": "a", "conversationId": conversation});
    let started = app.post("/v1/runs", &body).expect(202);
    let run = made::id(&started["run"]);
    app.finished(&run);
    (app, provider, run, conversation)
}

/// Writes a check of the run; of a policy if it has a version.
fn write(app: &App, run: &str, place: [i32; 3], policy_version: Option<i32>) {
    let [step, attempt, ordinal] = place;
    let row = "insert into run_checks (tenant_id, run_id, step, attempt, ordinal, point, call, name, evaluator, origin,
          policy_version, verdict, code, reason, on_error, duration_us, digest, created_at)
        values ($1, $2, $3, $4, $5, 'tool.arguments', 1, 'cards', 'builtin:pii', $6, $7, 'failed', 'failed', 'It crashed.',
          'allow-unsafely', 12, sha256('a'), '2026-01-02T03:04:05.678Z')";
    let origin = policy_version.map_or("agent", |_| "tenant");
    let run: Uuid = run.parse().unwrap();
    let mut client = app.database.client();
    let tenant = app.seeds.tenant_id;
    client
        .execute(
            row,
            &[
                &tenant,
                &run,
                &step,
                &attempt,
                &ordinal,
                &origin,
                &policy_version,
            ],
        )
        .unwrap();
}

fn places(page: &Value) -> Vec<[i64; 3]> {
    let rows = page["data"].as_array().unwrap().iter();
    let number = |row: &Value, field: &str| row[field].as_i64().unwrap();
    rows.map(|row| ["step", "attempt", "ordinal"].map(|field| number(row, field)))
        .collect()
}

#[test]
fn checks_are_listed_in_the_order_of_steps_attempts_and_checks() {
    let (app, _provider, run, _) = with_run();
    let path = format!("/v1/runs/{run}/checks");
    assert_eq!(app.get(&path).expect(200)["data"], json!([]));
    let order = [[1, 1, 0], [1, 1, 1], [1, 2, 0], [2, 1, 0], [10, 1, 0]];
    for place in [order[4], order[1], order[0], order[3], order[2]] {
        write(&app, &run, place, None);
    }
    let order = order.map(|place| place.map(i64::from));
    let all = app.get(&format!("{path}?order=asc")).expect(200);
    assert_eq!(places(&all), order);
    let mut back = order.to_vec();
    back.reverse();
    assert_eq!(places(&app.get(&path).expect(200)), back);
    for (order, expected) in [("asc", order.to_vec()), ("desc", back)] {
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = app.get(&format!("{path}?order={order}&limit=2{cursor}"));
            let page = page.expect(200);
            found.extend(places(&page));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "{order}");
    }
    let steps = app
        .get(&format!("/v1/runs/{run}/steps?limit=1"))
        .expect(200);
    if let Some(cursor) = steps["nextCursor"].as_str() {
        app.get(&format!("{path}?cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    app.get(&format!("{path}?limit=201"))
        .expect_error(400, "invalid-request");
    app.get(&format!("{path}?verdict=block"))
        .expect_error(400, "invalid-request");
    app.other_tenant().get(&path).expect_error(404, "not-found");
}

#[test]
fn a_check_has_all_its_fields_and_an_erased_run_keeps_it_without_its_reason() {
    let (app, _provider, run, conversation) = with_run();
    let path = format!("/v1/runs/{run}/checks?order=asc");
    write(&app, &run, [1, 1, 0], Some(3));
    write(&app, &run, [1, 1, 1], None);
    let expected = |ordinal: i32, origin: &str, version: Value, reason: Value| {
        json!({"step": 1, "attempt": 1, "ordinal": ordinal, "point": "tool.arguments", "call": 1, "name": "cards",
            "evaluator": "builtin:pii", "origin": origin, "policyVersion": version, "verdict": "failed", "code": "failed",
            "reason": &reason, "onError": "allow-unsafely", "durationUs": 12,
            "digest": if reason.is_null() { "" } else { "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" },
            "createdAt": "2026-01-02T03:04:05.678Z"})
    };
    let both = |reason: Value| {
        json!([
            expected(0, "tenant", json!(3), reason.clone()),
            expected(1, "agent", Value::Null, reason)
        ])
    };
    let data = |app: &App| app.get(&path).expect(200)["data"].clone();
    assert_eq!(data(&app), both(json!("It crashed.")));
    app.delete(&format!("/v1/conversations/{conversation}"))
        .expect(202);
    let one = format!("/v1/runs/{run}");
    eventually("the run to be erased", || {
        let erased = app.get(&one).expect(200)["payloadErasedAt"].is_string();
        erased.then_some(())
    });
    assert_eq!(data(&app), both(Value::Null));
}
