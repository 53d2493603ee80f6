//! Agent turns of three journaled steps (a model call that asks for a tool, the call of that tool over HTTP, a model call
//! that answers), beside the DBOS library making the same three calls as steps of a workflow on the same Postgres.
//!
//! The model provider and the tool are in this process, the same for both sides, and answer at once.

mod service;
mod tool;

use super::Outcome;
use super::plan::Plan;
use super::rounds::{Figure, alone};
use super::row::{About, Row, Target};
use agent_runtime::dev::provider::{Provider, Script};
use serde_json::{Value, json};
use service::Service;
use tool::Tool;

const CLIENTS_AT_ONCE: usize = 16;

/// Makes the scripted provider ask for the tool first, and answer once the tool has.
const MESSAGE: &str = "What is the weather in Kyoto?";

/// The tool as the model is told of it.
fn tool_schema() -> Value {
    json!({"name": "weather", "description": "The weather of a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}})
}

/// What both sides call.
struct Calls<'a> {
    provider: &'a Provider,
    tool: &'a Tool,
}

impl Calls<'_> {
    /// Calls of the model and of the tool.
    fn count(&self) -> (u64, u64) {
        (self.provider.count(), self.tool.answers())
    }

    /// Whether so many turns called the model twice each and the tool once.
    fn check(&self, side: &str, before: (u64, u64), turns: usize) -> Outcome {
        let now = self.count();
        let (model, tool) = (now.0 - before.0, now.1 - before.1);
        let turns = u64::try_from(turns)?;
        if (model, tool) == (2 * turns, turns) {
            Ok(())
        } else {
            Err(
                format!("{turns} turns of {side} made {model} model calls and {tool} tool calls")
                    .into(),
            )
        }
    }
}

const TURNS: About = About {
    name: "turns",
    work: "agent turns of three journaled steps, 16 clients that each start a run over HTTP and read its stream to the end",
    beside: "the DBOS library making the same three calls as steps of a workflow on the same Postgres, 16 turns at once",
    unit: "turns/s",
    target: Target::AtLeast(5.0),
    says_not: "",
};

pub(crate) fn run(plan: Plan) -> Outcome<Vec<Row>> {
    let (provider, tool) = (Provider::start(Script::default())?, Tool::start()?);
    let calls = Calls {
        provider: &provider,
        tool: &tool,
    };
    let service = Service::start(&provider, &tool)?;
    let turns = plan.pick(480, 4_800);
    let row = alone(plan, &TURNS, || {
        Figure::of(|| service.turns(CLIENTS_AT_ONCE, turns, &calls))
    })?;
    Ok(vec![row])
}
