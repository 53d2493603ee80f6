//! A server's start, readiness and stop, whatever its database does.

use crate::database_faults::{cluster, signal, stop_answering};
use crate::harness::{App, Client, PATIENCE, Puppet, eventually, log, options, seeds};
use agent_runtime::error::Code;
use agent_runtime::ids::Clock;
use agent_runtime::secret::Secret;
use agent_runtime::server::{Replaced, Seeds, Server};
use rustix::process::Signal;
use serde_json::json;
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn readiness_follows_the_database_without_any_request() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let first = cluster(&place.path().join("d"));
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let server = Server::start(options(&first.url(), &seeds), &clock, &log()).unwrap();
    let ready = server.ready().recv_timeout(PATIENCE).unwrap();
    ready.unwrap();
    let client = Client::new(server.local_addr(), None);
    client.get("/readyz").expect(200);
    first.stop();
    eventually("the server to be unready", || {
        let answer = client.get("/readyz");
        let missing = answer.json()["missing"]["database"].clone();
        (answer.status == 503 && missing.as_str()?.contains("database")).then_some(())
    });
    let again = cluster(&place.path().join("d"));
    eventually("the server to be ready again", || {
        (client.get("/readyz").status == 200).then_some(())
    });
    assert!(server.stop(PATIENCE));
    again.stop();
}

#[test]
fn a_stop_ends_in_time_although_the_database_stands_still() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cluster = cluster(&place.path().join("d"));
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let server = Server::start(options(&cluster.url(), &seeds), &clock, &log()).unwrap();
    server.ready().recv_timeout(PATIENCE).unwrap().unwrap();
    let address = server.local_addr();
    let client = Client::new(address, Some(seeds.token.expose()));
    let puppet = Puppet::start();
    let agent = client.agent(&puppet.base_url());
    let id = client.start_turn(agent, "a");
    let call = puppet.call();
    let mut stream = client.follow(&id);
    stream.until("step.started");
    // A server that is still starting, on a database that answers nothing.
    let stopped = stop_answering(cluster.pid().unwrap());
    let starting = Server::start(options(&cluster.url(), &seeds), &clock, &log()).unwrap();
    // Its threads sit in statements by now.
    call.finish();
    let reader = client.clone();
    let stuck = std::thread::spawn(move || reader.get("/v1/projects").status);
    let stopping = std::thread::spawn(move || server.stop(Duration::from_secs(10)));
    eventually("the door to be closed", || {
        TcpStream::connect(address).err().map(drop)
    });
    // Both end before the database answers again.
    let in_time = stopping.join().unwrap();
    let started_in_time = starting.stop(Duration::from_secs(1));
    signal(&stopped, Signal::CONT);
    let _ = stuck.join();
    assert!(!in_time && !started_in_time);
    cluster.stop();
}

#[test]
fn a_server_that_waits_for_its_database_stops_at_once() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let clock = Clock::system();
    let seeds = seeds(&clock);
    let url = format!("postgres://a@%2F{}/b", "nowhere");
    let server = Server::start(options(&url, &seeds), &clock, &log()).unwrap();
    assert!(server.stop(PATIENCE));
    drop(place);
}

#[test]
fn a_database_that_refuses_for_good_ends_the_start_with_the_reason() {
    let app = App::start();
    let url = app.database.url();
    let (server, _) = url.rsplit_once('/').unwrap();
    let clock = Clock::system();
    let options = options(&format!("{server}/nowhere"), &seeds(&clock));
    let server = Server::start(options, &clock, &log()).unwrap();
    let error = server.ready().recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest);
    let text = error.message();
    assert!(text.starts_with("SVC_DATABASE_URL: "), "{text}");
    assert!(text.contains("\"nowhere\" does not exist"), "{text}");
    assert!(server.stop(PATIENCE));
}

