//! The list of decisions: whole, in order, each once, whatever is committed meanwhile.

use super::support::{decision, denied, soon, verify, writer};
use crate::harness::{App, Client, plan_rows};
use agent_runtime::audit::verify::Kind;
use agent_runtime::audit::{Audit, Check, Decision, Stage};
use agent_runtime::ids::{Clock, Timestamp};
use agent_runtime::store::tokens::CredentialKind;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

fn write(audit: &Audit, decisions: impl IntoIterator<Item = Decision>) {
    let tickets: Vec<_> = decisions
        .into_iter()
        .map(|one| audit.record(one).unwrap())
        .collect();
    for ticket in tickets {
        ticket.wait(soon()).unwrap();
    }
}

fn resources(page: &Value) -> Vec<String> {
    let rows = page["data"].as_array().unwrap().iter();
    rows.map(|row| row["resource"].as_str().unwrap().to_owned())
        .collect()
}

fn names(prefix: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers
        .map(|number| format!("{prefix}:{number:02}"))
        .collect()
}

/// Every page, `between` being done after the first.
fn walk(client: &Client, query: &str, between: impl FnOnce()) -> Vec<String> {
    let mut between = Some(between);
    let (mut all, mut cursor) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = client
            .get(&format!("/v1/audit/authz?{query}{cursor}"))
            .expect(200);
        all.extend(resources(&page));
        if let Some(between) = between.take() {
            between();
        }
        if page["hasMore"] == false {
            assert!(page["nextCursor"].is_null(), "{page}");
            return all;
        }
        cursor = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
    }
    panic!("the list has no end: {all:?}");
}

/// Two writers on the app's database, the second one's clock a minute ahead.
fn two_writers(app: &App) -> (Audit, Audit) {
    let ahead = Clock::system();
    ahead.advance(Duration::from_secs(60));
    let url = app.database.url();
    let (behind, _) = keep(writer(&url, &Clock::system(), |_| {}));
    let (ahead, _) = keep(writer(&url, &ahead, |_| {}));
    (behind, ahead)
}

/// The writer lives as long as the test process: nobody stops it.
fn keep<A, R>(pair: (A, R)) -> (A, ()) {
    std::mem::forget(pair.1);
    (pair.0, ())
}

#[test]
fn what_is_committed_late_is_skipped_in_neither_order() {
    for order in ["asc", "desc"] {
        let app = App::start();
        let (behind, ahead) = two_writers(&app);
        let tenant_id = app.seeds.tenant_id;
        let some = |prefix: &str, numbers| {
            names(prefix, numbers)
                .into_iter()
                .map(|name| decision(tenant_id, &name))
                .collect::<Vec<_>>()
        };
        write(&behind, some("behind", 0..3));
        write(&ahead, some("ahead", 0..20));
        let mut expected = [names("behind", 0..3), names("ahead", 0..20)].concat();
        let query = format!("order={order}&limit=7");
        // Earlier in time than what the first page showed in descending order, or passed over in
        // ascending order, and committed after it was read.
        let seen = walk(&app, &query, || {
            write(&behind, some("late", 0..12));
        });
        expected.extend(names("late", 0..12));
        let mut sorted = seen.clone();
        sorted.sort();
        expected.sort();
        assert_eq!(sorted, expected, "{order}: each exactly once");
        // In time's order, once nothing is late any more.
        let again = walk(&app, &query, || {});
        let mut in_order = [
            names("behind", 0..3),
            names("late", 0..12),
            names("ahead", 0..20),
        ]
        .concat();
        if order == "desc" {
            in_order.reverse();
        }
        assert_eq!(again, in_order, "{order}");
    }
}

