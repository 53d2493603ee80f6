//! Flows from their begin to their end, as the driver asks what comes next: each transition begins from the row that the one
//! before it has written.

mod calls;
mod tries;

use super::about::About;
use super::limits::FlowLimits;
use super::*;
use crate::flows::definition::check;
use crate::flows::definition::tree::{Definition, NESTING_MOST};
use crate::runtime::journal::decision::Next;
use crate::runtime::journal::wait::TimerRequest;
use crate::store::runs::{DatabaseAhead, End};
use crate::store::steps::{StepKind, StepStatus};
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

/// A flow with these tasks, and more of its fields.
fn flow(tasks: Value, more: Value) -> Definition {
    let document = json!({"dsl": "1.0.3", "namespace": "test", "name": "flow", "version": "1.0.0"});
    let mut whole = json!({"document": document, "do": tasks});
    let fields = whole.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    check(&whole).unwrap()
}

/// How a run went.
#[derive(Debug, PartialEq)]
struct Went {
    end: End,
    /// The waits, with their paths and seconds.
    waits: Vec<(String, f64)>,
}

impl Went {
    #[track_caller]
    fn output(self) -> Value {
        match self.end {
            End::Completed { output, .. } => output,
            end => panic!("{end:?}"),
        }
    }

    #[track_caller]
    fn failure(self) -> String {
        match self.end {
            End::Failed { failure, .. } => failure.message,
            end => panic!("{end:?}"),
        }
    }
}

pub(super) fn about(input: Value) -> About {
    About {
        limits: FlowLimits::default(),
        own_run_id: Uuid::nil(),
        run_id: Uuid::nil(),
        flow_id: "test.flow".to_owned(),
        flow_version: "1.0.0".to_owned(),
        input,
        started_at: OffsetDateTime::UNIX_EPOCH,
        is_dry_run: false,
        fixtures: Map::new(),
        skips_models: false,
        env: Map::new(),
        branch: None,
        flows: 1,
        tools: Vec::new(),
        agents: Vec::new(),
        subflows: Vec::new(),
    }
}

/// A step that has waited.
pub(super) fn waited() -> Step {
    Step {
        step: 1,
        kind: StepKind::Wait,
        name: "wait".to_owned(),
        path: String::new(),
        status: StepStatus::Completed,
        attempt: 1,
        failures: 0,
        request: json!({}),
        result: Some(json!({})),
        started_at: OffsetDateTime::UNIX_EPOCH,
        completed_at: None,
    }
}

/// Runs a flow; every wait takes its time.
fn run(definition: &Definition, input: Value) -> Went {
    run_within(FlowLimits::default(), definition, input)
}

/// As [`run`], with other limits.
fn run_within(limits: FlowLimits, definition: &Definition, input: Value) -> Went {
    let mut now = OffsetDateTime::UNIX_EPOCH;
    let about = About {
        limits,
        ..about(input)
    };
    let (mut state, mut waits) = (None, Vec::new());
    loop {
        let step = state.is_some().then(waited);
        let stands = (state.as_ref(), step.as_ref());
        let decision = next::next(definition, &about, stands, now);
        let again = next::next(definition, &about, stands, now);
        assert_eq!(decision, again, "whoever asks gets the same answer");
        match decision.next {
            Next::Wait { path, duration } => {
                assert!(waits.len() < 200, "it waits for ever");
                now += duration;
                waits.push((path, duration.as_secs_f64()));
                state = Some(decision.flow_state.unwrap());
            }
            Next::End(end) => return Went { end, waits },
            other => panic!("{other:?}"),
        }
    }
}

fn output(tasks: Value, input: Value) -> Value {
    run(&flow(tasks, json!({})), input).output()
}

#[test]
fn data_goes_from_task_to_task() {
    let tasks = json!([
        {"first": {"set": {"a": "${ .n + 1 }", "b": ["${ .n }", "literal"]}}},
        {"second": {"do": [{"inner": {"set": "${ {sum: (.a + .b[0])} }"}}], "output": {"as": "{ total: .sum, was: $input.a }"}}},
    ]);
    assert_eq!(
        output(tasks, json!({"n": 1})),
        json!({"total": 3, "was": 2})
    );
}

