//! Events as they are stored.

use super::*;

fn check(event: &Event, data: Value) {
    let row = event.row();
    assert_eq!(row.data, data);
    let whole = json!({"kind": row.kind, "data": row.data});
    assert_eq!(&serde_json::from_value::<Event>(whole).unwrap(), event);
}

fn step() -> StepRef {
    StepRef {
        step: 2,
        attempt: 1,
        kind: StepKind::Tool,
        name: "search".to_owned(),
        path: String::new(),
        call_id: Some("call_1".to_owned()),
        erased: false,
    }
}

#[test]
fn the_data_of_each_kind_is_an_object_that_reads_back() {
    let step = step();
    check(&Event::RunStarted {}, json!({}));
    let none = Labels::default();
    check(&Event::ended(&End::Cancelled, &none), json!({}));
    let labels: Labels = serde_json::from_value(json!({"env": "prod"})).unwrap();
    check(
        &Event::ended(&End::Cancelled, &labels),
        json!({"labels": {"env": "prod"}}),
    );
    check(
        &Event::StepStarted(step.clone()),
        json!({"step": 2, "attempt": 1, "type": "tool", "name": "search", "callId": "call_1"}),
    );
    check(
        &Event::StepCompleted {
            step,
            outcome: Some(StepOutcome::Succeeded),
            answer: StepAnswer::Tool {
                is_error: false,
                output: "ok".to_owned(),
                output_truncated: false,
            },
        },
        json!({"step": 2, "attempt": 1, "type": "tool", "name": "search", "callId": "call_1", "outcome": "succeeded",
            "isError": false, "output": "ok", "outputTruncated": false}),
    );
    check(
        &Event::RunFailed {
            failure_message: "No.".to_owned(),
            failure_summary: "It failed.".to_owned(),
            labels: none,
        },
        json!({"failureMessage": "No.", "failureSummary": "It failed."}),
    );
}

#[test]
fn events_of_a_flow_read_back() {
    let in_flow = StepRef {
        kind: StepKind::Http,
        name: "POST".to_owned(),
        path: "/do/0/pay".to_owned(),
        call_id: None,
        ..step()
    };
    check(
        &Event::simulated(in_flow.clone(), json!({"url": "x"})),
        json!({"step": 2, "attempt": 1, "type": "http", "name": "POST", "path": "/do/0/pay",
            "request": {"url": "x"}, "requestOmitted": false}),
    );
    let long = json!("x".repeat(REQUEST_BYTES));
    assert_eq!(
        Event::simulated(in_flow, long).row().data["request"],
        Value::Null
    );
    check(
        &Event::TaskFaulted {
            task: TaskRef {
                path: "/do/0/a".to_owned(),
                kind: NodeKind::Set,
                iteration: Some(2),
            },
            error: TaskError {
                status: 400,
                title: "No".to_owned(),
                erased: false,
            },
            will_retry: false,
        },
        json!({"path": "/do/0/a", "type": "set", "iteration": 2, "status": 400, "title": "No", "willRetry": false}),
    );
}
