//! Events accepted and delivered: clients that each emit one event a transaction, from the first to the last receipt.
//! Beside one-row commits on the same database.
//!
//! Each client has a project with an endpoint of its own, so that each event is one delivery and no endpoint's own bound
//! is in the way.

use super::commits::{commits, limit};
use crate::Outcome;
use crate::hooks::{Group, Hooks};
use crate::load::{Load, Work};
use crate::plan::Plan;
use crate::rounds::{CLIENTS, Figure, Measure, compare, grow};
use crate::row::{About, Row, Target};
use crossbeam_channel::unbounded;
use std::time::Instant;

const AT_ONCE: usize = 16;

const ABOUT: About = About {
    name: "webhook-events",
    work: "events accepted, each in a transaction of its own, and received by one endpoint each, 16 clients",
    beside: "one-row commits on the same database, 16 clients",
    unit: "events/s",
    target: Target::AtLeast(0.3),
    says_not: "An event is told to one endpoint, so as many events as deliveries; `webhook-deliveries` has sixteen to an \
               event.",
};

/// So many events of each client, each told to its own group.
fn accepted(hooks: &Hooks, groups: &[Group], each: usize) -> Outcome<f64> {
    let mark = hooks.mark()?;
    let (sender, emitted) = unbounded();
    let client = |number: usize| -> Outcome<Work<'_>> {
        let group = groups.get(number).ok_or("no group")?;
        let sender = sender.clone();
        let mut is_first = true;
        Ok(Box::new(move || {
            let began = Instant::now();
            let (ids, _) = hooks.emit(group, 1)?;
            // The first goes before the clock runs.
            let counts = !std::mem::take(&mut is_first);
            sender.send((number, ids, counts.then_some(began)))?;
            Ok(())
        }))
    };
    Load::of(groups.len(), each, &client)?;
    let emitted: Vec<_> = emitted.try_iter().collect();
    let began = emitted.iter().filter_map(|one| one.2).min();
    let sent: Vec<_> = emitted
        .iter()
        .filter_map(|(number, ids, _)| {
            Some((*ids.first()?, groups.get(*number)?.endpoints.first()?))
        })
        .collect();
    let receipts = hooks.received_once(&sent)?;
    let ended = receipts.iter().map(|receipt| receipt.at).max();
    let count = groups.len() * (each + 1);
    if sent.len() != count {
        return Err("events are missing".into());
    }
    hooks.recorded(&mark, count)?;
    hooks.check(&mark, count)?;
    let (began, ended) = began.zip(ended).ok_or("nothing was emitted")?;
    Ok((groups.len() * each) as f64 / (ended - began).as_secs_f64())
}

/// Groups of one endpoint each, which are known to answer.
fn singles(hooks: &Hooks, count: usize) -> Outcome<Vec<Group>> {
    let groups: Vec<_> = (0..count).map(|_| hooks.group(1)).collect::<Outcome<_>>()?;
    accepted(hooks, &groups, 2)?;
    Ok(groups)
}

pub(super) fn run(plan: Plan) -> Outcome<Row> {
    let hooks = Hooks::start()?;
    let groups = singles(&hooks, AT_ONCE)?;
    let (events, rows) = (plan.pick(960, 3_200), plan.pick(1_600, 6_400));
    let beside = |clients: usize| Ok(commits(&hooks.world, clients, rows / clients)?.rate());
    let mut row = compare(
        plan,
        &ABOUT,
        || Figure::of(|| accepted(&hooks, &groups, events / AT_ONCE)),
        || Figure::of(|| beside(AT_ONCE)),
    )?;
    row.limit = limit(&hooks.world, 64, rows / 64)?;
    if !plan.short {
        let lines: [(_, Measure<'_>); 2] = [
            ("agent-runtime", &|clients| {
                let groups = singles(&hooks, clients)?;
                accepted(&hooks, &groups, events / clients)
            }),
            ("one-row commits", &beside),
        ];
        let growth = grow("clients", "events/s", &CLIENTS, &lines)?;
        row.growth.push(growth);
    }
    Ok(row)
}
