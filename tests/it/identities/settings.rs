//! `/v1/sign-in-settings`, and what they do to signing in and to open sessions.

use super::{claims, come, provider, session};
use crate::harness::{App, made};
use agent_runtime::config::TokenSignIn;
use serde_json::{Value, json};
use std::time::Duration;

const SETTINGS: &str = "/v1/sign-in-settings";

fn wanted(token_sign_in: &str, idle: Option<u32>, hours: Option<u32>) -> Value {
    json!({"tokenSignIn": token_sign_in, "sessionIdleMinutes": idle, "sessionHours": hours})
}

/// An admin who signed in through a provider just now.
fn admin_comes(app: &App) -> String {
    let plant = provider(app, "Plant", &["plant.example"], &json!({}));
    let ada = made::person(app, "ada@plant.example", "admin");
    let ada = come(app, plant, &claims("s-1", "ada@plant.example")).map(|come| {
        assert_eq!(come.user_id.to_string(), made::id(&ada));
        come.user_id
    });
    session(app, plant, ada.unwrap())
}

#[test]
fn what_nobody_set_is_as_the_server_says() {
    let app = App::start_with(|options| {
        options.sign_in.token_sign_in = TokenSignIn::Admins;
    });
    let read = app.get(SETTINGS).expect(200);
    let shown = json!({
        "tokenSignIn": "on", "sessionIdleMinutes": null, "sessionHours": null,
        "effective": {"tokenSignIn": "admins", "sessionIdleMinutes": 240, "sessionHours": 24},
        "managedBy": "tenant", "changedBy": null, "changedAt": null,
    });
    assert_eq!(read, shown);
    let set = app
        .put(SETTINGS, &wanted("on", Some(30), Some(12)))
        .expect(200);
    let effective = json!({"tokenSignIn": "admins", "sessionIdleMinutes": 30, "sessionHours": 12});
    assert_eq!(set["effective"], effective);
    assert_eq!(set["changedBy"], json!(app.seeds.user_id));
    assert_eq!(app.get(SETTINGS).expect(200), set);
}

#[test]
fn a_tenant_may_only_shorten() {
    let app = App::start();
    for (idle, hours, path) in [
        (Some(241), None, "$.sessionIdleMinutes"),
        (Some(0), None, "$.sessionIdleMinutes"),
        (None, Some(25), "$.sessionHours"),
        (None, Some(0), "$.sessionHours"),
        (None, Some(u32::MAX), "$.sessionHours"),
    ] {
        let error = app.put(SETTINGS, &wanted("on", idle, hours));
        let error = error.expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], json!(path));
    }
    app.put(SETTINGS, &wanted("on", Some(240), Some(24)))
        .expect(200);
    // What the server shortens later counts, too.
    let replica = app.replica(|options| {
        options.sign_in.idle = Duration::from_secs(600);
        options.sign_in.life = Duration::from_secs(3600);
    });
    let read = replica.get(SETTINGS).expect(200);
    let effective = json!({"tokenSignIn": "on", "sessionIdleMinutes": 10, "sessionHours": 1});
    assert_eq!(read["effective"], effective);
}

#[test]
fn tokens_are_refused_only_once_an_admin_has_come_by_a_provider() {
    let app = App::start();
    let set = |word: &str| app.put(SETTINGS, &wanted(word, None, None));
    set("off").expect_error(409, "conflict");
    set("admins").expect_error(409, "conflict");
    // A member who came is no way back in.
    let lab = provider(
        &app,
        "Lab",
        &["lab.example"],
        &json!({"createsPeople": true}),
    );
    let member = come(&app, lab, &claims("l-1", "lea@lab.example"))
        .unwrap()
        .user_id;
    session(&app, lab, member);
    set("off").expect_error(409, "conflict");
    admin_comes(&app);
    set("admins").expect(200);
    set("off").expect(200);
    // Tomorrow what is set stays, and what is wider may be set.
    app.clock.advance(Duration::from_secs(25 * 3600));
    set("off").expect(200);
    set("admins").expect(200);
    set("off").expect_error(409, "conflict");
    set("on").expect(200);
}

#[test]
fn an_admin_who_came_by_a_provider_that_is_gone_does_not_count() {
    let app = App::start();
    admin_comes(&app);
    let listed = app.get(super::PROVIDERS).expect(200);
    let path = format!("{}/{}", super::PROVIDERS, made::id(&listed["data"][0]));
    app.delete(&path).expect(204);
    app.put(SETTINGS, &wanted("off", None, None))
        .expect_error(409, "conflict");
}

