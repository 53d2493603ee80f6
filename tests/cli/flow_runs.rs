//! `flow push`, `flows`, `run --flow`, `approvals`, `approve` and `reject`, as a person uses them one after the other.

use crate::arguments::ask;
use crate::harness::{Running, command, directory, eventually, run, run_with_input};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

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
    let receiver = tiny_http::Server::http("127.0.0.1:0").unwrap();
    std::thread::scope(|scope| {
        let called = scope.spawn(|| answers_with_its_arguments(&receiver));
        edits(&variables, dir.path(), &receiver);
        assert_eq!(called.join().unwrap(), json!({"amount": 3, "to": "Ada"}));
    });
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
    let one = format!("/v1/flows/{}", flows["id"].as_str().unwrap());
    let data = dir.join("agent-runtime");
    ask(&data, "POST", &format!("{one}/archive"), &json!({}));
    let said = run(&push, variables).expect(1);
    let remedy = format!("{one}/unarchive");
    assert!(said.err.contains(&remedy), "{}", said.err);
    ask(&data, "POST", &remedy, &json!({}));
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

/// The tool: answers one call, with what it was called with.
fn answers_with_its_arguments(receiver: &tiny_http::Server) -> Value {
    let call = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    let mut call = call.expect("the tool is called");
    let mut body = String::new();
    call.as_reader().read_to_string(&mut body).unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    let arguments = body["arguments"].clone();
    let json: tiny_http::Header = "content-type: application/json".parse().unwrap();
    let answer = tiny_http::Response::from_string(arguments.to_string()).with_header(json);
    call.respond(answer).unwrap();
    arguments
}

/// A flow whose only step calls a tool that asks a reviewer first.
fn pays(variables: &Variables<'_>, dir: &Path, receiver: &tiny_http::Server) {
    let flows = run(&["flows", "--json"], variables).expect(0).json();
    let tool = json!({
        "projectId": flows["projectId"],
        "name": "pay",
        "description": "Pays.",
        "url": format!("http://{}/pay", receiver.server_addr()),
        "argumentsSchema": {
            "type": "object",
            "required": ["amount"],
            "additionalProperties": false,
            "properties": {"amount": {"type": "integer", "maximum": 1000}, "to": {"type": "string"}},
        },
        "approval": {"title": "Pay", "requiredRole": "finance"},
    });
    ask(&dir.join("agent-runtime"), "POST", "/v1/tools", &tool);
    let arguments = json!({"amount": 500, "to": "Ada"});
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "billing", "name": "pay", "version": "1.0.0"},
        "do": [{"pay": {"call": "tool", "with": {"tool": "pay", "arguments": arguments}}}],
    });
    let flow = dir.join("pay.json");
    fs::write(&flow, definition.to_string()).unwrap();
    let push = [
        "flow",
        "push",
        flow.to_str().unwrap(),
        "--project",
        "example",
    ];
    run(&push, variables).expect(0);
}

/// A reviewer has a tool called with other arguments.
fn edits(variables: &Variables<'_>, dir: &Path, receiver: &tiny_http::Server) {
    pays(variables, dir, receiver);
    let mut watching = Running::start(command(&["run", "--flow", "billing.pay"], variables));
    let unassigned = ["approvals", "--assigned-to", "none", "--json"];
    let waiting = eventually("an approval that waits", || {
        let listed = run(&unassigned, variables).expect(0).out;
        let waiting: Value = serde_json::from_str(listed.lines().next()?).ok()?;
        Some(waiting)
    });
    let id = handed_over(variables, &waiting);
    refuses_faulty_arguments(variables, dir, &id);
    approves_with_other_arguments(dir, &id);
    watching.line_with("Ada");
    assert_eq!(watching.wait(), Some(0));
    let shown = run(&["approvals", "show", &id], variables).expect(0).out;
    for part in [
        "decided by",
        "edited\n  {\n    \"amount\": 3,\n",
        "approved by",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// An approval is assigned, taken back and escalated: the id of the one that stands in its place.
fn handed_over(variables: &Variables<'_>, waiting: &Value) -> String {
    let (id, run_id) = (
        waiting["id"].as_str().unwrap(),
        waiting["runId"].as_str().unwrap(),
    );
    let mine = ["approvals", "--run", run_id, "--assigned-to", "me"];
    for (to, is_mine) in [("me", true), ("nobody", false)] {
        let said = run(&["approvals", "assign", id, "--to", to], variables).expect(0);
        assert_eq!(said.err, format!("Pay: assigned to {to}.\n"));
        let listed = run(&mine, variables).expect(0).out;
        assert_eq!(listed.contains(id), is_mine, "{to}: {listed}");
    }
    let board = ["approvals", "escalate", id, "--role", "board"];
    let said = run(&board, variables).expect(0).err;
    assert!(
        said.starts_with("Pay: board is asked now, in approval "),
        "{said}"
    );
    let replaced = run(&["approvals", "show", id], variables).expect(0).out;
    assert!(
        replaced.contains("escalated") && replaced.contains("replaced by"),
        "{replaced}"
    );
    let listed = run(&["approvals", "--json"], variables).expect(0).json();
    assert_eq!(
        (&listed["requiredRole"], &listed["escalatedFrom"]),
        (&json!("board"), &json!(id))
    );
    let id = listed["id"].as_str().unwrap();
    let shown = run(&["approvals", "show", id], variables).expect(0).out;
    for part in [run_id, "pay", "arguments\n  {\n    \"amount\": 500,\n"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    id.to_owned()
}

fn refuses_faulty_arguments(variables: &Variables<'_>, dir: &Path, id: &str) {
    let edited = dir.join("arguments.json");
    let edited = edited.to_str().unwrap();
    let approve = |text: &str, code: i32| {
        fs::write(edited, text).unwrap();
        run(&["approve", id, "--arguments", edited], variables)
            .expect(code)
            .err
    };
    let said = approve("{", 1);
    assert!(said.contains("arguments.json is no JSON"), "{said}");
    let said = approve(r#"{"amount": "3", "whom": "Ada"}"#, 1);
    for part in [
        "invalid-body",
        "\n  $.arguments.amount: ",
        "\n  $.arguments.whom: ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let both = ["approve", id, "--arguments", "-", "--answer", "-"];
    let said = run(&both, variables).expect(2).err;
    assert!(said.contains("cannot both"), "{said}");
}

fn approves_with_other_arguments(dir: &Path, id: &str) {
    let data = dir.join("agent-runtime");
    let data = data.to_str().unwrap();
    let approve = ["approve", id, "--arguments", "-", "--data-dir", data];
    let said = run_with_input(&approve, r#"{"amount": 3, "to": "Ada"}"#)
        .expect(0)
        .err;
    let (before, after) = said.split_once("called with\n").unwrap();
    assert!(
        before.starts_with("asked for\n") && before.contains("500"),
        "{said}"
    );
    assert!(
        after.contains("\"amount\": 3") && after.ends_with("Pay: approved.\n"),
        "{said}"
    );
    let again = [&approve[..], &["--json"]].concat();
    let subject = run_with_input(&again, r#"{"amount": 3, "to": "Ada"}"#)
        .expect(0)
        .json();
    let subject = &subject["subject"];
    assert_eq!(
        (&subject["arguments"], &subject["editedArguments"]),
        (
            &json!({"amount": 500, "to": "Ada"}),
            &json!({"amount": 3, "to": "Ada"})
        )
    );
}
