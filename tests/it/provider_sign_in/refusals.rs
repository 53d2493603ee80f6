//! Who is not signed in: a browser that did not begin, a provider that is not to be believed, and nobody of this tenant.

use super::{Scene, problem_of, register_client, session_of, set_cookies};
use crate::harness::identity_provider::{
    CLIENT_ID, CLIENT_SECRET, IdentityProvider, Instead, Signer,
};
use crate::harness::{Answer, App, OWN_PAGE};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn only_a_page_of_this_server_begins() {
    let scene = Scene::start();
    let nobody = scene.app.with_token(None);
    let body = || Some("{}".to_owned());
    for headers in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[OWN_PAGE, ("host", "evil.example")],
    ] {
        let refused = nobody.send("POST", &scene.start_path(), body(), headers);
        assert_eq!(set_cookies(&refused), [] as [String; 0]);
        refused.expect_error(403, "csrf-origin-mismatch");
    }
    // By a link nobody begins.
    nobody
        .get(&scene.start_path())
        .expect_error(405, "method-not-allowed");
    assert_eq!(scene.provider.asked("/.well-known/openid-configuration"), 0);
    let other = "/v1/sign-in/providers/00000000-0000-7000-8000-000000000000/start";
    nobody
        .post_from_page(other, &json!({}))
        .expect_error(404, "not-found");
    for body in [
        json!({"returnTo": 7}),
        json!({"again": "yes"}),
        json!({"a": 1}),
        json!([]),
    ] {
        nobody
            .post_from_page(&scene.start_path(), &body)
            .expect_error(400, "invalid-body");
    }
}

#[test]
fn the_state_of_another_browser_signs_nobody_in() {
    let scene = Scene::start();
    let (own, others) = (scene.begin("/console/"), scene.begin("/console/"));
    let back = scene.provider.opened(&others.url);
    // Whoever sends a browser here with a code and a state of their own: it lacks the cookie.
    assert_eq!(problem_of(&scene.come_back(None, &back)), "flow-expired");
    assert_eq!(
        problem_of(&scene.come_back(Some(&own.cookie), &back)),
        "flow-expired"
    );
    // A cookie of the same name with another state in it.
    let (name, _) = others.cookie.split_once('=').unwrap();
    let (_, value) = own.cookie.split_once('=').unwrap();
    let mixed = format!("{name}={value}");
    assert_eq!(
        problem_of(&scene.come_back(Some(&mixed), &back)),
        "flow-expired"
    );
    for odd in ["", "x", "e30", "bm90IGpzb24"] {
        let odd = format!("{name}={odd}");
        assert_eq!(
            problem_of(&scene.come_back(Some(&odd), &back)),
            "flow-expired"
        );
    }
    let twice = format!("{0}; {0}", others.cookie);
    assert_eq!(
        problem_of(&scene.come_back(Some(&twice), &back)),
        "flow-expired"
    );
    let mut bare = back.clone();
    bare.url.set_query(None);
    assert_eq!(
        problem_of(&scene.come_back(Some(&others.cookie), &bare)),
        "flow-expired"
    );
    assert_eq!(scene.provider.asked("/token"), 0);
    assert_eq!(scene.counted("refused"), 0);
    session_of(&scene.come_back(Some(&others.cookie), &back));
}

#[test]
fn a_flow_ends_once_and_in_ten_minutes() {
    let scene = Scene::start();
    let begun = scene.begin("/console/");
    let back = scene.provider.opened(&begun.url);
    scene.app.clock.advance(Duration::from_secs(601));
    let late = scene.come_back(Some(&begun.cookie), &back);
    assert_eq!(problem_of(&late), "flow-expired");
    // Whatever came of it, the browser forgets it.
    let name = begun.cookie.split('=').next().unwrap();
    assert_eq!(
        set_cookies(&late),
        [format!(
            "{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
        )]
    );
    scene.app.clock.set_back(Duration::from_secs(601));
    let begun = scene.begin("/console/");
    let back = scene.provider.opened(&begun.url);
    session_of(&scene.come_back(Some(&begun.cookie), &back));
    // Back in the browser's history: the cookie is gone. Somebody who kept it has a code that was used.
    assert_eq!(problem_of(&scene.come_back(None, &back)), "flow-expired");
    let again = scene.come_back(Some(&begun.cookie), &back);
    assert_eq!(problem_of(&again), "provider-not-believed");
    let logged = scene.logged("provider-code-refused");
    assert!(
        logged["error"]["message"]
            .as_str()
            .unwrap()
            .contains("invalid_grant"),
        "{logged}"
    );
    assert!(
        logged["remedy"].as_str().unwrap().contains("Sign in again"),
        "{logged}"
    );
    assert_eq!(scene.counted("refused"), 1);
}

