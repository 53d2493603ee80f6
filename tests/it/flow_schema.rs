//! Definitions of flows beside the published schema of the Open Workflow DSL 1.0.3, as the language's own package for
//! JavaScript asks it: what we take, the schema takes, so what the schema refuses, we refuse.
//!
//! Not here: what we refuse and the schema takes, which is the page of refusals (`flows::definition`).

use crate::harness::page::part;
use agent_runtime::flows::definition::check;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What stands in place of a value.
fn others() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(5),
        json!(-1),
        json!(2.5),
        json!(""),
        json!("a"),
        json!("${ . }"),
        json!("PT1S"),
        json!("end"),
        json!([]),
        json!([{}]),
        json!({}),
        json!({"a": 1}),
        json!({"seconds": 1}),
    ]
}

/// Every value that has another one somewhere inside, lacks one, or has one more.
fn changed(value: &Value) -> Vec<Value> {
    let mut all = others();
    match value {
        Value::Object(fields) => {
            let with = |name: &str, inner: Value| {
                let mut fields = fields.clone();
                fields.insert(name.to_owned(), inner);
                Value::Object(fields)
            };
            all.push(with("unheardOf", json!({})));
            for (name, inner) in fields {
                let mut without = fields.clone();
                without.shift_remove(name);
                all.push(Value::Object(without));
                all.extend(changed(inner).into_iter().map(|inner| with(name, inner)));
            }
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                let with = |inner: Vec<Value>| {
                    Value::from([&items[..at], &inner, &items[at + 1..]].concat())
                };
                all.push(with(Vec::new()));
                all.push(with(vec![inner.clone(), inner.clone()]));
                all.extend(changed(inner).into_iter().map(|inner| with(vec![inner])));
            }
        }
        _ => {}
    }
    all
}

fn of_lines(lines: &str) -> Vec<Value> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A definition with these fields.
fn with(more: &Map<String, Value>) -> Value {
    let mut definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "test", "name": "flow", "version": "1.0.0"},
        "do": [{"it": {"set": {"a": 1}}}],
    });
    for (name, value) in more {
        let field = &mut definition[name];
        match (field.as_object_mut(), value.as_object()) {
            (Some(field), Some(value)) => field.extend(value.clone()),
            _ => *field = value.clone(),
        }
    }
    definition
}

/// The definitions of the other tests: the features of the language, what is refused, and the refunds.
fn corpus() -> Vec<Value> {
    let mut all = vec![
        serde_json::from_str(include_str!("../show/refund.json")).unwrap(),
        serde_json::from_str(include_str!("../../src/flows/definition/tests/refund.json")).unwrap(),
    ];
    for feature in of_lines(include_str!("flow_runs/features.jsonl")) {
        let mut more = feature["more"].as_object().cloned().unwrap_or_default();
        more.insert("do".to_owned(), feature["do"].clone());
        let text = with(&more).to_string();
        let text = text.replace("SERVER", "https://example.com");
        all.push(serde_json::from_str(&text).unwrap());
    }
    for case in of_lines(include_str!(
        "../../src/flows/definition/tests/refused.jsonl"
    )) {
        let tasks = |tasks: &Value| with(json!({"do": tasks}).as_object().unwrap());
        all.push(match &case {
            case if case.get("task").is_some() => tasks(&json!([{"it": case["task"]}])),
            case if case.get("do").is_some() => tasks(&case["do"]),
            case if case.get("patch").is_some() => with(case["patch"].as_object().unwrap()),
            case => case["whole"].clone(),
        });
    }
    all
}

/// What the schema complains of in each definition.
fn complaints(definitions: &[Value]) -> Vec<Option<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/open-workflow/validate.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .arg(part("open-workflow/node_modules"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    let lines: Vec<String> = definitions.iter().map(Value::to_string).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complaints = said.lines().map(|line| serde_json::from_str(line).unwrap());
    let complaints: Vec<Option<String>> = complaints.collect();
    assert_eq!(complaints.len(), definitions.len(), "{:?}", output.status);
    complaints
}

/// What we take on purpose and the schema refuses, each with its reason, in a form that the schema takes.
fn loosened(value: &Value) -> Value {
    let Value::Object(fields) = value else {
        return match value {
            Value::Array(items) => items.iter().map(loosened).collect(),
            value => value.clone(),
        };
    };
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let mut loose: Map<String, Value> = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            // What it answers is empty: a branch or a handler that does nothing says so.
            "set" if is_empty(value) => json!({"a": 1}),
            // Data may be an array, so what makes data may be one.
            "as" | "from" if value.is_array() => json!({}),
            // A flow takes any JSON as its input.
            "input" if fields.contains_key("namespace") && !value.is_object() => json!({}),
            // An error that is raised may have the status of another one.
            "status" if fields.contains_key("type") && value.is_string() => json!(500),
            // What a function is given may be an expression as a whole.
            "with" if fields.contains_key("call") && value.is_string() => json!({}),
            // Of a flow without a version the live one runs.
            "workflow" if value.get("version").is_none() => {
                let mut workflow = loosened(value);
                workflow["version"] = json!("1.0.0");
                workflow
            }
            // Types of errors are compared as texts: those of the DSL by their paths, others whole.
            "type" if fields.contains_key("status") && value.is_string() => {
                json!("https://example.com/error")
            }
            _ => loosened(value),
        };
        loose.insert(name.clone(), value);
    }
    Value::Object(loose)
}

#[test]
fn what_we_take_the_published_schema_takes_but_for_what_is_loosened_here() {
    let corpus = corpus();
    let is_taken = |definition: &Value| check(definition).is_ok();
    let taken: Vec<Value> = corpus.into_iter().filter(is_taken).collect();
    assert!(taken.len() > 40, "{}", taken.len());
    let changed = taken.iter().flat_map(changed);
    let mut met = HashSet::new();
    let all: Vec<Value> = taken
        .iter()
        .cloned()
        .chain(changed)
        .filter(|definition| met.insert(definition.to_string()))
        .filter(is_taken)
        .collect();
    assert!(all.len() > 1_500, "{}", all.len());
    let asked: Vec<Value> = all.iter().map(loosened).collect();
    let refused: Vec<String> = all
        .iter()
        .zip(complaints(&asked))
        .filter_map(|(definition, complaint)| Some(format!("{definition}\n  {}", complaint?)))
        .collect();
    let told = refused.join("\n");
    assert!(
        refused.is_empty(),
        "{} of {}:\n{told}",
        refused.len(),
        all.len()
    );
}
