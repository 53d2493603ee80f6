//! Writes events and their deliveries, each with its job, in the transaction of what they report. The commit wakes the
//! claimer of the queue.

use super::event::{Approval, Event, RunFields};
use super::job::Deliver;
use super::{Inner, Webhooks};
use crate::error::{Code, Error, Result};
use crate::store::approvals;
use crate::store::runs::{self, Origin};
use crate::store::webhook_deliveries::{self as rows, NewDelivery, NewEvent};
use crate::store::{Find, Tx, queue_error};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use time::OffsetDateTime;
use uuid::Uuid;

/// How far the time of an event's own id may be off.
const OFF_MOST: time::Duration = time::Duration::days(1);
const TEST_MESSAGE: &str = "This is a test. Nothing has happened.";

impl Webhooks {
    /// Writes the event, and a delivery to every endpoint of the tenant that matches it (specification section 6.3), in the
    /// caller's transaction. Where none matches, nothing is written.
    ///
    /// # Errors
    /// The database's. `internal`: the event has an id of its own that was not made of late.
    pub fn emit(&self, tx: &mut Tx<'_>, tenant_id: Uuid, event: &Event) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        self.0.emit(tx, tenant_id, event).map(drop)
    }

    /// Emits `run.finished` for a run that has just ended in this transaction, if an app or the command
    /// line started it (section 6.1, rule 5).
    pub fn run_finished(&self, tx: &mut Tx<'_>, tenant_id: Uuid, run_id: Uuid) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let run = runs::Run::find(tx, tenant_id, run_id)?;
        let Some(run) = run.filter(|run| run.origin != Origin::Run) else {
            return Ok(());
        };
        let has_failed = run.failure_message.is_some();
        let run = Box::new(RunFields::summary(run));
        let emitted = self.0.emit(tx, tenant_id, &Event::RunFinished { run })?;
        // Its body says why the run failed, so it is found where the run is erased.
        if let Some(event_id) = emitted.filter(|_| has_failed) {
            runs::note_webhook_event(tx, tenant_id, run_id, event_id)?;
        }
        Ok(())
    }

    /// Emits `approval.requested` for an approval that this transaction has opened (section 6.3). It says nothing of what
    /// the approval is about.
    pub fn approval_requested(
        &self,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        approval_id: Uuid,
    ) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let opened = approvals::opened(tx, tenant_id, approval_id)?;
        let approval = Approval {
            approval_id,
            project_id: opened.project_id,
            required_role: opened.required_role,
            title: opened.title,
            assigned_to: opened.assigned_to,
            created_at: opened.created_at.into(),
            expires_at: opened.expires_at.into(),
            url: self
                .0
                .options
                .console
                .as_ref()
                .map(|console| format!("{console}approvals/{approval_id}")),
        };
        self.emit(tx, tenant_id, &Event::ApprovalRequested { approval })
    }

    /// Queues a test for an endpoint; its delivery's id.
    ///
    /// # Errors
    /// `not-found` when it is not registered.
    pub fn test(&self, tx: &mut Tx<'_>, tenant_id: Uuid, endpoint_id: Uuid) -> Result<Uuid> {
        let endpoint = rows::registered(tx, tenant_id, endpoint_id)?
            .ok_or_else(|| Error::not_found("webhook endpoint", endpoint_id))?;
        let event = Event::Test {
            endpoint_id,
            message: TEST_MESSAGE.to_owned(),
        };
        let deliveries = self.0.write(tx, tenant_id, &event, &[endpoint])?;
        deliveries
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a test was not written"))
    }

    /// Queues a new delivery of the same event; its id.
    ///
    /// # Errors
    /// `not-found` when the endpoint has no such delivery; `conflict` when its event was dropped.
    pub fn resend(
        &self,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        endpoint_id: Uuid,
        delivery_id: Uuid,
    ) -> Result<Uuid> {
        let unknown = || Error::not_found("webhook delivery", delivery_id);
        let endpoint = rows::registered(tx, tenant_id, endpoint_id)?.ok_or_else(unknown)?;
        let has_event =
            rows::lock_for_resend(tx, tenant_id, endpoint_id, delivery_id)?.ok_or_else(unknown)?;
        if !has_event {
            return Err(Error::new(
                Code::Conflict,
                "The delivery's event is no longer kept, so it cannot be sent again.",
            ));
        }
        let again = self.0.again(tx, tenant_id, endpoint, &[delivery_id])?;
        again
            .first()
            .copied()
            .ok_or_else(|| Error::internal("a delivery was not written"))
    }

    /// Queues new deliveries of what failed for good since a time, oldest first and at most `most`; how
    /// many, and whether there are more. What is being sent again already, or was, is left out, so that
    /// the same call again goes on where this one ended.
    ///
    /// # Errors
    /// `not-found` when the endpoint is not registered.
    pub fn resend_failed(
        &self,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        endpoint_id: Uuid,
        since: OffsetDateTime,
        most: u32,
    ) -> Result<(u64, bool)> {
        let endpoint = rows::registered(tx, tenant_id, endpoint_id)?
            .ok_or_else(|| Error::not_found("webhook endpoint", endpoint_id))?;
        let limit = i64::from(most) + 1;
        let mut failed = rows::failed_since(tx, tenant_id, endpoint_id, since, limit)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let more = failed.len() > most;
        failed.truncate(most);
        let again = self.0.again(tx, tenant_id, endpoint, &failed)?;
        Ok((u64::try_from(again.len()).unwrap_or(u64::MAX), more))
    }
}

