//! A crash after each statement of each transaction: the tree is as before it, or as after it, and goes on.

use super::stepped::{Before, whole};
use super::world::{Family, World, completed, end_of, event};
use crate::harness::{PATIENCE, log};
use agent_runtime::error::{Error, Result};
use agent_runtime::ids::Clock;
use agent_runtime::secret::Secret;
use agent_runtime::store::runs::{self, End, Held, Outcome, Status, StepCommit, WaitingFor};
use agent_runtime::store::{self, Store, Tx};
use postgres::Client;
use uuid::Uuid;

/// Every row of a tree, as text.
fn rows(client: &mut Client, root: Uuid) -> String {
    let tables = [
        "select r from runs r where r.root_run_id = $1",
        "select c from run_children c join runs t on t.run_id = c.parent_run_id where t.root_run_id = $1",
        "select e from run_events e join runs t using (tenant_id, run_id) where t.root_run_id = $1",
        "select m from run_model_calls m join runs t using (tenant_id, run_id) where t.root_run_id = $1",
        "select p from run_payloads p join runs t using (tenant_id, run_id) where t.root_run_id = $1",
        "select j from job_jobs j join runs t on t.job_id = j.id where t.root_run_id = $1",
    ];
    let rows = tables.map(|table| {
        let text = format!(
            "select coalesce(string_agg(r::text, e'\\n' order by r::text), '') from ({table}) t (r)"
        );
        let row = client.query_one(&text, &[&root]);
        row.unwrap().get::<_, String>(0)
    });
    rows.join("\n\n")
}

/// Breaks the connection off before each statement of `work`, and before its commit, and lets it through at last. How
/// many statements it has.
#[track_caller]
fn cut_everywhere(
    world: &World,
    looker: &mut Client,
    root: Uuid,
    work: &mut dyn FnMut(&mut Client, Before<'_>) -> Result<()>,
) -> usize {
    let as_before = rows(looker, root);
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
            assert_ne!(rows(looker, root), as_before, "it wrote something");
            return at;
        }
        drop(client);
        assert_eq!(
            rows(looker, root),
            as_before,
            "cut off before statement {at}"
        );
        world.nothing_is_stranded(looker);
    }
    unreachable!("some number of statements is enough")
}

#[test]
fn a_commit_that_is_cut_off_leaves_nothing_and_one_whose_answer_is_lost_counts_once() {
    let world = World::new();
    let mut looker = world.client();
    let Family {
        root,
        held,
        children,
    } = world.family(&mut looker, &[true, true]);
    let mut steps = Vec::new();

    let first = world.new_children([7]);
    let begin = world.spawning(first, Some(world.wait(WaitingFor::Children)));
    steps.push(cut_everywhere(
        &world,
        &mut looker,
        root,
        &mut |client, before| {
            let mut held = held;
            world.commit(client, before, &mut held, &begin).map(drop)
        },
    ));
    repeats(&world, &mut looker, root, held, &begin);

    for (_, child) in children {
        steps.push(cut_everywhere(
            &world,
            &mut looker,
            root,
            &mut |client, before| {
                let mut child = child.unwrap();
                world.end(client, before, &mut child, completed()).map(drop)
            },
        ));
    }

    let (_, held) = world.hold(&mut looker, root);
    let take = StepCommit {
        events: vec![event("run.waiting")],
        taken: vec![1, 2],
        wait: Some(world.wait(WaitingFor::Children)),
        ..StepCommit::default()
    };
    steps.push(cut_everywhere(
        &world,
        &mut looker,
        root,
        &mut |client, before| {
            let mut held = held;
            world.commit(client, before, &mut held, &take).map(drop)
        },
    ));
    repeats(&world, &mut looker, root, held, &take);

    steps.push(cut_everywhere(
        &world,
        &mut looker,
        root,
        &mut |client, before| world.cancel(client, before, root).map(drop),
    ));
    world.drain(&mut looker, root);
    world.check(&mut looker, root);
    let run = world.run(&mut looker, root);
    assert_eq!(run.usage.calls, 2);
    // Each transaction has so many statements, its commit counted: a guard against a test that cuts nothing.
    assert_eq!(steps, [4, 2, 2, 3, 3]);
}

#[test]
fn an_end_that_is_cut_off_leaves_children_as_they_were() {
    let world = World::new();
    let mut looker = world.client();
    let Family {
        root,
        held,
        children,
    } = world.family(&mut looker, &[true, false]);
    let end = end_of(completed());
    let steps = cut_everywhere(&world, &mut looker, root, &mut |client, before| {
        let mut held = held;
        world.commit(client, before, &mut held, &end).map(drop)
    });
    assert_eq!(steps, 5);
    repeats(&world, &mut looker, root, held, &end);
    // What was held is asked, and ends so; what nobody held is gone.
    let mut child = children[0].1.unwrap();
    let outcome = world.end(&mut looker, &mut || Ok(()), &mut child, completed());
    assert_eq!(outcome.unwrap(), Outcome::Written);
    for (run_id, _) in children {
        let run = world.run(&mut looker, run_id);
        assert_eq!(run.status, Status::Cancelled);
    }
    world.drain(&mut looker, root);
    world.check(&mut looker, root);
}

