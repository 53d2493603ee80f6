//! A running queue from outside: waking it, its metrics, and its stop.

use super::state::{QueueState, RunnerState, Stats};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Controls a runner from anywhere in the process. Cheap to clone, and harmless after the runner
/// has ended.
#[derive(Clone)]
pub struct Handle {
    state: Arc<RunnerState>,
}

impl Handle {
    /// Call after the commit of an enqueue: the queue claims immediately instead of at its next
    /// poll. Cheap, and only a hint: without it nothing is lost.
    pub fn wake(&self, queue: &str) {
        if let Some(queue) = self.state.queue(queue) {
            queue.wake();
        }
    }

    /// Call after the commit of a cancel that found the job running. Notifies its handler if it
    /// runs in this process, and returns whether it does. Other processes notice within their watch
    /// interval.
    pub fn cancelled(&self, id: i64) -> bool {
        self.state.cancelled(id)
    }

    /// Whether a stop has begun: nothing is claimed and no handler is called any more.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.state.is_stopping()
    }

    /// Metrics of one queue; none if this runner does not serve it.
    #[must_use]
    pub fn stats(&self, queue: &str) -> Option<Stats> {
        self.state.queue(queue).map(|queue| queue.stats())
    }
}

/// A running set of threads. Dropping it stops it without time to finish, and does not wait.
pub struct Runner {
    pub(super) state: Arc<RunnerState>,
    /// Disconnected when every thread that claims, handles or completes has ended.
    pub(super) workers: Receiver<()>,
    /// Disconnected when the threads of leases have ended.
    pub(super) keepers: Receiver<()>,
    /// Dropped to end those.
    pub(super) keep: Option<Sender<()>>,
    pub(super) give_up: Option<Sender<()>>,
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Jobs handed back: another process may claim them immediately.
    pub handed_back: u64,
    /// Handlers that still run. Their threads end with them, and the fence refuses what they
    /// return.
    pub unfinished: u64,
    /// Something could not be handed back in time: its lease will run out.
    pub leases_left: bool,
}

/// How long, after the deadline of a stop, a stop waits for the last hand-back.
const HAND_BACK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a stop waits for handlers that were just told to end, so that the figures are whole.
const HANDLERS_TIMEOUT: Duration = Duration::from_millis(100);

impl Runner {
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            state: Arc::clone(&self.state),
        }
    }

    /// Stops claiming, hands back what has not started, and lets handlers finish until the
    /// deadline. Then it notifies those that still run that they have lost their leases, and hands
    /// their jobs back ([`QueueOptions::cut_counts`]). It returns at most two seconds after the
    /// deadline, even if the database is unreachable; then the leases run out.
    pub fn stop(mut self, deadline: Duration) -> Stopped {
        self.state.tell_to_stop();
        let _ = self.workers.recv_deadline(Instant::now() + deadline);
        self.give_up = None;
        let running = |queue: &Arc<QueueState>| queue.running.load(Ordering::Relaxed) as u64;
        let unfinished = self.state.queues.iter().map(running).sum();
        self.keep = None;
        let kept = self
            .keepers
            .recv_deadline(Instant::now() + HAND_BACK_TIMEOUT);
        // A handler that reacts is handed back by its own thread as well.
        let _ = self
            .workers
            .recv_deadline(Instant::now() + HANDLERS_TIMEOUT);
        Stopped {
            handed_back: self.state.handed_back.load(Ordering::Relaxed),
            unfinished,
            leases_left: kept == Err(RecvTimeoutError::Timeout)
                || self.state.leases_left.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.state.tell_to_stop();
    }
}
