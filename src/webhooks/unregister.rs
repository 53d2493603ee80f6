//! Unregisters an endpoint: nothing is sent to it once [`Webhooks::unregister`] has returned.

use super::reason::Reason;
use super::{Inner, Webhooks};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May};
use crate::store::webhook_attempts as attempts;
use crate::store::webhook_deliveries::{self as rows, ToFail};
use crate::store::webhook_endpoints::Ending;
use crate::store::{Tx, queue_error};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Deliveries that one transaction fails.
const BATCH: u8 = 200;
/// How long attempts in flight are waited for: within a request's deadline, and longer than an attempt
/// takes that reads its secret at once, with the time that is set if nothing else is.
const PATIENCE: Duration = Duration::from_secs(12);
/// How often attempts of other processes are looked for.
const POLL: Duration = Duration::from_millis(100);

impl Webhooks {
    /// Unregisters an endpoint: fails what waits, and answers once no attempt is in flight any more. For
    /// one that is unregistered already, that is waited for.
    /// `before_commit` comes last: nothing is changed where it fails.
    ///
    /// # Errors
    /// `conflict` when an attempt does not end in time: the endpoint is unregistered all the same, and no
    /// attempt begins any more. Those of `before_commit`.
    pub fn unregister(
        &self,
        may: &impl May<Admin, Ending>,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let inner = &self.0;
        let (tenant_id, endpoint_id) = (may.tenant_id(), may.object_id());
        let deadline = Instant::now() + PATIENCE;
        inner.store.transact(|tx| {
            rows::unregister(tx, may, inner.clock.now())?;
            before_commit()
        })?;
        inner.fail_all(tenant_id, endpoint_id, deadline)?;
        loop {
            let turn = inner.ended.turn();
            let left = attempts::in_flight(&mut inner.store.session()?, endpoint_id)?;
            if left.is_zero() {
                break;
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    Code::Conflict,
                    format!(
                        "The endpoint is unregistered, but an attempt that had begun before has not ended yet. It does so within {} s; nothing else goes out. Repeat the request to be told when it has.",
                        left.as_secs() + 1
                    ),
                ));
            }
            inner.ended.wait(turn, POLL);
        }
        // What was in flight may have failed, and would have been tried again.
        inner.fail_all(tenant_id, endpoint_id, deadline)?;
        Ok(())
    }
}

impl Inner {
    /// Fails what waits for an unregistered endpoint, as far as there is time, and says whether that was
    /// all but what others have at this moment: the workers and the maintenance fail the rest.
    pub(super) fn fail_all(
        &self,
        tenant_id: Uuid,
        endpoint_id: Uuid,
        deadline: Instant,
    ) -> Result<bool> {
        let to_fail = ToFail {
            endpoint_id,
            delivery_id: None,
            limit: i64::from(BATCH),
        };
        while Instant::now() < deadline {
            let failed = self
                .store
                .transact(|tx| self.fail_waiting(tx, tenant_id, to_fail))?;
            self.counts.unregistered(failed);
            // Fewer than a batch are no sign of the end: what others have at this moment is left out.
            if failed == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fails deliveries of an unregistered endpoint, and removes their jobs; how many.
    pub(super) fn fail_waiting(
        &self,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        to_fail: ToFail,
    ) -> Result<usize> {
        let reason = Reason::EndpointUnregistered.text();
        let lost = Reason::ConnectionFailed.text();
        let failed = rows::fail_waiting(tx, tenant_id, to_fail, reason, lost)?;
        if to_fail.delivery_id.is_none() {
            for job_id in failed.iter().flatten() {
                jobs::cancel(tx.raw(), *job_id).map_err(queue_error)?;
            }
        }
        Ok(failed.len())
    }
}