#[test]
fn a_revoked_seed_token_stays_revoked_and_a_new_one_is_another_token() {
    let app = App::start();
    let listed = app.get("/v1/tokens").expect(200);
    let first = listed["data"][0]["id"].as_str().unwrap().to_owned();

    // Another token in the settings: the old one ends, under an id of its own.
    let mut replaced = app.seeds.clone();
    replaced.token = seeds(&app.clock).token;
    let replica = app.replica(|options| options.seeds = replaced.clone());
    let store = &replica.server().shared().store;
    let seed = |seeds| agent_runtime::server::seed(store, &app.clock, seeds).unwrap();
    let new = replica.with_token(Some(replaced.token.expose()));
    let listed = new.get("/v1/tokens").expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let second = listed["data"][0]["id"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let old = replica.with_token(Some(app.token()));
    old.get("/v1/tokens").expect_error(401, "unauthenticated");
    // The same again changes nothing.
    assert!(seed(&replaced));
    assert_eq!(new.get("/v1/tokens").expect(200), listed);

    // Revoked, it does not come back with the next start.
    new.delete(&format!("/v1/tokens/{second}")).expect(204);
    assert!(!seed(&replaced));
    new.get("/v1/tokens").expect_error(401, "unauthenticated");
    // The one before does, if the settings name it again.
    assert!(seed(&app.seeds));
    old.get("/v1/tokens").expect(200);
    assert!(!seed(&replaced));
    new.get("/v1/tokens").expect_error(401, "unauthenticated");
}

#[test]
fn a_token_that_a_start_made_ends_the_one_of_its_file_alone() {
    let app = App::start();
    let store = &app.server().shared().store;
    let seed = |seeds: &Seeds| agent_runtime::server::seed(store, &app.clock, seeds).unwrap();
    let made = |before: Option<&Secret>| Seeds {
        token: seeds(&app.clock).token,
        replaces: Replaced::Only(before.cloned()),
        ..app.seeds.clone()
    };
    let status = |token: &Secret| {
        let client = app.with_token(Some(token.expose()));
        client.get("/v1/tokens").status
    };
    // A replica may take a token for a second after another one ended it.
    let ends = |token: &Secret| {
        eventually("the token to end", || (status(token) == 401).then_some(()));
    };
    // Two replicas with a file each, beside a token that the settings gave.
    let (one, other) = (made(None), made(None));
    assert!(seed(&one) && seed(&other));
    let again = made(Some(&one.token));
    assert!(seed(&again));
    ends(&one.token);
    for token in [&again.token, &other.token, &app.seeds.token] {
        assert_eq!(status(token), 200);
    }
    // The start tries again where the database was away.
    assert!(seed(&again));
    assert_eq!(status(&again.token), 200);
    // The file's was another tenant's.
    let elsewhere = Seeds {
        replaces: Replaced::Only(Some(again.token.clone())),
        ..seeds(&app.clock)
    };
    assert!(seed(&elsewhere));
    ends(&again.token);
    assert_eq!(status(&elsewhere.token), 200);
    // A token that somebody put there is theirs.
    let minted = app.post("/v1/tokens", &json!({"name": "mine"})).expect(201);
    let minted = Secret::new(minted["token"].as_str().unwrap());
    assert!(seed(&made(Some(&minted))));
    assert_eq!(status(&minted), 200);
    // One that the settings give is the only one from then on.
    assert!(seed(&app.seeds));
    ends(&other.token);
    for token in [&app.seeds.token, &minted, &elsewhere.token] {
        assert_eq!(status(token), 200);
    }
}

#[test]
fn a_seed_token_of_another_tenant_is_refused_by_name() {
    let app = App::start();
    let mut other = seeds(&app.clock);
    other.token = app.seeds.token.clone();
    let shared = app.server().shared();
    let error = agent_runtime::server::seed(&shared.store, &app.clock, &other).unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.message().contains("SVC_SEED_TOKEN"), "{error}");
}

#[test]
fn every_figure_has_its_row_in_the_documentation() {
    let app = App::start_with_secrets();
    let documented = include_str!("../../docs/metrics.md");
    let text = app.get("/metrics").text;
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(documented.contains(&format!("| `{name}` |")), "{name}");
    }
}