#[test]
fn a_new_writer_s_rows_come_and_newer_ones_do_not_return_to_a_walk_backwards() {
    let app = App::start();
    let (first, ahead) = two_writers(&app);
    let one = |name: &str| decision(app.seeds.tenant_id, name);
    write(&first, (0..10).map(|n| one(&format!("a:{n}"))));
    write(&ahead, [one("z:end")]);
    let backwards = walk(&app, "order=desc&limit=4", || {
        // A slot that did not exist, within the walk's time; and one after its beginning.
        let (new, _) = keep(writer(&app.database.url(), &Clock::system(), |_| {}));
        write(&new, [one("new:0")]);
        write(&ahead, [one("z:after")]);
    });
    assert_eq!(backwards.len(), 12, "{backwards:?}");
    assert!(backwards.contains(&"new:0".to_owned()));
    assert!(!backwards.contains(&"z:after".to_owned()));
}

#[test]
fn each_filter_finds_its_rows_alone() {
    let app = App::start();
    let (audit, _running) = writer(&app.database.url(), &app.clock, |_| {});
    let tenant_id = app.seeds.tenant_id;
    let run_id = app.clock.new_id();
    let actor = format!("user:{}", Uuid::from_u128(77));
    write(&audit, [decision(tenant_id, "project:old")]);
    app.clock.advance(Duration::from_secs(3600));
    let middle = agent_runtime::ids::rfc3339::text(app.clock.now());
    let mut by_actor = decision(tenant_id, "project:actor");
    by_actor.actor_subject = actor.clone();
    let mut of_run = decision(tenant_id, "run:of-run");
    of_run.run_id = Some(run_id);
    let mut by_action = decision(tenant_id, "project:action");
    by_action.action = "admin".to_owned();
    let mut both = denied(tenant_id, "project:denied");
    both.actor_subject = actor.clone();
    write(
        &audit,
        [
            by_actor,
            of_run,
            by_action,
            both,
            decision(Uuid::from_u128(9), "project:foreign"),
        ],
    );
    let middle = middle.replace(':', "%3A");
    for (query, expected) in [
        (
            format!("actorSubject={actor}"),
            vec!["project:actor", "project:denied"],
        ),
        (
            format!("actorSubject={actor}&outcome=allowed"),
            vec!["project:actor"],
        ),
        ("action=admin".to_owned(), vec!["project:action"]),
        ("resource=project:old".to_owned(), vec!["project:old"]),
        ("resource=project:old&action=admin".to_owned(), vec![]),
        ("outcome=denied".to_owned(), vec!["project:denied"]),
        (format!("runId={run_id}"), vec!["run:of-run"]),
        (
            format!("runId={run_id}&resource=run:of-run&actorSubject={actor}"),
            vec![],
        ),
        (format!("to={middle}"), vec!["project:old"]),
        (
            format!("from={middle}&outcome=allowed"),
            vec!["project:actor", "run:of-run", "project:action"],
        ),
    ] {
        for order in ["asc", "desc"] {
            let mut expected = expected.clone();
            if order == "desc" {
                expected.reverse();
            }
            let seen = walk(&app, &format!("{query}&order={order}&limit=1"), || {});
            assert_eq!(seen, expected, "{query} {order}");
        }
    }
    assert_eq!(
        walk(&app, "", || {}).len(),
        5,
        "the other tenant's is not seen"
    );
    assert_eq!(walk(&app.other_tenant(), "", || {}).len(), 0);
}

#[test]
fn the_decisions_of_a_request_are_found_by_its_id() {
    let app = App::start();
    let (audit, _running) = writer(&app.database.url(), &app.clock, |_| {});
    let tenant_id = app.seeds.tenant_id;
    let (request_id, other_id) = (app.clock.new_id(), app.clock.new_id());
    let by = |resource: &str, request_id| {
        let mut decision = decision(tenant_id, resource);
        decision.request_id = Some(request_id);
        decision
    };
    let mut refused = denied(tenant_id, "project:second");
    refused.request_id = Some(request_id);
    let first = by("project:first", request_id);
    let other = by("project:other", other_id);
    let foreign = decision(Uuid::from_u128(9), "project:foreign");
    write(&audit, [first, other, refused, foreign]);
    // A stream is decided about long after its request began.
    app.clock.advance(Duration::from_secs(7200));
    write(&audit, [by("project:later", request_id)]);
    for (query, expected) in [
        (
            format!("requestId=req-{request_id}"),
            vec!["project:first", "project:second", "project:later"],
        ),
        (
            format!("requestId=req-{request_id}&outcome=denied"),
            vec!["project:second"],
        ),
        (format!("requestId=req-{other_id}"), vec!["project:other"]),
        (format!("requestId=req-{tenant_id}"), vec![]),
    ] {
        for order in ["asc", "desc"] {
            let mut expected = expected.clone();
            if order == "desc" {
                expected.reverse();
            }
            let seen = walk(&app, &format!("{query}&order={order}&limit=1"), || {});
            assert_eq!(seen, expected, "{query} {order}");
        }
    }
    let query = format!("requestId=req-{request_id}");
    assert_eq!(walk(&app.other_tenant(), &query, || {}).len(), 0);
}