#[test]
fn an_end_that_cannot_be_announced_ends_no_child() {
    let world = World::new();
    let mut looker = world.client();
    let Family {
        root,
        held,
        children,
    } = world.family(&mut looker, &[true, false]);
    let as_before = rows(&mut looker, root);
    let options = store::Options {
        url: Secret::new(world.database.url()),
        pool_size: 1,
        checkout_timeout: PATIENCE,
        outage: Default::default(),
        statement_timeout: PATIENCE,
    };
    let store = Store::open(&options, log()).unwrap();
    let now = Clock::system().now();
    let refuse = |_: &mut Tx<'_>| Err(Error::internal("cut off"));
    let end = end_of(completed());
    assert!(runs::commit(&store, &held, &end, now, Some(&refuse)).is_err());
    assert_eq!(rows(&mut looker, root), as_before);
    let written = runs::commit(&store, &held, &end, now, None).unwrap();
    assert_eq!(written.ended_below.len(), 1, "the one that nobody held");
    let mut child = children[0].1.unwrap();
    let outcome = world.end(&mut looker, &mut || Ok(()), &mut child, completed());
    assert_eq!(outcome.unwrap(), Outcome::Written);
    world.drain(&mut looker, root);
    world.check(&mut looker, root);
}

/// A holder whose answer was lost writes the same commit again: it counts as written, and nothing changes.
#[track_caller]
fn repeats(world: &World, looker: &mut Client, root: Uuid, as_held: Held, commit: &StepCommit) {
    let written = rows(looker, root);
    let (mut client, mut held) = (world.client(), as_held);
    let outcome = world.commit(&mut client, &mut || Ok(()), &mut held, commit);
    assert_eq!(outcome.unwrap(), Outcome::Written);
    assert_eq!(rows(looker, root), written);
}

#[test]
fn each_refusal_says_why() {
    let world = World::new();
    let mut client = world.client();
    let none = &mut || Ok(());
    let Family {
        root,
        held,
        children,
    } = world.family(&mut client, &[true]);
    let go_on = StepCommit {
        events: vec![event("step.completed")],
        ..StepCommit::default()
    };
    let mut own = held;
    let nobody_asked = world.commit(&mut client, none, &mut own, &end_of(End::Cancelled));
    assert_eq!(nobody_asked.unwrap(), Outcome::Lost);
    let mut child = children[0].1.unwrap();
    world.cancel(&mut client, none, root).unwrap();
    let outcome = world.commit(&mut client, none, &mut own, &go_on);
    assert_eq!(outcome.unwrap(), Outcome::CancelAsked);
    let late = world.spawning(world.new_children([9]), None);
    let outcome = world.commit(&mut client, none, &mut own, &late);
    assert_eq!(
        outcome.unwrap(),
        Outcome::CancelAsked,
        "no child after a cancel"
    );
    let outcome = world.commit(&mut client, none, &mut child, &go_on);
    assert_eq!(
        outcome.unwrap(),
        Outcome::CancelAsked,
        "the child was asked too"
    );
    client
        .execute("update job_jobs set lease_id = null", &[])
        .unwrap();
    let (_, mut newer) = world.hold(&mut client, root);
    let outcome = world.commit(&mut client, none, &mut own, &end_of(End::Cancelled));
    assert_eq!(outcome.unwrap(), Outcome::Lost, "it is another's");
    let outcome = world.commit(&mut client, none, &mut newer, &end_of(End::Cancelled));
    assert_eq!(outcome.unwrap(), Outcome::Written);
    world.drain(&mut client, root);
    world.check(&mut client, root);
}

/// The end of a parent says which runs ended with it, once, and to a holder whose answer was lost too.
#[test]
fn a_parents_end_says_which_runs_were_cancelled_with_it() {
    let world = World::new();
    let mut client = world.client();
    let Family {
        root,
        held,
        children,
    } = world.family(&mut client, &[true, false]);
    let now = Clock::system().now();
    let mut end = || {
        whole(&mut client, |sql| {
            runs::commit_in(sql, &held, &end_of(completed()), now, |_| Ok(()))
        })
    };
    let written = end();
    assert_eq!(written.totals.unwrap().steps, 0);
    let cancelled = written.ended_below.iter().map(|ended| ended.run.run_id);
    assert_eq!(cancelled.collect::<Vec<_>>(), [children[1].0]);
    assert_eq!(end(), written);
    let mut child = children[0].1.unwrap();
    let outcome = world.end(&mut client, &mut || Ok(()), &mut child, completed());
    assert_eq!(outcome.unwrap(), Outcome::Written);
    world.drain(&mut client, root);
    world.check(&mut client, root);
}
