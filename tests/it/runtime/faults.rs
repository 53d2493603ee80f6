//! What comes from outside and does not fit, and a database that is away or slow.

use super::world::{Process, World, calls_weather, started_by};
use crate::harness::PATIENCE;
use agent_runtime::dev::provider::{Reply, Step};
use agent_runtime::runtime::progress::feed::Hint;
use agent_runtime::store::Tx;
use agent_runtime::store::events::{NewEvent, StoredEvent};
use agent_runtime::store::runs::{self, End, Held, HeldJob, Outcome, Status, StepCommit};
use agent_runtime::store::steps::{Begun, Ended, StepKind, StepStatus};
use serde_json::json;
use std::sync::mpsc;
use std::time::Duration;
use uuid::Uuid;

fn calls_pay() -> Step {
    let call = ("pay".to_owned(), json!({"city": "Rome"}));
    Step::new(Reply::ToolCalls(vec![call]))
}

#[test]
fn an_absence_of_the_database_beyond_the_lease_costs_no_answer() {
    let mut world = World::new();
    world.lease = Duration::from_secs(6);
    let processes = [world.process(1, true), world.process(1, true)];
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(calls_pay());
    world.provider.push(Step::text("paid"));
    let run_id = world.create(&processes[0], true);
    world.eventually(|| world.tool.asked().len() == 1);
    world.take_away();
    drop(closed);
    crate::harness::let_time_pass(world.lease * 2);
    world.bring_back();
    let run = world.finished(&processes[0], run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!((run.usage.calls, world.tool.asked().len()), (2, 1));
    assert!(!world.kinds(run_id).contains(&"step.restarted".to_owned()));
}

#[test]
fn an_end_is_not_written_when_the_job_is_another_s() {
    let world = World::new();
    let puppet = world.puppet();
    let process = world.process(1, false);
    let run_id = world.create(&process, true);
    let mut call = puppet.call();
    world.batch("update job_jobs set lease_id = -lease_id");
    call.say("Late.");
    call.finish();
    let lost = || {
        process
            .runtime
            .queue_stats()
            .is_some_and(|stats| stats.lost == 1)
    };
    world.eventually(lost);
    assert_eq!(world.run(run_id).status, Status::Running);
    assert_eq!(world.kinds(run_id).last().unwrap(), "step.started");
    world.batch("update job_jobs set lease_id = null");
    process.runtime.wake();
    let mut call = puppet.call();
    call.say("Done.");
    call.finish();
    assert_eq!(world.finished(&process, run_id).status, Status::Completed);
    assert!(world.kinds(run_id).contains(&"step.restarted".to_owned()));
    assert_eq!(world.number("select count(*) from job_jobs"), 0);
}

#[test]
fn a_nul_from_outside_is_replaced() {
    let world = World::new();
    world.batch(
        r#"update tools set arguments_schema = '{"type": "object", "properties": {"city": {}}, "additionalProperties": false}'"#,
    );
    let process = world.process(1, true);
    let call = ("weather".to_owned(), json!({"x\u{0}": "\u{0}"}));
    world.provider.push(Step::new(Reply::ToolCalls(vec![call])));
    world.provider.push(Step::json(
        200,
        &json!({"choices": [{"message": {"content": "a\u{0}b", "reasoning": "c\u{0}d"}, "finish_reason": "stop"}]}),
    ));
    let closed = world.tool.gate.lock().unwrap();
    let run_id = world.create(&process, true);
    let reader = process.runtime.feed().shard(64);
    reader.follow(run_id);
    drop(closed);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(run.usage.calls, 2, "nothing was asked again");
    let events = world.events(run_id);
    let told: Vec<&serde_json::Value> = events
        .iter()
        .filter(|event| event.kind == "step.completed")
        .map(|event| &event.data)
        .collect();
    let output = told[1]["output"].as_str().unwrap();
    assert!(output.contains("x\u{fffd}"), "{output:?}");
    assert_eq!(told[2]["text"], "a\u{fffd}b");
    assert_eq!(told[2]["hasReasoning"], true);
    // What readers are told at once is what they would read.
    let of = |event: &StoredEvent| (event.seq, event.kind.clone(), event.data.to_string());
    let mut at_once = Vec::new();
    for hint in reader.hints().try_iter() {
        if let Hint::Events(_, events) = hint {
            at_once.extend(events.iter().map(of));
        }
    }
    let read: Vec<_> = events.iter().map(of).collect();
    assert!(at_once.len() >= 4, "{at_once:?}");
    assert!(read.ends_with(&at_once), "{at_once:?} {read:?}");
}

fn step_commit(step: i32) -> StepCommit {
    let event = |kind| NewEvent {
        kind,
        data: json!({}),
    };
    StepCommit {
        events: vec![event("step.completed"), event("step.started")],
        ended: Some(Ended {
            step,
            status: StepStatus::Completed,
            result: Some(json!({})),
            failures: 0,
        }),
        begun: Some(Begun {
            step: step + 1,
            kind: StepKind::Tool,
            name: "weather".to_owned(),
            path: String::new(),
            attempt: 1,
            failures: 0,
            request: json!({}),
        }),
        ..StepCommit::default()
    }
}

#[test]
fn a_commit_that_is_repeated_while_its_first_try_is_under_way_is_written_once() {
    let world = World::new();
    let process = world.process(0, false);
    let run_id = world.create(&process, true);
    let now = world.clock.now();
    let job = held_job(&world);
    let claimed = world
        .store
        .transact(|tx| runs::claim(tx, (world.tenant_id, run_id), job, now));
    let (_, held) = claimed.unwrap().unwrap();
    let again = || {
        let commit = step_commit(1);
        world
            .store
            .transact(|tx| runs::commit_in(tx, &held, &commit, now, |_| Ok(())))
            .unwrap()
            .outcome
    };
    std::thread::scope(|scope| {
        let (say, said) = mpsc::channel();
        world
            .store
            .transact(|tx| {
                let first = runs::commit_in(tx, &held, &step_commit(1), now, |_| Ok(()))?;
                assert_eq!(first.outcome, Outcome::Written);
                scope.spawn(move || say.send(again()).unwrap());
                world.eventually(|| {
                    world.number(
                        "select count(*) from pg_stat_activity
                         where datname = current_database() and wait_event_type = 'Lock'",
                    ) == 1
                });
                Ok(())
            })
            .unwrap();
        assert_eq!(said.recv_timeout(PATIENCE).unwrap(), Outcome::Written);
    });
    assert_eq!(again(), Outcome::Written);
    assert_eq!(
        world.kinds(run_id),
        ["run.created", "step.completed", "step.started"]
    );
    let held = Held {
        events_written: held.events_written + 2,
        ..held
    };
    ends_only_as_a_cancel_asks(&world, &process, &held);
}

/// A cancel that comes between is no write of a holder, and the end that it asks for is the only one.
fn ends_only_as_a_cancel_asks(world: &World, process: &Process, held: &Held) {
    let now = world.clock.now();
    let ends = |end| {
        let last = StepCommit {
            begun: None,
            end: Some(end),
            ..step_commit(2)
        };
        let announce = |_: &mut Tx<'_>| panic!("it is announced although nothing was written");
        world
            .store
            .transact(|tx| runs::commit_in(tx, held, &last, now, announce))
            .unwrap()
            .outcome
    };
    assert_eq!(ends(End::Cancelled), Outcome::Lost, "nobody asked for it");
    process
        .runtime
        .cancel(&world.root(held.lease.run_id()), || Ok(()))
        .unwrap();
    let completed = End::Completed {
        output: json!({}),
        message: None,
    };
    assert_eq!(ends(completed), Outcome::CancelAsked);
    let last = StepCommit {
        begun: None,
        end: Some(End::Cancelled),
        ..step_commit(2)
    };
    let mut announced = 0;
    let written = world.store.transact(|tx| {
        runs::commit_in(tx, held, &last, now, |_| {
            announced += 1;
            Ok(())
        })
    });
    assert_eq!(written.unwrap().outcome, Outcome::Written);
    assert_eq!(announced, 1);
    let again = ends(End::Cancelled);
    assert_eq!(again, Outcome::Written, "it was, and nothing is done again");
}

/// The one job that there is, taken as the queue takes it.
fn held_job(world: &World) -> HeldJob {
    world.batch("update job_jobs set lease_id = nextval('job_lease_ids'), attempt = 1");
    HeldJob {
        job_id: world.number("select id from job_jobs"),
        lease_id: world.number("select lease_id from job_jobs"),
        attempts_before: 0,
    }
}

#[test]
fn a_long_conversation_is_told_from_its_newest_messages() {
    let world = World::new();
    let (tenant_id, conversation_id) = (world.tenant_id, world.conversation_id);
    world.batch(&format!(
        "insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
         select '{tenant_id}', '{conversation_id}', n, 'user', n || repeat('a', 2 * 1024 * 1024 - 10), '{conversation_id}', now()
         from generate_series(1, 150) n;
         update conversations set last_position = 150 where tenant_id = '{tenant_id}'"
    ));
    let process = world.process(1, true);
    world.provider.push(Step::text("well"));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let asked = &world.provider.requests()[0].body["messages"];
    let starts: Vec<&str> = asked
        .as_array()
        .unwrap()
        .iter()
        // Messages of the user in a row are joined.
        .flat_map(|message| message["content"].as_str().unwrap().split("\n\n"))
        .map(|said| &said[..4])
        .collect();
    assert_eq!(starts, ["Be b", "150a", "How "]);
}

#[test]
fn a_turn_holds_so_much_and_no_more() {
    let world = World::new();
    let process = world.process(1, true);
    let busy = Step::json(503, &json!({})).header("retry-after", "300");
    world.provider.push(busy);
    let run_id = world.create(&process, false);
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    let tenant_id = world.tenant_id;
    world.batch(&format!(
        "update run_steps set step = 2 where tenant_id = '{tenant_id}';
         insert into run_steps (tenant_id, run_id, step, kind, name, status, attempt, request, result, started_at)
         values ('{tenant_id}', '{run_id}', 1, 'tool', 'weather', 'completed', 1, '{{}}',
           jsonb_build_object('output', repeat('a', 33 * 1024 * 1024)), now());
         update job_jobs set run_at = now()"
    ));
    process.runtime.wake();
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Failed, 1));
    let message = run.failure_message.unwrap();
    assert!(message.contains("32 MiB"), "{message}");
}

