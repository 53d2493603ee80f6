//! Writing what an attempt of a step came to, together with what follows from it: the next step's
//! row, a wait, or the run's end with its job.

use super::{JobEnd, Turn};
use crate::error::{Code, Result};
use crate::runtime::active_runs::Reason;
use crate::runtime::journal::{self, decision::Next};
use crate::runtime::progress::events::Event;
use crate::runtime::services::Services;
use crate::runtime::steps::{Outcome, Performed};
use crate::store::Tx;
use crate::store::runs::{self, End, StepCommit, Wait, WaitingFor};
use crate::store::steps::{Begun, Ended, StepStatus};
use jobs::Claimed;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// The wait before a write that the database did not answer is tried again, and its longest.
const WRITE_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WRITE_WAIT: Duration = Duration::from_secs(2);

/// How long a database that is away is waited for with an answer in hand.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

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
pub(super) fn ending(mut movement: StepCommit, end: End) -> StepCommit {
    movement.events.push(Event::ended(&end).row());
    movement.end = Some(end);
    movement
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
        let movement = StepCommit {
            call: performed.call,
            has_text: performed.has_text,
            ended: Some(ended(begun.step, StepStatus::Failed, None, begun.failures)),
            ..StepCommit::default()
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
                self.end(services, claimed, movement, end)
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
        mut movement: StepCommit,
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
            Next::End(end) => return self.end(services, claimed, movement, end),
            Next::Begin { begun, .. } => begun,
        };
        let stopping = claimed.stopping();
        let alone = movement.clone();
        if !stopping {
            self.announce(&mut movement, &next);
        }
        match self.persist(services, claimed, &movement, now)? {
            runs::Outcome::Written => {}
            runs::Outcome::CancelAsked => {
                return self.end(services, claimed, alone, End::Cancelled);
            }
            _ => return Ok(self.lost(services)),
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
        mut movement: StepCommit,
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
        let Some(retry_at) = retry_at else {
            let times = if failures > 1 {
                format!(" It was tried {failures} times.")
            } else {
                String::new()
            };
            let end = failed(format!("{reason}{times}"));
            return self.end(services, claimed, movement, end);
        };
        let alone = movement.clone();
        let waiting = Event::RunWaiting {
            reason,
            retry_at,
            step: begun.step,
            attempt: begun.attempt,
        };
        movement.events.push(waiting.row());
        movement.wait = Some(Wait {
            until: retry_at,
            on: WaitingFor::Retry,
        });
        match self.persist(services, claimed, &movement, now)? {
            runs::Outcome::Written => {}
            runs::Outcome::CancelAsked => {
                return self.end(services, claimed, alone, End::Cancelled);
            }
            _ => return Ok(self.lost(services)),
        }
        services
            .feed
            .events(self.run.run_id, self.wrote(&movement, now));
        Ok(Committed::Done(JobEnd::Committed))
    }

    /// Writes the last commit with the run's end and its job. A run that was asked to cancel ends so, whatever `end` says.
    fn end(
        &mut self,
        services: &Services,
        claimed: &Claimed,
        movement: StepCommit,
        end: End,
    ) -> Result<Committed> {
        let now = services.clock.now();
        let asked = ending(movement.clone(), end);
        match self.persist(services, claimed, &asked, now)? {
            runs::Outcome::Written if asked.end != Some(End::Cancelled) => {
                let events = self.wrote(&asked, now);
                services.feed.events(self.run.run_id, events);
                return Ok(Committed::Done(JobEnd::Committed));
            }
            runs::Outcome::Written => {}
            runs::Outcome::CancelAsked => {
                let cancelled = ending(movement, End::Cancelled);
                let outcome = self.persist(services, claimed, &cancelled, now)?;
                if outcome != runs::Outcome::Written {
                    return Ok(self.lost(services));
                }
            }
            _ => return Ok(self.lost(services)),
        }
        // The event of the cancel stands among the others, nobody here knows where.
        services.feed.changed(self.run.run_id);
        Ok(Committed::Done(JobEnd::Committed))
    }

    fn lost(&self, services: &Services) -> Committed {
        services.feed.changed(self.run.run_id);
        Committed::Done(JobEnd::Lost)
    }

    /// Writes a commit, again and again while the database is away, so that its absence costs no finished step. It
    /// goes on when the job's lease should have run out by then: as long as nobody has taken the run over the write is
    /// good, and afterwards the fence refuses it. An earlier try whose answer was lost counts as written.
    fn persist(
        &self,
        services: &Services,
        claimed: &Claimed,
        commit: &StepCommit,
        now: OffsetDateTime,
    ) -> Result<runs::Outcome> {
        let announce = |tx: &mut Tx<'_>| {
            let webhooks = &services.webhooks;
            webhooks.run_finished(tx, self.run.tenant_id, self.run.run_id)
        };
        let announce: &dyn Fn(&mut Tx<'_>) -> Result<()> = &announce;
        let announce = services.webhooks.is_on().then_some(announce);
        let gives_up_at = Instant::now() + LONGEST_ABSENCE;
        let mut wait = WRITE_WAIT;
        loop {
            match runs::commit(&services.store, &self.held, commit, now, announce) {
                Err(error)
                    if error.code() == Code::DatabaseUnavailable
                        && !claimed.lost()
                        && Instant::now() < gives_up_at =>
                {
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(LONGEST_WRITE_WAIT);
                }
                outcome => return outcome,
            }
        }
    }
}
