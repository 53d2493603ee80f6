//! What is taken, what is refused, and how that is said.

mod bounds;
mod taken;

use super::fault::{Code, FAULTS_MOST, Fault};
use super::unsupported::{CALLS, FIELDS, OTHERS};
use super::{check, examine};
use serde_json::{Value, json};
use std::fmt::Write;

/// A definition with these tasks.
fn with_tasks(tasks: &Value) -> Value {
    json!({
        "document": {"dsl": "1.0.3", "namespace": "tests", "name": "flow", "version": "1.0.0"},
        "do": tasks,
    })
}

/// A definition with this task.
fn with_task(task: &Value) -> Value {
    with_tasks(&json!([{"it": task}]))
}

/// Puts fields into an object, those of objects in it one by one.
fn patch(value: &mut Value, by: &Value) {
    match (value.as_object_mut(), by.as_object()) {
        (Some(fields), Some(by)) => {
            for (name, by) in by {
                patch(fields.entry(name).or_insert(Value::Null), by);
            }
        }
        _ => *value = by.clone(),
    }
}

fn line(fault: &Fault) -> String {
    let mut line = format!("  {} {}", fault.path, fault.code.name());
    if let Some(span) = fault.span {
        let _ = write!(line, " {}..{}", span.start, span.end);
    }
    let _ = write!(line, ": {}", fault.message);
    if let Some(hint) = &fault.hint {
        let _ = write!(line, "\n    {hint}");
    }
    line
}

/// The cases of `refused.jsonl`: what, and the definition.
fn refused() -> Vec<(String, Value)> {
    let lines = include_str!("refused.jsonl").lines();
    let cases = lines.map(|line| {
        let case: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let definition = if let Some(task) = case.get("task") {
            with_task(task)
        } else if let Some(tasks) = case.get("do") {
            with_tasks(tasks)
        } else if let Some(by) = case.get("patch") {
            let mut definition = with_task(&json!({"set": {}}));
            patch(&mut definition, by);
            definition
        } else {
            case["whole"].clone()
        };
        (case["what"].as_str().unwrap().to_owned(), definition)
    });
    cases.collect()
}

#[test]
fn what_is_refused_is_said() {
    let mut all = String::new();
    for (what, definition) in refused() {
        let faults = check(&definition).expect_err(&what);
        assert!(!faults.is_empty(), "{what}: refused without a fault");
        let _ = writeln!(all, "{what}");
        for fault in &faults {
            let _ = writeln!(all, "{}", line(fault));
            let is_sentence = |text: &str| text.ends_with(['.', '?', ']', '}']);
            assert!(is_sentence(&fault.message), "{what}: {}", fault.message);
        }
    }
    insta::assert_snapshot!("refused", all);
}

/// A sentence in the tables that no definition brings about would be a promise without a check.
#[test]
fn every_part_that_is_not_taken_is_refused_by_its_name() {
    let reports: Vec<_> = refused()
        .iter()
        .map(|(_, definition)| examine(definition))
        .collect();
    let said: Vec<&Fault> = reports.iter().flat_map(|report| &report.faults).collect();
    let fields = FIELDS.iter().map(|(_, _, sentence)| sentence);
    let all = fields.chain(CALLS.iter().chain(OTHERS).map(|(_, sentence)| sentence));
    for sentence in all {
        let is_said = said.iter().any(|fault| fault.message == *sentence);
        let is_warning = *sentence == super::unsupported::other("use.secrets");
        assert!(
            is_said || is_warning,
            "no line of refused.jsonl brings about: {sentence}"
        );
    }
}

#[test]
fn all_faults_are_told_at_once_up_to_a_bound() {
    let tasks: Vec<Value> = (0..30)
        .map(|n| json!({format!("t{n}"): {"sett": {}}}))
        .collect();
    let faults = check(&with_tasks(&json!(tasks))).unwrap_err();
    assert_eq!(faults.len(), FAULTS_MOST);
    assert_eq!(faults[1].path, "$.do[1].t1.sett");
    assert!(faults.iter().all(|fault| fault.code == Code::UnknownField));
    assert!(
        faults
            .iter()
            .all(|fault| fault.hint.as_deref() == Some("Did you mean `set`?"))
    );
}

#[test]
fn a_fault_is_written_for_programs() {
    let faults = check(&with_task(&json!({"if": "${ .a + $b }", "set": {}}))).unwrap_err();
    let written = serde_json::to_value(&faults).unwrap();
    assert_eq!(written[0]["path"], "$.do[0].it.if");
    assert_eq!(written[0]["code"], "bad-expression");
    assert_eq!(written[0]["span"], json!({"start": 8, "end": 10}));
    for fault in faults {
        assert_eq!(json!(fault.code), fault.code.name());
    }
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let mut definition = with_task(&json!({"call": "http", "with": {
        "method": "get", "endpoint": "https://example.com",
        "headers": {"Authorization": "Bearer abc"}, "body": "{{ .a }}"}}));
    patch(
        &mut definition,
        &json!({"use": {"secrets": ["a"], "functions": {"http": {"set": {}}}}}),
    );
    definition["do"][0]["it"]["call"] = json!("http:1.0.0@default");
    let report = examine(&definition);
    assert!(report.definition.is_some(), "{report:?}");
    let lines: Vec<String> = report.warnings.iter().map(line).collect();
    insta::assert_snapshot!("warnings", lines.join("\n"));
    definition["do"][0]["it"]["call"] = json!("http");
    let report = examine(&definition);
    let taken = "takes the place of the service's own";
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.message.contains(taken))
    );
}

#[test]
fn the_page_lists_what_is_refused() {
    let mut table = String::from("| not supported | what is said |\n|---|---|\n");
    for (part, name, sentence) in FIELDS {
        let _ = writeln!(table, "| `{name}`{} | {sentence} |", part.place());
    }
    for (name, sentence) in CALLS {
        let _ = writeln!(table, "| `call: {name}` | {sentence} |");
    }
    for (_, sentence) in OTHERS {
        let _ = writeln!(table, "| | {sentence} |");
    }
    crate::config::generated::part("docs/flows.md", "refused", &table, "flows::");
}

/// The features of the language are data: the tests of running flows run what the page calls taken.
#[test]
fn the_page_lists_the_features_of_the_language() {
    let mut table = String::from("| feature | case | |\n|---|---|---|\n");
    for line in include_str!("../../../../tests/it/flow_runs/features.jsonl").lines() {
        let feature: Value = serde_json::from_str(line).unwrap();
        let text = |field: &str| feature[field].as_str();
        let is_taken = text("refused").map_or("taken", |_| "refused");
        let (name, case) = (text("feature").unwrap(), text("case").unwrap());
        let _ = writeln!(table, "| {name} | {case} | {is_taken} |");
    }
    crate::config::generated::part("docs/flows.md", "features", &table, "flows::");
}
