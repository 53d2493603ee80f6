//! No test sleeps, in Rust or in a script: each harness has a helper that looks again and again until its deadline, and what
//! lets time pass on purpose (a random moment, the pace of a load) has one that says so.
//!
//! Benchmarks are left out: what they measure is time.

use std::collections::BTreeSet;

use crate::hold;
use crate::source::{self, Source, is_word, line_of};

/// The functions that may sleep: file and name.
const HELPERS: [(&str, &str); 13] = [
    ("jobs/tests/it/harness.rs", "holds_within"),
    ("jobs/tests/it/harness.rs", "take_a_moment"),
    ("tests/cli/harness.rs", "eventually"),
    ("tests/cluster/main.rs", "wait_until"),
    ("tests/crash/random.rs", "let_pass"),
    ("tests/crash/wait.rs", "moment"),
    ("tests/crash/wait.rs", "until_due"),
    ("tests/door/harness.rs", "moment"),
    ("tests/it/harness/identity_provider.rs", "linger"),
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
            let scripts = if is_script(file) {
                waits_of(file)
            } else {
                Vec::new()
            };
            sleeps(file)
                .into_iter()
                .chain(scripts)
                .map(|(name, _)| (file.path.as_str(), name))
        })
        .collect();
    let of_tree = HELPERS.iter().filter(|(path, _)| *path != "tests/a.rs");
    of_tree
        .chain(&SCRIPTS)
        .filter(|helper| !there.contains(*helper))
        .map(|(path, name)| format!("{path}: {name}"))
        .collect()
}

/// The functions of scripts that may sleep: file and name. Each looks again and again until a deadline, but for those of which
/// something else is said.
const SCRIPTS: [(&str, &str); 18] = [
    // The pace of a server that says nothing but that it lives.
    ("clients/python/tests/scripted.py", "beats"),
    ("clients/python/tests/server/on_server.py", "eventually"),
    // A program that is so slow that it is killed in its middle.
    (
        "clients/python/tests/server/on_server.py",
        "test_a_program_that_is_killed_while_it_follows_goes_on_where_it_was",
    ),
    ("clients/python/tests/test_following.py", "_eventually"),
    ("clients/typescript/test/support.js", "eventually"),
    ("tests/console/browser.mjs", "settled"),
    ("tests/console/look-up.mjs", "eventually"),
    ("tests/console/permit.test.mjs", "isOfferedLater"),
    ("tests/install/host.py", "eventually"),
    ("tests/it/provider_sign_in/browser.mjs", "eventually"),
    ("tests/show/browsers.py", "ends_elsewhere"),
    ("tests/show/client_story.py", "first"),
    ("tests/show/flows.py", "send"),
    // The pauses of a recording.
    ("tests/show/model_replay.py", "one"),
    ("tests/show/parts.py", "eventually"),
    ("tests/soak/failover.py", "follow"),
    ("tests/soak/failover.py", "until_answered"),
    ("tests/soak/failover.py", "waited"),
];

/// Scripts of tests, without the benchmarks.
fn is_script(file: &Source) -> bool {
    let path = &file.path;
    let is_of_tests = path.starts_with("tests/")
        || path.starts_with("clients/") && (path.contains("/test/") || path.contains("/tests/"));
    let ends = [".js", ".mjs", ".py"].iter().any(|end| path.ends_with(end));
    ends && is_of_tests && !path.starts_with("tests/bench/")
}

/// Whether a line waits for a time: it calls `sleep`, a page's `waitForTimeout`, or what Node's timers promise, or a timer of it
/// settles a promise. A timer that does something else may be the end of a wait.
fn waits(line: &str) -> bool {
    let code = line.trim_start();
    if ["#", "//", "*", "/*"]
        .iter()
        .any(|mark| code.starts_with(mark))
    {
        return false;
    }
    let calls = |name: &str| {
        code.match_indices(name).any(|(at, _)| {
            !code[..at].ends_with(is_word) && code[at + name.len()..].starts_with('(')
        })
    };
    let settles = code.match_indices("setTimeout(").any(|(at, call)| {
        let settled = code[at + call.len()..].split(|c| !is_word(c)).next();
        let taken = code[..at].rsplit_once("new Promise(");
        let taken = taken.map(|(_, rest)| rest.trim_start_matches('('));
        taken.is_some_and(|rest| rest.split(|c| !is_word(c)).next() == settled)
    });
    calls("sleep") || calls("waitForTimeout") || code.contains("timers/promises") || settles
}

