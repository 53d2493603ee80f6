//! A job in a handler: its content, whether to continue, and how to end it in a transaction of the
//! handler's own.

use crate::batch::CancelToken;
use crate::protocol::{Became, ClaimedRow, EndedJob, Ending, end_jobs};
use crate::runner::{JobEnd, Later};
use crate::{Error, Result};
use postgres::GenericClient;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What was read with a claim for one of its jobs.
pub(crate) type Beside = Box<dyn Any + Send>;

/// A claimed job.
pub struct Claimed {
    row: ClaimedRow,
    token: CancelToken,
    stopping: Arc<AtomicBool>,
    beside: Mutex<Option<Beside>>,
    end: JobEnd,
    is_later: AtomicBool,
}

impl Claimed {
    pub(crate) fn new(
        row: ClaimedRow,
        token: CancelToken,
        stopping: Arc<AtomicBool>,
        beside: Option<Beside>,
        end: JobEnd,
    ) -> Self {
        Self {
            row,
            token,
            stopping,
            beside: Mutex::new(beside),
            end,
            is_later: AtomicBool::new(false),
        }
    }

    /// For a job whose end is written after its handler has returned. The returned value takes the
    /// outcome, once; what the handler returns is ignored. The thread is free for the next job, and
    /// the lease is kept until then.
    #[must_use]
    pub fn later(&self) -> Option<Later> {
        let is_first = !self.is_later.swap(true, Ordering::AcqRel);
        is_first.then(|| Later::new(self.end.clone()))
    }

    pub(crate) fn is_later(&self) -> bool {
        self.is_later.load(Ordering::Acquire)
    }

    /// What was read for this job with its claim ([`crate::Builder::read_beside`]); only the first
    /// call returns it.
    #[must_use]
    pub fn take_beside<T: Any>(&self) -> Option<T> {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = beside.take()?.downcast::<T>();
        taken.ok().map(|taken| *taken)
    }

    #[must_use]
    pub fn id(&self) -> i64 {
        self.row.id
    }

    /// The fence of this claim; a later claim of the same job has another.
    #[must_use]
    pub fn lease_id(&self) -> i64 {
        self.row.lease_id
    }

    /// Counted from 1; snoozes and hand-backs do not count.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.row.attempt
    }

    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.row.max_attempts
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.row.name
    }

    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.row.key.as_deref()
    }

    /// The key's cap when the job was claimed. A handler can change it with [`crate::set_cap`].
    #[must_use]
    pub fn key_cap(&self) -> Option<u32> {
        self.row.key_cap
    }

    /// JSON text.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.row.payload
    }

    /// See [`CancelToken::lost`].
    #[must_use]
    pub fn lost(&self) -> bool {
        self.token.lost()
    }

    /// See [`CancelToken::cancelled`].
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.token.cancelled()
    }

    /// The runner is stopping: finish soon, or return [`crate::Outcome::Snooze`] to go on elsewhere.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn token(&self) -> CancelToken {
        self.token.clone()
    }

    /// Completes the job in the handler's own transaction; after its commit return [`crate::Outcome::EndedByHandler`].
    ///
    /// # Errors
    /// [`Error::LeaseLost`] or [`Error::Cancelled`]: roll back. Otherwise the database's error.
    pub fn complete_in(&self, tx: &mut impl GenericClient) -> Result<()> {
        self.end_in(tx, Ending::Done)
    }

    /// Puts the job off in the handler's own transaction, without counting the attempt. After its
    /// commit return [`crate::Outcome::EndedByHandler`].
    ///
    /// # Errors
    /// As [`Claimed::complete_in`].
    pub fn snooze_in(&self, tx: &mut impl GenericClient, after: Duration) -> Result<()> {
        self.end_in(tx, Ending::Snooze { after })
    }

    fn end_in(&self, tx: &mut impl GenericClient, ending: Ending) -> Result<()> {
        let ended = EndedJob {
            id: self.row.id,
            lease_id: self.row.lease_id,
            ending,
        };
        match end_jobs(tx, &[ended])?.first() {
            None => Err(Error::LeaseLost),
            Some((_, Became::Cancelled)) => Err(Error::Cancelled),
            Some(_) => Ok(()),
        }
    }
}
