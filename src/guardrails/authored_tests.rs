//! Each fault of a check as its author wrote it.

use super::OnError;
use super::{BuiltIn, Guardrail, Point, compile_all};
use serde_json::{Value, json};

/// A check that is taken, with these fields in the place of its own.
fn with(fields: &Value) -> Guardrail {
    let mut written = json!({"builtin": "pii", "at": ["output"], "action": "block"});
    for (name, value) in fields.as_object().unwrap() {
        written[name] = value.clone();
    }
    serde_json::from_value(written).unwrap()
}

#[track_caller]
fn refused(fields: &Value, path: &str) {
    let fault = with(fields).compile().unwrap_err();
    assert_eq!(fault.path, path, "{fields}");
    assert!(
        !fault.expected.is_empty() && !fault.expected.ends_with('.'),
        "{fault:?}"
    );
}

#[track_caller]
fn taken(fields: &Value) {
    if let Err(fault) = with(fields).compile() {
        panic!("{fields}: {fault:?}");
    }
}

#[test]
fn names_points_and_actions_fit_each_other() {
    for name in ["", "-a", "A", "a b", "é", &"a".repeat(65)] {
        refused(&json!({"name": name}), ".name");
    }
    for name in ["a", "0-a", &"a".repeat(64)] {
        taken(&json!({"name": name}));
    }
    refused(&json!({"at": []}), ".at");
    refused(&json!({"at": ["input", "output", "input"]}), ".at");
    taken(&json!({"at": ["input", "tool.arguments", "tool.result", "output"]}));
    for at in [json!(["output"]), json!(["tool.arguments", "input"])] {
        refused(&json!({"at": at, "action": "approve"}), ".at");
        let config = json!({"schema": {"type": "object"}});
        refused(
            &json!({"at": at, "builtin": "tool-arguments", "config": config}),
            ".at",
        );
    }
    let at = json!(["tool.arguments"]);
    taken(&json!({"at": at, "action": "approve"}));
    taken(&json!({"at": at, "action": "approve", "approval": {}}));
    refused(&json!({"at": at, "approval": {}}), ".approval");
}

#[test]
fn what_has_no_place_in_a_text_is_not_redacted() {
    let config = json!({"schema": {"type": "object"}});
    let mut arguments =
        json!({"builtin": "tool-arguments", "at": ["tool.arguments"], "config": config});
    taken(&arguments);
    arguments["action"] = json!("redact");
    refused(&arguments, ".action");
    let mut pattern =
        json!({"builtin": "pattern", "action": "redact", "config": {"patterns": ["a"]}});
    taken(&pattern);
    pattern["config"]["mustMatch"] = json!(true);
    refused(&pattern, ".action");
}

#[test]
fn what_becomes_of_a_block_fits_its_points() {
    for (on_block, points) in [
        ("fail", &["input", "tool.arguments", "output"][..]),
        ("tell", &["tool.arguments", "tool.result"]),
        ("retry", &["output"]),
    ] {
        for point in Point::ALL {
            let written = json!({"at": [point], "onBlock": on_block});
            match points.contains(&point.text()) {
                true => taken(&written),
                false => refused(&written, ".onBlock"),
            }
        }
    }
    refused(
        &json!({"at": ["input", "output"], "onBlock": "retry"}),
        ".onBlock",
    );
    let answers =
        |at: &[&str], answer: Value| json!({"at": at, "onBlock": "answer", "answer": answer});
    taken(&answers(&["input", "output"], json!("é".repeat(4_000))));
    refused(&answers(&["tool.result"], json!("No.")), ".onBlock");
    refused(&json!({"onBlock": "answer"}), ".answer");
    for bad in [String::new(), "a".repeat(4_001), "a\0".to_owned()] {
        refused(&answers(&["output"], json!(bad)), ".answer");
    }
    refused(&json!({"answer": "No."}), ".answer");
    refused(&json!({"onBlock": "fail", "answer": "No."}), ".answer");
    taken(&json!({"onBlock": "retry", "retries": 3}));
    refused(&json!({"onBlock": "retry", "retries": 0}), ".retries");
    refused(&json!({"onBlock": "retry", "retries": 4}), ".retries");
    refused(&json!({"retries": 1}), ".retries");
}

