//! Browsers on other origins, exactly as section 1.3 of the specification has it: the two routes
//! that a public run token can use, for the listed origins, and nothing else.

use crate::harness::{Answer, App, Client, secrets};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::http::route::Route;
use agent_runtime::server;

const LISTED: &str = "https://console.example";
const PROGRESS: &str = "/v1/runs/{runId}/progress";

fn cors_headers(headers: &[(String, String)]) -> Vec<String> {
    headers
        .iter()
        .filter(|(name, _)| name.to_lowercase().starts_with("access-control-"))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

fn allows(headers: &[(String, String)], origin: &str) -> bool {
    let allowed = format!("access-control-allow-origin: {origin}");
    cors_headers(headers).contains(&allowed)
}

/// Calls every route as a browser does, first asking, then with each kind of credential.
fn sweep(app: &App, origin: &str, mut check: impl FnMut(&Route, &str, &Answer)) {
    let nobody = app.with_token(None);
    for route in server::table(true, true).routes() {
        let path = route.path.replace(['{', '}'], "");
        let method = route.method.text();
        let body = (route.body_bytes > 0).then(|| "{}".to_owned());
        for client in [&nobody, app as &Client] {
            let headers = [("origin", origin)];
            let answer = client.send(method, &path, body.clone(), &headers);
            check(route, "call", &answer);
        }
        let asking = [
            ("origin", origin),
            ("access-control-request-method", method),
            ("access-control-request-headers", "authorization"),
        ];
        let answer = nobody.send("OPTIONS", &path, None, &asking);
        check(route, "preflight", &answer);
    }
}

#[test]
fn without_a_list_no_route_has_a_cors_header() {
    let app = App::start_with_secrets();
    let mut routes = 0;
    sweep(&app, LISTED, |route, how, answer| {
        routes += 1;
        let headers = cors_headers(&answer.headers);
        assert!(headers.is_empty(), "{how} {}: {headers:?}", route.path);
        if how == "preflight" {
            assert_eq!(answer.status, 405, "{}", route.path);
        }
    });
    assert!(routes > 30);
}

#[test]
fn a_browser_shows_nothing_of_an_answer_and_gives_it_to_no_other_page() {
    let app = App::start_with_secrets();
    sweep(&app, LISTED, |route, how, answer| {
        let policy = answer.header("content-security-policy").unwrap_or_default();
        let is_page = ["/docs", "/console"]
            .iter()
            .any(|own| route.path.starts_with(own));
        if is_page && answer.status == 200 {
            assert!(policy.starts_with("default-src 'none'; "), "{answer:?}");
        } else {
            assert_eq!(
                policy, "default-src 'none'; frame-ancestors 'none'",
                "{how} {}: {answer:?}",
                route.path
            );
        }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let kept = answer.header("cross-origin-resource-policy");
        let is_open = how == "call" && route.path.starts_with(PROGRESS);
        assert_eq!(
            kept,
            (!is_open).then_some("same-origin"),
            "{how} {}",
            route.path
        );
    });
    let nobody = app.with_token(None);
    for path in ["/healthz", "/nothing-here", "/v1/runs?limit=none"] {
        let answer = nobody.get(path);
        let policy = answer.header("content-security-policy");
        assert_eq!(
            policy,
            Some("default-src 'none'; frame-ancestors 'none'"),
            "{path}"
        );
        let kept = answer.header("cross-origin-resource-policy");
        assert_eq!(kept, Some("same-origin"), "{path}");
    }
}

#[test]
fn a_listed_origin_reads_progress_and_nothing_else() {
    let app = App::start_with(|options| {
        options.allowed_origins = vec![LISTED.to_owned()];
        options.secrets = secrets::Keys::new().options();
    });
    let mut opened = Vec::new();
    sweep(&app, LISTED, |route, how, answer| {
        if !route.path.starts_with(PROGRESS) {
            assert!(
                cors_headers(&answer.headers).is_empty(),
                "{how} {}",
                route.path
            );
            return;
        }
        assert!(allows(&answer.headers, LISTED), "{how} {answer:?}");
        assert_eq!(answer.header("vary"), Some("Origin"));
        assert!(answer.header("access-control-allow-credentials").is_none());
        if how == "preflight" {
            assert_eq!((answer.status, answer.text.as_str()), (204, ""));
            assert_eq!(answer.header("access-control-allow-methods"), Some("GET"));
            let headers = answer.header("access-control-allow-headers").unwrap();
            assert!(headers.contains("authorization") && headers.contains("last-event-id"));
            opened.push(route.path);
        } else {
            // An error, since there is no such run: the page may read why.
            assert!([401, 404].contains(&answer.status), "{answer:?}");
        }
    });
    assert_eq!(opened, [PROGRESS, "/v1/runs/{runId}/progress/stream"]);
}

#[test]
fn an_origin_that_is_not_listed_gets_nothing() {
    let app = App::start_with(|options| {
        options.allowed_origins = vec![LISTED.to_owned(), "http://localhost:3000".to_owned()];
    });
    let bare = |origin: &str, how: &str, path: &str, answer: &Answer| {
        let headers = cors_headers(&answer.headers);
        assert!(headers.is_empty(), "{origin:?} {how} {path}: {headers:?}");
    };
    let evil = "https://evil.example";
    sweep(&app, evil, |route, how, answer| {
        bare(evil, how, route.path, answer)
    });
    for origin in [
        "https://console.example.evil.example",
        "https://console.example:8443",
        "http://console.example",
        "https://CONSOLE.example",
        "null",
        "*",
        "",
    ] {
        for path in ["/v1/runs/x/progress", "/v1/runs/x/progress/stream"] {
            for method in ["GET", "OPTIONS"] {
                let headers = [("origin", origin), ("access-control-request-method", "GET")];
                bare(
                    origin,
                    method,
                    path,
                    &app.send(method, path, None, &headers),
                );
            }
        }
    }
}

#[test]
fn a_browser_follows_a_run_with_its_public_token() {
    let app = App::start_with(|options| {
        options.allowed_origins = vec![LISTED.to_owned()];
        options.secrets = secrets::Keys::new().options();
    });
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let id = app.start_turn(app.agent(&provider.base_url()), "a");
    app.finished(&id);
    let body = serde_json::json!({"runIds": [id]});
    let token = app.post("/v1/tokens/public", &body).expect(201);
    let browser = app.with_token(token["token"].as_str());
    let headers = [("origin", LISTED)];
    let read = browser.send("GET", &format!("/v1/runs/{id}/progress"), None, &headers);
    assert_eq!(read.status, 200);
    assert!(allows(&read.headers, LISTED));
    let mut stream = browser.open(&Client::stream_of(&id), &headers);
    assert!(allows(&stream.headers, LISTED), "{:?}", stream.headers);
    assert!(!stream.rest().is_empty());
    let mut other = browser.open(
        &Client::stream_of(&id),
        &[("origin", "https://evil.example")],
    );
    assert!(cors_headers(&other.headers).is_empty());
    assert!(!other.rest().is_empty());
}
