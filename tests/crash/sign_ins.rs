//! `kill -9` around the opening of a session: a code is taken if and only if its session is there, what was answered holds, and
//! each session is on record.

use crate::access::{authorized, verify_audit};
use crate::openfga::OpenFga;
use crate::random::Random;
use crate::server::{Client, ServerConfig};
use crate::world::{id_of, shared_database};
use crate::{eventually, report, setting};
use postgres::NoTls;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// Where a sign-in is held when its server is killed, and what holds it.
const HOLDS: [(&str, &str); 3] = [
    ("before anything", "select from users for update"),
    // A code is taken by then.
    (
        "before the session's row",
        "lock table sessions in share mode",
    ),
    ("before the record", "select from audit_writers for update"),
];

/// A person with a code that nobody has taken.
struct Invited {
    id: Uuid,
    code: String,
}

impl Invited {
    fn add(admin: &Client) -> Self {
        let email = format!("{}@example.test", Uuid::new_v4().simple());
        let body = json!({"email": email, "displayName": "Somebody", "tenantRole": "member"});
        let added = admin.made("/v1/identity/users", &body, 201);
        let code = added["enrolment"]["code"].as_str().unwrap().to_owned();
        Self {
            id: id_of(&added),
            code,
        }
    }
}

/// Sends what a page of the server sends, and gives the status with the session that the browser keeps by then.
fn send(
    config: &ServerConfig,
    path: &str,
    session: &str,
    body: Option<&Value>,
) -> Result<(u16, Option<String>), String> {
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build();
    let agent: ureq::Agent = agent.into();
    let name = format!("__Host-agent-runtime-{}", config.port);
    let request = ureq::http::Request::builder()
        .method(if body.is_some() { "POST" } else { "GET" })
        .uri(format!("http://127.0.0.1:{}{path}", config.port))
        .header("sec-fetch-site", "same-origin")
        .header("cookie", format!("{name}={session}"))
        .header("content-type", "application/json");
    let sent = match body {
        Some(body) => agent.run(request.body(body.to_string()).unwrap()),
        None => agent.run(request.body(()).unwrap()),
    };
    let answer = sent.map_err(|error| error.to_string())?;
    let cookie = answer.headers().get("set-cookie");
    let kept = cookie.and_then(|cookie| {
        let (pair, _) = cookie.to_str().ok()?.split_once(';')?;
        Some(pair.split_once('=')?.1.to_owned())
    });
    Ok((answer.status().as_u16(), kept))
}

fn by_code(config: &ServerConfig, code: &str) -> Result<(u16, Option<String>), String> {
    let body = json!({"code": code});
    send(config, "/v1/sign-in/enrolment", "", Some(&body))
}

fn by_token(config: &ServerConfig) -> Result<(u16, Option<String>), String> {
    let body = json!({"token": config.token});
    send(config, "/v1/sign-in/token", "", Some(&body))
}

/// Whether the session is taken.
fn holds(config: &ServerConfig, session: &str) -> bool {
    let (status, _) = send(config, "/v1/identity/me", session, None).unwrap();
    assert!([200, 401].contains(&status), "{status}");
    status == 200
}

/// Holds what is half done against each other; gives how many sessions there are.
fn check(sql: &mut postgres::Client) -> i64 {
    let mut count = |what: &str| -> i64 { sql.query_one(what, &[]).unwrap().get(0) };
    let unrecorded = "select count(*) from sessions s where not exists (
        select from audit_decisions d
        where d.tenant_id = s.tenant_id and d.key_id = s.session_id and d.stage = 'sign-in' and d.outcome = 'allowed')";
    assert_eq!(count(unrecorded), 0, "sessions that are not on record");
    let half_taken = "select count(*) from enrolments e where (e.ended_at is not null) <> (
        select count(*) = 1 from sessions s
        where s.tenant_id = e.tenant_id and s.user_id = e.user_id and s.method = 'enrolment')";
    assert_eq!(
        count(half_taken),
        0,
        "codes that are taken without a session, or the other way round"
    );
    count("select count(*) from sessions")
}

