//! The client of OpenFGA against real servers of the version under test, and against their faults.

use super::harness::openfga::{OpenFga, Relay};
use super::harness::{PATIENCE, Receiver, Reply, eventually, within};
use agent_runtime::authz::fga::{Client, Failure, Options, Pinned, Question, Tuple};
use agent_runtime::authz::model;
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, Outbound};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// An id that nothing has.
const NOTHING: &str = "01ZZZZZZZZZZZZZZZZZZZZZZZZ";

fn client_with(url: &str, timeout: Duration, connections: usize) -> Client {
    let outbound = Outbound::new(outbound::Options::default()).unwrap();
    let options = Options {
        url: url.into(),
        timeout,
        connections,
    };
    Client::new(&outbound, &options).unwrap()
}

fn client(url: &str) -> Client {
    client_with(url, PATIENCE, 8)
}

fn name() -> String {
    format!("tenant-{}", Clock::system().new_id())
}

/// A store of the test's own with the model.
fn store(client: &Client) -> Pinned {
    let store_id = client.create_store(&name()).unwrap();
    let model_id = client.write_model(&store_id, &model::json()).unwrap();
    Pinned { store_id, model_id }
}

fn tuple(user: &str, relation: &str, object: &str) -> Tuple {
    Tuple {
        user: user.into(),
        relation: relation.into(),
        object: object.into(),
    }
}

fn users(count: usize) -> Vec<Tuple> {
    let user = |number| tuple(&format!("user:{number}"), "member", "team:a");
    (0..count).map(user).collect()
}

fn ask<'a>(user: &'a str, relation: &'a str, object: &'a str) -> Question<'a> {
    Question {
        user,
        relation,
        object,
        contextual: &[],
    }
}

fn refused(status: u16, code: &str) -> Failure {
    Failure::Refused {
        status,
        code: code.into(),
    }
}

#[test]
fn questions_are_answered_by_the_model() {
    let client = client(&OpenFga::shared().url());
    let on = store(&client);
    let tuples = [
        tuple("user:boss", "admin", "tenant:t"),
        tuple("tenant:t", "tenant", "org:o"),
        tuple("user:head", "admin", "org:o"),
        tuple("tenant:t", "tenant", "team:a"),
        tuple("user:mate", "member", "team:a"),
        tuple("tenant:t", "tenant", "project:p"),
        tuple("org:o", "org", "project:p"),
        tuple("user:own", "owner", "project:p"),
        tuple("user:see", "viewer", "project:p"),
        tuple("team:a#member", "editor", "project:p"),
    ];
    client.write(&on, &[], &tuples).unwrap();
    let in_project = [tuple("project:p", "project", "run:r")];
    for (user, read, write, admin) in [
        ("user:boss", true, true, true),
        ("user:head", true, true, true),
        ("user:own", true, true, true),
        ("user:mate", true, true, false),
        ("user:see", true, false, false),
        ("user:other", false, false, false),
    ] {
        for (relation, expected) in [
            ("can_read", read),
            ("can_write", write),
            ("can_admin", admin),
        ] {
            let direct = ask(user, relation, "project:p");
            assert_eq!(client.check(&on, &direct), Ok(expected), "{direct:?}");
            let within = Question {
                contextual: &in_project,
                ..ask(user, relation, "run:r")
            };
            assert_eq!(client.check(&on, &within), Ok(expected), "{within:?}");
            // Without its project nobody may do anything to it.
            let alone = ask(user, relation, "run:r");
            assert_eq!(client.check(&on, &alone), Ok(false), "{alone:?}");
        }
    }
    for (question, expected) in [
        (ask("user:boss", "can_admin", "org:o"), true),
        (ask("user:head", "can_write", "org:o"), true),
        (ask("user:own", "can_read", "org:o"), false),
        (ask("user:head", "can_read", "tenant:t"), false),
        (ask("user:mate", "can_read", "team:a"), true),
        (ask("user:mate", "can_write", "team:a"), false),
        (ask("user:boss", "can_admin", "team:a"), true),
    ] {
        assert_eq!(client.check(&on, &question), Ok(expected), "{question:?}");
    }
    client
        .write(&on, &[tuple("user:mate", "member", "team:a")], &[])
        .unwrap();
    assert_eq!(
        client.check(&on, &ask("user:mate", "can_read", "project:p")),
        Ok(false)
    );
}

