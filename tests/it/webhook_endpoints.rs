//! `/v1/webhook-endpoints`.

use crate::harness::webhooks::{ENDPOINTS, SIGNING, deployed, endpoint, endpoint_id, receiver};
use crate::harness::{Answer, App, Client, eventually, made, together};
use agent_runtime::outbound::{self, Outbound};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;

/// Posts an endpoint with another value of one field.
fn post(app: &App, field: &str, value: Value) -> Answer {
    let mut body = endpoint("https://public.example/hooks");
    body[field] = value;
    app.post(ENDPOINTS, &body)
}

#[track_caller]
fn said(error: &Value, text: &str) {
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(text), "{message:?} lacks {text:?}");
}

#[test]
fn an_endpoint_is_registered_listed_changed_and_unregistered() {
    let app = App::start_with_webhooks();
    let project = made::project(&app);
    let filter = json!({"flowIds": ["agent.turn"], "projectId": project, "includeDryRuns": true});
    let mut body = endpoint("http://localhost:9/hooks?a=b");
    body["events"] = json!(["run.finished", "approval.requested"]);
    body["filter"] = filter.clone();
    let made = app.post(ENDPOINTS, &body).expect(201);
    for field in ["url", "events", "secretRef", "filter"] {
        assert_eq!(made[field], body[field], "{made}");
    }
    assert_eq!(made["state"], json!("healthy"));
    assert_eq!(
        made["deliveries"],
        json!({"delivered": 0, "failed": 0, "beingSent": 0})
    );
    assert_eq!(made["createdBy"], json!(app.seeds.user_id));
    assert!(!made.to_string().contains("whsec_"));
    let path = format!("{ENDPOINTS}/{}", endpoint_id(&made));
    assert_eq!(app.get(&path).expect(200), made);
    let listed = app.get(ENDPOINTS).expect(200);
    assert_eq!(listed, json!({"data": [made], "hasMore": false}));

    let changed = app
        .patch(&path, &json!({"url": "http://localhost:9/other"}))
        .expect(200);
    assert_eq!(changed["url"], json!("http://localhost:9/other"));
    assert_eq!(changed["filter"], filter);
    let changed = app
        .patch(&path, &json!({"filter": null, "events": ["run.finished"]}))
        .expect(200);
    assert_eq!(changed["events"], json!(["run.finished"]));
    assert!(changed.get("filter").is_none(), "{changed}");
    let changed = app.patch(&path, &json!({"filter": {}})).expect(200);
    assert_eq!(changed["filter"], json!({}));

    app.delete(&path).expect(204);
    app.get(&path).expect_error(404, "not-found");
    app.patch(&path, &json!({"filter": null}))
        .expect_error(404, "not-found");
    app.delete(&path).expect_error(404, "not-found");
    for action in ["/test", "/deliveries"] {
        let method = if action == "/test" { "POST" } else { "GET" };
        app.send(method, &format!("{path}{action}"), None, &[])
            .expect_error(404, "not-found");
    }
    let listed = app.get(ENDPOINTS).expect(200);
    assert_eq!(listed, json!({"data": [], "hasMore": false}));
}

