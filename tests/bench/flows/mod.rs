//! Flows: three calls of a tool beside the DBOS library's workflow of the same three and beside an agent's turn of three
//! steps; a flow of three tasks that only compute beside commits; a thousand branches that do nothing; a late step of a long
//! run beside an early one.
//!
//! The model provider and the tool are in this process, the same for all sides, and answer at once. What a decision takes
//! is in [`approvals`], what their lists cost in [`approval_lists`], what waits in [`waiting`], and what needs no database in
//! [`definitions`].

pub(crate) mod approval_lists;
pub(crate) mod approvals;
pub(crate) mod definitions;
pub(crate) mod waiting;

use super::machine::Moment;
use super::plan::Plan;
use super::rounds::{Figure, compare, compare_parts, median};
use super::row::{About, Row, Target};
use super::turns::commits::{commit_ms, commits};
use super::turns::dbos::{Dbos, Library};
use super::turns::service::{Clients, Service};
use super::turns::side::figure;
use super::turns::tool::Tool;
use super::turns::{CLIENTS_AT_ONCE, Calls, Each};
use super::{Done, Outcome};
use agent_runtime::dev::provider::{Provider, Script};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Instant;

/// What a run of the flow of three calls.
const THREE: Each = Each { model: 0, tool: 3 };
const BRANCHES: usize = 1_000;
/// Of a run's steps, how many are looked at: the middle of the time that one takes.
const LOOKED_AT: usize = 100;

const FLOWS: About = About {
    name: "flows",
    work: "flows of three calls of an HTTP tool, 16 clients that each start a run over HTTP and read its stream to its end",
    beside: "the DBOS library making the same three calls as steps of a workflow on the same Postgres, 16 at once",
    unit: "flows/s",
    target: Target::AtLeast(4.0),
    says_not: "The library is used from one Python process, and its workflows are called in it: no HTTP request starts \
               them, nobody follows them. A real tool takes longer, which is nobody's time.",
};
const TURNS: About = About {
    name: "flows-turns",
    work: "the same flows",
    beside: "agent turns of three steps (model, tool, model) of the same clients on the same server",
    unit: "runs/s",
    target: Target::AtLeast(0.8),
    says_not: "A turn's model calls are answered at once here. The flow evaluates expressions and checks arguments; the \
               turn reads streams of a model.",
};
const SETS: About = About {
    name: "flow-set",
    work: "a flow of three tasks that only compute, from its start over HTTP to the end of its stream, idle server, p50",
    beside: "a one-row commit on the same database",
    unit: "ms",
    target: Target::AtMost(4.0),
    says_not: "Both HTTP requests, the start's and the stream's, are in it. Authorization is off.",
};
const FAN: About = About {
    name: "flow-branches",
    work: "a flow's parallel loop of 1,000 branches that do nothing, 64 at once",
    beside: "a workflow of the DBOS library that enqueues 1,000 workflows that do nothing, and takes their results",
    unit: "branches/s",
    target: Target::AtLeast(4.0),
    says_not: "Branches with work in them take that work's time on both sides.",
};
const LATE: About = About {
    name: "flow-steps",
    work: "a step of a run around its 5,000th (its 1,500th in the short form): a loop that calls the tool, p50",
    beside: "the same run's steps around its 5th",
    unit: "ms",
    target: Target::AtMost(1.2),
    says_not: "What the steps say is short. Each of them, early or late, writes the loop's whole list with where the run stands: a longer \
               list is paid for by every step.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let (provider, tool) = (Provider::start(Script::default())?, Tool::start()?);
    let calls = Calls {
        provider: &provider,
        tool: &tool,
    };
    let service = Service::start(&provider, &tool)?;
    let library = Library::start(&service.deployment, &calls)?;
    let three = json!([{"one": call()}, {"two": call()}, {"three": call()}]);
    let flows = service.flows(&service.flow("three", &three)?, THREE);
    let other = library.fastest("flow", THREE)?;
    done(beside_library(plan, &flows, &other, &calls)?)?;
    done(beside_turns(plan, &service, &flows, &calls)?)?;
    done(computed(plan, &service)?)?;
    done(branches(plan, &service, &other)?)?;
    done(late(plan, &service)?)
}

/// A task that calls the tool.
fn call() -> Value {
    json!({"call": "tool", "with": {"tool": "weather", "arguments": {"city": "Kyoto"}}})
}

