//! The job that makes one attempt at one delivery.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The job that makes one attempt.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deliver {
    pub(super) tenant_id: Uuid,
    pub(super) endpoint_id: Uuid,
    pub(super) delivery_id: Uuid,
}

impl jobs::Job for Deliver {
    const NAME: &'static str = "webhook.deliver";
    const QUEUE: &'static str = "webhooks";
    // Attempts are counted in the delivery; a job's own are faults of the service.
    const MAX_ATTEMPTS: u32 = 1_000_000;
}

impl Deliver {
    /// The job, under the endpoint's key.
    pub(super) fn queued(&self, cap: u32) -> Result<jobs::NewJob> {
        let job = jobs::NewJob::of(self).map_err(Error::internal)?;
        Ok(job.key(self.endpoint_id.to_string(), cap))
    }
}
