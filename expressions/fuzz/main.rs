//! Any bytes as an expression and its input, chosen by libFuzzer for the code that they reach.
//!
//! What comes before the first NUL is the expression, what comes after it the input: as JSON, or else as a text. Nothing may
//! panic, an evaluation keeps to its budget, and two evaluations of one expression come to the same.

#![no_main]

use expressions::{Budget, Error, Expression, MAX_WEIGHT};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const STEPS: u64 = 20_000;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (source, input) = text.split_once('\0').unwrap_or((text, "null"));
    let input = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
    goes_through(source, &input);
});

fn goes_through(source: &str, input: &Value) {
    let expression = match Expression::parse(source, &["n"]) {
        Ok(expression) => expression,
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= 20);
            for fault in faults {
                assert!(source.get(fault.span.clone()).is_some(), "{fault:?}");
                assert!(!fault.message.is_empty(), "{fault:?}");
            }
            return;
        }
    };
    let (first, used) = evaluated(&expression, input);
    let (second, used_again) = evaluated(&expression, input);
    assert_eq!((first, used), (second, used_again));
}

/// What it comes to, and the steps of that.
fn evaluated(expression: &Expression, input: &Value) -> (Result<Vec<Value>, Error>, u64) {
    let mut budget = Budget::new(STEPS, STEPS);
    let result = expression.evaluate(input, &[("n", &json!(3))], &mut budget);
    match &result {
        Ok(outputs) => {
            let length: usize = outputs.iter().map(|output| output.to_string().len()).sum();
            assert!(length <= 6 * MAX_WEIGHT);
        }
        Err(Error::Steps(most)) => assert_eq!(*most, STEPS),
        Err(Error::TotalSteps(_)) => panic!("one evaluation alone is no total"),
        Err(Error::Raised(_) | Error::Weight | Error::Depth) => {}
    }
    assert!(budget.used() <= STEPS);
    (result, budget.used())
}
