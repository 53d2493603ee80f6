//! Trees of runs that ask, wait, call a model and have children, while reviewers decide, assign and escalate, people cancel,
//! and times run out: all at random and at once, through two processes.

use super::world::Scripts;
use crate::harness::{PATIENCE, moment, rounds};
use crate::runtime::world::World;
use agent_runtime::runtime::Runtime;
use agent_runtime::store::Sql;
use agent_runtime::store::approvals::{self, Actor, Decision, EscalatedTo, for_reviewers};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The role whose approvals nobody decides, so that some expire.
const NOBODY: &str = "nobody";

/// Ends the others however the test ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Trees under way.
const TREES: i64 = 24;

/// How long: a minute, and ten in `make soak`.
fn length() -> Duration {
    Duration::from_secs(rounds(600) as u64)
}

/// Numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// One time of `of`.
    fn rarely(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

fn script(world: &World, random: &mut Random, levels: u64) -> Value {
    let count = 1 + random.below(2);
    let kinds = if levels == 0 { 4 } else { 7 };
    let steps: Vec<Value> = (0..count)
        .map(|_| match random.below(kinds) {
            0 => json!({"wait": random.below(300)}),
            1..=3 => ask(random),
            _ => {
                let count = 1 + random.below(4);
                let children: Vec<Value> = (0..count)
                    .map(|_| match random.rarely(4) {
                        true => world.a_turn(),
                        false => json!({"script": script(world, random, levels - 1)}),
                    })
                    .collect();
                json!({"children": children})
            }
        })
        .collect();
    match random.rarely(6) {
        true => json!({"steps": steps, "fails": "No."}),
        false => json!({"steps": steps, "output": null}),
    }
}

fn ask(random: &mut Random) -> Value {
    let expires = 100 + random.below(1500);
    match random.below(4) {
        0 => json!({"ask": {"expiresMs": expires, "role": NOBODY}}),
        1 => json!({"ask": {"expiresMs": expires}}),
        _ => json!({"ask": {"expiresMs": expires, "escalate": [random.below(expires), "finance"]}}),
    }
}

/// One of the rows that a query finds.
fn one(world: &World, query: &'static str) -> Option<Uuid> {
    world.read(|session| Ok(session.query(query, &[])?.first().map(|row| row.get(0))))
}

/// Decides, assigns and escalates what waits, as it comes.
fn review(world: &World, runtime: &Runtime, over: &AtomicBool, mut random: Random) {
    let actor = Actor {
        user_id: world.user_id,
        token_id: Uuid::nil(),
    };
    while !over.load(Ordering::Relaxed) {
        let waiting =
            "select approval_id from approvals where status = 'waiting' and required_role <> 'nobody'
             order by random() limit 1";
        let Some(approval_id) = one(world, waiting) else {
            moment();
            continue;
        };
        let approval = (world.tenant_id, approval_id);
        let kind = random.below(8);
        let acted = world.store.transact(|tx| {
            match kind {
                0 => {
                    let to = EscalatedTo {
                        approval_id: world.clock.new_id(),
                        required_role: "board",
                        user_id: None,
                    };
                    let (by, now) = (Some((actor, false)), world.clock.now());
                    approvals::escalate(tx, approval, to, by, None, now)?;
                }
                1 => {
                    let row = for_reviewers::find(tx, world.tenant_id, approval_id)?;
                    for_reviewers::assign(tx, &row, world.tenant_id, (actor, false), (None, &[]))?;
                }
                _ => {
                    let decision = Decision {
                        is_approved: kind > 3,
                        comment: None,
                        arguments: None,
                        answer: None,
                    };
                    approvals::decide(tx, approval, (actor, false), &decision)?;
                }
            }
            Ok(())
        });
        acted.unwrap();
        runtime.wake();
        if random.rarely(4) {
            moment();
        }
    }
}

/// Cancels any run of any tree.
fn cancel(world: &World, runtime: &Runtime, over: &AtomicBool, mut random: Random) {
    while !over.load(Ordering::Relaxed) {
        let any = "select run_id from runs where completed_at is null order by random() limit 1";
        if let Some(run_id) = one(world, any)
            && random.rarely(4)
        {
            runtime.cancel(&world.root(run_id), || Ok(())).unwrap();
        }
        moment();
    }
}

const CLOSED: &str = "select count(distinct status) from approvals where status <> 'waiting'";

const ROOTS: &str = "select count(*) from runs where completed_at is null and run_id = root_run_id";

/// Approvals that wait still, were closed twice or otherwise than they say, or have no successor.
const WRONG: &str = "select count(*) from approvals a where a.status = 'waiting'
     or (select array_agg(l.kind) from approval_log l
         where l.tenant_id = a.tenant_id and l.approval_id = a.approval_id and l.kind not in ('opened', 'assigned'))
       is distinct from array[a.status]
     or a.status = 'escalated' and not exists (
       select from approvals e where e.tenant_id = a.tenant_id and e.approval_id = a.escalated_to
         and e.escalated_from = a.approval_id)";

#[test]
fn nothing_waits_in_a_circle_or_for_what_is_over_whatever_happens_at_once() {
    let world = World::scripted();
    let processes = [world.process(4, true), world.process(4, true)];
    let (over, begun) = (AtomicBool::new(false), Instant::now());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        for n in 0..4_u64 {
            let (world, over, runtime) =
                (&world, &over, &processes[usize::from(n % 2 == 1)].runtime);
            let random = Random(random.below(u64::MAX) | 1);
            scope.spawn(move || match n {
                0 => cancel(world, runtime, over, random),
                _ => review(world, runtime, over, random),
            });
        }
        // For so long, and until each way to be closed was taken.
        while begun.elapsed() < length() || world.number(CLOSED) < 5 {
            assert!(
                begun.elapsed() < length() + PATIENCE,
                "not every way was taken"
            );
            if world.number(ROOTS) < TREES {
                let process = &processes[usize::from(random.rarely(2))];
                world.start(process, &script(&world, &mut random, 2));
            } else {
                moment();
            }
            world.nothing_is_stranded();
        }
    });
    // What waits now ends by itself: every time is short, and nobody decides any more.
    world.eventually(|| world.number("select count(*) from runs where completed_at is null") == 0);
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(world.number(deadlocks), 0);
    assert_eq!(world.number(WRONG), 0);
    assert_eq!(
        world.number("select count(*) from job_jobs where lease_id is not null"),
        0
    );
}
