//! Signing in through an identity provider: what a page begins, what a browser brings back, and what it gets. The protocol
//! itself is in `oidc`, and who somebody is, in `arrivals`.

mod browsers;
mod hanging;
mod named_faults;
mod providers;
mod refusals;

use crate::harness::identity_provider::{CLIENT_ID, CLIENT_SECRET, IdentityProvider, Returned};
use crate::harness::{Answer, App, LogLines, OWN_PAGE, made};
use agent_runtime::ids::Clock;
use agent_runtime::server::Options;
use serde_json::{Value, json};
use std::time::Duration;

/// A server, an identity provider of its tenant, and a person whom it knows: `ada@plant.example`.
struct Scene {
    app: App,
    log: LogLines,
    provider: IdentityProvider,
    id: String,
}

/// A sign-in that a page began.
struct Begun {
    url: String,
    /// As a browser sends it.
    cookie: String,
}

impl Scene {
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let (log, clock) = (LogLines::default(), Clock::system());
        let seeds = crate::harness::seeds(&clock);
        let database = crate::harness::Database::migrated();
        let app = App::start_logged(database, clock, seeds, &log.logger(), |options| {
            options.secrets = crate::harness::secrets::Keys::new().options();
            change(options);
        });
        let provider = IdentityProvider::start();
        let id = register(&app, provider.issuer(), "Plant accounts");
        made::person(&app, "ada@plant.example", "member");
        Self {
            app,
            log,
            provider,
            id,
        }
    }

    fn start_path(&self) -> String {
        format!("/v1/sign-in/providers/{}/start", self.id)
    }

    /// A page begins; the browser keeps these cookies already.
    fn started(&self, body: &Value, cookies: &str) -> Answer {
        let headers = [OWN_PAGE, ("cookie", cookies)];
        let headers = match cookies {
            "" => &headers[..1],
            _ => &headers[..],
        };
        self.app
            .with_token(None)
            .send("POST", &self.start_path(), Some(body.to_string()), headers)
    }

    #[track_caller]
    fn begin(&self, return_to: &str) -> Begun {
        let answer = self.started(&json!({"returnTo": return_to}), "");
        let cookies = set_cookies(&answer);
        let [cookie] = &cookies[..] else {
            panic!("{answer:?}")
        };
        let url = answer.json()["url"].as_str().unwrap().to_owned();
        Begun {
            url,
            cookie: cookie.split(';').next().unwrap().to_owned(),
        }
    }

    /// The provider sends the browser back, which keeps this cookie.
    fn come_back(&self, cookie: Option<&str>, back: &Returned) -> Answer {
        let path = &back.url[url::Position::BeforePath..];
        let headers = [
            ("sec-fetch-site", "cross-site"),
            ("cookie", cookie.unwrap_or_default()),
        ];
        let headers = &headers[..1 + usize::from(cookie.is_some())];
        self.app.with_token(None).send("GET", path, None, headers)
    }

    /// A whole sign-in.
    fn sign_in(&self) -> Answer {
        let begun = self.begin("/console/");
        let back = self.provider.opened(&begun.url);
        self.come_back(Some(&begun.cookie), &back)
    }

    /// What the log says of this problem.
    #[track_caller]
    fn logged(&self, problem: &str) -> Value {
        let records = self.log.records(problem);
        let found = records.last();
        found
            .unwrap_or_else(|| panic!("the log has no {problem}"))
            .clone()
    }

    fn counted(&self, outcome: &str) -> u64 {
        let name =
            format!("agent_runtime_sign_ins_total{{method=\"provider\",outcome=\"{outcome}\"}} ");
        let metrics = self.app.get("/metrics").text;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&name).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
    }
}

/// Registers an identity provider with the client that the test providers know.
fn register(app: &App, issuer: &str, name: &str) -> String {
    register_client(app, (issuer, name), (CLIENT_ID, CLIENT_SECRET), json!({}))
}

