//! The corpus that is compared with other readers of the language: examples, and programs made at random from our
//! grammar. Whoever runs them is an [`Engine`].

use expressions::Error;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::{evaluate, variables};

/// What a program puts out for an input, or nothing where the program is refused. Programs that come here raise nothing.
pub(crate) type Engine = fn(&str, &Value) -> Option<Vec<Value>>;

/// What a program came to.
#[derive(Debug)]
enum Outcome {
    PutOut(Vec<Value>),
    Raised,
    /// The engine does not take it: `jq` calculates with constants when it reads them.
    Refused,
}

/// What an engine makes of programs. They are one, until one of them is refused.
fn outcomes(engine: Engine, programs: &[String], input: &Value) -> Vec<Outcome> {
    if let Some(outcomes) = outcomes_together(engine, programs, input) {
        return outcomes;
    }
    if programs.len() == 1 {
        return vec![Outcome::Refused];
    }
    let (first, second) = programs.split_at(programs.len() / 2);
    let mut all = outcomes(engine, first, input);
    all.append(&mut outcomes(engine, second, input));
    all
}

fn outcomes_together(engine: Engine, programs: &[String], input: &Value) -> Option<Vec<Outcome>> {
    let given = variables().map(|(name, value)| format!("{value} as ${name} | "));
    let each = programs
        .iter()
        .map(|program| format!("(try [[({program})]] catch null)"));
    let whole = given.concat() + &each.collect::<Vec<_>>().join(",\n");
    let put_out = engine(&whole, input)?.into_iter().map(|value| match value {
        Value::Array(mut outer) => match outer.remove(0) {
            Value::Array(outputs) => Outcome::PutOut(outputs),
            other => panic!("{other}"),
        },
        Value::Null => Outcome::Raised,
        // Outputs that are no JSON.
        other => Outcome::PutOut(vec![other]),
    });
    let outcomes: Vec<Outcome> = put_out.collect();
    assert_eq!(outcomes.len(), programs.len(), "{whole}");
    Some(outcomes)
}

/// Numbers by their value: jq knows doubles alone, and writes 1.0 where we keep it.
pub(crate) fn same(ours: &Value, theirs: &Value) -> bool {
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

/// A program whose outcome is another, and both outcomes.
pub(crate) struct Difference {
    pub(crate) program: String,
    pub(crate) outcomes: String,
}

/// What differs. An example that the engine refuses must be an error; a random program may have caught that.
pub(crate) fn differences(
    engine: Engine,
    programs: &[String],
    may_be_refused: bool,
) -> Vec<Difference> {
    let input = input();
    let theirs = outcomes(engine, programs, &input);
    let pairs = programs.iter().zip(theirs);
    pairs
        .filter_map(|(program, theirs)| {
            let ours = evaluate(program, &input);
            let is_same = match (&ours, &theirs) {
                (Ok(ours), Outcome::PutOut(theirs)) => {
                    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
                }
                (Err(Error::Raised(_)), Outcome::Raised | Outcome::Refused) => true,
                (_, Outcome::Refused) => may_be_refused,
                _ => false,
            };
            (!is_same).then(|| Difference {
                program: program.clone(),
                outcomes: format!("{program}\n  ours    {ours:?}\n  theirs  {theirs:?}"),
            })
        })
        .collect()
}

/// A sentence for a test that fails.
pub(crate) fn report(differences: &[Difference]) -> String {
    let each = differences
        .iter()
        .map(|difference| difference.outcomes.as_str());
    each.collect::<Vec<_>>().join("\n")
}

/// The lines of a list that are no comments.
pub(crate) fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// One program a line, as a person would write it.
pub(crate) fn examples() -> Vec<String> {
    let programs: Vec<String> = lines(include_str!("programs.txt"))
        .map(str::to_owned)
        .collect();
    assert!(programs.len() > 250, "{}", programs.len());
    programs
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

/// What random programs are made of.
const LEAVES: [&str; 57] = [
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
    "(1, error(\"x\"))",
    "(\"a\", error(\"y\"))",
    "[[1, 2], [3]]",
];

/// What is built around a program, which stands at `§`.
const SHAPES: [&str; 39] = [
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
    "1 + (§) as $x | [$x, $n]",
    "(§), . // (§) as $x | [$x]",
    "[limit(2; .[§])]",
    "[limit(2; .[(§):(§)])]",
    "[limit(3; .[(§)][(§)]?)]",
    "[limit(2; (§)[0, 1]?)]",
    "[limit((§); 1, 2)?]",
    "[limit(2; . as {(§): $x} | $x)]",
    "[path(first(.[§]))]",
    "[limit(2; path(.[(§)]?[(§)]?))]",
    "[limit(1; getpath([§]))]",
    "(§) as $x | -$x",
];

/// A program made of a leaf and what can be built around it.
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

/// Programs made at random, the same every time, so that a failure can be repeated.
pub(crate) fn random_programs() -> impl Iterator<Item = Vec<String>> {
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[1; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let batch = prop::collection::vec(program(), 40);
    (0..25).map(move |_| batch.new_tree(&mut runner).unwrap().current())
}
