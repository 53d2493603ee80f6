//! `/v1/webhook-endpoints/{webhookEndpointId}/deliveries`: what became of events, and what a person
//! can do about it.

use crate::harness::webhooks::{ENDPOINTS, receiver};
use crate::harness::{App, ToolAnswer, ToolServer, eventually, made};
use agent_runtime::ids::rfc3339;
use serde_json::{Value, json};
use uuid::Uuid;

/// A delivery that stands in the database as a worker would have left it.
struct Stored<'a> {
    state: &'a str,
    attempts: i32,
    error: Option<&'a str>,
    status: Option<i16>,
}

/// Writes it, with a run's event, and gives its id.
fn store(app: &App, endpoint: &str, stored: &Stored<'_>) -> String {
    let endpoint: Uuid = endpoint.parse().unwrap();
    let (delivery, event, run) = (app.clock.new_id(), app.clock.new_id(), app.clock.new_id());
    let body = json!({"id": event, "type": "run.finished",
        "data": {"run": {"id": run, "status": "failed"}}});
    let tenant = app.seeds.tenant_id;
    let mut client = app.database.client();
    client
        .execute(
            "insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at)
             values ($1, $2, 'run.finished', $3, $4, now())",
            &[&tenant, &event, &body.to_string(), &run],
        )
        .unwrap();
    client
        .execute(
            "insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id,
               state, attempts, next_attempt_at, last_error, last_status, created_at, ended_at)
             values ($1, $2, $3, $4, 'run.finished', $5, $6, $7,
               case when $6 = 'being-sent' then timestamptz '2126-01-02 03:04:05Z' end, $8, $9, now(),
               case when $6 <> 'being-sent' then now() end)",
            &[
                &tenant,
                &delivery,
                &endpoint,
                &event,
                &run,
                &stored.state,
                &stored.attempts,
                &stored.error,
                &stored.status,
            ],
        )
        .unwrap();
    delivery.to_string()
}

const FAILED: Stored<'_> = Stored {
    state: "failed",
    attempts: 10,
    error: Some("no-answer"),
    status: None,
};
const DELIVERED: Stored<'_> = Stored {
    state: "delivered",
    attempts: 1,
    error: None,
    status: None,
};
const RETRYING: Stored<'_> = Stored {
    state: "being-sent",
    attempts: 2,
    error: Some("http-status"),
    status: Some(503),
};

/// Posts to an action of an endpoint.
fn act(app: &App, path: &str) -> Value {
    app.send("POST", path, None, &[]).expect(202)
}

/// A delivery that has ended.
fn ended(app: &App, path: &str) -> Value {
    eventually("the delivery to end", || {
        let delivery = app.get(path).expect(200);
        (delivery["state"] != json!("being-sent")).then_some(delivery)
    })
}

#[test]
fn deliveries_are_listed_newest_first_and_by_state() {
    let app = App::start_with_webhooks();
    let endpoint = app.endpoint("http://localhost:9/");
    let other = app.endpoint("http://localhost:9/");
    store(&app, &other, &FAILED);
    let ids: Vec<String> = [FAILED, DELIVERED, FAILED, RETRYING, FAILED]
        .iter()
        .map(|stored| store(&app, &endpoint, stored))
        .collect();
    let path = format!("{ENDPOINTS}/{endpoint}/deliveries");
    let column = |page: &Value| made::column(page, "id");
    let page = |query: &str| app.get(&format!("{path}?{query}")).expect(200);
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(column(&page("")), newest);
    assert_eq!(column(&page("order=asc")), ids);
    assert_eq!(column(&page("state=delivered")), [ids[1].clone()]);
    assert_eq!(column(&page("state=being-sent")), [ids[3].clone()]);
    let failed = page("state=failed&limit=2");
    assert_eq!(column(&failed), [ids[4].clone(), ids[2].clone()]);
    assert_eq!(failed["hasMore"], json!(true));
    let cursor = failed["nextCursor"].as_str().unwrap();
    let rest = page(&format!("state=failed&cursor={cursor}"));
    assert_eq!(column(&rest), [ids[0].clone()]);
    for query in ["state=delivered", "order=asc&state=failed", "limit=3"] {
        app.get(&format!("{path}?{query}&cursor={cursor}"))
            .expect_error(400, "invalid-cursor");
    }
    let elsewhere = format!("{ENDPOINTS}/{other}/deliveries?state=failed&cursor={cursor}");
    app.get(&elsewhere).expect_error(400, "invalid-cursor");
    app.get(&format!("{path}?state=lost"))
        .expect_error(400, "invalid-request");
}

