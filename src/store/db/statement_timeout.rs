//! Cancels statements that exceed their limit.
//!
//! The server's `statement_timeout` ends statements that the server is working on, and the kernel's
//! `tcp_user_timeout` ends a dead connection. This module covers what neither sees, by sending a
//! cancel request. A server that hangs cannot process it; then the door answers the client and
//! replaces the waiting thread.
//!
//! A connection whose statement was cancelled takes no other one and is closed when it returns, so
//! a late cancel hits nothing. What such a statement answers does not count: a commit that waits for a synchronous
//! standby is answered as one when it is cancelled, although no standby has it.

use super::failure::{Failure, guarded};
use crate::error::{Error, Result};
use crate::log::Outage;
use crate::threads;
use postgres::NoTls;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

const PERIOD: Duration = Duration::from_millis(500);

/// Connects, and asks for the end of statements.
#[derive(Clone)]
pub(super) struct Canceller(pub(super) Option<MakeRustlsConnect>);

impl Canceller {
    /// Asks the server to end what the connection of `token` is doing. It may hang on a server that
    /// stands still.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) fn cancel(&self, token: &postgres::CancelToken) -> Result<(), Failure> {
        guarded(|| match &self.0 {
            Some(tls) => token.cancel_query(tls.clone()),
            None => token.cancel_query(NoTls),
        })
    }

    pub(super) fn connect(&self, config: &postgres::Config) -> Result<postgres::Client, Failure> {
        guarded(|| match &self.0 {
            Some(tls) => config.connect(tls.clone()),
            None => config.connect(NoTls),
        })
    }
}

/// The monitor of every connection of the pool.
#[derive(Default)]
pub(super) struct Monitor {
    connections: Mutex<Vec<Weak<Monitored>>>,
    /// When a connection was last found dead: those used before may be dead with it.
    lost_at: Mutex<Option<Instant>>,
    /// Set when the pool is opened.
    outage: OnceLock<Arc<OnceLock<Outage>>>,
}

/// One connection, as the monitor sees it.
pub(super) struct Monitored {
    token: postgres::CancelToken,
    /// Of the server, where the connection string names several hosts.
    timeline: i64,
    state: Mutex<State>,
}

struct State {
    /// Since when a statement runs.
    since: Option<Instant>,
    cancelled_at: Option<Instant>,
    answered_at: Instant,
    /// When a loan to the job queue ended with the connection alive. The watchdog does not count it: the queue has connections
    /// beside the pool.
    returned_at: Instant,
    broken: bool,
    lost: bool,
}

impl Monitored {
    /// A statement begins.
    ///
    /// # Errors
    /// `database-unavailable` on a connection that takes no more.
    pub(super) fn begin(&self) -> Result<()> {
        let mut state = lock(&self.state);
        if state.broken {
            return Err(Error::database_unavailable(
                "the connection was given up with its last statement",
            ));
        }
        state.since = Some(Instant::now());
        Ok(())
    }

    /// It ended. `answered`: by an answer of the server. False: the connection was given up meanwhile, and nothing that it
    /// confirmed counts.
    pub(super) fn end(&self, answered: bool) -> bool {
        let mut state = lock(&self.state);
        state.since = None;
        if answered {
            state.answered_at = Instant::now();
        }
        !state.broken
    }

    /// A loan to the job queue ended. `is_alive`: the server has not closed the connection.
    /// False: as of [`Self::end`].
    pub(super) fn end_loan(&self, is_alive: bool) -> bool {
        let mut state = lock(&self.state);
        state.since = None;
        if is_alive {
            state.returned_at = Instant::now();
        }
        !state.broken
    }

    /// When the connection was last seen alive.
    pub(super) fn alive_at(&self) -> Instant {
        let state = lock(&self.state);
        state.answered_at.max(state.returned_at)
    }

    /// The connection takes no more.
    pub(super) fn give_up(&self) {
        lock(&self.state).broken = true;
    }

    /// The connection is dead: those beside it may be, too.
    pub(super) fn lose(&self) {
        let mut state = lock(&self.state);
        state.broken = true;
        state.lost = true;
    }

    pub(super) fn is_lost(&self) -> bool {
        lock(&self.state).lost
    }

    pub(super) fn is_broken(&self) -> bool {
        lock(&self.state).broken
    }

    /// It takes no more. Since when a statement runs on it.
    fn supersede(&self) -> Option<Instant> {
        let mut state = lock(&self.state);
        state.broken = true;
        state.since
    }

    /// Since when a statement runs that is to be cancelled.
    fn overdue(&self, limit: Duration) -> Option<Instant> {
        let state = lock(&self.state);
        let waits = |at: Option<Instant>| at.is_none_or(|at| at.elapsed() > limit);
        state
            .since
            .filter(|since| since.elapsed() > limit && waits(state.cancelled_at))
    }

    /// False: that statement has ended meanwhile.
    fn begin_cancel(&self, since: Instant) -> bool {
        let mut state = lock(&self.state);
        let same = state.since == Some(since);
        if same {
            // Before the cancel goes out: what is answered from here on does not count.
            state.broken = true;
            state.cancelled_at = Some(Instant::now());
        }
        same
    }
}

