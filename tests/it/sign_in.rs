//! `/v1/sign-in`: the ways in, what each is refused, and the sessions that they give.

use crate::harness::{Answer, App, Client, OWN_PAGE, eventually, made};
use agent_runtime::config::{Origin, TokenSignIn};
use agent_runtime::ids::rfc3339;
use serde_json::{Value, json};
use std::time::Duration;

const TOKEN: &str = "/v1/sign-in/token";
const ENROLMENT: &str = "/v1/sign-in/enrolment";

fn by_token(app: &App, token: &str) -> Answer {
    app.with_token(None)
        .post_from_page(TOKEN, &json!({"token": token}))
}

fn by_code(app: &App, person: &Value) -> Answer {
    let code = json!({"code": person["enrolment"]["code"]});
    app.with_token(None).post_from_page(ENROLMENT, &code)
}

/// A key of a new person, with these limits.
fn key_of(app: &App, email: &str, role: &str, limits: &Value) -> String {
    let person = made::person(app, email, role);
    let client = made::enrolled(app, &person);
    let key = client.post("/v1/tokens", limits).expect(201);
    key["token"].as_str().unwrap().to_owned()
}

/// What is recorded of signing in, the oldest first.
fn recorded(app: &App) -> Vec<Value> {
    let page = app.get("/v1/audit/authz?action=sign-in").expect(200);
    page["data"].as_array().unwrap().clone()
}

#[test]
fn a_token_signs_in_until_its_person_signs_out() {
    let app = App::start();
    let answer = by_token(&app, app.token());
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    let session = answer.session();
    let name = format!("__Host-agent-runtime-{}", app.address().port());
    let whole = format!("{name}={session}; Path=/; Secure; HttpOnly; SameSite=Strict");
    assert_eq!(answer.header("set-cookie"), Some(whole.as_str()));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(session.strip_prefix("svc_ss_").unwrap().len(), 49);
    let browser = app.browser(&session);
    let me = browser.get("/v1/identity/me").expect(200);
    assert_eq!(me["id"], json!(app.seeds.user_id));
    assert_eq!(me["tenantId"], json!(app.seeds.tenant_id));
    assert_eq!(me["tenantRole"], json!("admin"));
    assert_eq!(me["credential"]["kind"], json!("session"));
    let own = app.get("/v1/identity/me").expect(200);
    assert_eq!(own["credential"]["kind"], json!("token"));
    assert_eq!(own["id"], me["id"]);
    // The value itself is nowhere in the database.
    let mut database = app.database.client();
    let kept = database.query_one("select to_jsonb(s)::text from sessions s", &[]);
    let kept: String = kept.unwrap().get(0);
    assert!(!kept.contains(&session[7..]), "{kept}");
    let out = browser.send("POST", "/v1/sign-out", None, &[]);
    assert_eq!(out.status, 200, "{out:?}");
    assert_eq!(out.json(), json!({"providerSignOutUrl": null}));
    let cleared = format!("{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict");
    assert_eq!(out.header("set-cookie"), Some(cleared.as_str()));
    assert_eq!(out.header("clear-site-data"), Some("\"cache\""));
    let refused = browser.get("/v1/identity/me");
    // A late answer must not take the cookie of a sign-in in another tab.
    assert_eq!(refused.header("set-cookie"), None);
    refused.expect_error(401, "unauthenticated");
    let again = browser.send("POST", "/v1/sign-out", None, &[]);
    assert_eq!(again.header("set-cookie"), None);
    again.expect_error(401, "unauthenticated");
    app.get("/v1/identity/me").expect(200);
}

#[test]
fn a_cookie_has_its_name_byte_by_byte() {
    let app = App::start();
    let session = app.sign_in(app.token());
    let name = format!("__Host-agent-runtime-{}", app.address().port());
    let ask = |cookie: String| {
        let headers = [OWN_PAGE, ("cookie", cookie.as_str())];
        app.with_token(None)
            .send("GET", "/v1/projects", None, &headers)
    };
    for blank in ["", " ", "\t", " \t "] {
        ask(format!("a=b;{blank}{name}={session}{blank}; c=d")).expect(200);
    }
    // Browsers keep the prefix for the host itself, and let its neighbours set these names.
    for blank in [
        "\u{a0}", "\u{2003}", "\u{3000}", "\u{2028}", "\u{feff}", "\u{85}",
    ] {
        for cookie in [
            format!("{blank}{name}={session}"),
            format!("{name}{blank}={session}"),
        ] {
            ask(cookie.clone()).expect_error(401, "unauthenticated");
            // Neither do they put the session out.
            ask(format!("{name}={session}; {cookie}")).expect(200);
        }
    }
}

