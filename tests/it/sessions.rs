//! Sessions: how they are listed and ended, how long they last, and what they cost.

use crate::harness::{App, Client, OWN_PAGE, Puppet, end_of, let_time_pass, made};
use agent_runtime::authn::{KNOWN_FOR, session};
use agent_runtime::config::TokenSignIn;
use agent_runtime::store::Sql;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

const OWN: &str = "/v1/identity/me/sessions";

fn open(client: &Client, path: &str) -> Vec<Value> {
    let page = client.get(path).expect(200);
    page["data"].as_array().unwrap().clone()
}

#[track_caller]
fn is_refused(browser: &Client) {
    browser
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
}

#[test]
fn a_person_lists_and_ends_their_own_sessions() {
    let app = App::start_authorized();
    let person = made::person(&app, "ann@b", "member");
    let ann = made::enrolled(&app, &person);
    let here = app.sign_in(ann.token());
    let here = app.browser(&here);
    let elsewhere = app.with_token(None).send(
        "POST",
        "/v1/sign-in/token",
        Some(json!({"token": ann.token()}).to_string()),
        &[OWN_PAGE, ("user-agent", &"é".repeat(400))],
    );
    let elsewhere = app.browser(&elsewhere.session());
    let sessions = open(&here, &format!("{OWN}?order=asc"));
    let current: Vec<_> = sessions.iter().map(|one| one["current"] == true).collect();
    assert_eq!(current, [true, false]);
    let other = &sessions[1];
    assert_eq!(other["method"], json!("token"));
    assert_eq!(other["clientAddress"], json!("127.0.0.1"));
    let agent = other["userAgent"].as_str().unwrap();
    assert!(agent.len() <= 300 && agent.starts_with('é'), "{agent}");
    let listed = open(&ann, OWN);
    assert!(listed.iter().all(|one| one["current"] == false));
    // Nobody else sees or ends them.
    let path = format!("{OWN}/{}", made::id(other));
    assert_eq!(open(&app, OWN), [] as [Value; 0]);
    app.delete(&path).expect_error(404, "not-found");
    app.other_tenant()
        .delete(&path)
        .expect_error(404, "not-found");
    here.delete(&path).expect(204);
    here.delete(&path).expect(204);
    is_refused(&elsewhere);
    assert_eq!(open(&here, OWN).len(), 1);
    let own = format!("{OWN}/{}", made::id(&sessions[0]));
    here.delete(&own).expect(204);
    is_refused(&here);
    // A key without the capability ends itself alone, and a session of it likewise.
    let weak = ann.post("/v1/tokens", &json!({"name": "weak", "capabilities": []}));
    let weak = weak.expect(201);
    let (one, two) = (
        app.signed_in(weak["token"].as_str().unwrap()),
        app.signed_in(ann.token()),
    );
    let sessions = open(&two, &format!("{OWN}?order=asc"));
    let [first, second] = [0, 1].map(|at| format!("{OWN}/{}", made::id(&sessions[at])));
    one.delete(&second).expect_error(403, "permission-denied");
    one.delete(&first).expect(204);
    is_refused(&one);
    two.get("/v1/identity/me").expect(200);
}

#[test]
fn a_key_that_is_limited_to_a_project_reaches_the_sessions_of_that_project_alone() {
    let app = App::start_authorized();
    let project = made::project(&app);
    let limited = json!({"name": "limited", "projectId": project, "capabilities": ["keys:write"]});
    let limited = app.post("/v1/tokens", &limited).expect(201);
    let limited = app.with_token(limited["token"].as_str());
    let (own, other) = (app.signed_in(app.token()), app.signed_in(app.token()));
    let sessions = open(&app, &format!("{OWN}?order=asc"));
    let [first, second] = [0, 1].map(|at| made::id(&sessions[at]));
    let mut database = app.database.client();
    let limit =
        format!("update sessions set project_id = '{project}' where session_id = '{first}'");
    assert_eq!(database.execute(&limit, &[]).unwrap(), 1);
    let listed = open(&limited, OWN);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(made::id(&listed[0]), first);
    let path = |id: &str| format!("{OWN}/{id}");
    limited
        .delete(&path(&second))
        .expect_error(404, "not-found");
    other.get("/v1/identity/me").expect(200);
    limited.delete(&path(&first)).expect(204);
    is_refused(&own);
    assert_eq!(open(&app, OWN).len(), 1);
}

