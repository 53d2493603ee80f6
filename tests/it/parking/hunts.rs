//! Threads that race: a thousand children that end while their parent is being put to wait, and cancels, ends and parking
//! over a tree of three levels.

use super::world::{Family, World, completed, end_of, failed};
use crate::harness::rounds;
use agent_runtime::store::runs::{ChildState, End, Outcome, Status, WaitingFor, children};
use postgres::Client;
use std::sync::Barrier;
use uuid::Uuid;

/// Threads that end children.
const ENDERS: usize = 4;

#[test]
fn children_that_end_while_their_parent_is_put_to_wait_wake_it() {
    let world = World::new();
    let mut client = world.client();
    for _ in 0..rounds(10) {
        race_to_the_end(&world, &mut client, 1000);
    }
}

/// The parent is parked before the first child ends, and again whenever it has taken what has ended.
fn race_to_the_end(world: &World, client: &mut Client, count: usize) {
    let Family {
        root,
        mut held,
        children,
    } = world.family(client, &vec![false; count]);
    let none = &mut || Ok(());
    let outcome = world.wait_for_all(client, none, &mut held).unwrap();
    assert_eq!(outcome, Outcome::Written);
    std::thread::scope(|scope| {
        for part in children.chunks(count.div_ceil(ENDERS)) {
            scope.spawn(move || {
                let mut client = world.client();
                for (at, (run_id, _)) in part.iter().enumerate() {
                    let (_, mut held) = world.hold(&mut client, *run_id);
                    let end = if at % 7 == 0 { failed() } else { completed() };
                    let outcome = world.end(&mut client, &mut || Ok(()), &mut held, end);
                    assert_eq!(outcome.unwrap(), Outcome::Written);
                    if at % 10 == 0 {
                        world.nothing_is_stranded(&mut client);
                    }
                }
            });
        }
        let mut parent = world.client();
        loop {
            let none = &mut || Ok(());
            let (_, mut held) = crate::harness::eventually("the parent to be due", || {
                world.take(&mut parent, none, root).unwrap()
            });
            let outcome = world.wait_for_all(&mut parent, none, &mut held).unwrap();
            assert_eq!(outcome, Outcome::Written);
            if world.run(&mut parent, root).status.is_finished() {
                break;
            }
        }
    });
    world.drain(client, root);
    world.check(client, root);
    let run = world.run(client, root);
    assert_eq!(run.status, Status::Completed);
    assert_eq!(run.usage.calls, i64::try_from(count).unwrap());
}

#[test]
fn cancels_ends_and_parking_never_wait_for_each_other_in_a_circle() {
    let world = World::new();
    let mut client = world.client();
    for round in 0..rounds(200) {
        let root = race(&world, &mut client, round);
        world.drain(&mut client, root);
        world.check(&mut client, root);
    }
}

/// A root and three children of three children each. Every run is held; leaves end, the others wait for their children, and
/// from two sides comes a cancel. A deadlock is an error of a statement, and fails the thread.
fn race(world: &World, client: &mut Client, round: usize) -> Uuid {
    let Family {
        root,
        held,
        children: middle,
    } = world.family(client, &[true; 3]);
    let none = &mut || Ok(());
    let mut parents = vec![held];
    let mut leaves = Vec::new();
    for (_, held) in &middle {
        let mut held = held.unwrap();
        let new = world.new_children(1..=3);
        let ids: Vec<Uuid> = new.iter().map(|child| child.run_id).collect();
        let begin = world.spawning(new, None);
        world.commit(client, none, &mut held, &begin).unwrap();
        leaves.extend(ids.into_iter().map(|id| world.hold(client, id).1));
        parents.push(held);
    }
    let cancelled = match round % 3 {
        0 => vec![root],
        1 => vec![middle[1].0],
        _ => vec![root, middle[round % 2].0],
    };
    let begin = Barrier::new(parents.len() + leaves.len() + cancelled.len());
    std::thread::scope(|scope| {
        for mut held in leaves {
            let (world, begin) = (&world, &begin);
            scope.spawn(move || {
                let mut client = world.client();
                begin.wait();
                let end = if round.is_multiple_of(2) {
                    completed()
                } else {
                    failed()
                };
                world
                    .end(&mut client, &mut || Ok(()), &mut held, end)
                    .unwrap();
            });
        }
        for mut held in parents {
            let (world, begin) = (&world, &begin);
            scope.spawn(move || {
                let (mut client, none) = (world.client(), &mut || Ok(()));
                begin.wait();
                world.wait_for_all(&mut client, none, &mut held).unwrap();
                let run_id = held.lease.run_id();
                if let Some((run, mut held)) = world.take(&mut client, none, run_id).unwrap() {
                    match run.cancel_requested_at {
                        Some(_) => {
                            world.commit(&mut client, none, &mut held, &end_of(End::Cancelled))
                        }
                        None => world.wait_for_all(&mut client, none, &mut held),
                    }
                    .unwrap();
                }
            });
        }
        for run_id in cancelled {
            let (world, begin) = (&world, &begin);
            scope.spawn(move || {
                let mut client = world.client();
                begin.wait();
                world.cancel(&mut client, &mut || Ok(()), run_id).unwrap();
            });
        }
    });
    root
}

#[test]
fn children_that_are_begun_while_their_root_is_cancelled_end_with_it() {
    let world = World::new();
    let mut client = world.client();
    for _ in 0..rounds(200) {
        let Family { root, mut held, .. } = world.family(&mut client, &[true]);
        let begin = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = world.client();
                begin.wait();
                world.cancel(&mut client, &mut || Ok(()), root).unwrap();
            });
            let wait = Some(world.wait(WaitingFor::Children));
            let spawning = world.spawning(world.new_children([2, 3]), wait);
            let mut parent = world.client();
            begin.wait();
            world
                .commit(&mut parent, &mut || Ok(()), &mut held, &spawning)
                .unwrap();
        });
        client
            .execute(
                "update job_jobs set lease_id = null where lease_id is not null",
                &[],
            )
            .unwrap();
        world.drain(&mut client, root);
        world.check(&mut client, root);
        assert_eq!(world.run(&mut client, root).status, Status::Cancelled);
        let lease = held.lease;
        let all =
            super::stepped::whole(&mut client, |sql| children(sql, &lease, 0..i32::MAX, false));
        assert!(all.iter().all(|child| child.state == ChildState::Cancelled));
    }
}
