//! Outbound webhooks: events for a tenant's receivers, signed, delivered at least once.
//!
//! ```text
//! being-sent ──2xx──► delivered
//!    │  ▲
//!    │  └─ anything else: later, ten attempts in all
//!    └──attempts used up, or the endpoint unregistered──► failed
//! ```
//!
//! Guarantees:
//!
//! - An event and its deliveries commit with what they report, or not at all
//!   (`event-with-its-cause`).
//!
//! - A committed delivery is attempted until it is delivered or failed, whatever happens to the
//!   process. Its job is under a lease before anything is sent, so an attempt counts even if a
//!   crash hid its outcome.
//!
//! - Nothing is sent after [`Webhooks::unregister`] has returned.
//!
//! - No endpoint has more attempts in flight than its share. An endpoint whose newest attempt
//!   failed or was slow has one, and all such endpoints together hold at most half of the threads.
//!
//! Not here: the routes (`api::webhook_endpoints`), the rows (`store`), the allowed addresses of
//! receivers (`outbound`).

mod begin;
mod counts;
mod deliver;
mod emit;
mod ended;
pub mod event;
mod finish;
mod job;
mod made;
mod maintenance;
mod options;
pub mod reason;
mod retry_schedule;
mod shared;
pub mod sign;
mod stats;
mod turns;
mod unregister;

pub use job::Deliver;
pub use maintenance::Maintenance;
pub use options::Options;
pub use shared::Webhooks;
pub use stats::Stats;

use crate::error::Result;
use shared::Inner;
use std::sync::Arc;
use std::time::Duration;

impl Webhooks {
    /// Adds the queue `webhooks` and its handler: the threads `webhooks-N`. Where webhooks are off,
    /// nothing is added, and what waits goes on waiting.
    pub fn serve(&self, builder: jobs::Builder) -> jobs::Builder {
        if !self.is_on() {
            return builder;
        }
        let inner = Arc::clone(&self.0);
        let options = jobs::QueueOptions {
            threads: self.0.options.threads,
            // What the next claim takes is there when the threads are through with this one's: where they are through
            // quickly. The larger a claim, the less it costs each.
            prefetch: 3 * self.0.options.threads,
            prefetch_time: self.0.options.ahead,
            // Endpoints that fail, are slow or were not sent to before leave the rest to the others.
            serial_most: (self.0.options.endpoint_concurrency > 1)
                .then(|| (self.0.options.threads / 2).max(1)),
            poll: self.0.options.poll,
            // The receiver may have got the event.
            cut_counts: true,
            // No attempt outlasts its lease.
            lease_at_least: deliver::within(&self.0),
            // After an attempt whose end could not be written.
            backoff: jobs::Backoff {
                first: Duration::from_millis(500),
                most: Duration::from_secs(15),
            },
            ..jobs::QueueOptions::default()
        };
        let claimer = Arc::clone(&self.0);
        let queue = <Deliver as jobs::Job>::QUEUE;
        builder
            .queue(queue, options)
            .read_beside(queue, move |claimed, since| {
                begin::begin_all(&claimer, claimed, since)
            })
            .handle::<Deliver>(move |claimed, job| deliver::deliver(&inner, claimed, &job))
    }

    /// Lets what is emitted here wake this process's queue. To be called once it is started.
    pub fn woken_by(&self, queue: jobs::Handle) {
        // A second queue in one process would not be woken, and polls.
        let _ = self.0.queue.set(queue);
    }

    /// Makes the partitions that events are written to. To be done before the first event of a fresh
    /// database; the maintenance repeats it.
    pub fn prepare(&self) -> Result<()> {
        maintenance::attach_partitions(&self.0)
    }

    /// Starts the thread that maintains the tables.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start_maintenance(&self) -> Result<Maintenance> {
        maintenance::start(&self.0)
    }

    /// What was sent in this process, and how much waits.
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }
}
