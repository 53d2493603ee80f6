//! The stop: in order, with one deadline for everything.
//!
//! What has not ended by then, such as a statement on a database that hangs, is abandoned: the
//! process is about to exit.

use crate::audit;
use crate::authz::permissions;
use crate::error::{Error, Result};
use crate::http::context::Shared;
use crate::http::door;
use crate::http::probes::Probes;
use crate::runtime::Threads;
use crate::threads;
use crate::traces;
use crate::webhooks;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long open streams have for their last word before the door begins to close.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long, after the deadline of a stop, what is left is cut off and jobs are handed back.
const GRACE: Duration = Duration::from_secs(3);

/// Runs being carried on, and webhooks being sent.
pub(super) struct Work {
    pub(super) runner: jobs::Runner,
    pub(super) run_threads: Threads,
    pub(super) webhooks: webhooks::Maintenance,
    pub(super) permissions: Option<permissions::Reconciler>,
}

impl Work {
    /// Hands back what is not done by then, so that it goes on elsewhere at once. False: something
    /// could not be handed back, and waits until its lease has run out, or the permissions' thread
    /// has not ended.
    pub(super) fn stop(self, deadline: Instant) -> bool {
        if let Some(reconciler) = &self.permissions {
            reconciler.tell_to_stop();
        }
        let stopped = self
            .runner
            .stop(deadline.saturating_duration_since(Instant::now()));
        drop(self.run_threads);
        drop(self.webhooks);
        let kept = self
            .permissions
            .is_none_or(|reconciler| reconciler.stop(deadline));
        kept && !stopped.leases_left
    }
}

/// What a stop ends.
pub(super) struct Parts {
    pub(super) door: Arc<Mutex<Option<door::Door>>>,
    pub(super) shared: Arc<Shared>,
    pub(super) probes: Arc<Probes>,
    pub(super) starter: Ending,
    /// Dropped when the server stops.
    pub(super) running: Sender<()>,
    pub(super) work: Arc<Mutex<Option<Work>>>,
    pub(super) audit: audit::Running,
    pub(super) exporter: Option<traces::Exporter>,
    pub(super) log: slog::Logger,
}

impl Parts {
    /// Stops in order, and takes hardly longer than `within`. False: something did not end within
    /// the time and was cut off or left behind.
    pub(super) fn stop(self, within: Duration) -> bool {
        let Self {
            door,
            shared,
            probes,
            mut starter,
            running,
            work,
            audit,
            exporter,
            log,
        } = self;
        let deadline = Instant::now() + within;
        probes.set("stop", Err("The server is stopping.".to_owned()));
        drop(running);
        slog::info!(log, "Stopping"; "withinMs" => u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
        let work = lock(&work).take();
        // Runs take their time beside the requests, not after them.
        let runs = Ending::of("stop-runs", move || {
            work.is_none_or(|work| work.stop(deadline))
        });
        let mut streams = Ending::of("stop-streams", move || shared.streams.stop(deadline));
        // The door ends streams without a word.
        ended(&mut streams, deadline.min(Instant::now() + LAST_WORDS));
        let door = lock(&door).take();
        let door = Ending::of("stop-door", move || {
            let left = deadline.saturating_duration_since(Instant::now());
            door.is_none_or(|door| door.stop(left))
        });
        let mut in_time = starter.by(deadline);
        for mut ending in [streams, door, runs] {
            in_time &= ended(&mut ending, deadline + GRACE);
        }
        in_time &= audit.stop(deadline + GRACE);
        in_time &= exporter.is_none_or(|exporter| exporter.stop(deadline + GRACE));
        slog::info!(log, "Stopped"; "inTime" => in_time);
        in_time
    }
}

/// A thread that is waited for until a deadline, and then left behind.
pub(super) struct Ending {
    ended: Receiver<bool>,
    in_time: Option<bool>,
}

impl Ending {
    pub(super) fn of(name: &str, work: impl FnOnce() -> bool + Send + 'static) -> Result<Self> {
        let (end, ended) = bounded(1);
        let work = move || {
            // Nobody listens any more where the deadline has passed.
            let _ = end.send(work());
        };
        threads::start(name, None, work).map_err(Error::internal)?;
        Ok(Self {
            ended,
            in_time: None,
        })
    }

    /// False: it had to cut something off, panicked, or has not ended.
    fn by(&mut self, deadline: Instant) -> bool {
        if self.in_time.is_none() {
            self.in_time = self.ended.recv_deadline(deadline).ok();
        }
        self.in_time.unwrap_or(false)
    }
}

/// As [`Ending::by`]; what could not be begun has not ended.
fn ended(ending: &mut Result<Ending>, deadline: Instant) -> bool {
    ending.as_mut().is_ok_and(|ending| ending.by(deadline))
}

/// A lock; a panic under it is ignored.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
