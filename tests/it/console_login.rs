//! `/__dev/bearer`: who gets the token in development (section 1.3), and that nobody else finds the route.

use crate::harness::openfga::OpenFga;
use crate::harness::{App, Client, Database, LogLines, authorization, seeds};
use agent_runtime::config::{Origin, TokenSignIn};
use agent_runtime::ids::Clock;
use serde_json::json;

/// `Host`, `Sec-Fetch-Site`, `Origin`, and whether the token is handed out.
type Asked = (
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    bool,
);

const OWN: Option<&str> = Some("same-origin");

/// Section 1.3: a request is answered that is addressed to one of three names, whatever their port; and no page of another
/// origin has sent it.
const MATRIX: [Asked; 40] = [
    ("localhost:4000", None, None, true),
    ("127.0.0.1:4000", None, None, true),
    ("[::1]:4000", None, None, true),
    // A container's port that is mapped to another one of the host.
    ("localhost:49153", OWN, Some("http://localhost:49153"), true),
    ("localhost", None, None, true),
    ("127.0.0.1", None, None, true),
    ("[::1]", None, None, true),
    ("LocalHost:4000", OWN, None, true),
    ("localhost:4000", OWN, Some("http://localhost:4000"), true),
    ("127.0.0.1:4000", OWN, Some("http://127.0.0.1:4000"), true),
    ("[::1]:4000", OWN, Some("http://[::1]:4000"), true),
    ("localhost:4000", None, Some("http://localhost:4000"), true),
    // A name that an attacker points at this host.
    ("evil.example", None, None, false),
    (
        "evil.example:4000",
        OWN,
        Some("http://evil.example:4000"),
        false,
    ),
    ("localhost.evil.example:4000", OWN, None, false),
    ("127.0.0.1.evil.example", OWN, None, false),
    ("localhost@evil.example", None, None, false),
    ("a.localhost:4000", OWN, None, false),
    ("localhost.", OWN, None, false),
    ("localhost.:4000", OWN, None, false),
    // Other writings and other addresses of this host.
    ("127.1:4000", None, None, false),
    ("127.0.0.2:4000", None, None, false),
    ("127.0.0.01:4000", None, None, false),
    ("2130706433:4000", None, None, false),
    ("0x7f.0.0.1:4000", None, None, false),
    ("0.0.0.0:4000", None, None, false),
    ("[::]:4000", None, None, false),
    ("[::ffff:127.0.0.1]:4000", None, None, false),
    ("[0:0:0:0:0:0:0:1]:4000", None, None, false),
    ("10.0.0.5:4000", None, None, false),
    ("ip6-localhost:4000", None, None, false),
    // Pages of other origins, of other ports of this host included.
    ("localhost:4000", Some("cross-site"), None, false),
    (
        "localhost:4000",
        Some("same-site"),
        Some("http://localhost:3000"),
        false,
    ),
    ("localhost:4000", Some("none"), None, false),
    ("localhost:4000", Some(""), None, false),
    ("localhost:4000", None, Some("http://localhost:3000"), false),
    (
        "localhost:4000",
        None,
        Some("https://localhost:4000"),
        false,
    ),
    ("localhost:4000", None, Some("http://127.0.0.1:4000"), false),
    ("localhost:4000", None, Some("null"), false),
    ("127.0.0.1:4000", OWN, Some("http://evil.example"), false),
];

fn ask(client: &Client, asked: Asked) -> crate::harness::Answer {
    let (host, site, origin, _) = asked;
    let mut headers = vec![("host", host)];
    headers.extend(site.map(|site| ("sec-fetch-site", site)));
    headers.extend(origin.map(|origin| ("origin", origin)));
    client.send("GET", "/__dev/bearer", None, &headers)
}

