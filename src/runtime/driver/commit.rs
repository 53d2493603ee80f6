//! Writing what an attempt of a step came to, together with what follows from it: the next step's
//! row, a wait, or the run's end with its job.

use super::{JobEnd, Turn};
use crate::error::{Code, Error, Result};
use crate::runtime::active_runs::Reason;
use crate::runtime::journal::{self, decision::Next};
use crate::runtime::progress::events::Event;
use crate::runtime::services::Services;
use crate::runtime::steps::{Outcome, Performed};
use crate::store::runs::{self, End, HeldJob, Lease, Movement};
use crate::store::steps::{self, Begun, Ended, StepStatus};
use crate::store::{Tx, queue_error};
use jobs::Claimed;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// The wait before a write that the database did not answer is tried again, and its longest.
const WRITE_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WRITE_WAIT: Duration = Duration::from_secs(2);

/// How long a database that is away is waited for with an answer in hand.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// What became of a write that is repeated until the database answers.
#[derive(PartialEq, Eq)]
enum Kept {
    /// It is written, by this try or an earlier one whose answer was lost.
    Yes,
    /// The fence refused it.
    No,
}

/// What settling a step came to.
pub(super) enum Committed {
    /// The next step's row is written.
    Next(Begun),
    /// The turn is left.
    Done(JobEnd),
}

/// A step that ended.
pub(super) fn ended(
    step: i32,
    status: StepStatus,
    result: Option<serde_json::Value>,
    failures: i32,
) -> Ended {
    Ended {
        step,
        status,
        result,
        failures,
    }
}

/// An end with a sentence that says why.
pub(super) fn failed(failure_message: impl Into<String>) -> End {
    End::Failed {
        failure_message: failure_message.into(),
    }
}

/// A movement that ends the run as well, with the event that says so.
pub(super) fn ending(mut movement: Movement, end: End) -> Movement {
    movement.events.push(Event::ended(&end).row());
    movement.end = Some(end);
    movement
}

/// Writes the movement that ends a held run, tells of it, and completes its job. False when it was not
/// written: see [`runs::write`].
pub(super) fn finish(
    tx: &mut Tx<'_>,
    services: &Services,
    claimed: &Claimed,
    (lease, told): (&Lease, i64),
    movement: &Movement,
    now: OffsetDateTime,
) -> Result<bool> {
    if !runs::write(tx, lease, told, movement, now)? {
        return Ok(false);
    }
    claimed.complete_in(tx.raw()).map_err(job_error)?;
    // Last, since the endpoint's row may be held from here to the commit.
    let webhooks = &services.webhooks;
    webhooks.run_finished(tx, lease.tenant_id(), lease.run_id())?;
    Ok(true)
}

/// As [`finish`], by itself: in one statement where no webhook may be due.
fn finish_alone(
    services: &Services,
    claimed: &Claimed,
    held: (&Lease, i64),
    movement: &Movement,
    now: OffsetDateTime,
) -> Result<bool> {
    let job = HeldJob {
        job_id: claimed.id(),
        lease_id: claimed.lease_id(),
    };
    let mut session = services.store.session()?;
    let is_told = services.webhooks.is_on();
    match runs::end(&mut session, held, movement, now, job, is_told)? {
        Some(written) => Ok(written),
        None => session.transact(|tx| finish(tx, services, claimed, held, movement, now)),
    }
}

/// The queue's error as ours. A job that is no longer this claim's rolls the transaction back.
fn job_error(error: jobs::Error) -> Error {
    match error {
        jobs::Error::LeaseLost | jobs::Error::Cancelled => runs::job_lost().because(error),
        other => queue_error(other),
    }
}

impl Turn {
    /// Writes what an attempt came to, and the row of what follows.
    pub(super) fn commit(
        &mut self,
        services: &Services,
        claimed: &Claimed,
        begun: &Begun,
        performed: Performed,
        reason: Option<Reason>,
    ) -> Result<Committed> {
        let movement = Movement {
            call: performed.call,
            has_text: performed.has_text,
            ended: Some(ended(begun.step, StepStatus::Failed, None, begun.failures)),
            ..Movement::default()
        };
        let committed = match performed.outcome {
            Outcome::Done { result, answer } => {
                let step = self.step_ref(begun);
                let event = Event::StepCompleted { step, answer };
                self.done(services, claimed, begun, result, &event, movement)
            }
            Outcome::Failed {
                reason,
                retryable,
                retry_after,
            } => {
                let wait = retryable.then(|| services.options.wait(begun, retry_after));
                self.step_failed(services, claimed, begun, reason, wait.flatten(), movement)
            }
            Outcome::Interrupted => {
                let end = match reason {
                    Some(Reason::TimedOut) => self.out_of_time(),
                    _ => End::Cancelled,
                };
                self.end(services, claimed, begun, movement, end)
            }
        };
        if committed.is_err() {
            // It may have been written all the same.
            services.feed.changed(self.run.run_id);
        }
        committed
    }

