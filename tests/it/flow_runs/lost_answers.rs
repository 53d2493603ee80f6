//! A commit that PostgreSQL has written, and whose answer its client never gets.

use super::children::decide;
use super::world::Flows;
use crate::runtime::world::{World, options};
use agent_runtime::store::Store;
use agent_runtime::store::runs::{Status, WaitingFor};
use postgres::config::Host;
use serde_json::json;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

/// What a client sends to have its transaction committed.
const COMMIT: &[u8] = b"COMMIT\0";

/// PostgreSQL's socket behind a relay. The first commit of a transaction in which this text was sent is written, and the
/// connection is closed in place of its answer.
struct Relay {
    directory: tempfile::TempDir,
    url: String,
    /// It has happened.
    is_done: Arc<AtomicBool>,
}

impl Relay {
    fn start(url: &str, text: &'static str) -> Self {
        let config: postgres::Config = url.parse().unwrap();
        let Host::Unix(real) = &config.get_hosts()[0] else {
            panic!("{url} names no socket");
        };
        let directory = tempfile::tempdir().unwrap();
        let name = format!(".s.PGSQL.{}", config.get_ports()[0]);
        let listener = UnixListener::bind(directory.path().join(&name)).unwrap();
        let encoded = |path: &str| path.replace('/', "%2F");
        let [real_text, own] =
            [real.as_path(), directory.path()].map(|path| path.to_str().unwrap());
        let relayed = url.replace(&encoded(real_text), &encoded(own));
        assert_ne!(relayed, url);
        let (real, is_done) = (real.join(name), Arc::new(AtomicBool::new(false)));
        let this = Self {
            directory,
            url: relayed,
            is_done: is_done.clone(),
        };
        let accept = move || {
            for client in listener.incoming() {
                connect(&real, client.unwrap(), text, &is_done);
            }
        };
        named("relay", accept);
        this
    }
}

fn named(name: &str, work: impl FnOnce() + Send + 'static) {
    Builder::new().name(name.to_owned()).spawn(work).unwrap();
}

/// Passes everything on in both directions, each on a thread that ends with the connection.
fn connect(real: &PathBuf, client: UnixStream, text: &'static str, is_done: &Arc<AtomicBool>) {
    let server = UnixStream::connect(real).unwrap();
    let loses = Arc::new(AtomicBool::new(false));
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (is_done, will_lose) = (is_done.clone(), loses.clone());
    named("relay-out", move || {
        let mut is_meant = false;
        pass(from, to, |said| {
            let holds = |wanted: &[u8]| said.windows(wanted.len()).any(|part| part == wanted);
            is_meant |= holds(text.as_bytes());
            if holds(COMMIT) && is_meant && !is_done.swap(true, Ordering::SeqCst) {
                will_lose.store(true, Ordering::SeqCst);
            }
            true
        });
    });
    // The answer is here once the commit is written.
    named("relay-back", move || {
        pass(server, client, |_| !loses.load(Ordering::SeqCst));
    });
}

/// Until one side closes, or `goes_on` says no of what was read.
fn pass(mut from: UnixStream, mut to: UnixStream, mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !goes_on(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    for side in [from, to] {
        let _ = side.shutdown(Shutdown::Both);
    }
}

#[test]
fn a_call_whose_row_was_written_is_made_though_the_claim_that_wrote_it_was_not_confirmed() {
    let mut world = World::new();
    let pay = json!({"call": "tool", "with": {"tool": "pay", "arguments": {"city": "Bern"}}});
    let ask = json!({"call": "approval", "with": {"title": "Pay", "expiresAfter": "P2D"}});
    world.flow("asks", json!([{"ask": ask}, {"pay": pay}]));
    let relay = Relay::start(&world.database.url(), "/do/1/pay");
    let direct = world.store.clone();
    world.store = Store::open(&options(&relay.url), world.log.clone()).unwrap();
    let process = world.process(1, true);
    world.store = direct;
    let run_id = world.start(&process, "asks", json!({}));
    world.until(&process, run_id, |run| {
        run.waiting_for == Some(WaitingFor::Approval)
    });
    decide(&world, run_id, true);
    process.runtime.wake();
    let run = world.finished(&process, run_id);
    assert!(relay.is_done.load(Ordering::SeqCst), "no answer was lost");
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.tool.asked().len(), 1);
    drop(process);
    drop(relay.directory);
}