#[test]
fn the_token_goes_to_pages_of_this_very_host_and_to_nobody_else() {
    let on = App::start_with(|options| {
        options.sign_in.console_token = Some(options.seeds.token.clone())
    });
    let off = on.replica(|_| {});
    let (asked_on, asked_off) = (on.with_token(None), off.with_token(None));
    for asked in MATRIX {
        let answer = ask(&asked_on, asked);
        let is_answered = answer.status == 200;
        assert_eq!(is_answered, asked.3, "{asked:?}: {answer:?}");
        let cors = answer.header("access-control-allow-origin");
        assert_eq!(cors, None, "{asked:?}");
        let hidden = ask(&asked_off, asked);
        if is_answered {
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let policy = answer.header("cross-origin-resource-policy");
            assert_eq!(policy, Some("same-origin"));
            assert_eq!(answer.json(), json!({"token": on.token()}));
        } else if answer.status == 404 {
            // As any path that there is not.
            let error = answer.expect_error(404, "route-not-found");
            let unknown = asked_on.get("/__dev/other");
            let unknown = unknown.expect_error(404, "route-not-found");
            assert_eq!(error["message"], unknown["message"], "{asked:?}");
        } else {
            // The door takes no such header.
            answer.expect_error(400, "invalid-request");
        }
        assert!([400, 404].contains(&hidden.status), "{asked:?}: {hidden:?}");
        assert!(!hidden.text.contains(on.token()));
    }
}

#[test]
fn a_request_that_a_proxy_passed_on_does_not_get_the_token() {
    let start = |listen: &str| {
        let (lines, clock) = (LogLines::default(), Clock::system());
        let (seeds, log) = (seeds(&clock), lines.logger());
        let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
            options.listen = listen.parse().unwrap();
            options.sign_in.console_token = Some(options.seeds.token.clone());
        });
        (app, lines.with("SVC_DEV_CONSOLE_LOGIN").len())
    };
    let (app, warnings) = start("127.0.0.1:0");
    assert_eq!(warnings, 0);
    let page = app.with_token(None);
    page.get("/__dev/bearer").expect(200);
    for header in [
        ("forwarded", "for=192.0.2.1"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-host", "agents.example.com"),
        ("via", "1.1 proxy"),
        ("via", ""),
    ] {
        let answer = page.send("GET", "/__dev/bearer", None, &[header]);
        answer.expect_error(404, "route-not-found");
    }
    let (_open, warnings) = start("0.0.0.0:0");
    assert_eq!(warnings, 1);
}

#[test]
fn the_console_signs_in_with_it_whatever_the_settings_say() {
    let app = App::start_with(|options| {
        options.authorization = Some(authorization(&OpenFga::shared().url()));
        options.sign_in.console_token = Some(options.seeds.token.clone());
        options.sign_in.token_sign_in = TokenSignIn::Off;
    });
    app.is_in_step();
    let page = app.with_token(None);
    let ways = page.get("/v1/sign-in").expect(200);
    assert_eq!(ways["developmentLogin"], json!(true));
    assert_eq!(ways["tokenSignIn"], json!("off"));
    let handed = page.get("/__dev/bearer").expect(200);
    let answer = page.post_from_page("/v1/sign-in/token", &handed);
    assert_eq!(answer.status, 204, "{answer:?}");
    let browser = app.browser(&answer.session());
    let sessions = browser.get("/v1/identity/me/sessions").expect(200);
    assert_eq!(sessions["data"][0]["method"], json!("development"));
    let records = app.get("/v1/audit/authz?action=sign-in").expect(200);
    let reason = records["data"][0]["reason"].as_str().unwrap();
    let named = "signed in with development token ";
    assert!(reason.contains(named), "{reason}");
    let other = app.post("/v1/tokens", &json!({"name": "a"})).expect(201);
    let other = json!({"token": other["token"]});
    page.post_from_page("/v1/sign-in/token", &other)
        .expect_error(403, "token-sign-in-off");
    // A public address changes nothing of that.
    let public = app.replica(|options| {
        options.sign_in.console_token = Some(options.seeds.token.clone());
        options.sign_in.public_url = Origin::parse("https://agents.example.com");
    });
    public.with_token(None).get("/__dev/bearer").expect(200);
}
