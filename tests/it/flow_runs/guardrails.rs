//! `call: guardrail`: what the task answers, what is recorded of it, and what stands nowhere.

use super::crashes::{FAILING, carried_on, commits};
use super::world::Flows;
use crate::runtime::world::World;
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{StartOptions, Status};
use serde_json::{Value, json};
use uuid::Uuid;

/// What the checks find.
const CANARY: &str = "canary-7f3a";

/// A check for the canary.
fn check(action: &str, more: Value) -> Value {
    let mut check = json!({"builtin": "pattern", "name": "no-canary", "at": ["output"], "action": action,
        "config": {"patterns": ["canary-[0-9a-z]+"]}});
    let fields = check.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    check
}

/// A check that fails where the text is `{"a":1}`: what it finds stands in no part of the JSON alone.
fn failing(on_error: &str) -> Value {
    json!({"builtin": "pattern", "name": "fails", "at": ["output"], "action": "redact",
        "config": {"patterns": ["\"a\":1"]}, "onError": on_error})
}

/// A task in which these judge the field `text` of the input.
fn judge(guardrails: Value) -> Value {
    json!({"call": "guardrail", "with": {"text": "${ .text }", "guardrails": guardrails}})
}

/// What was decided: check, origin, verdict and what became of one that failed, in order.
fn decided(world: &World, run_id: Uuid) -> Vec<String> {
    world.read(|session| {
        let rows = session.query(
            "select concat_ws(' ', step, attempt, point, name, origin, verdict, on_error, policy_version)
             from run_checks where run_id = $1 order by step, attempt, ordinal",
            &[&run_id],
        )?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    })
}

/// How many rows of steps, events and checks have the canary. The payload and the state of the run have what the flow was given.
fn canaries(world: &World) -> i64 {
    world.number(
        "select (select count(*) from run_steps s where concat(s.request, s.result) like '%canary-7f3a%')
           + (select count(*) from run_events e where e.data::text like '%canary-7f3a%')
           + (select count(*) from run_checks c where c::text like '%canary-7f3a%')",
    )
}

/// The data of the only event of this kind.
fn only_event(world: &World, run_id: Uuid, kind: &str) -> Value {
    let events = world.events(run_id).into_iter();
    let mut of_kind: Vec<Value> = events
        .filter(|event| event.kind == kind)
        .map(|event| event.data)
        .collect();
    assert_eq!(of_kind.len(), 1, "{kind}: {of_kind:?}");
    of_kind.remove(0)
}

/// What readers of a run are told that ended with this output.
#[track_caller]
fn check_events(world: &World, run_id: Uuid, output: &Value) {
    assert_eq!(world.steps(run_id), ["guardrail /do/0/it completed"]);
    let completed = only_event(world, run_id, "step.completed");
    assert_eq!(completed["type"], "guardrail");
    assert_eq!(completed["outcome"], "succeeded");
    assert_eq!(completed["verdict"], output["verdict"]);
    assert_eq!(completed.get("blockedBy"), output.get("name"));
    assert_eq!(completed.get("text"), None);
    if output["verdict"] != "allow" {
        let told = only_event(world, run_id, "guardrail.decided");
        assert_eq!(told["verdict"], output["verdict"]);
        assert_eq!(told["name"], "no-canary");
    }
}

