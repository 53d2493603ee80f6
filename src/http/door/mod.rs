//! The front door: connections, their limits, and the hand-over to a fixed pool of threads.
//!
//! Connections are hyper's (HTTP/1.1) on one thread named `door`. A complete request goes over a
//! bounded queue to the threads `request-N` as a [`rouille::Request`]; its answer comes back as a
//! [`rouille::Response`] or as a stream, from any thread. `async` stands in this folder and nowhere
//! else.
//!
//! Guarantees: every connection, header block, body, queue, stream and wait has a bound from
//! [`Limits`]; at the bound the client gets the service's error body or its connection is closed;
//! a probe is answered while every request thread is busy; a request is answered once.
//!
//! Not here: routes, callers, error bodies (the [`App`]'s), TLS, and HTTP/2.

mod body;
mod connection;
mod connection_state;
mod context;
mod head;
mod listen;
mod pool;
mod queue;
mod reply;
mod serve;
mod stream;

pub use context::Context;
pub use reply::{Ready, Reply, Responder};
pub use stream::{NotSent, StreamBody, StreamWriter, stream};

use crate::error::{Error, Result};
use crate::ids::Clock;
use listen::{Shared, Stopping};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The bounds that the door keeps.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections open at once. A few more are taken for probes; others get 503 there.
    pub connections: usize,
    /// Connections open at once from one address (IPv6: one /64). Beyond it: 429.
    pub connections_per_address: usize,
    /// Bytes of the request line and header block, at least 8192. Beyond it: 431.
    pub header_bytes: usize,
    /// Header fields. Beyond it: 431.
    pub headers: usize,
    /// Bytes of the largest body that any route takes. Beyond it: 413, unread.
    pub body_bytes: u64,
    /// Bytes of a body that are read before [`App::admit`] is asked.
    pub small_body_bytes: u64,
    /// Bytes of all bodies held at once. Beyond it: 503.
    pub bodies_in_flight_bytes: u64,
    /// Bytes of an answer that is not a stream. Beyond it: 500.
    pub answer_bytes: u64,
    /// From the first byte of a request to the end of its header block. Beyond it: 408.
    pub header_timeout: Duration,
    /// From the end of the header block to the end of the body. Beyond it: 408.
    pub body_timeout: Duration,
    /// How long a client may take no byte of its answer. Beyond it: the connection is cut.
    pub write_timeout: Duration,
    /// From the complete request to its answer's beginning. Beyond it: 504.
    pub request_deadline: Duration,
    /// How long a connection may stay open between requests. Beyond it: it is closed.
    pub idle_timeout: Duration,
    /// Complete requests that wait for a thread. Beyond it: 503.
    pub queue_length: usize,
    /// Streams open at once. Beyond it: 503.
    pub streams: usize,
    /// Threads that run [`App::admit`] and [`App::handle`].
    pub request_threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: 10_000,
            header_bytes: 16 * 1024,
            headers: 64,
            body_bytes: 2 * 1024 * 1024,
            small_body_bytes: 16 * 1024,
            bodies_in_flight_bytes: 128 * 1024 * 1024,
            answer_bytes: 64 * 1024 * 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            request_deadline: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            queue_length: 1024,
            streams: 8192,
            request_threads: 16,
        }
    }
}

/// What stands behind the door: the pipeline in production, small services in the tests.
pub trait App: Send + Sync + 'static {
    /// Answers a probe on the door's own thread, so it never blocks. `None`: not a probe.
    fn probe(&self, method: &str, path: &str) -> Option<rouille::Response>;

    /// Before more than [`Limits::small_body_bytes`] of a body is read, and only then: is the
    /// caller known and the route too, and how many bytes may the body have? On a request thread;
    /// the request's body is empty.
    fn admit(
        &self,
        head: &rouille::Request,
        context: &Context,
    ) -> std::result::Result<u64, rouille::Response>;

    /// A complete request, on a request thread, which is free again when this returns. The answer
    /// goes through `responder`, now or later, from any thread. `HEAD` arrives as `GET`.
    fn handle(&self, request: &rouille::Request, responder: Responder);

    /// The body of one of the door's own refusals, mostly on the door's thread, so it never blocks.
    /// `context` has the request id; without a readable header block its method and target are
    /// empty.
    fn refuse(&self, error: &Error, context: &Context) -> rouille::Response;
}

/// What the door does just now, and has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections open now.
    pub connections: usize,
    /// Connections taken since the start.
    pub connections_accepted: u64,
    /// Connections closed at once because too many were open.
    pub connections_refused: u64,
    /// Failed accepts, such as those without a file descriptor left.
    pub accept_failures: u64,
    /// Answers by the first digit of their status, 1 to 5, at index 0 to 4.
    pub answers_by_class: [u64; 5],
    /// Answers that came after the door had given up on their request, or its client had.
    pub answers_discarded: u64,
    /// Requests that wait for a thread now.
    pub queue_length: usize,
    /// Requests between their header block and the beginning of their answer now.
    pub in_flight: usize,
    /// Bytes of bodies held now.
    pub body_bytes: u64,
    /// Streams open now.
    pub streams: usize,
    /// Request threads that take work now.
    pub request_threads: usize,
    /// Request threads held by one request beyond its deadline now.
    pub stuck_threads: usize,
    /// Request threads started in place of stuck ones since the start.
    pub threads_replaced: u64,
    /// Panics caught in handlers since the start.
    pub panics: u64,
    /// How long ago the door's thread last looked after the request threads: a second at most, unless
    /// it is held up.
    pub still: Duration,
}

/// Counters that every part of the door writes.
#[derive(Default)]
struct Counters {
    connections: AtomicUsize,
    connections_accepted: AtomicU64,
    connections_refused: AtomicU64,
    accept_failures: AtomicU64,
    answers_by_class: [AtomicU64; 5],
    answers_discarded: AtomicU64,
    in_flight: AtomicUsize,
    body_bytes: AtomicU64,
    streams: AtomicUsize,
    stuck_threads: AtomicUsize,
    request_threads: AtomicUsize,
    threads_replaced: AtomicU64,
    panics: AtomicU64,
}

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
        // A thread that has just been told needs a moment, even where the deadline has passed.
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