#[test]
fn a_sign_in_comes_back_once_although_the_provider_takes_its_code_again() {
    let scene = Scene::start();
    scene.provider.says().takes_codes_again = true;
    let begun = scene.begin("/console/");
    let back = scene.provider.opened(&begun.url);
    session_of(&scene.come_back(Some(&begun.cookie), &back));
    let again = scene.come_back(Some(&begun.cookie), &back);
    assert_eq!(problem_of(&again), "flow-expired");
    let told = scene
        .log
        .with("A sign-in came back that had come back before");
    assert_eq!(told.len(), 1, "{told:?}");
    // Another state in the address and in the cookie is the same sign-in: the provider signed its nonce.
    let other = scene.begin("/console/");
    let (name, value) = other.cookie.split_once('=').unwrap();
    let read = |text: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    };
    let (mut forged, own) = (read(value), read(begun.cookie.split_once('=').unwrap().1));
    forged["n"] = own["n"].clone();
    forged["v"] = own["v"].clone();
    let cookie = format!("{name}={}", URL_SAFE_NO_PAD.encode(forged.to_string()));
    let mut elsewhere = back.clone();
    let state = forged["s"].as_str().unwrap();
    elsewhere
        .url
        .query_pairs_mut()
        .clear()
        .append_pair("code", &back.code())
        .append_pair("state", state);
    assert_eq!(
        problem_of(&scene.come_back(Some(&cookie), &elsewhere)),
        "flow-expired"
    );
    // A sign-in of its own comes back.
    let back = scene.provider.opened(&other.url);
    session_of(&scene.come_back(Some(&other.cookie), &back));
}

#[test]
fn an_answer_of_another_provider_goes_to_no_token_endpoint() {
    let scene = Scene::start();
    let evil = IdentityProvider::start();
    // One provider speaks for a domain.
    let (named, client) = ((evil.issuer(), "Evil accounts"), (CLIENT_ID, CLIENT_SECRET));
    let evil_id = register_client(&scene.app, named, client, json!({"emailDomains": []}));
    let begun = scene.begin("/console/");
    let back = scene.provider.opened(&begun.url);
    // To the callback of another provider than it began at.
    let mut elsewhere = back.clone();
    elsewhere
        .url
        .set_path(&format!("/sign-in/callback/{evil_id}"));
    assert_eq!(
        problem_of(&scene.come_back(Some(&begun.cookie), &elsewhere)),
        "flow-expired"
    );
    // From another issuer, to the callback of the one at which it began.
    let mut mixed = back.clone();
    mixed
        .url
        .query_pairs_mut()
        .append_pair("iss", evil.issuer());
    let answer = scene.come_back(Some(&begun.cookie), &mixed);
    assert_eq!(problem_of(&answer), "provider-not-believed");
    scene.logged("provider-iss-differs");
    // A parameter that stands twice is nobody's.
    let begun = scene.begin("/console/");
    let mut doubled = scene.provider.opened(&begun.url);
    doubled.url.query_pairs_mut().append_pair("code", "code-9");
    assert_eq!(
        problem_of(&scene.come_back(Some(&begun.cookie), &doubled)),
        "provider-refused"
    );
    assert_eq!(
        (evil.asked("/token"), scene.provider.asked("/token")),
        (0, 0)
    );
}

#[test]
fn a_provider_that_refuses_says_so() {
    let scene = Scene::start();
    scene.provider.says().refuses = Some("access_denied");
    assert_eq!(problem_of(&scene.sign_in()), "provider-refused");
    assert_eq!(
        scene.logged("access_denied")["providerError"],
        json!("access_denied")
    );
    // What it says is repeated as a word at most.
    scene.provider.says().refuses = Some("login as\nroot svc_bt_x");
    assert_eq!(problem_of(&scene.sign_in()), "provider-refused");
    assert_eq!(scene.log.with("svc_bt_x"), [] as [String; 0]);
    assert_eq!(scene.counted("refused"), 2);
}

#[test]
fn what_is_not_to_be_believed_signs_nobody_in() {
    let scene = Scene::start();
    let check = |problem: &str, change: &dyn Fn(&mut crate::harness::identity_provider::Says)| {
        change(&mut scene.provider.says());
        assert_eq!(
            problem_of(&scene.sign_in()),
            "provider-not-believed",
            "{problem}"
        );
        let logged = scene.logged(problem);
        for field in [
            "reason",
            "remedy",
            "provider",
            "identityProviderId",
            "requestId",
        ] {
            assert!(logged[field].is_string(), "{field}: {logged}");
        }
        scene.provider.says().claims.clear();
        scene.provider.says().header.clear();
    };
    check("provider-algorithm-refused", &|says| {
        drop(says.header.insert("alg".into(), json!("none")))
    });
    check("provider-claim-wrong", &|says| {
        drop(says.claims.insert("nonce".into(), json!("other")))
    });
    check("provider-time-wrong", &|says| {
        drop(says.claims.insert("exp".into(), json!(1)))
    });
    check("provider-signature-wrong", &|says| {
        says.signer = Signer::ec("key-1")
    });
    assert_eq!(scene.counted("refused"), 4);
    let rows = scene.app.get("/v1/audit/authz?action=sign-in").expect(200);
    assert_eq!(rows["data"], json!([]));
}