#[test]
fn each_verdict_is_data_of_the_flow_and_a_row() {
    let world = World::new();
    let clean = json!({"builtin": "secrets", "at": ["output"], "action": "block"});
    let elsewhere = check("block", json!({"name": "elsewhere", "at": ["input"]}));
    world.flow(
        "blocks",
        json!([{"it": judge(json!([elsewhere, clean, check("block", json!({}))]))}]),
    );
    world.flow(
        "redacts",
        json!([{"it": judge(json!([check("redact", json!({})), clean]))}]),
    );
    let process = world.process(1, true);
    let secret = json!({"text": format!("It is {CANARY}.")});
    for (flow, input, output, rows) in [
        (
            "blocks",
            json!({"text": "It is nothing."}),
            json!({"verdict": "allow", "text": "It is nothing."}),
            vec![
                "1 1 output secrets agent allow",
                "1 1 output no-canary agent allow",
            ],
        ),
        (
            "blocks",
            secret.clone(),
            json!({"verdict": "block", "name": "no-canary", "code": "pattern"}),
            vec![
                "1 1 output secrets agent allow",
                "1 1 output no-canary agent block",
            ],
        ),
        (
            "redacts",
            secret,
            json!({"verdict": "redact", "text": "It is [pattern].", "code": "pattern"}),
            vec![
                "1 1 output no-canary agent redact",
                "1 1 output secrets agent allow",
            ],
        ),
        (
            "redacts",
            json!({"text": format!("{{\"is\": [\"{CANARY}\", 1]}}")}),
            json!({"verdict": "redact", "text": "{\"is\": [\"[pattern]\", 1]}", "code": "pattern"}),
            vec![
                "1 1 output no-canary agent redact",
                "1 1 output secrets agent allow",
            ],
        ),
    ] {
        let run = world.ends(&process, flow, input);
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        assert_eq!(world.output(run.run_id), output, "{flow}");
        assert_eq!(decided(&world, run.run_id), rows, "{flow}");
        check_events(&world, run.run_id, &output);
    }
    assert_eq!(canaries(&world), 0);
    let of_later_form = "select count(*) from run_steps where kind = 'guardrail' and format = 2";
    assert_eq!(
        world.number(of_later_form),
        4,
        "older programs leave them unread"
    );
}

#[test]
fn a_check_that_fails_blocks_unless_its_author_says_otherwise() {
    let world = World::new();
    world.flow("blocks", json!([{"it": judge(json!([failing("block")]))}]));
    world.flow(
        "allows",
        json!([{"it": judge(json!([failing("allow-unsafely"), check("redact", json!({}))]))}]),
    );
    let process = world.process(1, true);
    let input = json!({"text": "{\"a\":1}"});
    let run = world.ends(&process, "blocks", input.clone());
    let blocked = json!({"verdict": "block", "name": "fails", "code": "failed"});
    assert_eq!(world.output(run.run_id), blocked);
    assert_eq!(
        decided(&world, run.run_id),
        ["1 1 output fails agent failed block"]
    );
    assert_eq!(
        only_event(&world, run.run_id, "guardrail.failed")["onError"],
        "block"
    );
    let run = world.ends(&process, "allows", input);
    let allowed = json!({"verdict": "allow", "text": "{\"a\":1}", "code": "failed"});
    assert_eq!(world.output(run.run_id), allowed);
    assert_eq!(
        decided(&world, run.run_id),
        [
            "1 1 output fails agent failed allow-unsafely",
            "1 1 output no-canary agent allow"
        ]
    );
    let told = only_event(&world, run.run_id, "guardrail.failed");
    assert_eq!(told["onError"], "allow-unsafely");
}

#[test]
fn what_is_no_text_or_too_long_is_an_error_that_a_flow_may_catch() {
    let world = World::new();
    let caught = |text: &str| {
        let mut task = judge(json!([check("block", json!({}))]));
        task["with"]["text"] = json!(text);
        task["output"] = json!({"as": "{verdict: .verdict, length: (.text | length)}"});
        json!([{"outer": {"try": [{"it": task}], "catch": {"do": [{"tell": {"set": "${ $error }"}}]}}}])
    };
    world.flow("number", caught("${ 5 }"));
    world.flow("nothing", caught("${ .none }"));
    world.flow("long", caught("${ .text + .text + .text + .text }"));
    world.flow(
        "longer",
        caught("${ .text + .text + .text + .text + .text }"),
    );
    let process = world.process(1, true);
    let input = json!({"text": "x".repeat(220_000)});
    for (flow, status, said) in [
        ("number", 400, "no text"),
        ("nothing", 400, "no text"),
        ("longer", 413, "1100000 bytes"),
    ] {
        let error = world.answers(&process, flow, input.clone());
        assert_eq!(error["status"], status, "{error}");
        assert_eq!(error["instance"], "/do/0/outer/try/0/it");
        assert!(error["detail"].as_str().unwrap().contains(said), "{error}");
    }
    assert_eq!(world.number("select count(*) from run_steps"), 0);
    let judged = world.answers(&process, "long", input);
    assert_eq!(judged, json!({"verdict": "allow", "length": 880_000}));
}