#[test]
fn a_sign_in_that_a_kill_met_left_nothing_behind_and_can_be_made_again() {
    let fga = OpenFga::own_in_memory();
    let config = authorized(shared_database(), &fga.url());
    let mut server = config.start();
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let mut other = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    for (place, hold) in HOLDS {
        for with_code in [true, false] {
            let told = format!("{place}, with a code: {with_code}");
            let invited = Invited::add(&config.client());
            let before = check(&mut sql);
            let mut held = other.transaction().unwrap();
            held.batch_execute(hold).unwrap();
            let sign_in = || match with_code {
                true => by_code(&config, &invited.code),
                false => by_token(&config),
            };
            std::thread::scope(|scope| {
                let answer = scope.spawn(sign_in);
                let waits = "select count(*) > 0 from pg_locks where not granted";
                eventually(&told, || {
                    let waits: bool = sql.query_one(waits, &[]).unwrap().get(0);
                    waits.then_some(())
                });
                server.kill();
                assert!(answer.join().unwrap().is_err(), "{told}");
            });
            held.rollback().unwrap();
            // What the killed server asked for goes on in the database until that notices.
            eventually("the end of its connections", || {
                let open = "select count(*) from pg_stat_activity
                    where datname = current_database() and backend_type = 'client backend'";
                let open: i64 = sql.query_one(open, &[]).unwrap().get(0);
                (open == 2).then_some(())
            });
            assert_eq!(check(&mut sql), before, "{told}");
            server = config.start();
            let (status, session) = sign_in().unwrap();
            assert_eq!(status, 204, "{told}");
            assert!(holds(&config, &session.unwrap()), "{told}");
            assert_eq!(check(&mut sql), before + 1, "{told}");
            if with_code {
                assert_eq!(by_code(&config, &invited.code).unwrap().0, 401, "{told}");
                let own = "select count(*) from sessions where user_id = $1";
                let own: i64 = sql.query_one(own, &[&invited.id]).unwrap().get(0);
                assert_eq!(own, 1, "{told}");
            }
        }
    }
    assert!(server.terminate().0.success());
    verify_audit(&config);
}

#[test]
fn what_was_answered_holds_after_kills_at_random_moments() {
    let kills = setting("CRASH_KILLS", 6);
    let mut random = Random::seeded("sign-ins");
    let fga = OpenFga::own_in_memory();
    let config = authorized(shared_database(), &fga.url());
    let mut server = config.start();
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let (mut opened, mut lost, mut people) = (0, 0, 0);
    for _ in 0..kills {
        let admin = config.client();
        let invited: Vec<Invited> = (0..40).map(|_| Invited::add(&admin)).collect();
        people += invited.len();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut answered = Vec::new();
            while let Some(one) = invited.get(next.fetch_add(1, Ordering::Relaxed)) {
                match by_code(&config, &one.code) {
                    Ok((204, session)) => answered.push((one.id, session)),
                    Ok((status, _)) => assert!(status >= 500, "{status}"),
                    // The server is away. Those who are left sign in at the next one.
                    Err(_) => break,
                }
            }
            answered
        };
        let answered: Vec<_> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            random.let_pass(5, 150);
            server.kill();
            clients
                .into_iter()
                .flat_map(|client| client.join().unwrap())
                .collect()
        });
        server = config.start();
        for (_, session) in &answered {
            assert!(holds(&config, session.as_ref().unwrap()));
        }
        check(&mut sql);
        // Each of the others signs in now, unless its answer alone was lost.
        for one in &invited {
            if answered.iter().any(|(id, _)| *id == one.id) {
                continue;
            }
            match by_code(&config, &one.code).unwrap() {
                (204, session) => assert!(holds(&config, &session.unwrap())),
                (status, _) => {
                    assert_eq!(status, 401);
                    lost += 1;
                }
            }
        }
        opened += answered.len();
        check(&mut sql);
    }
    assert_eq!(check(&mut sql), i64::try_from(people).unwrap());
    assert!(server.terminate().0.success());
    verify_audit(&config);
    report(
        "sign-ins",
        &format!("kills={kills} people={people} answeredBefore={opened} answersLost={lost}"),
    );
}
