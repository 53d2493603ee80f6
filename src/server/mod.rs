//! The server: every thread, in order, and how each ends.
//!
//! | thread | does | ends |
//! |---|---|---|
//! | `door` | connections | `Door::stop`: no new ones; answers in flight within the deadline |
//! | `request-N` | handlers | with the door |
//! | `stream-N`, `stream-tail`, `stream-reviewers`, `stream-changes`, `stream-access` | open streams; rights of their readers | `Streams::stop`: each gets `stream.end` |
//! | `runs-N`, as many as needed at once, and the queue's own | runs | `jobs::Runner::stop`: leases handed back |
//! | `authz-sync` | makes tenants' stores, synchronizes permissions | `Reconciler::stop`, before the next call |
//! | `runs-…` | watch runs, write text, maintain tables | with the runs |
//! | `webhooks-N` and the queue's own | attempts at deliveries of webhooks | with the runs, in the same runner; only with a secrets backend |
//! | `webhooks-upkeep` | maintains the tables of webhooks | with the runs, after both queues |
//! | `audit-writer`, `audit-watch`, `audit-keeper` | write access decisions; fail those that are late; maintain their tables | `audit::Running::stop`, after everything that records; waiting decisions are written |
//! | `traces` | sends spans to the collector of traces, where there is one | `traces::Exporter::stop`, after everything that records; it waits 2 s for the collector |
//! | `starter` | waits for the database, migrates, seeds; then checks the database, wipes expired secrets, writes when tokens were used, and warns of the license's end | with the server |
//! | `watchdog`, `watchdog-ask` | check whether a part is stuck; ask the database on a fresh connection | with the server |
//! | `store-timeout`, `store-cancel`, `store-close`, the pool's | cancel late statements, close connections; the audit has its own, leases have their own pool | with the last user of the store |
//! | `stop-…` | wait for the above, one each | with what they wait for, or with the process |
//!
//! The door is open before the database is up: probes answer, everything else is a 503 that says so.
//! `build` makes the parts, `start` gets them ready, `stop` ends them in order.

mod build;
mod listen;
pub mod options;
mod providers;
mod start;
mod stop;
mod watchdog;

pub use build::table;
pub use options::{Options, Replaced, Seeds};
pub use start::seed;
pub use watchdog::Part;

use crate::audit;
use crate::error::Result;
use crate::http::context::Shared;
use crate::http::door;
use crate::http::pipeline::Pipeline;
use crate::http::probes::Probes;
use crate::ids::Clock;
use crate::log::Subsystem;
use crossbeam_channel::{Receiver, bounded};
use start::Starter;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stop::{Ending, Parts};
use watchdog::Watchdog;

/// A running server.
pub struct Server {
    address: SocketAddr,
    watchdog: Arc<Watchdog>,
    ready: Receiver<Result<()>>,
    parts: Parts,
}

impl Server {
    /// Opens the door and begins to get ready.
    ///
    /// # Errors
    /// The address is taken, a setting is no use, or the system gives no thread.
    pub fn start(mut options: Options, clock: &Clock, log: &slog::Logger) -> Result<Self> {
        let sub = |name| crate::log::subsystem(log, name);
        let (seeds, run_lease) = (options.seeds.clone(), options.run_lease);
        let silence = watchdog::silence(&options.store);
        let (limits, docs, console) = (options.limits.clone(), options.docs, options.console);
        let listener = listen::open(options.listen)?;
        options.webhooks.listening = listener.local_addr().ok();
        let own = sub(Subsystem::Audit);
        let (recorder, audit) = audit::start(&options.audit, &options.store, clock, &own)?;
        let (shared, exporter) = build::share(options, recorder, clock, log)?;
        let probes = Arc::new(Probes::new());
        let pipeline = Pipeline::new(
            Arc::clone(&shared),
            build::mounted(docs, console, &shared),
            Arc::clone(&probes),
            sub(Subsystem::Http),
        );
        let door = door::Door::open(
            listener,
            limits,
            Arc::new(pipeline),
            clock.clone(),
            sub(Subsystem::HttpDoor),
        )?;
        let address = door.local_addr();
        warn_of_console_login(&shared, address, &sub(Subsystem::Server));
        let door = Arc::new(Mutex::new(Some(door)));
        let (running, stopped) = bounded(0);
        let watchdog = Watchdog::start(watchdog::Watched {
            silence,
            door: Arc::clone(&door),
            audit: shared.audit.clone(),
            manager: shared.store.manager().clone(),
            probes: Arc::clone(&probes),
            stopped: stopped.clone(),
            log: sub(Subsystem::Server),
        })?;
        build::measure(&probes, &door, &shared, &watchdog);
        let (outcome, ready) = bounded(1);
        let work = Arc::new(Mutex::new(None));
        let starter = Starter {
            shared: Arc::clone(&shared),
            seeds,
            run_lease,
            work: Arc::clone(&work),
            probes: Arc::clone(&probes),
            watchdog: Arc::clone(&watchdog),
            stopped,
            log: sub(Subsystem::Server),
        };
        let starter = Ending::of("starter", move || {
            starter.run(&outcome);
            true
        })?;
        Ok(Self {
            address,
            watchdog,
            ready,
            parts: Parts {
                door,
                shared,
                probes,
                starter,
                running,
                work,
                audit,
                exporter,
                log: sub(Subsystem::Server),
            },
        })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What tests and `dev` share with the handlers.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.parts.shared
    }

    /// Says once that the server is ready, or why it never will be.
    pub fn ready(&self) -> &Receiver<Result<()>> {
        &self.ready
    }

    /// Whether the process does its work. False: a restart would help.
    pub fn beats(&self) -> bool {
        self.watchdog.beats()
    }

    /// The part that is stuck, if one is.
    pub fn stuck(&self) -> Option<Part> {
        self.watchdog.stuck()
    }

    /// Stops in order, and takes hardly longer than `within`. False: something did not end within
    /// the time and was cut off or left behind.
    pub fn stop(self, within: Duration) -> bool {
        self.parts.stop(within)
    }
}

/// Says so where the development's token can be had from elsewhere.
fn warn_of_console_login(shared: &Shared, address: SocketAddr, log: &slog::Logger) {
    if shared.authn.sign_in().console_token.is_some() && !address.ip().is_loopback() {
        slog::warn!(log, "SVC_DEV_CONSOLE_LOGIN hands the API token out, and the server does not listen on a loopback address: whoever reaches it may have the token. Set SVC_BIND_ADDRESS=127.0.0.1, or turn the setting off"; "address" => %address);
    }
}