#[test]
fn a_delivery_tells_its_story() {
    let app = App::start_with_webhooks();
    let endpoint = app.endpoint("http://localhost:9/");
    let path = format!("{ENDPOINTS}/{endpoint}/deliveries");
    for (stored, summary) in [
        (DELIVERED, "delivered after 1 attempt"),
        (FAILED, "failed after 10 attempts: no answer in time"),
        (
            RETRYING,
            "retrying after 2 attempts: HTTP 503, next attempt 2126-01-02T03:04:05.000Z",
        ),
    ] {
        let id = store(&app, &endpoint, &stored);
        let whole = app.get(&format!("{path}/{id}")).expect(200);
        assert_eq!(whole["summary"], json!(summary));
        assert_eq!(whole["state"], json!(stored.state));
        assert_eq!(whole["attemptCount"], json!(stored.attempts));
        assert_eq!(whole["lastError"], json!(stored.error));
        assert_eq!(whole["lastStatus"], json!(stored.status));
        assert_eq!(whole["isTest"], json!(false));
        // The run's outcome, and the event as it is sent.
        assert_eq!(whole["runStatus"], json!("failed"));
        assert_eq!(whole["event"]["id"], whole["eventId"]);
        assert_eq!(whole["event"]["data"]["run"]["id"], whole["runId"]);
    }
}

#[test]
fn attempts_are_shown_with_what_the_receiver_answered() {
    let app = App::start_with_webhooks();
    let endpoint = app.endpoint("http://localhost:9/");
    let id = store(&app, &endpoint, &RETRYING);
    let mut client = app.database.client();
    for (attempt, reason, status, message, answer) in [
        (
            1_i32,
            Some("url-refused"),
            None::<i16>,
            Some("The address 10.1.2.3 is refused."),
            None,
        ),
        (
            2,
            Some("http-status"),
            Some(503),
            None,
            Some(&b"ca\xff\0fe"[..]),
        ),
        (3, None, None, None, None),
    ] {
        client
            .execute(
                "insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at,
                   ended_at, duration_ms, reason, status, message, address, answer)
                 values ($1, $2, $3, $4, now(),
                   case when $5::text is not null then now() end, case when $5 is not null then 7 end,
                   $5, $6, $7, '10.1.2.3', $8)",
                &[
                    &app.seeds.tenant_id,
                    &id.parse::<Uuid>().unwrap(),
                    &attempt,
                    &endpoint.parse::<Uuid>().unwrap(),
                    &reason,
                    &status,
                    &message,
                    &answer,
                ],
            )
            .unwrap();
    }
    let path = format!("{ENDPOINTS}/{endpoint}/deliveries/{id}");
    let whole = app.get(&path).expect(200);
    let attempts = whole["attempts"].as_array().unwrap();
    let of = |index: usize, field: &str| attempts[index][field].clone();
    assert_eq!(attempts.len(), 3, "{whole}");
    assert_eq!(of(0, "message"), json!("The address 10.1.2.3 is refused."));
    assert_eq!(
        (of(0, "address"), of(0, "durationMs")),
        (json!("10.1.2.3"), json!(7))
    );
    assert_eq!(
        (of(1, "status"), of(1, "message")),
        (json!(503), json!("HTTP 503"))
    );
    assert_eq!(of(1, "answer"), json!("ca\u{fffd}\0fe"));
    assert_eq!(
        (of(2, "endedAt"), of(2, "reason")),
        (Value::Null, Value::Null)
    );
    assert!(rfc3339::parse(of(0, "begunAt").as_str().unwrap()).is_some());
}

