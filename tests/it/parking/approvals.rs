//! A run that is about to wait for an approval, and the approval's decision, statement by statement in any order; and a crash
//! after each statement.

use super::stepped::{Before, Work, interleave, transact, whole};
use super::world::{World, completed, end_of, event};
use crate::harness::rounds;
use agent_runtime::error::{Error, Result};
use agent_runtime::ids::Clock;
use agent_runtime::store::approvals::{
    self, Actor, ApprovalSource, ApprovalStatus, Decided, Decision, EscalatedTo, Handed,
    NewApproval, Opening,
};
use agent_runtime::store::runs::{End, Held, Outcome, Status, StepCommit, Wait, WaitingFor};
use agent_runtime::store::steps::{Begun, StepKind};
use postgres::Client;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::cell::RefCell;
use std::time::Duration;
use uuid::Uuid;

/// The commit that begins a step and opens its approval.
fn opening(approval_id: Uuid) -> StepCommit {
    StepCommit {
        events: vec![event("step.started")],
        begun: Some(Begun {
            step: 1,
            kind: StepKind::Approval,
            name: "approval".to_owned(),
            path: "/do/1".to_owned(),
            attempt: 1,
            failures: 0,
            request: json!({}),
        }),
        approvals: vec![Opening {
            approval_id,
            step: 1,
            path: "/do/1".to_owned(),
            new: Box::new(NewApproval {
                source: ApprovalSource::Flow,
                required_role: "standard".to_owned(),
                assigned_to: None,
                title: "Pay".to_owned(),
                expires_after: Duration::from_secs(3600),
                escalation: None,
                context: Some(json!({"why": "\u{0}"})),
                form: None,
                call: None,
                earlier: None,
            }),
            needs_role: true,
        }],
        ..StepCommit::default()
    }
}

fn decide(
    world: &World,
    client: &mut Client,
    before: Before<'_>,
    approval_id: Uuid,
) -> Result<Decided> {
    let actor = Actor {
        user_id: Uuid::nil(),
        token_id: Uuid::nil(),
    };
    let decision = Decision {
        is_approved: true,
        comment: None,
        arguments: None,
        answer: None,
    };
    let approval = (world.tenant_id, approval_id);
    transact(client, before, |sql| {
        approvals::decide(sql, approval, (actor, false), &decision)
    })
}

fn escalate(
    world: &World,
    client: &mut Client,
    before: Before<'_>,
    (approval_id, to): (Uuid, Uuid),
) -> bool {
    let actor = Actor {
        user_id: Uuid::nil(),
        token_id: Uuid::nil(),
    };
    let to = EscalatedTo {
        approval_id: to,
        required_role: "finance",
        user_id: None,
    };
    let approval = (world.tenant_id, approval_id);
    transact(client, before, |sql| {
        let (by, now) = (Some((actor, false)), Clock::system().now());
        approvals::escalate(sql, approval, to, by, None, now)
    })
    .unwrap()
        == Handed::Written
}

/// What the step does from wherever it stands: waits while the approval waits, and ends after it.
fn wait_for_it(world: &World, client: &mut Client, before: Before<'_>, held: &mut Held) {
    for _ in 0..8 {
        let lease = held.lease;
        let found = transact(client, before, |sql| approvals::of_steps(sql, &lease, 1))
            .unwrap()
            .remove(0);
        let commit = match found.status {
            ApprovalStatus::Waiting => StepCommit {
                events: vec![event("run.waiting")],
                wait: Some(Wait {
                    approval_id: Some(found.approval_id),
                    ..world.wait(WaitingFor::Approval)
                }),
                ..StepCommit::default()
            },
            _ => end_of(completed()),
        };
        match world.commit(client, before, held, &commit).unwrap() {
            Outcome::NewsArrived => {}
            Outcome::CancelAsked => {
                let cancelled = end_of(End::Cancelled);
                world.commit(client, before, held, &cancelled).unwrap();
                return;
            }
            _ => return,
        }
    }
    panic!("news arrive without end");
}

fn opened(world: &World, client: &mut Client) -> (Uuid, Uuid, Held) {
    let root = world.root(client);
    let (_, mut held) = world.hold(client, root);
    let approval_id = Clock::system().new_id();
    let outcome = world.commit(client, &mut || Ok(()), &mut held, &opening(approval_id));
    assert_eq!(outcome.unwrap(), Outcome::Written);
    (root, approval_id, held)
}

/// What happens while the run is about to wait.
#[derive(Debug, Clone)]
struct Plan {
    is_escalated: bool,
    is_cancelled: bool,
    choices: Vec<u8>,
}