/// A version that this program cannot read, until it is told otherwise, and a run of it whose job lost
/// nineteen leases.
fn unreadable() -> (World, Process, Uuid) {
    let world = World::new();
    world.batch(r#"update agent_versions set limits = '{"maxSteps": "many"}'"#);
    let run_id = world.create(&world.process(0, false), false);
    world.batch("update job_jobs set attempt = 19");
    let process = world.process(1, true);
    process.shard.follow(run_id);
    (world, process, run_id)
}

/// Ends the waits between attempts.
fn run_now(world: &World, process: &Process) {
    world.batch("update job_jobs set run_at = now() where lease_id is null");
    process.runtime.wake();
}

#[test]
fn leases_that_were_lost_take_nothing_from_the_patience_with_a_fault() {
    let (world, process, run_id) = unreadable();
    world.provider.push(Step::text("after all"));
    // It is handed back: the process has outlived the fault, so it counts as no death.
    let handed_back =
        "select count(*) from job_jobs where attempt = 19 and lease_id is null and run_at > now()";
    world.eventually(|| world.number(handed_back) == 1);
    world.batch("update agent_versions set limits = '{}'");
    run_now(&world, &process);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
}

#[test]
fn a_run_that_cannot_be_read_however_often_is_given_up_and_says_so() {
    let (world, process, run_id) = unreadable();
    world.eventually(|| {
        run_now(&world, &process);
        world.run(run_id).status.is_finished()
    });
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed);
    let message = run.failure_message.unwrap();
    assert!(message.contains("fault of its own"), "{message}");
    assert_eq!(world.provider.count(), 0);
}