#[test]
fn a_dry_run_judges_unless_it_is_told_the_answer() {
    let world = World::new();
    world.flow(
        "dry",
        json!([{"it": judge(json!([check("block", json!({}))]))}]),
    );
    let process = world.process(1, true);
    let input = json!({"text": CANARY});
    let run_id = world.start_dry(&process, "dry", input.clone());
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id)["verdict"], "block");
    assert_eq!(
        decided(&world, run_id),
        ["1 1 output no-canary agent block"]
    );
    let given = json!({"verdict": "allow", "text": "given"});
    let options = StartOptions {
        fixtures: [("/do/0/it".to_owned(), given.clone())]
            .into_iter()
            .collect(),
        ..StartOptions::default()
    };
    let run_id = world.start_with(&process, "dry", input, options);
    world.finished(&process, run_id);
    assert_eq!(world.output(run_id), given);
    assert_eq!(decided(&world, run_id), [""; 0]);
    let simulated = only_event(&world, run_id, "step.simulated");
    assert_eq!(simulated["request"], json!({"point": "output"}));
    assert_eq!(canaries(&world), 0);
}

#[test]
fn branches_and_iterations_have_their_texts_judged() {
    let world = World::new();
    let judged = judge(json!([check("redact", json!({}))]));
    let mut of_item = judged.clone();
    of_item["with"]["text"] = json!("${ $item }");
    let tasks = json!([
        {"both": {"fork": {"branches": [{"left": judged}, {"right": {"set": "${ .text }"}}]}, "export": {"as": "{ both: . }"},
            "output": {"as": "."}}},
        {"each": {"for": {"in": "[\"one\", $context.both[1]]"}, "metadata": {"concurrency": 2}, "do": [{"it": of_item}]}},
        {"tell": {"set": {"both": "${ $context.both[0].text }", "each": "${ [.[].text] }"}}},
    ]);
    world.flow("parallel", tasks);
    let process = world.process(2, true);
    let told = world.answers(&process, "parallel", json!({"text": CANARY}));
    assert_eq!(
        told,
        json!({"both": "[pattern]", "each": ["one", "[pattern]"]})
    );
    let rows = "select count(*) from run_checks c join runs r using (tenant_id, run_id) where r.parent_run_id is not null";
    assert_eq!(world.number(rows), 3);
}

#[test]
fn a_process_that_dies_before_any_commit_leaves_one_verdict() {
    let world = World::new();
    world.batch(FAILING);
    let tasks = json!([
        {"it": judge(json!([check("redact", json!({}))]))},
        {"sleep": {"wait": {"milliseconds": 0}}},
    ]);
    world.flow("dies", tasks);
    let dies_before = |commit: i64| {
        let input = json!({"text": CANARY});
        let run = carried_on(&world, commit, |creator| {
            world.start(creator, "dies", input)
        });
        assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
        assert_eq!(world.output(run.run_id)["text"], "[pattern]");
        assert_eq!(
            world.steps(run.run_id),
            ["guardrail /do/0/it completed", "wait /do/1/sleep completed"]
        );
        let rows = decided(&world, run.run_id);
        assert_eq!(rows.len(), 1, "before commit {commit}: {rows:?}");
        commits(&world)
    };
    let whole = dies_before(i64::MAX);
    for commit in 2..=whole {
        dies_before(commit);
    }
    assert_eq!(canaries(&world), 0);
}

/// What an attempt of the step decided is never written, as of a process that died.
const FIRST_FAILS: &str = "
    create function fail_first() returns trigger language plpgsql as $$
    begin
      if new.attempt = 1 then
        raise exception 'the process is dead' using errcode = '57P01';
      end if;
      return new;
    end $$;
    create trigger fail_first before insert on run_checks for each row execute function fail_first();";

#[test]
fn the_text_is_judged_again_after_a_crash_in_the_step() {
    let world = World::new();
    world.batch(FIRST_FAILS);
    world.flow(
        "dies",
        json!([{"it": judge(json!([check("redact", json!({}))]))}]),
    );
    let dying = world.process(1, false);
    let run_id = world.start(&dying, "dies", json!({"text": CANARY}));
    world.eventually(|| world.steps(run_id) == ["guardrail /do/0/it running"]);
    world.expire_leases();
    let next = world.process(1, false);
    let run = world.until(&next, run_id, |run| run.status.is_finished());
    drop(dying);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(world.output(run_id)["text"], "[pattern]");
    assert_eq!(
        decided(&world, run_id),
        ["1 2 output no-canary agent redact"]
    );
    assert!(world.kinds(run_id).contains(&"step.restarted".to_owned()));
    assert_eq!(canaries(&world), 0);
}
