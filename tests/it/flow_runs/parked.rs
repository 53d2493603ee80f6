//! Runs that the earliest build parked which parks runs of flows: their rows are kept in `parked.json`, and go on.
//!
//! The file is never written again: it stands for rows in somebody's database. A further form gets a further file.

use super::world::Flows;
use crate::runtime::world::{World, YES};
use agent_runtime::ids::rfc3339;
use agent_runtime::store::Sql;
use agent_runtime::store::approvals::{Decided, Decision};
use agent_runtime::store::runs::Status;
use postgres::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// The tables, with the column that names the run.
const TABLES: [(&str, &str); 10] = [
    ("runs", "run_id"),
    ("run_payloads", "run_id"),
    ("run_events", "run_id"),
    ("run_steps", "run_id"),
    ("run_children", "parent_run_id"),
    ("flow_states", "run_id"),
    ("job_jobs", "(t.payload ->> 'runId')::uuid"),
    ("approvals", "run_id"),
    ("approval_subjects", "run_id"),
    (
        "approval_log",
        "(select a.run_id from approvals a where a.approval_id = t.approval_id)",
    ),
];
const HOUR: Duration = Duration::from_secs(3600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

type Rows = BTreeMap<String, Vec<Value>>;

/// A run that was parked, and how it goes on.
struct Parked {
    /// The file of its rows.
    file: &'static str,
    tasks: Value,
    /// The tasks of the flow that it runs.
    below: Option<Value>,
    /// How its children stand when it is parked, and how many of them it has seen.
    children: &'static [Status],
    seen: i64,
    /// What it answers, and the steps that it takes.
    output: Value,
    steps: &'static [&'static str],
}

/// A run with frames of each kind that waits, beside a branch that has ended.
fn of_each_kind() -> Parked {
    let slow = json!({"do": [
        {"nap": {"wait": {"hours": 1}}},
        {"tell": {"set": "${ [$x, .n, $context.kept] }"}},
    ]});
    let fork = json!({"fork": {"branches": [{"slow": slow}, {"quick": {"set": "${ $x }"}}]}});
    let tries = json!({
        "try": [{"split": fork}],
        "catch": {"errors": {"with": {"status": 503}}, "retry": {"delay": {"seconds": 1}}},
    });
    Parked {
        file: "parked.json",
        tasks: json!([
            {"keep": {"set": "${ . }", "export": {"as": "{ kept: .n }"}}},
            {"each": {"for": {"each": "x", "in": "[7]"}, "do": [{"outer": tries}]}},
            {"after": {"set": {"split": "${ . }"}}},
        ]),
        below: None,
        children: &[Status::Waiting, Status::Completed],
        seen: 1,
        output: json!({"split": [[7, 5, 5], 7]}),
        steps: &["child /do/1/each/do/0/outer/try/0/split completed"],
    }
}