/// What a run whose holders died would end its process with is never read again: nothing of the definition is.
#[test]
fn a_run_whose_holders_died_twenty_times_in_a_row_is_ended_unread() {
    let (world, process, run_id) = unreadable();
    world.batch("update job_jobs set attempt = 20, lease_id = null, run_at = now()");
    process.runtime.wake();
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed);
    let message = run.failure_message.unwrap();
    assert!(message.contains("died 20 times in a row"), "{message}");
    assert_eq!(process.runtime.stats().given_up, 1);
    assert_eq!(world.number("select count(*) from job_jobs"), 0);
}

#[test]
fn a_step_that_cannot_be_written_is_not_paid_for_again_and_again() {
    let world = World::new();
    world.batch(
        "alter table run_model_calls add constraint no_answer check (outcome <> 'completed')",
    );
    let process = world.process(1, true);
    let run_id = world.create(&process, false);
    world.eventually(|| {
        run_now(&world, &process);
        world.run(run_id).status.is_finished()
    });
    let run = world.finished(&process, run_id);
    let message = run.failure_message.unwrap();
    assert!(message.contains("fault of its own"), "{message}");
    assert_eq!(world.provider.count(), 5);
    let running = "select count(*) from run_steps where status = 'running'";
    assert_eq!(world.number(running), 0, "the step ended with its run");
    let calls = "select count(*) from run_model_calls";
    assert_eq!(world.number(calls), 5, "each call is counted");
}

