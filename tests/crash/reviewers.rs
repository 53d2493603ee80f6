//! `kill -9` of servers that hold reviewers' streams, while approvals are opened and decided. Each reader comes back with the id
//! of its last event, to whichever server stands, and is told of all that happened, in order and once.

use crate::approvals::asking;
use crate::follow::Frames;
use crate::random::Random;
use crate::server::{Client, ServerConfig};
use crate::wait::moment;
use crate::world::{Agents, Pace, config, id_of, shared_database};
use crate::{eventually, report};
use postgres::NoTls;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use uuid::Uuid;

/// How often a server is killed.
const KILLS: usize = 6;
/// Runs that are started before each kill, and again while the server is away. Each asks once.
const RUNS: usize = 2;
/// Readers of each server.
const READERS: usize = 3;

/// What a reader received: positions in the log of approvals, with the approvals.
#[derive(Default)]
struct Received {
    begins: Option<i64>,
    events: Vec<(i64, Uuid)>,
    connections: usize,
}

/// A reviewer's stream that is opened again whenever it breaks.
struct Reader {
    received: Arc<Mutex<Received>>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(client: Client) -> Self {
        let received = Arc::<Mutex<Received>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (written, ends) = (Arc::clone(&received), Arc::clone(&is_over));
        let thread = Builder::new().name("reader".to_owned());
        let thread = thread
            .spawn(move || {
                while !ends.load(Ordering::Acquire) {
                    // A connection that breaks is the point of it all.
                    let _ = read(&client, &written);
                    moment();
                }
            })
            .unwrap();
        Self {
            received,
            is_over,
            thread,
        }
    }

    fn look<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.received.lock().unwrap())
    }
}

/// One connection, to its end.
fn read(client: &Client, received: &Mutex<Received>) -> std::io::Result<()> {
    let last = {
        let received = received.lock().unwrap();
        received
            .events
            .last()
            .map(|(id, _)| *id)
            .or(received.begins)
    };
    let Some(mut frames) = Frames::open(client, "/v1/approvals/stream", last)? else {
        return Ok(());
    };
    received.lock().unwrap().connections += 1;
    loop {
        let (id, kind, data) = frames.next()?;
        let mut received = received.lock().unwrap();
        match (id, kind.as_str()) {
            (Some(id), "stream.start") if last.is_none() => received.begins = Some(id),
            (Some(id), _) if kind.starts_with("approval.") => {
                let approval = data["data"]["approvalId"].as_str().unwrap();
                received.events.push((id, approval.parse().unwrap()));
            }
            (None, "stream.end") => return Ok(()),
            other => panic!("after {last:?}: {other:?} {data}"),
        }
    }
}

/// The approvals of new runs, once each of these asks.
fn ask(client: &Client, agent_id: Uuid) -> Vec<Value> {
    let turn = json!({"agentId": agent_id, "message": "Please charge the item lamp"});
    let runs = (0..RUNS).map(|_| id_of(&client.made("/v1/runs", &turn, 202)["run"]));
    let runs: Vec<Uuid> = runs.collect();
    let asked = runs.iter().map(|run_id| {
        eventually("the approval", || {
            let waiting = client.get(&format!("/v1/approvals?runId={run_id}")).ok()?;
            waiting.body["data"].as_array()?.first().cloned()
        })
    });
    asked.collect()
}

fn decide(client: &Client, approval: &Value, decision: &str) {
    let path = format!("/v1/approvals/{}/decide", approval["id"].as_str().unwrap());
    client.made(&path, &json!({"decision": decision}), 200);
}

/// The log of approvals after a position.
fn logged(config: &ServerConfig, after: i64) -> Vec<(i64, Uuid)> {
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let all =
        "select position, approval_id from approval_log where position > $1 order by position";
    let rows = sql.query(all, &[&after]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn reviewers_whose_server_is_killed_come_back_and_miss_nothing() {
    let first = config(shared_database());
    let configs = [first.replica(), first];
    let mut servers: Vec<_> = configs.iter().rev().map(|one| Some(one.start())).collect();
    servers.reverse();
    let agents = Agents::make(&configs[0].client(), Pace::default());
    let agent_id = asking(&configs[0].client(), &agents);
    let readers: Vec<Reader> = configs
        .iter()
        .flat_map(|one| (0..READERS).map(|_| Reader::start(one.client())))
        .collect();
    for reader in &readers {
        eventually("the stream to begin", || {
            reader.look(|received| received.begins)
        });
    }
    let mut random = Random::seeded("reviewers");
    for kill in 0..KILLS {
        let (dies, stays) = (kill % 2, (kill + 1) % 2);
        let client = configs[stays].client();
        let early = ask(&client, agent_id);
        let deciding = {
            let (client, early) = (client.clone(), early);
            let thread = Builder::new().name("reviewer".to_owned());
            let decides = move || {
                for approval in &early {
                    decide(&client, approval, "reject");
                }
            };
            thread.spawn(decides).unwrap()
        };
        random.let_pass(0, 20);
        servers[dies].take().unwrap().kill();
        deciding.join().unwrap();
        for approval in ask(&client, agent_id) {
            decide(&client, &approval, "approve");
        }
        servers[dies] = Some(configs[dies].start());
    }
    for reader in &readers {
        let begins = reader.look(|received| received.begins).unwrap();
        let expected = logged(&configs[0], begins);
        assert!(expected.len() >= KILLS * RUNS * 4, "{}", expected.len());
        eventually("all to be received", || {
            reader
                .look(|received| received.events.len() >= expected.len())
                .then_some(())
        });
        assert_eq!(reader.look(|received| received.events.clone()), expected);
        reader.is_over.store(true, Ordering::Release);
    }
    let connections = readers
        .iter()
        .map(|one| one.look(|received| received.connections));
    let connections: usize = connections.sum();
    assert!(
        connections >= readers.len() * (1 + KILLS / 2),
        "each kill broke streams: {connections}"
    );
    let events = logged(&configs[0], 0).len();
    for server in servers.into_iter().flatten() {
        server.kill();
    }
    for reader in readers {
        reader.thread.join().unwrap();
    }
    report(
        "reviewers",
        &format!("kills={KILLS} connections={connections} events={events}"),
    );
}