#[test]
fn a_switch_chooses_and_a_condition_skips() {
    let tasks = json!([
        {"which": {"switch": [{"small": {"when": ".n < 10", "then": "low"}}, {"else": {"then": "high"}}]}},
        {"low": {"set": {"size": "low"}, "then": "last"}},
        {"high": {"set": {"size": "high"}}},
        {"last": {"if": ".size == \"low\"", "set": "${ {size, last: true} }"}},
    ]);
    assert_eq!(
        output(tasks.clone(), json!({"n": 1})),
        json!({"size": "low", "last": true})
    );
    assert_eq!(output(tasks, json!({"n": 10})), json!({"size": "high"}));
    let tasks = json!([
        {"outer": {"do": [
            {"which": {"switch": [{"no": {"when": "false", "then": "never"}}]}},
            {"leaves": {"set": {"left": 1}, "then": "exit"}},
            {"never": {"set": {"no": 2}}},
        ]}},
        {"after": {"set": "${ {left, after: true} }"}},
    ]);
    assert_eq!(
        output(tasks, Value::Null),
        json!({"left": 1, "after": true})
    );
}

#[test]
fn an_expression_reads_the_definition_and_the_raw_input() {
    let n = "${ $workflow.definition.document.name }";
    let read = json!({
        "input": {"from": "{ n: .n }"},
        "set": {"n": n, "raw": "${ $task.input }", "own": "${ $task.definition.metadata.x }"},
        "metadata": {"x": 7},
    });
    let expected = json!({"n": "flow", "raw": {"n": 1, "m": 2}, "own": 7});
    let input = json!({"n": 1, "m": 2});
    assert_eq!(output(json!([{"read": read}]), input.clone()), expected);
    // It is the same after a wait, in the output, and where nothing made another value of the input.
    let slept = json!({
        "wait": "PT1S", "input": {"from": "{ n: .n }"},
        "output": {"as": "{ now: ., raw: $task.input }"}, "export": {"as": "$task.input"},
    });
    let tasks =
        json!([{"sleep": slept}, {"last": {"set": "${ {was: ., $context, raw: $task.input} }"}}]);
    let was = json!({"now": {"n": 1}, "raw": input});
    let expected = json!({"was": was, "context": input, "raw": was});
    assert_eq!(output(tasks, input), expected);
    // A flow that does not read it keeps nothing more.
    let plain = flow(
        json!([{"sleep": {"wait": "PT1S", "input": {"from": "{}"}}}]),
        json!({}),
    );
    let about = about(json!({"n": 1}));
    let began = next::next(&plain, &about, (None, None), about.started_at);
    assert_eq!(began.flow_state.unwrap().frames[0].get("raw"), None);
}

/// The `then` of a task counts if the task runs.
#[test]
fn a_skipped_task_leads_to_the_next_one() {
    let tasks = |guard: Value| {
        json!([
            {"guard": guard},
            {"work": {"set": {"done": true}, "then": "last"}},
            {"between": {"set": {"done": false}}},
            {"last": {"set": "${ . + {last: true} }"}},
        ])
    };
    let raise = json!({"error": {"type": "t", "status": 400, "title": "bad"}});
    let worked = json!({"done": true, "last": true});
    for then in ["end", "exit", "last", "continue"] {
        for (doing, did) in [
            ("raise", raise.clone()),
            ("set", json!({"done": false})),
            ("do", json!([{"inner": {"set": {"done": false}}}])),
            ("switch", json!([{"only": {"then": then}}])),
            ("wait", json!("PT1S")),
        ] {
            let guard = json!({"if": ".bad", doing: did, "then": then});
            let guarded = flow(tasks(guard), json!({}));
            let went = run(&guarded, json!({"bad": false}));
            assert_eq!(went.output(), worked, "{doing}, then {then}");
            let went = run(&guarded, json!({"bad": true}));
            match doing {
                "raise" => assert!(went.failure().contains("bad"), "then {then}"),
                _ if then == "continue" => assert_eq!(went.output(), worked, "{doing}"),
                _ => assert_ne!(went.output(), worked, "{doing}, then {then}"),
            }
        }
    }
    // In a list of a loop, a branch and a handler, too.
    let inside = json!([
        {"skipped": {"if": "false", "set": {"n": 0}, "then": "exit"}},
        {"add": {"set": "${ {n: (.n + 1)} }"}},
    ]);
    let tasks = json!([
        {"loop": {"for": {"in": "[1, 2]"}, "do": inside}},
        {"outer": {"try": [{"fails": {"raise": raise}}], "catch": {"do": inside}}},
    ]);
    assert_eq!(output(tasks, json!({"n": 0})), json!({"n": 3}));
}

