//! Texts that nobody would write: each is taken or refused, and ends by its budget.

use expressions::{Budget, Error, Expression, MAX_WEIGHT};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

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

/// Programs of the comparison with `jq`, cut and joined anew.
const CORPUS: &str = include_str!("programs.txt");

/// The seconds that the next test takes: `make soak` gives it more.
#[allow(clippy::disallowed_methods, reason = "tests have no settings")]
fn seconds() -> u64 {
    let given = std::env::var("EXPRESSIONS_FUZZ_SECONDS");
    given.map_or(2, |given| given.parse().unwrap())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % most
    }

    /// A part of a text, between any of its letters.
    fn part<'t>(&mut self, text: &'t str) -> &'t str {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let ends = [ends, vec![text.len()]].concat();
        let (a, b) = (ends[self.below(ends.len())], ends[self.below(ends.len())]);
        &text[a.min(b)..a.max(b)]
    }
}

/// Every fault of this kind shows the text with it: it goes into `programs.txt` or `budgets.rs`.
#[test]
fn programs_that_are_cut_and_joined_are_taken_or_refused() {
    let programs: Vec<&str> = CORPUS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let begin = std::time::Instant::now();
    let mut random = Random(RandomState::new().build_hasher().finish());
    let input = json!({"a": {"b": [1, 2, 3], "c": "x"}, "t": "text", "items": [{"n": 1, "s": "a"}], "n": null});
    while begin.elapsed().as_secs() < seconds() {
        let mut source = String::new();
        for _ in 0..=random.below(4) {
            let program = programs[random.below(programs.len())];
            let is_whole = random.below(3) == 0;
            source.push_str(if is_whole {
                program
            } else {
                random.part(program)
            });
            source
                .push_str([" ", "|", ",", "", TOKENS[random.below(TOKENS.len())]][random.below(5)]);
        }
        let again = source.clone();
        let ended = std::panic::catch_unwind(|| goes_through(&again, &input));
        assert!(ended.is_ok(), "{source}");
    }
}
