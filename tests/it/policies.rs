//! `/v1/policies` and `/v1/projects/{projectId}/policies`: versions that follow each other, conflicts, and what is refused. Who may
//! is in `access` and the sweep.

use crate::harness::{App, Client, made};
use serde_json::{Value, json};

const OF_TENANT: &str = "/v1/policies";

fn of_project(project: &str) -> String {
    format!("/v1/projects/{project}/policies")
}

fn redacts(kind: &str) -> Value {
    json!([{"builtin": "pii", "at": ["output"], "action": "redact", "config": {"kinds": [kind]}, "onError": "allow-unsafely"}])
}

/// A server and both paths.
fn start() -> (App, [String; 2]) {
    let app = App::start();
    let project = made::project(&app);
    (app, [OF_TENANT.to_owned(), of_project(&project)])
}

#[test]
fn each_put_makes_the_next_version_and_earlier_ones_stay() {
    let (app, paths) = start();
    for path in &paths {
        let none = json!({"version": 0, "guardrails": [], "streaming": "held", "createdBy": null, "createdAt": null});
        assert_eq!(app.get(path).expect(200), none);
        let body = json!({"guardrails": redacts("card")});
        let first = app.put(path, &body).expect(200);
        assert_eq!(first["version"], json!(1));
        assert_eq!(first["guardrails"], redacts("card"));
        assert_eq!(first["streaming"], json!("held"));
        assert_eq!(first["createdBy"], json!(app.seeds.user_id));
        assert_eq!(app.get(path).expect(200), first);
        let body =
            json!({"guardrails": redacts("iban"), "streaming": "unchecked", "expectedVersion": 1});
        let second = app.put(path, &body).expect(200);
        assert_eq!(second["version"], json!(2));
        assert_eq!(second["streaming"], json!("unchecked"));
        assert_eq!(app.get(path).expect(200), second);
        // What is put is put again, and nothing at all is a version, too.
        let emptied = app.put(path, &json!({"guardrails": []})).expect(200);
        assert_eq!(emptied["version"], json!(3));
        assert_eq!(emptied["guardrails"], json!([]));
    }
    let all = "select count(*) from policies where tenant_id = $1";
    let rows = app
        .database
        .client()
        .query_one(all, &[&app.seeds.tenant_id]);
    assert_eq!(rows.unwrap().get::<_, i64>(0), 6);
}

#[test]
fn another_version_than_the_expected_one_is_a_conflict_that_names_the_newest() {
    let (app, paths) = start();
    for path in &paths {
        let put = |expected: Value| {
            let body = json!({"guardrails": redacts("card"), "expectedVersion": expected});
            app.put(path, &body)
        };
        for expected in [json!(1), json!(u32::MAX)] {
            let refused = put(expected).expect_error(409, "conflict");
            assert_eq!(refused["details"]["newestVersion"], json!(0));
        }
        put(json!(0)).expect(200);
        put(json!(1)).expect(200);
        let refused = put(json!(1)).expect_error(409, "conflict");
        assert_eq!(refused["details"]["newestVersion"], json!(2));
        assert_eq!(app.get(path).expect(200)["version"], json!(2));
        for expected in [json!(-1), json!(1.5), json!("2")] {
            let refused = put(expected).expect_error(400, "invalid-body");
            assert_eq!(refused["details"]["path"], json!("$.expectedVersion"));
        }
    }
}

/// The statuses of puts that are sent at once.
fn at_once(client: &Client, path: &str, body: &Value) -> Vec<u16> {
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let (client, path, body) = (client.clone(), path.to_owned(), body.clone());
            std::thread::spawn(move || client.put(&path, &body).status)
        })
        .collect();
    let statuses = threads.into_iter().map(|thread| thread.join().unwrap());
    let mut statuses: Vec<u16> = statuses.collect();
    statuses.sort_unstable();
    statuses
}

