//! Deliveries a second of a backlog, beside the same POSTs with no queue by as many threads.

use super::commits::limit;
use super::direct::Direct;
use crate::Outcome;
use crate::hooks::Hooks;
use crate::plan::Plan;
use crate::rounds::{CLIENTS, Figure, Measure, compare, grow};
use crate::row::{About, Row, Target};

/// Enough that no endpoint's own bound, eight at once, is in the way.
const ENDPOINTS: usize = 16;
/// As many as deliver in the service.
const THREADS: usize = 32;

const ABOUT: About = About {
    name: "webhook-deliveries",
    work: "events that wait already, each delivered to 16 endpoints that answer at once and recorded as delivered",
    beside: "the same POSTs by the same client code and policy with no queue, as many threads (32)",
    unit: "deliveries/s",
    target: Target::AtLeast(0.4),
    says_not: "The receivers are on the same machine and do nothing: over a network, and with receivers that work, both \
               sides wait and lie closer together. Nothing of the other side survives a crash.",
};

pub(super) fn run(plan: Plan) -> Outcome<Row> {
    let hooks = Hooks::start()?;
    let group = hooks.group(ENDPOINTS)?;
    hooks.drain(&group, 1)?;
    let direct = Direct::of(&hooks)?;
    let (deliveries, posts) = (plan.pick(1_600, 6_400), plan.pick(3_200, 12_800));
    let mut row = compare(
        plan,
        &ABOUT,
        || Figure::of(|| hooks.drain(&group, deliveries / ENDPOINTS)),
        || Figure::of(|| Ok(direct.load(&group, THREADS, posts / THREADS)?.rate())),
    )?;
    row.limit = limit(&hooks.world, THREADS, plan.pick(50, 200))?;
    if !plan.short {
        let lines: [(_, Measure<'_>); 2] = [
            ("agent-runtime", &|count| {
                let group = hooks.group(count)?;
                // From then on they are known to answer.
                hooks.drain(&group, 8)?;
                hooks.drain(&group, deliveries / count)
            }),
            ("no queue", &|count| {
                let group = hooks.group(count)?;
                Ok(direct.load(&group, THREADS, posts / THREADS)?.rate())
            }),
        ];
        let growth = grow("endpoints", "deliveries/s", &CLIENTS, &lines)?;
        row.growth.push(growth);
    }
    Ok(row)
}