#[test]
fn an_admin_sees_a_persons_sessions_and_signs_the_person_out() {
    let app = App::start_authorized();
    let person = made::person(&app, "ann@b", "member");
    let ann = made::enrolled(&app, &person);
    let browsers = [app.signed_in(ann.token()), app.signed_in(ann.token())];
    let path = format!("/v1/identity/users/{}", made::id(&person));
    let sessions = format!("{path}/sessions");
    assert_eq!(open(&app, &sessions).len(), 2);
    ann.get(&sessions).expect_error(403, "permission-denied");
    let out = |client: &Client| client.send("POST", &format!("{path}/sign-out"), None, &[]);
    out(&ann).expect_error(403, "permission-denied");
    out(&app.other_tenant()).expect_error(404, "not-found");
    out(&app).expect(204);
    browsers.iter().for_each(is_refused);
    assert_eq!(open(&app, &sessions), [] as [Value; 0]);
    ann.get("/v1/identity/me").expect(200);
    app.signed_in(ann.token())
        .get("/v1/identity/me")
        .expect(200);
}

#[test]
fn a_person_has_fifty_sessions_and_the_oldest_ends() {
    let app = App::start();
    let first = app.signed_in(app.token());
    let second = app.signed_in(app.token());
    for _ in 2..50 {
        app.sign_in(app.token());
    }
    first.get("/v1/identity/me").expect(200);
    let last = app.signed_in(app.token());
    is_refused(&first);
    second.get("/v1/identity/me").expect(200);
    let all = open(&last, &format!("{OWN}?limit=200"));
    assert_eq!(all.len(), 50);
    let page = last.get(&format!("{OWN}?limit=30&order=desc")).expect(200);
    assert_eq!(page["data"][0]["current"], json!(true));
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = open(&last, &format!("{OWN}?limit=30&order=desc&cursor={cursor}"));
    assert_eq!(rest.len(), 20);
}

#[test]
fn a_key_that_signs_in_often_ends_its_own_sessions() {
    let app = App::start();
    let first = app.signed_in(app.token());
    let weak = json!({"name": "weak", "capabilities": []});
    let weak = app.post("/v1/tokens", &weak).expect(201);
    let mut last = None;
    for _ in 0..51 {
        last = Some(app.signed_in(weak["token"].as_str().unwrap()));
    }
    first.get("/v1/identity/me").expect(200);
    last.unwrap().get("/v1/identity/me").expect(200);
    assert_eq!(open(&first, &format!("{OWN}?limit=200")).len(), 50);
    // The sessions of a key that was revoked have ended, and take no place.
    app.delete(&format!("/v1/tokens/{}", made::id(&weak)))
        .expect(204);
    let mut database = app.database.client();
    let unended = "select count(*) from sessions where ended_at is null";
    let unended: i64 = database.query_one(unended, &[]).unwrap().get(0);
    assert_eq!(unended, 1);
    for _ in 0..49 {
        app.sign_in(app.token());
    }
    first.get("/v1/identity/me").expect(200);
}

#[test]
fn a_session_that_is_used_stays_open_whatever_the_idle_time() {
    let app = App::start_with(|options| options.sign_in.idle = Duration::from_secs(60));
    let browser = app.signed_in(app.token());
    // A use is written once a minute, and the last one in it counts, too.
    for _ in 0..4 {
        app.clock.advance(Duration::from_secs(50));
        browser.get("/v1/identity/me").expect(200);
    }
    app.clock.advance(Duration::from_secs(120));
    is_refused(&browser);
}

