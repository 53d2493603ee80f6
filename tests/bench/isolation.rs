//! From an event's commit to its receipt at a hundred healthy endpoints, beside others that cost more than they should:
//! one that accepts connections and never answers, four that answer 204 after nine seconds, forty that never answer.
//! Each time the p99 of the healthy, beside the same without those.
//!
//! Each round registers the others anew; their end is waited for, so that nothing of them is in the baseline.

use super::Outcome;
use super::machine::Moment;
use super::plan::Plan;
use super::rounds::{Figure, compare, percentile};
use super::row::{About, Row, Target};
use super::world::World;
use agent_runtime::webhooks::event::{Approval, Event};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crossbeam_channel::{Receiver, Sender, unbounded};
use serde_json::json;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::Builder;
use std::time::{Duration, Instant};
use uuid::Uuid;

const HEALTHY: usize = 100;
/// Of a round, each to all endpoints.
const EVENTS: usize = 30;
const BETWEEN: Duration = Duration::from_millis(300);
/// Threads of the receivers: more than attempts at once.
const THREADS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests at once that unregister: they wait for what is in flight, and the server lets so many wait.
const UNREGISTERING: usize = 6;
/// How long the slow take: nearly all the time that an attempt has.
const SLOW: Duration = Duration::from_secs(9);

/// Endpoints beside the healthy.
struct Others {
    count: usize,
    address: SocketAddr,
}

/// An event that arrived.
type Receipt = (Uuid, Instant);

/// Answers at once; ends with the process.
fn healthy(receipts: &Sender<Receipt>) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    for number in 0..THREADS {
        let (listener, receipts) = (listener.try_clone()?, receipts.clone());
        Builder::new()
            .name(format!("healthy-{number}"))
            .spawn(move || {
                while let Ok((stream, _)) = listener.accept() {
                    // What did not arrive is missed at the end of the round.
                    let _ = receive(stream, &receipts);
                }
            })?;
    }
    Ok(address)
}

fn receive(mut stream: TcpStream, receipts: &Sender<Receipt>) -> Outcome {
    let mut reader = BufReader::new(&stream);
    let (mut length, mut event_id, mut line) = (0, None, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            match line.trim_end() {
                "" => break,
                _ => continue,
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse()?,
            "webhook-id" => event_id = Some(value.parse()?),
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let at = Instant::now();
    receipts.send((event_id.ok_or("no event")?, at))?;
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")?;
    Ok(())
}

/// Accepts, and answers 204 after this time, or never; ends with the process.
fn slow(answers_after: Option<Duration>) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, accepted) = unbounded::<(TcpStream, Instant)>();
    Builder::new().name("slow".to_owned()).spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // Whoever answers goes on as long as this.
            let _ = sender.send((stream, Instant::now()));
        }
    })?;
    Builder::new()
        .name("slow-answers".to_owned())
        .spawn(move || {
            let mut held = Vec::new();
            for (mut stream, at) in accepted {
                let Some(after) = answers_after else {
                    held.push(stream);
                    continue;
                };
                std::thread::sleep(after.saturating_sub(at.elapsed()));
                // The server may have had enough of it.
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
                held.push(stream);
            }
        })?;
    Ok(address)
}

/// Registers a receiver; the path of the endpoint.
fn register(world: &World, address: SocketAddr, number: usize) -> Outcome<String> {
    let wanted = json!({"url": format!("http://{address}/hooks/{number}"),
        "events": ["approval.requested"], "secretRef": {"envName": "bench", "name": "HOOKS"}});
    let made = world.client.post("/v1/webhook-endpoints", &wanted)?;
    let id = made["endpointId"].as_str().ok_or("an endpoint has no id")?;
    Ok(format!("/v1/webhook-endpoints/{id}"))
}

fn emit(world: &World, project_id: Uuid) -> Outcome<(Uuid, Instant)> {
    let (shared, clock) = (world.server()?.shared(), &world.clock);
    let approval_id = clock.new_id();
    let approval = Approval {
        approval_id,
        project_id,
        required_role: "reviewer".to_owned(),
        title: "Send it".to_owned(),
        assigned_to: None,
        created_at: clock.now(),
        expires_at: clock.now() + Duration::from_secs(3600),
        url: None,
    };
    let event = Event::ApprovalRequested { approval };
    let webhooks = &shared.webhooks;
    shared
        .store
        .transact(|tx| webhooks.emit(tx, world.seeds.tenant_id, &event))?;
    let committed_at = Instant::now();
    webhooks.wake();
    Ok((approval_id, committed_at))
}

