//! Expressions as their users see them.

#![allow(clippy::unwrap_used, reason = "a test's helper fails its test")]

mod budgets;
mod corpus;
mod faults;
mod jaq;
mod jq;
mod jq_tests;
mod soups;
mod values;

use expressions::{Budget, Error, Expression};
use serde_json::{Value, json};

/// Enough for every program that is meant to have a value.
const STEPS: u64 = 1_000_000;

/// The variables that every program may use.
fn variables() -> [(&'static str, Value); 2] {
    let context = json!({"order": {"id": "o-1", "amount": 42}});
    [("context", context), ("n", json!(7))]
}

fn evaluate(source: &str, input: &Value) -> Result<Vec<Value>, Error> {
    let variables = variables();
    let given = variables.each_ref().map(|(name, value)| (*name, value));
    let expression = match Expression::parse(source, &given.map(|(name, _)| name)) {
        Ok(expression) => expression,
        Err(faults) => panic!("{source}: {faults:?}"),
    };
    expression.evaluate(input, &given, &mut Budget::new(STEPS, STEPS))
}
