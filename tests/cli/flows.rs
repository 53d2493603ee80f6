//! `flow validate`, without a server.

use crate::harness::{directory, run, run_with_input};
use serde_json::Value;
use std::fs;

/// A definition with a slip in a name, one in an expression, one in a target, and a key in the text.
const WRONG: &str = "\
# Refunds.
document:
  dsl: '1.0.3'
  namespace: billing
  name: refund
  version: 1.2.0
do:
- order:
    call: tool
    wiht: {tool: orders_get}
- assess:
    set:
      größe: ${ \"ö\" + .a + $nobody }
      lines: |-
        ${ .a |
          $nothing }
    then: chekc
- check:
    call: http
    with:
      method: get
      endpoint: https://example.com
      headers: {Authorization: Bearer abc}
";

#[test]
fn faults_are_shown_with_their_lines() {
    let dir = directory();
    let file = dir.path().join("refund.yaml");
    fs::write(&file, WRONG).unwrap();
    let path = file.to_str().unwrap();
    let said = run(&["flow", "validate", path], &[]).expect(2);
    let shown = said.out.replace(path, "refund.yaml");
    let expected = "\
refund.yaml:8:3: fault: `with` is missing beside `call: tool`. [missing-field]
  |
8 | - order:
  |   ^^^^^
  at $.do[0].order

refund.yaml:10:5: fault: There is no field `wiht` here. [unknown-field]
   |
10 |     wiht: {tool: orders_get}
   |     ^^^^
   = Did you mean `with`?
   at $.do[0].order.wiht

refund.yaml:13:28: fault: There is no variable `$nobody`. [bad-expression]
   |
13 |       größe: ${ \"ö\" + .a + $nobody }
   |                            ^^^^^^^
   = Defined here: $context, $input, $task, $workflow, $runtime.
   at $.do[1].assess.set[\"größe\"]

refund.yaml:16:11: fault: There is no variable `$nothing`. [bad-expression]
   |
16 |           $nothing }
   |           ^^^^^^^^
   = Defined here: $context, $input, $task, $workflow, $runtime.
   at $.do[1].assess.set.lines

refund.yaml:17:11: fault: `then` leads to a task of the same list, and this one has no `chekc`. [unknown-target]
   |
17 |     then: chekc
   |           ^^^^^
   = Did you mean `check`?
   at $.do[1].assess.then

refund.yaml:23:32: warning: Everybody who may read the flow can read this secret. [bad-value]
   |
23 |       headers: {Authorization: Bearer abc}
   |                                ^^^^^^^^^^
   = Register a tool, which names its secrets.
   at $.do[2].check.with.headers.Authorization

refund.yaml: 5 faults
";
    assert_eq!(shown, expected);
    assert_eq!(said.err, "");
}

#[test]
fn a_program_reads_the_same_as_json() {
    let said = run_with_input(&["flow", "validate", "-", "--json"], WRONG).expect(2);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["faults"].as_array().unwrap().len(), 5);
    let slip = &report["faults"][1];
    assert_eq!(
        (slip["line"].as_u64(), slip["column"].as_u64()),
        (Some(10), Some(5))
    );
    assert_eq!(
        (&slip["code"], &slip["path"]),
        (&"unknown-field".into(), &"$.do[0].order.wiht".into())
    );
    assert_eq!(report["warnings"][0]["line"], 23);
}

#[test]
fn a_definition_that_is_valid_says_what_it_names() {
    let yaml = "{document: {dsl: 1.0.3, namespace: a, name: b, version: 0.1.0}, do: [x: {call: tool, with: {tool: t}}]}";
    let dir = directory();
    let file = dir.path().join("b.yml");
    fs::write(&file, yaml).unwrap();
    let path = file.to_str().unwrap();
    let said = run(&["flow", "validate", path], &[]).expect(0);
    let expected = "b.yml: valid, a.b 0.1.0\nIt names, for the server to find: tool t.\n";
    assert_eq!(said.out.replace(path, "b.yml"), expected);
    let said = run(&["flow", "validate", "--json", path], &[]).expect(0);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&report["flowId"], &report["version"]),
        (&"a.b".into(), &"0.1.0".into())
    );
    assert_eq!(report["references"][0]["name"], "t");
}

#[test]
fn a_text_that_cannot_be_read_is_shown_where_it_ends() {
    let of = |input: &str| {
        run_with_input(&["flow", "validate", "-"], input)
            .expect(2)
            .out
    };
    let json = of("{\n  \"do\": [,]\n}");
    assert!(
        json.starts_with("stdin:2:10: fault: This is no JSON: expected value. [bad-syntax]"),
        "{json}"
    );
    let twice = of("{\"do\": 1,\n \"do\": 2}");
    assert!(
        twice.starts_with("stdin:2:2: fault: The object has the field `do` twice."),
        "{twice}"
    );
    for (yaml, said) in [
        ("do: [", "This is no YAML"),
        (
            "a: 1\na: 2",
            "stdin:2:1: fault: The object has the field `a` twice.",
        ),
        ("a: &x 1\nb: *x", "stdin:2:4: fault: Aliases"),
        ("a: !secret x", "Tags"),
        ("a: 1\n---\nb: 2", "second document"),
        ("a: .inf", "no such number"),
        ("? [a]\n: b", "name of a field"),
    ] {
        let out = of(yaml);
        assert!(out.contains(said), "{yaml}: {out}");
    }
    let said = run(&["flow", "validate", "/nonexistent/flow.yaml"], &[]).expect(1);
    assert!(
        said.err.contains("/nonexistent/flow.yaml cannot be read"),
        "{}",
        said.err
    );
}