/// Milliseconds from commit to receipt, of every healthy delivery of a round.
fn latencies(world: &World, project_id: Uuid, receipts: &Receiver<Receipt>) -> Outcome<Vec<f64>> {
    let mut committed = HashMap::new();
    for _ in 0..EVENTS {
        let (event_id, at) = emit(world, project_id)?;
        committed.insert(event_id, at);
        std::thread::sleep(BETWEEN);
    }
    let mut latencies = Vec::with_capacity(EVENTS * HEALTHY);
    while latencies.len() < EVENTS * HEALTHY {
        let (event_id, at) = receipts.recv_timeout(PATIENCE)?;
        let since = committed
            .get(&event_id)
            .ok_or("an event of another round")?;
        latencies.push(at.saturating_duration_since(*since).as_secs_f64() * 1000.0);
    }
    Ok(latencies)
}

fn round(world: &World, project_id: Uuid, receipts: &Receiver<Receipt>) -> Outcome<Figure> {
    let before = Moment::now();
    let latencies = latencies(world, project_id, receipts)?;
    let used = before.until_now();
    Ok(Figure {
        note: format!(" (p50 {:.1})", percentile(latencies.clone(), 0.5)),
        value: percentile(latencies, 0.99),
        used,
    })
}

/// Unregisters them all, and waits until nothing is in flight.
fn unregister(world: &World, endpoints: Vec<String>) -> Outcome {
    let (sender, left) = unbounded();
    for endpoint in endpoints {
        sender.send(endpoint)?;
    }
    drop(sender);
    let one = || -> Result<(), String> {
        for endpoint in &left {
            let deadline = Instant::now() + PATIENCE;
            loop {
                match world.client.send("DELETE", &endpoint, "") {
                    Ok(_) => break,
                    Err(error) if error.to_string().contains(": 404") => break,
                    Err(error) if Instant::now() > deadline => return Err(error.to_string()),
                    Err(_) => std::thread::sleep(BETWEEN),
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..UNREGISTERING).map(|_| scope.spawn(one)).collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.map_err(|_| "a thread failed".to_owned())?)
    })?;
    Ok(())
}

/// Beside one kind of others.
fn beside(
    plan: Plan,
    about: &About,
    world: &World,
    project_id: Uuid,
    receipts: &Receiver<Receipt>,
    others: &Others,
) -> Outcome<Row> {
    let ours = || {
        let endpoints = (0..others.count).map(|n| register(world, others.address, HEALTHY + n));
        let endpoints = endpoints.collect::<Outcome<Vec<_>>>()?;
        let figure = round(world, project_id, receipts)?;
        unregister(world, endpoints)?;
        Ok(figure)
    };
    let baseline = || round(world, project_id, receipts);
    compare(plan, about, ours, baseline)
}

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "the same without those endpoints",
        unit: "ms",
        target: Target::AtMost(1.2),
        says_not: "One event every 300 ms: it shows that nobody waits for another's receiver, not how much is delivered.",
    }
}

const SILENT: About = about(
    "webhooks-one-silent",
    "event commit to receipt, p99, 100 healthy endpoints beside one that never answers",
);
const MANY_SILENT: About = about(
    "webhooks-40-silent",
    "event commit to receipt, p99, 100 healthy endpoints beside forty that never answer",
);
const SLOWLY: About = about(
    "webhooks-4-slow",
    "event commit to receipt, p99, 100 healthy endpoints beside four that answer after nine seconds",
);

pub(crate) fn run(plan: Plan) -> Outcome<Vec<Row>> {
    let world = World::start_with_webhooks()?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    let value = json!({"value": format!("whsec_{}", STANDARD.encode(secret))});
    let path = "/v1/secrets/bench/HOOKS";
    world.client.send("PUT", path, &value.to_string())?;
    let project = world
        .client
        .post("/v1/projects", &json!({"name": "bench"}))?;
    let project_id = project["id"].as_str().ok_or("no project")?.parse()?;
    let (sender, receipts) = unbounded();
    let (healthy, silent) = (healthy(&sender)?, slow(None)?);
    for number in 0..HEALTHY {
        register(&world, healthy, number)?;
    }
    let kinds = [
        (&SILENT, 1, silent),
        (&SLOWLY, 4, slow(Some(SLOW))?),
        (&MANY_SILENT, 40, silent),
    ];
    let mut rows = Vec::new();
    // The further kinds are longer than the short form may be.
    for (about, count, address) in kinds.into_iter().take(plan.pick(1, 3)) {
        let others = Others { count, address };
        rows.push(beside(plan, about, &world, project_id, &receipts, &others)?);
    }
    Ok(rows)
}