#[test]
fn a_run_that_cannot_be_ended_either_is_not_paid_for_meanwhile() {
    let world = World::new();
    world.batch(
        "alter table run_model_calls add constraint no_answer check (outcome <> 'completed');
         alter table runs add constraint no_end check (status <> 'failed')",
    );
    let process = world.process(1, true);
    let run_id = world.create(&process, false);
    world.eventually(|| {
        run_now(&world, &process);
        world.provider.count() == 5
    });
    let handed_back =
        "select count(*) from job_jobs where lease_id is null and run_at > clock_timestamp()";
    for _ in 0..5 {
        world.eventually(|| world.number(handed_back) == 1);
        run_now(&world, &process);
    }
    world.eventually(|| world.number(handed_back) == 1);
    assert_eq!(world.provider.count(), 5);
    world.batch("alter table runs drop constraint no_end");
    world.eventually(|| {
        run_now(&world, &process);
        world.run(run_id).status.is_finished()
    });
    world.finished(&process, run_id);
    assert_eq!(world.provider.count(), 5);
}

#[test]
fn a_run_that_waits_after_a_fault_of_the_services_own_is_cancelled_at_once() {
    let world = World::new();
    let process = world.process(1, true);
    let away = world.process(0, false);
    world.provider.push(calls_weather());
    // As a fault leaves it: nobody holds it, and its job waits.
    let run = world.new_run(true);
    let root = super::Root(world.tenant_id, world.agent_id);
    world
        .store
        .transact(|tx| {
            away.runtime
                .create::<runs::Run>(tx, &root, &run, started_by())?;
            let job = HeldJob {
                job_id: 0,
                lease_id: 0,
                attempts_before: 0,
            };
            let ids = (world.tenant_id, run.run_id);
            runs::claim(tx, ids, job, world.clock.now())?;
            let later = "update job_jobs set run_at = now() + interval '1 hour'";
            Ok(tx.raw().batch_execute(later)?)
        })
        .unwrap();
    let asked = process
        .runtime
        .cancel(&world.root(run.run_id), || Ok(()))
        .unwrap();
    assert_eq!(asked.status, Status::Running);
    let run = world.finished(&process, run.run_id);
    assert_eq!(run.status, Status::Cancelled);
    assert_eq!(world.provider.count(), 0);
}
