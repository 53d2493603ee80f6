//! Labels of runs: given at the start, read with the run and its events, and what lists filter by.

use crate::harness::{App, Client, Puppet};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::store::Ordered;
use agent_runtime::store::page::Order;
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
fn start(client: &Client, agent: Uuid, labels: &Value) -> Value {
    let body = json!({"agentId": agent, "message": "a", "labels": labels});
    client.post("/v1/runs", &body).expect(202)["run"].clone()
}

fn id_of(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

/// The ids of a whole list, oldest first, by pages of two.
#[track_caller]
fn list(client: &Client, query: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = format!("/v1/runs?limit=2&order=asc{query}{cursor}");
        let page = client.get(&page).expect(200);
        ids.extend(page["data"].as_array().unwrap().iter().map(id_of));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[test]
fn a_run_and_its_first_and_last_event_have_its_labels() {
    let app = App::start_with(|options| options.runs.threads = 1);
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    let labels = json!({"env": "prod", "team/owner": "ünï: a=b", "0.empty": ""});
    let run = start(&app, agent, &labels);
    assert_eq!(run["labels"], labels);
    let id = id_of(&run);
    assert_eq!(app.finished(&id)["labels"], labels);
    let progress = app.get(&format!("/v1/runs/{id}/progress")).expect(200);
    assert_eq!(progress["run"]["labels"], labels);
    let events = app.events(&id);
    for event in [events.first().unwrap(), events.last().unwrap()] {
        assert_eq!(event["data"]["labels"], labels, "{event}");
    }
    assert_eq!(events.last().unwrap()["kind"], "run.completed");

    let plain = start(&app, agent, &json!({}));
    assert_eq!(plain["labels"], json!({}));
    assert_eq!(app.finished(&id_of(&plain))["labels"], json!({}));
    for event in app.events(&id_of(&plain)) {
        assert!(event["data"].get("labels").is_none(), "{event}");
    }

    // Cancelled in the queue, by nobody who holds it; and cancelled while it is held.
    let puppet = Puppet::start();
    let slow = app.agent(&puppet.base_url());
    let held = id_of(&start(&app, slow, &labels));
    let call = puppet.call();
    let queued = id_of(&start(&app, slow, &labels));
    for id in [queued, held] {
        app.cancel(&id);
        app.finished(&id);
        let events = app.events(&id);
        assert_eq!(events.last().unwrap()["kind"], "run.cancelled");
        assert_eq!(events.last().unwrap()["data"], json!({"labels": labels}));
    }
    drop(call);
}

#[test]
fn labels_outside_their_bounds_are_refused_and_named() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    let many: Value = (0..17).map(|n| (n.to_string(), json!("x"))).collect();
    for (labels, path, says) in [
        (many, "$.labels", "at most 16 labels, got 17"),
        (json!({"Env": "x"}), "$.labels.Env", "lowercase letters"),
        (json!({"a:b": "x"}), "$.labels.a:b", "lowercase letters"),
        (json!({"": "x"}), "$.labels.", "1 to 63"),
        (json!({"a": "x".repeat(256)}), "$.labels.a", "at most 255"),
        (json!({"a": "x\ny"}), "$.labels.a", "control character"),
    ] {
        let body = json!({"agentId": agent, "message": "a", "labels": labels});
        let fault = app
            .post("/v1/runs", &body)
            .expect_error(400, "invalid-body");
        let faults = fault["details"]["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{fault}");
        assert_eq!(fault["details"]["path"], path, "{fault}");
        assert!(fault["message"].as_str().unwrap().contains(says), "{fault}");
    }
    // What else is wrong is told beside the first fault.
    let body = json!({"agentId": 7, "message": "a",
        "labels": {"Env": "x", "a": "x\ny", "b": "x".repeat(256), "c": 1}});
    let fault = app
        .post("/v1/runs", &body)
        .expect_error(400, "invalid-body");
    let mut paths: Vec<&str> = fault["details"]["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "$.agentId",
            "$.labels.Env",
            "$.labels.a",
            "$.labels.b",
            "$.labels.c"
        ]
    );
    for labels in [
        json!(["a"]),
        json!({"a": 1}),
        json!({"a": null}),
        json!(null),
    ] {
        let body = json!({"agentId": agent, "message": "a", "labels": labels});
        app.post("/v1/runs", &body)
            .expect_error(400, "invalid-body");
    }
    assert_eq!(list(&app, ""), [""; 0]);
}

#[test]
fn the_same_key_with_other_labels_is_another_request() {
    let app = App::start();
    let provider = provider();
    let agent = app.agent(&provider.base_url());
    let send = |labels: Value| {
        let body = json!({"agentId": agent, "message": "a", "labels": labels}).to_string();
        app.send("POST", "/v1/runs", Some(body), &[("idempotency-key", "k")])
    };
    let first = send(json!({"env": "prod"})).expect(202);
    let again = send(json!({"env": "prod"})).expect(202);
    assert_eq!(again["run"]["id"], first["run"]["id"]);
    assert_eq!(again["run"]["labels"], json!({"env": "prod"}));
    send(json!({"env": "test"})).expect_error(422, "idempotency-mismatch");
    app.finished(&id_of(&first["run"]));
}