#[test]
fn a_session_ends_unused_and_at_its_latest_end() {
    let app = App::start_with(|options| {
        options.sign_in.idle = Duration::from_secs(30 * 60);
        options.sign_in.life = Duration::from_secs(2 * 3600);
    });
    let token = app.token();
    let ask = |browser: &Client| browser.get("/v1/identity/me").status;
    let minutes = |count: u64| app.clock.advance(Duration::from_secs(60 * count));
    let unused = app.signed_in(token);
    minutes(29);
    assert_eq!(ask(&unused), 200);
    // That was a use: half an hour begins again.
    minutes(29);
    assert_eq!(ask(&unused), 200);
    minutes(31);
    assert_eq!(ask(&unused), 401);
    // What a page asks by itself is none.
    let watched = app.signed_in(token);
    for _ in 0..3 {
        minutes(9);
        let asked = watched.send("GET", "/v1/identity/me", None, &[("svc-background", "1")]);
        asked.expect(200);
    }
    minutes(4);
    let asked = watched.send("GET", "/v1/identity/me", None, &[("svc-background", "1")]);
    asked.expect_error(401, "unauthenticated");
    let used = app.signed_in(token);
    for _ in 0..11 {
        minutes(10);
        assert_eq!(ask(&used), 200);
    }
    minutes(10);
    assert_eq!(ask(&used), 401, "it is two hours old");
    assert_eq!(open(&app, OWN), [] as [Value; 0]);
}

#[test]
fn a_use_is_written_once_a_minute() {
    let app = App::start();
    let browser = app.signed_in(app.token());
    let active = |app: &App| open(app, OWN)[0]["activeAt"].clone();
    let before = active(&app);
    app.clock
        .advance(session::NOTED_EVERY - Duration::from_secs(1));
    browser.get("/v1/identity/me").expect(200);
    assert_eq!(active(&app), before);
    app.clock.advance(Duration::from_secs(2));
    browser.get("/v1/identity/me").expect(200);
    let noted = active(&app);
    assert_ne!(noted, before);
    browser.get("/v1/identity/me").expect(200);
    assert_eq!(active(&app), noted);
}

/// A way in which a session ends: by the admin, who knows the person and the key it came from.
type End = fn(&App, &Value, &Value, &Client);

#[test]
fn a_session_ends_here_at_once_and_on_another_replica_within_a_second() {
    let sign_out: End = |_, _, _, browser| {
        browser.send("POST", "/v1/sign-out", None, &[]).expect(200);
    };
    let revoke: End = |_, _, key, browser| {
        let path = format!("/v1/tokens/{}", made::id(key));
        browser.delete(&path).expect(204);
    };
    let deactivate: End = |app, person, _, _| {
        let path = format!("/v1/identity/users/{}/deactivate", made::id(person));
        app.send("POST", &path, None, &[]).expect(200);
    };
    let by_admin: End = |app, person, _, _| {
        let path = format!("/v1/identity/users/{}/sign-out", made::id(person));
        app.send("POST", &path, None, &[]).expect(204);
    };
    let app = App::start();
    let replica = app.replica(|_| {});
    for (at, end) in [sign_out, revoke, deactivate, by_admin]
        .into_iter()
        .enumerate()
    {
        let person = made::person(&app, &format!("p{at}@b"), "member");
        let client = made::enrolled(&app, &person);
        let key = client.post("/v1/tokens", &json!({"name": "a"})).expect(201);
        let session = app.sign_in(key["token"].as_str().unwrap());
        let (here, there) = (app.browser(&session), replica.browser(&session));
        here.get("/v1/identity/me").expect(200);
        there.get("/v1/identity/me").expect(200);
        end(&app, &person, &key, &here);
        is_refused(&here);
        let_time_pass(KNOWN_FOR);
        is_refused(&there);
    }
}

#[test]
fn a_session_of_a_seed_token_ends_when_that_is_replaced() {
    let app = App::start();
    let browser = app.signed_in(app.token());
    browser.get("/v1/identity/me").expect(200);
    let (database, clock, mut seeds) = app.stop();
    seeds.token = agent_runtime::authn::bearer::mint().unwrap();
    let again = App::start_on(database, clock, seeds, |_| {});
    let session = browser.cookie_value();
    is_refused(&again.browser(&session));
}

