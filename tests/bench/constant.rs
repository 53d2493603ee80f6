//! A constant authenticated route behind the real door and pipeline, beside a bare hyper service with
//! one thread: requests a second of 64 keep-alive clients. The load generator shares the processors.

use super::loopback::{Loopback, answer};
use super::plan::Plan;
use super::rounds::compare;
use super::row::{About, Target};
use super::world::{World, log};
use super::{Done, Outcome, wrk};
use agent_runtime::error::Result;
use agent_runtime::http::context::Cx;
use agent_runtime::http::door::{Door, Limits};
use agent_runtime::http::input::Nothing;
use agent_runtime::http::output::Found;
use agent_runtime::http::pipeline::Pipeline;
use agent_runtime::http::probes::Probes;
use agent_runtime::http::route::{Method, Table, route};
use agent_runtime::proof::Caller;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// Sixty bytes of JSON.
const TEXT: &str = "a constant text that is sixty bytes as JSON with";
const BODY: &str = r#"{"text":"a constant text that is sixty bytes as JSON with"}"#;

#[derive(Serialize, JsonSchema)]
struct Constant {
    text: &'static str,
}

fn constant(_: &Cx<'_>, _: Caller, _: Nothing) -> Result<Found<Constant>> {
    Ok(Found(Constant { text: TEXT }))
}

/// Another door of the same service, with this one route in its table.
fn door(world: &World) -> Outcome<Door> {
    let probes = Arc::new(Probes::new());
    probes.set("server", Ok(()));
    let routes = vec![route(
        Method::Get,
        "/v1/constant",
        "constant.get",
        "Say it",
        constant,
    )];
    let shared = Arc::clone(world.server()?.shared());
    let pipeline = Pipeline::new(shared, Table::new(routes, &[], |_| true), probes, log());
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let app = Arc::new(pipeline);
    Ok(Door::open(
        listener,
        Limits::default(),
        app,
        world.clock.clone(),
        log(),
    )?)
}

const ABOUT: About = About {
    name: "constant",
    work: "an authenticated route that touches no row, 64 keep-alive clients",
    beside: "bare hyper on one thread",
    unit: "requests/s",
    target: Target::AtLeast(0.5),
    says_not: "The load generator shares the processors; the bare service knows no caller, route or limit.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start()?;
    let door = door(&world)?;
    let bare = Loopback::start("bare", |_| async {
        Ok(answer(
            "application/json",
            Bytes::from_static(BODY.as_bytes()),
        ))
    })?;
    let row = compare(
        plan,
        &ABOUT,
        || wrk::load(door.local_addr(), "/v1/constant", Some(world.token())),
        || wrk::load(bare.address, "/v1/constant", Some(world.token())),
    )?;
    door.stop(Duration::from_secs(5));
    done(row)
}
