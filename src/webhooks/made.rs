//! An attempt that is over, and the job that waits for its end to be written.

use super::job::Deliver;
use super::options::Options;
use crate::error::{Code, Error};
use crate::store::webhook_attempts::{AttemptOutcome, Ended, Finished};
use jobs::{Claimed, Outcome};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Which attempt of its delivery, and when it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) number: i32,
    pub(super) at: Instant,
}

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) job: Deliver,
    pub(super) job_id: i64,
    pub(super) lease_id: i64,
    pub(super) key_cap: Option<u32>,
    pub(super) begun: Begun,
    pub(super) ended: Ended,
    /// How long a wait the receiver asks for.
    pub(super) asked: Option<Duration>,
}

/// The job that waits for its attempt's end to be written.
pub(super) struct Waiter {
    pub(super) token: jobs::CancelToken,
    pub(super) later: Option<jobs::Later>,
    pub(super) log: slog::Logger,
}

impl Waiter {
    pub(super) fn ended(self, outcome: Outcome) {
        if let Some(later) = self.later {
            later.ended(outcome);
        }
    }

    pub(super) fn failed(self, error: &Error) {
        slog::warn!(self.log, "A delivery could not be worked on; it will be tried again"; crate::log::ErrorValue(error));
        self.ended(Outcome::retry(error.to_string()));
    }
}

impl Made {
    pub(super) fn of(
        claimed: &Claimed,
        job: &Deliver,
        begun: Begun,
        ended: Ended,
        asked: Option<Duration>,
    ) -> Self {
        Self {
            job: *job,
            job_id: claimed.id(),
            lease_id: claimed.lease_id(),
            key_cap: claimed.key_cap(),
            begun,
            ended,
            asked,
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.ended.reason.is_some()
    }

    pub(super) fn reason(&self) -> Option<&'static str> {
        self.ended.reason
    }

    pub(super) fn status(&self) -> Option<i16> {
        self.ended.status
    }

    /// Whose, and which.
    pub(super) fn endpoint(&self) -> (Uuid, Uuid) {
        (self.job.tenant_id, self.job.endpoint_id)
    }

    /// The cap of the endpoint's key, where it is not what it is to be: whoever emits may have said
    /// another, from what the endpoint was long before it committed.
    pub(super) fn new_cap(&self, options: &Options) -> Option<u32> {
        let cap = options.cap(!self.failed() && !self.ended.is_slow);
        (self.key_cap != Some(cap)).then_some(cap)
    }

    pub(super) fn finished(&self, outcome: AttemptOutcome) -> Finished<'_> {
        Finished {
            tenant_id: self.job.tenant_id,
            endpoint_id: self.job.endpoint_id,
            delivery_id: self.job.delivery_id,
            number: self.begun.number,
            job_id: self.job_id,
            lease_id: self.lease_id,
            begun_ago: self.begun.at.elapsed(),
            ended: &self.ended,
            outcome,
        }
    }
}

/// The job is no longer this claim's, and nothing of the attempt was written.
pub(super) fn anothers() -> Error {
    Error::new(Code::Conflict, "The delivery's job is another's now.")
}