#[test]
fn a_page_that_says_twice_where_it_is_from_is_refused() {
    let app = App::start();
    let session = app.sign_in(app.token());
    let browser = app.browser(&session);
    let own = format!("http://{}", app.address());
    for (name, value) in [("sec-fetch-site", "same-origin"), ("origin", own.as_str())] {
        for second in [value, "cross-site", "https://evil.example"] {
            let headers = [(name, value), (name, second)];
            let body = Some(json!({"name": "made"}).to_string());
            let refused = browser.send("POST", "/v1/projects", body, &headers);
            refused.expect_error(400, "invalid-request");
        }
    }
}

#[test]
fn a_session_is_no_token_and_a_token_is_no_session() {
    let app = App::start();
    let session = app.sign_in(app.token());
    app.browser(&session).get("/v1/projects").expect(200);
    let as_header = app.with_token(Some(&session)).get("/v1/projects");
    as_header.expect_error(401, "unauthenticated");
    app.get("/v1/projects").expect(200);
    let as_cookie = app.browser(app.token()).get("/v1/projects");
    as_cookie.expect_error(401, "unauthenticated");
    // Of two cookies of the name, one is not ours.
    let twice = format!("{0}={session}; {0}=svc_ss_other", app.cookie());
    let mut two = app.browser(&session);
    two.standing_is("cookie", &twice);
    two.get("/v1/projects").expect_error(401, "unauthenticated");
}

#[test]
fn a_browser_that_signs_in_again_has_one_session() {
    let app = App::start();
    let first = app.sign_in(app.token());
    let browser = app.browser(&first);
    let again = browser.post_from_page(TOKEN, &json!({"token": app.token()}));
    assert_eq!(again.status, 204, "{again:?}");
    let second = again.session();
    assert_ne!(first, second);
    browser
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
    app.browser(&second).get("/v1/identity/me").expect(200);
    // A value that somebody else put into the browser is not taken over.
    let planted = app.browser("svc_ss_planted");
    let own = planted.post_from_page(TOKEN, &json!({"token": app.token()}));
    assert_ne!(own.session(), "svc_ss_planted");
}

#[test]
fn what_is_not_known_is_refused_without_a_reason_and_not_recorded() {
    let app = App::start_authorized();
    let public = app.with_token(Some(app.token()));
    let run = json!({"runIds": [app.clock.new_id()]});
    drop(public.post("/v1/tokens/public", &run));
    let revoked = app.post("/v1/tokens", &json!({"name": "a"})).expect(201);
    let path = format!("/v1/tokens/{}", made::id(&revoked));
    app.delete(&path).expect(204);
    let person = made::person(&app, "gone@b", "member");
    let gone = made::enrolled(&app, &person);
    let path = format!("/v1/identity/users/{}/deactivate", made::id(&person));
    app.send("POST", &path, None, &[]).expect(200);
    let end = rfc3339::text(app.clock.now() + Duration::from_secs(60));
    let short = json!({"name": "short", "expiresAt": end});
    let short = app.post("/v1/tokens", &short).expect(201);
    app.clock.advance(Duration::from_secs(61));
    for token in [
        "svc_bt_unknown",
        "svc_pt_e30.AAAA",
        "",
        revoked["token"].as_str().unwrap(),
        gone.token(),
        short["token"].as_str().unwrap(),
    ] {
        let refused = by_token(&app, token);
        assert_eq!(refused.header("set-cookie"), None);
        refused.expect_error(401, "unauthenticated");
    }
    let unknown = json!({"enrolment": {"code": "svc_en_unknown"}});
    by_code(&app, &unknown).expect_error(401, "unauthenticated");
    assert_eq!(recorded(&app), [] as [Value; 0]);
    // Nothing of a body that holds a secret is repeated.
    for body in [
        json!({"token": 3}),
        json!({"tokens": "svc_bt_x"}),
        json!([]),
    ] {
        let refused = app.with_token(None).post_from_page(TOKEN, &body);
        assert!(!refused.text.contains("svc_bt_x"));
        refused.expect_error(400, "invalid-body");
    }
}