#[test]
fn a_stream_ends_when_its_session_has_ended() {
    let app = App::start_with(|options| options.streams.recheck_every = Duration::from_millis(100));
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let run = app.start_turn(agent, "a");
    let _call = puppet.call();
    // By signing out, and for want of use.
    let signed_out = app.signed_in(app.token());
    let mut stream = signed_out.follow(&run);
    signed_out.send("POST", "/v1/sign-out", None, &[]);
    assert_eq!(end_of(&stream.rest()), "credential-ended");
    let unused = app.signed_in(app.token());
    let mut stream = unused.follow(&run);
    app.clock.advance(Duration::from_secs(4 * 3600 + 61));
    assert_eq!(end_of(&stream.rest()), "credential-ended");
}

/// How many rows there are.
fn rows(app: &App) -> i64 {
    let counted = app
        .database
        .client()
        .query_one("select count(*) from sessions", &[]);
    counted.unwrap().get(0)
}

#[test]
fn sessions_are_deleted_thirty_days_after_their_end() {
    let app = App::start();
    let delete = |days: i64| {
        let before = app.clock.now() - time::Duration::days(days);
        let store = &app.server().shared().store;
        agent_runtime::store::sessions::delete_old(&mut store.session().unwrap(), before, 100)
            .unwrap()
    };
    let browser = app.signed_in(app.token());
    browser.send("POST", "/v1/sign-out", None, &[]);
    // This one ends by itself, a day later.
    app.sign_in(app.token());
    let days = |count: u64| app.clock.advance(Duration::from_secs(count * 24 * 3600));
    days(29);
    assert_eq!((delete(30), rows(&app)), (0, 2));
    days(1);
    assert_eq!((delete(30), rows(&app)), (1, 1));
    app.clock.advance(Duration::from_secs(3600 * 23));
    assert_eq!((delete(30), rows(&app)), (0, 1));
    app.clock.advance(Duration::from_secs(3600));
    assert_eq!((delete(30), rows(&app)), (1, 0));
}

#[test]
fn a_token_that_signs_in_in_a_loop_leaves_few_rows() {
    let app = App::start();
    let person = made::person(&app, "ann@b", "admin");
    let ann = made::enrolled(&app, &person);
    // A code that was made in a session which ended since holds, whatever follows.
    let first = app.signed_in(ann.token());
    let invited = made::person(&first, "bob@b", "member");
    first.send("POST", "/v1/sign-out", None, &[]);
    let own = app.signed_in(app.token());
    for _ in 0..120 {
        app.sign_in(ann.token());
    }
    assert_eq!(
        rows(&app),
        50 + 50 + 1 + 1,
        "open, ended, the code's, one of another"
    );
    own.get("/v1/identity/me").expect(200);
    made::enrolled(&app, &invited)
        .get("/v1/identity/me")
        .expect(200);
    // Where they had piled up before, a sign-in deletes them.
    let mut database = app.database.client();
    let piled_up = "insert into sessions select tenant_id, gen_random_uuid(), user_id, sha256(gen_random_uuid()::text::bytea), method, token_id, \
        role, capabilities, project_id, keys_expire_at, client_address, user_agent, created_at, active_at, expires_at, created_at \
        from sessions cross join generate_series(1, 500) where ended_at is not null";
    let added = database.execute(piled_up, &[]).unwrap();
    assert!(added > 10_000, "{added}");
    for _ in 0..added.div_ceil(1000) {
        app.sign_in(ann.token());
    }
    // The code was taken, and its session is one of the ended.
    assert_eq!(rows(&app), 50 + 50 + 1);
}

