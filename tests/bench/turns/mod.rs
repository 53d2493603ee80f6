//! Agent turns of three journaled steps (a model call that asks for a tool, the call of that tool over HTTP, a model call
//! that answers), beside the DBOS library making the same three calls as steps of a workflow on the same Postgres.
//!
//! The model provider and the tool are in this process, the same for both sides, and answer at once.

pub(crate) mod commits;
pub(crate) mod dbos;
pub(crate) mod service;
pub(crate) mod side;
pub(crate) mod tool;

use super::plan::Plan;
use super::rounds::{CLIENTS, Figure, Measure, compare, grow};
use super::row::{About, Growth, Row, Target};
use super::{Done, Outcome};
use agent_runtime::dev::provider::{Provider, Script};
use dbos::{Dbos, Library};
use serde_json::{Value, json};
use service::{Clients, Service};
use side::{Side, figure, growth, made, memory};
use std::cell::Cell;
use tool::Tool;

pub(crate) const CLIENTS_AT_ONCE: usize = 16;

/// Makes the scripted provider ask for the tool first, and answer once the tool has.
const MESSAGE: &str = "What is the weather in Kyoto?";

/// The tool as the model is told of it.
fn tool_schema() -> Value {
    json!({"name": "weather", "description": "The weather of a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}})
}

/// What both sides call.
pub(crate) struct Calls<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) tool: &'a Tool,
}

/// How often a run calls each of them.
#[derive(Clone, Copy)]
pub(crate) struct Each {
    pub(crate) model: u64,
    pub(crate) tool: u64,
}

/// What a turn calls.
pub(crate) const TURN: Each = Each { model: 2, tool: 1 };

impl Calls<'_> {
    /// Calls of the model and of the tool.
    pub(crate) fn count(&self) -> (u64, u64) {
        (self.provider.count(), self.tool.answers())
    }

    /// Whether so many runs made so many calls each.
    pub(crate) fn check(&self, side: &str, each: Each, before: (u64, u64), runs: usize) -> Outcome {
        let now = self.count();
        let (model, tool) = (now.0 - before.0, now.1 - before.1);
        let wanted = u64::try_from(runs)?;
        if (model, tool) == (each.model * wanted, each.tool * wanted) {
            Ok(())
        } else {
            Err(
                format!("{runs} runs of {side} made {model} model calls and {tool} tool calls")
                    .into(),
            )
        }
    }
}

const fn about(
    name: &'static str,
    work: &'static str,
    unit: &'static str,
    target: Target,
    says_not: &'static str,
) -> About {
    About {
        name,
        work,
        beside: "the DBOS library making the same three calls as steps of a workflow on the same Postgres, 16 turns at once",
        unit,
        target,
        says_not,
    }
}

const TURNS: About = about(
    "turns",
    "agent turns of three journaled steps, 16 clients that each start a run over HTTP and read its stream to its end",
    "turns/s",
    Target::AtLeast(5.0),
    "The library is used from one Python process, and its turns are called in it: no HTTP request starts them, nobody \
     follows them. A real model takes seconds to answer, which is nobody's time.",
);
const MEMORY: About = about(
    "turns-memory",
    "resident memory of the service after those turns",
    "MiB",
    Target::AtMost(0.5),
    "The library's process is an application with nothing in it but the turns. PostgreSQL's own memory, and that of \
     clients, provider and tool, is in neither figure.",
);
const DATABASE: About = about(
    "turns-database",
    "what the database grows by a turn, indexes included, vacuumed before and after",
    "KiB",
    Target::AtMost(0.5),
    "Short texts: what the model and the tool say is a small part of it. The write-ahead log is in neither figure.",
);

/// How much is done in a round.
struct Sizes {
    ours: usize,
    other: usize,
    /// Of either side, for memory and database.
    more: usize,
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let (provider, tool) = (Provider::start(Script::default())?, Tool::start()?);
    let calls = Calls {
        provider: &provider,
        tool: &tool,
    };
    let service = Service::start(&provider, &tool)?;
    let ours = service.turns();
    let library = Library::start(&service.deployment, &calls)?;
    let other = library.fastest("turn", TURN)?;
    let sizes = Sizes {
        ours: plan.pick(640, 4_800),
        other: plan.pick(320, 960),
        more: plan.pick(160, 800),
    };
    let mut done = |row: Row| {
        done(Row {
            versions: other.versions(),
            ..row
        })
    };
    let mut throughput = throughput(plan, &ours, &other, &calls, &sizes)?;
    let mut resident = compare(
        plan,
        &MEMORY,
        || Figure::of(|| memory(&ours, &calls, CLIENTS_AT_ONCE, sizes.more)),
        || Figure::of(|| memory(&other, &calls, CLIENTS_AT_ONCE, sizes.more)),
    )?;
    if !plan.short {
        // After the memory of sixteen clients' turns, which sixty-four would add to.
        let growths = grown(&ours, &other, &calls, &sizes)?;
        throughput.growth.push(growths.0);
        resident.growth.push(growths.1);
    }
    done(throughput)?;
    done(resident)?;
    done(compare(
        plan,
        &DATABASE,
        || Figure::of(|| growth(&ours, &calls, CLIENTS_AT_ONCE, sizes.more)),
        || Figure::of(|| growth(&other, &calls, CLIENTS_AT_ONCE, sizes.more)),
    )?)
}

/// Turns a second of so many clients, and the memory after them: that first, because what many clients took stays a while.
fn grown(
    ours: &Clients<'_>,
    other: &Dbos,
    calls: &Calls<'_>,
    sizes: &Sizes,
) -> Outcome<(Growth, Growth)> {
    // As long at each place, more or less.
    let of = |clients: usize, most: usize| most * clients.min(CLIENTS_AT_ONCE) / CLIENTS_AT_ONCE;
    let lines: [(_, Measure<'_>); 2] = [
        (Clients::NAME, &|clients| {
            memory(ours, calls, clients, of(clients, sizes.more))
        }),
        (Dbos::NAME, &|clients| {
            memory(other, calls, clients, of(clients, sizes.more))
        }),
    ];
    let resident = grow("clients", MEMORY.unit, &CLIENTS, &lines)?;
    let lines: [(_, Measure<'_>); 2] = [
        (Clients::NAME, &|clients| {
            Ok(made(ours, calls, clients, of(clients, sizes.ours))?.rate)
        }),
        (Dbos::NAME, &|clients| {
            Ok(made(other, calls, clients, of(clients, sizes.other))?.rate)
        }),
    ];
    let rates = grow("clients", TURNS.unit, &CLIENTS, &lines)?;
    Ok((rates, resident))
}

fn throughput(
    plan: Plan,
    ours: &Clients<'_>,
    other: &Dbos,
    calls: &Calls<'_>,
    sizes: &Sizes,
) -> Outcome<Row> {
    let (mine, theirs) = (Cell::new(0.0), Cell::new(0.0));
    let mut row = compare(
        plan,
        &TURNS,
        || figure(ours, calls, sizes.ours, &mine),
        || figure(other, calls, sizes.other, &theirs),
    )?;
    let commits = commits::commits(ours.deployment(), CLIENTS_AT_ONCE, plan.pick(100, 500))?;
    row.limit = Some(format!(
        "One-row commits, 16 clients: {commits:.0}/s; a turn takes {:.1} transactions that write, one of the library's {:.1}.",
        mine.get(),
        theirs.get()
    ));
    Ok(row)
}