/// A refusal that has somebody: its body, and its one record.
fn check_refusal(app: &App, token: &str, code: &str, told: &str) {
    let before = recorded(app).len();
    let error = by_token(app, token).expect_error(403, code);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(told), "{message}");
    let resource = format!("tenant:{}", app.seeds.tenant_id);
    let details = json!({"action": "sign-in", "resource": resource, "reason": message});
    assert_eq!(error["details"], details);
    let rows = recorded(app);
    assert_eq!(rows.len(), before + 1, "{rows:?}");
    let row = rows.last().unwrap();
    assert_eq!(row["outcome"], json!("denied"));
    assert_eq!(row["stage"], json!(code));
    assert_eq!(row["resource"], json!(resource));
    assert_eq!(row["reason"], json!(format!("{code}: {message}")));
    let client = app.with_token(Some(token));
    let me = client.get("/v1/identity/me").expect(200);
    let subject = format!("user:{}", me["id"].as_str().unwrap());
    assert_eq!(row["actorSubject"], json!(subject));
}

#[test]
fn refusals_of_token_sign_in_are_recorded_with_the_check_that_refused() {
    let app = App::start_authorized();
    let account = app
        .post("/v1/service-accounts", &json!({"name": "robot"}))
        .expect(201);
    let path = format!("/v1/service-accounts/{}/tokens", made::id(&account));
    let robot = app.post(&path, &json!({"name": "key"})).expect(201);
    let robot = robot["token"].as_str().unwrap();
    let limited = json!({"name": "one", "projectId": made::project(&app)});
    let limited = app.post("/v1/tokens", &limited).expect(201);
    let limited = limited["token"].as_str().unwrap();
    let member = key_of(&app, "member@b", "member", &json!({"name": "a"}));
    let not_allowed = "token-sign-in-not-allowed";
    check_refusal(&app, robot, not_allowed, "service account");
    check_refusal(&app, limited, not_allowed, "limited to a project");
    by_token(&app, &member).session();
    let signed_in = recorded(&app);
    let row = signed_in.last().unwrap();
    assert_eq!(row["outcome"], json!("allowed"));
    assert_eq!(row["stage"], json!("sign-in"));
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("signed in with token "), "{reason}");
    // What follows is recorded as of the credential that it came with.
    assert_eq!(
        row["credential"],
        json!({"kind": "session", "id": row["keyId"]})
    );
    let browser = app.signed_in(app.token());
    let me = browser.get("/v1/identity/me").expect(200);
    browser.get("/v1/identity/users").expect(200);
    app.get("/v1/identity/users").expect(200);
    let own = app.get("/v1/identity/me").expect(200);
    let page = app.get("/v1/audit/authz?order=desc&limit=20").expect(200);
    let rows = page["data"].as_array().unwrap().iter();
    let of_list = rows.filter(|row| row["route"] == "GET /v1/identity/users");
    let credentials: Vec<_> = of_list.map(|row| row["credential"].clone()).collect();
    let of = |me: &Value| json!({"kind": me["credential"]["kind"], "id": me["credential"]["id"]});
    assert_eq!(credentials, [of(&own), of(&me)]);
    assert_eq!(
        [&credentials[0]["kind"], &credentials[1]["kind"]],
        ["token", "session"]
    );
    let admins = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Admins);
    check_refusal(&admins, &member, not_allowed, "Only tenant admins");
    by_token(&admins, app.token()).session();
    let off = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Off);
    let to_off = "token-sign-in-off";
    for token in [&member, robot, limited, app.token()] {
        check_refusal(&off, token, to_off, "Nobody signs in");
    }
    // A code is taken whatever the setting says.
    let person = made::person(&app, "coded@b", "member");
    by_code(&off, &person).session();
}