#[test]
fn a_record_says_all_that_explains_it() {
    let app = App::start();
    // To the millisecond, as times are told.
    let began = app.clock.now() - Duration::from_millis(1);
    let (audit, _running) = writer(&app.database.url(), &app.clock, |_| {});
    let (request_id, key_id, run_id) = (app.clock.new_id(), app.clock.new_id(), app.clock.new_id());
    let mut full = denied(app.seeds.tenant_id, "project:p");
    full.stage = Stage::KeyCapability;
    full.failing_part = Some("env:write".to_owned());
    full.check = Some(Check {
        user: "user:u".to_owned(),
        relation: "can_read".to_owned(),
        object: "project:p".to_owned(),
        store_id: "s".to_owned(),
        model_id: "m".to_owned(),
    });
    full.request_id = Some(request_id);
    full.trace_id = Some("0af7651916cd43dd8448eb211c80319c".to_owned());
    full.key_id = Some(key_id);
    full.credential_kind = Some(CredentialKind::Session);
    full.route = Some("GET /v1/projects/{projectId}".to_owned());
    full.run_id = Some(run_id);
    full.client_address = Some([127, 0, 0, 1].into());
    write(&audit, [full, decision(app.seeds.tenant_id, "project:p")]);
    let page = app.get("/v1/audit/authz").expect(200);
    let (id, at) = (&page["data"][0]["id"], &page["data"][0]["timestamp"]);
    let time: Timestamp = serde_json::from_value(at.clone()).unwrap();
    assert!(began <= time.0 && time.0 <= app.clock.now(), "{at}");
    assert_eq!(
        page["data"][0],
        json!({
            "id": id, "timestamp": at,
            "actorSubject": "user:00000000-0000-0000-0000-000000000001",
            "action": "read", "resource": "project:p", "outcome": "denied",
            "reason": "permission denied", "stage": "key-capability", "failingPart": "env:write",
            "check": {"user": "user:u", "relation": "can_read", "object": "project:p",
                      "storeId": "s", "modelId": "m"},
            "durationMs": 1.5, "requestId": format!("req-{request_id}"),
            "traceId": "0af7651916cd43dd8448eb211c80319c", "keyId": key_id,
            "credential": {"kind": "session", "id": key_id},
            "route": "GET /v1/projects/{projectId}", "runId": run_id, "clientAddress": "127.0.0.1",
        })
    );
    assert!(page["data"][1]["check"].is_null());
    for row in page["data"].as_array().unwrap() {
        let path = format!("/v1/audit/authz/{}", row["id"].as_str().unwrap());
        assert_eq!(app.get(&path).expect(200), *row, "one alone");
        let elsewhere = app.other_tenant().get(&path);
        elsewhere.expect_error(404, "not-found");
    }
    // A decision of a program before this one does not say.
    assert!(page["data"][1]["credential"].is_null());
    assert_eq!(verify(&app.database, &[]).faults, []);
    // Whoever takes the kind away, or gives another one, is found.
    let mut database = app.database.client();
    for kind in ["null", "'token'"] {
        let change =
            format!("update audit_decisions set credential_kind = {kind} where outcome = 'denied'");
        assert_eq!(database.execute(&change, &[]).unwrap(), 1);
        let faults = verify(&app.database, &[]).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].kind, Kind::Changed);
    }
}

