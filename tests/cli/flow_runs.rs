//! `flow push`, `flows`, `run --flow`, `approvals`, `approve` and `reject`, as a person uses them one after the other.

use crate::harness::{Running, command, directory, eventually, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

type Variables<'v> = [(&'v str, &'v str); 2];

/// Asks a person, and says what became of it.
const ASKS: &str = "\
document: {dsl: '1.0.3', namespace: billing, name: refund, version: 1.0.0, title: Refund an order}
input:
  schema: {format: json, document: {type: object, required: [orderId]}}
do:
- ask:
    call: approval
    with: {title: Refund an order, requiredRole: finance, context: '${ . }', onReject: continue, expiresAfter: P1D}
- tell:
    set: {decided: '${ .decision }', why: '${ .comment }'}
";

#[test]
fn a_flow_is_pushed_run_and_decided() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [("XDG_DATA_HOME", home), ("HOME", "/nonexistent")];
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("Ctrl-C stops everything.");
    let (flow, input) = (
        dir.path().join("refund.yaml"),
        dir.path().join("order.json"),
    );
    fs::write(&flow, ASKS).unwrap();
    fs::write(&input, json!({"orderId": "A-17"}).to_string()).unwrap();
    let (flow, input) = (flow.to_str().unwrap(), input.to_str().unwrap());
    push(&variables, flow, dir.path());
    for (decide, status) in [("approve", "approved"), ("reject", "rejected")] {
        decides(&variables, input, decide, status);
    }
    let said = run(&["run", "--flow", "billing.refund"], &variables).expect(1);
    assert!(said.err.contains("input-invalid"), "{}", said.err);
    is_run_dry(&variables, input, dir.path());
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

fn push(variables: &Variables<'_>, flow: &str, dir: &Path) {
    let push = ["flow", "push", flow, "--project", "example", "--promote"];
    for _ in 0..2 {
        let said = run(&push, variables).expect(0);
        assert_eq!(said.err, "billing.refund 1.0.0 is pushed, and live.\n");
    }
    let changed = dir.join("changed.yaml");
    fs::write(&changed, ASKS.replace("P1D", "P2D")).unwrap();
    let push = [
        "flow",
        "push",
        changed.to_str().unwrap(),
        "--project",
        "example",
    ];
    let said = run(&push, variables).expect(1);
    assert!(said.err.contains("already-exists"), "{}", said.err);
    let said = run(&["flows"], variables).expect(0);
    assert!(said.out.contains("billing.refund"), "{}", said.out);
    assert!(said.out.contains("Refund an order"), "{}", said.out);
    let flows = run(&["flows", "--json"], variables).expect(0).json();
    assert_eq!(flows["liveVersion"], "1.0.0");
}

/// Nobody is asked, and the step answers what the file says.
fn is_run_dry(variables: &Variables<'_>, input: &str, dir: &Path) {
    let file = dir.join("answers.json");
    let answers = json!({"/do/0/ask": {"decision": "rejected", "comment": "By the file."}});
    fs::write(&file, answers.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let dry = [
        "run",
        "--flow",
        "billing.refund",
        "--input",
        input,
        "--dry-run",
        "--fixtures",
        file,
        "--models",
        "skip",
    ];
    let put_out = run(&dry, variables).expect(0).json();
    let expected = json!({"decided": "rejected", "why": "By the file."});
    assert_eq!(put_out, expected);
    fs::write(file, "{\"/do/7/none\": 1}").unwrap();
    let said = run(&dry, variables).expect(1);
    assert!(said.err.contains("no step at"), "{}", said.err);
    fs::write(file, "no JSON").unwrap();
    let said = run(&dry, variables).expect(1);
    assert!(
        said.err.contains("The file of fixtures is no JSON"),
        "{}",
        said.err
    );
}

fn decides(variables: &Variables<'_>, input: &str, decide: &str, status: &str) {
    let watch = ["run", "--flow", "billing.refund", "--input", input];
    let mut watching = Running::start(command(&watch, variables));
    let waiting = eventually("an approval that waits", || {
        let listed = run(&["approvals", "--json"], variables).expect(0).out;
        let waiting: Value = serde_json::from_str(listed.lines().next()?).ok()?;
        Some(waiting)
    });
    let id = waiting["id"].as_str().unwrap();
    let listed = run(&["approvals", "--role", "finance"], variables).expect(0);
    assert!(
        listed.out.contains(id) && listed.out.contains("Refund an order"),
        "{}",
        listed.out
    );
    let shown = run(&["approvals", "show", id], variables).expect(0);
    assert!(
        shown.out.contains("A-17") && shown.out.contains("opened"),
        "{}",
        shown.out
    );
    let said = run(&[decide, id, "--comment", "So it is."], variables).expect(0);
    assert_eq!(said.err, format!("Refund an order: {status}.\n"));
    let other = if decide == "approve" {
        "reject"
    } else {
        "approve"
    };
    let said = run(&[other, id], variables).expect(1);
    assert!(said.err.contains("approval-closed"), "{}", said.err);
    let put_out: Value = serde_json::from_str(&watching.line_with("decided")).unwrap();
    assert_eq!(watching.wait(), Some(0));
    assert_eq!(put_out, json!({"decided": status, "why": "So it is."}));
    let listed = ["runs", "--flow", "billing.refund", "--limit", "1"];
    let listed = run(&listed, variables).expect(0).out;
    assert!(listed.contains("billing.refund"), "{listed}");
    let run_id = waiting["runId"].as_str().unwrap();
    let shown = run(&["runs", "show", run_id], variables).expect(0).out;
    let is_named =
        |line: &str| line.contains("flow") && line.contains("billing.refund, version 1.0.0");
    assert!(shown.lines().any(is_named), "{shown}");
}