#[test]
fn whatever_comes_between_the_decision_reaches_the_run() {
    let world = World::new();
    let client = RefCell::new(world.client());
    let plans = (
        prop::bool::weighted(0.4),
        prop::bool::weighted(0.3),
        prop::collection::vec(any::<u8>(), 40),
    );
    let plans = plans.prop_map(|(is_escalated, is_cancelled, choices)| Plan {
        is_escalated,
        is_cancelled,
        choices,
    });
    let mut runner = TestRunner::new(Config {
        cases: u32::try_from(rounds(400)).unwrap(),
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&plans, |plan| {
        play(&world, &mut client.borrow_mut(), &plan);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn play(world: &World, client: &mut Client, plan: &Plan) {
    let (root, first, held) = opened(world, client);
    let second = Clock::system().new_id();
    let mut works: Vec<Work<'_>> = vec![
        Box::new(move |client, before| {
            let mut held = held;
            wait_for_it(world, client, before, &mut held);
            if let Some((_, mut held)) = world.take(client, before, root).unwrap() {
                wait_for_it(world, client, before, &mut held);
            }
        }),
        Box::new(move |client, before| {
            // Of the one, or of the one in its place.
            if decide(world, client, before, first).unwrap() == Decided::Closed {
                decide(world, client, before, second).unwrap();
            }
        }),
    ];
    if plan.is_escalated {
        works.push(Box::new(move |client, before| {
            escalate(world, client, before, (first, second));
        }));
    }
    if plan.is_cancelled {
        works.push(Box::new(move |client, before| {
            world.cancel(client, before, root).unwrap();
        }));
    }
    interleave(&world.database, works, &plan.choices);
    // What was decided after the run had parked has made its job due.
    world.nothing_is_stranded(client);
    while !world.run(client, root).status.is_finished() {
        let (_, mut held) = world.hold(client, root);
        wait_for_it(world, client, &mut || Ok(()), &mut held);
    }
    let run = world.run(client, root);
    let left = "select count(*) from approvals where run_id = $1 and status = 'waiting'";
    let left: i64 = client.query_one(left, &[&root]).unwrap().get(0);
    assert_eq!(left, 0, "{:?}", run.status);
    let decided = "select count(*) from approvals where run_id = $1 and status = 'approved'";
    let decided: i64 = client.query_one(decided, &[&root]).unwrap().get(0);
    // An escalation is told whoever holds the run, costs no commit, and leaves no gap.
    let told = "select array_agg(seq order by seq) = array(select n::bigint from generate_series(1, r.last_seq) n),
         count(*) filter (where kind = 'approval.escalated') = (
           select count(*) from approvals a where a.run_id = r.run_id and a.status = 'escalated')
         from run_events e join runs r using (run_id) where run_id = $1 group by r.run_id, r.last_seq";
    let told = client.query_one(told, &[&root]).unwrap();
    assert_eq!((told.get(0), told.get(1)), (true, true), "{plan:?}");
    match run.status {
        Status::Completed => assert_eq!(decided, 1),
        status => assert!(
            plan.is_cancelled && status == Status::Cancelled,
            "{status:?}"
        ),
    }
}

#[test]
fn an_opening_and_a_decision_that_are_cut_off_leave_nothing() {
    let world = World::new();
    let mut looker = world.client();
    let root = world.root(&mut looker);
    let (_, held) = world.hold(&mut looker, root);
    let approval_id = Clock::system().new_id();
    let rows = |looker: &mut Client| -> String {
        let rows = "select coalesce(string_agg(t::text, ' '), '') from (select a::text from approvals a
             union all select s::text from approval_subjects s union all select l::text from approval_log l
             union all select r::text from runs r union all select j::text from job_jobs j) t";
        looker.query_one(rows, &[]).unwrap().get(0)
    };
    let mut cut = |work: &mut dyn FnMut(&mut Client, Before<'_>) -> Result<()>| -> usize {
        let as_before = rows(&mut looker);
        for at in 0.. {
            let (mut client, mut statements) = (world.client(), 0);
            let mut before = || {
                statements += 1;
                match statements > at {
                    true => Err(Error::internal("cut off")),
                    false => Ok(()),
                }
            };
            if work(&mut client, &mut before).is_ok() {
                return at;
            }
            drop(client);
            assert_eq!(
                rows(&mut looker),
                as_before,
                "cut off before statement {at}"
            );
        }
        unreachable!("some number of statements is enough")
    };
    let begin = opening(approval_id);
    let opened = cut(&mut |client, before| {
        let mut held = held;
        world.commit(client, before, &mut held, &begin).map(drop)
    });
    // A holder whose answer was lost writes it again: nothing is opened twice.
    let mut again = held;
    let mut client = world.client();
    let outcome = world.commit(&mut client, &mut || Ok(()), &mut again, &begin);
    assert_eq!(outcome.unwrap(), Outcome::Written);
    let decided = cut(&mut |client, before| decide(&world, client, before, approval_id).map(drop));
    assert_eq!((opened, decided), (3, 2));
    let found = whole(&mut client, |sql| approvals::of_steps(sql, &held.lease, 1)).remove(0);
    assert_eq!(found.status, ApprovalStatus::Approved);
}
