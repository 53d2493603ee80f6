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

/// The stack of a thread that checks arguments is the smallest that reads definitions.
#[test]
fn the_deepest_values_fit_a_run_threads_stack() {
    let mut value = json!("${ . }");
    for _ in 0..120 {
        value = json!([value]);
    }
    let mut task = json!({"set": {"a": value}});
    for level in 1..NESTING_MOST {
        task = match level % 2 {
            0 => json!({"try": [{"inner": task}], "catch": {}}),
            _ => json!({"for": {"in": ".a"}, "do": [{"inner": task}]}),
        };
    }
    let definition = with_task(&task);
    let thread = std::thread::Builder::new()
        .name("run-0".to_owned())
        .stack_size(crate::tools::schema::STACK_BYTES);
    let checked = thread.spawn(move || check(&definition).is_ok());
    assert!(checked.unwrap().join().unwrap());
}
