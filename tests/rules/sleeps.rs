//! No test sleeps: each harness has a helper that looks again and again until its deadline, and what lets time pass on
//! purpose (a random moment, the pace of a load) has one that says so.
//!
//! Benchmarks are left out: what they measure is time.

use std::collections::BTreeSet;

use crate::hold;
use crate::source::{self, Source, is_word, line_of};

/// The functions that may sleep: file and name.
const HELPERS: [(&str, &str); 12] = [
    ("jobs/tests/it/harness.rs", "holds_within"),
    ("jobs/tests/it/harness.rs", "take_a_moment"),
    ("tests/cli/harness.rs", "eventually"),
    ("tests/cluster/main.rs", "wait_until"),
    ("tests/crash/random.rs", "let_pass"),
    ("tests/crash/wait.rs", "moment"),
    ("tests/crash/wait.rs", "until_due"),
    ("tests/door/harness.rs", "moment"),
    ("tests/it/harness/mod.rs", "let_time_pass"),
    ("tests/it/harness/mod.rs", "moment"),
    // A receiver whose answer never ends, a piece now and then.
    ("tests/it/harness/receiver.rs", "drip"),
    // What the rules are tried on.
    ("tests/a.rs", "helper"),
];

/// The sleeps of a file: the function that each stands in, and its line.
fn sleeps(file: &Source) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for word in ["sleep", "sleep_ms", "park_timeout"] {
        for (at, _) in file.bare.match_indices(word) {
            let before = &file.bare[..at];
            let after = file.bare[at + word.len()..].chars().next();
            if before.ends_with(is_word) || after.is_some_and(is_word) {
                continue;
            }
            let function = before.rsplit("fn ").next().unwrap_or("");
            let name = function.split(|c| !is_word(c)).next().unwrap_or("");
            found.push((name, line_of(&file.bare, at)));
        }
    }
    found
}

fn is_test(file: &Source) -> bool {
    let path = &file.path;
    path.ends_with(".rs")
        && (path.starts_with("tests/") || path.starts_with("jobs/tests/"))
        && !path.starts_with("tests/bench/")
}

fn sleeping(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| is_test(file)) {
        for (name, line) in sleeps(file) {
            if !HELPERS.contains(&(file.path.as_str(), name)) {
                faults.push(format!("{}:{line}: in {name}", file.path));
            }
        }
    }
    faults
}

/// Helpers that are there no longer.
fn gone(files: &[Source]) -> Vec<String> {
    let there: BTreeSet<(&str, &str)> = files
        .iter()
        .flat_map(|file| {
            sleeps(file)
                .into_iter()
                .map(|(name, _)| (file.path.as_str(), name))
        })
        .collect();
    let of_tree = HELPERS.iter().filter(|(path, _)| *path != "tests/a.rs");
    of_tree
        .filter(|helper| !there.contains(*helper))
        .map(|(path, name)| format!("{path}: {name}"))
        .collect()
}

#[test]
fn no_test_sleeps_but_in_its_harness() {
    let text = "fn helper() { thread::sleep(a); }\nfn other() {\n    std::thread::sleep(b);\n}\n\
        fn asleep() { q(\"select pg_sleep(1)\"); } // sleep\nfn f() { each(thread::park_timeout) }";
    let files: Vec<Source> = [
        ("tests/a.rs", text),
        ("tests/bench/a.rs", text),
        ("src/a.rs", text),
    ]
    .iter()
    .map(|(path, text)| Source::new(path, text))
    .collect();
    assert_eq!(
        sleeping(&files),
        ["tests/a.rs:3: in other", "tests/a.rs:6: in f"]
    );
    let repository = source::repository();
    hold(
        &sleeping(&repository),
        "These tests sleep. Wait for an event, with the harness's helper that has a deadline. Where nothing is to happen, \
         wait for something that must come later.",
    );
    hold(
        &gone(&repository),
        "Take these helpers out of tests/rules/sleeps.rs.",
    );
}
