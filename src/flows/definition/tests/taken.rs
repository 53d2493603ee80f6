//! Definitions that are taken, and the tree that is made of them.

use super::{patch, refused, with_task, with_tasks};
use crate::flows::definition::references::ReferenceKind;
use crate::flows::definition::tree::{
    Backoff, Call, Definition, Endpoint, OnError, OnRefusal, Task, TaskKind, Template, Then, Time,
    UriPart,
};
use crate::flows::definition::{check, examine, graph};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

/// The refund flow of the documents.
fn refund() -> Value {
    serde_json::from_str(include_str!("refund.json")).unwrap()
}

fn taken(definition: &Value) -> Definition {
    check(definition).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn task_of(task: &Value) -> Task {
    taken(&with_task(task)).tasks.remove(0)
}

#[test]
fn the_refund_flow_is_taken() {
    let flow = taken(&refund());
    assert_eq!(flow.document.flow_id(), "billing.refund");
    assert_eq!(flow.document.version, "1.2.0");
    let names: Vec<&str> = flow.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["order", "assess", "small", "ask", "pay"]);
    assert!(flow.input.schema.is_some() && flow.input.template.is_none());
    let TaskKind::Switch(cases) = &flow.tasks[2].kind else {
        panic!("{:?}", flow.tasks[2])
    };
    assert_eq!(
        (cases[0].then, cases[1].then),
        (Then::Task(4), Then::Task(3))
    );
    let TaskKind::Call(Call::Approval(approval)) = &flow.tasks[3].kind else {
        panic!("{:?}", flow.tasks[3])
    };
    assert_eq!(approval.required_role, "finance");
    assert_eq!(approval.expires_after, Duration::from_secs(2 * 86_400));
    assert_eq!(approval.on_reject, OnRefusal::Raise);
    assert_eq!(
        approval.escalation.as_ref().unwrap().required_role,
        "finance-lead"
    );
    let TaskKind::Try(tries) = &flow.tasks[4].kind else {
        panic!("{:?}", flow.tasks[4])
    };
    assert_eq!(tries.tasks[0].path, "/do/4/pay/try/0/refund");
    assert_eq!(tries.catch.errors.status, Some(503));
    let retry = tries.catch.retry.as_ref().unwrap();
    assert_eq!((retry.tries_most, retry.backoff), (5, Backoff::Exponential));
    assert!(matches!(retry.delay, Some(Time::Fixed(delay)) if delay.as_secs() == 30));
    let references: Vec<(ReferenceKind, &str, &str)> = flow
        .references()
        .iter()
        .map(|found| (found.kind, found.name.as_str(), found.path.as_str()))
        .collect();
    assert_eq!(
        references,
        [
            (ReferenceKind::Tool, "orders_get", "$.do[0].order.with.tool"),
            (
                ReferenceKind::Agent,
                "refund-clerk",
                "$.do[1].assess.with.agent"
            ),
            (
                ReferenceKind::Tool,
                "payments_refund",
                "$.do[4].pay.try[0].refund.with.tool"
            ),
        ]
    );
}

#[test]
fn a_call_of_a_function_is_a_list_of_its_arguments_and_its_task() {
    let mut definition = with_tasks(&json!([
        {"first": {"call": "greet", "with": {"name": "${ $input.who }"}}},
        {"second": {"call": "greet"}},
    ]));
    let functions = json!({"greet": {"call": "http", "with": {"method": "POST",
        "endpoint": "https://example.com/{name}/x", "body": "${ . }"}}});
    patch(&mut definition, &json!({"use": {"functions": functions}}));
    let flow = taken(&definition);
    let TaskKind::Do(first) = &flow.tasks[0].kind else {
        panic!("{flow:?}")
    };
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].path, "/do/0/first/with");
    assert!(matches!(&first[0].kind, TaskKind::Set(Template::Object(_))));
    assert_eq!(
        (first[1].name.as_str(), first[1].path.as_str()),
        ("greet", "/use/functions/greet")
    );
    let TaskKind::Call(Call::Http(http)) = &first[1].kind else {
        panic!("{first:?}")
    };
    let Endpoint::Uri(parts) = &http.endpoint else {
        panic!("{http:?}")
    };
    let literal = |text: &str| UriPart::Literal(text.to_owned());
    assert_eq!(
        *parts,
        [
            literal("https://example.com/"),
            UriPart::Variable("name".to_owned()),
            literal("/x")
        ]
    );
    assert!(matches!(&flow.tasks[1].kind, TaskKind::Do(second) if second.len() == 1));
}