#[test]
fn more_than_a_page_is_written_and_read_whole() {
    let client = client(&OpenFga::shared().url());
    let on = store(&client);
    let tuples = users(250);
    let other = tuple("user:1", "member", "team:b");
    client.write(&on, &[], &tuples).unwrap();
    client
        .write(&on, &[], std::slice::from_ref(&other))
        .unwrap();
    let all: BTreeSet<Tuple> = tuples.iter().cloned().collect();
    assert_eq!(client.read_object(&on.store_id, "team:a").unwrap(), all);
    assert_eq!(
        client.read_object(&on.store_id, "team:none").unwrap(),
        BTreeSet::new()
    );
    let mut read = Vec::new();
    client
        .read_all(&on.store_id, &mut |tuple| {
            read.push(tuple);
            true
        })
        .unwrap();
    assert_eq!(read.len(), 251);
    assert!(read.contains(&other));
    client.write(&on, &tuples[..120], &[]).unwrap();
    let left: BTreeSet<Tuple> = tuples[120..].iter().cloned().collect();
    assert_eq!(client.read_object(&on.store_id, "team:a").unwrap(), left);
}

#[test]
fn what_is_there_or_gone_already_is_as_wanted() {
    let client = client(&OpenFga::shared().url());
    let on = store(&client);
    let all = users(120);
    client.write(&on, &[], &all[..60]).unwrap();
    client.write(&on, &[], &all).unwrap();
    client.write(&on, &[], &all).unwrap();
    assert_eq!(
        client.read_object(&on.store_id, "team:a").unwrap().len(),
        120
    );
    client.write(&on, &all[..10], &[]).unwrap();
    client.write(&on, &all[..20], &[]).unwrap();
    client.write(&on, &all[..20], &[]).unwrap();
    assert_eq!(
        client.read_object(&on.store_id, "team:a").unwrap().len(),
        100
    );
    // Both at once, the same one twice, and one both ways: wanted.
    let twice = [all[0].clone(), all[0].clone(), all[1].clone()];
    client.write(&on, &all[..30], &twice).unwrap();
    let expected: BTreeSet<Tuple> = all[..2].iter().chain(&all[30..]).cloned().collect();
    assert_eq!(
        client.read_object(&on.store_id, "team:a").unwrap(),
        expected
    );
    client.write(&on, &[], &[]).unwrap();
}

#[test]
fn equal_writes_at_once_all_succeed() {
    let openfga = OpenFga::own();
    let client = client(&openfga.url());
    let on = store(&client);
    let all = users(150);
    for round in 0..6 {
        let remove = round % 2 == 1;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let (client, on, all) = (client.clone(), &on, &all);
                scope.spawn(move || {
                    let (deletes, writes): (&[_], &[_]) =
                        if remove { (all, &[]) } else { (&[], all) };
                    client.write(on, deletes, writes).unwrap();
                });
            }
        });
        let there = client.read_object(&on.store_id, "team:a").unwrap().len();
        assert_eq!(there, if remove { 0 } else { 150 });
    }
}

#[test]
fn writes_against_each_other_end_as_one_of_them_says() {
    let openfga = OpenFga::own();
    let client = client(&openfga.url());
    let on = store(&client);
    let one = [tuple("user:a", "member", "team:a")];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (client, on, one) = (client.clone(), &on, &one);
            scope.spawn(move || {
                for _ in 0..10 {
                    match thread % 2 {
                        0 => client.write(on, &[], one).unwrap(),
                        _ => client.write(on, one, &[]).unwrap(),
                    }
                }
            });
        }
    });
    client.write(&on, &[], &one).unwrap();
    assert_eq!(
        client.check(&on, &ask("user:a", "member", "team:a")),
        Ok(true)
    );
}

