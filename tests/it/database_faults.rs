//! A database that is away, comes back, loses its connections or stands still.

use crate::harness::{
    Answer, App, Client, Database, Puppet, check_order, end_of, eventually, is_finished, kinds,
    within,
};
use agent_runtime::dev::cluster::{self, Cluster};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::ids::Clock;
use agent_runtime::server::Server;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// No request takes longer than this, whatever the database does.
const DEADLINE: Duration = Duration::from_secs(8);

/// Ends every connection to the app's database but the one that asks for it.
fn cut_connections(app: &App) {
    // None is no fault: they may not be back since the last time.
    app.database
        .client()
        .query_one(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
            &[],
        )
        .unwrap();
}

/// What this request is answered once a connection is found that still stands.
#[track_caller]
fn soon(mut ask: impl FnMut() -> Answer, status: u16) -> Value {
    eventually("an answer", || {
        let answer = ask();
        match [503, 504].contains(&answer.status) {
            true => None,
            false => Some(answer.expect(status)),
        }
    })
}

/// Starts a run, once however often that has to be asked.
#[track_caller]
fn start(client: &Client, agent: uuid::Uuid, key: &str) -> String {
    let body = json!({"agentId": agent, "message": "a"}).to_string();
    let headers = [("idempotency-key", key)];
    let ask = || client.send("POST", "/v1/runs", Some(body.clone()), &headers);
    let started = soon(ask, 202);
    started["run"]["id"].as_str().unwrap().to_owned()
}

/// The run, once it has finished. A model call whose answer could not be written is made again, and
/// is answered with this.
fn finish(client: &Client, puppet: &Puppet, id: &str, text: &str) -> Value {
    eventually("the run to finish", || {
        if let Some(mut call) = puppet.waiting() {
            call.say(text);
            call.finish();
        }
        let answer = client.get(&format!("/v1/runs/{id}"));
        if answer.status != 200 {
            assert!([503, 504].contains(&answer.status), "{answer:?}");
            return None;
        }
        Some(answer.json()).filter(is_finished)
    })
}

#[test]
fn runs_go_on_when_their_connections_are_cut() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let id = app.start_turn(agent, "a");
    let mut call = puppet.call();
    let mut stream = app.follow(&id);
    let mut events = stream.until("step.started");
    for piece in ["One, ", "two, ", "three."] {
        cut_connections(&app);
        call.say(piece);
        for path in [format!("/v1/runs/{id}"), "/v1/runs".to_owned()] {
            let answer = app.get(&path);
            assert!([200, 503].contains(&answer.status), "{answer:?}");
        }
    }
    cut_connections(&app);
    call.finish();
    let run = finish(&app, &puppet, &id, "One, two, three.");
    assert_eq!(run["status"], "completed");
    events.extend(stream.rest());
    check_order(&events, 1);
    assert_eq!(end_of(&events), "run-finished");
    let payload = soon(|| app.get(&format!("/v1/runs/{id}/payload")), 200);
    assert_eq!(payload["output"], json!({"text": "One, two, three."}));
}

#[test]
fn many_runs_lose_nothing_when_connections_are_cut_all_the_time() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("One, two, three, four.").between(Duration::from_millis(10)),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    let mut ids = Vec::new();
    for number in 0..12 {
        ids.push(start(&app, agent, &format!("run-{number}")));
        cut_connections(&app);
    }
    for id in &ids {
        let run = app.survived(id);
        assert_eq!(run["status"], "completed", "{run}");
        let payload = soon(|| app.get(&format!("/v1/runs/{id}/payload")), 200);
        let text = "One, two, three, four.";
        assert_eq!(payload["output"], json!({"text": text}));
        let events = soon(|| app.get(&format!("/v1/runs/{id}/progress")), 200);
        kinds(events["data"].as_array().unwrap());
    }
    let listed = soon(|| app.get("/v1/runs?limit=200"), 200);
    assert_eq!(listed["data"].as_array().unwrap().len(), ids.len());
}

