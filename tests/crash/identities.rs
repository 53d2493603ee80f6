//! Signing in through an identity provider, cut by a kill: somebody is bound, in their teams, on record and signed in, or none
//! of it. What is committed stands, and the authorization server learns of it later.

use crate::access::{authorized, verify_audit, verify_permissions};
use crate::identity_provider::IdentityProvider;
use crate::openfga::OpenFga;
use crate::server::{Client, Server, ServerConfig};
use crate::trap::{Half, Trap};
use crate::world::{id_of, shared_database};
use crate::{eventually, report};
use postgres::NoTls;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Where a sign-in is when its server is killed.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// In its transaction: it waits for what the test holds.
    Held {
        hold: &'static str,
        waits: &'static str,
    },
    /// All is written, and its records are on their way to the disk: the commit waits for them.
    Recording,
    /// It is committed, and in a call of the authorization server.
    Telling(Half),
}

const STEPS: [(&str, Step); 8] = [
    (
        "teams",
        Step::Held {
            hold: "select from teams for update",
            waits: "%from teams%",
        },
    ),
    (
        "identity",
        Step::Held {
            hold: "lock table identities in share mode",
            waits: "%into identities%",
        },
    ),
    (
        "memberships",
        Step::Held {
            hold: "lock table team_memberships in share mode",
            waits: "%team_memberships%",
        },
    ),
    (
        "marks",
        Step::Held {
            hold: "select from authz_objects for update",
            waits: "%authz_objects%",
        },
    ),
    // Bound and in their teams; the session is what is missing.
    (
        "session",
        Step::Held {
            hold: "lock table sessions in share mode",
            waits: "%into sessions%",
        },
    ),
    ("record", Step::Recording),
    ("committed, not told", Step::Telling(Half::Question)),
    ("committed and told", Step::Telling(Half::Answer)),
];

struct World {
    config: ServerConfig,
    trap: Trap,
    _fga: OpenFga,
    provider: IdentityProvider,
    id: Uuid,
    looking: postgres::Client,
    browser: ureq::Agent,
}

/// What sign-ins leave: people, identities, memberships by groups, sessions.
type Left = [i64; 4];

fn text(response: &mut ureq::http::Response<ureq::Body>) -> String {
    response.body_mut().read_to_string().unwrap()
}

impl World {
    fn start() -> (Self, Server) {
        let fga = OpenFga::own_in_memory();
        let trap = Trap::before(fga.address());
        let config = authorized(shared_database(), &trap.url());
        let server = config.start();
        let client = config.client();
        let team = |slug: &str| {
            id_of(&client.made("/v1/teams", &json!({"name": slug, "slug": slug}), 201))
        };
        let provider = IdentityProvider::start();
        provider.says().is_public = true;
        let row = |group: &str| json!({"group": group, "teamId": team(group), "role": "member"});
        let body = json!({
            "name": "Plant", "issuer": provider.issuer(), "clientId": "agent-runtime",
            "emailDomains": ["plant.example"], "createsPeople": true, "groupsClaim": "groups",
            "groups": [row("ops"), row("lab")],
        });
        let id = id_of(&client.made("/v1/identity-providers", &body, 201));
        let looking = postgres::Client::connect(&config.database_url, NoTls).unwrap();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .max_idle_connections(0)
            .build();
        let world = Self {
            config,
            trap,
            _fga: fga,
            provider,
            id,
            looking,
            browser: agent.into(),
        };
        (world, server)
    }

    /// Who signs in next, and in which groups they are.
    fn says(&self, subject: &str, groups: &[&str]) {
        let mut says = self.provider.says();
        let email = format!("{subject}@plant.example");
        for (claim, value) in [
            ("sub", json!(subject)),
            ("email", json!(email)),
            ("groups", json!(groups)),
        ] {
            says.claims.insert(claim.to_owned(), value);
        }
    }

    /// Begins to sign in; where the browser is sent back to, and the cookie that it has by then.
    fn begin(&self, client: &Client) -> (String, String) {
        let path = format!(
            "http://{}/v1/sign-in/providers/{}/start",
            client.address, self.id
        );
        let request = ureq::http::Request::post(path)
            .header("content-type", "application/json")
            .header("sec-fetch-site", "same-origin")
            .body(json!({"returnTo": "/console/"}).to_string())
            .unwrap();
        let mut answer = self.browser.run(request).unwrap();
        assert_eq!(answer.status(), 200, "{}", text(&mut answer));
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        let (cookie, _) = cookie.split_once(';').unwrap();
        let cookie = cookie.to_owned();
        let begun: Value = serde_json::from_str(&text(&mut answer)).unwrap();
        let back = self.provider.opened(begun["url"].as_str().unwrap());
        (back.url.to_string(), cookie)
    }

    /// A whole sign-in, which goes well.
    #[track_caller]
    fn sign_in(&self, told: &str) {
        let (url, cookie) = self.begin(&self.config.client());
        let request = ureq::http::Request::get(url).header("cookie", cookie);
        let answer = self.browser.run(request.body(()).unwrap()).unwrap();
        assert_eq!(answer.status(), 303, "{told}");
        assert_eq!(answer.headers()["location"], "/console/", "{told}");
    }