/// A parallel loop whose third and fourth iterations wait.
fn of_iterations(file: &'static str, steps: &'static [&'static str]) -> Parked {
    let slow =
        json!({"slow": {"if": "$x == 3 or $x == 4", "do": [{"nap": {"wait": {"hours": 1}}}]}});
    let tell = json!({"tell": {"set": "${ [$index, $x, .n] }"}});
    Parked {
        file,
        tasks: json!([{"each": {
            "for": {"each": "x", "in": "[1, 2, 3, 4, 5]"},
            "metadata": {"concurrency": 2},
            "do": [slow, tell],
        }}]),
        below: None,
        children: &[
            Status::Completed,
            Status::Completed,
            Status::Waiting,
            Status::Waiting,
        ],
        seen: 2,
        output: json!([[0, 1, 5], [1, 2, 5], [2, 3, 5], [3, 4, 5], [4, 5, 5]]),
        steps,
    }
}

/// A list that is to be tried again, after a call that nobody answered.
fn of_a_call() -> Parked {
    let pay = json!({"call": "tool", "with": {"tool": "pay", "arguments": {"city": "Rome"}},
        "timeout": {"after": {"milliseconds": 1500}}});
    Parked {
        file: "parked-unanswered.json",
        tasks: json!([{"outer": {"try": [{"pay": pay}], "catch": {"retry": {"delay": {"hours": 1}}}}}]),
        below: None,
        children: &[],
        seen: 0,
        output: json!("sunny"),
        steps: &[
            "tool /do/0/outer/try/0/pay failed",
            "wait /do/0/outer completed",
            "tool /do/0/outer/try/0/pay completed",
        ],
    }
}

/// A branch that asks a person, in the handler of an error and with a time, beside one that runs another flow.
fn of_an_approval() -> Parked {
    let broken = json!({"type": "https://serverlessworkflow.io/spec/1.0.0/errors/runtime", "status": 500, "title": "Broken"});
    let may = json!({
        "call": "approval",
        "with": {"title": "May it?", "requiredRole": "finance", "context": "${ . }", "expiresAfter": "P2D"},
        "timeout": {"after": {"hours": 2}},
    });
    let ask = json!({"do": [
        {"may": may},
        {"tell": {"set": "${ [.decision, .comment, $error.status, $context.kept] }"}},
    ]});
    let run = json!({"namespace": "test", "name": "below", "version": "1.0.0", "input": "${ . }"});
    let fork = json!({"fork": {"branches": [{"ask": ask}, {"other": {"run": {"workflow": run}}}]}});
    let tries = json!({
        "try": [{"breaks": {"raise": {"error": broken}}}],
        "catch": {"do": [{"split": fork}]},
        "timeout": {"after": {"hours": 12}},
    });
    Parked {
        file: "parked-approval.json",
        tasks: json!([
            {"keep": {"set": "${ . }", "export": {"as": "{ kept: .n }"}}},
            {"outer": tries},
            {"after": {"set": {"split": "${ . }"}}},
        ]),
        below: Some(json!([
            {"nap": {"wait": {"minutes": 30}}},
            {"tell": {"set": "${ [.n, \"below\"] }"}},
        ])),
        children: &[Status::Waiting, Status::Waiting],
        seen: 0,
        output: json!({"split": [["approved", "It may.", 500, 5], [5, "below"]]}),
        steps: &["child /do/1/outer/catch/do/0/split completed"],
    }
}

/// What stands in the file for ids that each test has its own of.
fn ids(world: &World, runs: &[Uuid], approvals: &[Uuid]) -> Vec<(String, Uuid)> {
    let named = |name: &'static str, ids: &[Uuid]| {
        let ids: Vec<Uuid> = ids.to_vec();
        let ids = ids.into_iter().enumerate();
        ids.map(move |(at, id)| (format!("{name}-{at}"), id))
    };
    let runs = named("run", runs).chain(named("approval", approvals));
    let others = [
        ("tenant", world.tenant_id),
        ("project", world.project_id),
        ("user", world.user_id),
    ];
    let others = others.map(|(name, id)| (name.to_owned(), id));
    runs.chain(others).collect()
}

fn rows_of(client: &mut Client, runs: &[Uuid]) -> Rows {
    let rows = TABLES.map(|(table, run)| {
        let query =
            format!("select coalesce(json_agg(t), '[]') from {table} t where {run} = any ($1)");
        let rows: Value = client.query_one(&query, &[&runs]).unwrap().get(0);
        (table.to_owned(), rows.as_array().unwrap().clone())
    });
    rows.into()
}