#[test]
fn puts_at_once_each_get_a_version_or_a_conflict() {
    let (app, paths) = start();
    for path in &paths {
        let body = json!({"guardrails": redacts("card"), "expectedVersion": 0});
        let statuses = at_once(&app, path, &body);
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409]);
        let body = json!({"guardrails": redacts("card")});
        assert_eq!(at_once(&app, path, &body), [200; 6]);
        assert_eq!(app.get(path).expect(200)["version"], json!(7));
    }
}

#[test]
fn what_is_wrong_with_a_policy_is_named_by_its_path() {
    let (app, paths) = start();
    let good = json!({"builtin": "pii", "at": ["output"], "action": "redact"});
    let with = |field: &str, value: Value| {
        let mut one = good.clone();
        one[field] = value;
        json!({"guardrails": [good, one]})
    };
    for path in &paths {
        for (body, at) in [
            (json!({}), "$"),
            (json!({"guardrails": {}}), "$.guardrails"),
            (json!({"guardrails": null}), "$.guardrails"),
            (
                json!({"guardrails": [], "streaming": "chunked"}),
                "$.streaming",
            ),
            (json!({"guardrails": [], "other": 1}), "$.other"),
            (
                json!({"guardrails": vec![good.clone(); 21]}),
                "$.guardrails",
            ),
            (with("pack", json!("weather")), "$.guardrails[1].pack"),
            (with("builtin", json!("models")), "$.guardrails[1].builtin"),
            (with("name", json!("A b")), "$.guardrails[1].name"),
            (with("at", json!([])), "$.guardrails[1].at"),
            (with("at", json!(["model"])), "$.guardrails[1].at[0]"),
            (with("action", json!("approve")), "$.guardrails[1].at"),
            (with("onBlock", json!("tell")), "$.guardrails[1].onBlock"),
            (with("onError", json!("allow")), "$.guardrails[1].onError"),
            (
                with("config", json!({"kind": 1})),
                "$.guardrails[1].config.kind",
            ),
            (
                with("config", json!({"hosts": []})),
                "$.guardrails[1].config.hosts",
            ),
        ] {
            let refused = app.put(path, &body).expect_error(400, "invalid-body");
            assert_eq!(refused["details"]["path"], json!(at), "{refused}");
        }
        let approval = json!({"builtin": "pii", "at": ["tool.arguments"], "action": "approve", "approval": {"expiresAfter": "P31D"}});
        let refused = app.put(path, &json!({"guardrails": [approval]}));
        let refused = refused.expect_error(400, "invalid-body");
        let at = "$.guardrails[0].approval.expiresAfter";
        assert_eq!(refused["details"]["path"], json!(at), "{refused}");
        assert_eq!(app.get(path).expect(200)["version"], json!(0));
    }
}

#[test]
fn an_archived_project_keeps_its_policy_and_takes_no_other() {
    let (app, [_, path]) = start();
    let body = json!({"guardrails": redacts("card")});
    let put = app.put(&path, &body).expect(200);
    let project = path.trim_end_matches("/policies");
    app.post(&format!("{project}/archive"), &json!({}))
        .expect(200);
    app.put(&path, &body).expect_error(409, "project-archived");
    assert_eq!(app.get(&path).expect(200), put);
    app.put(OF_TENANT, &body).expect(200);
}

#[test]
fn a_tenant_and_each_project_have_policies_of_their_own() {
    let (app, [_, path]) = start();
    let other = app.other_tenant();
    let elsewhere = of_project(&made::project(&app));
    let body = json!({"guardrails": redacts("card")});
    app.put(OF_TENANT, &body).expect(200);
    app.put(&path, &body).expect(200);
    assert_eq!(app.get(&elsewhere).expect(200)["version"], json!(0));
    assert_eq!(other.get(OF_TENANT).expect(200)["version"], json!(0));
    other.get(&path).expect_error(404, "not-found");
    other.put(&path, &body).expect_error(404, "not-found");
    let their = json!({"guardrails": redacts("iban")});
    assert_eq!(
        other.put(OF_TENANT, &their).expect(200)["version"],
        json!(1)
    );
    let own = app.get(OF_TENANT).expect(200);
    assert_eq!(own["guardrails"], redacts("card"));
}