#[test]
fn stores_are_found_by_their_exact_name() {
    let client = client(&OpenFga::shared().url());
    let (mine, others) = (name(), name());
    assert_eq!(client.stores_named(&mine).unwrap(), [""; 0]);
    let first = client.create_store(&mine).unwrap();
    client.create_store(&others).unwrap();
    client.create_store(&format!("{mine}-b")).unwrap();
    let second = client.create_store(&mine).unwrap();
    let mut both = vec![first.clone(), second];
    // Within a millisecond no order is said; it is the same for all who ask.
    both.sort();
    assert_eq!(client.stores_named(&mine).unwrap(), both);
    for _ in 0..100 {
        client.create_store(&others).unwrap();
    }
    assert_eq!(client.stores_named(&others).unwrap().len(), 101);
    assert_eq!(client.store_exists(&first), Ok(true));
    assert_eq!(client.store_exists(NOTHING), Ok(false));
    let refusal = client.create_store("tenant:*").unwrap_err();
    assert_eq!(refusal, refused(400, "validation_error"));
}

#[test]
fn unknown_stores_and_models_are_told_apart() {
    let client = client(&OpenFga::shared().url());
    let on = store(&client);
    let change = [tuple("user:a", "member", "team:a")];
    for strange in [NOTHING, "", "../stores", "a", "01zzzzzzzzzzzzzzzzzzzzzzzz"] {
        let no_store = Pinned {
            store_id: strange.into(),
            ..on.clone()
        };
        let no_model = Pinned {
            model_id: strange.into(),
            ..on.clone()
        };
        let question = ask("user:a", "member", "team:a");
        assert_eq!(
            client.check(&no_store, &question),
            Err(Failure::StoreUnknown)
        );
        assert_eq!(
            client.check(&no_model, &question),
            Err(Failure::ModelUnknown)
        );
        assert_eq!(
            client.write(&no_store, &[], &change),
            Err(Failure::StoreUnknown)
        );
        assert_eq!(
            client.write(&no_model, &[], &change),
            Err(Failure::ModelUnknown)
        );
        let read = client.read_all(strange, &mut |_| panic!("nothing is there"));
        assert_eq!(read, Err(Failure::StoreUnknown));
        assert_eq!(client.store_exists(strange), Ok(false));
        assert_eq!(client.model_exists(&no_store), Ok(false));
        assert_eq!(client.model_exists(&no_model), Ok(false));
    }
    assert_eq!(client.model_exists(&on), Ok(true));
    assert_eq!(
        client.read_object(&on.store_id, "team:a").unwrap(),
        BTreeSet::new()
    );
    let bad = json!({ "schema_version": "1.1", "type_definitions": [
        { "type": "doc", "relations": { "a": { "computedUserset": { "relation": "b" } } } },
    ] });
    let refusal = client.write_model(&on.store_id, &bad).unwrap_err();
    assert_eq!(refusal, refused(400, "invalid_authorization_model"));
}

#[test]
fn strange_identifiers_are_refused_and_never_written() {
    let client = client(&OpenFga::shared().url());
    let on = store(&client);
    let long = format!("user:{}", "x".repeat(10_000));
    for (user, relation, object) in [
        ("user:a:b", "member", "team:a"),
        ("user:a b", "member", "team:a"),
        ("user:a#b", "member", "team:a"),
        ("user:", "member", "team:a"),
        ("user", "member", "team:a"),
        (long.as_str(), "member", "team:a"),
        ("user:a", "member", "team:a:b"),
        ("user:a", "member", "team:a#b"),
        ("user:a", "member", "team:*"),
        ("user:a", "member", "team:a b"),
        ("user:a", "owner", "team:a"),
        ("user:a", "member", "thing:a"),
    ] {
        let question = ask(user, relation, object);
        let failure = client.check(&on, &question).unwrap_err();
        assert_eq!(failure, refused(400, "validation_error"), "{question:?}");
        assert!(!failure.is_transient());
        let written = client.write(&on, &[], &[tuple(user, relation, object)]);
        let is_refused = matches!(written, Err(Failure::Refused { status: 400, .. }));
        assert!(is_refused, "{question:?}: {written:?}");
    }
    // The model has no wildcard: everybody is nobody, and cannot be granted anything.
    assert_eq!(
        client.check(&on, &ask("user:*", "member", "team:a")),
        Ok(false)
    );
    let everybody = client.write(&on, &[], &[tuple("user:*", "member", "team:a")]);
    assert!(
        matches!(everybody, Err(Failure::Refused { status: 400, .. })),
        "{everybody:?}"
    );
    let mut none = true;
    client
        .read_all(&on.store_id, &mut |_| {
            none = false;
            true
        })
        .unwrap();
    assert!(none, "a tuple was written");
}

