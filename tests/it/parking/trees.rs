//! Examples: what a tree of runs comes to.

use super::world::{Family, World, completed, end_of, event};
use agent_runtime::store::runs::{Cancelled, End, Outcome, Status, StepCommit, WaitingFor};
use std::time::Duration;
use time::OffsetDateTime;

#[test]
fn a_child_inherits_and_its_parent_reads_what_it_answered() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let Family {
        root,
        mut held,
        children,
    } = world.family(&mut client, &[true, true]);
    let (parent, child) = (
        world.run(&mut client, root),
        world.run(&mut client, children[1].0),
    );
    assert_eq!(child.root_run_id, root);
    assert_eq!(child.parent.map(|parent| parent.run_id), Some(root));
    assert_eq!(child.project_id, parent.project_id);
    assert_eq!(child.created_by, parent.created_by);
    assert_eq!(child.origin.text(), "run");
    assert!(child.dry_run);
    for (_, held) in children {
        world
            .end(&mut client, none, &mut held.unwrap(), completed())
            .unwrap();
    }
    let lease = held.lease;
    let seen = super::stepped::whole(&mut client, |sql| {
        agent_runtime::store::runs::children(sql, &lease, 0..i32::MAX, true)
    });
    let answers: Vec<_> = seen.iter().map(|child| child.output.clone()).collect();
    assert_eq!(answers, vec![Some(serde_json::json!({"ok": true})); 2]);
    world.wait_for_all(&mut client, none, &mut held).unwrap();
    world.check(&mut client, root);
    assert_eq!(world.run(&mut client, root).usage.calls, 2);
}

#[test]
fn a_run_waits_for_a_timer_and_the_time_is_kept_apart() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let root = world.root(&mut client);
    let (_, mut held) = world.hold(&mut client, root);
    for (on, is_parked) in [(WaitingFor::Timer, true), (WaitingFor::Retry, false)] {
        let wait = StepCommit {
            events: vec![event("run.waiting")],
            wait: Some(world.wait(on)),
            ..StepCommit::default()
        };
        let outcome = world.commit(&mut client, none, &mut held, &wait).unwrap();
        assert_eq!(outcome, Outcome::Written);
        let waiting = world.run(&mut client, root);
        assert_eq!(waiting.status, Status::Waiting);
        assert_eq!(waiting.waiting_for, Some(on));
        assert!(waiting.wake_at.is_some());
        assert!(
            world.take(&mut client, none, root).unwrap().is_none(),
            "it is not due"
        );
        world.nothing_is_stranded(&mut client);
        // An hour later.
        client
            .batch_execute(
                "update runs set parked_at = parked_at - interval '1 hour', started_at = started_at - interval '1 hour';
                 update job_jobs set run_at = clock_timestamp()",
            )
            .unwrap();
        let (run, again) = world.hold(&mut client, root);
        held = again;
        assert_eq!(run.waiting_for, None);
        assert_eq!(run.wake_at, None);
        let hour = Duration::from_secs(3600);
        let active = run.active_time(OffsetDateTime::now_utc());
        assert_eq!(active < hour, is_parked, "{active:?} of {on:?}");
    }
    let outcome = world.commit(&mut client, none, &mut held, &end_of(completed()));
    assert_eq!(outcome.unwrap(), Outcome::Written);
    world.check(&mut client, root);
}

#[test]
fn a_cancel_ends_what_nobody_holds_and_asks_the_rest() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let Family {
        root,
        mut held,
        children,
    } = world.family(&mut client, &[true, false, true]);
    let mut middle = children[0].1.unwrap();
    let new = world.new_children([1, 2]);
    let grandchildren: Vec<_> = new.iter().map(|child| child.run_id).collect();
    let wait = Some(world.wait(WaitingFor::Children));
    let begin = world.spawning(new, wait);
    world
        .commit(&mut client, none, &mut middle, &begin)
        .unwrap();
    let (_, mut grandchild) = world.hold(&mut client, grandchildren[0]);
    world
        .end(&mut client, none, &mut grandchild, completed())
        .unwrap();
    world.wait_for_all(&mut client, none, &mut held).unwrap();
    let cancelled = world.cancel(&mut client, none, root).unwrap();
    assert_eq!(cancelled, Cancelled::AtOnce);
    let status = |client: &mut postgres::Client, id| world.run(client, id).status;
    assert_eq!(status(&mut client, root), Status::Cancelled);
    assert_eq!(status(&mut client, children[0].0), Status::Cancelled);
    assert_eq!(status(&mut client, children[1].0), Status::Cancelled);
    assert_eq!(
        status(&mut client, children[2].0),
        Status::Running,
        "it is held"
    );
    assert_eq!(status(&mut client, grandchildren[0]), Status::Completed);
    assert_eq!(status(&mut client, grandchildren[1]), Status::Cancelled);
    assert_eq!(
        world.run(&mut client, root).usage.calls,
        1,
        "the grandchild's, through its parent"
    );
    let mut last = children[2].1.unwrap();
    world
        .end(&mut client, none, &mut last, completed())
        .unwrap();
    assert_eq!(status(&mut client, children[2].0), Status::Cancelled);
    world.nothing_is_stranded(&mut client);
    world.check(&mut client, root);
}

#[test]
fn a_cancel_of_many_marks_the_root_alone_and_its_holder_ends_the_rest() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let children = [vec![true], vec![false; 449]].concat();
    let Family {
        root,
        mut held,
        children,
    } = world.family(&mut client, &children);
    world.wait_for_all(&mut client, none, &mut held).unwrap();
    let cancelled = world.cancel(&mut client, none, root).unwrap();
    assert_eq!(cancelled, Cancelled::Asked);
    let row = client.query_one(
        "select count(*) from runs where cancel_requested_at is not null",
        &[],
    );
    assert_eq!(
        row.unwrap().get::<_, i64>(0),
        1,
        "the root alone is written"
    );
    world.nothing_is_stranded(&mut client);
    // A claim of one below it reads its mark.
    let (run, mut second) = world.hold(&mut client, children[1].0);
    assert!(run.cancel_requested_at.is_some());
    let outcome = world.commit(&mut client, none, &mut second, &end_of(End::Cancelled));
    assert_eq!(outcome.unwrap(), Outcome::Written);
    let (run, mut held) = world.hold(&mut client, root);
    assert!(run.cancel_requested_at.is_some());
    world
        .commit(&mut client, none, &mut held, &end_of(End::Cancelled))
        .unwrap();
    // One that was held was asked, and ends so.
    let mut first = children[0].1.unwrap();
    world
        .end(&mut client, none, &mut first, completed())
        .unwrap();
    world.drain(&mut client, root);
    world.check(&mut client, root);
    let row = client.query_one(
        "select count(*) from runs where status = 'cancelled' and root_run_id = $1",
        &[&root],
    );
    assert_eq!(row.unwrap().get::<_, i64>(0), 451);
}

#[test]
fn a_run_that_has_no_child_under_way_waits_for_none() {
    let world = World::new();
    let mut client = world.client();
    let root = world.root(&mut client);
    let (_, mut held) = world.hold(&mut client, root);
    let wait = StepCommit {
        events: vec![event("run.waiting")],
        wait: Some(world.wait(WaitingFor::Children)),
        ..StepCommit::default()
    };
    let refused = world.commit(&mut client, &mut || Ok(()), &mut held, &wait);
    assert!(refused.is_err());
}
