//! Webhooks: deliveries a second beside the same POSTs without a queue, from an event's commit to its receipt, events
//! accepted and delivered a second, and fresh deliveries beside very many retries that wait.
//!
//! Receivers answer at once, in this process, on threads of their own. The service has its own defaults: 32 threads that
//! deliver, eight attempts at once to an endpoint, a connection of its own for each attempt.

mod backlog;
mod commits;
mod direct;
mod events;
mod receipt;
mod throughput;

use super::plan::Plan;
use super::{Done, Outcome};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    done(throughput::run(plan)?)?;
    done(receipt::run(plan)?)?;
    done(events::run(plan)?)?;
    done(backlog::run(plan)?)
}