#[test]
fn replicas_that_start_at_once_on_an_empty_database_all_become_ready() {
    let database = Database::empty();
    let clock = Clock::system();
    let seeds = crate::harness::seeds(&clock);
    let start = || App::start_on(database.clone(), clock.clone(), seeds.clone(), |_| {});
    let apps: Vec<App> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(start)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let puppet = Puppet::start();
    let id = apps[0].start_turn(apps[1].agent(&puppet.base_url()), "a");
    puppet.call().finish();
    assert_eq!(apps[2].finished(&id)["status"], "completed");
}

/// A cluster of the test's own, that can be stopped and started.
pub(crate) fn cluster(data_dir: &Path) -> Cluster {
    let started = Cluster::start(cluster::Options {
        data_dir: data_dir.to_owned(),
        durable: true,
        bin_dir: std::env::var_os("AGENT_RUNTIME_TEST_POSTGRES_BIN").map(Into::into),
        search_path: std::env::var_os("PATH"),
        runtime_dir: None,
        log: crate::harness::log(),
    });
    started.unwrap_or_else(|failure| panic!("{failure}"))
}

/// Checks that the probes answer at once, and say that the server is alive.
fn check_alive(client: &Client) {
    within(Duration::from_secs(1), || {
        let began = Instant::now();
        assert_eq!(client.get("/healthz").status, 200);
        assert_eq!(client.get("/metrics").status, 200);
        began.elapsed()
    });
}

/// Checks that a request is refused in time with a 503 that says when to come back, or
/// a 504.
fn check_refused(client: &Client) {
    within(DEADLINE, || ask_refused(client));
}

/// How long it took.
fn ask_refused(client: &Client) -> Duration {
    let began = Instant::now();
    for (method, path, body) in [
        ("GET", "/v1/projects", None),
        ("POST", "/v1/projects", Some(r#"{"name":"a"}"#.to_owned())),
    ] {
        let answer = client.send(method, path, body, &[]);
        let after = answer.header("retry-after").map(str::to_owned);
        if answer.status == 504 {
            // It had a connection, and nothing came back on it.
            answer.expect_error(504, "deadline-exceeded");
            continue;
        }
        answer.expect_error(503, "database-unavailable");
        assert!(after.is_some_and(|after| after.parse::<u32>().is_ok()));
    }
    began.elapsed()
}

/// Stops the processes of a cluster, and says which: it answers nothing until they go on.
pub(crate) fn stop_answering(postmaster: u32) -> Vec<Pid> {
    // The postmaster first: it starts no more.
    let own = Pid::from_raw(i32::try_from(postmaster).unwrap()).unwrap();
    stop(&[own]);
    let children = children(postmaster);
    assert!(children.len() > 4, "{children:?}");
    stop(&children);
    [children, vec![own]].concat()
}

/// Stops processes, and waits until they stand still or have ended.
fn stop(processes: &[Pid]) {
    signal(processes, Signal::STOP);
    for pid in processes {
        eventually("a process to stand still", || match stat(*pid) {
            Some((state, _)) if !["T", "Z"].contains(&state.as_str()) => None,
            _ => Some(()),
        });
    }
}

/// Sends every process the signal that has not ended.
pub(crate) fn signal(processes: &[Pid], signal: Signal) {
    for pid in processes {
        let sent = kill_process(*pid, signal);
        assert!([Ok(()), Err(Errno::SRCH)].contains(&sent), "{sent:?}");
    }
}

/// A process's state and its parent's id.
fn stat(pid: Pid) -> Option<(String, u32)> {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let stat = std::fs::read_to_string(path).ok()?;
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    let state = words.next()?.to_owned();
    Some((state, words.next()?.parse().ok()?))
}

fn children(postmaster: u32) -> Vec<Pid> {
    let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let pid = Pid::from_raw(name.parse().ok()?)?;
        (stat(pid)?.1 == postmaster).then_some(pid)
    });
    children.collect()
}

