//! `GET /v1/runs/<run_id>`, beside a bare handler that does the same select behind the same door:
//! requests a second of 64 keep-alive clients. The bare one knows no caller, route or pool: each of
//! its threads has a connection, and it answers with two of the columns.

use super::plan::Plan;
use super::rounds::compare;
use super::row::{About, Target};
use super::world::{World, log};
use super::{Done, Outcome, wrk};
use agent_runtime::error::Error;
use agent_runtime::http::door::{App, Context, Door, Limits, Reply, Responder};
use postgres::{Client, Statement};
use serde_json::json;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

const SELECT: &str = include_str!("../../sql/queries/runs/find.sql");

/// The bare handler.
struct Select {
    tenant_id: Uuid,
    connections: Mutex<Vec<(Client, Statement)>>,
}

impl Select {
    fn answer(&self, path: &str) -> Option<String> {
        let run_id: Uuid = path.strip_prefix("/v1/runs/")?.parse().ok()?;
        let lock = || {
            self.connections
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        // As many as the door has threads, so there is always one.
        let (mut client, statement) = lock().pop()?;
        let row = client.query_opt(&statement, &[&self.tenant_id, &run_id]);
        lock().push((client, statement));
        let row = row.ok()??;
        let (id, status): (Uuid, String) = (row.get("run_id"), row.get("status"));
        Some(json!({"id": id, "status": status}).to_string())
    }
}

impl App for Select {
    fn probe(&self, _: &Context) -> Option<rouille::Response> {
        None
    }

    fn admit(&self, _: &rouille::Request, _: &Context) -> Result<u64, rouille::Response> {
        Ok(0)
    }

    fn handle(&self, request: &rouille::Request, responder: Responder) {
        let response = match self.answer(request.raw_url()) {
            Some(body) => rouille::Response::from_data("application/json", body),
            None => rouille::Response::empty_404(),
        };
        responder.send(Reply::Full(response));
    }

    fn refuse(&self, error: &Error, _: &Context) -> rouille::Response {
        rouille::Response::text(error.to_string()).with_status_code(error.code().status())
    }
}

fn baseline(world: &World) -> Outcome<Door> {
    let limits = Limits::default();
    let mut connections = Vec::new();
    for _ in 0..limits.request_threads {
        let mut client = world.database()?;
        let statement = client.prepare(SELECT)?;
        connections.push((client, statement));
    }
    let app = Arc::new(Select {
        tenant_id: world.seeds.tenant_id,
        connections: Mutex::new(connections),
    });
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    Ok(Door::open(
        listener,
        limits,
        app,
        world.clock.clone(),
        log(),
    )?)
}

/// A run that has ended; its id.
pub(crate) fn finished_run(world: &World) -> Outcome<String> {
    let agent_id = world.agent()?;
    let body = json!({"agentId": agent_id, "message": "hello"});
    let started = world.client.post("/v1/runs", &body)?;
    let run_id = started["run"]["id"].as_str().ok_or("a run has no id")?;
    for line in world.client.follow(run_id)? {
        line?;
    }
    Ok(run_id.to_owned())
}

const ABOUT: About = About {
    name: "read-run",
    work: "`GET /v1/runs/<run_id>`, 64 keep-alive clients",
    beside: "a bare handler that does the same select behind the same door",
    unit: "requests/s",
    target: Target::AtLeast(0.7),
    says_not: "The bare handler knows no caller, route or pool, and answers with two of the columns.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start()?;
    let path = format!("/v1/runs/{}", finished_run(&world)?);
    let ours = world.client.address();
    let baseline = baseline(&world)?;
    let row = compare(
        plan,
        &ABOUT,
        || wrk::load(ours, &path, Some(world.token())),
        || wrk::load(baseline.local_addr(), &path, Some(world.token())),
    )?;
    baseline.stop(Duration::from_secs(5));
    done(row)
}
