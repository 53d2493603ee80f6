//! A ticket stands for a decision that is being recorded: it is settled once, and nothing that the
//! decision allows may happen before it is.

use crate::error::{Code, Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// A decision on its way to the disk. Clones stand for the same one.
#[derive(Clone)]
pub struct Ticket(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    settled: Condvar,
    /// It is given up then.
    deadline: Instant,
}

#[derive(Default)]
struct State {
    settlement: Option<Settlement>,
    callbacks: Vec<Callback>,
}

/// What became of it. The first settlement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It is on disk.
    Committed,
    /// Nobody is to count on it.
    Failed(Reason),
}

/// Why a decision was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Too many wait already.
    QueueFull,
    /// The server is stopping.
    Stopping,
    /// It took too long.
    Late,
    /// The database takes decisions, but not this one.
    Refused,
    /// The database has no room on its disk.
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

impl Settlement {
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
            settled: Condvar::new(),
            deadline: Instant::now() + patience,
        }))
    }

    pub(super) fn deadline(&self) -> Instant {
        self.0.deadline
    }

    pub(super) fn is_settled(&self) -> bool {
        self.lock().settlement.is_some()
    }

    /// Waits until the decision is committed.
    ///
    /// # Errors
    /// `audit-unavailable`: it is not committed by the deadline, or never will be. Whatever it was
    /// to allow must not happen.
    pub fn wait(&self, deadline: Instant) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(settlement) = state.settlement {
                return settlement.result();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Reason::Late.error());
            }
            state = self
                .0
                .settled
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Calls `f` once the decision is committed or has failed: on the thread that writes it, where
    /// it must not block, or at once if that is known already.
    pub fn then(&self, f: impl FnOnce(Result<()>) + Send + 'static) {
        let mut state = self.lock();
        match state.settlement {
            None => state.callbacks.push(Box::new(f)),
            Some(settlement) => {
                drop(state);
                f(settlement.result());
            }
        }
    }

    /// Settles it, unless it is settled. Returns how many callbacks panicked.
    pub(super) fn settle(&self, settlement: Settlement) -> usize {
        let mut state = self.lock();
        if state.settlement.is_some() {
            return 0;
        }
        state.settlement = Some(settlement);
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.0.settled.notify_all();
        callbacks
            .into_iter()
            .map(|callback| catch_unwind(AssertUnwindSafe(|| callback(settlement.result()))))
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
        let (tell, told) = mpsc::channel();
        let ticket = ticket();
        let early = tell.clone();
        ticket.then(move |result| early.send(result.is_ok()).unwrap());
        assert!(told.try_recv().is_err());
        assert_eq!(ticket.settle(Settlement::Committed), 0);
        assert_eq!(ticket.settle(Settlement::Failed(Reason::Late)), 0);
        ticket.then(move |result| tell.send(result.is_ok()).unwrap());
        assert_eq!(told.iter().collect::<Vec<_>>(), [true, true]);
        assert!(ticket.wait(Instant::now()).is_ok());
    }

    #[test]
    fn a_callback_that_panics_takes_no_other_with_it() {
        let (tell, told) = mpsc::channel();
        let ticket = ticket();
        ticket.then(|_| panic!("a callback of this test"));
        ticket.then(move |result| tell.send(result.unwrap_err().code()).unwrap());
        assert_eq!(ticket.settle(Settlement::Failed(Reason::Refused)), 1);
        assert_eq!(told.recv(), Ok(Code::AuditUnavailable));
    }

    #[test]
    fn a_wait_ends_with_its_deadline_or_the_settlement() {
        let ticket = ticket();
        let late = ticket.wait(Instant::now()).unwrap_err();
        assert_eq!(late.code(), Code::AuditUnavailable);
        assert!(late.message().contains("audit"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ticket.wait(Instant::now() + Duration::from_secs(10)));
            ticket.settle(Settlement::Committed);
            waiting.join().unwrap().unwrap();
        });
    }
}