#[test]
fn a_server_outlives_the_absence_of_its_database() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data_dir = place.path().join("d");
    let first = cluster(&data_dir);
    let url = first.url();
    first.stop();

    // It starts while its database is away.
    let clock = Clock::system();
    let seeds = crate::harness::seeds(&clock);
    let mut options = crate::harness::options(&url, &seeds);
    options.store.checkout_timeout = Duration::from_secs(1);
    options.store.statement_timeout = Duration::from_secs(2);
    options.limits.request_deadline = Duration::from_secs(3);
    let server = Server::start(options, &clock, &crate::harness::log()).unwrap();
    let client = Client::new(server.local_addr(), Some(seeds.token.expose()));
    let ready = client.get("/readyz");
    assert_eq!(ready.status, 503);
    eventually("the reason", || {
        let missing = client.get("/readyz").json()["missing"]["server"].clone();
        missing.as_str()?.contains("database").then_some(())
    });
    check_alive(&client);
    check_refused(&client);

    // It comes up.
    let mut cluster = cluster(&data_dir);
    server
        .ready()
        .recv_timeout(crate::harness::PATIENCE)
        .unwrap()
        .unwrap();
    eventually("readiness", || {
        (client.get("/readyz").status == 200).then_some(())
    });
    let puppet = Puppet::start();
    let agent = client.agent(&puppet.base_url());

    // It is restarted in the middle of a run.
    let id = client.start_turn(agent, "a");
    let mut call = puppet.call();
    let mut stream = client.follow(&id);
    let mut events = stream.until("step.started");
    call.say("Still ");
    cluster
        .restart()
        .unwrap_or_else(|failure| panic!("{failure}"));
    call.say("here.");
    call.finish();
    let run = finish(&client, &puppet, &id, "Still here.");
    assert_eq!(run["status"], "completed", "{run}");
    events.extend(stream.rest());
    check_order(&events, 1);
    assert_eq!(end_of(&events), "run-finished");

    // It stands still in the middle of a run.
    let id = start(&client, agent, "b");
    let call = puppet.call();
    let stopped = stop_answering(cluster.pid().unwrap());
    check_refused(&client);
    check_alive(&client);
    call.finish();
    signal(&stopped, Signal::CONT);
    let run = finish(&client, &puppet, &id, "");
    assert_eq!(run["status"], "completed", "{run}");
    let events = soon(|| client.get(&format!("/v1/runs/{id}/progress")), 200);
    kinds(events["data"].as_array().unwrap());
    assert!(server.stop(crate::harness::PATIENCE));
    cluster.stop();
}

#[test]
fn attempts_that_wait_for_the_database_leave_requests_their_connections() {
    let app = App::start_with_webhooks();
    let mut client = app.database.client();
    let mut held = client.transaction().unwrap();
    let endpoints: Vec<String> = (0..16)
        .map(|port| app.endpoint(&format!("http://127.0.0.1:{}/", 10 + port)))
        .collect();
    // No attempt's row can be written.
    let lock = "lock table webhook_attempts in share mode";
    held.batch_execute(lock).unwrap();
    for endpoint in &endpoints {
        let test = format!("/v1/webhook-endpoints/{endpoint}/test");
        app.send("POST", &test, None, &[]).expect(202);
    }
    let waiting = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    let mut watch = app.database.client();
    // Those that have ended are written in one statement, on one connection.
    eventually("attempts wait", || {
        let waiting: i64 = watch.query_one(waiting, &[]).unwrap().get(0);
        (waiting >= 1).then_some(())
    });
    for _ in 0..20 {
        app.get("/v1/secrets").expect(200);
    }
    let waiting: i64 = watch.query_one(waiting, &[]).unwrap().get(0);
    assert!(waiting <= 4, "{waiting} of 8 connections wait");
    held.commit().unwrap();
}

#[test]
fn leases_are_kept_while_every_connection_of_the_pool_is_taken() {
    let app = App::start_with(|options| options.run_lease = Duration::from_secs(2));
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let id = app.start_turn(agent, "a");
    let mut call = puppet.call();
    let store = &app.server().shared().store;
    let taken: Vec<_> = (0..store.pool().max_size())
        .map(|_| eventually("a connection", || store.session().ok()))
        .collect();
    let mut client = app.database.client();
    let mut runs_out = || -> f64 {
        let expires = "select max(extract(epoch from expires_at))::float8 from job_leases";
        client.query_one(expires, &[]).unwrap().get(0)
    };
    let before = runs_out();
    eventually("the lease to be renewed again and again", || {
        (runs_out() > before + 4.0).then_some(())
    });
    drop(taken);
    call.say("Done.");
    call.finish();
    assert_eq!(app.finished(&id)["status"], json!("completed"));
    assert!(puppet.waiting().is_none(), "nothing was asked twice");
}