#[test]
fn a_server_that_is_away_is_said_and_found_again() {
    let openfga = OpenFga::own();
    let client = client(&openfga.url());
    let on = store(&client);
    let granted = [tuple("user:a", "member", "team:a")];
    let question = ask("user:a", "can_read", "team:a");
    client.write(&on, &[], &granted).unwrap();
    openfga.kill();
    let failure = client.check(&on, &question).unwrap_err();
    let Failure::Unreachable(why) = &failure else {
        panic!("{failure:?}");
    };
    assert!(why.contains("Connection refused"), "{why}");
    assert_eq!(&failure.to_string(), why);
    assert!(failure.is_transient());
    // Started again between two calls: the kept connection is of no use.
    openfga.start();
    assert_eq!(client.check(&on, &question), Ok(true));
    openfga.kill();
    openfga.start();
    client.write(&on, &granted, &[]).unwrap();
    assert_eq!(client.check(&on, &question), Ok(false));
}

#[test]
fn a_server_that_forgot_everything_has_no_such_store() {
    let openfga = OpenFga::own_in_memory();
    let client = client(&openfga.url());
    let on = store(&client);
    openfga.kill();
    openfga.start();
    let question = ask("user:a", "can_read", "team:a");
    assert_eq!(client.check(&on, &question), Err(Failure::StoreUnknown));
    assert_eq!(client.store_exists(&on.store_id), Ok(false));
}

#[test]
fn a_store_lost_under_a_running_server_is_seen_by_its_existence() {
    let openfga = OpenFga::own();
    let client = client(&openfga.url());
    let on = store(&client);
    let granted = tuple("user:a", "member", "team:a");
    let question = ask("user:a", "can_read", "team:a");
    client.write(&on, &[], &[granted]).unwrap();
    assert_eq!(client.check(&on, &question), Ok(true));
    let lose = "truncate store, authorization_model, tuple, changelog";
    openfga.database().client().batch_execute(lose).unwrap();
    // It remembers the model for days, so that this is no failure: nobody may do anything.
    assert_eq!(client.check(&on, &question), Ok(false));
    assert_eq!(client.store_exists(&on.store_id), Ok(false));
    assert_eq!(client.model_exists(&on), Ok(false));
    let read = client.read_all(&on.store_id, &mut |_| true);
    assert_eq!(read, Err(Failure::StoreUnknown));
    openfga.kill();
    openfga.start();
    assert_eq!(client.check(&on, &question), Err(Failure::StoreUnknown));
}

#[test]
fn a_deleted_store_goes_on_as_a_ghost_that_only_its_existence_gives_away() {
    for openfga in [OpenFga::own(), OpenFga::own_in_memory()] {
        let client = client(&openfga.url());
        let on = store(&client);
        let granted = tuple("user:a", "member", "team:a");
        client
            .write(&on, &[], std::slice::from_ref(&granted))
            .unwrap();
        client.delete_store(&on.store_id).unwrap();
        let ask = |user| client.check(&on, &ask(user, "can_read", "team:a"));
        assert_eq!((ask("user:a"), ask("user:b")), (Ok(true), Ok(false)));
        let told = client.read_object(&on.store_id, "team:a").unwrap();
        assert_eq!(told, BTreeSet::from([granted]));
        let more = tuple("user:b", "member", "team:a");
        client.write(&on, &[], &[more]).unwrap();
        assert_eq!(ask("user:b"), Ok(true));
        assert_eq!(client.model_exists(&on), Ok(true));
        assert_eq!(client.store_exists(&on.store_id), Ok(false));
    }
}

