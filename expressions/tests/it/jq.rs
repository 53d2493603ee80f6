//! Values beside those of the command `jq`: examples, and programs made at random from our grammar.

use std::io::Write;
use std::process::{Command, Stdio};

use expressions::Error;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::evaluate;

/// What a program came to.
#[derive(Debug)]
enum Outcome {
    PutOut(Vec<Value>),
    Raised,
    /// It has no form that `jq` takes: `jq` calculates with constants when it reads them.
    Refused,
}

/// What `jq` makes of programs. They share a process, until one of them is refused.
fn jq(programs: &[String], input: &Value) -> Vec<Outcome> {
    if let Some(outcomes) = jq_together(programs, input) {
        return outcomes;
    }
    if programs.len() == 1 {
        return vec![Outcome::Refused];
    }
    let (first, second) = programs.split_at(programs.len() / 2);
    let mut outcomes = jq(first, input);
    outcomes.append(&mut jq(second, input));
    outcomes
}

fn jq_together(programs: &[String], input: &Value) -> Option<Vec<Outcome>> {
    const DOES_NOT_COMPILE: i32 = 3;
    let each = programs
        .iter()
        .map(|program| format!("(try [[({program})]] catch null)"));
    let whole = format!(
        "{{order: {{id: \"o-1\", amount: 42}}}} as $context | 7 as $n | {}",
        each.collect::<Vec<_>>().join(",\n")
    );
    let mut child = Command::new("jq")
        .args(["-c", &whole])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("The tests of values need the command jq; install the package jq.");
    let mut pipe = child.stdin.take().unwrap();
    // A program that is refused is not waited for.
    drop(pipe.write_all(input.to_string().as_bytes()));
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(DOES_NOT_COMPILE) {
        return None;
    }
    assert!(complaint.is_empty(), "{complaint}\n{whole}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let outcomes: Vec<Outcome> = lines
        .lines()
        .map(|line| match serde_json::from_str(line).unwrap() {
            Value::Array(mut outer) => match outer.remove(0) {
                Value::Array(outputs) => Outcome::PutOut(outputs),
                other => panic!("{other}"),
            },
            _ => Outcome::Raised,
        })
        .collect();
    assert_eq!(outcomes.len(), programs.len(), "{whole}");
    Some(outcomes)
}

/// Numbers by their value: jq knows doubles alone, and writes 1.0 where we keep it.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => ours == theirs,
    }
}

/// What differs. An example that `jq` refuses must be an error; a random program may have caught that.
fn differences(programs: &[String], input: &Value, may_be_refused: bool) -> Vec<String> {
    let theirs = jq(programs, input);
    let pairs = programs.iter().zip(theirs);
    pairs
        .filter_map(|(program, theirs)| {
            let ours = evaluate(program, input);
            let is_same = match (&ours, &theirs) {
                (Ok(ours), Outcome::PutOut(theirs)) => {
                    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
                }
                (Err(Error::Raised(_)), Outcome::Raised | Outcome::Refused) => true,
                (_, Outcome::Refused) => may_be_refused,
                _ => false,
            };
            (!is_same).then(|| format!("{program}\n  ours  {ours:?}\n  jq    {theirs:?}"))
        })
        .collect()
}

fn input() -> Value {
    json!({
        "a": {"b": [1, 2.5, -3], "c": "text", "d": null},
        "items": [
            {"n": 3, "ok": true, "s": "x,y"}, {"n": 1, "ok": false, "s": ""},
            {"n": 2, "ok": true, "s": "é😀b"}, {"n": 1, "ok": null, "s": "x"}
        ],
        "e": [], "o": {}, "t": "Hello, wörld 12 and 345", "f": false,
        "nested": [[1, [2, [3]]], [], [4]]
    })
}

#[test]
fn examples_have_the_values_of_jq() {
    let programs: Vec<String> = include_str!("programs.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    assert!(programs.len() > 250, "{}", programs.len());
    let told = differences(&programs, &input(), false);
    assert!(
        told.is_empty(),
        "{} of {}:\n{}",
        told.len(),
        programs.len(),
        told.join("\n")
    );
}

/// What random programs are made of.
const LEAVES: [&str; 54] = [
    ".",
    "null",
    "true",
    "false",
    "3",
    "1",
    "2",
    "-1",
    "2.5",
    "\"x\"",
    "\"\"",
    "[]",
    "{}",
    ".a",
    ".a.b",
    ".a.c",
    ".items",
    ".items[0]",
    ".items[]",
    ".nested",
    ".t",
    ".[]?",
    "..",
    "$n",
    "$context.order",
    "empty",
    "[1,2,3]",
    "{a:1,b:{c:2}}",
    "[keys?][]",
    "[length?][]",
    "type",
    "error(\"e\")",
    ".a[\"b\"]?",
    ".[0]?",
    ".[1:]?",
    "(1,2)",
    "tojson",
    "not",
    "[to_entries?][]",
    "[add?][]",
    "[sort?][]",
    "[unique?][]",
    "[arrays | reverse][]",
    "[flatten?][]",
    "[min?][]",
    "[max?][]",
    "tostring",
    "[tonumber?][]",
    "[ascii_upcase?][]",
    "paths",
    "[first?][]",
    "[last?][]",
    "[any?][]",
    "[all?][]",
];

/// What is built around a program, which stands at `§`.
const SHAPES: [&str; 27] = [
    "[§]",
    "[(§)?][]",
    "[try (§) catch \"caught\"][]",
    "{a: (§)}",
    "{(\"k\", \"l\"): (§)}",
    "[map(§)?][]",
    "select(§)",
    "[.[]? | (§)]",
    "[sort_by(§)?][]",
    "[group_by(§)?][]",
    "[unique_by(§)?][]",
    "[min_by(§)?][]",
    "[max_by(§)?][]",
    "first(§)",
    "[limit(2; §)]",
    "[.[]? | (§)] | any, all",
    "isempty(§)",
    "\"<\\(§)>\"",
    "(§) as $x | [$x, $n]",
    "(§) as [$x, {a: $y}] | [$x, $y]",
    "[(§) | tostring]",
    "(§) | tojson | fromjson",
    "[range(0; 3)] | map(§)",
    "[has(\"a\")?] | (§)",
    "[(§)] | add",
    "[[(§)] | contains([1])?][]",
    "(§) | @base64",
];

/// A program made of a leaf and what can be built around it. What catches errors stands in an array: up to
/// `jq` 1.6 it catches those of what comes after it, too.
fn program() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&LEAVES[..]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", " and ", " or ", " // ", ",", "|",
        ]);
        let wrapped = prop::sample::select(&SHAPES[..]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(a, op, b)| format!("(({a}){op}({b}))")),
            (inner.clone(), wrapped).prop_map(|(a, shape)| shape.replace('§', &a)),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("if ({a}) then ({b}) else ({c}) end")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[({a}), ({b})] | sort")),
        ]
    })
}

#[test]
fn random_programs_have_the_values_of_jq() {
    // The same programs every time, so that a failure can be repeated.
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[1; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let batch = prop::collection::vec(program(), 40);
    for _ in 0..25 {
        let programs = batch.new_tree(&mut runner).unwrap().current();
        let told = differences(&programs, &input(), true);
        assert!(told.is_empty(), "{}", told.join("\n"));
    }
}