/// Where a provider is away, sign-in says so, and those who are signed in go on.
#[test]
fn a_provider_that_is_away_ends_no_session() {
    let scene = Scene::start();
    let (session, _) = session_of(&scene.sign_in());
    let begun = scene.begin("/console/");
    let back = scene.provider.opened(&begun.url);
    let gone = || Instead::Answer(503, None, String::new());
    for path in ["/token", "/.well-known/openid-configuration"] {
        scene.provider.says().instead.insert(path, gone());
    }
    let answer = scene.come_back(Some(&begun.cookie), &back);
    assert_eq!(problem_of(&answer), "provider-unavailable");
    // The document is known for an hour.
    scene.started(&json!({}), "").expect(200);
    scene.app.clock.advance(Duration::from_secs(3601));
    let error = scene
        .started(&json!({}), "")
        .expect_error(503, "provider-unavailable");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("Plant accounts cannot be used"),
        "{message}"
    );
    let logged = scene.logged("provider-unavailable");
    assert!(
        logged["error"]["message"]
            .as_str()
            .unwrap()
            .contains("HTTP 503"),
        "{logged}"
    );
    scene
        .app
        .browser(&session)
        .get("/v1/identity/me")
        .expect(200);
    assert_eq!(scene.counted("refused"), 0, "nobody was refused");
    scene.provider.says().instead.clear();
    scene.app.clock.set_back(Duration::from_secs(3601));
    session_of(&scene.sign_in());
}

#[test]
fn a_provider_that_hangs_holds_nobody_longer_than_the_setting() {
    let scene = Scene::start();
    let quick = scene.app.replica(|options| {
        options.sign_in.provider_timeout = Duration::from_millis(700);
    });
    scene
        .provider
        .says()
        .instead
        .insert("/.well-known/openid-configuration", Instead::Hang);
    let refused = quick
        .with_token(None)
        .post_from_page(&scene.start_path(), &json!({}));
    refused.expect_error(503, "provider-unavailable");
}

#[test]
fn a_secret_that_is_gone_is_named_in_the_log_alone() {
    let scene = Scene::start();
    scene.app.delete("/v1/secrets/live/OIDC");
    let begun = scene.started(&json!({}), "");
    let error = begun.expect_error(503, "provider-unavailable");
    assert!(!error.to_string().contains("OIDC"), "{error}");
    assert_ne!(scene.log.with("OIDC"), [] as [String; 0]);
}

/// A sign-in that names nobody.
#[track_caller]
fn nobody(scene: &Scene, problem: &str) {
    let answer = scene.sign_in();
    assert_eq!(problem_of(&answer), problem);
    let to = answer.header("location").unwrap();
    assert!(!to.contains('@') && !to.contains("plant"), "{to}");
    scene.logged(problem);
}

#[test]
fn somebody_who_is_nobody_here_is_told_and_the_log_says_who() {
    let scene = Scene::start();
    let claim =
        |name: &str, value: Value| drop(scene.provider.says().claims.insert(name.into(), value));
    claim("email", json!("eve@plant.example"));
    nobody(&scene, "not-a-person");
    assert_eq!(
        scene.logged("not-a-person")["email"],
        json!("eve@plant.example")
    );
    claim("email", json!("ada@other.example"));
    nobody(&scene, "email-not-covered");
    claim("email", Value::Null);
    nobody(&scene, "no-email");
    claim("email", json!("ada@plant.example"));
    for unvouched in [Value::Null, json!(false), json!(1)] {
        claim("email_verified", unvouched);
        nobody(&scene, "email-not-vouched");
    }
    claim("email_verified", json!("true"));
    session_of(&scene.sign_in());
    claim("sub", json!("another subject"));
    nobody(&scene, "already-bound");
    assert_eq!(scene.counted("refused"), 7);
    assert_eq!(scene.counted("opened"), 1);
}

#[test]
fn the_callback_is_taken_at_the_servers_own_address_alone() {
    let scene = Scene::start();
    let begun = scene.begin("/console/");
    let back = scene.provider.opened(&begun.url);
    let path = &back.url[url::Position::BeforePath..];
    let at = |app: &App, host: &str| -> Answer {
        let headers = [("host", host), ("cookie", begun.cookie.as_str())];
        app.with_token(None).send("GET", path, None, &headers)
    };
    at(&scene.app, "evil.example").expect_error(403, "csrf-origin-mismatch");
    let closed = scene
        .app
        .replica(|options| options.sign_in.development = false);
    at(&closed, "127.0.0.1").expect_error(501, "not-configured");
    let nowhere = "/sign-in/callback/not-an-id?code=a&state=b";
    let answer = scene.app.with_token(None).get(nowhere);
    assert_eq!(problem_of(&answer), "flow-expired");
    assert_eq!(scene.provider.asked("/token"), 0);
}
