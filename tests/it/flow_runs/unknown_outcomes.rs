//! Calls that somebody took and nobody answered: they are made again with the key that they had, and a flow sees that their
//! outcome is unknown.

use super::retries::retry;
use super::world::Flows;
use crate::runtime::world::{Process, World};
use agent_runtime::error::Code;
use agent_runtime::store::Sql;
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// What a receiver does with a request that it has taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Does {
    /// It keeps the connection, and says nothing.
    Holds,
    /// It closes the connection.
    Resets,
    /// It answers with a status.
    Answers(u16),
}

/// A server that takes every request whole and does what it is told to, afterwards answers with 200.
pub(super) struct Receiver {
    address: SocketAddr,
    does: Arc<Mutex<VecDeque<Does>>>,
    /// The idempotency keys of what it has taken, and the bodies.
    taken: Arc<Mutex<Vec<(String, String)>>>,
}

impl Receiver {
    pub(super) fn start(does: &[Does]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let this = Self {
            address: listener.local_addr().unwrap(),
            does: Arc::new(Mutex::new(does.iter().copied().collect())),
            taken: Arc::default(),
        };
        let (does, taken) = (this.does.clone(), this.taken.clone());
        let take = move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let Some(asked) = read(&stream.unwrap(), &mut held) else {
                    return;
                };
                taken.lock().unwrap().push(asked);
                let Some(stream) = held.pop() else { return };
                let next = does.lock().unwrap().pop_front();
                match next.unwrap_or(Does::Answers(200)) {
                    Does::Holds => held.push(stream),
                    Does::Resets => drop(stream),
                    Does::Answers(status) => answer(stream, status),
                }
            }
        };
        std::thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(take)
            .unwrap();
        this
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/pay", self.address)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let taken = self.taken.lock().unwrap();
        taken.iter().map(|(key, _)| key.clone()).collect()
    }
}

impl Drop for Receiver {
    /// A connection without a request ends its thread.
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
    }
}

/// The key and the body of a request, whose connection is put last. None: there is no request.
fn read(stream: &TcpStream, held: &mut Vec<TcpStream>) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end();
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("idempotency-key") => {
                value.clone_into(&mut key);
            }
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap();
            }
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    held.push(stream.try_clone().unwrap());
    Some((key, String::from_utf8(body).unwrap()))
}

fn answer(mut stream: TcpStream, status: u16) {
    let head = format!("HTTP/1.1 {status} Told\r\nconnection: close\r\ncontent-length: 4\r\n\r\n");
    let _ = stream.write_all(format!("{head}done").as_bytes());
}

/// A world whose tools are the receiver, and answer within 1.5 s or not at all: time enough for a busy machine to ask.
fn world_of(receiver: &Receiver) -> World {
    let world = World::new();
    let url = receiver.url();
    world.batch(&format!(
        "update tools set url = '{url}', timeout_ms = 1500"
    ));
    world
}

fn tool(name: &str) -> Value {
    json!({"call": "tool", "with": {"tool": name, "arguments": {"city": "Rome"}}})
}

/// A request that is cut off with the time of its task.
fn http(receiver: &Receiver, method: &str) -> Value {
    let with = json!({"method": method, "endpoint": receiver.url(), "body": {"n": 1}});
    json!({"call": "http", "with": with, "timeout": {"after": {"milliseconds": 1500}}})
}

/// Tries tasks again whatever their error is.
fn tried_again(tasks: Value) -> Value {
    let retry = json!({"delay": {"milliseconds": 1}, "limit": {"attempt": {"count": 3}}});
    json!([{"outer": {"try": tasks, "catch": {"retry": retry}}}])
}

#[track_caller]
fn completes(world: &World, process: &Process, run_id: Uuid) {
    let run = world.finished(process, run_id);
    let said = &run.failure_message;
    assert_eq!(run.status, Status::Completed, "{said:?}");
}