#[test]
fn a_loop_hands_its_data_on_and_names_its_item() {
    let tasks = json!([
        {"outer": {"for": {"each": "x", "in": ".rows"}, "do": [
            {"inner": {"for": {"each": "x", "in": "$x", "at": "i"}, "do": [
                {"add": {"set": "${ {sum: (.sum + $x + $i), rows} }"}},
            ]}},
        ]}},
    ]);
    let input = json!({"sum": 0, "rows": [[1, 2], [], [30]]});
    assert_eq!(output(tasks, input)["sum"], json!(34));
    let tasks = json!([
        {"count": {"for": {"in": "[range(100)]"}, "while": ".n < 3", "do": [{"add": {"set": "${ {n: (.n + 1)} }"}}]}},
    ]);
    assert_eq!(output(tasks, json!({"n": 0})), json!({"n": 3}));
    let nothing = json!([{"nothing": {"do": [{"none": {"set": {"n": 1}}}]}}]);
    let tasks = json!([{"over": {"for": {"in": ".n"}, "do": nothing}}]);
    let failed = run(&flow(tasks, json!({})), json!({"n": 1})).failure();
    assert!(
        failed.starts_with("The task /do/0/over failed: "),
        "{failed}"
    );
}

#[test]
fn what_is_exported_is_the_context_also_after_a_wait() {
    let tasks = json!([
        {"keep": {"set": {"order": 7}, "export": {"as": "{ order: .order, by: $workflow.input.by }"}}},
        {"sleep": {"wait": {"seconds": 5}}},
        {"read": {"set": {"kept": "${ $context }", "name": "${ $task.name }"}}},
    ]);
    let went = run(&flow(tasks, json!({})), json!({"by": "me"}));
    assert_eq!(went.waits, [("/do/1/sleep".to_owned(), 5.0)]);
    assert_eq!(
        went.output(),
        json!({"kept": {"order": 7, "by": "me"}, "name": "read"})
    );
}

#[test]
fn schemas_are_checked_at_every_border() {
    let number = json!({"format": "json", "document": {"type": "object", "required": ["n"]}});
    let same = json!([{"same": {"set": "${ . }"}}]);
    let whole = flow(same, json!({"input": {"schema": number}}));
    assert_eq!(run(&whole, json!({"n": 1})).output(), json!({"n": 1}));
    let failed = run(&whole, json!({})).failure();
    assert_eq!(
        failed,
        "The flow failed: \"n\" is a required property (status 400)."
    );
    for (border, task) in [
        (
            "output",
            json!({"set": {"x": 1}, "output": {"schema": number}}),
        ),
        (
            "export",
            json!({"set": {"x": 1}, "export": {"schema": number}}),
        ),
        (
            "input",
            json!({"input": {"schema": number}, "set": {"x": 1}}),
        ),
    ] {
        let tasks = json!([{"checked": task}]);
        let failed = run(&flow(tasks, json!({})), json!({})).failure();
        assert!(failed.contains("/do/0/checked"), "{border}: {failed}");
    }
}

#[test]
fn an_error_is_tried_again_and_then_handled() {
    let raise = json!({"error": {"type": "https://example.com/busy", "status": 503, "title": "Busy", "detail": "${ .who }"}});
    let tasks = json!([
        {"outer": {
            "try": [{"fails": {"raise": raise}}],
            "catch": {
                "errors": {"with": {"status": 503}}, "as": "e", "when": "$e.title == \"Busy\"",
                "retry": {"delay": {"seconds": 30}, "backoff": {"exponential": {}}, "limit": {"attempt": {"count": 4}}},
                "do": [{"tell": {"set": {"said": "${ $e.detail }", "at": "${ $e.instance }", "who": "${ .who }"}}}],
            },
        }},
    ]);
    let went = run(&flow(tasks, json!({})), json!({"who": "bank"}));
    let seconds: Vec<f64> = went.waits.iter().map(|(_, seconds)| *seconds).collect();
    assert_eq!(seconds, [30.0, 60.0, 120.0]);
    assert_eq!(
        went.output(),
        json!({"said": "bank", "at": "/do/0/outer/try/0/fails", "who": "bank"})
    );
}