#[test]
fn a_tenants_setting_refuses_tokens() {
    let app = App::start();
    admin_comes(&app);
    let person = made::person(&app, "ann@b", "member");
    let ann = made::enrolled(&app, &person);
    let nobody = app.with_token(None);
    let by = |token: &str| nobody.post_from_page("/v1/sign-in/token", &json!({"token": token}));
    assert_eq!(by(ann.token()).status, 204);
    app.put(SETTINGS, &wanted("admins", None, None)).expect(200);
    let error = by(ann.token()).expect_error(403, "token-sign-in-not-allowed");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("in this tenant"),
        "{error}"
    );
    assert_eq!(by(app.token()).status, 204);
    app.put(SETTINGS, &wanted("off", None, None)).expect(200);
    by(app.token()).expect_error(403, "token-sign-in-off");
    let ways = nobody.get("/v1/sign-in").expect(200);
    assert_eq!(ways["tokenSignIn"], json!("off"));
    // Codes are taken whatever it says.
    let path = format!("/v1/identity/users/{}/enrolments", made::id(&person));
    let code = app.send("POST", &path, None, &[]).expect(201);
    let body = json!({"code": code["code"]});
    assert_eq!(
        nobody.post_from_page("/v1/sign-in/enrolment", &body).status,
        204
    );
}

#[test]
fn shorter_times_reach_sessions_that_are_open() {
    let app = App::start();
    let session = app.sign_in(app.token());
    let browser = app.browser(&session);
    let me = || browser.get("/v1/identity/me").status;
    let listed = || {
        let page = app.get("/v1/identity/me/sessions").expect(200);
        page["data"].as_array().unwrap().len()
    };
    assert_eq!((me(), listed()), (200, 1));
    app.put(SETTINGS, &wanted("on", Some(10), None)).expect(200);
    // A use is noted once a minute, so a session lasts up to a minute longer.
    app.clock.advance(Duration::from_secs(9 * 60));
    assert_eq!((me(), listed()), (200, 1));
    app.clock.advance(Duration::from_secs(12 * 60));
    assert_eq!((me(), listed()), (401, 0));
    // A use does not bring it back.
    app.put(SETTINGS, &wanted("on", Some(10), Some(2)))
        .expect(200);
    let browser = app.browser(&app.sign_in(app.token()));
    for _ in 0..14 {
        app.clock.advance(Duration::from_secs(8 * 60));
        browser.get("/v1/identity/me").expect(200);
    }
    app.clock.advance(Duration::from_secs(9 * 60));
    browser
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
    assert_eq!(listed(), 0);
}

#[test]
fn the_end_of_a_session_is_the_tenants() {
    let app = App::start();
    let before = app.sign_in(app.token());
    app.put(SETTINGS, &wanted("on", None, Some(1))).expect(200);
    let after = app.sign_in(app.token());
    let page = app.get("/v1/identity/me/sessions").expect(200);
    for row in page["data"].as_array().unwrap() {
        let time = |field: &str| {
            let text = row[field].as_str().unwrap();
            agent_runtime::ids::rfc3339::parse(text).unwrap()
        };
        let life = time("expiresAt") - time("createdAt");
        assert_eq!(life.whole_minutes(), 60);
    }
    app.clock.advance(Duration::from_secs(3601));
    for value in [before, after] {
        app.browser(&value)
            .get("/v1/identity/me")
            .expect_error(401, "unauthenticated");
    }
}

#[test]
fn what_settings_ended_stays_ended_whatever_they_allow_later() {
    let app = App::start();
    let minutes = |count: u64| app.clock.advance(Duration::from_secs(60 * count));
    let ask = |session: &str| app.browser(session).get("/v1/identity/me").status;
    let set = |body: &Value| app.put(SETTINGS, body).expect(200);
    // By the idle time: one that was open when it was set, and one that was opened under it.
    let before = app.sign_in(app.token());
    set(&wanted("on", Some(10), None));
    let under = app.sign_in(app.token());
    assert_eq!([&before, &under].map(|one| ask(one)), [200, 200]);
    minutes(12);
    set(&wanted("on", None, None));
    assert_eq!([&before, &under].map(|one| ask(one)), [401, 401]);
    // By the hours: what was shortened is not lengthened.
    let before = app.sign_in(app.token());
    set(&wanted("on", None, Some(1)));
    minutes(30);
    set(&wanted("on", None, None));
    assert_eq!(ask(&before), 200);
    minutes(31);
    assert_eq!(ask(&before), 401);
    // By who signs in with a token: at once, and no session of another kind.
    let by_provider = admin_comes(&app);
    let member = made::enrolled(&app, &made::person(&app, "ann@b", "member"));
    let sessions = [member.token(), app.token()].map(|token| app.sign_in(token));
    let are = || sessions.each_ref().map(|one| ask(one));
    assert_eq!((are(), ask(&by_provider)), ([200, 200], 200));
    set(&wanted("admins", None, None));
    assert_eq!((are(), ask(&by_provider)), ([401, 200], 200));
    set(&wanted("off", None, None));
    assert_eq!((are(), ask(&by_provider)), ([401, 401], 200));
    set(&wanted("on", None, None));
    assert_eq!((are(), ask(&by_provider)), ([401, 401], 200));
}

#[test]
fn settings_reach_no_session_of_another_tenant() {
    let app = App::start();
    let other = app.other_tenant();
    let session = app.sign_in(other.token());
    app.put(SETTINGS, &wanted("on", Some(1), Some(1)))
        .expect(200);
    app.clock.advance(Duration::from_secs(2 * 3600));
    app.browser(&session).get("/v1/identity/me").expect(200);
}