#[test]
fn what_the_settings_allow_less_counts_for_open_sessions_and_stays() {
    let app = App::start();
    let minutes = |count: u64| app.clock.advance(Duration::from_secs(60 * count));
    let ask = |app: &App, session: &str| app.browser(session).get("/v1/identity/me").status;
    let member = made::enrolled(&app, &made::person(&app, "ann@b", "member"));
    let by_code = |email: &str| {
        let code = json!({"code": made::person(&app, email, "member")["enrolment"]["code"]});
        let page = app.with_token(None);
        page.post_from_page("/v1/sign-in/enrolment", &code)
            .session()
    };
    let open_three = |email: &str| {
        let (admins, members) = (app.sign_in(app.token()), app.sign_in(member.token()));
        [admins, members, by_code(email)]
    };
    let are = |app: &App, sessions: &[String; 3]| sessions.each_ref().map(|one| ask(app, one));
    // Who signs in with a token. A replica that is told so asks for nothing more of the one that was not.
    let sessions = open_three("code1@b");
    assert_eq!(are(&app, &sessions), [200, 200, 200]);
    let admins = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Admins);
    assert_eq!(are(&admins, &sessions), [200, 401, 200]);
    let late = app.sign_in(member.token());
    assert_eq!((ask(&app, &late), ask(&admins, &late)), (200, 401));
    let off = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Off);
    assert_eq!(are(&off, &sessions), [401, 401, 200]);
    let listed = open(&off.with_token(Some(app.token())), OWN);
    assert_eq!(listed, [] as [Value; 0]);
    drop((admins, off));
    // Allowed again, what had ended stays ended.
    let_time_pass(KNOWN_FOR);
    let again = app.replica(|_| {});
    assert_eq!(are(&again, &sessions), [401, 401, 200]);
    drop(again);
    // The idle time and the hours.
    let sessions = open_three("code2@b");
    minutes(20);
    let shorter = app.replica(|options| options.sign_in.idle = Duration::from_secs(15 * 60));
    assert_eq!(are(&shorter, &sessions), [401, 401, 401]);
    drop(shorter);
    let_time_pass(KNOWN_FOR);
    assert_eq!(are(&app, &sessions), [401, 401, 401]);
    let sessions = open_three("code3@b");
    let shorter = app.replica(|options| options.sign_in.life = Duration::from_secs(3600));
    for _ in 0..5 {
        minutes(10);
        assert_eq!(are(&shorter, &sessions), [200, 200, 200]);
    }
    minutes(10);
    assert_eq!(are(&shorter, &sessions), [401, 401, 401]);
    drop(shorter);
    let_time_pass(KNOWN_FOR);
    assert_eq!(are(&app, &sessions), [401, 401, 401]);
}

#[test]
fn a_longer_idle_time_revives_no_session() {
    let short = |minutes: u64| Duration::from_secs(60 * minutes);
    let app = App::start_with(|options| {
        options.sign_in.idle = short(30);
        options.sign_in.life = short(120);
    });
    let session = app.sign_in(app.token());
    app.clock.advance(short(32));
    let longer = app.replica(|options| options.sign_in.idle = short(240));
    is_refused(&longer.browser(&session));
    assert_eq!(open(&longer, OWN), [] as [Value; 0]);
    // One that is open keeps the idle time and the end that it was opened with; a new one has the new ones.
    let session = app.sign_in(app.token());
    let new = longer.sign_in(app.token());
    app.clock.advance(short(29));
    longer.browser(&session).get("/v1/identity/me").expect(200);
    app.clock.advance(short(32));
    is_refused(&longer.browser(&session));
    longer.browser(&new).get("/v1/identity/me").expect(200);
    // So too by a program before this one, which keeps no idle time: the server's alone counts.
    let old = longer.sign_in(app.token());
    let mut database = app.database.client();
    let forget = "update sessions set idle_seconds = null where ended_at is null";
    assert!(database.execute(forget, &[]).unwrap() > 0);
    app.clock.advance(short(200));
    longer.browser(&old).get("/v1/identity/me").expect(200);
}

#[test]
fn a_session_of_the_development_token_stands_as_long_as_the_console_takes_it() {
    let app = App::start_with(|options| {
        options.sign_in.console_token = Some(options.seeds.token.clone());
        options.sign_in.token_sign_in = TokenSignIn::Off;
    });
    let session = app.sign_in(app.token());
    app.browser(&session).get("/v1/identity/me").expect(200);
    let without = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Off);
    is_refused(&without.browser(&session));
}

