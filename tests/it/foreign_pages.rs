//! What pages of other origins do to somebody who is signed in, in a real browser: nothing.

use crate::harness::chromium::{Chromium, Tab};
use crate::harness::site::Site;
use crate::harness::{App, Database, LogLines, eventually, made, seeds};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};

/// An attack: a script of the page, in which `HOME` is the server's origin.
struct Attack {
    script: &'static str,
    /// The request that it makes.
    method: &'static str,
    route: &'static str,
    /// It needs no session: the server's own pages alone sign somebody in.
    signs_in: bool,
}

const fn uses(script: &'static str, method: &'static str, route: &'static str) -> Attack {
    Attack {
        script,
        method,
        route,
        signs_in: false,
    }
}

const SUBMIT: &str = "
const submit = (path, name, value, type) => {
  document.body.innerHTML = '<form method=post target=_blank><input></form>';
  const form = document.forms[0];
  Object.assign(form, { action: HOME + path, enctype: type });
  Object.assign(form.elements[0], { name, value });
  form.submit();
};
const load = (kind, path) => new Promise((done) => {
  const element = document.createElement(kind);
  element.onload = () => done('loaded');
  element.onerror = () => done('failed');
  element.src = HOME + path;
  document.body.append(element);
});
const ask = (path, options) => fetch(HOME + path, { credentials: 'include', ...options }).then((answer) => answer.type, String);
";

const ATTACKS: [Attack; 12] = [
    // A body that the browser sends without asking, which is JSON all the same.
    uses(
        r#"submit('/v1/projects', '{"name":"forged","x":"', '"}', 'text/plain')"#,
        "POST",
        "/v1/projects",
    ),
    uses(
        "submit('/v1/sign-out', 'a', 'b', '')",
        "POST",
        "/v1/sign-out",
    ),
    Attack {
        signs_in: true,
        ..uses(
            r#"submit('/v1/sign-in/token', '{"token":"TOKEN","x":"', '"}', 'text/plain')"#,
            "POST",
            "/v1/sign-in/token",
        )
    },
    Attack {
        signs_in: true,
        ..uses(
            r#"ask('/v1/sign-in/token', { method: 'POST', mode: 'no-cors', body: '{"token":"TOKEN"}' })"#,
            "POST",
            "/v1/sign-in/token",
        )
    },
    uses(
        "ask('/v1/sign-out', { method: 'POST', mode: 'no-cors' })",
        "POST",
        "/v1/sign-out",
    ),
    uses(
        r#"ask('/v1/tokens', { method: 'POST', mode: 'no-cors', body: '{"name":"forged"}' })"#,
        "POST",
        "/v1/tokens",
    ),
    uses("ask('/v1/tokens')", "GET", "/v1/tokens"),
    uses("load('img', '/v1/identity/me')", "GET", "/v1/identity/me"),
    uses(
        "load('script', '/v1/identity/me')",
        "GET",
        "/v1/identity/me",
    ),
    uses(
        "load('iframe', '/v1/identity/me')",
        "GET",
        "/v1/identity/me",
    ),
    uses(
        "void window.open(HOME + '/v1/identity/me')",
        "GET",
        "/v1/identity/me",
    ),
    uses(
        "void new EventSource(HOME + '/v1/approvals/stream', { withCredentials: true })",
        "GET",
        "/v1/approvals/stream",
    ),
];

/// A server, its log, and a browser in which its first user is signed in.
struct Scene {
    app: App,
    lines: LogLines,
    chromium: Chromium,
    own: Tab,
    home: String,
}

impl Scene {
    fn start() -> Self {
        let (lines, clock) = (LogLines::default(), Clock::system());
        let seeds = seeds(&clock);
        let log = lines.debug_logger();
        let app = App::start_logged(Database::migrated(), clock, seeds, &log, |_| {});
        let home = format!("http://localhost:{}", app.address().port());
        let mut chromium = Chromium::start();
        let own = chromium.open(&format!("{home}/docs"));
        let body = json!(json!({"token": app.token()}).to_string());
        let sign_in = format!(
            "fetch('/v1/sign-in/token', {{ method: 'POST', body: {body}, headers: {{ 'content-type': 'application/json' }} }})\
             .then((answer) => answer.status)"
        );
        assert_eq!(chromium.evaluate(&own, &sign_in), 204);
        Self {
            app,
            lines,
            chromium,
            own,
            home,
        }
    }

    /// What a page of the server itself reads.
    fn reads(&mut self, path: &str) -> Value {
        let read = format!("fetch('{path}').then((answer) => answer.json())");
        self.chromium.evaluate(&self.own, &read)
    }

    /// The codes with which requests to this route were refused, in order.
    fn refusals(&self, attack: &Attack) -> Vec<String> {
        let all = self.lines.records("A request was refused");
        let own = all
            .iter()
            .filter(|record| record["method"] == attack.method && record["route"] == attack.route);
        own.map(|record| record["error"]["code"].as_str().unwrap().to_owned())
            .collect()
    }

    fn run(&mut self, tab: &Tab, script: &str) -> Value {
        let whole = format!(
            "(() => {{ const HOME = '{}'; {SUBMIT} return {}; }})()",
            self.home,
            script.replace("TOKEN", self.app.token())
        );
        self.chromium.evaluate(tab, &whole)
    }
}

#[test]
fn pages_of_other_origins_change_nothing_and_read_nothing() {
    let mut scene = Scene::start();
    let key = scene
        .app
        .post("/v1/tokens", &json!({"name": "own"}))
        .expect(201);
    let nouns = ["projects", "tokens", "identity/me/sessions"];
    let held = |scene: &Scene| {
        nouns.map(|noun| {
            let page = scene.app.get(&format!("/v1/{noun}")).expect(200);
            made::column(&page, "id")
        })
    };
    let before = held(&scene);
    assert_eq!(before[2].len(), 1);
    let site = Site::start("<!doctype html><title>Somebody else</title><body>".to_owned());
    // Cookies do not tell ports apart: the browser sends the session from the one, and not from the other.
    for (host, has_session) in [("localhost", true), ("elsewhere.example", false)] {
        let tab = scene.chromium.open(&site.origin_as(host));
        for attack in &ATTACKS {
            let refused = scene.refusals(attack).len();
            let told = scene.run(&tab, attack.script);
            let code = eventually("the refusal", || {
                let codes = scene.refusals(attack);
                codes.get(refused).cloned()
            });
            let expected = match has_session || attack.signs_in {
                true => "csrf-origin-mismatch",
                false => "unauthenticated",
            };
            assert_eq!(code, expected, "{host}: {}", attack.script);
            // The page itself sees no more than that something came.
            let seen = ["opaque", "TypeError: Failed to fetch", "failed", "loaded"];
            let is_hidden = told.is_null() || seen.iter().any(|seen| told == *seen);
            assert!(is_hidden, "{host}: {}: {told}", attack.script);
        }
        // The browser asks first, and is not allowed.
        let path = format!("/v1/tokens/{}", made::id(&key));
        let delete = format!("ask('{path}', {{ method: 'DELETE' }})");
        assert_eq!(scene.run(&tab, &delete), "TypeError: Failed to fetch");
        assert_eq!(held(&scene), before, "{host}");
        let me = scene.reads("/v1/identity/me");
        assert_eq!(me["credential"]["kind"], "session", "{host}: {me}");
        assert_eq!(json!(before[2]), json!([me["credential"]["id"]]), "{host}");
    }
}