#[test]
fn a_frozen_server_costs_the_deadline_and_no_more() {
    let openfga = OpenFga::own_in_memory();
    let patient = client(&openfga.url());
    let hasty = client_with(&openfga.url(), Duration::from_millis(300), 1);
    let on = store(&patient);
    let question = ask("user:a", "can_read", "team:a");
    answers_soon(&hasty, &on, &question);
    openfga.pause();
    within(Duration::from_secs(3), || {
        let began = Instant::now();
        let failures: Vec<Failure> = std::thread::scope(|scope| {
            let ask = || hasty.check(&on, &question).unwrap_err();
            let asking = [scope.spawn(ask), scope.spawn(ask)];
            asking.map(|one| one.join().unwrap()).into()
        });
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300), "{took:?}");
        // One had the connection, the other waited for it.
        let silent = |failure: &&Failure| matches!(failure, Failure::Silent(_));
        let waited = failures.iter().find(silent).expect("one was sent");
        assert!(waited.to_string().contains("took too long"), "{waited}");
        let others: Vec<&Failure> = failures.iter().filter(|f| !silent(f)).collect();
        assert!(
            others.is_empty() || others == [&Failure::Busy],
            "{others:?}"
        );
        took
    });
    openfga.go_on();
    assert_eq!(patient.check(&on, &question), Ok(false));
    answers_soon(&hasty, &on, &question);
}

/// Denies, for once within the client's short deadline.
#[track_caller]
fn answers_soon(hasty: &Client, on: &Pinned, question: &Question<'_>) {
    let allowed = eventually("an answer in time", || hasty.check(on, question).ok());
    assert!(!allowed);
}

#[test]
fn slow_answers_and_cut_connections_pass_with_the_relay() {
    let openfga = OpenFga::shared();
    let relay = Relay::before(openfga.address());
    let on = store(&client(&openfga.url()));
    let hasty = client_with(&relay.url(), Duration::from_millis(500), 2);
    let question = ask("user:a", "can_read", "team:a");
    answers_soon(&hasty, &on, &question);
    relay.slow(PATIENCE);
    let failure = hasty.check(&on, &question).unwrap_err();
    assert!(failure.to_string().contains("took too long"), "{failure}");
    relay.heal();
    let patient = client(&relay.url());
    assert_eq!(patient.check(&on, &question), Ok(false));
    relay.cut_once();
    assert_eq!(patient.check(&on, &question), Ok(false));
    relay.cut();
    let failure = patient.check(&on, &question).unwrap_err();
    assert!(
        failure.to_string().contains("broke before an answer came"),
        "{failure}"
    );
    relay.heal();
    assert_eq!(patient.check(&on, &question), Ok(false));
}

/// A server that answers one request of each connection and closes it at the second; the first
/// `broken` connections it closes at the first. Gives how many requests came.
fn closing_server(broken: usize, requests: usize) -> (String, std::thread::JoinHandle<usize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let mut came = 0;
        for index in 0.. {
            let mut reader = BufReader::new(listener.accept().unwrap().0);
            let mut answered = index < broken;
            while read_request(&mut reader) {
                came += 1;
                if answered {
                    break;
                }
                answered = true;
                let body = r#"{"allowed":true,"id":"01ZZZZZZZZZZZZZZZZZZZZZZZY"}"#;
                let length = body.len();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
                if came == requests {
                    break;
                }
            }
            if came >= requests {
                return came;
            }
        }
        came
    });
    (url, serving)
}

fn read_request(reader: &mut BufReader<std::net::TcpStream>) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            return std::io::Read::read_exact(reader, &mut vec![0; length]).is_ok();
        }
    }
}

