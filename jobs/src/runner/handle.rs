//! A running queue from outside: waking it, its metrics, and its stop.

use super::state::{QueueState, RunnerState, Stats};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Reaches a runner from anywhere in the process. Cheap to clone; outlives the runner harmlessly.
#[derive(Clone)]
pub struct Handle {
    state: Arc<RunnerState>,
}

impl Handle {
    /// Call after the commit of an enqueue: the queue claims at once instead of at its next poll. A hint: costs next
    /// to nothing, and forgetting it loses nothing.
    pub fn wake(&self, queue: &str) {
        if let Some(queue) = self.state.queue(queue) {
            queue.wake();
        }
    }

    /// Call after the commit of a cancel that found the job running: tells it at once if it runs in this process;
    /// answers whether it does. Other processes find it within their watch interval.
    pub fn cancelled(&self, id: i64) -> bool {
        self.state.cancelled(id)
    }

    /// Whether a stop has begun: nothing is claimed and no handler is called any more.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.state.is_stopping()
    }

    /// Figures of one queue; none for a queue that this runner does not serve.
    #[must_use]
    pub fn stats(&self, queue: &str) -> Option<Stats> {
        self.state.queue(queue).map(|queue| queue.stats())
    }
}

/// A running set of threads. Dropping it is a stop with no time to finish, which nobody waits for.
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
    /// Jobs given back: another process may take them at once.
    pub handed_back: u64,
    /// Handlers that still run: their threads end when they do, and what they return is fenced off.
    pub unfinished: u64,
    /// Something could not be given back in time: its lease will run out.
    pub leases_left: bool,
}

/// How long, after the deadline of a stop, a stop waits for the last hand-back.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long a stop waits for handlers that were just told to end, so that the figures are whole.
const HEEDING: Duration = Duration::from_millis(100);

impl Runner {
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            state: Arc::clone(&self.state),
        }
    }

    /// Stops claiming, gives back what has not started, lets handlers finish until the deadline, then tells those that
    /// still run that they have lost, and gives their jobs back ([`QueueOptions::cut_counts`]). Returns at most two
    /// seconds after the deadline, even if the database is away; then the leases run out by themselves.
    pub fn stop(mut self, deadline: Duration) -> Stopped {
        self.state.tell_to_stop();
        let _ = self.workers.recv_deadline(Instant::now() + deadline);
        self.give_up = None;
        let running = |queue: &Arc<QueueState>| queue.running.load(Ordering::Relaxed) as u64;
        let unfinished = self.state.queues.iter().map(running).sum();
        self.keep = None;
        let kept = self.keepers.recv_deadline(Instant::now() + LAST_WORDS);
        // Handlers that heed what they were told are handed back by their own threads as well.
        let _ = self.workers.recv_deadline(Instant::now() + HEEDING);
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
