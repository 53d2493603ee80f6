//! What the log tells while something is away: one warning when it goes, one record when it is back, and nothing of
//! what follows from it.

use crate::harness::openfga::{OpenFga, free_address};
use crate::harness::{App, Database, LogLines, eventually, seeds};
use agent_runtime::ids::Clock;
use agent_runtime::secret::Secret;
use agent_runtime::store::{Options, Session, Sql, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The records at level warn and above.
fn warnings(lines: &LogLines) -> Vec<Value> {
    let records = lines.records("\"level\":\"").into_iter();
    let is_one = |record: &Value| ["warn", "error"].contains(&record["level"].as_str().unwrap());
    records.filter(is_one).collect()
}

/// The first record with this message.
#[track_caller]
fn record_of(lines: &LogLines, message: &str) -> Value {
    eventually(message, || lines.records(message).into_iter().next())
}

#[track_caller]
fn away(app: &App, what: &str) -> String {
    let text = app.get("/metrics").text;
    let series = format!("agent_runtime_away{{what=\"{what}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&series));
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn start() -> (App, LogLines) {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let seeds = seeds(&clock);
    let log = lines.logger();
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
        options.runs.first_wait = Duration::from_millis(10);
    });
    (app, lines)
}

#[test]
fn a_database_that_is_away_is_one_warning_and_one_record_when_it_is_back() {
    let (app, lines) = start();
    assert_eq!(warnings(&lines), Vec::<Value>::new());
    let is_away = app.database.away();
    let record = record_of(&lines, "The database is away");
    assert_eq!(record["subsystem"], "store");
    assert!(!record["address"].as_str().unwrap().is_empty() && record["error"].is_object());
    assert_eq!(away(&app, "database"), "1");
    for _ in 0..3 {
        assert_eq!(app.get("/v1/runs").status, 503);
    }
    // The audit, the queues and the watch of the database have tried meanwhile.
    drop(is_away);
    let record = record_of(&lines, "The database is back");
    assert_eq!(record["level"], "info");
    assert!(record["awayMs"].as_u64().unwrap() >= 1000, "{record}");
    assert!(record["failures"].as_u64().unwrap() > 1, "{record}");
    let all = warnings(&lines);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(away(&app, "database"), "0");
}

fn is_answered(session: &mut Session) -> bool {
    session.query("select 1", &[]).is_ok()
}

/// The server and its audit have a pool each, and log one outage. So do connections on loan, and those that rest.
#[test]
fn connections_from_before_an_outage_are_thrown_away_without_a_record() {
    let (database, lines) = (Database::empty(), LogLines::default());
    let options = Options {
        url: Secret::new(database.url()),
        pool_size: 3,
        checkout_timeout: Duration::from_secs(5),
        outage: Arc::default(),
        statement_timeout: Duration::from_secs(4),
    };
    let open = || Store::open(&options, lines.logger()).unwrap();
    let (store, other) = (open(), open());
    let mut on_loan: Vec<Session> = (0..3).map(|_| store.session().unwrap()).collect();
    let mut resting = other.session().unwrap();
    assert!(on_loan.iter_mut().all(is_answered) && is_answered(&mut resting));
    drop(resting);
    let cut =
        "select count(*) filter (where not pg_terminate_backend(pid, 10000)) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()";
    let left: i64 = database.client().query_one(cut, &[]).unwrap().get(0);
    assert_eq!(left, 0, "some stayed");
    let mut first = on_loan.remove(0);
    assert!(!is_answered(&mut first));
    drop(first);
    assert_eq!(lines.records("The database is away").len(), 1);
    // One connection works.
    eventually("the database to be back", || {
        is_answered(&mut store.session().ok()?);
        lines.records("The database is back").into_iter().next()
    });
    drop(on_loan);
    assert!(is_answered(&mut other.session().unwrap()));
    let sessions: Vec<Session> = (0..3).map(|_| store.session().unwrap()).collect();
    drop(sessions);
    let all = warnings(&lines);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert!(!store.is_away());
    // A connection that worked after it tells of another one.
    let mut later = store.session().unwrap();
    assert!(is_answered(&mut later));
    database.client().query_one(cut, &[]).unwrap();
    assert!(!is_answered(&mut later));
    drop(later);
    assert_eq!(lines.records("The database is away").len(), 2);
}

#[test]
fn an_authorization_server_that_is_away_is_one_warning() {
    let fga = OpenFga::own_in_memory();
    let (app, lines) = App::start_at_logged(&fga.url());
    app.is_in_step();
    let before = warnings(&lines).len();
    fga.kill();
    for _ in 0..3 {
        assert!(app.get("/v1/projects").status >= 500);
    }
    let record = record_of(&lines, "The authorization server is away");
    assert_eq!(record["address"], fga.address().to_string());
    assert_eq!(away(&app, "authorization-server"), "1");
    let all = warnings(&lines);
    assert_eq!(all.len(), before + 1, "{all:#?}");
    fga.start();
    let record = record_of(&lines, "The authorization server is back");
    assert_eq!(record["level"], "info");
    assert_eq!(away(&app, "authorization-server"), "0");
}

#[test]
fn a_model_provider_that_is_away_is_one_warning() {
    let (app, lines) = start();
    let address = free_address();
    let agent = app.agent(&format!("http://{address}/v1"));
    for _ in 0..2 {
        let run = app.finished(&app.start_turn(agent, "a"));
        assert_eq!(run["status"], "failed", "{run}");
    }
    let record = record_of(&lines, "A model provider is away");
    assert_eq!(record["address"], address.to_string());
    assert_eq!(away(&app, "model-provider"), "1");
    let messages = warnings(&lines);
    let messages: Vec<&str> = messages
        .iter()
        .map(|record| record["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        ["A model provider is away", "A run ended", "A run ended"]
    );
    let server = Arc::new(tiny_http::Server::http(address).unwrap());
    let answering = Arc::clone(&server);
    std::thread::spawn(move || {
        while let Ok(request) = answering.recv() {
            let message = json!({"role": "assistant", "content": "Hi."});
            let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
            let body = json!({"object": "chat.completion", "choices": choices}).to_string();
            let _ = request.respond(tiny_http::Response::from_string(body));
        }
    });
    let record = eventually("it to be back", || {
        let run = app.finished(&app.start_turn(agent, "a"));
        assert_eq!(run["status"], "completed", "{run}");
        lines.records("A model provider is back").into_iter().next()
    });
    assert_eq!(record["address"], address.to_string());
    assert_eq!(away(&app, "model-provider"), "0");
    server.unblock();
}
