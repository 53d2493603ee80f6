//! What flows cost that wait: each for an approval that two days are given for.
//!
//! Two deployments beside each other, which are the same but for what waits in them. Bytes on disk are counted while
//! flows begin to wait in one of them and turns finish in the other. Then processes are started anew in both, do the
//! same, and are looked at: memory, threads, and what a decision takes.

use super::super::machine::{Moment, resident_kib, threads};
use super::super::plan::Plan;
use super::super::rounds::{Figure, alone, compare};
use super::super::row::{About, Target, rounded};
use super::super::turns::service::Service;
use super::super::turns::side::{growth, size};
use super::super::turns::tool::Tool;
use super::super::turns::{CLIENTS_AT_ONCE, Calls};
use super::super::{Done, Outcome};
use super::approvals::{asks, decided};
use agent_runtime::dev::provider::{Provider, Script};
use std::time::Duration;

/// Among how few a decision is made on the other side.
const FEW: usize = 10;
/// What a started process has done by then.
const CALM: Duration = Duration::from_secs(1);
/// What a process has done when it is looked at.
const WARM: usize = 20;

const DISK: About = About {
    name: "waiting-flow-disk",
    work: "what the database grows by a flow that waits for an approval, indexes included, vacuumed before and after",
    beside: "the same of a finished turn of three steps",
    unit: "KiB",
    target: Target::AtMost(2.0),
    says_not: "Flow and turn say little: what they are given and what they answer is a small part of it.",
};
const MEMORY: About = About {
    name: "waiting-flow-memory",
    work: "resident memory of a fresh process with 10,000 flows (1,000 in the short form) that wait in its database",
    beside: "the same without any",
    unit: "MiB",
    target: Target::AtMost(1.1),
    says_not: "PostgreSQL's own memory is in neither figure. Both processes have served twenty short runs.",
};
const THREADS: About = About {
    name: "waiting-flow-threads",
    work: "threads that such a process has more than one without any flow that waits",
    beside: "none are needed",
    unit: "threads",
    target: Target::AtMost(0.0),
    says_not: "Nothing of the threads that carry runs which do not wait.",
};
const WAKE: About = About {
    name: "waiting-flow-wake",
    work: "from a decision on an approval to the run's next call at the tool while those flows wait, p50",
    beside: "the same while 10 wait",
    unit: "ms",
    target: Target::AtMost(1.5),
    says_not: "One decision at a time.",
};

/// One of the two deployments.
struct Stage {
    service: Service,
    flow_id: String,
    waiting: usize,
}

impl Stage {
    fn start(calls: &Calls<'_>) -> Outcome<Self> {
        let service = Service::start(calls.provider, calls.tool)?;
        Ok(Self {
            flow_id: asks(&service)?,
            service,
            waiting: 0,
        })
    }

    /// Starts so many flows, and waits until all of them wait.
    fn fill(&mut self, count: usize) -> Outcome {
        self.waiting += self.service.park(&self.flow_id, count)?;
        Ok(())
    }

    /// KiB by which the database grows a flow that waits.
    fn grown(&mut self, count: usize) -> Outcome<f64> {
        let mut database = self.service.deployment.database()?;
        let (before, stood) = (size(&mut database)?, self.waiting);
        self.fill(count)?;
        let grown = size(&mut database)? - before;
        Ok(grown / (self.waiting - stood) as f64 / 1024.0)
    }

    /// What is found of a fresh process that has served a few runs.
    fn fresh(&mut self, tool: &Tool, look: fn(u32) -> Outcome<f64>) -> Outcome<f64> {
        self.service.restart()?;
        decided(&self.service, tool, &self.flow_id, WARM)?;
        std::thread::sleep(CALM);
        look(self.service.replica.id())
    }
}

fn resident_mib(id: u32) -> Outcome<f64> {
    Ok(resident_kib(id)? / 1024.0)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let (provider, tool) = (Provider::start(Script::default())?, Tool::start()?);
    let calls = Calls {
        provider: &provider,
        tool: &tool,
    };
    let (mut many, mut none) = (Stage::start(&calls)?, Stage::start(&calls)?);
    let wanted = plan.pick(1_000, 10_000);
    // Of each round: fewer than are wanted in all, however often a round is measured again.
    let some = wanted / (plan.tries() + 1);
    let turns = none.service.turns();
    done(compare(
        plan,
        &DISK,
        || Figure::of(|| many.grown(some)),
        || Figure::of(|| growth(&turns, &calls, CLIENTS_AT_ONCE, some)),
    )?)?;
    many.fill(wanted.saturating_sub(many.waiting).max(1))?;
    let parked = format!(
        "The process that all of them were started in: {} MiB.",
        rounded(resident_mib(many.service.replica.id())?)
    );
    let mut memory = compare(
        plan,
        &MEMORY,
        || Figure::of(|| many.fresh(&tool, resident_mib)),
        || Figure::of(|| none.fresh(&tool, resident_mib)),
    )?;
    memory.limit = Some(parked);
    done(memory)?;
    done(alone(plan, &THREADS, || {
        let before = Moment::now();
        let (more, fewer) = (many.fresh(&tool, threads)?, none.fresh(&tool, threads)?);
        Ok(Figure {
            value: more - fewer,
            used: before.until_now(),
            note: format!(" ({more:.0} beside {fewer:.0})"),
        })
    })?)?;
    none.fill(FEW)?;
    let count = plan.pick(20, 60);
    let of = |stage: &Stage| decided(&stage.service, &tool, &stage.flow_id, count);
    done(compare(
        plan,
        &WAKE,
        || Figure::of(|| of(&many)),
        || Figure::of(|| of(&none)),
    )?)
}