/// The keys of the calls of a flow that tries its call again.
fn keys_of_tries(does: &[Does], call: impl FnOnce(&Receiver) -> Value) -> Vec<String> {
    let receiver = Receiver::start(does);
    let world = world_of(&receiver);
    world.flow("pays", tried_again(json!([{"pay": call(&receiver)}])));
    let process = world.process(1, true);
    let run_id = world.start(&process, "pays", json!({}));
    completes(&world, &process, run_id);
    receiver.keys()
}

#[test]
fn a_flow_that_tries_a_call_again_whose_outcome_is_unknown_makes_it_with_its_key() {
    for lost in [Does::Holds, Does::Resets] {
        let of_tool = keys_of_tries(&[lost], |_| tool("pay"));
        let of_http = keys_of_tries(&[lost], |receiver| http(receiver, "post"));
        for keys in [of_tool, of_http] {
            assert_eq!(keys.len(), 2, "{lost:?}");
            assert_eq!(keys[0], keys[1], "{lost:?}");
        }
    }
}

#[test]
fn a_call_that_was_answered_with_an_error_is_another_call_when_it_is_tried_again() {
    let busy = Does::Answers(503);
    let of_tool = keys_of_tries(&[busy], |_| tool("pay"));
    let of_http = keys_of_tries(&[busy], |receiver| http(receiver, "post"));
    for keys in [of_tool, of_http] {
        assert_eq!(keys.len(), 2);
        assert_ne!(keys[0], keys[1]);
    }
    // The answer to the second is about the first, too.
    let keys = keys_of_tries(&[Does::Resets, busy], |_| tool("pay"));
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}