/// A cursor belongs to its labels, and what is no label is refused. `last`: the newest run in production.
fn pages_are_of_their_labels(app: &App, last: &str) {
    let newest = app.get("/v1/runs?label=env:prod&limit=3").expect(200);
    let cursor = newest["nextCursor"].as_str().unwrap();
    assert_eq!(id_of(&newest["data"][0]), last);
    for other in ["", "label=env:test&", "label=env:prod&label=tier:1&"] {
        app.get(&format!("/v1/runs?{other}limit=3&cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    for bad in ["env", "Env:x", ":x", "env:a%0Ab", "env:a&label=env:b"] {
        let fault = app
            .get(&format!("/v1/runs?label={bad}"))
            .expect_error(400, "invalid-request");
        assert!(
            fault["message"].as_str().unwrap().contains("label"),
            "{fault}"
        );
    }
}

/// A conversation, and a run in it with labels.
fn said_in_a_conversation(app: &App, agent: Uuid) -> (String, String) {
    let conversation = app
        .post("/v1/conversations", &json!({"agentId": agent}))
        .expect(201);
    let conversation = id_of(&conversation);
    let body = json!({"agentId": agent, "message": "a", "conversationId": conversation,
        "labels": {"env": "dev", "tier": "1"}});
    let said = id_of(&app.post("/v1/runs", &body).expect(202)["run"]);
    app.finished(&said);
    (conversation, said)
}

#[test]
fn runs_are_listed_by_labels_with_every_other_filter() {
    let app = App::start();
    let provider = provider();
    let maker = app.maker();
    let (mut agents, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let project = maker.project();
        for _ in 0..2 {
            let agent = maker.agent_of(project, &provider.base_url(), |_| {});
            agents.push((project, agent));
        }
    }
    for env in ["prod", "test"] {
        for tier in ["1", "2"] {
            for (project, agent) in &agents {
                let run = start(&app, *agent, &json!({"env": env, "tier": tier}));
                runs.push((id_of(&run), *project, *agent, env, tier));
            }
        }
    }
    let plain = id_of(&start(&app, agents[0].1, &json!({})));
    app.finished(&plain);
    for run in &runs {
        app.finished(&run.0);
    }
    let (conversation, said) = said_in_a_conversation(&app, agents[0].1);
    let (project, agent) = agents[1];
    type Made = (String, Uuid, Uuid, &'static str, &'static str);
    let ids = |wanted: &dyn Fn(&Made) -> bool| -> Vec<String> {
        let found = runs.iter().filter(|one| wanted(one));
        found.map(|one| one.0.clone()).collect()
    };
    for (query, expected) in [
        ("label=env:prod".to_owned(), ids(&|one| one.3 == "prod")),
        (
            "label=env:prod&label=tier:2".to_owned(),
            ids(&|one| one.3 == "prod" && one.4 == "2"),
        ),
        (
            "label=tier:2&label=env:test&status=completed&origin=app".to_owned(),
            ids(&|one| one.3 == "test" && one.4 == "2"),
        ),
        (
            format!("label=env:prod&projectId={project}"),
            ids(&|one| one.3 == "prod" && one.1 == project),
        ),
        (
            format!("label=env:prod&agentId={agent}"),
            ids(&|one| one.3 == "prod" && one.2 == agent),
        ),
        (
            format!("label=env:dev&conversationId={conversation}"),
            vec![said.clone()],
        ),
        (
            format!("label=env:prod&conversationId={conversation}"),
            Vec::new(),
        ),
        ("label=env:prod&status=failed".to_owned(), Vec::new()),
        ("label=env:pro".to_owned(), Vec::new()),
        ("label=env:".to_owned(), Vec::new()),
    ] {
        assert_eq!(list(&app, &format!("&{query}")), expected, "{query}");
    }
    let last = ids(&|one| one.3 == "prod").pop().unwrap();
    pages_are_of_their_labels(&app, &last);
    let other = app.other_tenant();
    assert_eq!(list(&other, "&label=env:prod"), [""; 0]);
}

#[test]
fn a_page_by_label_reads_few_rows_of_many() {
    let app = App::start();
    let (tenant_id, project) = (app.seeds.tenant_id, app.maker().project());
    let mut database = app.database.client();
    let fill = "with made as (
          insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
            created_by, created_at, labels)
          select $1, lpad(to_hex(place), 32, '0')::uuid, $2, 'test', '1.0.0', 'completed', 'app',
            lpad(to_hex(place), 32, '0')::uuid, false, $1, now(),
            json_build_object('common', 'x', 'rare', (place % 10000)::text)
          from generate_series(1, 30000) as place
          returning run_id, labels
        )
        insert into run_labels (tenant_id, project_id, key, value, run_id)
        select $1, $2, l.key, l.value, run_id from made, json_each_text(labels) l";
    database.execute(fill, &[&tenant_id, &project]).unwrap();
    database.batch_execute("vacuum analyze").unwrap();
    let list = Ordered::of(include_str!("../../sql/queries/runs/list_label.sql"));
    for (key, value, found) in [("common", "x", 51), ("rare", "7", 3)] {
        for order in [Order::Asc, Order::Desc] {
            let types = "uuid, uuid, uuid, uuid, text, text, uuid, bigint, text, text, uuid, text, boolean, timestamptz, timestamptz, boolean, json, text, text";
            let statement = list.by(order);
            database
                .batch_execute(&format!("prepare page ({types}) as {statement}"))
                .unwrap();
            let labels = json!({key: value});
            let (nil, max) = (Uuid::nil(), Uuid::max());
            let explain = format!(
                "explain (analyze, buffers, format json) execute page ('{tenant_id}', null, null, null, null, null, '{nil}', 51, null, null, '{max}', null, null, null, null, null, '{labels}', '{key}', '{value}')"
            );
            // The first time it is planned.
            database.query_one(&explain, &[]).unwrap();
            let said: Value = database.query_one(&explain, &[]).unwrap().get(0);
            let plan = &said[0]["Plan"];
            assert_eq!(
                plan["Actual Rows"].as_f64(),
                Some(f64::from(found)),
                "{said}"
            );
            let read = plan["Shared Hit Blocks"].as_i64();
            assert!(read.is_some_and(|pages| pages < 400), "{said}");
            database.batch_execute("deallocate page").unwrap();
        }
    }
}