#[test]
fn pages_of_endpoints_are_exact() {
    let app = App::start_with_webhooks();
    let mut ids: Vec<String> = (0..5)
        .map(|_| app.endpoint("http://localhost:9/"))
        .collect();
    let column = |page: &Value| made::column(page, "endpointId");
    let oldest = app
        .get(&format!("{ENDPOINTS}?order=asc&limit=3"))
        .expect(200);
    assert_eq!(column(&oldest), ids[..3]);
    ids.reverse();
    let first = app.get(&format!("{ENDPOINTS}?limit=3")).expect(200);
    assert_eq!(column(&first), ids[..3]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = app.get(&format!("{ENDPOINTS}?cursor={cursor}")).expect(200);
    assert_eq!(
        (column(&rest), &rest["hasMore"]),
        (ids[3..].to_vec(), &json!(false))
    );
    app.get(&format!("{ENDPOINTS}?order=asc&cursor={cursor}"))
        .expect_error(400, "invalid-cursor");
}

#[test]
fn without_a_backend_every_route_says_that_one_must_be_set() {
    let app = App::start_with_webhooks();
    let id = app.endpoint("http://localhost:9/");
    let off = app.replica(|options| options.secrets = agent_runtime::secrets::Options::Off);
    let one = format!("{ENDPOINTS}/{id}");
    let body = Some(endpoint("https://public.example/").to_string());
    let url = Some(json!({"url": "https://public.example/"}).to_string());
    let since = Some(json!({"failedSince": "2026-01-01T00:00:00Z"}).to_string());
    for (method, path, body) in [
        ("POST", ENDPOINTS.to_owned(), body),
        ("GET", ENDPOINTS.to_owned(), None),
        ("POST", format!("{ENDPOINTS}/check-url"), url),
        ("GET", one.clone(), None),
        ("PATCH", one.clone(), Some("{}".to_owned())),
        ("DELETE", one.clone(), None),
        ("POST", format!("{one}/test"), None),
        ("POST", format!("{one}/resend"), since),
        ("GET", format!("{one}/deliveries"), None),
        ("GET", format!("{one}/deliveries/{id}"), None),
        ("POST", format!("{one}/deliveries/{id}/resend"), None),
    ] {
        let error = off
            .send(method, &path, body, &[])
            .expect_error(501, "not-configured");
        said(&error, "a secrets backend must be set");
        assert_eq!(error["details"], json!({"setting": "SVC_SECRETS_BACKEND"}));
    }
    app.get(&one).expect(200);
}

#[test]
fn plain_http_is_for_development() {
    let url = "http://public.example/hooks";
    let deployed = App::start_with(deployed);
    deployed.put_secret("signing", SIGNING);
    let error = post(&deployed, "url", json!(url)).expect_error(400, "webhook-url-refused");
    assert_eq!(error["details"]["rule"], "https-only");
    deployed.endpoint("https://public.example/hooks");
    let development = App::start_with_webhooks();
    development.endpoint(url);
}

#[test]
fn a_refused_url_names_the_rule_and_the_address() {
    let app = App::start_with(deployed);
    app.put_secret("signing", SIGNING);
    for (url, rule, address, text) in [
        ("http://public.example/", "https-only", None, "https://"),
        ("ftp://public.example/", "scheme", None, "https://"),
        ("https://a:b@public.example/", "userinfo", None, "user name"),
        ("https://public.example/#a", "fragment", None, "fragment"),
        ("not a url", "url", None, "not valid"),
        (
            "https://10.1.2.3/",
            "10.0.0.0/8",
            Some("10.1.2.3"),
            "Private network addresses are not allowed",
        ),
        (
            "https://private.example/",
            "10.0.0.0/8",
            Some("10.1.2.3"),
            "Private network addresses are not allowed",
        ),
        (
            "https://half.example/",
            "fc00::/7",
            Some("fd00::7"),
            "Private network addresses are not allowed",
        ),
        (
            "https://127.1/",
            "127.0.0.0/8",
            Some("127.0.0.1"),
            "own host",
        ),
        (
            "https://metadata.example/",
            "169.254.169.254/32",
            Some("169.254.169.254"),
            "metadata",
        ),
    ] {
        let error = post(&app, "url", json!(url)).expect_error(400, "webhook-url-refused");
        said(&error, "Webhooks may not go to this URL. ");
        said(&error, text);
        assert_eq!(error["details"]["path"], json!("$.url"), "{url}");
        assert_eq!(error["details"]["rule"], json!(rule), "{url}");
        assert_eq!(error["details"]["address"], json!(address), "{url}");
        let checked = app
            .post(&format!("{ENDPOINTS}/check-url"), &json!({"url": url}))
            .expect(200);
        assert_eq!(checked["allowed"], json!(false), "{checked}");
        assert_eq!(checked["refusal"]["rule"], json!(rule), "{checked}");
        assert_eq!(checked["refusal"]["address"], json!(address), "{checked}");
    }
    let listed = app.get(ENDPOINTS).expect(200);
    assert_eq!(listed["data"], json!([]));
    let endpoint = app.endpoint("https://public.example/");
    let path = format!("{ENDPOINTS}/{endpoint}");
    app.patch(&path, &json!({"url": "https://private.example/"}))
        .expect_error(400, "webhook-url-refused");
    assert_eq!(
        app.get(&path).expect(200)["url"],
        json!("https://public.example/")
    );
}

#[test]
fn private_networks_are_opened_over_https_alone_and_metadata_never() {
    let app = App::start_with(|options| {
        deployed(options);
        options.webhooks.private_networks = true;
    });
    app.put_secret("signing", SIGNING);
    app.endpoint("https://private.example/");
    for url in ["http://private.example/", "https://metadata.example/"] {
        post(&app, "url", json!(url)).expect_error(400, "webhook-url-refused");
    }
}

#[test]
fn a_url_is_checked_without_being_registered() {
    let app = App::start_with(deployed);
    let check = |url: &str| {
        app.post(&format!("{ENDPOINTS}/check-url"), &json!({"url": url}))
            .expect(200)
    };
    assert_eq!(
        check("https://pub\tlic.EXAMPLE:443/a b"),
        json!({
            "url": "https://public.example/a%20b",
            "allowed": true,
            "addresses": ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
        })
    );
    let unresolved = check("https://nowhere.example/");
    assert_eq!(unresolved["allowed"], json!(true));
    assert_eq!(unresolved["addresses"], json!([]));
    assert!(
        unresolved["unresolved"]
            .as_str()
            .unwrap()
            .contains("nowhere.example"),
        "{unresolved}"
    );
    // A name that does not resolve today is the attempts' matter, and it is stored as it was read.
    app.put_secret("signing", SIGNING);
    let made = post(&app, "url", json!("https:///NOWHERE.example")).expect(201);
    assert_eq!(made["url"], json!("https://nowhere.example/"));
}

#[test]
fn the_secret_must_be_there_and_strong() {
    let app = App::start_with(deployed);
    let missing = post(&app, "events", json!(["run.finished"]));
    let error = missing.expect_error(400, "webhook-secret-not-found");
    said(
        &error,
        "Store the secret first, then register the endpoint.",
    );
    assert_eq!(
        error["details"],
        json!({"path": "$.secretRef", "envName": "live", "name": "signing"})
    );
    for weak in [
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa",
        "whsec_not base64",
    ] {
        app.put_secret("signing", weak);
        let answer = post(&app, "events", json!(["run.finished"]));
        assert!(!answer.text.contains(weak), "{}", answer.text);
        answer.expect_error(400, "webhook-secret-weak");
    }
    // However long it is.
    app.put_secret("signing", &format!("whsec_{}", "c2lnbmluZyBz".repeat(100)));
    app.endpoint("https://public.example/");
    app.put_secret("signing", SIGNING);
    let path = format!("{ENDPOINTS}/{}", app.endpoint("https://public.example/"));
    let other = json!({"secretRef": {"envName": "live", "name": "other"}});
    app.patch(&path, &other)
        .expect_error(400, "webhook-secret-not-found");
    for (field, value) in [("name", "a".repeat(10_000)), ("envName", String::new())] {
        let mut named = json!({"envName": "live", "name": "signing"});
        named[field] = json!(value);
        let error = post(&app, "secretRef", named).expect_error(400, "invalid-body");
        let path = format!("$.secretRef.{field}");
        assert_eq!(error["details"]["path"], json!(path));
    }
}

#[test]
fn another_secret_signs_beside_the_earlier_one_for_a_day() {
    let app = App::start_with_webhooks();
    app.put_secret("next", SIGNING);
    let path = format!("{ENDPOINTS}/{}", app.endpoint("http://localhost:9/"));
    let named = |name: &str| json!({"envName": "live", "name": name});
    let same = app
        .patch(&path, &json!({"secretRef": named("signing")}))
        .expect(200);
    assert!(same.get("previousSecret").is_none(), "{same}");
    let changed = app
        .patch(&path, &json!({"secretRef": named("next")}))
        .expect(200);
    assert_eq!(changed["secretRef"], named("next"));
    let previous = &changed["previousSecret"];
    assert_eq!(previous["secretRef"], named("signing"));
    let until = previous["signsUntil"].as_str().unwrap();
    let until = agent_runtime::ids::rfc3339::parse(until).unwrap();
    let left = until - app.clock.now();
    assert!(
        left > time::Duration::hours(23) && left <= time::Duration::hours(24),
        "{left}"
    );
    let other = app
        .patch(&path, &json!({"events": ["run.finished"]}))
        .expect(200);
    assert_eq!(&other["previousSecret"], previous, "it is kept");
    let ended = "update webhook_endpoints set previous_until = now() - interval '1 second'";
    app.database.client().execute(ended, &[]).unwrap();
    let after = app.get(&path).expect(200);
    assert!(after.get("previousSecret").is_none(), "{after}");
}

#[test]
fn what_is_wrong_with_an_endpoint_is_named() {
    let app = App::start_with_webhooks();
    let flows: Vec<String> = (0..=200).map(|flow| flow.to_string()).collect();
    let nobody = "00000000-0000-0000-0000-000000000000";
    let stranger = app.other_tenant();
    let theirs = made::project(&stranger);
    for (field, value, path) in [
        ("url", json!(7), "$.url"),
        ("events", json!([]), "$.events"),
        ("events", json!(["webhook.test"]), "$.events[0]"),
        (
            "events",
            json!(["run.finished", "run.finished"]),
            "$.events[1]",
        ),
        ("filter", json!({"projectId": nobody}), "$.filter.projectId"),
        ("filter", json!({"projectId": theirs}), "$.filter.projectId"),
        ("filter", json!({"flowIds": []}), "$.filter.flowIds"),
        ("filter", json!({"flowIds": flows}), "$.filter.flowIds"),
        ("filter", json!({"flowIds": [""]}), "$.filter.flowIds[0]"),
        (
            "filter",
            json!({"flowIds": ["test.a", "test.a"]}),
            "$.filter.flowIds[1]",
        ),
        (
            "filter",
            json!({"flowIds": ["agent.turn", "Billing.refund"]}),
            "$.filter.flowIds[1]",
        ),
        (
            "filter",
            json!({"flowIds": ["refund"]}),
            "$.filter.flowIds[0]",
        ),
        (
            "filter",
            json!({"flowIds": ["a.b.c"]}),
            "$.filter.flowIds[0]",
        ),
        ("filter", json!({"colour": "red"}), "$.filter.colour"),
        ("secretRef", json!({"name": "signing"}), "$.secretRef"),
    ] {
        let error = post(&app, field, value).expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path), "{error}");
    }
    let mut body = endpoint("http://localhost:9/");
    body["events"] = json!(["run.finished"]);
    body["filter"] = json!({"flowIds": ["test.a"]});
    let made = app.post(ENDPOINTS, &body).expect(201);
    let path = format!("{ENDPOINTS}/{}", endpoint_id(&made));
    // What the filter says of other kinds than those of the endpoint stays, and applies where it applies.
    let events = json!({"events": ["approval.requested"]});
    let changed = app.patch(&path, &events).expect(200);
    assert_eq!(changed["filter"], body["filter"]);
    let dry_runs = json!({"flowIds": ["test.a"], "includeDryRuns": true});
    body["events"] = json!(["approval.requested", "improvement-pass.finished"]);
    body["filter"] = dry_runs.clone();
    let taken = app.post(ENDPOINTS, &body).expect(201);
    assert_eq!(taken["filter"], dry_runs);
    let long = format!("https://public.example/{}", "a".repeat(2048));
    let error = post(&app, "url", json!(long)).expect_error(400, "webhook-url-refused");
    said(&error, "longer than 2048 bytes");
}

