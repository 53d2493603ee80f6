//! Faults by which others let the wrong person in, each with the tests that provoke it here. Device codes are left out, and
//! the phishing by them with them.

use super::{Scene, problem_of, session_of};
use crate::harness::{App, Client, OWN_PAGE};
use serde_json::{Value, json};

/// A fault, what it is, and the tests: a file below `tests/it`, and a function in it.
type Fault = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const FAULTS: [Fault; 13] = [
    (
        "CVE-2023-3128 (Grafana), nOAuth, CVE-2026-9084 (MISP), manyfold#5088",
        "an email is taken for who somebody is",
        &[
            (
                "identities/property.rs",
                "no_subject_gets_a_person_for_whose_email_its_provider_does_not_speak",
            ),
            (
                "identities/arrivals.rs",
                "a_subject_is_bound_once_by_its_email_and_is_its_person_from_then_on",
            ),
        ],
    ),
    (
        "CVE-2025-65107 (Langfuse), CVE-2025-68158 (Authlib), CVE-2025-68481 (fastapi-users), CVE-2025-14546",
        "a sign-in is bound to no browser",
        &[
            (
                "provider_sign_in/refusals.rs",
                "the_state_of_another_browser_signs_nobody_in",
            ),
            (
                "provider_sign_in/refusals.rs",
                "a_flow_ends_once_and_in_ten_minutes",
            ),
        ],
    ),
    (
        "CVE-2015-9284 (OmniAuth)",
        "a link of another site begins a sign-in",
        &[(
            "provider_sign_in/refusals.rs",
            "only_a_page_of_this_server_begins",
        )],
    ),
    (
        "Langfuse up to 3.173",
        "a rule about signing in holds for some of the ways in",
        &[
            (
                "sign_in.rs",
                "refusals_of_token_sign_in_are_recorded_with_the_check_that_refused",
            ),
            ("identities/settings.rs", "a_tenants_setting_refuses_tokens"),
            (
                "sweep/sessions.rs",
                "a_session_meets_every_route_as_its_token_does",
            ),
        ],
    ),
    (
        "mix-up between providers (RFC 9700, RFC 9207)",
        "a code goes to another provider",
        &[
            (
                "provider_sign_in/refusals.rs",
                "an_answer_of_another_provider_goes_to_no_token_endpoint",
            ),
            (
                "oidc/faults.rs",
                "an_answer_of_another_provider_is_noticed_before_the_code_goes_anywhere",
            ),
        ],
    ),
    (
        "CVE-2026-25537 (jsonwebtoken)",
        "a claim of the wrong type counts as one that is absent",
        &[(
            "oidc/faults.rs",
            "claims_that_bind_a_token_have_to_be_there_and_of_their_type",
        )],
    ),
    (
        "alg none, and HS256 with a public key (RFC 8725, section 2.1)",
        "a token says how it is to be verified",
        &[(
            "oidc/faults.rs",
            "a_token_that_is_not_signed_or_not_as_it_should_be_is_refused",
        )],
    ),
    (
        "CVE-2026-40575 (oauth2-proxy)",
        "forwarded headers are believed",
        &[
            (
                "provider_sign_in/named_faults.rs",
                "headers_that_proxies_add_decide_nothing",
            ),
            (
                "console_login.rs",
                "a_request_that_a_proxy_passed_on_does_not_get_the_token",
            ),
        ],
    ),
    (
        "CVE-2023-1387 (Grafana)",
        "a credential is taken from an address",
        &[(
            "provider_sign_in/named_faults.rs",
            "a_credential_in_an_address_opens_nothing",
        )],
    ),
    (
        "CVE-2018-15727 (Grafana)",
        "a cookie can be forged or outlasts its session",
        &[
            (
                "provider_sign_in/mod.rs",
                "the_cookies_are_as_they_have_to_be",
            ),
            ("sessions.rs", "a_session_ends_unused_and_at_its_latest_end"),
        ],
    ),
    (
        "CVE-2025-66414 (MCP SDK)",
        "a page of another name reads what loopback serves",
        &[
            (
                "console_login.rs",
                "the_token_goes_to_pages_of_this_very_host_and_to_nobody_else",
            ),
            (
                "sign_in.rs",
                "a_session_is_used_from_the_servers_own_pages_alone",
            ),
        ],
    ),
    (
        "CVE-2019-19844 (Django)",
        "two emails are one by folding their letters",
        &[(
            "identities/arrivals.rs",
            "an_email_of_other_letters_is_nobodys",
        )],
    ),
    (
        "go-gitea PR 5123",
        "a provider makes itself an admin of the tenant",
        &[(
            "identities/groups.rs",
            "groups_give_change_and_take_memberships",
        )],
    ),
];