/// The function that a line begins, if it does: `def name(`, `function name(`, `const name = (…) =>`.
fn begins(line: &str) -> Option<&str> {
    let code = line.trim_start().trim_start_matches("export ");
    let mark = if code.starts_with("def ") || code.starts_with("async def ") {
        "def "
    } else if code.starts_with("const ") && code.contains("=>") {
        "const "
    } else {
        "function "
    };
    let (_, rest) = code.split_once(mark)?;
    rest.split(|c| !is_word(c)).next()
}

/// The function that holds the line: the nearest one that begins further to the left, or in the line itself.
fn holder<'a>(lines: &[&'a str], at: usize) -> &'a str {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut left = indent(lines[at]) + 1;
    for line in lines[..=at].iter().rev() {
        if line.trim().is_empty() || indent(line) >= left {
            continue;
        }
        left = indent(line);
        if let Some(name) = begins(line) {
            return name;
        }
    }
    ""
}

/// The waits of a script: the function that each stands in, and its line.
fn waits_of(file: &Source) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = file.text.lines().collect();
    (0..lines.len())
        .filter(|at| waits(lines[*at]))
        .map(|at| (holder(&lines, at), at + 1))
        .collect()
}

fn waiting(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| is_script(file)) {
        for (name, line) in waits_of(file) {
            if !SCRIPTS.contains(&(file.path.as_str(), name)) {
                faults.push(format!("{}:{line}: in {name}", file.path));
            }
        }
    }
    faults
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
        &[sleeping(&repository), waiting(&repository)].concat(),
        "These tests sleep. Wait for an event, with the harness's helper that has a deadline. Where nothing is to happen, \
         wait for something that must come later.",
    );
    hold(
        &gone(&repository),
        "Take these helpers out of tests/rules/sleeps.rs.",
    );
}

#[test]
fn a_script_that_waits_for_a_time_is_found() {
    let browser = "export async function settled(page) {\n  for (;;) {\n    await page.waitForTimeout(20);\n  }\n}\n\
        story(\"a\", async (page) => {\n  const a = 1;\n  await page.waitForTimeout(500);\n\
        \x20 await new Promise((next) => setTimeout(next, 100));\n  await new Promise(next => setTimeout(next, 100));\n\
        \x20 // waitForTimeout(1)\n  const late = new Promise((_, failed) => setTimeout(failed, 600));\n\
        \x20 setTimeout(() => line.write(a), 5);\n});\nimport { setTimeout } from \"node:timers/promises\";\n\
        const pause = (ms) => new Promise((done) => setTimeout(done, ms));\n";
    let plain = "class A:\n    def waits(self):\n        if a:\n            time.sleep(3)\n\n        await asyncio.sleep(1)\n\
        \n    # time.sleep(1)\n    def asks(self):\n        self.sql(\"select pg_sleep(1)\")\n        event.wait(1)\n\ntime.sleep(1)\n";
    let files: Vec<Source> = [
        ("tests/console/browser.mjs", browser),
        ("tests/show/a.py", plain),
        ("clients/python/tests/a.py", "sleep(1)"),
        ("clients/typescript/test/a.js", "await sleep(1)"),
        ("clients/python/agent_runtime/a.py", plain),
        ("tests/bench/a.py", plain),
        ("static/console/a.js", browser),
    ]
    .iter()
    .map(|(path, text)| Source::new(path, text))
    .collect();
    assert_eq!(
        waiting(&files),
        [
            "tests/console/browser.mjs:8: in ",
            "tests/console/browser.mjs:9: in ",
            "tests/console/browser.mjs:10: in ",
            "tests/console/browser.mjs:15: in ",
            "tests/console/browser.mjs:16: in pause",
            "tests/show/a.py:4: in waits",
            "tests/show/a.py:6: in waits",
            "tests/show/a.py:13: in ",
            "clients/python/tests/a.py:1: in ",
            "clients/typescript/test/a.js:1: in ",
        ]
    );
}