impl Inner {
    /// Writes the event for every endpoint that matches; its id, if any does.
    fn emit(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        event: &Event,
    ) -> Result<Option<Uuid>> {
        let now = self.clock.now();
        let facts = event.facts();
        let about = rows::About {
            project_id: facts.project_id,
            flow_id: facts.flow_id,
            dry_run: facts.dry_run,
        };
        // How many match is not known before; most often it is as many as of late.
        let mut room = match self.event_id(event, now) {
            Ok(_) => self.matched.load(Ordering::Relaxed),
            Err(_) => 0,
        };
        loop {
            // Without room it is only asked how many match.
            let (event_id, body) = match room {
                0 => (Uuid::nil(), String::new()),
                _ => {
                    let event_id = self.event_id(event, now)?;
                    (event_id, event.body(event_id, now)?)
                }
            };
            let new = NewEvent {
                event_id,
                kind: event.kind(),
                body: &body,
                run_id: facts.run_id,
                created_at: now,
            };
            let delivery_ids: Vec<Uuid> = (0..room).map(|_| self.clock.new_id()).collect();
            let matched = rows::emit::<Deliver>(
                tx,
                tenant_id,
                &new,
                about,
                &delivery_ids,
                self.options.cap(true),
            )?;
            if matched <= room {
                self.matched
                    .store(matched.max(room.saturating_sub(1)), Ordering::Relaxed);
                self.queued(tx, matched);
                return Ok((matched > 0).then_some(event_id));
            }
            room = matched;
        }
    }

    /// So many deliveries wait for a claim, once they have committed.
    fn queued(self: &Arc<Self>, tx: &mut Tx<'_>, count: usize) {
        if count == 0 {
            return;
        }
        let inner = Arc::clone(self);
        tx.after_commit(move || {
            inner.counts.queued(count);
            if let Some(queue) = inner.queue.get() {
                queue.wake(<Deliver as jobs::Job>::QUEUE);
            }
        });
    }

    fn event_id(&self, event: &Event, now: OffsetDateTime) -> Result<Uuid> {
        match event.own_id() {
            Some(own) => recent(own, now),
            None => Ok(self.clock.new_id()),
        }
    }

    /// The deliveries' ids, in the order of the endpoints.
    fn write(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        event: &Event,
        endpoints: &[rows::Registered],
    ) -> Result<Vec<Uuid>> {
        if endpoints.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let event_id = self.event_id(event, now)?;
        let deliveries = self.enqueue(tx, tenant_id, endpoints.iter().copied())?;
        let body = event.body(event_id, now)?;
        let new = NewEvent {
            event_id,
            kind: event.kind(),
            body: &body,
            run_id: event.facts().run_id,
            created_at: now,
        };
        rows::insert(tx, tenant_id, &new, &deliveries)?;
        self.queued(tx, deliveries.len());
        Ok(deliveries.iter().map(|one| one.delivery_id).collect())
    }

    /// New deliveries of the events of old ones, all of one endpoint; their ids.
    fn again(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        endpoint: rows::Registered,
        old: &[Uuid],
    ) -> Result<Vec<Uuid>> {
        if old.is_empty() {
            return Ok(Vec::new());
        }
        let endpoints = std::iter::repeat_n(endpoint, old.len());
        let deliveries = self.enqueue(tx, tenant_id, endpoints)?;
        rows::resend(tx, tenant_id, old, &deliveries, self.clock.now())?;
        self.queued(tx, deliveries.len());
        Ok(deliveries.iter().map(|one| one.delivery_id).collect())
    }

    /// A job for a delivery to each of the endpoints.
    fn enqueue(
        &self,
        tx: &mut Tx<'_>,
        tenant_id: Uuid,
        endpoints: impl Iterator<Item = rows::Registered>,
    ) -> Result<Vec<NewDelivery>> {
        let mut deliveries = Vec::new();
        let mut jobs = Vec::new();
        for endpoint in endpoints {
            let job = Deliver {
                tenant_id,
                endpoint_id: endpoint.endpoint_id,
                delivery_id: self.clock.new_id(),
            };
            jobs.push(job.queued(self.options.cap(endpoint.is_well))?);
            deliveries.push(NewDelivery {
                delivery_id: job.delivery_id,
                endpoint_id: job.endpoint_id,
                job_id: 0,
            });
        }
        let enqueued = jobs::enqueue_many(tx.raw(), &jobs).map_err(queue_error)?;
        for (delivery, enqueued) in deliveries.iter_mut().zip(enqueued) {
            delivery.job_id = enqueued.id;
        }
        Ok(deliveries)
    }
}

/// The id, if it lies in a month that there are partitions for and that is not soon dropped.
fn recent(own: Uuid, now: OffsetDateTime) -> Result<Uuid> {
    let made = own.get_timestamp().filter(|_| own.get_version_num() == 7);
    let made = made.and_then(|made| i64::try_from(made.to_unix().0).ok());
    let off = made.map(|seconds| (seconds - now.unix_timestamp()).unsigned_abs());
    if off.is_none_or(|off| off > OFF_MOST.unsigned_abs().as_secs()) {
        return Err(Error::internal(
            "an event's own id says in which month it is kept, so it is a UUIDv7 that is made where the event is emitted",
        ));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Clock;

    #[test]
    fn an_event_s_own_id_was_made_of_late() {
        let clock = Clock::system();
        let (id, now) = (clock.new_id(), clock.now());
        assert_eq!(recent(id, now).unwrap(), id);
        assert!(recent(id, now + OFF_MOST - time::Duration::minutes(1)).is_ok());
        for off in [-2, 2] {
            assert!(recent(id, now + off * OFF_MOST).is_err());
        }
        assert!(recent(Uuid::from_u128(7), now).is_err());
        assert!(recent(Uuid::max(), now).is_err());
    }
}
