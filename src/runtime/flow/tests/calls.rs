//! What the answers of calls mean, and when they count.

use super::*;
use crate::store::flow_parts::NamedFlow;

/// A flow of one call that changes something, within 30 s.
fn paying(more: Value) -> Definition {
    let with = json!({"method": "post", "endpoint": "https://pay.example/"});
    let mut task = json!({"call": "http", "with": with, "timeout": {"after": "PT30S"}});
    task["with"]
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    flow(json!([{"pay": task}]), json!({}))
}

/// How the flow ends whose only call was answered so, after so many seconds, and is taken up after so many.
fn ended(definition: &Definition, answer: Value, (answered, taken_up): (i64, i64)) -> End {
    let about = about(json!({}));
    let after = |seconds| about.started_at + time::Duration::seconds(seconds);
    let begun = next::next(definition, &about, (None, None), about.started_at);
    let Next::Begin(step) = begun.next else {
        panic!("{begun:?}");
    };
    let step = Step {
        kind: step.kind,
        name: step.name,
        path: step.path,
        request: step.request,
        result: Some(answer),
        completed_at: Some(after(answered)),
        ..waited()
    };
    let stands = (begun.flow_state.as_ref(), Some(&step));
    match next::next(definition, &about, stands, after(taken_up)).next {
        Next::End(end) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_came_in_time_counts_however_late_the_run_is_taken_up() {
    let paid = json!({"status": 200, "headers": [], "body": "paid"});
    let of = |seconds| ended(&paying(json!({})), paid.clone(), seconds);
    assert!(matches!(of((29, 29)), End::Completed { .. }));
    assert!(matches!(of((29, 35)), End::Completed { .. }));
    // The clocks of two machines differ.
    assert!(matches!(of((31, 29)), End::Completed { .. }));
    let End::Failed { failure, .. } = of((31, 35)) else {
        panic!("it took too long");
    };
    assert!(failure.message.contains("(status 408)"), "{failure:?}");
}

#[test]
fn runs_below_that_have_all_answered_were_in_time() {
    let branches = json!([{"a": {"set": {"n": 1}}}, {"b": {"set": {"n": 2}}}]);
    let tasks = json!([{"both": {"fork": {"branches": branches}, "timeout": {"after": "PT30S"}}}]);
    let (definition, about) = (flow(tasks, json!({})), about(json!({})));
    let begun = next::next(&definition, &about, (None, None), about.started_at);
    let late = about.started_at + time::Duration::seconds(35);
    let of = |second: &str| {
        let children = json!([
            {"runId": Uuid::nil(), "status": "completed", "output": {"n": 1}},
            {"runId": Uuid::nil(), "status": second, "output": {"n": 2}},
        ]);
        let step = Step {
            kind: StepKind::Child,
            result: Some(children),
            completed_at: Some(late),
            ..waited()
        };
        let stands = (begun.flow_state.as_ref(), Some(&step));
        next::next(&definition, &about, stands, late).next
    };
    let Next::End(End::Completed { output, .. }) = of("completed") else {
        panic!("both have answered");
    };
    assert_eq!(output, json!([{"n": 1}, {"n": 2}]));
    let Next::End(End::Failed { error, .. }) = of("cancelled") else {
        panic!("one was cut");
    };
    assert_eq!(error.unwrap()["status"], 408);
}

#[test]
fn an_answer_that_declares_json_may_have_no_body() {
    let headers = json!([["content-type", "application/json; charset=utf-8"]]);
    for (status, body, output, told) in [
        (204, "", "content", json!(null)),
        (200, " ", "content", json!(null)),
        (200, "", "raw", json!("")),
        (
            200,
            "",
            "response",
            json!({"statusCode": 200, "headers": {"content-type": "application/json; charset=utf-8"}, "content": null,
                "request": {"method": "POST", "uri": "https://pay.example/", "headers": {}}}),
        ),
    ] {
        let answer = json!({"status": status, "headers": headers, "body": body});
        let end = ended(&paying(json!({"output": output})), answer, (1, 1));
        let End::Completed { output, .. } = end else {
            panic!("{end:?}");
        };
        assert_eq!(output, told);
    }
    let answer = json!({"status": 200, "headers": headers, "body": "{"});
    let end = ended(&paying(json!({})), answer, (1, 1));
    assert!(matches!(end, End::Failed { .. }), "{end:?}");
}

#[test]
fn what_a_flow_or_a_tool_is_given_nests_so_deep_and_no_deeper() {
    let around = |levels: usize| (0..levels).fold(json!("${ . }"), |inner, _| json!([inner]));
    let began = |task: Value, levels: usize| {
        let mut input = json!(1);
        for _ in 0..60 {
            input = json!([input]);
        }
        let mut about = about(input);
        about.subflows = vec![NamedFlow {
            flow_id: "test.other".to_owned(),
            named: None,
            version: "1.0.0".to_owned(),
        }];
        let definition = flow(json!([{"deep": task}]), json!({}));
        let decision = next::next(&definition, &about, (None, None), about.started_at);
        match decision.next {
            Next::End(End::Failed { error, .. }) => {
                assert_eq!(error.unwrap()["status"], 413, "{levels}");
                false
            }
            _ => true,
        }
    };
    let subflow = |levels| {
        let called = json!({"namespace": "test", "name": "other", "input": around(levels)});
        json!({"run": {"workflow": called}})
    };
    let tool = |levels| json!({"call": "tool", "with": {"tool": "charge", "arguments": {"a": around(levels)}}});
    assert!(began(subflow(36), 36));
    assert!(!began(subflow(37), 37));
    assert!(began(tool(35), 35));
    assert!(!began(tool(36), 36));
}
