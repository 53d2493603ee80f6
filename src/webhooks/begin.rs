//! Begins the attempts of jobs that were just claimed: one statement for a whole claim, after the
//! claim has committed.
//!
//! From the claim on, the job's lease says that the receiver may get the delivery. The commit of
//! this statement comes before every POST, and brings the claim to disk.
//!
//! Some attempts cannot begin with the others: the delivery is over, an earlier claim was lost, the
//! endpoint is being changed, or the database does not answer. Such a job reaches the worker
//! without an attempt, and the worker handles it (`deliver`).

use super::{Deliver, Inner};
use crate::error::Result;
use crate::store::webhook_attempts::{self as rows, Begun, Wanted};
use jobs::protocol::ClaimedRow;
use std::any::Any;
use std::collections::HashMap;
use std::time::Instant;

/// An attempt that may be made, on its way to a thread.
pub(super) struct Ready {
    pub(super) begun: Begun,
    /// Before its job was claimed, or its lease extended.
    pub(super) since: Instant,
    /// When what it begins with had been read.
    pub(super) read_at: Instant,
}

impl Ready {
    pub(super) fn new(begun: Begun, since: Instant) -> Self {
        Self {
            begun,
            since,
            read_at: Instant::now(),
        }
    }
}

/// Begins the attempts of jobs that were claimed since then.
pub(super) fn begin_all(
    inner: &Inner,
    claimed: &[ClaimedRow],
    since: Instant,
) -> Vec<Option<Box<dyn Any + Send>>> {
    let wanted = claimed.iter().filter_map(wanted).collect();
    let mut begun = begin(inner, wanted).unwrap_or_else(|error| {
        crate::warn_unless!(inner.store.is_away(), inner.log, "Attempts could not begin together; each is tried alone"; crate::log::ErrorValue(&error));
        HashMap::new()
    });
    let ready = claimed.iter().map(|row| {
        let begun = begun.remove(&row.id)?;
        Some(Box::new(Ready::new(begun, since)) as Box<dyn Any + Send>)
    });
    ready.collect()
}

fn begin(inner: &Inner, wanted: Vec<Wanted>) -> Result<HashMap<i64, Begun>> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    rows::begin_all(&mut inner.store.session()?, wanted, inner.clock.now())
}

/// Not where an earlier claim was lost, nor of a job that says nothing of a delivery.
fn wanted(row: &ClaimedRow) -> Option<Wanted> {
    let is_first = row.attempt == 1 && row.name == <Deliver as jobs::Job>::NAME;
    let job: Deliver = serde_json::from_str(&row.payload)
        .ok()
        .filter(|_| is_first)?;
    Some(Wanted {
        tenant_id: job.tenant_id,
        endpoint_id: job.endpoint_id,
        delivery_id: job.delivery_id,
        job_id: row.id,
        lease_id: row.lease_id,
    })
}