impl Monitor {
    /// Starts the thread, which ends when the monitor is gone.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(
        self: &Arc<Self>,
        canceller: Canceller,
        limit: Duration,
        log: slog::Logger,
    ) -> Result<()> {
        let monitor = Arc::downgrade(self);
        let watch = move || run(&monitor, &canceller, limit, &log);
        threads::start("store-timeout", Some(256 * 1024), watch).map_err(Error::internal)?;
        Ok(())
    }

    /// Watches one more connection.
    pub(super) fn add(&self, token: postgres::CancelToken, timeline: i64) -> Arc<Monitored> {
        let connection = Arc::new(Monitored {
            token,
            timeline,
            state: Mutex::new(State {
                since: None,
                cancelled_at: None,
                answered_at: Instant::now(),
                returned_at: Instant::now(),
                broken: false,
                lost: false,
            }),
        });
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&connection));
        connection
    }

    /// Gives up the connections to timelines below this one, and cancels what runs on them. How many they are.
    pub(super) fn supersede(&self, below: i64, canceller: &Canceller, log: &slog::Logger) -> usize {
        let mut old = self.connections();
        old.retain(|connection| connection.timeline < below && !connection.is_broken());
        let count = old.len();
        let running = old
            .into_iter()
            .filter_map(|connection| connection.supersede().map(|since| (connection, since)))
            .collect();
        // Without a thread they end by their limits.
        let _ = cancel_aside(running, canceller, log);
        count
    }

    /// Whether the server answered on any connection within this time.
    pub(super) fn answered_within(&self, time: Duration) -> bool {
        let connections = self.connections();
        connections
            .iter()
            .any(|connection| lock(&connection.state).answered_at.elapsed() < time)
    }

    /// A connection was found dead, which last answered at this time. One that ended with others, or in an outage, is
    /// thrown away without a record.
    pub(super) fn note_loss(&self, answered_at: Instant) {
        *lock(&self.lost_at) = Some(Instant::now());
        if let Some(outage) = self.outage() {
            let error = Error::database_unavailable("a connection was lost");
            outage.lost(answered_at, &error);
        }
    }

    /// Tells the log of outages from here on.
    pub(super) fn tell(&self, outage: Arc<OnceLock<Outage>>) {
        // One pool has one monitor.
        let _ = self.outage.set(outage);
    }

    fn outage(&self) -> Option<&Outage> {
        self.outage.get().and_then(|outage| outage.get())
    }

    /// The server did not answer.
    pub(super) fn note_away(&self, error: &(dyn std::error::Error + 'static)) {
        if let Some(outage) = self.outage() {
            outage.failed(error);
        }
    }

    /// The server took no connection.
    pub(super) fn note_unconnected(&self, error: &(dyn std::error::Error + 'static)) {
        if let Some(outage) = self.outage() {
            outage.could_not_connect(error);
        }
    }

    /// The server took a connection.
    pub(super) fn note_connected(&self) {
        if let Some(outage) = self.outage() {
            outage.connected();
        }
    }

    /// The server answered.
    pub(super) fn note_answer(&self) {
        if let Some(outage) = self.outage() {
            outage.answered();
        }
    }

    /// Whether the log has told that the server is away.
    pub(super) fn is_away(&self) -> bool {
        self.outage().is_some_and(Outage::is_on)
    }

    /// Whether a connection was found dead since, or the server was away for another pool.
    pub(super) fn has_lost_since(&self, time: Instant) -> bool {
        lock(&self.lost_at).is_some_and(|at| at >= time)
            || self
                .outage()
                .is_some_and(|outage| outage.was_away_since(time))
    }

    fn connections(&self) -> Vec<Arc<Monitored>> {
        lock(&self.connections)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

fn run(monitor: &Weak<Monitor>, canceller: &Canceller, limit: Duration, log: &slog::Logger) {
    // A cancel has no deadline of its own. One that hangs hangs on the server that all would ask.
    let mut cancelling: Option<JoinHandle<()>> = None;
    loop {
        std::thread::sleep(PERIOD);
        let Some(monitor) = monitor.upgrade() else {
            return;
        };
        if cancelling
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            continue;
        }
        let connections = monitor.connections().into_iter();
        let overdue: Vec<_> = connections
            .filter_map(|connection| connection.overdue(limit).map(|since| (connection, since)))
            .collect();
        if overdue.is_empty() {
            continue;
        }
        cancelling = cancel_aside(overdue, canceller, log);
    }
}

/// On a thread of its own. None: the system gives no thread.
fn cancel_aside(
    running: Vec<(Arc<Monitored>, Instant)>,
    canceller: &Canceller,
    log: &slog::Logger,
) -> Option<JoinHandle<()>> {
    let (canceller, log) = (canceller.clone(), log.clone());
    std::thread::Builder::new()
        .name("store-cancel".to_owned())
        .stack_size(512 * 1024)
        .spawn(move || cancel(running, &canceller, &log))
        .ok()
}

fn cancel(overdue: Vec<(Arc<Monitored>, Instant)>, canceller: &Canceller, log: &slog::Logger) {
    for (connection, since) in overdue {
        if !connection.begin_cancel(since) {
            continue;
        }
        slog::warn!(log, "A statement outlived its limit, or its server; cancelling it";
            "runningMs" => u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        if let Err(error) = canceller.cancel(&connection.token) {
            slog::warn!(log, "The statement could not be cancelled"; crate::log::ErrorValue(&error));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