#[test]
fn an_idempotent_tool_keeps_its_key_beyond_its_last_try() {
    let keys = keys_of_tries(&[Does::Resets; 6], |_| tool("weather"));
    assert!(keys.len() > 6, "{keys:?}");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn a_call_with_other_arguments_is_another_call() {
    let receiver = Receiver::start(&[Does::Resets]);
    let world = world_of(&receiver);
    let mut pay = tool("pay");
    pay["with"]["arguments"]["city"] = json!("${ $context.n | tostring }");
    let count = json!({"set": {}, "export": {"as": "{ n: (($context.n // 0) + 1) }"}});
    world.flow("pays", tried_again(json!([{"count": count}, {"pay": pay}])));
    let process = world.process(1, true);
    let run_id = world.start(&process, "pays", json!({}));
    completes(&world, &process, run_id);
    let keys = receiver.keys();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn in_a_loop_the_call_keeps_its_key_that_nobody_answered() {
    let done = Does::Answers(200);
    let receiver = Receiver::start(&[done, Does::Resets]);
    let world = world_of(&receiver);
    let mut pay = tool("pay");
    pay["with"]["arguments"]["city"] = json!("${ $x }");
    let each = json!({"for": {"each": "x", "in": "[\"a\", \"b\"]"}, "do": [{"pay": pay}]});
    world.flow("pays", tried_again(json!([{"each": each}])));
    let process = world.process(1, true);
    let run_id = world.start(&process, "pays", json!({}));
    completes(&world, &process, run_id);
    let keys = receiver.keys();
    assert_eq!(keys.len(), 4);
    assert_ne!(keys[0], keys[2], "it was answered");
    assert_eq!(keys[1], keys[3]);
}

/// As docs/flow-runs.md says: the runs of the second try are others, and a key follows from the run that calls.
#[test]
fn a_call_of_a_branch_keeps_its_key_by_a_try_inside_it_or_by_a_key_of_its_own() {
    let fork = |inner: Value| json!([{"both": {"fork": {"branches": [{"one": inner}]}}}]);
    let keyed = || {
        let mut pay = tool("pay");
        pay["with"]["idempotencyKey"] = json!("${ \"order-\\(.order)\" }");
        pay
    };
    let inside = json!({"do": [{"tried": tried_again(json!([{"pay": tool("pay")}]))[0]["outer"]}]});
    for (tasks, is_same) in [
        (tried_again(fork(tool("pay"))), false),
        (tried_again(fork(keyed())), true),
        (fork(inside), true),
    ] {
        let receiver = Receiver::start(&[Does::Resets]);
        let world = world_of(&receiver);
        world.flow("pays", tasks.clone());
        let process = world.process(2, true);
        let run_id = world.start(&process, "pays", json!({"order": 7}));
        completes(&world, &process, run_id);
        let keys = receiver.keys();
        assert_eq!(keys.len(), 2, "{tasks}");
        assert_eq!(keys[0] == keys[1], is_same, "{tasks}");
    }
}

#[test]
fn a_flow_sees_whether_the_outcome_is_unknown() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let receiver = Receiver::start(&[]);
    let world = world_of(&receiver);
    let mut nobody = http(&receiver, "post");
    nobody["with"]["endpoint"] = json!(format!("http://{closed}/"));
    let mut short = tool("pay");
    short["timeout"] = json!({"after": {"milliseconds": 1000}});
    let seen = json!({"set": "${ [$error.status, $error.outcome] }"});
    for (name, call) in [
        ("tool", tool("pay")),
        ("short", short),
        ("post", http(&receiver, "post")),
        ("get", http(&receiver, "get")),
        ("nobody", nobody),
    ] {
        let tasks = json!([{"outer": {"try": [{"call": call}], "catch": {"do": [{"see": seen}]}}}]);
        world.flow(name, tasks);
    }
    let process = world.process(1, true);
    for (name, does, error) in [
        ("tool", Does::Holds, json!([503, "unknown"])),
        ("tool", Does::Resets, json!([503, "unknown"])),
        ("tool", Does::Answers(503), json!([503, null])),
        ("short", Does::Holds, json!([408, "unknown"])),
        ("post", Does::Holds, json!([408, "unknown"])),
        ("post", Does::Resets, json!([503, "unknown"])),
        ("post", Does::Answers(503), json!([503, null])),
        ("get", Does::Holds, json!([408, null])),
        ("nobody", Does::Answers(200), json!([503, null])),
    ] {
        receiver.does.lock().unwrap().clear();
        receiver.does.lock().unwrap().push_back(does);
        let answer = world.answers(&process, name, json!({}));
        assert_eq!(answer, error, "{name}, {does:?}");
    }
}

/// The events of a run that say that something failed.
fn failures(world: &World, run_id: Uuid) -> Vec<Value> {
    let failed = "select data from run_events where run_id = $1 and kind in ('step.failed', 'run.failed') order by seq";
    world.read(|session| {
        let rows = session.query(failed, &[&run_id])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    })
}

/// Whoever reads that the call failed pays again.
#[test]
fn a_call_that_may_have_taken_effect_is_not_said_to_have_failed() {
    let receiver = Receiver::start(&[]);
    let world = world_of(&receiver);
    let mut short = tool("pay");
    short["timeout"] = json!({"after": {"milliseconds": 1000}});
    let retried = tried_again(json!([{"pay": tool("pay")}]));
    for (name, call) in [
        ("tool", tool("pay")),
        ("short", short),
        ("post", http(&receiver, "post")),
    ] {
        world.flow(name, json!([{ "pay": call }]));
    }
    world.flow("tries", retried);
    let process = world.process(1, true);
    for (name, does) in [
        ("tool", vec![Does::Resets]),
        ("tool", vec![Does::Holds]),
        ("short", vec![Does::Holds]),
        ("post", vec![Does::Resets]),
        ("post", vec![Does::Holds]),
        ("tries", vec![Does::Resets; 3]),
    ] {
        receiver.does.lock().unwrap().extend(does);
        let run = world.ends(&process, name, json!({}));
        let said = run.failure_message.unwrap();
        assert!(
            said.contains("Nobody knows whether the call took effect"),
            "{name}: {said}"
        );
        let summary = run.failure_summary.unwrap();
        assert!(
            summary.contains("The outcome of the call is unknown"),
            "{name}: {summary}"
        );
        let events = failures(&world, run.run_id);
        for event in &events {
            let text = event.to_string();
            assert!(!text.contains("could not be called"), "{name}: {text}");
            assert!(
                text.contains("Nobody knows whether the call took effect"),
                "{name}: {text}"
            );
        }
        let outcomes: Vec<&Value> = events
            .iter()
            .filter_map(|event| event.get("outcome"))
            .collect();
        assert!(
            !outcomes.is_empty() && outcomes.iter().all(|one| **one == json!("unknown")),
            "{name}"
        );
    }
    // One that was not sent could not be called.
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    world.batch(&format!("update tools set url = 'http://{closed}/'"));
    let run = world.ends(&process, "tool", json!({}));
    let said = run.failure_message.unwrap();
    assert!(
        said.contains("The tool could not be called") && !said.contains("Nobody"),
        "{said}"
    );
    assert_eq!(
        run.failure_summary.unwrap(),
        "The task /do/0/pay failed: The call failed (status 503)."
    );
}

/// Takes up a run whose call came to this, which completes. The keys of its calls, and whether the call had to be allowed.
fn keys_of_retry(does: &[Does], call: impl FnOnce(&Receiver) -> Value) -> (Vec<String>, bool) {
    let receiver = Receiver::start(does);
    let world = world_of(&receiver);
    world.flow("pays", json!([{"pay": call(&receiver)}]));
    let process = world.process(1, true);
    let run = world.ends(&process, "pays", json!({}));
    assert_eq!(run.status, Status::Failed);
    let (again, is_asked) = match retry(&world, &process, run.run_id, false) {
        Ok(again) => (again, false),
        Err(refused) => {
            assert_eq!(refused.code(), Code::OutcomeUnknown, "{refused:?}");
            assert_eq!(receiver.keys().len(), 1, "nothing is sent meanwhile");
            (retry(&world, &process, run.run_id, true).unwrap(), true)
        }
    };
    completes(&world, &process, again);
    (receiver.keys(), is_asked)
}

#[test]
fn a_retry_of_the_run_makes_a_call_whose_outcome_is_unknown_only_if_it_is_told_to() {
    for lost in [Does::Holds, Does::Resets] {
        let of_tool = keys_of_retry(&[lost], |_| tool("pay"));
        let of_http = keys_of_retry(&[lost], |receiver| http(receiver, "post"));
        for (keys, is_asked) in [of_tool, of_http] {
            assert!(is_asked, "{lost:?}");
            assert_eq!(keys.len(), 2, "{lost:?}");
            assert_eq!(keys[0], keys[1], "{lost:?}");
        }
    }
    let of_tool = keys_of_retry(&[Does::Answers(503)], |_| tool("pay"));
    let of_http = keys_of_retry(&[Does::Answers(503)], |receiver| http(receiver, "post"));
    for (keys, is_asked) in [of_tool, of_http] {
        assert!(!is_asked, "it was answered");
        assert_ne!(keys[0], keys[1]);
    }
}

#[test]
fn a_retry_of_the_run_repeats_what_may_be_made_twice_with_its_key() {
    let (keys, is_asked) = keys_of_retry(&[Does::Resets; 3], |_| tool("weather"));
    assert!(!is_asked);
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    let put = |receiver: &Receiver| {
        let mut put = http(receiver, "put");
        put["timeout"] = json!({"after": "PT1M"});
        put
    };
    let (keys, is_asked) = keys_of_retry(&[Does::Resets; 3], put);
    assert!(!is_asked);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

/// What an earlier run left unknown stays so until somebody answers.
#[test]
fn a_call_that_stays_unanswered_is_asked_about_each_time() {
    let receiver = Receiver::start(&[Does::Resets]);
    let world = world_of(&receiver);
    world.flow("pays", json!([{"pay": tool("pay")}]));
    let process = world.process(1, true);
    let first = world.ends(&process, "pays", json!({})).run_id;
    // Nobody listens, so this one is not made.
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    world.batch(&format!("update tools set url = 'http://{closed}/'"));
    let second = retry(&world, &process, first, true).unwrap();
    assert_eq!(world.finished(&process, second).status, Status::Failed);
    world.batch(&format!("update tools set url = '{}'", receiver.url()));
    let refused = retry(&world, &process, second, false).unwrap_err();
    assert_eq!(refused.code(), Code::OutcomeUnknown, "{refused:?}");
    let third = retry(&world, &process, second, true).unwrap();
    completes(&world, &process, third);
    let keys = receiver.keys();
    assert_eq!(keys, vec![format!("{first}-1"); 2]);
}
