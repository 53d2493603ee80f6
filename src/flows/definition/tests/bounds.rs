//! Definitions at their bounds and one beyond.

use super::{with_task, with_tasks};
use crate::flows::definition::check;
use crate::flows::definition::fault::{Code, Fault};
use crate::flows::definition::tree::{BRANCHES_MOST, DEFINITION_BYTES, NESTING_MOST, TASKS_MOST};
use serde_json::{Map, Value, json};

fn set_tasks(count: usize) -> Value {
    (0..count)
        .map(|n| json!({format!("t{n}"): {"set": {}}}))
        .collect()
}

fn too_large(definition: &Value) -> Vec<Fault> {
    let faults = check(definition).unwrap_err();
    assert!(
        faults.iter().all(|fault| fault.code == Code::TooLarge),
        "{faults:?}"
    );
    faults
}

#[test]
fn a_definition_has_500_tasks_at_most() {
    assert!(check(&with_tasks(&set_tasks(TASKS_MOST))).is_ok());
    let faults = too_large(&with_tasks(&set_tasks(TASKS_MOST + 1)));
    assert_eq!(faults.len(), 1);
}

/// Each call of a function is a copy of its task, so functions that call functions would multiply without an end: these ten
/// levels to ten thousand million tasks, which no machine holds.
#[test]
fn functions_that_multiply_meet_the_bound() {
    let mut functions = Map::new();
    for level in 0..10 {
        let call = json!({"call": format!("f{}", level + 1)});
        let tasks: Value = (0..10).map(|n| json!({format!("t{n}"): call})).collect();
        functions.insert(format!("f{level}"), json!({"do": tasks}));
    }
    functions.insert("f10".to_owned(), json!({"set": {}}));
    let mut definition = with_task(&json!({"call": "f0"}));
    definition["use"] = json!({"functions": functions});
    too_large(&definition);
}

#[test]
fn lists_nest_16_deep_at_most() {
    let nested = |levels: usize| {
        let mut task = json!({"set": {}});
        for _ in 1..levels {
            task = json!({"do": [{"inner": task}]});
        }
        with_task(&task)
    };
    assert!(check(&nested(NESTING_MOST)).is_ok());
    too_large(&nested(NESTING_MOST + 1));
}

#[test]
fn a_definition_has_256_kibibytes_at_most() {
    let filled = |bytes: usize| with_task(&json!({"set": {"a": "x".repeat(bytes)}}));
    let rest = filled(0).to_string().len();
    assert!(check(&filled(DEFINITION_BYTES - rest)).is_ok());
    too_large(&filled(DEFINITION_BYTES - rest + 1));
}

fn with_field(name: &str, text: String) -> Value {
    let mut definition = with_task(&json!({"set": {}}));
    definition["document"][name] = json!(text);
    definition
}

#[test]
fn a_summary_has_16_kibibytes_at_most() {
    let of = |bytes: usize| with_field("summary", "x".repeat(bytes));
    assert!(check(&of(16 * 1024)).is_ok());
    let faults = too_large(&of(16 * 1024 + 1));
    assert_eq!(faults[0].path, "$.document.summary");
}

#[test]
fn a_version_has_100_characters_at_most() {
    let of = |length: usize| with_field("version", format!("1.0.0-{}", "a".repeat(length - 6)));
    assert!(check(&of(100)).is_ok());
    let faults = check(&of(101)).unwrap_err();
    let found: Vec<_> = faults
        .iter()
        .map(|fault| (&*fault.path, fault.code))
        .collect();
    assert_eq!(found, [("$.document.version", Code::BadValue)]);
}

#[test]
fn a_fork_has_32_branches_at_most() {
    let of = |count| with_task(&json!({"fork": {"branches": set_tasks(count)}}));
    assert!(check(&of(BRANCHES_MOST)).is_ok());
    too_large(&of(BRANCHES_MOST + 1));
}

/// Functions of which each calls the next one, `count` in all. The last one runs `task`.
fn chain(count: usize, task: &Value) -> Value {
    let functions: Map<String, Value> = (0..count)
        .map(|level| match level + 1 == count {
            true => (format!("f{level}"), task.clone()),
            false => {
                let called = json!({"call": format!("f{}", level + 1), "with": "${ . }"});
                (format!("f{level}"), called)
            }
        })
        .collect();
    json!({"functions": functions})
}

fn calling(functions: Value) -> Value {
    let mut definition = with_task(&json!({"call": "f0"}));
    definition["use"] = functions;
    definition
}

/// On the smallest stack that reads definitions, which is that of a run thread.
fn on_a_run_threads_stack<T: Send + 'static>(check: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new()
        .name("run-0".to_owned())
        .stack_size(crate::tools::STACK_BYTES);
    thread.spawn(check).unwrap().join().unwrap()
}

#[test]
fn functions_nest_as_lists_do() {
    let set = json!({"set": {}});
    assert!(check(&calling(chain(NESTING_MOST - 1, &set))).is_ok());
    let faults = too_large(&calling(chain(NESTING_MOST, &set)));
    let last = format!("$.use.functions.f{}.call", NESTING_MOST - 2);
    assert_eq!(faults[0].path, last);
    assert!(faults[0].message.contains("16 deep"), "{faults:?}");
    // Lists and functions together.
    let inner = json!({"do": [{"a": {"do": [{"b": {"set": {}}}]}}]});
    assert!(check(&calling(chain(NESTING_MOST - 3, &inner))).is_ok());
    too_large(&calling(chain(NESTING_MOST - 2, &inner)));
}

/// A chain of functions as long as a definition may be: used, used by nothing, and written the other way round.
#[test]
fn no_chain_of_functions_exhausts_a_stack() {
    let used = calling(chain(3_000, &json!({"set": {}})));
    let mut unused = used.clone();
    unused["do"] = json!([{"only": {"set": {}}}]);
    let mut backward = unused.clone();
    let functions = backward["use"]["functions"].as_object().unwrap();
    let reversed: Map<String, Value> = functions.clone().into_iter().rev().collect();
    backward["use"]["functions"] = json!(reversed);
    for definition in [used, unused, backward] {
        assert!(definition.to_string().len() <= DEFINITION_BYTES);
        on_a_run_threads_stack(move || too_large(&definition));
    }
}

#[test]
fn the_deepest_definitions_fit_a_run_threads_stack() {
    let mut value = json!("${ . }");
    for _ in 0..120 {
        value = json!([value]);
    }
    let set = json!({"set": {"a": value}});
    let lists = |wrap: &dyn Fn(usize, Value) -> Value| {
        (1..NESTING_MOST).fold(set.clone(), |task, level| wrap(level, task))
    };
    let mixed = lists(&|level, task| match level % 2 {
        0 => json!({"try": [{"inner": task}], "catch": {}}),
        _ => json!({"for": {"in": ".a"}, "do": [{"inner": task}]}),
    });
    let caught = lists(
        &|_, task| json!({"try": [{"fails": {"set": {}}}], "catch": {"do": [{"inner": task}]}}),
    );
    let forks = lists(&|_, task| json!({"fork": {"branches": [{"inner": task}]}}));
    let definitions = [
        with_task(&mixed),
        with_task(&caught),
        with_task(&forks),
        calling(chain(NESTING_MOST - 1, &set)),
    ];
    for whole in definitions {
        on_a_run_threads_stack(move || {
            let definition = check(&whole).unwrap();
            let picture = crate::flows::definition::graph::of(&definition);
            assert!(!serde_json::to_string(&picture).unwrap().is_empty());
            definition.steps().len()
        });
    }
}
