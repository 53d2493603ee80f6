//! The record of access decisions while servers are killed and the database is restarted under load:
//! each answered request has its row, each effect too, and nothing has two.

use crate::access::{Person, authorized, project, verify_audit};
use crate::openfga::OpenFga;
use crate::random::Random;
use crate::server::{Client, Server, ServerConfig};
use crate::wait::moment;
use crate::world::cluster;
use crate::{eventually, report, setting};
use postgres::NoTls;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use uuid::Uuid;

const CLIENTS: usize = 6;

/// One request, which its trace names wherever it got to.
struct Sent {
    trace: String,
    /// Status and request id; none if the server or the connection was gone.
    answer: Option<(u16, String)>,
}

/// A row of the record.
struct Row {
    request_id: Uuid,
    is_allowed: bool,
    route: String,
}

/// Makes requests of each kind in turn until told to stop.
fn load(
    clients: &[Client; 3],
    project_id: Uuid,
    (stop, answered): (&AtomicBool, &AtomicUsize),
) -> Vec<Sent> {
    let [admin, member, stranger] = clients;
    let read = format!("/v1/projects/{project_id}");
    let mut sent = Vec::new();
    for kind in (0..4).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let trace = Uuid::new_v4().simple().to_string();
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let headers = [("traceparent", parent.as_str())];
        let team = json!({"name": "Team", "slug": trace});
        let answer = match kind {
            0 => member.send("GET", &read, None, &headers),
            1 => stranger.send("GET", &read, None, &headers),
            2 => admin.send("POST", "/v1/teams", Some(&team), &headers),
            _ => stranger.send("POST", "/v1/teams", Some(&team), &headers),
        };
        if answer.is_err() {
            moment();
        }
        let answer = answer.ok().map(|answer| {
            let status = answer.status;
            let right = match kind {
                0 => status == 200,
                2 => status == 201,
                _ => status == 403,
            };
            // What the database's restarts and the kills make of it.
            assert!(right || [500, 503, 504].contains(&status), "{answer:?}");
            answered.fetch_add(usize::from(right), Ordering::Relaxed);
            (status, answer.request_id)
        });
        sent.push(Sent { trace, answer });
    }
    sent
}

/// Every row of the record by its trace: a trace has one at most.
fn rows(config: &ServerConfig) -> HashMap<String, Row> {
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let mut rows = HashMap::new();
    let all = "select trace_id, request_id, outcome, route from audit_decisions";
    for row in sql.query(all, &[]).unwrap() {
        let trace: String = row.get(0);
        let made = Row {
            request_id: row.get(1),
            is_allowed: row.get::<_, String>(2) == "allowed",
            route: row.get(3),
        };
        assert!(rows.insert(trace.clone(), made).is_none(), "twice: {trace}");
    }
    rows
}

/// What the record was held against.
#[derive(Default)]
struct Figures {
    decided: usize,
    failed: usize,
    failed_recorded: usize,
    unanswered: usize,
    unanswered_recorded: usize,
}

/// Holds the record against what was answered.
fn check_answers(sent: &[Sent], rows: &HashMap<String, Row>) -> Figures {
    let mut figures = Figures::default();
    for Sent { trace, answer } in sent {
        let row = rows.get(trace);
        match answer {
            Some((status @ (200 | 201 | 403), request_id)) => {
                figures.decided += 1;
                let row = row.unwrap_or_else(|| panic!("{status} {request_id}: not recorded"));
                assert_eq!(format!("req-{}", row.request_id), *request_id);
                assert_eq!(row.is_allowed, *status != 403, "{request_id}");
            }
            Some(_) => {
                figures.failed += 1;
                figures.failed_recorded += usize::from(row.is_some());
            }
            None => {
                figures.unanswered += 1;
                figures.unanswered_recorded += usize::from(row.is_some());
            }
        }
    }
    figures
}

/// Each change that stands was decided, and was allowed. Gives how many there are.
fn check_effects(config: &ServerConfig, rows: &HashMap<String, Row>) -> usize {
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let teams = sql.query("select slug from teams", &[]).unwrap();
    for team in &teams {
        let trace: String = team.get(0);
        let row = rows.get(&trace);
        let row = row.unwrap_or_else(|| panic!("the team of {trace} was made without a record"));
        assert!(row.is_allowed && row.route == "POST /v1/teams", "{trace}");
    }
    teams.len()
}

#[test]
fn as_many_decisions_are_recorded_as_took_effect() {
    let mut random = Random::seeded("decisions");
    let fga = OpenFga::own_in_memory();
    let mut cluster = cluster("decisions");
    let config = authorized(cluster.url(), &fga.url())
        .with("SVC_REQUEST_DEADLINE_MS", 4000)
        .with("SVC_DATABASE_CHECKOUT_TIMEOUT_MS", 500)
        .with("SVC_DATABASE_STATEMENT_TIMEOUT_MS", 2000);
    let mut server = config.start();
    let admin = config.client();
    let project_id = project(&admin);
    let (member, stranger) = (Person::add(&admin), Person::add(&admin));
    let path = format!("/v1/projects/{project_id}/memberships");
    admin.made(&path, &json!({"userId": member.id, "role": "viewer"}), 201);
    let clients = [admin, member.at(&config), stranger.at(&config)];
    let before = rows(&config);
    let faults = setting("CRASH_RESTARTS", 6);
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (sent, server): (Vec<Sent>, Server) = std::thread::scope(|scope| {
        let loads: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| load(&clients, project_id, (&stop, &answered))))
            .collect();
        for number in 0..faults {
            random.let_pass(700, 2000);
            if number % 2 == 0 {
                server.kill();
                server = config.start();
            } else {
                cluster.restart().unwrap();
            }
        }
        // And then all is well again for a while.
        let before = answered.load(Ordering::Relaxed);
        eventually("more answers", || {
            (answered.load(Ordering::Relaxed) > before + 50).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
        let each = loads.into_iter().flat_map(|load| load.join().unwrap());
        (each.collect(), server)
    });
    // What is on its way to the disk gets there.
    assert!(server.terminate().0.success());
    let rows = rows(&config);
    let figures = check_answers(&sent, &rows);
    let effects = check_effects(&config, &rows);
    let known: HashSet<&String> = sent.iter().map(|sent| &sent.trace).collect();
    let others = rows.keys().filter(|trace| !known.contains(trace)).count();
    assert_eq!(others, before.len(), "rows of nobody's request");
    let recorded = rows.len() - before.len();
    assert_eq!(
        recorded,
        figures.decided + figures.failed_recorded + figures.unanswered_recorded
    );
    verify_audit(&config);
    report(
        "decisions",
        &format!(
            "faults={faults} requests={} decided={} rows={recorded} effects={effects} failed={} failedRecorded={} unanswered={} unansweredRecorded={}",
            sent.len(),
            figures.decided,
            figures.failed,
            figures.failed_recorded,
            figures.unanswered,
            figures.unanswered_recorded,
        ),
    );
}
