//! The tests of jq itself: what jq expects of a program beside what we make of it.
//!
//! Each program has the outputs that jq expects, or is refused for something that `jq-refused.txt` names, or its place
//! is listed in `jq-differences.txt` with the reason. The tests come with jq (`tests/setup/jq`), and are not ours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use expressions::{Budget, Expression, Fault};
use serde_json::Value;

use crate::corpus::{lines, same};
use crate::jq::installed;

const FILES: [&str; 7] = [
    "jq.test",
    "man.test",
    "onig.test",
    "manonig.test",
    "base64.test",
    "uri.test",
    "optional.test",
];

/// One test of jq.
struct Case {
    /// The file and the line of its program.
    place: String,
    program: String,
    input: String,
    /// `None`: jq does not take the program.
    outputs: Option<Vec<String>>,
}

#[derive(Default)]
struct Found {
    same: usize,
    refused_by_both: usize,
    /// The places that are refused for each name.
    refused: BTreeMap<String, Vec<String>>,
    /// The places that differ, each with what is expected and what was found.
    different: BTreeMap<String, String>,
}

fn is_skipped(line: &str) -> bool {
    let start = line.trim_start();
    start.is_empty() || start.starts_with('#')
}

fn cases(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(installed("tests").join(file)).unwrap();
    let mut numbered = text.lines().zip(1..).peekable();
    let mut cases = Vec::new();
    while let Some((line, number)) = numbered.next() {
        if is_skipped(line) {
            continue;
        }
        let is_failing = line.starts_with("%%FAIL");
        let program = if is_failing {
            numbered.next().unwrap().0
        } else {
            line
        };
        let mut rest = Vec::new();
        while let Some((line, _)) = numbered.next_if(|(line, _)| !is_skipped(line)) {
            rest.push(line.to_owned());
        }
        let input = if is_failing {
            "null".to_owned()
        } else {
            rest.remove(0)
        };
        cases.push(Case {
            place: format!("{file}:{number}"),
            program: program.to_owned(),
            input,
            outputs: (!is_failing).then_some(rest),
        });
    }
    cases
}

/// What a fault refuses by its name; a fault of grammar names nothing.
fn refused_name(fault: &Fault) -> Option<String> {
    let is_named = [
        "is not supported here",
        "There is no ",
        "assignments are not supported",
        "` takes ",
    ];
    if is_named.iter().any(|part| fault.message.contains(part)) {
        return fault.message.split('`').nth(1).map(str::to_owned);
    }
    let hint = fault.hint.as_deref();
    hint.filter(|hint| hint.contains("not supported"))
        .map(|_| "?//".to_owned())
}

impl Found {
    fn add(&mut self, case: Case) {
        let expression = match Expression::parse(&case.program, &[]) {
            Ok(expression) => expression,
            Err(faults) => return self.refuse(case, &faults),
        };
        let Some(expected) = case.outputs else {
            self.different
                .insert(case.place, format!("{}\n  jq refuses it", case.program));
            return;
        };
        let input: Value = match serde_json::from_str(&case.input) {
            Ok(input) => input,
            Err(error) => {
                self.different.insert(
                    case.place,
                    format!("{}\n  the input: {error}", case.program),
                );
                return;
            }
        };
        let ours = expression.evaluate(&input, &[], &mut Budget::new(1_000_000, 1_000_000));
        let theirs: Result<Vec<Value>, _> = expected
            .iter()
            .map(|line| serde_json::from_str(line))
            .collect();
        let is_same = match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
            }
            _ => false,
        };
        match is_same {
            true => self.same += 1,
            false => {
                let ours = ours.map(|ours| Value::from(ours).to_string());
                let told = format!(
                    "{}\n  input {}\n  jq   {expected:?}\n  ours {ours:?}",
                    case.program, case.input
                );
                self.different.insert(case.place, told);
            }
        }
    }

    fn refuse(&mut self, case: Case, faults: &[Fault]) {
        if case.outputs.is_none() {
            self.refused_by_both += 1;
            return;
        }
        let names: BTreeSet<String> = faults.iter().filter_map(refused_name).collect();
        if names.is_empty() {
            self.different.insert(
                case.place.clone(),
                format!("{}\n  ours {faults:?}", case.program),
            );
        }
        for name in names {
            self.refused
                .entry(name)
                .or_default()
                .push(case.place.clone());
        }
    }
}

static FOUND: LazyLock<Found> = LazyLock::new(|| {
    let mut found = Found::default();
    for case in FILES.iter().flat_map(|file| cases(file)) {
        found.add(case);
    }
    found
});

#[test]
fn the_tests_of_jq_hold_but_for_those_that_are_listed_with_a_reason() {
    let found = &*FOUND;
    let listed: BTreeSet<String> = lines(include_str!("jq-differences.txt"))
        .flat_map(|line| {
            let (file, numbers) = line.split_once(' ').unwrap();
            numbers
                .split(' ')
                .map(move |number| format!("{file}:{number}"))
        })
        .collect();
    let new: Vec<String> = found
        .different
        .iter()
        .filter(|(place, _)| !listed.contains(*place))
        .map(|(place, told)| format!("{place} {told}"))
        .collect();
    assert!(new.is_empty(), "{} differ:\n{}", new.len(), new.join("\n"));
    let gone = listed
        .iter()
        .filter(|place| !found.different.contains_key(*place));
    let gone: Vec<&String> = gone.collect();
    assert!(gone.is_empty(), "no difference any more: {gone:?}");
    let refused: BTreeSet<&String> = found.refused.values().flatten().collect();
    assert_eq!(
        (found.same, found.refused_by_both, refused.len()),
        (546, 16, 265)
    );
}

#[test]
fn what_is_refused_of_the_tests_of_jq_is_listed_by_name() {
    let refused = &FOUND.refused;
    let listed: BTreeSet<&str> = lines(include_str!("jq-refused.txt"))
        .flat_map(|line| line.split(' '))
        .collect();
    let names: BTreeSet<&str> = refused.keys().map(String::as_str).collect();
    let new: Vec<_> = names
        .difference(&listed)
        .map(|&name| (name, &refused[name]))
        .collect();
    assert!(new.is_empty(), "{new:?}");
    let gone: Vec<&&str> = listed.difference(&names).collect();
    assert!(gone.is_empty(), "not refused any more: {gone:?}");
}
