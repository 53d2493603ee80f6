//! From an event's commit to its receipt, one endpoint, nothing else to do: beside a direct POST until its receipt, and
//! six one-row commits.

use super::commits::{commits, limit};
use super::direct::Direct;
use crate::Outcome;
use crate::hooks::{Group, Hooks};
use crate::machine::Moment;
use crate::plan::Plan;
use crate::rounds::{CLIENTS, Figure, Measure, compare, grow, median};
use crate::row::{About, Row, Target};
use std::time::Instant;

/// What the way through the queue may cost beside the POST itself.
const COMMITS: f64 = 6.0;

const ABOUT: About = About {
    name: "webhook-receipt",
    work: "event commit to receipt, p50, one endpoint, one event at a time",
    beside: "a direct POST by the same client until its receipt, and six one-row commits",
    unit: "ms",
    target: Target::AtMost(1.0),
    says_not: "An idle server in the process that emits: what another process emitted is found at the next look, every \
               200 ms.",
};

/// Milliseconds from each event's commit to each receipt, the events one after another.
fn waits(hooks: &Hooks, group: &Group, events: usize) -> Outcome<Vec<f64>> {
    let mut waits = Vec::new();
    let whole = hooks.mark()?;
    for _ in 0..events {
        let mark = hooks.mark()?;
        let (ids, committed_at) = hooks.emit(group, 1)?;
        for receipt in hooks.received(&ids, group)? {
            let wait = receipt.at.saturating_duration_since(committed_at);
            waits.push(wait.as_secs_f64() * 1000.0);
        }
        hooks.recorded(&mark, group.endpoints.len())?;
    }
    hooks.check(&whole, events * group.endpoints.len())?;
    Ok(waits)
}

/// Milliseconds from the beginning of a POST to its receipt, one after another.
fn posts(hooks: &Hooks, direct: &Direct<'_>, group: &Group, count: usize) -> Outcome<Vec<f64>> {
    let endpoint = group.endpoints.first().ok_or("no endpoint")?;
    let mut took = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        let event_id = direct.post(endpoint)?;
        for receipt in hooks.received(&[event_id], group)? {
            took.push(receipt.at.saturating_duration_since(began).as_secs_f64() * 1000.0);
        }
    }
    Ok(took)
}

pub(super) fn run(plan: Plan) -> Outcome<Row> {
    let hooks = Hooks::start()?;
    let group = hooks.group(1)?;
    hooks.drain(&group, 1)?;
    let direct = Direct::of(&hooks)?;
    let count = plan.pick(100, 300);
    let ours = || Figure::of(|| Ok(median(waits(&hooks, &group, count)?)));
    let baseline = || {
        let before = Moment::now();
        let post = median(posts(&hooks, &direct, &group, count)?);
        let commit = commits(&hooks.world, 1, count)?.p50();
        Ok(Figure {
            value: post + COMMITS * commit,
            used: before.until_now(),
            note: format!(" (POST {post:.2}, commit {commit:.2})"),
        })
    };
    let mut row = compare(plan, &ABOUT, ours, baseline)?;
    row.limit = limit(&hooks.world, 1, count)?;
    if !plan.short {
        let lines: [(_, Measure<'_>); 2] = [
            ("agent-runtime", &|count| {
                let group = hooks.group(count)?;
                hooks.drain(&group, 8)?;
                Ok(median(waits(&hooks, &group, 100)?))
            }),
            ("POSTs at once", &|count| {
                let group = hooks.group(count)?;
                Ok(direct.load(&group, count, 100)?.p50())
            }),
        ];
        row.growth.push(grow("endpoints", "ms", &CLIENTS, &lines)?);
    }
    Ok(row)
}