#[test]
fn a_broken_connection_is_tried_once_more_and_never_twice() {
    let on = Pinned {
        store_id: NOTHING.into(),
        model_id: NOTHING.into(),
    };
    let question = ask("user:a", "can_read", "team:a");
    // The second question meets a connection that closes on it, and is asked again on a new one.
    let (url, serving) = closing_server(0, 3);
    let asking = client(&url);
    assert_eq!(asking.check(&on, &question), Ok(true));
    assert_eq!(asking.check(&on, &question), Ok(true));
    assert_eq!(serving.join().unwrap(), 3);
    // Two that break are an end.
    let (url, serving) = closing_server(2, 2);
    let failure = client(&url).check(&on, &question).unwrap_err();
    assert!(matches!(failure, Failure::Unreachable(_)), "{failure:?}");
    assert_eq!(serving.join().unwrap(), 2);
    // What would make a second store is not asked again.
    let (url, serving) = closing_server(1, 1);
    let failure = client(&url).create_store("tenant-a").unwrap_err();
    assert!(matches!(failure, Failure::Unreachable(_)), "{failure:?}");
    assert_eq!(serving.join().unwrap(), 1);
}

#[test]
fn no_request_carries_credentials() {
    let receiver = Receiver::start(|_, _| Reply::Status(500, Vec::new(), "{}".to_owned()));
    let client = client(&format!("http://{}", receiver.address()));
    let on = Pinned {
        store_id: NOTHING.to_owned(),
        model_id: NOTHING.to_owned(),
    };
    let question = ask("user:a", "can_read", "project:p");
    assert!(client.check(&on, &question).is_err());
    assert!(client.create_store("tenant-a").is_err());
    assert!(client.write(&on, &[], &users(1)).is_err());
    let requests = receiver.received();
    assert!(!requests.is_empty());
    for one in requests {
        for name in ["authorization", "proxy-authorization", "cookie"] {
            let sent = one.headers.iter().any(|(header, _)| header == name);
            assert!(!sent, "{one:?}");
        }
    }
}

#[test]
fn what_is_not_openfga_is_said() {
    let (url, _serving) = closing_server(0, 1);
    let failure = client(&url).stores_named("tenant-a").unwrap_err();
    assert!(matches!(failure, Failure::Answer(_)), "{failure:?}");
    let outbound = Outbound::new(outbound::Options::default()).unwrap();
    for url in ["openfga:8080", "http://a/?b=c", "http://user@a/", ""] {
        let options = Options {
            url: url.into(),
            timeout: PATIENCE,
            connections: 1,
        };
        assert!(Client::new(&outbound, &options).is_err(), "{url}");
    }
}

#[test]
fn the_newer_version_goes_on_with_what_the_older_one_kept() {
    let openfga = OpenFga::own_at("1.9.0");
    let client = client(&openfga.url());
    let (on, twin) = (store(&client), name());
    let mut twins: Vec<String> = (0..3)
        .map(|_| client.create_store(&twin).unwrap())
        .collect();
    twins.sort();
    let all = users(120);
    client.write(&on, &[], &all).unwrap();
    assert_eq!(client.stores_named(&twin).unwrap(), twins);
    openfga.change_version("1.22.1");
    assert_eq!(client.stores_named(&twin).unwrap(), twins);
    assert_eq!(client.model_exists(&on), Ok(true));
    assert_eq!(
        client.check(&on, &ask("user:7", "can_read", "team:a")),
        Ok(true)
    );
    assert_eq!(
        client.read_object(&on.store_id, "team:a").unwrap().len(),
        120
    );
    client.write(&on, &all[..7], &all).unwrap();
    client.write(&on, &all[..8], &[]).unwrap();
    assert_eq!(
        client.check(&on, &ask("user:7", "can_read", "team:a")),
        Ok(false)
    );
    assert_eq!(
        client.read_object(&on.store_id, "team:a").unwrap().len(),
        112
    );
}
