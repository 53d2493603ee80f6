//! Two replicas that are restarted one after the other under load, as an upgrade does it.

use crate::server::Client;
use crate::wait::moment;
use crate::world::{Agents, Pace, config, id_of, shared_database};
use crate::{eventually, report};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Duration;
use uuid::Uuid;

/// Restarts of each replica.
const ROUNDS: usize = 2;
const CLIENTS: usize = 4;
/// What one client met.
#[derive(Default)]
struct Met {
    requests: usize,
    /// Of them, those that had to be made again.
    repeated: usize,
    /// What came back when it was made again, where that was no answer.
    failed: Vec<String>,
    runs: Vec<Uuid>,
}

/// A client of both replicas that makes again, once and at the other one, what met nobody or a 503.
struct Patient<'a> {
    replicas: &'a [Client; 2],
    next: usize,
    met: Met,
}

impl Patient<'_> {
    fn send(&mut self, method: &str, path: &str, body: Option<&Value>, key: &str) -> Option<Value> {
        self.met.requests += 1;
        self.next += 1;
        let headers = [("idempotency-key", key)];
        let headers = if key.is_empty() { &[][..] } else { &headers };
        let ask = |at: usize| self.replicas[at % 2].send(method, path, body, headers);
        let mut asked = ask(self.next);
        if !asked.as_ref().is_ok_and(|answer| answer.status != 503) {
            self.met.repeated += 1;
            asked = ask(self.next + 1);
        }
        match asked {
            Ok(answer) if answer.status < 300 => Some(answer.body),
            other => {
                self.met.failed.push(format!("{method} {path}: {other:?}"));
                None
            }
        }
    }
}

fn client<'scope>(
    scope: &'scope Scope<'scope, '_>,
    replicas: &'scope [Client; 2],
    turn: &'scope Value,
    (stop, rounds): (&'scope AtomicBool, &'scope AtomicUsize),
) -> std::thread::ScopedJoinHandle<'scope, Met> {
    scope.spawn(move || {
        let clock = Clock::system();
        let mut patient = Patient {
            replicas,
            next: 0,
            met: Met::default(),
        };
        while !stop.load(Ordering::Relaxed) {
            let key = clock.new_id().to_string();
            let started = patient.send("POST", "/v1/runs", Some(turn), &key);
            if let Some(started) = started {
                let id = id_of(&started["run"]);
                patient.met.runs.push(id);
                patient.send("GET", &format!("/v1/runs/{id}"), None, "");
            }
            let project = json!({"name": key});
            patient.send("POST", "/v1/projects", Some(&project), "");
            patient.send("GET", "/v1/projects", None, "");
            rounds.fetch_add(1, Ordering::Relaxed);
            moment();
        }
        patient.met
    })
}

#[test]
fn a_rolling_restart_fails_no_request_that_is_made_again_once() {
    let first = config(shared_database());
    let second = first.replica();
    let mut servers = [first.start(), second.start()].map(Some);
    let configs = [first, second];
    let pace = Pace {
        between: Duration::from_millis(2),
        tool: Duration::from_millis(10),
    };
    let agents = Agents::make(&configs[0].client(), pace);
    let turn = agents.turn(agents.repeatable);
    let replicas = [configs[0].client(), configs[1].client()];
    let stop = AtomicBool::new(false);
    let rounds: [AtomicUsize; CLIENTS] = Default::default();
    let counts = || rounds.each_ref().map(|count| count.load(Ordering::Relaxed));
    let met: Vec<Met> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| client(scope, &replicas, &turn, (&stop, &rounds[number])))
            .collect();
        for _ in 0..ROUNDS {
            for (server, config) in servers.iter_mut().zip(&configs) {
                let (status, _) = server.take().unwrap().terminate();
                assert!(status.success(), "{status}: see {}", config.log.display());
                *server = Some(config.start());
                // Who met this one while it was away asks the other one: that is not to be gone by then.
                let before = counts();
                eventually("each client to go on", || {
                    let each = counts();
                    let mut pairs = before.iter().zip(&each);
                    pairs.all(|(before, now)| *now > before + 1).then_some(())
                });
            }
        }
        stop.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let failed: Vec<&String> = met.iter().flat_map(|met| &met.failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let runs: Vec<Uuid> = met.iter().flat_map(|met| met.runs.clone()).collect();
    for id in &runs {
        eventually("the run to complete", || {
            let status = replicas[0].run(*id)["status"].clone();
            assert!(status != "failed" && status != "cancelled", "{id} {status}");
            (status == "completed").then_some(())
        });
    }
    let mut sql = postgres::Client::connect(&configs[0].database_url, postgres::NoTls).unwrap();
    let row = sql.query_one("select count(*) from runs", &[]).unwrap();
    assert_eq!(
        row.get::<_, i64>(0),
        i64::try_from(runs.len()).unwrap(),
        "each key made one run"
    );
    let sum = |of: fn(&Met) -> usize| met.iter().map(of).sum::<usize>();
    let (requests, repeated) = (sum(|met| met.requests), sum(|met| met.repeated));
    assert!(repeated > 0, "the restarts were not noticed at all");
    report(
        "rolling restart",
        &format!(
            "restarts={} requests={requests} repeated={repeated} runs={} failed=0",
            ROUNDS * 2,
            runs.len()
        ),
    );
}