/// Specification 1.1.1: whoever holds a token can do anything in its tenant. That nobody signs in by one is the operator's word.
#[test]
fn without_authorization_any_token_signs_in_unless_the_operator_says_that_none_does() {
    let app = App::start();
    let account = app
        .post("/v1/service-accounts", &json!({"name": "robot"}))
        .expect(201);
    let path = format!("/v1/service-accounts/{}/tokens", made::id(&account));
    let robot = app.post(&path, &json!({"name": "key"})).expect(201);
    let limited = json!({"name": "one", "projectId": made::project(&app)});
    let limited = app.post("/v1/tokens", &limited).expect(201);
    let member = key_of(&app, "member@b", "member", &json!({"name": "a"}));
    let admins = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Admins);
    let off = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Off);
    let tokens = [&robot["token"], &json!(member), &limited["token"]];
    for token in tokens.map(|token| token.as_str().unwrap()) {
        let browser = app.signed_in(token);
        browser.get("/v1/identity/me").expect(200);
        browser.get("/v1/identity/users").expect(200);
        by_token(&off, token).expect_error(403, "token-sign-in-off");
    }
    // The limited token is a tenant admin's.
    for token in &tokens[..2] {
        let token = token.as_str().unwrap();
        by_token(&admins, token).expect_error(403, "token-sign-in-not-allowed");
    }
    by_token(&admins, tokens[2].as_str().unwrap()).session();
}

#[test]
fn an_enrolment_code_signs_in_once_with_its_limits() {
    let app = App::start_authorized();
    let person = made::person(&app, "ann@b", "member");
    let answer = by_code(&app, &person);
    assert_eq!(answer.status, 204, "{answer:?}");
    let browser = app.browser(&answer.session());
    let me = browser.get("/v1/identity/me").expect(200);
    assert_eq!(me["id"], person["id"]);
    assert_eq!(me["email"], json!("ann@b"));
    by_code(&app, &person).expect_error(401, "unauthenticated");
    let rows = recorded(&app);
    let reason = rows.last().unwrap()["reason"].as_str().unwrap();
    assert!(reason.contains("signed in with enrolment "), "{reason}");
    // People who signed in make their own keys, which stay when the session ends.
    let key = browser.post("/v1/tokens", &json!({"name": "laptop"}));
    let key = key.expect(201);
    assert_eq!(key["expiresAt"], Value::Null);
    browser.send("POST", "/v1/sign-out", None, &[]);
    let client = app.with_token(key["token"].as_str());
    client.get("/v1/identity/me").expect(200);
    // Of a limited maker the session, and what it mints, is as limited.
    let end = rfc3339::text(app.clock.now() + Duration::from_secs(3600));
    let limits =
        json!({"name": "a", "capabilities": ["access:write", "keys:write"], "expiresAt": end});
    let maker = app.post("/v1/tokens", &limits).expect(201);
    let maker = app.with_token(maker["token"].as_str());
    let person = made::person(&maker, "bob@b", "admin");
    let browser = app.browser(&by_code(&app, &person).session());
    let me = browser.get("/v1/identity/me").expect(200);
    assert_eq!(me["credential"]["expiresAt"], json!(end));
    let key = browser
        .post("/v1/tokens", &json!({"name": "b"}))
        .expect(201);
    assert_eq!(key["expiresAt"], json!(end));
    assert_eq!(key["capabilities"], limits["capabilities"]);
}

#[test]
fn a_code_that_was_made_in_a_session_outlives_it_and_ends_with_its_token() {
    let app = App::start_authorized();
    let key = |name: &str| {
        let key = app.post("/v1/tokens", &json!({"name": name})).expect(201);
        (made::id(&key), key["token"].as_str().unwrap().to_owned())
    };
    let (_, lasting) = key("lasting");
    let browser = app.signed_in(&lasting);
    let kept = made::person(&browser, "kept@b", "member");
    browser.send("POST", "/v1/sign-out", None, &[]);
    by_code(&app, &kept).session();
    let (id, token) = key("revoked");
    let lost = made::person(&app.signed_in(&token), "lost@b", "member");
    app.delete(&format!("/v1/tokens/{id}")).expect(204);
    by_code(&app, &lost).expect_error(401, "unauthenticated");
    // Of a session that came from a code, there is no token to end with.
    let admin = made::person(&app, "admin@b", "admin");
    let browser = app.browser(&by_code(&app, &admin).session());
    let further = made::person(&browser, "further@b", "member");
    by_code(&app, &further).session();
    // Who is signed out by an admin leaves no code behind.
    let left = made::person(&browser, "left@b", "member");
    let path = format!("/v1/identity/users/{}/sign-out", made::id(&admin));
    app.send("POST", &path, None, &[]).expect(204);
    by_code(&app, &left).expect_error(401, "unauthenticated");
}