#[test]
fn a_tenant_has_a_bounded_number_of_endpoints() {
    let app = App::start_with_webhooks();
    let many = "insert into webhook_endpoints (tenant_id, endpoint_id, url, events, secret_environment,
         secret_name, has_filter, created_by, created_at, updated_at)
       select $1, gen_random_uuid(), 'http://localhost:9/', '{run.finished}', 'live', 'signing', false, $2, now(), now()
       from generate_series(1, 999)";
    app.database
        .client()
        .execute(many, &[&app.seeds.tenant_id, &app.seeds.user_id])
        .unwrap();
    let register = || post(&app, "events", json!(["run.finished"])).status;
    let (first, second) = together(register, register);
    assert_eq!(first.min(second), 201);
    assert_eq!(first.max(second), 409);
    let error = post(&app, "events", json!(["run.finished"])).expect_error(409, "conflict");
    said(&error, "1000 webhook endpoints at most");
    let one = app.get(&format!("{ENDPOINTS}?limit=1")).expect(200);
    let path = format!("{ENDPOINTS}/{}", endpoint_id(&one["data"][0]));
    app.delete(&path).expect(204);
    post(&app, "events", json!(["run.finished"])).expect(201);
}

#[test]
fn a_repeated_registration_registers_once() {
    let app = App::start_with_webhooks();
    let body = endpoint("http://localhost:9/");
    let send = |body: &Value| {
        let headers = [("idempotency-key", "one")];
        app.send("POST", ENDPOINTS, Some(body.to_string()), &headers)
    };
    let first = send(&body).expect(201);
    assert_eq!(send(&body).expect(201), first);
    send(&endpoint("http://localhost:9/other")).expect_error(422, "idempotency-mismatch");
    // The key is the route's own.
    let listed = app.get(ENDPOINTS).expect(200);
    assert_eq!(listed["data"], json!([first]));
    app.delete(&format!("{ENDPOINTS}/{}", endpoint_id(&first)))
        .expect(204);
    send(&body).expect_error(404, "not-found");
}

