//! A ticket stands for a decision that is being recorded. It succeeds or fails once, and nothing
//! that the decision allows may happen before it succeeded.

use crate::error::{Code, Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// A decision on its way to the disk. Clones share one outcome.
#[derive(Clone)]
pub struct Ticket(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    resolved: Condvar,
    /// The ticket fails at this time.
    deadline: Instant,
}

#[derive(Default)]
struct State {
    resolution: Option<Resolution>,
    callbacks: Vec<Callback>,
}

/// The outcome of a ticket. The first one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    /// The decision is on disk.
    Committed,
    /// The decision may not be relied on.
    Failed(Reason),
}

/// Why a decision was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The queue is full.
    QueueFull,
    /// The server is stopping.
    Stopping,
    /// The commit was not confirmed in time.
    Late,
    /// The database accepts decisions, but not this one.
    Refused,
    /// The database's disk is full.
    DiskFull,
}

impl Reason {
    #[track_caller]
    pub(super) fn error(self) -> Error {
        let (why, cause) = match self {
            Self::QueueFull => ("too many decisions wait to be written", "the queue is full"),
            Self::Stopping => ("the server is stopping", "the writer is stopping"),
            Self::Late => (
                "its database does not answer in time",
                "not committed within the deadline",
            ),
            Self::Refused => (
                "its database does not take this decision",
                "refused by the database",
            ),
            Self::DiskFull => (
                "the disk of its database is full",
                "the database's disk is full",
            ),
        };
        Error::new(
            Code::AuditUnavailable,
            format!("The access decision could not be written to the audit: {why}. Nothing was done. Try again shortly."),
        )
        .because(cause)
    }
}

impl Resolution {
    #[track_caller]
    fn result(self) -> Result<()> {
        match self {
            Self::Committed => Ok(()),
            Self::Failed(reason) => Err(reason.error()),
        }
    }
}

impl Ticket {
    pub(super) fn new(patience: Duration) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            resolved: Condvar::new(),
            deadline: Instant::now() + patience,
        }))
    }

    pub(super) fn deadline(&self) -> Instant {
        self.0.deadline
    }

    pub(super) fn is_resolved(&self) -> bool {
        self.lock().resolution.is_some()
    }

    /// Waits until the decision is committed.
    ///
    /// # Errors
    /// `audit-unavailable`: it was not committed by the deadline, or never will be. Nothing that it
    /// was to allow may happen.
    pub fn wait(&self, deadline: Instant) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(resolution) = state.resolution {
                return resolution.result();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Reason::Late.error());
            }
            state = self
                .0
                .resolved
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Calls `f` with the outcome: immediately if it is known, otherwise later on the thread that
    /// writes the decision. `f` must not block.
    pub fn then(&self, f: impl FnOnce(Result<()>) + Send + 'static) {
        let mut state = self.lock();
        match state.resolution {
            None => state.callbacks.push(Box::new(f)),
            Some(resolution) => {
                drop(state);
                f(resolution.result());
            }
        }
    }

    /// Gives the ticket its outcome, unless it has one. Returns how many callbacks panicked.
    pub(super) fn resolve(&self, resolution: Resolution) -> usize {
        let mut state = self.lock();
        if state.resolution.is_some() {
            return 0;
        }
        state.resolution = Some(resolution);
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.0.resolved.notify_all();
        callbacks
            .into_iter()
            .map(|callback| catch_unwind(AssertUnwindSafe(|| callback(resolution.result()))))
            .filter(std::result::Result::is_err)
            .count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn ticket() -> Ticket {
        Ticket::new(Duration::from_secs(5))
    }

    #[test]
    fn each_callback_is_called_once_before_or_after_the_settlement() {
        let (sender, results) = mpsc::channel();
        let ticket = ticket();
        let early = sender.clone();
        ticket.then(move |result| early.send(result.is_ok()).unwrap());
        assert!(results.try_recv().is_err());
        assert_eq!(ticket.resolve(Resolution::Committed), 0);
        assert_eq!(ticket.resolve(Resolution::Failed(Reason::Late)), 0);
        ticket.then(move |result| sender.send(result.is_ok()).unwrap());
        assert_eq!(results.iter().collect::<Vec<_>>(), [true, true]);
        assert!(ticket.wait(Instant::now()).is_ok());
    }

    #[test]
    fn a_callback_that_panics_takes_no_other_with_it() {
        let (sender, results) = mpsc::channel();
        let ticket = ticket();
        ticket.then(|_| panic!("a callback of this test"));
        ticket.then(move |result| sender.send(result.unwrap_err().code()).unwrap());
        assert_eq!(ticket.resolve(Resolution::Failed(Reason::Refused)), 1);
        assert_eq!(results.recv(), Ok(Code::AuditUnavailable));
    }

    #[test]
    fn a_wait_ends_with_its_deadline_or_the_settlement() {
        let ticket = ticket();
        let late = ticket.wait(Instant::now()).unwrap_err();
        assert_eq!(late.code(), Code::AuditUnavailable);
        assert!(late.message().contains("audit"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ticket.wait(Instant::now() + Duration::from_secs(10)));
            ticket.resolve(Resolution::Committed);
            waiting.join().unwrap().unwrap();
        });
    }
}
