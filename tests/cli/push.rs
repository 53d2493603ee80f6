//! `agents push` and `tools push`: from files to a run, again without a change, and each fault with its place.

use crate::arguments::ask;
use crate::harness::{Running, command, directory, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

type Variables<'v> = [(&'v str, &'v str); 2];

/// Writes a file, and gives its path.
fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const TOOL: &str = "\
name: weather
description: Tells the weather.
argumentsSchema:
  type: object
  properties:
    place: {type: string}
  required: [place]
url: http://127.0.0.1:1/weather
timeoutMs: 2000
";

const AGENT: &str = "\
name: clerk
project: office
description: Decides about refunds.
modelProvider: example
model: scripted
instructions: |
  Decide.
tools: [weather]
limits: {maxSteps: 4}
overrides: [limits, parameters]
guardrails:
- {builtin: pii, at: [input], action: redact}
- {builtin: secrets, name: no-keys, at: [output], action: block}
outputSchema:
  type: object
  properties:
    decision: {enum: [refund, refuse]}
    amount: {type: number, minimum: 10}
  required: [decision, amount]
  additionalProperties: false
";

#[test]
fn agents_and_tools_are_made_from_files() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [("XDG_DATA_HOME", home), ("HOME", "/nonexistent")];
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("Ctrl-C stops everything.");
    let data = dir.path().join("agent-runtime");
    ask(&data, "POST", "/v1/projects", &json!({"name": "office"}));
    tools(dir.path(), &variables);
    agents(dir.path(), &variables);
    faults(dir.path(), &variables);
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

fn tools(dir: &Path, variables: &Variables<'_>) {
    let tool = file(dir, "weather.yaml", TOOL);
    let push = ["tools", "push", &tool, "--project", "office"];
    let said = run(&push, variables).expect(0);
    assert!(said.err.contains("weather is pushed"), "{}", said.err);
    let said = run(&push, variables).expect(0);
    assert!(said.err.contains("is there already"), "{}", said.err);
    let shown = run(&[&push[..], &["--json"]].concat(), variables).expect(0);
    assert_eq!(shown.json()["timeoutMs"], json!(2000));
    // A tool is never changed.
    let other = TOOL.replace("2000", "3000").replace("the weather", "it");
    let other = file(dir, "other.yaml", &other);
    let push = ["tools", "push", &other, "--project", "office"];
    let said = run(&push, variables).expect(1);
    for part in ["description, timeoutMs", "another name"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    let listed = run(&["tools", "--project", "office", "--json"], variables).expect(0);
    assert_eq!(listed.out.lines().count(), 1, "{}", listed.out);
}

fn agents(dir: &Path, variables: &Variables<'_>) {
    let agent = file(dir, "clerk.yaml", AGENT);
    let push = ["agents", "push", &agent];
    let said = run(&push, variables).expect(0);
    assert!(said.err.contains("clerk 0.1.0 is pushed."), "{}", said.err);
    let said = run(&push, variables).expect(0);
    let already = "clerk 0.1.0 is there already.";
    assert!(said.err.contains(already), "{}", said.err);
    // The scripted provider answers the schema with JSON that fits it.
    let ran = run(&["run", "clerk", "Refund A-1?"], variables).expect(0);
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(answer, json!({"decision": "refund", "amount": 10}));
    overrides(dir, variables);
    // What says something else is the next version; the description is the agent's.
    let changed = AGENT
        .replace("Decide.", "Decide at once.")
        .replace("refunds.", "money.");
    let changed = file(dir, "changed.yaml", &changed);
    let push = ["agents", "push", &changed, "--promote", "--json"];
    let pushed = run(&push, variables).expect(0).json();
    assert_eq!(pushed["liveVersion"], json!("0.1.1"));
    assert_eq!(pushed["description"], json!("Decides about money."));
    // A version that is named is never changed.
    let pinned = AGENT.replace("name: clerk", "name: clerk\nversion: 0.1.1");
    let pinned = file(dir, "pinned.yaml", &pinned);
    let said = run(&["agents", "push", &pinned], variables).expect(2);
    let place = format!("{pinned}:2:10: $.version: ");
    assert!(said.err.contains(&place), "{}", said.err);
    assert!(said.err.contains("raise the number"), "{}", said.err);
    let json = json!({"name": "clerk", "modelProvider": "example", "model": "scripted", "instructions": "a",
        "version": "2.0.0"});
    let json = file(dir, "clerk.json", &json.to_string());
    let push = ["agents", "push", &json, "--project", "office"];
    let said = run(&push, variables).expect(0);
    assert!(said.err.contains("clerk 2.0.0 is pushed."), "{}", said.err);
}

/// A run sets what the version allows, and nothing else.
fn overrides(dir: &Path, variables: &Variables<'_>) {
    let shown = run(&["agents", "show", "clerk"], variables).expect(0);
    assert!(
        shown.out.contains("runs may set  parameters, limits"),
        "{}",
        shown.out
    );
    assert!(
        shown.out.contains("guardrails    pii, no-keys"),
        "{}",
        shown.out
    );
    let set = file(
        dir,
        "set.json",
        r#"{"parameters": {"seed": 7}, "limits": {"maxSteps": 3}}"#,
    );
    let started = ["run", "clerk", "--overrides", &set, "--json", "Refund A-1?"];
    let ran = run(&started, variables).expect(0);
    let first: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    let id = first["data"]["id"].as_str().unwrap();
    let shown = run(&["runs", "show", id], variables).expect(0);
    let sets = r#"{"parameters":{"seed":7},"limits":{"maxSteps":3}}"#;
    assert!(shown.out.contains(sets), "{}", shown.out);
    for model in [
        &["--model", "scripted"][..],
        &["--model", "scripted", "--model-provider", "example"],
    ] {
        let refused = [&["run", "clerk"], model, &["Refund A-1?"]].concat();
        let said = run(&refused, variables).expect(1);
        assert!(said.err.contains("override-not-allowed"), "{}", said.err);
    }
    let list = file(dir, "list.json", "[]");
    let said = run(&["run", "clerk", "--overrides", &list, "Hi"], variables).expect(2);
    assert!(said.err.contains("no JSON object"), "{}", said.err);
}

/// Each fault has its line and its column, whoever finds it, and nothing is made.
fn faults(dir: &Path, variables: &Variables<'_>) {
    let count = || {
        let listed = run(&["agents", "--json"], variables).expect(0);
        listed.out.lines().count()
    };
    let before = count();
    let fresh = AGENT.replace("clerk", "fresh");
    for (name, text, code, parts) in [
        (
            "tool.yaml",
            fresh.replace("[weather]", "[weather, lottery]"),
            2,
            ["tool.yaml:8:18: $.tools[1]: ", "no tool named lottery"],
        ),
        (
            "provider.yaml",
            fresh.replace("Provider: example", "Provider: nobody"),
            2,
            [":4:16: $.modelProvider: ", "no model provider named nobody"],
        ),
        (
            "field.yaml",
            fresh.replace("model: scripted", "model: scripted\ncolour: red"),
            2,
            [":6:1: $.colour: ", "No field has this name"],
        ),
        (
            "syntax.yaml",
            fresh.replace("tools: [weather]", "tools: [weather"),
            2,
            ["syntax.yaml:", "no YAML"],
        ),
        (
            "missing.yaml",
            fresh.replace("model: scripted\n", ""),
            2,
            ["$: ", "The field model is missing"],
        ),
    ] {
        let path = file(dir, name, &text);
        let said = run(&["agents", "push", &path], variables).expect(code);
        for part in parts {
            assert!(said.err.contains(part), "{name}: {part}: {}", said.err);
        }
    }
    assert_eq!(count(), before, "nothing was made");
    let nowhere = file(dir, "nowhere.yaml", &fresh.replace("project: office\n", ""));
    let said = run(&["agents", "push", &nowhere], variables).expect(2);
    assert!(said.err.contains("--project"), "{}", said.err);
    // What the server alone knows is told at its place in the file, too.
    let bad = TOOL
        .replace("name: weather", "name: rain")
        .replace("2000", "0");
    let bad = file(dir, "rain.yaml", &bad);
    let said = run(&["tools", "push", &bad, "--project", "office"], variables).expect(1);
    for part in ["invalid-body", "rain.yaml:9:12: $.timeoutMs: "] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    let schema = fresh.replace("minimum: 10", "minimum: ten");
    let schema = file(dir, "schema.yaml", &schema);
    let said = run(&["agents", "push", &schema], variables).expect(1);
    assert!(said.err.contains("schema.yaml:1"), "{}", said.err);
    assert!(said.err.contains("$.outputSchema"), "{}", said.err);
}