#[test]
fn each_kind_has_fields_of_its_own() {
    let own = [
        ("patterns", json!(["a"]), "pattern"),
        ("mustMatch", json!(false), "pattern"),
        ("kinds", json!(["card"]), "pii"),
        ("hosts", json!(["example.com"]), "links"),
        ("tool", json!("a"), "tool-arguments"),
        ("schema", json!({"type": "object"}), "tool-arguments"),
    ];
    for (field, value, of) in &own {
        for builtin in BuiltIn::ALL.iter().filter(|one| one.text() != *of) {
            let written =
                json!({"builtin": builtin, "at": ["tool.arguments"], "config": {*field: value}});
            refused(&written, &format!(".config.{field}"));
        }
    }
}

#[test]
fn what_a_check_looks_for_is_bounded() {
    let pattern = |patterns: Value| json!({"builtin": "pattern", "config": {"patterns": patterns}});
    refused(&json!({"builtin": "pattern"}), ".config.patterns");
    refused(&pattern(json!([])), ".config.patterns");
    refused(&pattern(json!(vec!["a"; 51])), ".config.patterns");
    taken(&pattern(json!(vec!["a"; 50])));
    for bad in ["", "(", "(?=a)", &"a".repeat(1001)] {
        refused(&pattern(json!(["a", bad])), ".config.patterns[1]");
    }
    refused(&json!({"config": {"kinds": []}}), ".config.kinds");
    let links = |hosts: Value| json!({"builtin": "links", "config": {"hosts": hosts}});
    taken(&links(json!([])));
    taken(&links(json!(["example.com", "*.example.com"])));
    taken(&links(json!(vec!["example.com"; 200])));
    refused(&links(json!(vec!["example.com"; 201])), ".config.hosts");
    refused(&links(json!(["a b"])), ".config.hosts");
    let arguments = |config: Value| json!({"builtin": "tool-arguments", "at": ["tool.arguments"], "config": config});
    let schema = json!({"type": "object"});
    refused(&arguments(json!({})), ".config.schema");
    refused(
        &arguments(
            json!({"schema": {"type": "object", "properties": {"a": {"$ref": "http://x/"}}}}),
        ),
        ".config.schema.properties.a.$ref",
    );
    for tool in ["", "a b", &"a".repeat(65)] {
        refused(
            &arguments(json!({"tool": tool, "schema": schema})),
            ".config.tool",
        );
    }
    taken(&arguments(json!({"tool": "a", "schema": schema})));
}

#[test]
fn a_fault_in_a_list_has_its_place() {
    let (good, bad) = (with(&json!({})), with(&json!({"retries": 1})));
    let fault = compile_all(&[good.clone(), bad]).unwrap_err();
    assert_eq!(fault.path, "[1].retries");
    assert_eq!(compile_all(&vec![good.clone(); 20]).unwrap().len(), 20);
    let fault = compile_all(&vec![good; 21]).unwrap_err();
    assert_eq!(fault.path, "");
}

#[test]
fn a_check_is_written_as_it_was_read() {
    let written = json!({"builtin": "pii", "at": ["output"], "action": "block"});
    let read: Guardrail = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(read.on_error, OnError::Block);
    assert_eq!(read.shown_name(), "pii");
    assert_eq!(serde_json::to_value(&read).unwrap(), written);
    for unknown in [
        json!({"pack": "weather", "name": "a", "at": ["output"], "action": "block"}),
        json!({"builtin": "pii", "at": ["output"], "action": "block", "mode": 1}),
        json!({"builtin": "pii", "at": ["output"], "action": "block", "config": {"mode": 1}}),
        json!({"builtin": "pii", "at": ["output"]}),
    ] {
        assert!(serde_json::from_value::<Guardrail>(unknown).is_err());
    }
}