#[test]
fn an_endpoint_is_the_tenants_own() {
    let app = App::start_with_webhooks();
    let id = app.endpoint("http://localhost:9/");
    let stranger = app.other_tenant();
    let path = format!("{ENDPOINTS}/{id}");
    stranger.get(&path).expect_error(404, "not-found");
    stranger
        .patch(&path, &json!({"events": ["run.finished"]}))
        .expect_error(404, "not-found");
    stranger.delete(&path).expect_error(404, "not-found");
    let listed = stranger.get(ENDPOINTS).expect(200);
    assert_eq!(listed["data"], json!([]));
    // Nor does it sign with a secret of this tenant.
    stranger
        .post(ENDPOINTS, &endpoint("http://localhost:9/"))
        .expect_error(400, "webhook-secret-not-found");
    app.get(&path).expect(200);
}

#[test]
fn a_change_and_the_end_of_an_endpoint_at_once() {
    let app = App::start_with_webhooks();
    for _ in 0..5 {
        let path = format!("{ENDPOINTS}/{}", app.endpoint("http://localhost:9/"));
        let change = || {
            app.patch(&path, &json!({"events": ["run.finished"]}))
                .status
        };
        let (changed, ended) = together(change, || app.delete(&path).status);
        assert_eq!(ended, 204);
        assert!([200, 404].contains(&changed), "{changed}");
        app.get(&path).expect_error(404, "not-found");
    }
}

