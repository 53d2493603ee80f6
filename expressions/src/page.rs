//! The page of expressions, `docs/expressions.md`: each of its examples gives what the page says, each function that is
//! taken has an example, and the bounds are those of the code.
#![allow(clippy::unwrap_used, reason = "a test's helper fails its test")]

use crate::functions::FUNCTIONS;
use crate::{Budget, Expression, MAX_DEPTH, MAX_NESTING, MAX_SOURCE_BYTES, MAX_WEIGHT};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../docs/expressions.md");

/// The text between a fence of this language and the next fence, for each.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let begins = PAGE.split("```").skip(1).step_by(2);
    begins.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// The examples, each with what the page says that it does.
fn examples() -> Vec<(&'static str, &'static str)> {
    let lines = blocks("jq").flat_map(str::lines);
    let halves = lines.map(|line| line.rsplit_once(" #").unwrap_or_else(|| panic!("{line}")));
    halves
        .map(|(source, does)| (source.trim(), does.trim()))
        .collect()
}

/// What a text does with the input of the page, in the page's form.
fn does(source: &str, said: &str) -> Result<Vec<Value>, String> {
    let input: Value = serde_json::from_str(blocks("json").next().unwrap()).unwrap();
    let found = match Expression::parse(source, &["context"]) {
        Ok(expression) => {
            let context = json!({"limit": 50});
            let mut budget = Budget::new(1_000_000, 5_000_000);
            match expression.evaluate(&input, &[("context", &context)], &mut budget) {
                Ok(outputs) => return Ok(outputs),
                Err(error) => format!("fails: {error}"),
            }
        }
        Err(faults) => {
            let hint = faults[0].hint.clone().unwrap_or_default();
            format!("refused: {} {hint}", faults[0].message)
        }
    };
    // A page may leave out a part of a sentence.
    let (kind, part) = said.split_once(": ").unwrap_or((said, ""));
    match found.strip_prefix(kind) {
        Some(sentences) if sentences.contains(part) => Err(said.to_owned()),
        _ => Err(found),
    }
}

#[test]
fn each_example_gives_what_the_page_says() {
    let mut wrong = Vec::new();
    for (source, said) in examples() {
        let is_right = match does(source, said) {
            Ok(outputs) => {
                let texts: Vec<String> = outputs.iter().map(Value::to_string).collect();
                let expected = serde_json::from_str::<Vec<Value>>(&format!("[{said}]"));
                let is_right = expected.is_ok_and(|expected| expected == outputs);
                is_right.then_some(()).ok_or(texts.join(", "))
            }
            Err(found) => (found == said).then_some(()).ok_or(found),
        };
        if let Err(found) = is_right {
            wrong.push(format!("{source}\n    page: {said}\n    does: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_function_has_an_example() {
    let mut called = BTreeSet::new();
    for (source, _) in examples() {
        let Ok(expression) = Expression::parse(source, &["context"]) else {
            continue;
        };
        let tree = format!("{:?}", expression.root);
        for call in tree.split("Call(").skip(1) {
            called.insert(call.split(',').next().unwrap().to_owned());
        }
    }
    let missing: Vec<String> = FUNCTIONS
        .iter()
        .filter(|(_, _, function)| !called.contains(&format!("{function:?}")))
        .map(|(name, arity, _)| format!("{name}/{arity}"))
        .collect();
    assert_eq!(missing, [""; 0], "docs/expressions.md has no example");
}

#[test]
fn the_bounds_are_those_of_the_code() {
    for row in [
        format!(
            "| {},{} |",
            MAX_SOURCE_BYTES / 1000,
            MAX_SOURCE_BYTES % 1000
        ),
        format!("| {MAX_NESTING} |"),
        format!("| {MAX_DEPTH} |"),
        format!("| {} MiB |", MAX_WEIGHT / 1024 / 1024),
    ] {
        assert!(PAGE.contains(&row), "docs/expressions.md lacks {row}");
    }
}