#[test]
fn declarations_stand_where_they_are_used() {
    let mut definition = with_task(&json!({
        "timeout": "short",
        "try": [{"a": {"raise": {"error": "lost"}}}],
        "catch": {"as": "problem", "when": "$problem.status == 500", "retry": "often", "then": "exit",
            "do": [{"b": {"set": {"said": "${ $problem.detail }"}}}]},
    }));
    patch(
        &mut definition,
        &json!({"use": {
            "timeouts": {"short": {"after": {"seconds": 5}}},
            "errors": {"lost": {"type": "https://example.com/lost", "status": 500, "detail": "${ .why }"}},
            "retries": {"often": {"when": "$problem.status > 1", "backoff": {"linear": {}},
                "jitter": {"from": "PT0S", "to": "PT1S"}, "limit": {"duration": "PT1H", "attempt": {"duration": "PT5M"}}}},
        }}),
    );
    let flow = taken(&definition);
    assert!(matches!(flow.tasks[0].timeout, Some(Time::Fixed(time)) if time.as_secs() == 5));
    let TaskKind::Try(tries) = &flow.tasks[0].kind else {
        panic!("{flow:?}")
    };
    assert!(matches!(&tries.tasks[0].kind, TaskKind::Raise(error) if error.detail.is_some()));
    assert_eq!(
        (tries.catch.variable.as_str(), tries.catch.then),
        ("problem", Some(Then::Exit))
    );
    let retry = tries.catch.retry.as_ref().unwrap();
    assert_eq!((retry.tries_most, retry.backoff), (100, Backoff::Linear));
    assert!(retry.jitter.is_some() && retry.timeout.is_some() && retry.try_timeout.is_some());
}

#[test]
fn loops_and_branches_are_taken() {
    let list = json!([{"a": {"set": {"x": "${ $pet }", "n": "${ $index }"}}}]);
    let task = task_of(
        &json!({"for": {"each": "pet", "in": "${ .pets }"}, "do": list,
        "metadata": {"concurrency": 8, "onError": "collect", "team": "x"}}),
    );
    let TaskKind::For(of) = &task.kind else {
        panic!("{task:?}")
    };
    assert_eq!((of.each.as_str(), of.at.as_str()), ("pet", "index"));
    let parallel = of.parallel.unwrap();
    assert_eq!(
        (parallel.concurrency, parallel.on_error),
        (8, OnError::Collect)
    );
    assert_eq!(task.metadata["team"], "x");
    let export = json!([{"a": {"set": {}, "export": {"as": "{ n: $output }"}}}]);
    let task = task_of(&json!({"for": {"in": ".a"}, "while": "$index < 3", "do": export}));
    assert!(
        matches!(&task.kind, TaskKind::For(of) if of.parallel.is_none() && of.condition.is_some())
    );
    let task = task_of(
        &json!({"fork": {"compete": false, "branches": [{"a": {"set": {}, "then": "exit"}}, {"b": {"do": [{"c": {"set": {}}}]}}]}}),
    );
    assert!(matches!(&task.kind, TaskKind::Fork(branches) if branches.len() == 2));
}

#[test]
fn literals_keep_their_order_and_expressions_are_found() {
    let task = task_of(&json!({"set": {"z": 1, "a": [true, null], "m": {"b": "x"}}}));
    let TaskKind::Set(Template::Literal(value)) = &task.kind else {
        panic!("{task:?}")
    };
    assert_eq!(
        value.to_string(),
        r#"{"z":1,"a":[true,null],"m":{"b":"x"}}"#
    );
    let task = task_of(&json!({"set": {"z": 1, "a": [{"b": " ${ .x } "}]}}));
    let TaskKind::Set(Template::Object(fields)) = &task.kind else {
        panic!("{task:?}")
    };
    assert!(matches!(fields[0].1, Template::Literal(_)));
    assert!(
        matches!(&fields[1].1, Template::Array(items) if matches!(&items[0], Template::Object(_)))
    );
}