    /// What there is. Each session and each identity is on record.
    #[track_caller]
    fn left(&mut self) -> Left {
        let unrecorded = "select (select count(*) from sessions s where not exists (
              select from audit_decisions d where d.tenant_id = s.tenant_id and d.key_id = s.session_id
                and d.stage = 'sign-in' and d.outcome = 'allowed'))
            + (select count(*) from identities i where not exists (
              select from audit_decisions d where d.tenant_id = i.tenant_id and d.resource = 'user:' || i.user_id
                and d.stage = 'identity-bound' and d.outcome = 'allowed'))";
        let row = self.looking.query_one(unrecorded, &[]).unwrap();
        assert_eq!(row.get::<_, i64>(0), 0, "what is not on record");
        let select = "select (select count(*) from users where email is not null), (select count(*) from identities),
            (select count(*) from team_memberships where source_provider_id is not null),
            (select count(*) from sessions)";
        let row = self.looking.query_one(select, &[]).unwrap();
        std::array::from_fn(|at| row.get(at))
    }

    /// How many connections of the server are in this state.
    fn connections(&mut self, state: &str, holder: i32) -> i64 {
        let count = format!(
            "select count(*) from pg_stat_activity where datname = current_database()
             and pid <> pg_backend_pid() and pid <> $1 and ({state})"
        );
        self.looking.query_one(&count, &[&holder]).unwrap().get(0)
    }

    fn wait_for(&mut self, state: &str, holder: i32) {
        eventually(state, || {
            (self.connections(state, holder) > 0).then_some(())
        });
    }

    /// Kills the server when a sign-in has come to this step.
    fn cut(&mut self, server: Server, step: Step) {
        let back = self.begin(&self.config.client());
        let mut holding = postgres::Client::connect(&self.config.database_url, NoTls).unwrap();
        let pid = holding.query_one("select pg_backend_pid()", &[]).unwrap();
        let holder: i32 = pid.get(0);
        let mut held = holding.transaction().unwrap();
        match step {
            Step::Held { hold, .. } => held.batch_execute(hold).unwrap(),
            Step::Recording => held
                .batch_execute("select from audit_writers for update")
                .unwrap(),
            Step::Telling(half) => self.trap.set("/write", half),
        }
        let browser = self.browser.clone();
        let is_cut = std::thread::scope(|scope| {
            let coming = scope.spawn(move || {
                let request = ureq::http::Request::get(&back.0).header("cookie", &back.1);
                browser.run(request.body(()).unwrap()).is_err()
            });
            match step {
                Step::Held { waits, .. } => self.wait_for(
                    &format!("wait_event_type = 'Lock' and query like '{waits}'"),
                    holder,
                ),
                Step::Recording => {
                    let of_audit = "wait_event_type = 'Lock' and query like '%audit_%'";
                    self.wait_for(of_audit, holder);
                    self.wait_for("state = 'idle in transaction'", holder);
                }
                Step::Telling(_) => self.trap.wait(),
            }
            server.kill();
            coming.join().unwrap()
        });
        assert!(is_cut, "{step:?}: nobody answered");
        self.trap.let_go();
        held.rollback().unwrap();
        drop(holding);
        eventually("the end of its connections", || {
            (self.connections("true", holder) == 0).then_some(())
        });
    }

    /// Cuts a sign-in at this step and makes it again; by itself it would change so much.
    fn cut_and_again(&mut self, server: Server, told: &str, step: Step, change: Left) -> Server {
        let before = self.left();
        let after: Left = std::array::from_fn(|at| before[at] + change[at]);
        self.cut(server, step);
        let stands = matches!(step, Step::Telling(_));
        let is_left = if stands { after } else { before };
        assert_eq!(self.left(), is_left, "{told}");
        let server = self.config.start();
        self.sign_in(told);
        let [people, identities, memberships, sessions] = after;
        // The session of an answer that was lost stays until it ends by itself.
        let sessions = sessions + i64::from(stands);
        assert_eq!(
            self.left(),
            [people, identities, memberships, sessions],
            "{told}"
        );
        verify_permissions(&self.config);
        server
    }
}

#[test]
fn a_sign_in_that_is_cut_leaves_nothing_half_done() {
    let (mut world, mut server) = World::start();
    let mut kills = 0;
    for (number, (name, step)) in STEPS.into_iter().enumerate() {
        let subject = format!("new-{number}");
        world.says(&subject, &["ops", "lab"]);
        let told = format!("{name}: somebody new");
        server = world.cut_and_again(server, &told, step, [1, 1, 2, 1]);
        kills += 1;
        // Whoever is bound is not bound again.
        if name == "identity" {
            continue;
        }
        world.says(&subject, &[]);
        let told = format!("{name}: other groups");
        server = world.cut_and_again(server, &told, step, [0, 0, -2, 1]);
        kills += 1;
    }
    assert!(server.terminate().0.success());
    verify_audit(&world.config);
    report(
        "sign-ins through a provider",
        &format!("steps={} kills={kills}", STEPS.len()),
    );
}