fn put_back(client: &mut Client, rows: &Rows) {
    for (table, _) in TABLES {
        for row in rows.get(table).into_iter().flatten() {
            let columns: Vec<&str> = row
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            // A null of JSON reads as one of SQL, which these columns do not take.
            let values = columns.iter().map(|column| match *column {
                "input" | "data" | "context" => format!("coalesce({column}, 'null')"),
                column => format!("\"{column}\""),
            });
            let values = values.collect::<Vec<_>>().join(", ");
            let columns = columns.join("\", \"");
            let insert = format!(
                "insert into {table} (\"{columns}\") select {values} from json_populate_record(null::{table}, $1)"
            );
            client.execute(&insert, &[row]).unwrap();
        }
    }
    // What is written from here on gets other ids.
    for sequence in ["job_jobs_id_seq", "approval_log_position"] {
        let next = format!("select setval('{sequence}', 1000000)");
        client.execute(&next, &[]).unwrap();
    }
}

/// Parks a run, and says its rows.
fn park(world: &World, parked: &Parked) -> String {
    let gate = world.tool.gate.clone();
    let _closed = gate.lock().unwrap();
    let process = world.process(2, true);
    let run_id = world.start(&process, "parked", json!({"n": 5}));
    world.eventually(|| {
        let children = world.children(run_id);
        let states: Vec<Status> = children.iter().map(|child| child.status).collect();
        states == parked.children
            && world.run(run_id).status == Status::Waiting
            && world.number("select count(*) from run_children where seen") == parked.seen
            && world.number("select count(*) from runs where status in ('queued', 'running')") == 0
    });
    let mut runs = vec![run_id];
    let mut at = 0;
    while let Some(run_id) = runs.get(at) {
        runs.extend(world.children(*run_id).iter().map(|child| child.run_id));
        at += 1;
    }
    let rows = rows_of(&mut world.database.client(), &runs);
    let mut text = serde_json::to_string_pretty(&rows).unwrap();
    for (name, id) in ids(world, &runs, &approvals(world)) {
        text = text.replace(&id.to_string(), &name);
    }
    text + "\n"
}

/// Moves each time.
fn move_times(value: &mut Value, by: time::Duration) {
    match value {
        Value::String(text) => {
            if let Some(at) = rfc3339::parse(text) {
                *text = rfc3339::text(at + by);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_times(item, by)),
        Value::Object(fields) => fields.values_mut().for_each(|field| move_times(field, by)),
        _ => {}
    }
}

/// Moves all times of the rows, as if the first run had been created now: a run has its days.
fn move_to(rows: &mut Rows, run_id: Uuid, now: OffsetDateTime) {
    let mut runs = rows["runs"].iter();
    let run = runs.find(|run| run["run_id"] == json!(run_id)).unwrap();
    let created_at = rfc3339::parse(run["created_at"].as_str().unwrap()).unwrap();
    for row in rows.values_mut().flatten() {
        move_times(row, now - created_at);
    }
}

/// All approvals, in their order.
fn approvals(world: &World) -> Vec<Uuid> {
    let query = "select coalesce(array_agg(approval_id order by approval_id), '{}') from approvals";
    world.read(|session| Ok(session.query_one(query, &[])?.get(0)))
}

fn flows(parked: &Parked) -> World {
    let world = World::new();
    if let Some(below) = &parked.below {
        world.flow("below", below.clone());
    }
    world.flow("parked", parked.tasks.clone());
    world
}

/// A world with the run that stands in the file, and the run's id.
fn stands(parked: &Parked, format: i32) -> (World, Uuid) {
    let path = format!(
        "{}/tests/it/flow_runs/{}",
        env!("CARGO_MANIFEST_DIR"),
        parked.file
    );
    if !std::fs::exists(&path).unwrap() && std::env::var_os("UPDATE_GENERATED").is_some() {
        let text = park(&flows(parked), parked);
        std::fs::write(&path, text).unwrap();
    }
    let world = flows(parked);
    let mut text = std::fs::read_to_string(path).unwrap();
    let rows: Rows = serde_json::from_str(&text).unwrap();
    let new = |table: &str| -> Vec<Uuid> {
        let rows = rows.get(table).into_iter().flatten();
        rows.map(|_| world.clock.new_id()).collect()
    };
    let runs = new("runs");
    for (name, id) in ids(&world, &runs, &new("approvals")) {
        text = text.replace(&format!("\"{name}\""), &format!("\"{id}\""));
    }
    let mut rows: Rows = serde_json::from_str(&text).unwrap();
    move_to(&mut rows, runs[0], world.clock.now());
    let states = rows["flow_states"].iter();
    let own = states.filter(|state| state["run_id"] == json!(runs[0]));
    let formats: Vec<&Value> = own.map(|state| &state["format"]).collect();
    assert_eq!(formats, [&json!(format)]);
    // A process makes the partitions of the month.
    drop(world.process(0, false));
    put_back(&mut world.database.client(), &rows);
    (world, runs[0])
}

/// The run goes on after this time.
fn ends(world: &World, run_id: Uuid, parked: &Parked, after: Duration) {
    world.clock.advance(after);
    let process = world.process(2, true);
    process.shard.follow(run_id);
    world.pass(&process, 0);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id), parked.output);
    assert_eq!(world.steps(run_id), parked.steps);
}