/// Registers an identity provider by its issuer and a name, with a client and its secret; and with these fields.
#[track_caller]
fn register_client(
    app: &App,
    (issuer, name): (&str, &str),
    (id, secret): (&str, &str),
    further: Value,
) -> String {
    app.put_secret("OIDC", secret);
    let mut body = json!({
        "name": name,
        "issuer": issuer,
        "clientId": id,
        "clientSecretRef": {"envName": "live", "name": "OIDC"},
        "emailDomains": ["plant.example"],
    });
    let fields = body.as_object_mut().unwrap();
    fields.extend(further.as_object().unwrap().clone());
    let made = app.post("/v1/identity-providers", &body).expect(201);
    made::id(&made)
}

fn set_cookies(answer: &Answer) -> Vec<String> {
    let headers = answer.headers.iter();
    headers
        .filter(|(name, _)| name == "set-cookie")
        .map(|(_, value)| value.clone())
        .collect()
}

/// The session of an answer that signs somebody in, and where it sends the browser.
#[track_caller]
fn session_of(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 303, "{answer:?}");
    let cookies = set_cookies(answer);
    let session = cookies.iter().find(|cookie| !cookie.contains("-flow-"));
    let session = session.unwrap_or_else(|| panic!("no session: {answer:?}"));
    let value = session
        .split(';')
        .next()
        .unwrap()
        .split_once('=')
        .unwrap()
        .1;
    (
        value.to_owned(),
        answer.header("location").unwrap().to_owned(),
    )
}

/// The problem with which an answer sends the browser back to the sign-in page.
#[track_caller]
fn problem_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{answer:?}");
    let to = answer.header("location").unwrap();
    let query = to.strip_prefix("/console/sign-in?problem=");
    let query = query.unwrap_or_else(|| panic!("it went on to {to}"));
    let (problem, request) = query.split_once("&request=").unwrap();
    assert_eq!(answer.header("x-request-id"), Some(request));
    let cookies = set_cookies(answer);
    let is_session = |cookie: &&String| !cookie.contains("-flow-");
    assert_eq!(cookies.iter().find(is_session), None);
    problem.to_owned()
}

#[test]
fn a_person_signs_in_through_a_provider_and_goes_on_where_they_began() {
    let scene = Scene::start();
    let ways = scene.app.with_token(None).get("/v1/sign-in").expect(200);
    assert_eq!(
        ways["providers"],
        json!([{"id": scene.id, "name": "Plant accounts"}])
    );
    let begun = scene.begin("/console/runs/1?tab=steps#4");
    let back = scene.provider.opened(&begun.url);
    let callback = format!(
        "http://{}/sign-in/callback/{}",
        scene.app.address(),
        scene.id
    );
    assert_eq!(back.url[..url::Position::AfterPath], callback);
    let answer = scene.come_back(Some(&begun.cookie), &back);
    let (session, to) = session_of(&answer);
    assert_eq!(to, "/console/runs/1?tab=steps#4");
    assert_eq!(answer.text, "");
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let browser = scene.app.browser(&session);
    let me = browser.get("/v1/identity/me").expect(200);
    assert_eq!(me["email"], json!("ada@plant.example"));
    assert_eq!(me["credential"]["kind"], json!("session"));
    let sessions = browser.get("/v1/identity/me/sessions").expect(200);
    assert_eq!(sessions["data"][0]["method"], json!("provider"));
    assert_eq!(scene.counted("opened"), 1);
    assert_eq!(scene.counted("refused"), 0);
    // The provider asked by its own secret, and no record has a value of the flow.
    let (authorization, form) = scene.provider.token_call();
    assert!(authorization.is_some());
    for secret in [
        &form["code"],
        &form["code_verifier"],
        CLIENT_SECRET,
        &session,
    ] {
        assert_eq!(scene.log.with(secret), [] as [String; 0]);
    }
    let metrics = scene.app.get("/metrics").text;
    let requests = "agent_runtime_identity_provider_requests_total 3";
    assert!(metrics.contains(requests), "{metrics}");
}