#[test]
fn an_endpoint_shows_how_its_deliveries_go() {
    let app = App::start_with_webhooks();
    let receiver = receiver();
    let good = format!("{ENDPOINTS}/{}", app.endpoint(&receiver.url()));
    let dead = format!("{ENDPOINTS}/{}", app.endpoint("http://127.0.0.1:9/"));
    for path in [&good, &dead] {
        app.send("POST", &format!("{path}/test"), None, &[])
            .expect(202);
    }
    let good = eventually("the test to be delivered", || {
        let endpoint = app.get(&good).expect(200);
        (endpoint["deliveries"]["delivered"] == json!(1)).then_some(endpoint)
    });
    assert_eq!(good["state"], json!("healthy"));
    assert!(good["lastDeliveredAt"].is_string() && good["lastError"].is_null());
    let dead = eventually("the test to fail", || {
        let endpoint = app.get(&dead).expect(200);
        (endpoint["state"] == json!("failing")).then_some(endpoint)
    });
    assert_eq!(dead["lastError"], json!("nothing-listening"));
    assert!(dead["lastFailedAt"].is_string() && dead["lastStatus"].is_null());
    assert_eq!(
        dead["deliveries"],
        json!({"delivered": 0, "failed": 0, "beingSent": 1})
    );
}

#[test]
fn requests_that_wait_for_name_servers_leave_threads_to_the_others() {
    let (release, blocked) = crossbeam_channel::bounded::<()>(0);
    let (began, looking) = crossbeam_channel::unbounded();
    let lookup = move |_: &str| {
        began.send(()).unwrap();
        let _ = blocked.recv();
        Ok(vec![IpAddr::from([93, 184, 216, 34])])
    };
    let app = App::start_with(|options| {
        deployed(options);
        // Four of them may wait, two for one tenant.
        options.limits.request_threads = 8;
        options.outbound = Outbound::new(outbound::Options {
            lookup: Some(Arc::new(lookup)),
            ..outbound::Options::default()
        })
        .unwrap();
    });
    let path = format!("{ENDPOINTS}/check-url");
    let check_as = |client: &Client, name: &str| {
        client.post(&path, &json!({"url": format!("https://{name}/")}))
    };
    let check = |name: &str| check_as(&app, name);
    let other = app.other_tenant();
    std::thread::scope(|scope| {
        let waiting = ["one.test", "two.test"].map(|name| scope.spawn(move || check(name)));
        for _ in 0..2 {
            looking.recv().unwrap();
        }
        let refused = check("three.test");
        assert!(refused.header("retry-after").is_some());
        refused.expect_error(503, "overloaded");
        // Another tenant has room.
        let others = scope.spawn(|| check_as(&other, "four.test"));
        looking.recv().unwrap();
        // What waits for nobody goes on.
        app.put_secret("signing", SIGNING);
        app.get(ENDPOINTS).expect(200);
        drop(release);
        for thread in waiting.into_iter().chain([others]) {
            thread.join().unwrap().expect(200);
        }
    });
}
