//! Expressions as their users see them.

#![allow(clippy::unwrap_used, reason = "a test's helper fails its test")]

mod budgets;
mod faults;
mod jq;
mod soups;
mod values;

use expressions::{Budget, Error, Expression};
use serde_json::{Value, json};

/// Enough for every program that is meant to have a value.
const STEPS: u64 = 1_000_000;

fn evaluate(source: &str, input: &Value) -> Result<Vec<Value>, Error> {
    let expression = match Expression::parse(source, &["context", "n"]) {
        Ok(expression) => expression,
        Err(faults) => panic!("{source}: {faults:?}"),
    };
    let context = json!({"order": {"id": "o-1", "amount": 42}});
    let variables = [("context", &context), ("n", &json!(7))];
    expression.evaluate(input, &variables, &mut Budget::new(STEPS, STEPS))
}