#[test]
fn an_approval_names_whom_it_is_assigned_to() {
    let id = "01980000-0000-7000-8000-000000000001";
    let task = task_of(
        &json!({"call": "approval", "with": {"title": "Refund", "assignedTo": "Ann@plant.example",
        "escalation": [{"after": "PT1H", "requiredRole": "board", "assignedTo": id}]}}),
    );
    let TaskKind::Call(Call::Approval(approval)) = task.kind else {
        panic!("{task:?}")
    };
    assert_eq!(approval.assigned_to.as_deref(), Some("Ann@plant.example"));
    let escalation = approval.escalation.unwrap();
    assert_eq!(escalation.assigned_to.as_deref(), Some(id));
}

#[test]
fn an_approval_keeps_the_form_that_its_reviewer_fills_in() {
    let form = json!({"type": "object", "properties": {
        "amount": {"type": "number", "title": "Amount in EUR", "minimum": 0},
        "reason": {"type": "string", "enum": ["late", "damaged"]}}, "required": ["amount"]});
    let task = task_of(&json!({"call": "approval", "with": {"title": "Refund", "form": form}}));
    let TaskKind::Call(Call::Approval(approval)) = task.kind else {
        panic!("{task:?}")
    };
    assert_eq!(approval.form, Some(form));
}

#[test]
fn other_forms_are_taken() {
    for task in [
        json!({"call": "approval:1.0.0@default", "with": {"title": "Refund"}}),
        json!({"call": "approval", "with": {"title": "Refund", "escalation": [], "onExpire": "continue"}}),
        json!({"run": {"workflow": {"namespace": "a", "name": "b", "version": "latest", "input": {"x": "${ . }"}}, "await": true}}),
        json!({"wait": "${ .time }"}),
        json!({"wait": {"days": 400}}),
        json!({"set": "${ . }"}),
        json!({"call": "http", "with": {"method": "GET", "endpoint": "${ .url }"}}),
        json!({"call": "http", "with": {"method": "get", "endpoint": {"uri": "http://{host}.example.com:8080/a?b=c"}, "redirect": true}}),
        json!({"call": "tool", "with": {"tool": "t"}, "metadata": {"dryRun": {"output": {"ok": "${ $input.ok }"}}}}),
        json!({"raise": {"error": {"type": "${ .type }", "status": "${ .status }"}}}),
        json!({"if": ".a", "raise": {"error": {"type": "https://example.com/e", "status": 400}}, "then": "exit"}),
        json!({"set": {}, "input": {"from": "{ a: .b }"}, "output": {"as": {"x": "${ $input.a }"}}, "export": {"as": "$context + $output"}}),
        json!({"switch": [{"a": {"when": "${ .a }", "then": "continue"}}, {"b": {"then": "it"}}]}),
    ] {
        let report = examine(&with_task(&task));
        assert!(
            report.definition.is_some() && report.faults.is_empty(),
            "{task}: {report:?}"
        );
    }
    let mut whole = with_task(&json!({"set": {}}));
    patch(
        &mut whole,
        &json!({"evaluate": {"language": "jq", "mode": "strict"},
        "document": {"title": "T", "summary": "S", "tags": {"a": "b"}, "metadata": {"c": 1}},
        "timeout": {"after": "PT1H"}, "output": {"as": "{ a: $context }"}, "input": {"from": "."}}),
    );
    let flow = taken(&whole);
    assert_eq!(flow.document.summary.as_deref(), Some("S"));
}

/// A task may skip the ones after it and be led to from behind.
#[test]
fn tasks_that_only_a_later_one_leads_to_are_reached() {
    let flow = taken(&with_tasks(&json!([
        {"a": {"set": {}, "then": "c"}},
        {"b": {"set": {}, "then": "end"}},
        {"c": {"switch": [{"x": {"when": ".a", "then": "b"}}, {"y": {"then": "exit"}}]}},
    ])));
    assert_eq!(flow.tasks[0].then, Then::Task(2));
}