#[test]
fn a_session_has_the_limits_of_its_token_and_ends_with_it() {
    let app = App::start_authorized();
    let end = app.clock.now() + Duration::from_secs(1800);
    let limits =
        json!({"name": "a", "role": "member", "capabilities": [], "expiresAt": rfc3339::text(end)});
    let key = app.post("/v1/tokens", &limits).expect(201);
    let browser = app.signed_in(key["token"].as_str().unwrap());
    let own = browser.get("/v1/identity/me/permissions").expect(200);
    assert_eq!(own["key"]["role"], json!("member"));
    assert_eq!(own["key"]["capabilities"], json!([]));
    browser
        .get("/v1/identity/users")
        .expect_error(403, "permission-denied");
    browser
        .post("/v1/tokens", &json!({"name": "b"}))
        .expect_error(403, "permission-denied");
    app.clock.advance(Duration::from_secs(1799));
    browser.get("/v1/identity/me").expect(200);
    app.clock.advance(Duration::from_secs(2));
    browser
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
}

#[test]
fn what_one_may_sign_in_with_is_told_at_the_address_that_is_asked() {
    let app = App::start();
    let told = app.with_token(None).get("/v1/sign-in").expect(200);
    let plain = json!({"publicUrl": null, "tenantId": app.seeds.tenant_id, "providers": [], "tokenSignIn": "on",
        "developmentLogin": false, "problem": null});
    assert_eq!(told, plain);
    // Of several tenants one is to be named. A stranger is not told which there are.
    drop(app.other_tenant());
    let told = app.with_token(None).get("/v1/sign-in").expect(200);
    assert_eq!(told["tenantId"], Value::Null);
    let path = format!("/v1/sign-in?tenantId={}", app.seeds.tenant_id);
    assert_eq!(app.with_token(None).get(&path).expect(200), plain);
    let public = |url: &'static str| {
        app.replica(move |options| {
            options.sign_in.development = false;
            options.sign_in.public_url = Origin::parse(url);
            options.sign_in.token_sign_in = TokenSignIn::Admins;
        })
    };
    let at = |app: &App, host: &str| {
        let asked = app
            .with_token(None)
            .send("GET", "/v1/sign-in", None, &[("host", host)]);
        asked.expect(200)["problem"].clone()
    };
    let served = public("https://agents.example.com");
    for host in [
        "agents.example.com",
        "Agents.Example.COM:443",
        "agents.example.com:8443",
    ] {
        assert_eq!(at(&served, host), Value::Null, "{host}");
    }
    for host in [
        "127.0.0.1",
        "localhost",
        "agents.example.com.evil.example",
        "evil.example",
    ] {
        assert_eq!(at(&served, host), json!("other-address"), "{host}");
    }
    let nowhere = app.replica(|options| options.sign_in.development = false);
    assert_eq!(at(&nowhere, "agents.example.com"), json!("not-configured"));
    by_token(&nowhere, app.token()).expect_error(501, "not-configured");
}

