//! Parking, children's ends, cancels and timers, statement by statement in any order.

use super::stepped::{Before, Work, interleave};
use super::world::{Family, World, completed, end_of, failed};
use crate::harness::rounds;
use agent_runtime::store::runs::{End, Held, Outcome, WaitingFor};
use postgres::Client;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use uuid::Uuid;

/// What happens to a family while its parent waits for its children.
#[derive(Debug, Clone)]
struct Plan {
    /// Of each child: whether somebody holds it, and whether it fails.
    children: Vec<(bool, bool)>,
    /// A child that nobody holds ends in the transaction of its claim.
    ends_in_claim: bool,
    /// The parent begins one child more, in the commit that parks it.
    spawns: bool,
    /// The root is cancelled.
    is_cancelled: bool,
    /// Its first child is cancelled.
    is_child_cancelled: bool,
    /// The parent's time comes.
    is_due: bool,
    /// Whose statement comes next.
    choices: Vec<u8>,
}

fn plans() -> impl Strategy<Value = Plan> {
    (
        prop::collection::vec(any::<(bool, bool)>(), 1..4),
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.4),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.4),
        prop::collection::vec(any::<u8>(), 60),
    )
        .prop_map(
            |(
                children,
                ends_in_claim,
                spawns,
                is_cancelled,
                is_child_cancelled,
                is_due,
                choices,
            )| Plan {
                children,
                ends_in_claim,
                spawns,
                is_cancelled,
                is_child_cancelled,
                is_due,
                choices,
            },
        )
}

#[test]
fn whatever_comes_between_the_parent_goes_on_and_counts_each_child_once() {
    let world = World::new();
    let client = RefCell::new(world.client());
    let mut runner = TestRunner::new(Config {
        cases: u32::try_from(rounds(400)).unwrap(),
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&plans(), |plan| {
        play(&world, &mut client.borrow_mut(), &plan);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// A cancel comes from the root downwards; a child that ends locks its parent's row as well.
#[test]
fn a_child_that_ends_in_its_claim_and_a_cancel_from_above_do_not_wait_for_each_other() {
    let world = World::new();
    let mut client = world.client();
    let Family { root, children, .. } = world.family(&mut client, &[false]);
    let child = children[0].0;
    let works: Vec<Work<'_>> = vec![
        Box::new(|client, before| {
            let ended = world.take_and_end(client, before, child, completed());
            assert_eq!(ended.unwrap(), Some(Outcome::Written));
        }),
        Box::new(|client, before| {
            world.cancel(client, before, root).unwrap();
        }),
    ];
    // Its job and its claim, then the cancel, then its end.
    interleave(&world.database, works, &[0, 0, 1, 0, 0]);
    client
        .batch_execute("update job_jobs set lease_id = null, run_at = clock_timestamp()")
        .unwrap();
    world.drain(&mut client, root);
    world.check(&mut client, root);
}

fn play(world: &World, client: &mut Client, plan: &Plan) {
    let is_held: Vec<bool> = plan.children.iter().map(|(is_held, _)| *is_held).collect();
    let family = world.family(client, &is_held);
    let Family {
        root,
        held,
        children,
    } = family;
    let first = children[0].0;
    let mut works: Vec<Work<'_>> = Vec::new();
    works.push(Box::new(move |client, before| {
        parent(world, client, before, held, plan.spawns);
    }));
    for ((run_id, held), (_, fails)) in children.into_iter().zip(&plan.children) {
        let end = if *fails { failed() } else { completed() };
        works.push(Box::new(move |client, before| match held {
            None if plan.ends_in_claim => {
                world.take_and_end(client, before, run_id, end).unwrap();
            }
            held => child(world, client, before, run_id, held, end),
        }));
    }
    if plan.is_cancelled {
        works.push(Box::new(move |client, before| {
            world.cancel(client, before, root).unwrap();
        }));
    }
    if plan.is_child_cancelled {
        works.push(Box::new(move |client, before| {
            world.cancel(client, before, first).unwrap();
        }));
    }
    if plan.is_due {
        works.push(Box::new(move |client, before| {
            time_comes(client, before, root);
        }));
    }
    interleave(&world.database, works, &plan.choices);
    world.drain(client, root);
    world.check(client, root);
    let run = world.run(client, root);
    if !plan.is_cancelled && !plan.is_child_cancelled {
        assert_eq!(run.usage.calls, world.calls_of_tree(client, root));
    }
}

/// Parks, and takes itself up again once it is due.
fn parent(world: &World, client: &mut Client, before: Before<'_>, mut held: Held, spawns: bool) {
    let mut outcome = Outcome::NewsArrived;
    if spawns {
        let wait = Some(world.wait(WaitingFor::Children));
        let begin = world.spawning(world.new_children([100]), wait);
        outcome = world.commit(client, before, &mut held, &begin).unwrap();
    }
    if outcome == Outcome::CancelAsked {
        let cancelled = end_of(End::Cancelled);
        outcome = world.commit(client, before, &mut held, &cancelled).unwrap();
    }
    if outcome == Outcome::NewsArrived {
        world.wait_for_all(client, before, &mut held).unwrap();
    }
    for _ in 0..2 {
        let taken = world.take(client, before, held.lease.run_id()).unwrap();
        let Some((run, mut held)) = taken else {
            continue;
        };
        if run.cancel_requested_at.is_some() {
            let cancelled = end_of(End::Cancelled);
            world.commit(client, before, &mut held, &cancelled).unwrap();
        } else {
            world.wait_for_all(client, before, &mut held).unwrap();
        }
    }
}

/// Ends; where nobody held it, once it is taken up.
fn child(
    world: &World,
    client: &mut Client,
    before: Before<'_>,
    run_id: Uuid,
    held: Option<Held>,
    end: End,
) {
    let held = held.or_else(|| Some(world.take(client, before, run_id).unwrap()?.1));
    if let Some(mut held) = held {
        world.end(client, before, &mut held, end).unwrap();
    }
}

fn time_comes(client: &mut Client, before: Before<'_>, run_id: Uuid) {
    before().unwrap();
    client
        .execute(
            "update job_jobs j set run_at = clock_timestamp() from runs r
             where r.run_id = $1 and j.id = r.job_id and j.lease_id is null",
            &[&run_id],
        )
        .unwrap();
}
