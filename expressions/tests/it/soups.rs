//! Texts that nobody would write: each is taken or refused, and ends by its budget.

use expressions::{Budget, Error, Expression, MAX_WEIGHT};
use proptest::prelude::*;
use serde_json::{Value, json};

const TOKENS: [&str; 64] = [
    ".",
    "..",
    ".a",
    "$n",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "\"",
    "\\(",
    "\"a\"",
    "1",
    "0",
    "-1",
    "1e300",
    "|",
    ",",
    ":",
    ";",
    "//",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "<",
    "and",
    "or",
    "not",
    "if",
    "then",
    "elif",
    "else",
    "end",
    "try",
    "catch",
    "as",
    "reduce",
    "def",
    "empty",
    "error",
    "map(",
    "select(",
    "range(",
    "limit(",
    "path(",
    "del(",
    "walk(",
    "sort_by(",
    "test(",
    "gsub(",
    "fromjson",
    "tojson",
    "@json",
    "@base64d",
    "explode",
    "implode",
    "to_entries",
    "add",
    "#",
];

/// Parses and evaluates; says how much of the budget it used.
fn goes_through(source: &str, input: &Value) -> u64 {
    const STEPS: u64 = 20_000;
    let expression = match Expression::parse(source, &["n"]) {
        Ok(expression) => expression,
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= 20);
            for fault in faults {
                let span = &source[fault.span.clone()];
                assert!(!fault.message.is_empty(), "{source:?} {span:?}");
            }
            return 0;
        }
    };
    let mut budget = Budget::new(STEPS, STEPS);
    match expression.evaluate(input, &[("n", &json!(3))], &mut budget) {
        Ok(outputs) => {
            let length: usize = outputs.iter().map(|output| output.to_string().len()).sum();
            assert!(length <= 6 * MAX_WEIGHT, "{source}");
        }
        Err(Error::Steps(most)) => assert_eq!(most, STEPS),
        Err(Error::TotalSteps(_)) => panic!("{source}: one evaluation alone is no total"),
        Err(Error::Raised(_) | Error::Weight | Error::Depth) => {}
    }
    assert!(budget.used() <= STEPS, "{source}");
    budget.used()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_text_is_taken_or_refused(source in "\\PC{0,60}", letters in any::<String>()) {
        goes_through(&source, &json!(letters));
        goes_through(&letters, &json!(source));
    }

    #[test]
    fn any_tokens_are_taken_or_refused(
        tokens in prop::collection::vec(prop::sample::select(&TOKENS[..]), 1..14),
        is_spaced in any::<bool>(),
    ) {
        let source = tokens.join(if is_spaced { " " } else { "" });
        goes_through(&source, &json!({"a": [1, "x", {"a": null}], "b": "1"}));
    }
}