#[test]
fn an_error_that_nothing_takes_fails_the_run() {
    let raise =
        json!({"error": {"type": "https://example.com/taken", "status": 409, "title": "Taken"}});
    let of = |catch: Value| {
        let tasks = json!([{"outer": {"try": [{"fails": {"raise": raise}}], "catch": catch}}]);
        run(&flow(tasks, json!({})), json!({}))
    };
    let sentence = "The task /do/0/outer/try/0/fails failed: Taken (status 409).";
    for catch in [
        json!({"errors": {"with": {"status": 503}}}),
        json!({"when": "false"}),
        json!({"exceptWhen": "$error.status == 409"}),
    ] {
        assert_eq!(of(catch).failure(), sentence);
    }
    assert_eq!(of(json!({})).output(), json!({}), "it is dropped");
    // Tries that are used up are no handler; what follows them is.
    let retry = json!({"limit": {"attempt": {"count": 2}}});
    let went = of(json!({"retry": retry}));
    assert_eq!(went.waits.len(), 1);
    assert_eq!(went.failure(), sentence);
    let refused = json!({"retry": {"when": "$error.status == 503"}});
    assert_eq!(of(refused).failure(), sentence);
    let goes_on = of(json!({"retry": retry, "then": "continue"}));
    assert_eq!(goes_on.output(), json!({}));
    // An error of the handler leaves the try.
    let again = of(json!({"do": [{"again": {"raise": raise}}]})).failure();
    assert!(again.contains("/do/0/outer/catch/do/0/again"), "{again}");
}

#[test]
fn the_time_of_a_task_and_of_the_flow_is_over_during_a_wait() {
    let tasks = json!([
        {"outer": {
            "try": [{"slow": {"timeout": {"after": "PT10S"}, "do": [{"sleep": {"wait": {"hours": 1}}}]}}],
            "catch": {"errors": {"with": {"status": 408}}, "do": [{"tell": {"set": {"at": "${ $error.instance }"}}}]},
        }},
    ]);
    let went = run(&flow(tasks.clone(), json!({})), json!({}));
    assert_eq!(went.waits[0].1, 10.0);
    assert_eq!(went.output(), json!({"at": "/do/0/outer/try/0/slow"}));
    let whole = flow(tasks, json!({"timeout": {"after": {"seconds": 4}}}));
    let went = run(&whole, json!({}));
    assert_eq!(went.waits[0].1, 4.0);
    assert_eq!(
        went.failure(),
        "The flow failed: The flow took longer than its timeout (status 408)."
    );
}

#[test]
fn a_wait_that_a_timeout_cuts_short_is_late_although_the_clock_is_behind() {
    let began = OffsetDateTime::UNIX_EPOCH;
    let ends = |minutes: Value| {
        let wait =
            json!([{"sleep": {"wait": {"minutes": minutes}, "timeout": {"after": "PT10M"}}}]);
        let (definition, about) = (flow(wait, json!({})), about(json!({})));
        let first = next::next(&definition, &about, (None, None), began);
        let Next::Wait { duration, .. } = first.next else {
            panic!("{first:?}");
        };
        let step = Step {
            request: json!(TimerRequest::new(
                (began, DatabaseAhead::default()),
                duration
            )),
            ..waited()
        };
        let stands = (first.flow_state.as_ref(), Some(&step));
        let behind = began + time::Duration::seconds(1);
        match next::next(&definition, &about, stands, behind).next {
            Next::End(end) => end,
            other => panic!("{other:?}"),
        }
    };
    let End::Failed { failure, .. } = ends(json!(60)) else {
        panic!("the timeout was lost");
    };
    assert!(failure.message.contains("(status 408)"), "{failure:?}");
    assert!(matches!(ends(json!(9)), End::Completed { .. }));
}