#[test]
fn a_test_is_sent_whichever_events_the_endpoint_takes() {
    let app = App::start_with_webhooks();
    let receiver = receiver();
    let path = format!("{ENDPOINTS}/{}", app.endpoint(&receiver.url()));
    let queued = act(&app, &format!("{path}/test"));
    assert_eq!(queued["isTest"], json!(true));
    assert_eq!(queued["type"], json!("webhook.test"));
    assert_eq!(queued["summary"], json!("being sent for the first time"));
    let one = format!("{path}/deliveries/{}", queued["id"].as_str().unwrap());
    let whole = ended(&app, &one);
    assert_eq!(whole["summary"], json!("delivered after 1 attempt"));
    let attempt = &whole["attempts"][0];
    assert_eq!(attempt["status"], json!(200));
    assert_eq!(attempt["address"], json!("127.0.0.1"));
    assert_eq!(attempt["answer"], json!("thanks"));
    assert_eq!(attempt["reason"], Value::Null);
    let asked = receiver.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].body, whole["event"]);
    assert_eq!(json!(asked[0].header("webhook-id")), whole["eventId"]);
}

#[test]
fn what_was_sent_is_sent_again_with_the_events_own_id() {
    let app = App::start_with_webhooks();
    let receiver = receiver();
    let path = format!("{ENDPOINTS}/{}", app.endpoint(&receiver.url()));
    let first = act(&app, &format!("{path}/test"));
    let one = format!("{path}/deliveries/{}", first["id"].as_str().unwrap());
    ended(&app, &one);
    let again = act(&app, &format!("{one}/resend"));
    assert_eq!(again["resends"], first["id"]);
    assert_eq!(again["eventId"], first["eventId"]);
    assert_eq!(again["isTest"], json!(true));
    ended(
        &app,
        &format!("{path}/deliveries/{}", again["id"].as_str().unwrap()),
    );
    assert_eq!(app.get(&one).expect(200)["resentAs"], again["id"]);
    let ids: Vec<String> = receiver
        .asked()
        .iter()
        .map(|asked| asked.header("webhook-id").to_owned())
        .collect();
    assert_eq!(json!(ids), json!([first["eventId"], first["eventId"]]));
    let nothing = format!("{path}/deliveries/{}/resend", app.clock.new_id());
    app.send("POST", &nothing, None, &[])
        .expect_error(404, "not-found");
}

#[test]
fn all_that_failed_since_a_time_is_sent_again_once() {
    let app = App::start_with_webhooks();
    let receiver = receiver();
    let endpoint = app.endpoint(&receiver.url());
    let path = format!("{ENDPOINTS}/{endpoint}");
    for stored in [FAILED, DELIVERED, FAILED] {
        store(&app, &endpoint, &stored);
    }
    let long_ago = store(&app, &endpoint, &FAILED);
    let earlier = "update webhook_deliveries set ended_at = now() - interval '2 hours' where delivery_id = $1";
    app.database
        .client()
        .execute(earlier, &[&long_ago.parse::<Uuid>().unwrap()])
        .unwrap();
    let since = rfc3339::text(app.clock.now() - time::Duration::hours(1));
    let resend = |since: &str| {
        let body = json!({"failedSince": since});
        app.post(&format!("{path}/resend"), &body)
    };
    assert_eq!(
        resend(&since).expect(202),
        json!({"count": 2, "hasMore": false})
    );
    assert_eq!(
        resend(&since).expect(202),
        json!({"count": 0, "hasMore": false})
    );
    eventually("both to arrive", || {
        (receiver.asked().len() == 2).then_some(())
    });
    for edge in ["0001-01-01T00:00:00Z", "yesterday"] {
        let error = resend(edge).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!("$.failedSince"));
    }
}

