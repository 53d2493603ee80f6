//! What readers of a run are told of its tasks, and of runs below it.

use super::world::Flows;
use crate::runtime::world::{HttpServer, World};
use agent_runtime::store::Sql;
use agent_runtime::store::runs::Status;
use serde_json::{Value, json};
use uuid::Uuid;

/// The events of a run: kind and data.
fn events(world: &World, run_id: Uuid) -> Vec<(String, Value)> {
    world.read(|session| {
        let query = "select kind, data from run_events where run_id = $1 order by seq";
        let rows = session.query(query, &[&run_id])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    })
}

/// The kinds of the events, each with the path of its data.
fn lines(world: &World, run_id: Uuid) -> Vec<String> {
    let lines = events(world, run_id).into_iter().map(|(kind, data)| {
        let path = data["path"].as_str().unwrap_or_default();
        let of = |name: &str| match &data[name] {
            Value::Null => String::new(),
            value => format!(" {value}"),
        };
        format!("{kind} {path}{}{}", of("iteration"), of("willRetry"))
    });
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn busy() -> Value {
    json!({"raise": {"error": {"type": "https://example.com/busy", "status": 503, "title": "Busy"}}})
}

#[test]
fn every_task_is_told_and_costs_no_commit_of_its_own() {
    let world = World::new();
    let nap = json!({"wait": {"milliseconds": 1}});
    let tries = json!({
        "try": [{"fails": busy()}],
        "catch": {"retry": {"delay": {"milliseconds": 1}, "limit": {"attempt": {"count": 2}}},
            "do": [{"nap": nap}]},
    });
    world.flow(
        "told",
        json!([
            {"each": {"for": {"in": "[1, 2]"}, "do": [{"add": {"set": {"n": 1}}}]}},
            {"never": {"if": "false", "set": {}}},
            {"outer": tries},
            {"wrong": {"set": {"n": "${ .n + {} }"}}},
        ]),
    );
    let process = world.process(1, true);
    let run = world.ends(&process, "told", json!({}));
    assert_eq!(run.status, Status::Failed);
    let expected = "run.created
run.started
task.started /do/0/each
task.started /do/0/each/do/0/add 0
task.completed /do/0/each/do/0/add 0
task.started /do/0/each/do/0/add 1
task.completed /do/0/each/do/0/add 1
task.completed /do/0/each
task.skipped /do/1/never
task.started /do/2/outer
task.started /do/2/outer/try/0/fails
task.faulted /do/2/outer/try/0/fails false
task.faulted /do/2/outer true
step.started /do/2/outer
step.completed /do/2/outer
task.started /do/2/outer/try/0/fails
task.faulted /do/2/outer/try/0/fails false
task.caught /do/2/outer
task.started /do/2/outer/catch/do/0/nap
step.started /do/2/outer/catch/do/0/nap
step.completed /do/2/outer/catch/do/0/nap
task.completed /do/2/outer/catch/do/0/nap
task.completed /do/2/outer
task.started /do/3/wrong
task.faulted /do/3/wrong false
run.failed";
    assert_eq!(lines(&world, run.run_id).join("\n"), expected);
    let events = events(&world, run.run_id);
    let caught = events.iter().find(|(kind, _)| kind == "task.caught");
    let about = json!({"path": "/do/2/outer", "type": "try", "status": 503, "title": "Busy"});
    assert_eq!(caught.unwrap().1, about);
    let times = "select count(distinct created_at) from run_events where kind like 'task.%'
        and created_at not in (select created_at from run_events where kind not like 'task.%')";
    assert_eq!(world.number(times), 0, "each rides in another's commit");
}

#[test]
fn a_time_that_is_over_cuts_tasks_and_says_so() {
    let world = World::new();
    let nap = json!({"nap": {"wait": {"days": 300}}});
    let list = json!({"do": [{"inner": {"do": [nap]}}], "timeout": {"after": "PT10S"}});
    world.flow(
        "late",
        json!([{"outer": {"try": [{"list": list}], "catch": {}}}]),
    );
    let process = world.process(1, true);
    let run_id = world.start(&process, "late", json!({}));
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.pass(&process, 11);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let events = events(&world, run_id);
    let waits = events.iter().find(|(kind, _)| kind == "run.waiting");
    let waits = &waits.unwrap().1;
    assert_eq!(waits["waitingFor"], "timer");
    assert!(waits["wakeAt"].is_string(), "{waits}");
    let list = "/do/0/outer/try/0/list";
    let mut lines = lines(&world, run_id);
    let expected = [
        format!("task.faulted {list}/do/0/inner/do/0/nap false"),
        format!("task.faulted {list}/do/0/inner false"),
        format!("task.faulted {list} false"),
        "task.caught /do/0/outer".to_owned(),
        "task.completed /do/0/outer".to_owned(),
        "run.completed".to_owned(),
    ];
    assert_eq!(lines.split_off(lines.len() - expected.len()), expected);
}

#[test]
fn a_transition_writes_events_of_so_many_tasks_and_counts_the_others() {
    let world = World::new();
    let add = json!({"add": {"set": "${ {n: (.n + 1)} }"}});
    world.flow(
        "long",
        json!([{"each": {"for": {"in": "[range(1000)]"}, "do": [add]}}]),
    );
    let process = world.process(1, true);
    let run = world.ends(&process, "long", json!({"n": 0}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let events = events(&world, run.run_id);
    assert_eq!(events.len(), 2 + 200 + 1 + 1);
    let (kind, data) = &events[events.len() - 2];
    let omitted = json!({"count": 2 * 1001 - 200});
    assert_eq!((kind.as_str(), data), ("events.omitted", &omitted));
}

#[test]
fn a_run_tells_of_its_first_5000_tasks_and_counts_the_others() {
    let world = World::new();
    let set = json!({"set": {}});
    // The loop is the first task, the nap the 4,999th.
    let tasks = json!([
        {"each": {"for": {"in": "[range(4997)]"}, "do": [{"none": set}]}},
        {"nap": {"wait": {"milliseconds": 1}}},
        {"last": set},
        {"beyond": set},
    ]);
    world.flow("long", tasks);
    let process = world.process(1, true);
    let run = world.ends(&process, "long", json!({}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let events = events(&world, run.run_id);
    let woken = events.iter().position(|(kind, _)| kind == "step.completed");
    let after: Vec<_> = events[woken.unwrap() + 1..]
        .iter()
        .map(|(kind, data)| (kind.as_str(), data["path"].as_str(), &data["count"]))
        .collect();
    let none = &Value::Null;
    assert_eq!(
        after,
        [
            ("task.completed", Some("/do/1/nap"), none),
            ("task.started", Some("/do/2/last"), none),
            ("task.completed", Some("/do/2/last"), none),
            ("events.omitted", None, &json!(2)),
            ("run.completed", None, none),
        ]
    );
}

#[test]
fn runs_below_are_told_as_they_begin_and_end() {
    let world = World::new();
    let fork = json!({"fork": {"branches": [
        {"a": {"set": {"n": 1}}},
        {"b": {"do": [{"nap": {"wait": {"milliseconds": 1}}}]}},
    ]}});
    world.flow("forks", json!([{"split": fork}]));
    let process = world.process(2, true);
    let run = world.ends(&process, "forks", json!({}));
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let children = world.children(run.run_id);
    let mut ends = Vec::new();
    for (kind, data) in events(&world, run.run_id) {
        match kind.as_str() {
            "child.started" | "child.completed" => {
                let index = data["index"]
                    .as_u64()
                    .and_then(|index| usize::try_from(index).ok());
                let child = &children[index.unwrap()];
                assert_eq!(data["runId"], json!(child.run_id));
                assert_eq!(data["path"], "/do/0/split");
                ends.push(format!("{kind} {}", data["status"]));
            }
            _ => {}
        }
    }
    ends.sort();
    let completed = "child.completed \"completed\"";
    assert_eq!(
        ends,
        [
            completed,
            completed,
            "child.started null",
            "child.started null"
        ]
    );
}

#[test]
fn a_dry_run_shows_what_it_would_have_sent_until_that_is_erased() {
    let world = World::new();
    let server = HttpServer::start(&[]);
    let post = json!({"method": "post", "endpoint": server.url("/pay"), "body": {"amount": "${ .amount }"}});
    world.flow(
        "pays",
        json!([{"pay": {"call": "http", "with": post}}, {"fails": busy()}]),
    );
    let process = world.process(1, true);
    let run_id = world.start_dry(&process, "pays", json!({"amount": 70}));
    world.finished(&process, run_id);
    let simulated = || {
        let events = events(&world, run_id);
        let found = events
            .into_iter()
            .find(|(kind, _)| kind == "step.simulated");
        found.unwrap().1
    };
    let shown = simulated();
    assert_eq!(shown["request"]["body"], "{\"amount\":70}");
    assert_eq!(shown["requestOmitted"], false);
    assert_eq!(
        (&shown["path"], &shown["type"]),
        (&json!("/do/0/pay"), &json!("http"))
    );
    assert_eq!(server.got().len(), 0);
    world.batch(&format!(
        "select run_erase_payloads(of_tenant_id => '{}', root_ids => array['{run_id}'::uuid], at => now())",
        world.tenant_id
    ));
    let erased = simulated();
    assert_eq!(
        (&erased["request"], &erased["erased"]),
        (&Value::Null, &json!(true))
    );
    let events = events(&world, run_id);
    let faulted = events.iter().find(|(kind, _)| kind == "task.faulted");
    assert_eq!(faulted.unwrap().1["title"], "Erased.");
}