#[test]
fn a_picture_has_boxes_in_boxes_and_what_leads_from_one_to_another() {
    let picture = serde_json::to_value(graph::of(&taken(&refund()))).unwrap();
    assert_eq!(picture["name"], "billing.refund");
    let edges: Vec<String> = picture["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| match edge["label"].as_str() {
            Some(label) => format!("{} -{label}-> {}", edge["from"], edge["to"]),
            None => format!("{} -> {}", edge["from"], edge["to"]),
        })
        .map(|edge| edge.replace('"', ""))
        .collect();
    assert_eq!(
        edges,
        [
            "order -> assess",
            "assess -> small",
            "small -yes-> pay",
            "small -no-> ask",
            "ask -> pay",
            "pay -> exit"
        ]
    );
    let kinds: Vec<&Value> = picture["children"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["type"])
        .collect();
    assert_eq!(kinds, ["tool", "agent", "switch", "approval", "try"]);
    assert_eq!(picture["children"][3]["target"], "Refund of 50 EUR or more");
    let tried = &picture["children"][4]["children"];
    assert_eq!(
        tried.as_array().unwrap().len(),
        1,
        "the flow only tries again"
    );
    assert_eq!(tried[0]["path"], "/do/4/pay/try");
    assert_eq!(tried[0]["children"][0]["path"], "/do/4/pay/try/0/refund");
    let task = json!({"if": ".a", "try": [{"a": {"set": {}}}], "catch": {"do": [{"b": {"set": {}}}], "then": "end"}});
    let picture = graph::of(&taken(&with_task(&task)));
    assert_eq!(picture.children[0].children[1].path, "/do/0/it/catch/do");
    let thens: Vec<(&str, Option<&str>)> = picture
        .edges
        .iter()
        .map(|edge| (edge.to.as_str(), edge.label.as_deref()))
        .collect();
    assert_eq!(thens, [("end", Some("catch")), ("exit", None)]);
    let guard =
        json!({"if": ".a", "raise": {"error": {"type": "t", "status": 400}}, "then": "end"});
    let picture = graph::of(&taken(&with_tasks(
        &json!([{"guard": guard}, {"work": {"if": ".b", "set": {}, "then": "end"}}]),
    )));
    let edges = picture.edges.iter();
    let edges: Vec<(&str, &str, Option<&str>)> = edges
        .map(|edge| (edge.from.as_str(), edge.to.as_str(), edge.label.as_deref()))
        .collect();
    assert_eq!(
        edges,
        [
            ("guard", "work", Some("skipped")),
            ("work", "end", None),
            ("work", "exit", Some("skipped")),
        ]
    );
    let task = json!({"fork": {"branches": [{"a": {"set": {}}}, {"b": {"set": {}}}]}});
    let fork = &graph::of(&taken(&with_task(&task))).children[0];
    assert_eq!((fork.children.len(), fork.edges.len()), (2, 0));
}

/// All values in a JSON text, as a place to break it.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    let entries: Vec<(String, &Value)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, item)| (n.to_string(), item))
            .collect(),
        Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), item)).collect(),
        _ => Vec::new(),
    };
    for (key, item) in entries {
        let key = key.replace('~', "~0").replace('/', "~1");
        pointers(item, &format!("{at}/{key}"), all);
    }
}

proptest! {
    /// Whatever is broken, a definition is taken or at least one fault is told, never neither or both.
    #[test]
    fn a_definition_is_taken_or_has_faults(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        by in prop::sample::select(vec![json!(null), json!(5), json!(""), json!("${"), json!([]), json!({}), json!([{}]), json!({"": {}}), json!({"a": 1}), json!("end"), json!(true)]),
    ) {
        let mut all: Vec<Value> = refused().into_iter().map(|(_, definition)| definition).collect();
        all.push(refund());
        let mut definition = which.get(&all).clone();
        let mut places = Vec::new();
        pointers(&definition, "", &mut places);
        if let Some(place) = definition.pointer_mut(at.get(places.as_slice()).as_str()) {
            *place = by;
        }
        let report = examine(&definition);
        prop_assert_eq!(report.definition.is_some(), report.faults.is_empty(), "{}", definition);
    }
}