#[test]
fn a_failed_attempt_is_told_with_its_reason_and_the_next_one() {
    let app = App::start_with_webhooks();
    let refuses = ToolServer::start(|_, _| ToolAnswer::Status(503, "later".to_owned()));
    let path = format!("{ENDPOINTS}/{}", app.endpoint(&refuses.url()));
    let queued = act(&app, &format!("{path}/test"));
    let one = format!("{path}/deliveries/{}", queued["id"].as_str().unwrap());
    let whole = eventually("the attempt to fail", || {
        let whole = app.get(&one).expect(200);
        (whole["attemptCount"] == json!(1)).then_some(whole)
    });
    let next = whole["nextAttemptAt"].as_str().unwrap();
    assert_eq!(
        whole["summary"],
        json!(format!(
            "retrying after 1 attempt: HTTP 503, next attempt {next}"
        ))
    );
    assert_eq!(whole["attempts"][0]["answer"], json!("later"));
    assert_eq!(whole["attempts"][0]["reason"], json!("http-status"));
    app.delete(&path).expect(204);
    let mut client = app.database.client();
    let failed = "select state, last_error from webhook_deliveries where tenant_id = $1";
    let row = client.query_one(failed, &[&app.seeds.tenant_id]).unwrap();
    assert_eq!(
        (row.get::<_, &str>(0), row.get::<_, &str>(1)),
        ("failed", "endpoint-unregistered")
    );
}

#[test]
fn a_delivery_is_its_endpoints_and_its_tenants_own() {
    let app = App::start_with_webhooks();
    let endpoint = app.endpoint("http://localhost:9/");
    let other = app.endpoint("http://localhost:9/");
    let id = store(&app, &endpoint, &DELIVERED);
    let stranger = app.other_tenant();
    let path = format!("{ENDPOINTS}/{endpoint}/deliveries");
    stranger.get(&path).expect_error(404, "not-found");
    stranger
        .get(&format!("{path}/{id}"))
        .expect_error(404, "not-found");
    for action in [
        format!("{ENDPOINTS}/{endpoint}/test"),
        format!("{path}/{id}/resend"),
    ] {
        stranger
            .send("POST", &action, None, &[])
            .expect_error(404, "not-found");
    }
    let elsewhere = format!("{ENDPOINTS}/{other}/deliveries/{id}");
    app.get(&elsewhere).expect_error(404, "not-found");
    app.send("POST", &format!("{elsewhere}/resend"), None, &[])
        .expect_error(404, "not-found");
    app.get(&format!("{path}/x")).expect_error(404, "not-found");
    app.delete(&format!("{ENDPOINTS}/{endpoint}")).expect(204);
    app.get(&format!("{path}/{id}"))
        .expect_error(404, "not-found");
}

#[test]
fn nothing_more_is_asked_for_while_thousands_wait() {
    let app = App::start_with_webhooks();
    let endpoint = app.endpoint("http://127.0.0.1:9/");
    let waits = Stored {
        state: "being-sent",
        attempts: 0,
        error: None,
        status: None,
    };
    let failed = store(&app, &endpoint, &FAILED);
    let first = store(&app, &endpoint, &waits);
    let many = "insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type,
           state, attempts, next_attempt_at, created_at)
         select tenant_id, (left(delivery_id::text, 24) || lpad(to_hex(n), 12, '0'))::uuid, endpoint_id,
           event_id, type, state, attempts, next_attempt_at, created_at
         from webhook_deliveries, generate_series(1, 4998) n where delivery_id = $1";
    let first: Uuid = first.parse().unwrap();
    app.database.client().execute(many, &[&first]).unwrap();
    let path = format!("{ENDPOINTS}/{endpoint}");
    let test = || app.send("POST", &format!("{path}/test"), None, &[]);
    test().expect(202);
    let error = test().expect_error(409, "conflict");
    assert_eq!(error["details"]["most"], json!(5000));
    let again = format!("{path}/deliveries/{failed}/resend");
    app.send("POST", &again, None, &[])
        .expect_error(409, "conflict");
    let since = json!({"failedSince": "2020-01-01T00:00:00Z"});
    app.post(&format!("{path}/resend"), &since)
        .expect_error(409, "conflict");
    let one = "delete from webhook_deliveries where delivery_id = $1";
    app.database.client().execute(one, &[&first]).unwrap();
    app.post(&format!("{path}/resend"), &since).expect(202);
}