/// Where a request says that it comes from, and whether it may sign in, read, and write with a session.
type Origins = (&'static [(&'static str, &'static str)], bool, bool);

const HOME: &str = "https://agents.example.com";

const ORIGINS: [Origins; 14] = [
    (&[("sec-fetch-site", "same-origin")], true, true),
    (
        &[("sec-fetch-site", "same-origin"), ("origin", HOME)],
        true,
        true,
    ),
    (&[("origin", HOME)], true, true),
    (&[("sec-fetch-site", "none")], false, true),
    (&[], false, true),
    (&[("sec-fetch-site", "same-site")], false, false),
    (&[("sec-fetch-site", "cross-site")], false, false),
    (
        &[("sec-fetch-site", "cross-site"), ("origin", HOME)],
        false,
        false,
    ),
    (&[("sec-fetch-site", "")], false, false),
    (&[("origin", "https://evil.example")], false, false),
    (
        &[("origin", "https://agents.example.com:8443")],
        false,
        false,
    ),
    (&[("origin", "http://agents.example.com")], false, false),
    (&[("origin", "null")], false, false),
    (
        &[
            ("sec-fetch-site", "none"),
            ("origin", "https://evil.example"),
        ],
        false,
        false,
    ),
];

#[test]
fn a_session_is_used_from_the_servers_own_pages_alone() {
    let app = App::start_with(|options| {
        options.sign_in.development = false;
        options.sign_in.public_url = Origin::parse(HOME);
    });
    let send = |client: &Client, method, path, body: Option<&Value>, from: &[(&str, &str)]| {
        let mut headers = vec![("host", "agents.example.com")];
        headers.extend_from_slice(from);
        client.send(method, path, body.map(Value::to_string), &headers)
    };
    let nobody = app.with_token(None);
    let token = json!({"token": app.token()});
    let signed_in = send(&nobody, "POST", TOKEN, Some(&token), &[OWN_PAGE]);
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-agent-runtime=svc_ss_"),
        "{cookie}"
    );
    let mut browser = app.browser("");
    browser.standing_is("cookie", cookie.split(';').next().unwrap());
    browser.standing_clear("sec-fetch-site");
    let project = json!({"name": "made"});
    for (from, writes, reads) in ORIGINS {
        for (method, path, body, may) in [
            ("POST", TOKEN, Some(&token), writes),
            ("POST", "/v1/projects", Some(&project), writes),
            ("GET", "/v1/projects", None, reads),
            ("HEAD", "/v1/projects", None, reads),
        ] {
            let client = if path == TOKEN { &nobody } else { &browser };
            let answer = send(client, method, path, body, from);
            let told = format!("{method} {path} {from:?}: {answer:?}");
            assert_eq!(answer.status < 300, may, "{told}");
            assert!(may || answer.status == 403, "{told}");
            assert!(!may || answer.header("access-control-allow-origin").is_none());
            if !may && method != "HEAD" {
                answer.expect_error(403, "csrf-origin-mismatch");
            }
        }
    }
    // A stream is read from an own page alone: older browsers say nothing of it.
    let run = format!("/v1/runs/{}/progress/stream", app.clock.new_id());
    send(&browser, "GET", &run, None, &[]).expect_error(403, "csrf-origin-mismatch");
    send(&browser, "GET", &run, None, &[OWN_PAGE]).expect_error(404, "not-found");
    // At another address the cookie counts for nothing, whatever the page.
    for host in ["localhost", "agents.example.com.evil.example", "127.0.0.1"] {
        let headers = [("host", host), OWN_PAGE];
        let elsewhere = browser.send("GET", "/v1/projects", None, &headers);
        elsewhere.expect_error(401, "unauthenticated");
        let headers = [("host", host), OWN_PAGE];
        let elsewhere = nobody.send("POST", TOKEN, Some(token.to_string()), &headers);
        elsewhere.expect_error(403, "csrf-origin-mismatch");
    }
    let made = app.get("/v1/projects").expect(200);
    let writing = ORIGINS.iter().filter(|(_, writes, _)| *writes).count();
    assert_eq!(made["data"].as_array().unwrap().len(), writing);
}

#[test]
fn open_sessions_are_counted() {
    let app = App::start();
    let [_, _, ended] = [(); 3].map(|()| app.sign_in(app.token()));
    let out = app.browser(&ended).send("POST", "/v1/sign-out", None, &[]);
    out.expect(200);
    // They are counted when a process starts, and again in a while.
    let replica = app.replica(|_| {});
    eventually("two open sessions", || {
        let metrics = replica.get("/metrics").text;
        let mut lines = metrics.lines();
        lines
            .any(|line| line == "agent_runtime_sessions 2")
            .then_some(())
    });
}

#[test]
fn sign_ins_are_counted() {
    let app = App::start();
    by_token(&app, app.token()).session();
    by_token(&app, "svc_bt_unknown");
    by_code(&app, &json!({"enrolment": {"code": "svc_en_unknown"}}));
    // What the server could not decide is no refusal.
    let mut database = app.database.client();
    let rename = |from: &str, to: &str| format!("alter table {from} rename to {to}");
    database.batch_execute(&rename("users", "aside")).unwrap();
    assert!(by_token(&app, app.token()).status >= 500);
    database.batch_execute(&rename("aside", "users")).unwrap();
    let metrics = app.get("/metrics").text;
    for line in [
        r#"agent_runtime_sign_ins_total{method="token",outcome="opened"} 1"#,
        r#"agent_runtime_sign_ins_total{method="token",outcome="refused"} 1"#,
        r#"agent_runtime_sign_ins_total{method="enrolment",outcome="opened"} 0"#,
        r#"agent_runtime_sign_ins_total{method="enrolment",outcome="refused"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}
