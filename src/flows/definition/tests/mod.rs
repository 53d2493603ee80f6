//! What is taken, what is refused, and how that is said.

mod bounds;
mod guardrails;
mod taken;

use super::fault::{Code, FAULTS_MOST, Fault};
use super::unsupported::{CALLS, FIELDS, OTHERS};
use super::{check, examine, graph};
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
fn a_source_of_as_that_older_versions_of_jq_read_otherwise_is_a_warning() {
    let text = "${ .price * .qty as $sum | $sum }";
    let report = examine(&with_task(&json!({"set": {"total": text}})));
    assert!(report.definition.is_some(), "{report:?}");
    let [warning] = report.warnings.as_slice() else {
        panic!("{:?}", report.warnings);
    };
    assert_eq!(warning.path, "$.do[0].it.set.total");
    let span = warning.span.unwrap();
    assert_eq!(&text[span.start..span.end], ".price * .qty");
    let text = "${ (.price * .qty) as $sum | $sum }";
    let report = examine(&with_task(&json!({"set": {"total": text}})));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}

/// The places and sentences of the warnings of tasks that are taken.
fn warned(tasks: &Value) -> Vec<String> {
    let report = examine(&with_tasks(tasks));
    assert!(report.definition.is_some(), "{report:?}");
    let warnings = report.warnings.iter();
    warnings
        .map(|one| format!("{} {}: {}", one.path, one.code.name(), one.message))
        .collect()
}

#[test]
fn a_task_that_nothing_leads_to_is_a_warning() {
    let never = "Nothing leads to this task, so it never runs.";
    let b = json!({"b": {"set": {}}});
    for first in [
        json!({"set": {}, "then": "end"}),
        json!({"raise": {"error": {"type": "t", "status": 400}}}),
        json!({"switch": [{"all": {"then": "exit"}}]}),
    ] {
        let tasks = json!([{"a": first}, b]);
        assert_eq!(warned(&tasks), [format!("$.do[1].b unreachable: {never}")]);
        // A skipped task leads to the next one.
        let mut guarded = first.clone();
        guarded["if"] = json!(".bad");
        assert_eq!(warned(&json!([{"a": guarded}, b])), [""; 0], "{guarded}");
    }
}

#[test]
fn a_condition_that_looks_for_the_error_in_its_input_is_a_warning() {
    let of = |catch: Value| warned(&json!([{"t": {"try": [{"a": {"set": {}}}], "catch": catch}}]));
    let said = "bad-expression: `.` is the input of the `try` here, not the error.";
    for field in ["when", "exceptWhen"] {
        let at = format!("$.do[0].t.catch.{field} {said}");
        assert_eq!(
            of(json!({field: ".status == 503"})),
            std::slice::from_ref(&at)
        );
        assert_eq!(of(json!({"as": "e", field: "${ .status == 503 }"})), [at]);
        let at = format!("$.do[0].t.catch.retry.{field} {said}");
        assert_eq!(of(json!({"retry": {field: ".status == 503"}})), [at]);
        for right in [
            "$error.status == 503",
            "$error | .status == 503",
            "true",
            "$context.n < 3",
        ] {
            assert_eq!(of(json!({field: right})), [""; 0], "{right}");
        }
        assert_eq!(of(json!({"as": "e", field: ".n == $e.status"})), [""; 0]);
    }
}

#[test]
fn a_type_that_is_caught_and_never_raised_is_a_warning() {
    let catches = |kind: &str| {
        let catch = json!({"errors": {"with": {"type": kind}}});
        json!({"t": {"try": [{"a": {"set": {}}}], "catch": catch}})
    };
    let of = |kind: &str| warned(&json!([catches(kind)]));
    for never in [
        "communicaton",
        "https://serverlessworkflow.io/errors/not-found",
        "https://serverlessworkflow.io/spec/1.0.0/errors/authentication",
        "https://serverlessworkflow.io/dsl/errors/types/mine",
    ] {
        let said = format!("bad-value: Nothing raises an error of the type `{never}`.");
        assert_eq!(
            of(never),
            [format!("$.do[0].t.catch.errors.with.type {said}")]
        );
        // What is raised here, or by another flow, may be it.
        let raise = json!({"r": {"if": ".a", "raise": {"error": {"type": never, "status": 500}}}});
        assert_eq!(warned(&json!([raise, catches(never)])), [""; 0]);
        let run = json!({"r": {"run": {"workflow": {"namespace": "a", "name": "b", "version": "1.0.0"}}}});
        assert_eq!(warned(&json!([run, catches(never)])), [""; 0]);
    }
    for known in [
        "communication",
        "https://serverlessworkflow.io/spec/1.0.0/errors/timeout",
        "https://serverlessworkflow.io/dsl/errors/types/communication",
        "https://example.com/mine",
    ] {
        assert_eq!(of(known), [""; 0], "{known}");
    }
}

#[test]
fn a_field_that_no_variable_has_is_a_warning() {
    for (source, warning) in [
        (
            "$workflow.name",
            Some("`$workflow` has no field `name`: this is null."),
        ),
        (
            "$task.output",
            Some("`$task` has no field `output`: this is null."),
        ),
        (
            "$runtime.env",
            Some("`$runtime` has no field `env`: this is null."),
        ),
        ("$workflow.definition.document.name", None),
        ("$task.input.a, $task.definition", None),
        ("$input.anything", None),
    ] {
        let said: Vec<String> = warning
            .into_iter()
            .map(|said| format!("$.do[0].it.set.a bad-expression: {said}"))
            .collect();
        let set = json!([{"it": {"set": {"a": format!("${{ {source} }}")}}}]);
        assert_eq!(warned(&set), said, "{source}");
    }
    let handles = |field: &str| {
        let tell = json!([{"tell": {"set": {"a": format!("${{ $error.{field} }}")}}}]);
        warned(&json!([{"t": {"try": [{"a": {"set": {}}}], "catch": {"do": tell}}}]))
    };
    assert_eq!(handles("outcome"), [""; 0]);
    assert!(handles("message")[0].ends_with("`$error` has no field `message`: this is null."));
    // A loop's own variable may have any.
    let each = json!([{"l": {"for": {"each": "error", "in": "."}, "do": [{"a": {"set": {"a": "${ $error.message }"}}}]}}]);
    assert_eq!(warned(&each), [""; 0]);
}

#[test]
fn a_definition_is_kept_only_if_an_expression_reads_it() {
    let of = |source: &str| {
        let tasks = json!([{"it": {"set": {"a": format!("${{ {source} }}")}}}]);
        check(&with_tasks(&tasks)).unwrap().source.is_some()
    };
    assert!(of("$workflow.definition") && of("$task.definition.set") && of("$workflow | keys"));
    assert!(!of("$workflow.id") && !of("$task.input") && !of(".definition"));
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