#[test]
fn the_cookies_are_as_they_have_to_be() {
    let scene = Scene::start();
    let port = scene.app.address().port();
    let answer = scene.started(&json!({}), "");
    let cookies = set_cookies(&answer);
    let [cookie] = &cookies[..] else {
        panic!("{answer:?}")
    };
    let url = answer.json()["url"].as_str().unwrap().to_owned();
    let back = scene.provider.opened(&url);
    let state = back.value("state").unwrap();
    let name = format!("__Host-agent-runtime-{port}-flow-{}", &state[..6]);
    let (pair, rest) = cookie.split_once(';').unwrap();
    assert!(pair.starts_with(&format!("{name}=")), "{cookie}");
    assert_eq!(rest, " Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax");
    assert!(cookie.len() < 1024, "{} bytes", cookie.len());
    let answer = scene.come_back(Some(pair), &back);
    let (session, to) = session_of(&answer);
    assert_eq!(to, "/console/");
    let whole =
        format!("__Host-agent-runtime-{port}={session}; Path=/; Secure; HttpOnly; SameSite=Strict");
    let cleared = format!("{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
    assert_eq!(set_cookies(&answer), [whole, cleared]);
    // A browser with the cookie of a flow has no session, and no credential.
    let nobody = scene.app.with_token(None);
    let refused = nobody.send(
        "GET",
        "/v1/identity/me",
        None,
        &[OWN_PAGE, ("cookie", pair)],
    );
    let error = refused.expect_error(401, "unauthenticated");
    assert!(
        error["message"].as_str().unwrap().contains("needs a token"),
        "{error}"
    );
    let client = scene
        .app
        .send("GET", "/v1/identity/me", None, &[("cookie", pair)]);
    client.expect(200);
}

#[test]
fn somebody_who_signs_in_again_has_one_session_and_is_bound_once() {
    let scene = Scene::start();
    let (first, _) = session_of(&scene.sign_in());
    // The browser sends its session to the page of the server, and not with the way back from another site.
    let session = format!("{}={first}", scene.app.cookie());
    let answer = scene.started(&json!({}), &session);
    let url = answer.json()["url"].as_str().unwrap().to_owned();
    let cookie = set_cookies(&answer).remove(0);
    let cookie = cookie.split(';').next().unwrap();
    assert!(
        !cookie.contains(&first),
        "the session itself is nowhere else"
    );
    let back = scene.provider.opened(&url);
    let (second, _) = session_of(&scene.come_back(Some(cookie), &back));
    assert_ne!(first, second);
    scene
        .app
        .browser(&first)
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
    let me = scene
        .app
        .browser(&second)
        .get("/v1/identity/me")
        .expect(200);
    let path = format!("/v1/identity/users/{}/identities", made::id(&me));
    let identities = scene.app.get(&path).expect(200);
    assert_eq!(
        identities["data"].as_array().unwrap().len(),
        1,
        "{identities}"
    );
}

#[test]
fn five_tabs_sign_in_beside_each_other_and_the_oldest_of_more_is_given_up() {
    let scene = Scene::start();
    let mut kept: Vec<(String, String)> = Vec::new();
    for tab in 0..7 {
        scene.app.clock.advance(Duration::from_secs(1));
        let cookies: Vec<&str> = kept.iter().map(|(cookie, _)| cookie.as_str()).collect();
        let page = json!({"returnTo": format!("/console/{tab}")});
        let answer = scene.started(&page, &cookies.join("; "));
        let url = answer.json()["url"].as_str().unwrap().to_owned();
        for cookie in set_cookies(&answer) {
            let pair = cookie.split(';').next().unwrap().to_owned();
            match cookie.contains("Max-Age=0") {
                true => kept.retain(|(known, _)| !known.starts_with(&pair)),
                false => kept.push((pair, url.clone())),
            }
        }
        assert!(kept.len() <= 5, "{kept:?}");
    }
    let cookies: Vec<&str> = kept.iter().map(|(cookie, _)| cookie.as_str()).collect();
    let all = cookies.join("; ");
    let pages: Vec<String> = kept
        .iter()
        .map(|(_, url)| session_of(&scene.come_back(Some(&all), &scene.provider.opened(url))).1)
        .collect();
    let expected: Vec<String> = (2..7).map(|tab| format!("/console/{tab}")).collect();
    assert_eq!(pages, expected);
}

#[test]
fn a_retry_lets_the_person_choose_another_account() {
    let scene = Scene::start();
    let url = |body: Value| {
        let answer = scene.started(&body, "").expect(200);
        answer["url"].as_str().unwrap().to_owned()
    };
    assert!(!url(json!({})).contains("prompt="));
    assert!(url(json!({"again": true})).contains("&prompt=select_account"));
}

#[test]
fn a_browser_goes_on_to_pages_of_the_console_alone() {
    let scene = Scene::start();
    for wanted in [
        "https://evil.example/console/",
        "//evil.example/console/",
        "/v1/projects",
        "/console/../v1/projects",
        "javascript:alert(1)",
    ] {
        let begun = scene.begin(wanted);
        let back = scene.provider.opened(&begun.url);
        let (_, to) = session_of(&scene.come_back(Some(&begun.cookie), &back));
        assert_eq!(to, "/console/", "{wanted}");
    }
}

/// What signing out answers: where one signs out at the provider, too.
#[track_caller]
fn sign_out(app: &App, session: &str) -> Value {
    let out = app.browser(session).send("POST", "/v1/sign-out", None, &[]);
    let said = out.expect(200);
    app.browser(session)
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
    said["providerSignOutUrl"].clone()
}

#[test]
fn whoever_signs_out_is_told_where_to_sign_out_at_the_provider_too() {
    let scene = Scene::start();
    let session = || session_of(&scene.sign_in()).0;
    // It names no such page.
    assert_eq!(sign_out(&scene.app, &session()), Value::Null);
    let check = format!("/v1/identity-providers/{}/check", scene.id);
    let names = |url: &str| {
        let named = ("end_session_endpoint".to_owned(), json!(url));
        scene.provider.says().document.extend([named]);
        // What it says of itself counts from the check on.
        scene.app.send("POST", &check, None, &[]).expect(200);
    };
    names(&format!("{}/logout?kept=1", scene.provider.issuer()));
    let address = sign_out(&scene.app, &session());
    let address = url::Url::parse(address.as_str().unwrap()).unwrap();
    let pairs: Vec<(String, String)> = address.query_pairs().into_owned().collect();
    let expected = [
        ("kept", "1"),
        ("client_id", CLIENT_ID),
        ("logout_hint", "ada@plant.example"),
    ];
    assert_eq!(
        pairs,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert!(address.as_str().starts_with(scene.provider.issuer()));
    // Nobody is sent to what is no page of the provider's kind, and nobody is kept out for it.
    for odd in ["javascript:alert(1)", "https://id.plant.example/", "a"] {
        names(odd);
        assert_eq!(sign_out(&scene.app, &session()), Value::Null, "{odd}");
    }
    // Of a session that came another way there is nothing to say.
    let by_token = scene.app.sign_in(scene.app.token());
    assert_eq!(sign_out(&scene.app, &by_token), Value::Null);
}

#[test]
fn a_provider_that_is_away_keeps_nobody_signed_in() {
    let scene = Scene::start();
    let (session, _) = session_of(&scene.sign_in());
    let Scene {
        app, log, provider, ..
    } = scene;
    drop(provider);
    // The document is not known any more.
    app.clock.advance(Duration::from_secs(3601));
    assert_eq!(sign_out(&app, &session), Value::Null);
    let logged = log.records("does not say where one signs out");
    assert_eq!(logged[0]["reason"], json!("provider-unavailable"));
}

/// When the provider last named no groups of somebody: the claim was absent, and it left them out.
fn noted(scene: &Scene) -> [Value; 2] {
    let path = format!("/v1/identity-providers/{}", scene.id);
    let one = scene.app.get(&path).expect(200);
    let listed = scene.app.get("/v1/identity-providers").expect(200);
    assert_eq!(listed["data"][0], one);
    ["groupsAbsentAt", "groupsLeftOutAt"].map(|name| one[name].clone())
}

/// A provider that is asked for groups, and a second person.
fn asked_for_groups() -> Scene {
    let scene = Scene::start();
    made::person(&scene.app, "bob@plant.example", "member");
    let path = format!("/v1/identity-providers/{}", scene.id);
    let asks = json!({"groupsClaim": "groups"});
    scene.app.patch(&path, &asks).expect(200);
    scene
}

/// Somebody comes back from the provider, which says this of their groups.
fn comes(scene: &Scene, name: &str, says: &Value) -> Answer {
    scene.provider.says().claims = json!({"sub": name, "email": format!("{name}@plant.example"),
        "groups": says["groups"], "_claim_names": says["_claim_names"]})
    .as_object()
    .unwrap()
    .clone();
    scene.app.clock.advance(Duration::from_secs(1));
    scene.sign_in()
}

#[test]
fn groups_that_a_provider_does_not_name_are_told_in_the_log_and_on_the_provider() {
    let scene = Scene::start();
    let warned = || scene.log.records("their teams stay as they are");
    let none = [Value::Null, Value::Null];
    // Nobody asks for them.
    session_of(&comes(&scene, "ada", &json!({})));
    assert_eq!((warned(), noted(&scene)), (Vec::new(), none.clone()));
    let scene = asked_for_groups();
    let warned = || scene.log.records("their teams stay as they are");
    session_of(&comes(&scene, "ada", &json!({"groups": []})));
    assert_eq!((warned(), noted(&scene)), (Vec::new(), none.clone()));
    session_of(&comes(&scene, "ada", &json!({})));
    let [first, left_out] = noted(&scene);
    assert!(first.is_string() && left_out.is_null(), "{first}");
    session_of(&comes(&scene, "ada", &json!({})));
    let [later, _] = noted(&scene);
    assert!(later.as_str() > first.as_str(), "{later}");
    let elsewhere = json!({"_claim_names": {"groups": "src1"}});
    session_of(&comes(&scene, "bob", &elsewhere));
    let [absent, left_out] = noted(&scene);
    assert!(absent == later && left_out.is_string(), "{left_out}");
    let logged = warned();
    let reasons: Vec<&str> = logged
        .iter()
        .map(|record| record["reason"].as_str().unwrap())
        .collect();
    let absent = "groups-absent";
    assert_eq!(reasons, [absent, absent, "groups-left-out"]);
    for (record, subject) in logged.iter().zip(["ada", "ada", "bob"]) {
        assert_eq!(record["identityProviderId"], json!(scene.id), "{record}");
        assert_eq!(record["groupsClaim"], json!("groups"), "{record}");
        assert_eq!(record["subject"], json!(subject), "{record}");
        assert!(record["remedy"].is_string(), "{record}");
    }
    // What is changed here may have helped: the next sign-in shows it.
    let path = format!("/v1/identity-providers/{}", scene.id);
    let named = json!({"scopes": ["groups"]});
    let changed = scene.app.patch(&path, &named).expect(200);
    assert_eq!(changed["groupsAbsentAt"], Value::Null);
    assert_eq!(noted(&scene), none);
}

#[test]
fn a_person_whose_groups_are_named_again_is_none_of_those_without_groups() {
    let scene = asked_for_groups();
    session_of(&comes(&scene, "ada", &json!({})));
    let ada = noted(&scene);
    // It is known of each person: what is named of another one says nothing of her.
    session_of(&comes(&scene, "bob", &json!({"groups": ["ops"]})));
    assert_eq!(noted(&scene), ada);
    session_of(&comes(&scene, "bob", &json!({})));
    let [both, _] = noted(&scene);
    assert!(both.as_str() > ada[0].as_str(), "{both}");
    // The provider was mended, and nothing was changed here.
    session_of(&comes(&scene, "bob", &json!({"groups": ["ops"]})));
    assert_eq!(noted(&scene), ada);
    session_of(&comes(&scene, "ada", &json!({"groups": []})));
    assert_eq!(noted(&scene), [Value::Null, Value::Null]);
}

#[test]
fn accounts_that_are_refused_are_none_of_those_without_groups() {
    let scene = asked_for_groups();
    let none = [Value::Null, Value::Null];
    let stranger = comes(&scene, "eve", &json!({}));
    assert_eq!(problem_of(&stranger), "not-a-person");
    assert_eq!(noted(&scene), none);
    session_of(&comes(&scene, "bob", &json!({})));
    assert_ne!(noted(&scene), none);
    let users = scene.app.get("/v1/identity/users?email=bob@plant.example");
    let bob = made::id(&users.expect(200)["data"][0]);
    let path = format!("/v1/identity/users/{bob}/deactivate");
    scene.app.send("POST", &path, None, &[]).expect(200);
    assert_eq!(noted(&scene), none, "whoever left signs in no more");
    let left = comes(&scene, "bob", &json!({}));
    assert_eq!(problem_of(&left), "person-deactivated");
    assert_eq!(noted(&scene), none);
    assert_eq!(scene.log.records("their teams stay as they are").len(), 1);
}
