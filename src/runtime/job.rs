//! The job that carries a run on.

use crate::error::{Error, Result};
use crate::store::runs::{ChildJob, NewJob};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Carries one run on, to its end or its next wait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Advance {
    pub(super) tenant_id: Uuid,
    pub(super) run_id: Uuid,
}

impl jobs::Job for Advance {
    const NAME: &'static str = "run.advance";
    const QUEUE: &'static str = QUEUE;
    // The run itself is ended long before, with a message: see `driver`.
    const MAX_ATTEMPTS: u32 = 1_000_000;
}

/// The queue of runs.
pub(super) const QUEUE: &str = "runs";

impl Advance {
    /// The job's payload.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn payload(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }

    /// The job of a run that is created.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn new_job(&self) -> Result<NewJob> {
        let job = CHILD_JOB;
        Ok(NewJob {
            queue: job.queue,
            name: job.name,
            payload: self.payload()?,
            max_attempts: job.max_attempts,
        })
    }
}

/// The job of a child run, but for its payload.
pub(super) const CHILD_JOB: ChildJob = ChildJob {
    queue: QUEUE,
    name: <Advance as jobs::Job>::NAME,
    max_attempts: <Advance as jobs::Job>::MAX_ATTEMPTS as i32,
};