#[test]
fn every_named_fault_has_its_tests() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for (fault, _, tests) in FAULTS {
        for (file, test) in tests {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            let line = format!("#[test]\nfn {test}() {{");
            assert!(text.contains(&line), "{fault}: {file} has no {test}");
        }
    }
}

/// What proxies say of a request: this host, this path.
fn forwarded<'a>(host: &'a str, path: &'a str) -> [(&'static str, &'a str); 8] {
    [
        ("x-forwarded-host", host),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-prefix", "/evil"),
        ("x-forwarded-uri", path),
        ("x-original-url", path),
        ("x-rewrite-url", path),
        ("x-original-host", host),
    ]
}

#[test]
fn headers_that_proxies_add_decide_nothing() {
    let scene = Scene::start();
    let own = scene.app.address().to_string();
    let (session, _) = session_of(&scene.sign_in());
    let (nobody, browser) = (scene.app.with_token(None), scene.app.browser(&session));
    let send = |client: &Client, method, path: &str, headers: &[(&str, &str)]| {
        let body = (method == "POST").then(|| "{}".to_owned());
        client.send(method, path, body, headers)
    };
    // Another path that is open makes no path open.
    for open in ["/healthz", "/v1/sign-in", "/console/"] {
        let headers = forwarded(&own, open);
        send(&nobody, "GET", "/v1/identity/me", &headers).expect_error(401, "unauthenticated");
        let started = send(&nobody, "POST", &scene.start_path(), &headers);
        started.expect_error(403, "csrf-origin-mismatch");
    }
    // At another address the server's own name in them counts for nothing.
    let elsewhere = [
        &[("host", "evil.example"), OWN_PAGE][..],
        &forwarded(&own, "/"),
    ]
    .concat();
    send(&browser, "GET", "/v1/identity/me", &elsewhere).expect_error(401, "unauthenticated");
    send(&nobody, "POST", &scene.start_path(), &elsewhere)
        .expect_error(403, "csrf-origin-mismatch");
    let begun = scene.begin("/console/runs");
    let back = scene.provider.opened(&begun.url);
    let path = &back.url[url::Position::BeforePath..];
    let headers = [&elsewhere[..], &[("cookie", begun.cookie.as_str())]].concat();
    send(&nobody, "GET", path, &headers).expect_error(403, "csrf-origin-mismatch");
    // At its own address another name in them is not believed either.
    let evil = forwarded("evil.example", "/evil");
    let here = [&[OWN_PAGE][..], &evil].concat();
    send(&browser, "GET", "/v1/identity/me", &here).expect(200);
    let started = send(&nobody, "POST", &scene.start_path(), &here).expect(200);
    let url = url::Url::parse(started["url"].as_str().unwrap()).unwrap();
    let mut pairs = url.query_pairs();
    let (_, redirect) = pairs.find(|(name, _)| name == "redirect_uri").unwrap();
    assert!(
        redirect.starts_with(&format!("http://{own}/sign-in/callback/")),
        "{redirect}"
    );
    let headers = [&evil[..], &[("cookie", begun.cookie.as_str())]].concat();
    let (_, to) = session_of(&send(&nobody, "GET", path, &headers));
    assert_eq!(to, "/console/runs");
    let answer = send(&nobody, "GET", path, &evil);
    assert_eq!(problem_of(&answer), "flow-expired");
}

/// Names under which others take a credential from a query.
const NAMES: [&str; 8] = [
    "token",
    "auth_token",
    "access_token",
    "bearer",
    "jwt",
    "api_key",
    "session",
    "authorization",
];

#[test]
fn a_credential_in_an_address_opens_nothing() {
    let app = App::start();
    let (token, session) = (app.token().to_owned(), app.sign_in(app.token()));
    let bearer = format!("Bearer%20{token}");
    let (nobody, cookie) = (app.with_token(None), app.cookie());
    let run = format!("/v1/runs/{}/progress/stream", app.clock.new_id());
    let mut names = NAMES.to_vec();
    names.push(&cookie);
    for value in [&token, &session, &bearer] {
        for name in &names {
            for path in ["/v1/identity/me", "/v1/projects", &run] {
                let answer = nobody.get(&format!("{path}?{name}={value}"));
                answer.expect_error(401, "unauthenticated");
            }
        }
    }
    // To sign in by one, it has to be in the body.
    for (way, name) in [("token", "token"), ("enrolment", "code")] {
        let path = format!("/v1/sign-in/{way}?{name}={token}");
        let answer = nobody.post_from_page(&path, &json!({}));
        assert!([400, 401].contains(&answer.status), "{answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let _: Value = app.get("/v1/identity/me").expect(200);
}