#[test]
fn a_decision_is_found_by_its_id_among_many_and_after_the_clock_went_back() {
    let app = App::start();
    let (audit, _running) = writer(&app.database.url(), &app.clock, |_| {});
    let tenant_id = app.seeds.tenant_id;
    let many = |prefix: &str| {
        let some = names(prefix, 0..60).into_iter();
        some.map(|name| decision(tenant_id, &name))
            .collect::<Vec<_>>()
    };
    for hour in ["first", "second", "third"] {
        write(&audit, many(hour));
        app.clock.advance(Duration::from_secs(3600));
    }
    // The slot's time stands still until the clock has caught up.
    app.clock.set_back(Duration::from_secs(3 * 3600));
    write(&audit, many("behind"));
    let all = app.get("/v1/audit/authz?limit=200").expect(200);
    let all = [
        all["data"].as_array().unwrap().clone(),
        app.get("/v1/audit/authz?limit=200&order=desc").expect(200)["data"]
            .as_array()
            .unwrap()
            .clone(),
    ]
    .concat();
    for resource in [
        "first:00",
        "second:59",
        "third:30",
        "behind:00",
        "behind:59",
    ] {
        let row = all.iter().find(|row| row["resource"] == resource).unwrap();
        let path = format!("/v1/audit/authz/{}", row["id"].as_str().unwrap());
        assert_eq!(app.get(&path).expect(200), *row, "{resource}");
    }
    let (nobody, old) = (app.clock.new_id(), Uuid::from_u128(7));
    for id in [nobody.to_string(), old.to_string(), "7".to_owned()] {
        let answer = app.get(&format!("/v1/audit/authz/{id}"));
        answer.expect_error(404, "not-found");
    }
    // Those of its moment at most: the others were decided in other hours.
    let read = rows_read(&app, &all[0]);
    assert!((1.0..=60.0).contains(&read), "{read} of 240");
}

/// Decisions that the search for this one reads.
fn rows_read(app: &App, decision: &Value) -> f64 {
    let find = include_str!("../../../sql/queries/audit/find.sql");
    let mut database = app.database.client();
    // As the server's connections, which keep a plan for all values.
    database
        .batch_execute("set plan_cache_mode = force_generic_plan; analyze audit_decisions")
        .unwrap();
    let prepare = format!("prepare one (uuid, uuid, timestamptz, timestamptz) as {find}");
    database.batch_execute(&prepare).unwrap();
    let id: Uuid = decision["id"].as_str().unwrap().parse().unwrap();
    let from = agent_runtime::ids::time_of(id).unwrap();
    let (from, to) = (from, from + time::Duration::milliseconds(100));
    let text = agent_runtime::ids::rfc3339::text;
    let explain = format!(
        "explain (analyze, format json) execute one ('{}', '{id}', '{}', '{}')",
        app.seeds.tenant_id,
        text(from),
        text(to)
    );
    let said: Value = database.query_one(&explain, &[]).unwrap().get(0);
    plan_rows(&said[0]["Plan"], &|relation| {
        relation.starts_with("audit_decisions")
    })
}

#[test]
fn a_bad_value_is_named() {
    let app = App::start();
    for (query, parameter) in [
        ("outcome=maybe", "outcome"),
        ("from=yesterday", "from"),
        ("to=2026-13-01T00:00:00Z", "to"),
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=0001-01-01T00:00:00Z", "from"),
        ("runId=7", "runId"),
        ("requestId=7", "requestId"),
        (
            "requestId=0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1",
            "requestId",
        ),
        ("order=up", "order"),
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("actorSubject=alice", "actorSubject"),
        ("actorSubject=user:", "actorSubject"),
        ("resource=project", "resource"),
        ("action=", "action"),
    ] {
        let answer = app.get(&format!("/v1/audit/authz?{query}"));
        let error = answer.expect_error(400, "invalid-request");
        assert_eq!(error["details"]["parameter"], parameter, "{query}: {error}");
    }
    app.get("/v1/audit/authz?cursor=QQ")
        .expect_error(400, "invalid-cursor");
}