/// Has a run go on that stands in the file. Says the keys of its calls.
fn goes_on(parked: &Parked, format: i32) -> Vec<Option<String>> {
    let (world, run_id) = stands(parked, format);
    ends(&world, run_id, parked, YEAR);
    let asked = world.tool.asked().into_iter();
    asked.map(|asked| asked.0).collect()
}

#[test]
fn a_run_that_the_earliest_build_parked_goes_on() {
    goes_on(&of_each_kind(), 1);
}

/// Such a build began as many iterations as may run at once as a step of its own, and the next ones once all of these had ended.
#[test]
fn a_loop_that_an_earlier_build_parked_in_its_second_part_goes_on() {
    let steps = &["child /do/0/each completed"; 3];
    goes_on(&of_iterations("parked-part.json", steps), 1);
}

#[test]
fn a_loop_that_was_parked_before_all_of_it_had_begun_goes_on() {
    let steps = &["child /do/0/each completed"];
    goes_on(&of_iterations("parked-places.json", steps), 2);
}

#[test]
fn a_call_that_nobody_answered_before_it_was_parked_is_made_with_its_key() {
    let keys = goes_on(&of_a_call(), 3);
    assert_eq!(keys, [Some("run-0-1".to_owned())]);
}

#[test]
fn an_approval_that_was_parked_in_a_handler_is_decided_and_its_run_goes_on() {
    let parked = of_an_approval();
    let (world, run_id) = stands(&parked, 1);
    let asking = world.children(run_id)[0].run_id;
    let approval_id = approvals(&world)[0];
    let decision = Decision {
        comment: Some("It may."),
        ..YES
    };
    let decided = world.decide(approval_id, &decision).unwrap();
    assert_eq!(decided, Decided::Written { run_id: asking });
    ends(&world, run_id, &parked, HOUR);
    let asked = ["approval /do/1/outer/catch/do/0/split/fork/branches/0/ask/do/0/may completed"];
    assert_eq!(world.steps(asking), asked);
    let log = "select array_agg(kind order by position) from approval_log";
    let log: Vec<String> = world.read(|session| Ok(session.query_one(log, &[])?.get(0)));
    assert_eq!(log, ["opened", "approved"]);
}

/// The time of its task, which is shorter than that of the approval.
#[test]
fn an_approval_that_was_parked_is_over_with_the_time_of_its_task() {
    let parked = of_an_approval();
    let (world, run_id) = stands(&parked, 1);
    world.clock.advance(3 * HOUR);
    // Its end is that of its task, by PostgreSQL's clock.
    world.batch("update approvals set expires_at = clock_timestamp()");
    let process = world.process(2, true);
    process.shard.follow(run_id);
    world.pass(&process, 0);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed);
    let failure = run.failure_message.unwrap();
    assert!(
        failure.contains("It took longer than its timeout"),
        "{failure}"
    );
}
