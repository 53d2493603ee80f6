//! The front door: connections, their limits, and the hand-over to a fixed pool of threads.
//!
//! hyper (HTTP/1.1) runs all connections on one thread named `door`. A complete request goes
//! through a bounded queue to one of the threads `request-N`, as a [`rouille::Request`]. The answer
//! comes back from any thread, as a [`rouille::Response`] or as a stream. Only this folder contains
//! `async` code.
//!
//! Guarantees: every connection, header block, body, queue, stream and wait has a bound from
//! [`Limits`]. At the bound the client gets the service's error body, or its connection is closed.
//! A probe is answered even if every request thread is busy. Each request is answered once.
//!
//! Not here: routes, callers, error bodies (the [`App`]'s), TLS, and HTTP/2.

mod answers;
mod app;
mod body;
mod connection;
mod connection_state;
mod context;
mod counters;
mod head;
mod host;
mod limits;
mod listen;
mod pool;
mod queue;
mod reply;
mod serve;
mod shared;
mod stopping;
mod stream;
mod wire;

pub use app::App;
pub use context::Context;
pub use counters::Stats;
pub use limits::Limits;
pub use reply::{Ready, Reply, Responder};
pub use stream::{NotSent, StreamBody, StreamWriter, stream};

use crate::error::{Error, Result};
use crate::ids::Clock;
use counters::Counters;
use shared::Shared;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stopping::Stopping;

/// An open door. Dropping it without [`Door::stop`] closes it at once.
pub struct Door {
    address: SocketAddr,
    counters: Arc<Counters>,
    stopping: Arc<Stopping>,
    pool: Arc<pool::Pool>,
    thread: Option<JoinHandle<bool>>,
}

impl Door {
    /// Serves `listener` until [`Door::stop`]. Fails where the system gives no thread or no event
    /// queue.
    pub fn open(
        listener: TcpListener,
        limits: Limits,
        app: Arc<dyn App>,
        clock: Clock,
        log: slog::Logger,
    ) -> Result<Self> {
        let address = listener.local_addr().map_err(Error::internal)?;
        listen::prepare(&listener).map_err(Error::internal)?;
        let limits = Arc::new(limits);
        let counters = Arc::new(Counters::default());
        let stopping = Arc::new(Stopping::default());
        let pool = Arc::new(pool::Pool::new(
            Arc::clone(&limits),
            Arc::clone(&app),
            Arc::clone(&counters),
            log.clone(),
        ));
        pool.fill().map_err(Error::internal)?;
        let shared = Arc::new(Shared {
            limits,
            app,
            counters: Arc::clone(&counters),
            stopping: Arc::clone(&stopping),
            pool: Arc::clone(&pool),
            answers: Arc::default(),
            clock,
            log,
        });
        let thread = listen::start(listener, shared).map_err(Error::internal)?;
        Ok(Self {
            address,
            counters,
            stopping,
            pool,
            thread: Some(thread),
        })
    }

    /// The address that the door listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets requests in flight be answered, ends streams so that their clients
    /// come back elsewhere, and joins every thread. Blocks for at most about `within`. False: what
    /// was not done by then was cut off, and a thread that did not return is left behind.
    pub fn stop(mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        let drained = self.close(deadline);
        // A thread that was just woken needs a moment, even where the deadline has passed.
        let grace = Instant::now() + Duration::from_millis(100);
        self.pool.join(deadline.max(grace)) && drained
    }

    fn close(&mut self, deadline: Instant) -> bool {
        self.stopping.begin(deadline);
        let Some(thread) = self.thread.take() else {
            return true;
        };
        thread.join().unwrap_or(false)
    }

    /// The figures of this moment.
    pub fn stats(&self) -> Stats {
        let counters = &self.counters;
        Stats {
            connections: counters.connections.load(Relaxed),
            connections_accepted: counters.connections_accepted.load(Relaxed),
            connections_refused: counters.connections_refused.load(Relaxed),
            accept_failures: counters.accept_failures.load(Relaxed),
            answers_by_class: std::array::from_fn(|class| {
                counters.answers_by_class[class].load(Relaxed)
            }),
            answers_discarded: counters.answers_discarded.load(Relaxed),
            queue_length: self.pool.jobs.len(),
            in_flight: counters.in_flight.load(Relaxed),
            body_bytes: counters.body_bytes.load(Relaxed),
            answer_bytes: counters.answer_bytes.load(Relaxed),
            answers_cut: counters.answers_cut.load(Relaxed),
            streams: counters.streams.load(Relaxed),
            request_threads: counters.request_threads.load(Relaxed),
            stuck_threads: counters.stuck_threads.load(Relaxed),
            threads_replaced: counters.threads_replaced.load(Relaxed),
            panics: counters.panics.load(Relaxed),
            still: self.pool.unattended(),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.close(Instant::now());
    }
}
