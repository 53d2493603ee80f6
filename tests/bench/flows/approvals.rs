//! From a decision to the run going on: beside commits on the same database, a message to a workflow of the DBOS library,
//! and LangGraph's `Command(resume)` with its Postgres checkpointer. What opening an approval costs, beside a timer.
//!
//! A run of a flow waits for an approval, and calls a tool after it. The clock starts before the decision is sent over
//! HTTP, and stops when the call is at the tool: the decision, the run's taking up and the next step are on disk then.

use super::super::machine::Moment;
use super::super::peer::{Peer, parts, source};
use super::super::plan::Plan;
use super::super::rounds::{Figure, compare, median};
use super::super::row::{About, Row, Target};
use super::super::turns::Calls;
use super::super::turns::commits::commit_ms;
use super::super::turns::dbos::Library;
use super::super::turns::service::Service;
use super::super::turns::tool::Tool;
use super::super::{Done, Outcome};
use super::call;
use agent_runtime::dev::provider::{Provider, Script};
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What a run that waits has let go of by then.
const CALM: Duration = Duration::from_millis(100);
const WORK: &str =
    "from a decision on an approval to the run's next call at the tool, idle server, p50";
const SAYS_NOT: &str = "The other side is called in its process, without HTTP, and its clock stops where the code after \
    the wait begins; ours stops when the next step has been written and its request is at the tool.";

const COMMITS: About = About {
    name: "approval",
    work: WORK,
    beside: "a one-row commit on the same database",
    unit: "ms",
    target: Target::AtMost(7.0),
    says_not: "Both HTTP requests, the decision's and the tool's, are in it. Authorization is off.",
};
const DBOS: About = About {
    name: "approval-dbos",
    work: WORK,
    beside: "a message to a workflow of the DBOS library (`send`, `recv`) on the same Postgres, p50",
    unit: "ms",
    target: Target::AtMost(1.0),
    says_not: SAYS_NOT,
};
const LANGGRAPH: About = About {
    name: "approval-langgraph",
    work: WORK,
    beside: "LangGraph's `Command(resume)` with its Postgres checkpointer and durability \"sync\", to the next node, p50",
    unit: "ms",
    target: Target::AtMost(1.0),
    says_not: SAYS_NOT,
};

const OPENS: About = About {
    name: "approval-opening",
    work: "a run of a flow from its start over HTTP until it waits for an approval, 16 clients: the time of all by their number",
    beside: "the same of a flow that waits two days instead",
    unit: "ms",
    target: Target::AtMost(1.5),
    says_not: "The start is in both. No reviewer is connected.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let (provider, tool) = (Provider::start(Script::default())?, Tool::start()?);
    let service = Service::start(&provider, &tool)?;
    let flow_id = asks(&service)?;
    let count = plan.pick(20, 60);
    let ours = || Figure::of(|| decided(&service, &tool, &flow_id, count));
    done(compare(plan, &COMMITS, ours, || {
        Figure::of(|| commit_ms(&service.deployment, 200))
    })?)?;
    let calls = Calls {
        provider: &provider,
        tool: &tool,
    };
    let library = Library::start(&service.deployment, &calls)?;
    let order = json!({"do": "decisions", "count": count});
    done(beside(plan, &DBOS, ours, library.peer()?, &order)?)?;
    let order = json!({"count": count});
    done(beside(
        plan,
        &LANGGRAPH,
        ours,
        langgraph(&service)?,
        &order,
    )?)?;
    let rests = service.flow("rests", &json!([{"rest": {"wait": {"days": 2}}}]))?;
    // Last: these runs are left waiting.
    let many = plan.pick(160, 1_600);
    done(compare(
        plan,
        &OPENS,
        || Figure::of(|| parked(&service, &flow_id, many)),
        || Figure::of(|| parked(&service, &rests, many)),
    )?)
}

fn beside(
    plan: Plan,
    about: &About,
    ours: impl FnMut() -> Outcome<Figure>,
    mut peer: Peer,
    order: &serde_json::Value,
) -> Outcome<Row> {
    let versions = peer.versions.clone();
    let row = compare(plan, about, ours, || {
        let before = Moment::now();
        let value = peer.number(order, "seconds")? * 1000.0;
        Ok(Figure {
            value,
            used: before.until_now(),
            note: String::new(),
        })
    })?;
    Ok(Row { versions, ..row })
}

/// A process of LangGraph that makes decisions.
fn langgraph(service: &Service) -> Outcome<Peer> {
    let mut command = Command::new(parts()?.join("peer-langgraph/bin/python"));
    command
        .arg(source("tests/bench/peers/langgraph/decisions.py"))
        .arg(service.deployment.further_database("langgraph")?)
        .env("LANGSMITH_TRACING", "false");
    Peer::start(command)
}

/// Makes a flow that asks for an approval and then calls the tool; its id.
pub(super) fn asks(service: &Service) -> Outcome<String> {
    let approval =
        json!({"call": "approval", "with": {"title": "Pay a refund", "expiresAfter": "P2D"}});
    service.flow("asks", &json!([{"ask": approval}, {"pay": call()}]))
}

/// Milliseconds by which a run of so many begins to wait.
fn parked(service: &Service, flow_id: &str, count: usize) -> Outcome<f64> {
    let began = Instant::now();
    let parked = service.park(flow_id, count)?;
    Ok(began.elapsed().as_secs_f64() * 1000.0 / parked as f64)
}

/// Milliseconds from a decision to the next call at the tool, p50 of so many runs one after another.
pub(super) fn decided(service: &Service, tool: &Tool, flow_id: &str, count: usize) -> Outcome<f64> {
    let mut database = service.deployment.database()?;
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let run_id = service.start_flow(flow_id)?;
        service.await_status(&mut database, run_id, "waiting")?;
        let query = "select approval_id from approvals where tenant_id = $1 and run_id = $2";
        let tenant_id = service.deployment.seeds.tenant_id;
        let row = database.query_one(query, &[&tenant_id, &run_id])?;
        let approval_id: Uuid = row.get(0);
        std::thread::sleep(CALM);
        let path = format!("/v1/approvals/{approval_id}/decide");
        let (answers, began) = (tool.answers(), Instant::now());
        service
            .replica
            .client
            .post(&path, &json!({"decision": "approve"}))?;
        let called = tool.called_after(answers)?;
        took.push(called.duration_since(began).as_secs_f64() * 1000.0);
        service.await_status(&mut database, run_id, "completed")?;
    }
    Ok(median(took))
}
