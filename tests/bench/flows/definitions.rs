//! Flows without a database: an expression that reads a list, and the check of a definition.

use super::super::plan::Plan;
use super::super::rounds::{Figure, alone};
use super::super::row::{About, Target};
use super::super::{Done, Outcome};
use ::expressions::{Budget, Expression};
use agent_runtime::flows::definition::check;
use serde_json::{Value, json};
use std::time::Instant;

const SOURCE: &str = "[.items[] | select(.ok) | {n, up: (.s | ascii_upcase)}] | sort_by(.n)";
/// Tasks of the definition.
const TASKS: usize = 200;

const EVALUATES: About = About {
    name: "flow-expression",
    work: "an expression that filters, maps and sorts four items: one evaluation",
    beside: "none: as a flow's task has it",
    unit: "µs",
    target: Target::AtMost(10.0),
    says_not: "A task also copies its input and checks schemas.",
};
const PARSES: About = About {
    name: "flow-expression-parse",
    work: "the same expression, read from its text",
    beside: "none: a process reads each definition once",
    unit: "µs",
    target: Target::AtMost(50.0),
    says_not: "Regular expressions in it are compiled when they are used.",
};
const CHECKS: About = About {
    name: "flow-validation",
    work: "a definition of 200 tasks, half of them calls, checked from its JSON",
    beside: "none: `flow validate` and a push take it",
    unit: "ms",
    target: Target::AtMost(10.0),
    says_not: "The names that it refers to are looked up in the database after it.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let read = || Expression::parse(SOURCE, &[]).map_err(|faults| format!("{faults:?}"));
    let expression = read()?;
    let item = |n: u32| json!({"n": n, "ok": n != 2, "s": "text"});
    let input = json!({"items": [item(3), item(1), item(2), item(1)]});
    let count = plan.pick(10_000, 100_000);
    done(alone(plan, &EVALUATES, || {
        each(count, 1e6, || {
            let mut budget = Budget::new(1_000_000, 5_000_000);
            let outputs = expression.evaluate(&input, &[], &mut budget);
            Ok(outputs.map(|outputs| outputs.len())?)
        })
    })?)?;
    done(alone(plan, &PARSES, || {
        each(count, 1e6, || {
            read()?;
            Ok(1)
        })
    })?)?;
    let definition = definition();
    done(alone(plan, &CHECKS, || {
        each(plan.pick(20, 200), 1e3, || {
            let checked = check(&definition).map_err(|faults| format!("{faults:?}"))?;
            Ok(checked.tasks.len())
        })
    })?)
}

/// The time of one of so many, in parts of a second. What is done says how much came of it, so that nothing is left out.
fn each(count: usize, parts: f64, mut work: impl FnMut() -> Outcome<usize>) -> Outcome<Figure> {
    Figure::of(|| {
        let (began, mut came) = (Instant::now(), 0);
        for _ in 0..count {
            came += work()?;
        }
        let took = began.elapsed().as_secs_f64() * parts / count as f64;
        match came {
            0 => Err("nothing came of it".into()),
            _ => Ok(took),
        }
    })
}

fn definition() -> Value {
    let tasks = (0..TASKS).map(|n| {
        let task = match n % 2 {
            0 => json!({"call": "tool", "with": {"tool": "look", "arguments": {"id": "${ .id }"}}, "output": {"as": "{ id: .id }"}}),
            _ => json!({"if": "${ .id != null }", "set": {"id": "${ .id }", "at": n}}),
        };
        json!({format!("task{n}"): task})
    });
    json!({
        "document": {"dsl": "1.0.3", "namespace": "bench", "name": "long", "version": "1.0.0"},
        "do": tasks.collect::<Vec<_>>(),
    })
}
