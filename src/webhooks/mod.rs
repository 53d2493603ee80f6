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
mod deliver;
mod emit;
pub mod event;
mod finish;
mod maintenance;
pub mod reason;
mod retry_schedule;
pub mod sign;
mod stats;
mod turns;
mod unregister;

pub use deliver::Deliver;
pub use maintenance::Maintenance;
pub use stats::Stats;

use crate::config::Settings;
use crate::error::Result;
use crate::ids::Clock;
use crate::outbound::{Outbound, Policy, WebhookAccess};
use crate::secrets::Secrets;
use crate::store::Store;
use crate::store::group_commit::GroupCommit;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How webhooks are sent from this process.
#[derive(Debug, Clone)]
pub struct Options {
    /// For one attempt, from the look-up of the name to the end of the answer.
    pub timeout: Duration,
    /// Attempts of this process at once at most.
    pub threads: usize,
    /// Attempts to one endpoint at once at most, over all processes.
    pub endpoint_concurrency: u32,
    /// Days that events, deliveries and attempts are kept at least.
    pub retention_days: u32,
    /// Receivers on private networks are let through, over https.
    pub private_networks: bool,
    /// Development mode: plain http, and every address but those of metadata services.
    pub development: bool,
    /// Where the server itself listens, which no webhook may reach.
    pub listening: Option<SocketAddr>,
    /// Where people open the console, such as `https://agents.example.com/console/`.
    pub console: Option<String>,
    /// How often deliveries that other processes queued, and retries that are due, are looked for.
    pub poll: Duration,
    /// As many deliveries are claimed ahead as attempts ended within so much time of late.
    pub ahead: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            threads: 32,
            endpoint_concurrency: 8,
            retention_days: 30,
            private_networks: false,
            development: false,
            listening: None,
            console: None,
            poll: Duration::from_millis(200),
            ahead: Duration::from_millis(20),
        }
    }
}

impl Options {
    /// As the settings say.
    pub fn from_settings(settings: &Settings) -> Self {
        let values = &settings.values;
        Self {
            timeout: values.duration("SVC_WEBHOOK_TIMEOUT_MS"),
            threads: values.number("SVC_WEBHOOK_THREADS"),
            endpoint_concurrency: values.number("SVC_WEBHOOK_ENDPOINT_CONCURRENCY"),
            retention_days: values.number("SVC_WEBHOOK_RETENTION_DAYS"),
            // The one word of the setting is `allow`.
            private_networks: values.is_given("SVC_WEBHOOK_PRIVATE_NETWORKS"),
            development: settings.development,
            poll: values.duration("SVC_JOB_POLL_MS"),
            console: settings.public_console(),
            ..Self::default()
        }
    }

    /// Which receivers may be reached.
    pub fn policy(&self) -> Policy {
        Policy::Webhook(WebhookAccess {
            private_networks: self.private_networks,
            development: self.development,
            listening: self.listening,
        })
    }
}

/// Outbound webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    outbound: Outbound,
    secrets: Secrets,
    options: Options,
    log: slog::Logger,
    counts: stats::Counts,
    ended: unregister::Ended,
    /// Endpoints that an event was for of late, at most.
    matched: AtomicUsize,
    finishing: GroupCommit<(finish::Made, finish::Waiter)>,
    queue: OnceLock<jobs::Handle>,
}

impl Webhooks {
    /// Puts the parts together; starts nothing.
    pub fn new(
        store: Store,
        clock: Clock,
        outbound: Outbound,
        secrets: Secrets,
        options: Options,
        log: slog::Logger,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            outbound,
            secrets,
            options,
            log,
            counts: stats::Counts::default(),
            ended: unregister::Ended::default(),
            matched: AtomicUsize::new(0),
            finishing: GroupCommit::default(),
            queue: OnceLock::new(),
        }))
    }

    /// Whether webhooks are sent at all: they are signed with secrets, so it takes a backend of secrets
    /// (specification section 6).
    pub fn is_on(&self) -> bool {
        self.0.secrets.is_on()
    }

    /// Which receivers may be reached.
    pub fn policy(&self) -> Policy {
        self.0.options.policy()
    }

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