#[test]
fn a_flow_that_never_ends_is_ended() {
    let tasks = json!([{"again": {"set": {"n": 1}, "then": "again"}}]);
    let failed = run(&flow(tasks, json!({})), json!({})).failure();
    assert!(failed.contains("more than 10000 tasks"), "{failed}");
    // Not even by what it handles.
    let tasks = json!([
        {"again": {"try": [{"spin": {"set": "${ [range(1000000000)] | length }"}}], "catch": {}, "then": "again"}},
    ]);
    let failed = run(&flow(tasks, json!({})), json!({})).failure();
    assert!(failed.contains("more than 10000 tasks"), "{failed}");
}

#[test]
fn a_run_whose_tasks_copy_large_data_again_and_again_is_ended() {
    let tasks = json!([{"spin": {"switch": [{"on": {"then": "spin"}}]}}]);
    let numbers: Vec<usize> = (0..50_000).collect();
    let mut about = about(json!(numbers));
    about.limits.tasks = 1_000_000;
    let decision = next::next(
        &flow(tasks, json!({})),
        &about,
        (None, None),
        about.started_at,
    );
    let Next::End(End::Failed { failure, .. }) = decision.next else {
        panic!("{:?}", decision.next);
    };
    let sentence = "computed for more than 4 s";
    assert!(failure.message.contains(sentence), "{failure:?}");
}

#[test]
fn a_run_that_waits_again_and_again_ends_with_its_days_and_nothing_takes_that() {
    let tasks = json!([
        {"again": {"try": [{"sleep": {"wait": {"days": 30}}}], "catch": {}, "then": "again"}},
    ]);
    let went = run(&flow(tasks.clone(), json!({})), json!({}));
    let days: f64 = went
        .waits
        .iter()
        .map(|(_, seconds)| seconds / 86_400.0)
        .sum();
    assert_eq!((went.waits.len(), days), (14, 400.0));
    assert_eq!(
        went.failure(),
        "The flow failed: The run took longer than 400 days, the most that a run may take (SVC_MAX_RUN_DAYS) (status 408)."
    );
    let limits = FlowLimits {
        days: 1,
        ..FlowLimits::default()
    };
    let went = run_within(limits, &flow(tasks, json!({})), json!({}));
    assert_eq!(
        went.waits,
        [("/do/0/again/try/0/sleep".to_owned(), 86_400.0)]
    );
    // What ends before has its own time.
    let whole = flow(
        json!([{"sleep": {"wait": {"days": 2}}}]),
        json!({"timeout": {"after": {"hours": 3}}}),
    );
    let went = run_within(limits, &whole, json!({}));
    assert_eq!(went.waits[0].1, 3.0 * 3_600.0);
    assert!(went.failure().contains("its timeout"));
}

#[test]
fn the_operator_says_what_a_run_may_take() {
    let limits = FlowLimits {
        tasks: 5,
        data_bytes: 100,
        children: 3,
        expression_steps: 100,
        ..FlowLimits::default()
    };
    for (tasks, sentence) in [
        (
            json!([{"again": {"set": {"n": 1}, "then": "again"}}]),
            "entered more than 5 tasks (SVC_MAX_FLOW_TASKS)",
        ),
        (
            // Less than the stack may have.
            json!([{"big": {"set": {"text": "a".repeat(90)}}}, {"sleep": {"wait": {"seconds": 1}}}]),
            "The data of the flow has 101 bytes of JSON here, and at most 100 are kept (SVC_MAX_FLOW_DATA_BYTES) (status 413)",
        ),
        (
            json!([{"big": {"set": {"text": "a".repeat(80)}}}, {"outer": {"do": [{"sleep": {"wait": {"seconds": 1}}}]}}]),
            "The stack of tasks has",
        ),
        (
            json!([{"over": {"for": {"in": "[range(4)]"}, "metadata": {"concurrency": 2}, "do": [{"none": {"set": {"n": 1}}}]}}]),
            "4 items, and may have at most 3 (SVC_MAX_FLOW_CHILDREN) (status 413)",
        ),
        (
            json!([{"spin": {"set": "${ [range(1000)] | {n: length} }"}}]),
            "used more than 100 steps",
        ),
    ] {
        let failed = run_within(limits, &flow(tasks, json!({})), json!({})).failure();
        assert!(failed.contains(sentence), "{failed}");
    }
}