fn beside_library(
    plan: Plan,
    flows: &Clients<'_>,
    other: &Dbos,
    calls: &Calls<'_>,
) -> Outcome<Row> {
    let (mine, theirs) = (Cell::new(0.0), Cell::new(0.0));
    let (ours, others) = (plan.pick(640, 4_800), plan.pick(320, 960));
    let mut row = compare(
        plan,
        &FLOWS,
        || figure(flows, calls, ours, &mine),
        || figure(other, calls, others, &theirs),
    )?;
    let commits = commits(flows.deployment(), CLIENTS_AT_ONCE, plan.pick(100, 500))?;
    row.limit = Some(format!(
        "One-row commits, 16 clients: {commits:.0}/s; a flow takes {:.1} transactions that write, one of the library's {:.1}.",
        mine.get(),
        theirs.get()
    ));
    row.versions = other.versions();
    Ok(row)
}

fn beside_turns(
    plan: Plan,
    service: &Service,
    flows: &Clients<'_>,
    calls: &Calls<'_>,
) -> Outcome<Row> {
    let (turns, count) = (service.turns(), plan.pick(640, 4_800));
    let unused = Cell::new(0.0);
    compare(
        plan,
        &TURNS,
        || figure(flows, calls, count, &unused),
        || figure(&turns, calls, count, &unused),
    )
}

fn computed(plan: Plan, service: &Service) -> Outcome<Row> {
    let set = json!({"set": {"number": "${ .number }"}});
    let flow = service.flow("sets", &json!([{"one": set}, {"two": set}, {"three": set}]))?;
    let clients = service.flows(&flow, Each { model: 0, tool: 0 });
    let count = plan.pick(50, 500);
    let ours = || {
        let took: Outcome<Vec<f64>> = (0..count).map(|_| clients.seconds()).collect();
        Ok(median(took?) * 1000.0)
    };
    compare(
        plan,
        &SETS,
        || Figure::of(ours),
        || Figure::of(|| commit_ms(&service.deployment, count)),
    )
}

fn branches(plan: Plan, service: &Service, other: &Dbos) -> Outcome<Row> {
    let range = format!("[range({BRANCHES})]");
    let tasks = json!([{"all": {"for": {"each": "number", "in": range}, "metadata": {"concurrency": 64},
        "do": [{"nothing": {"set": {"number": "${ $number }"}}}]}}]);
    let flow = service.flow("branches", &tasks)?;
    let clients = service.flows(&flow, Each { model: 0, tool: 0 });
    let order = json!({"do": "branches", "count": BRANCHES});
    let mut row = compare(
        plan,
        &FAN,
        || Figure::of(|| Ok(BRANCHES as f64 / clients.seconds()?)),
        || Figure::of(|| Ok(BRANCHES as f64 / other.seconds(&order)?)),
    )?;
    row.versions = other.versions();
    Ok(row)
}

fn late(plan: Plan, service: &Service) -> Outcome<Row> {
    let count = plan.pick(1_500, 5_000);
    let range = format!("[range({count})]");
    let tasks =
        json!([{"all": {"for": {"each": "number", "in": range}, "do": [{"look": call()}]}}]);
    let flow_id = service.flow("steps", &tasks)?;
    compare_parts(plan, &LATE, || {
        let before = Moment::now();
        let (early, late) = steps(service, &flow_id)?;
        let part = |value| Figure {
            value,
            used: before.until_now(),
            note: String::new(),
        };
        Ok((part(late), part(early)))
    })
}

/// Milliseconds from one step to the next in a new run of the flow: in the middle of its early steps, and of its last ones.
/// Nobody reads its stream.
fn steps(service: &Service, flow_id: &str) -> Outcome<(f64, f64)> {
    let mut database = service.deployment.database()?;
    let run_id = service.start_flow(flow_id)?;
    service.await_status(&mut database, run_id, "completed")?;
    let query = format!(
        "select percentile_cont(0.5) within group (order by took) filter (where step > 5 and step <= 5 + {LOOKED_AT}),
           percentile_cont(0.5) within group (order by took) filter (where step > last - {LOOKED_AT})
         from (
           select step, max(step) over () as last,
             extract(epoch from started_at - lag(started_at) over (order by step))::float8 * 1000 as took
           from run_steps where run_id = $1
         ) as steps"
    );
    let row = database.query_one(&query, &[&run_id])?;
    Ok((row.get(0), row.get(1)))
}

impl Clients<'_> {
    /// Seconds that one run takes.
    fn seconds(&self) -> Outcome<f64> {
        let mut client = self.client();
        let began = Instant::now();
        client()?;
        Ok(began.elapsed().as_secs_f64())
    }
}