#[test]
fn a_stream_ends_when_a_setting_has_ended_its_session() {
    let app = App::start_with(|options| {
        options.streams.recheck_every = Duration::from_millis(100);
        options.sign_in.life = Duration::from_secs(24 * 3600);
    });
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let run = app.start_turn(agent, "a");
    let _call = puppet.call();
    let mut stream = app.signed_in(app.token()).follow(&run);
    let off = app.replica(|options| options.sign_in.token_sign_in = TokenSignIn::Off);
    assert_eq!(end_of(&stream.rest()), "credential-ended");
    drop(off);
}

#[test]
fn a_look_up_reads_the_rows_of_its_session_alone() {
    let app = App::start();
    for _ in 0..40 {
        app.sign_in(app.token());
    }
    let mut database = app.database.client();
    database.batch_execute("analyze sessions").unwrap();
    let digest = "(select digest from sessions limit 1)";
    let explain = format!(
        "explain (analyze, format json) select * from open_sessions(moment => now(), idle => 60000, life => 60000, \
         by_token => 'on', by_console => 'on') where digest = {digest}"
    );
    database.batch_execute("set enable_seqscan = off").unwrap();
    let said: Value = database.query_one(&explain, &[]).unwrap().get(0);
    let said = said.to_string();
    assert!(
        said.contains("sessions_digest"),
        "the function is taken in: {said}"
    );
    assert!(!said.contains("Function Scan"), "{said}");
}

/// How often each statement was executed on the connections of this server.
fn executed(app: &App) -> BTreeMap<String, i64> {
    let store = &app.server().shared().store;
    // Every connection of the pool, each with what it has prepared.
    let mut all: Vec<_> = (0..8).map(|_| store.session().unwrap()).collect();
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for session in &mut all {
        let rows = session.query(
            "select statement, sum(generic_plans + custom_plans)::bigint from pg_prepared_statements group by 1",
            &[],
        );
        for row in rows.unwrap() {
            *counts.entry(row.get(0)).or_default() += row.get::<_, i64>(1);
        }
    }
    counts.retain(|statement, _| !statement.contains("pg_prepared_statements"));
    counts
}

/// How many statements each of these requests costs: those that are executed as often as there are requests. What the server
/// does by itself meanwhile it does less often; if not on a busy machine, then in another round.
fn cost_of_each(app: &App, mut request: impl FnMut()) -> i64 {
    const REQUESTS: i64 = 10;
    let round = |_| {
        let before = executed(app);
        for _ in 0..REQUESTS {
            request();
        }
        let after = executed(app).into_iter();
        let more = after.map(|(said, count)| count - before.get(&said).copied().unwrap_or(0));
        more.map(|count| count / REQUESTS).sum()
    };
    (0..3).map(round).min().unwrap()
}

#[test]
fn a_request_with_a_session_costs_no_statement_more_than_one_with_a_token() {
    let app = App::start();
    let token = app.get("/v1/identity/me").expect(200)["credential"]["id"].clone();
    let browser = app.signed_in(app.token());
    let session = browser.get("/v1/identity/me").expect(200)["credential"]["id"].clone();
    let authn = &app.server().shared().authn;
    let id = |value: &Value| -> Uuid { value.as_str().unwrap().parse().unwrap() };
    let cost = |client: &Client, credential: &Value, path: &str, passes: Duration| {
        cost_of_each(&app, || {
            app.clock.advance(passes);
            // As if a second had passed: each looks its credential up.
            authn.forget(id(credential));
            client.get(path).expect(200);
        })
    };
    for path in ["/v1/identity/me", "/v1/projects", "/v1/tokens"] {
        let by_token = cost(&app, &token, path, Duration::ZERO);
        assert!(by_token >= 1, "{path}: each is looked up: {by_token}");
        let by_session = cost(&browser, &session, path, Duration::ZERO);
        assert_eq!(by_session, by_token, "{path}");
        // The use of a minute is written with its look-up.
        let minute = session::NOTED_EVERY + Duration::from_secs(1);
        let noted = cost(&browser, &session, path, minute);
        assert_eq!(noted, by_token, "{path}");
    }
}