#[test]
fn a_state_holds_so_much_and_no_more() {
    let tasks = json!([
        {"outer": {
            "try": [
                {"grow": {"set": "${ [range(60000)] }", "export": {"as": "."}}},
                {"sleep": {"wait": {"seconds": 1}}},
            ],
            "catch": {"errors": {"with": {"status": 413}}, "do": [
                {"small": {"set": {"at": "${ $error.instance }"}, "export": {"as": "{}"}}},
            ]},
        }},
        {"sleep": {"wait": {"seconds": 1}}},
    ]);
    let went = run(&flow(tasks, json!({})), json!({}));
    assert_eq!(went.waits.len(), 1);
    assert_eq!(went.output(), json!({"at": "/do/0/outer/try/1/sleep"}));
    let nothing = json!([{"none": {"set": {"n": 1}}}]);
    let items = json!([{"over": {"for": {"in": "[range(10001)]"}, "do": nothing}}]);
    let failed = run(&flow(items, json!({})), json!({})).failure();
    assert!(failed.contains("10001 items"), "{failed}");
}

#[test]
fn a_state_nests_so_deep_and_no_deeper() {
    let around = |levels: usize, inner: Value| (0..levels).fold(inner, |inner, _| json!([inner]));
    let tasks = |levels: usize| {
        json!([
            {"first": {"set": {"a": around(47, json!("${ .n }"))}}},
            {"second": {"set": {"a": around(levels, json!("${ . }"))}}},
            {"sleep": {"wait": {"seconds": 1}}},
        ])
    };
    // 96 levels: each object is one, too.
    let went = run(&flow(tasks(47), json!({})), json!({"n": 1}));
    let kept = json!({"a": around(47, json!({"a": around(47, json!(1))}))});
    assert_eq!(went.output(), kept);
    let deep = flow(tasks(51), json!({}));
    let failed = run(&deep, json!({"n": 1})).failure();
    assert!(
        failed.contains(
            "The data of the flow nests deeper here than 96 levels of arrays and objects"
        ),
        "{failed}"
    );
    assert!(failed.contains("(status 413)"), "{failed}");
    // What a run answers is kept, too.
    let mut answers = tasks(48);
    answers.as_array_mut().unwrap().truncate(2);
    let failed = run(&flow(answers, json!({})), json!({"n": 1})).failure();
    assert!(
        failed.contains("The output of the flow nests deeper"),
        "{failed}"
    );
}

#[test]
fn a_row_that_does_not_fit_the_definition_fails_the_run() {
    let definition = flow(json!([{"sleep": {"wait": "PT1S"}}]), json!({}));
    let about = about(Value::Null);
    let begun = next::next(&definition, &about, (None, None), about.started_at);
    let row = begun.flow_state.unwrap();
    for frames in [json!([]), json!("?"), json!([{"task": 9}])] {
        let row = FlowState {
            frames,
            ..row.clone()
        };
        let now = about.started_at + Duration::from_secs(1);
        let decision = next::next(&definition, &about, (Some(&row), Some(&waited())), now);
        assert!(
            matches!(decision.next, Next::End(End::Failed { .. })),
            "{decision:?}"
        );
    }
}

/// The deepest lists over the deepest values, on the smallest stack that runs flows.
#[test]
fn the_deepest_flow_fits_a_run_threads_stack() {
    let around = |levels: usize, inner: Value| (0..levels).fold(inner, |inner, _| json!([inner]));
    let set = json!({"set": {"a": around(110, json!("${ .n }"))}});
    let tasks = (1..NESTING_MOST).fold(set, |task, level| match level % 3 {
        0 => json!({"try": [{"inner": task}], "catch": {"do": [{"caught": {"set": {}}}]}}),
        1 => json!({"for": {"in": "[1]"}, "do": [{"inner": task}]}),
        _ => json!({"do": [{"inner": task}]}),
    });
    let thread = std::thread::Builder::new()
        .name("runs-0".to_owned())
        .stack_size(crate::tools::STACK_BYTES);
    let ran = thread.spawn(move || {
        let definition = flow(json!([{"outer": tasks}]), json!({}));
        run(&definition, json!({"n": around(90, json!(1))})).failure()
    });
    let failed = ran.unwrap().join().unwrap();
    assert!(failed.contains("nests deeper"), "{failed}");
}