    fn done(
        &mut self,
        services: &Services,
        claimed: &Claimed,
        begun: &Begun,
        result: serde_json::Value,
        event: &Event,
        mut movement: Movement,
    ) -> Result<Committed> {
        let now = services.clock.now();
        if let Some(last) = self.journal.last_mut() {
            last.status = StepStatus::Completed;
            last.result = Some(result.clone());
        }
        self.held_bytes += journal::bytes(&result);
        movement.ended = Some(ended(
            begun.step,
            StepStatus::Completed,
            Some(result),
            begun.failures,
        ));
        movement.events.push(event.row());
        let next = match self.decide() {
            Next::End(end) => return self.end(services, claimed, begun, movement, end),
            Next::Begin { begun, .. } => begun,
        };
        let stopping = claimed.stopping();
        let alone = movement.clone();
        if !stopping {
            self.announce(&mut movement, &next);
        }
        let kept = self.persist(services, claimed, begun, || {
            let mut session = services.store.session()?;
            let written = runs::write(&mut session, &self.lease, self.told, &movement, now)?;
            Ok(if written { Kept::Yes } else { Kept::No })
        })?;
        if kept == Kept::No {
            return self.end(services, claimed, begun, alone, End::Cancelled);
        }
        services
            .feed
            .events(self.run.run_id, self.wrote(&movement, now));
        if stopping {
            return Ok(Committed::Done(JobEnd::Stopping));
        }
        self.begin(&next, now);
        Ok(Committed::Next(next))
    }

    /// Waits for another attempt, or ends the run.
    fn step_failed(
        &mut self,
        services: &Services,
        claimed: &Claimed,
        begun: &Begun,
        reason: String,
        wait: Option<Duration>,
        mut movement: Movement,
    ) -> Result<Committed> {
        let now = services.clock.now();
        let failures = begun.failures + 1;
        let retry_at = wait
            .filter(|wait| *wait < self.time_left())
            .map(|wait| now + wait);
        movement.ended = Some(ended(begun.step, StepStatus::Failed, None, failures));
        let failed_event = Event::StepFailed {
            step: self.step_ref(begun),
            reason: reason.clone(),
            will_retry: retry_at.is_some(),
        };
        movement.events.push(failed_event.row());
        let (Some(wait), Some(retry_at)) = (wait, retry_at) else {
            let times = if failures > 1 {
                format!(" It was tried {failures} times.")
            } else {
                String::new()
            };
            return self.end(
                services,
                claimed,
                begun,
                movement,
                failed(format!("{reason}{times}")),
            );
        };
        let alone = movement.clone();
        let waiting = Event::RunWaiting {
            reason,
            retry_at,
            step: begun.step,
            attempt: begun.attempt,
        };
        movement.events.push(waiting.row());
        movement.waiting = true;
        let kept = self.persist(services, claimed, begun, || {
            services.store.transact(|tx| {
                if !runs::write(tx, &self.lease, self.told, &movement, now)? {
                    return Ok(Kept::No);
                }
                claimed.snooze_in(tx.raw(), wait).map_err(job_error)?;
                Ok(Kept::Yes)
            })
        })?;
        if kept == Kept::No {
            return self.end(services, claimed, begun, alone, End::Cancelled);
        }
        services
            .feed
            .events(self.run.run_id, self.wrote(&movement, now));
        Ok(Committed::Done(JobEnd::Committed))
    }

    /// Writes the last movement and the run's end in one transaction, with the job. A run that was
    /// asked to cancel ends so, whatever `end` says.
    fn end(
        &mut self,
        services: &Services,
        claimed: &Claimed,
        begun: &Begun,
        movement: Movement,
        end: End,
    ) -> Result<Committed> {
        let now = services.clock.now();
        let asked = ending(movement.clone(), end);
        let cancelled = ending(movement, End::Cancelled);
        let mut as_asked = false;
        let kept = self.persist(services, claimed, begun, || {
            let held = (&self.lease, self.told);
            as_asked = finish_alone(services, claimed, held, &asked, now)?;
            let written = as_asked || finish_alone(services, claimed, held, &cancelled, now)?;
            Ok(if written { Kept::Yes } else { Kept::No })
        })?;
        match &asked.end {
            // The event of the cancel stands among the others, nobody here knows where.
            Some(End::Cancelled) => services.feed.changed(self.run.run_id),
            _ if as_asked => services
                .feed
                .events(self.run.run_id, self.wrote(&asked, now)),
            _ => services.feed.changed(self.run.run_id),
        }
        Ok(Committed::Done(match kept {
            Kept::Yes => JobEnd::Committed,
            Kept::No => JobEnd::Lost,
        }))
    }

    /// Makes a write about the attempt `begun`, again and again while the database is away, so that
    /// its absence costs no finished step. It goes on when the job's lease should have run out by
    /// then: as long as nobody has taken the run over the write is good, and afterwards the fence
    /// refuses it.
    fn persist(
        &self,
        services: &Services,
        claimed: &Claimed,
        begun: &Begun,
        mut write: impl FnMut() -> Result<Kept>,
    ) -> Result<Kept> {
        let gives_up_at = Instant::now() + LONGEST_ABSENCE;
        let mut wait = WRITE_WAIT;
        let mut kept = write();
        while matches!(&kept, Err(error) if error.code() == Code::DatabaseUnavailable)
            && !claimed.lost()
            && Instant::now() < gives_up_at
        {
            std::thread::sleep(wait);
            wait = (wait * 2).min(LONGEST_WRITE_WAIT);
            kept = self.repeat(services, begun, &mut write);
        }
        kept
    }

    /// Makes a write again whose earlier try got no answer. That may have been committed since, or
    /// be under way even now.
    fn repeat(
        &self,
        services: &Services,
        begun: &Begun,
        write: &mut impl FnMut() -> Result<Kept>,
    ) -> Result<Kept> {
        let is_settled = || {
            let mut session = services.store.session()?;
            steps::is_settled(&mut session, &self.lease, begun.step, begun.attempt)
        };
        if is_settled()? || write()? == Kept::Yes || is_settled()? {
            return Ok(Kept::Yes);
        }
        Ok(Kept::No)
    }
}
