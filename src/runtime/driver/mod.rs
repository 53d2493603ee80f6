//! Carrying an agent's turn on: one job, from wherever the journal stands to its end or its next wait.
//!
//! Taking a run up, and the row of its next step, are one transaction; so are what a step answered
//! and the row of the step after it; so are the last answer and the run's end, with the job. A step
//! therefore costs one commit, and in the common case one statement. Every write is fenced by the claim: one that meets another's claim
//! changes nothing, and the turn stops there without a word.

mod commit;

use super::Advance;
use super::active_runs::{ActiveRun, Reason};
use super::journal::{self, decision::Next};
use super::progress::events::{Event, StepRef};
use super::services::Services;
use super::steps::{Attempt, lost_call};
use super::turn::definition::{AGENT_TURN, Definition};
use super::turn::next;
use crate::error::{Code, Error, Result};
use crate::store::events::StoredEvent;
use crate::store::runs::{self, End, Held, HeldJob, Lease, Outcome, Run, StepCommit};
use crate::store::steps::{Begun, Step, StepKind, StepStatus};
use crate::store::{Tx, turns};
use crate::tools::Schemas;
use commit::{Committed, ended, ending, failed};
use jobs::Claimed;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// How often a run's job is taken up at most. Waits do not count.
const JOB_ATTEMPTS: u32 = 100;

/// What a turn's steps may answer together: all of it is read when the turn is taken up again, and
/// told to the model. The last answer may go beyond.
const TURN_BYTES: usize = 32 * 1024 * 1024;

/// How a job of a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobEnd {
    /// The job was settled with the run.
    Committed,
    /// The run had finished before: nothing was to be done.
    Finished,
    /// The run is another's now, or the job is.
    Lost,
    /// The server is stopping: the next step is another's.
    Stopping,
}

/// Handles a job.
pub(super) fn advance(services: &Services, claimed: &Claimed, job: &Advance) -> jobs::Outcome {
    let log = services.log.new(slog::o!(
        "tenantId" => job.tenant_id.to_string(), "runId" => job.run_id.to_string()));
    match carry_on(services, claimed, job, &log) {
        Ok(JobEnd::Committed) => jobs::Outcome::Settled,
        Ok(JobEnd::Finished) => jobs::Outcome::Done,
        Ok(JobEnd::Lost) => {
            slog::debug!(log, "The run is another's now");
            jobs::Outcome::retry("the run was lost to another claim")
        }
        Ok(JobEnd::Stopping) => jobs::Outcome::Snooze {
            after: Duration::ZERO,
        },
        Err(error) if error.code() == Code::Conflict => {
            slog::debug!(log, "The run's job is another's now");
            jobs::Outcome::retry(error.to_string())
        }
        Err(error) => {
            slog::warn!(log, "A run could not be carried on; it will be tried again"; "error" => %error);
            jobs::Outcome::retry(error.to_string())
        }
    }
}

fn carry_on(
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    log: &slog::Logger,
) -> Result<JobEnd> {
    if services.faults.is_spent(job.run_id) {
        // It could not be ended either. No model is asked once more meanwhile.
        return give_up(services, claimed, job);
    }
    match take_turn(services, claimed, job) {
        Err(error) if error.code() == Code::Internal && is_one_too_many(services, claimed, job) => {
            // What this program could not read or write so often it cannot later either, and each time a
            // model may be paid for.
            slog::error!(log, "A run cannot be carried on"; "error" => %error);
            give_up(services, claimed, job)
        }
        left => left,
    }
}

fn take_turn(services: &Services, claimed: &Claimed, job: &Advance) -> Result<JobEnd> {
    let (mut turn, begun) = match take_up(services, claimed, job)? {
        Taken::Done(end) => {
            services.faults.forget(job.run_id);
            services.feed.changed(job.run_id);
            return Ok(end);
        }
        Taken::Turn(turn, begun, told) => {
            services.feed.events(job.run_id, told);
            (turn, begun)
        }
    };
    let active = services.active.add(turn.held.lease, turn.time_left());
    let interrupt = active.interrupt.clone();
    claimed.token().on_lost(move || interrupt.set(Reason::Lost));
    turn.go_on(services, claimed, &active, begun)
}

/// Counts a fault of the service's own that a run met, and says whether it is one too many.
fn is_one_too_many(services: &Services, claimed: &Claimed, job: &Advance) -> bool {
    services.faults.count_fault(job.run_id) || claimed.attempt() > JOB_ATTEMPTS
}

/// What taking a run up came to.
enum Taken {
    Done(JobEnd),
    /// With the events that were written.
    Turn(Box<Turn>, Begun, Vec<StoredEvent>),
}

/// A turn that this thread carries on.
pub(super) struct Turn {
    pub(super) run: Run,
    pub(super) held: Held,
    pub(super) definition: Definition,
    pub(super) journal: Vec<Step>,
    /// What the steps answered, in bytes.
    pub(super) held_bytes: usize,
    /// When its time is over. A wall clock that is set meanwhile does not move it.
    ends_by: Instant,
}

/// Claims the run and writes the row of its next step, or its end, in one transaction; the first time in one
/// statement.
fn take_up(services: &Services, claimed: &Claimed, job: &Advance) -> Result<Taken> {
    let now = services.clock.now();
    let mut session = services.store.session()?;
    if claimed.attempt() == 1 {
        let ids = (job.tenant_id, job.run_id);
        let begun = turns::begin(
            &mut session,
            ids,
            job_of(claimed),
            AGENT_TURN,
            &first_step(),
            now,
        )?;
        if let Some((run, held, turn)) = begun {
            return Turn::new(run, held, turn, now)?.begun_with_first_step(claimed, now);
        }
    }
    session.transact(|tx| {
        let ids = (job.tenant_id, job.run_id);
        let Some((run, held)) = runs::claim(tx, ids, job_of(claimed), now)? else {
            return Ok(Taken::Done(JobEnd::Finished));
        };
        let turn = match run.flow_id.as_str() {
            AGENT_TURN => turns::load(tx, &held.lease, held.events_written > 1)?,
            _ => None,
        };
        let Some(turn) = turn else {
            let end = failed(format!(
                "This version of the service cannot run the flow {}.",
                run.flow_id
            ));
            end_taken(tx, services, (&run, &held), StepCommit::default(), end)?;
            return Ok(Taken::Done(JobEnd::Committed));
        };
        let mut turn = Turn::new(run, held, turn, now)?;
        let (movement, next) = turn.first_movement(claimed);
        match next {
            Next::Begin { begun, .. } => {
                let outcome = runs::commit_in(tx, &held, &movement, now, |_| Ok(()))?;
                if outcome != Outcome::Written {
                    return Err(no_write());
                }
                let told = turn.wrote(&movement, now);
                turn.begin(&begun, now);
                Ok(Taken::Turn(Box::new(turn), begun, told))
            }
            Next::End(end) => {
                end_taken(tx, services, (&turn.run, &held), movement, end)?;
                Ok(Taken::Done(JobEnd::Committed))
            }
        }
    })
}

/// Ends a run in the transaction that claimed it, so that nothing can have come between. A run that was
/// asked to cancel ends so.
fn end_taken(
    tx: &mut Tx<'_>,
    services: &Services,
    (run, held): (&Run, &Held),
    commit: StepCommit,
    end: End,
) -> Result<()> {
    let end = match run.cancel_requested_at {
        Some(_) => End::Cancelled,
        None => end,
    };
    let (commit, now) = (ending(commit, end), services.clock.now());
    let outcome = runs::commit_in(tx, held, &commit, now, |tx| {
        services
            .webhooks
            .run_finished(tx, run.tenant_id, run.run_id)
    })?;
    match outcome {
        Outcome::Written => Ok(()),
        _ => Err(no_write()),
    }
}

/// The job that carries a run on, as the store writes to it.
fn job_of(claimed: &Claimed) -> HeldJob {
    HeldJob {
        job_id: claimed.id(),
        lease_id: claimed.lease_id(),
    }
}

fn no_write() -> Error {
    Error::internal("a run that was just claimed took no write")
}

/// Ends a run that cannot be carried on through a fault of the service's own. Its last step ends with it, where
/// the turn can be read.
fn give_up(services: &Services, claimed: &Claimed, job: &Advance) -> Result<JobEnd> {
    let left = match give_up_with(services, claimed, job, |tx, lease, is_begun| {
        turns::load(tx, lease, is_begun)
    }) {
        Err(error) if error.code() == Code::Internal => {
            give_up_with(services, claimed, job, |_, _, _| Ok(None))?
        }
        left => left?,
    };
    services.faults.forget(job.run_id);
    services.feed.changed(job.run_id);
    Ok(left)
}

fn give_up_with(
    services: &Services,
    claimed: &Claimed,
    job: &Advance,
    load: impl Fn(&mut Tx<'_>, &Lease, bool) -> Result<Option<turns::Turn>>,
) -> Result<JobEnd> {
    let now = services.clock.now();
    services.store.transact(|tx| {
        let ids = (job.tenant_id, job.run_id);
        let Some((run, held)) = runs::claim(tx, ids, job_of(claimed), now)? else {
            return Ok(JobEnd::Finished);
        };
        let commit = match load(tx, &held.lease, held.events_written > 1)? {
            Some(turn) => Turn::new(run.clone(), held, turn, now)?.movement_to(None),
            None => StepCommit::default(),
        };
        let end = failed("The server met a fault of its own. Its log has the cause.");
        end_taken(tx, services, (&run, &held), commit, end)?;
        Ok(JobEnd::Committed)
    })
}

/// What taking an agent's turn up for the first time writes, but for the model's name.
fn first_step() -> StepCommit {
    let begun = Begun {
        step: 1,
        kind: StepKind::Model,
        name: String::new(),
        path: String::new(),
        attempt: 1,
        failures: 0,
        request: serde_json::json!({}),
    };
    let step = StepRef {
        step: begun.step,
        attempt: begun.attempt,
        kind: begun.kind,
        name: String::new(),
        call_id: None,
    };
    StepCommit {
        events: vec![Event::RunStarted {}.row(), Event::StepStarted(step).row()],
        begun: Some(begun),
        ..StepCommit::default()
    }
}

impl Turn {
    /// # Errors
    /// Internal, when the version's limits cannot be read.
    fn new(run: Run, held: Held, turn: turns::Turn, now: OffsetDateTime) -> Result<Self> {
        let mut definition = Definition::new(turn)?;
        let journal = std::mem::take(&mut definition.turn.journal);
        Ok(Self {
            ends_by: Instant::now() + time_left(&run, &definition, now),
            held_bytes: journal.iter().map(journal::bytes_of).sum(),
            run,
            held,
            definition,
            journal,
        })
    }

    /// A turn whose first step was written as it was taken up ([`first_step`]).
    fn begun_with_first_step(mut self, claimed: &Claimed, now: OffsetDateTime) -> Result<Taken> {
        let (movement, next) = self.first_movement(claimed);
        let Next::Begin { begun, .. } = next else {
            return Err(Error::internal("a turn has no first step"));
        };
        let told = self.wrote(&movement, now);
        self.begin(&begun, now);
        Ok(Taken::Turn(Box::new(self), begun, told))
    }

    /// What taking the turn up writes, and what comes next.
    fn first_movement(&self, claimed: &Claimed) -> (StepCommit, Next) {
        let next = match self.run.cancel_requested_at {
            Some(_) => Next::End(End::Cancelled),
            None if claimed.attempt() > JOB_ATTEMPTS => Next::End(failed(format!(
                "The run was taken up {JOB_ATTEMPTS} times without coming to an end."
            ))),
            None => self.decide(),
        };
        let begun = match &next {
            Next::Begin { begun, .. } => Some(begun),
            Next::End(_) => None,
        };
        (self.movement_to(begun), next)
    }

    /// What taking the turn up writes when this step comes next, or its end.
    fn movement_to(&self, begun: Option<&Begun>) -> StepCommit {
        let mut movement = StepCommit::default();
        if self.run.last_seq == 1 {
            movement.events.push(Event::RunStarted {}.row());
        }
        if let Some(last) = self.journal.last()
            && last.status == StepStatus::Running
        {
            let lost = begun_of(last);
            movement.has_text = last.kind == StepKind::Model;
            movement.call = (last.kind == StepKind::Model)
                .then(|| lost_call(&self.definition, &lost, last.started_at));
            if let Some(begun) = begun {
                let restarted = Event::StepRestarted {
                    step: self.step_ref(begun),
                    lost_attempt: last.attempt,
                };
                movement.events.push(restarted.row());
            } else {
                movement.ended = Some(ended(last.step, StepStatus::Failed, None, last.failures));
            }
        }
        if let Some(begun) = begun {
            self.announce(&mut movement, begun);
        }
        movement
    }

    /// Counts the events of a movement that is written, and says what readers are to be told. Not for one
    /// that follows the event of a cancel, which takes a number too.
    pub(super) fn wrote(&mut self, movement: &StepCommit, now: OffsetDateTime) -> Vec<StoredEvent> {
        let numbered = (self.held.events_written + 1..).zip(&movement.events);
        let told: Vec<StoredEvent> = numbered
            .map(|(seq, event)| event.stored(seq, now))
            .collect();
        self.held.events_written += i64::try_from(told.len()).unwrap_or(i64::MAX);
        told
    }

    /// What comes next, with the turn's time limit and its bound in bytes.
    pub(super) fn decide(&self) -> Next {
        let next = next::next(&self.journal, &self.definition);
        match next {
            Next::Begin { .. } if self.time_left().is_zero() => Next::End(self.out_of_time()),
            Next::Begin { .. } if self.held_bytes > TURN_BYTES => Next::End(failed(format!(
                "The turn's steps answered more than {} MiB together, which is as much as a turn holds.",
                TURN_BYTES >> 20
            ))),
            next => next,
        }
    }

    pub(super) fn out_of_time(&self) -> End {
        failed(format!(
            "The turn took longer than its limit of {} ms (turnTimeoutMs).",
            self.definition.limits.turn_timeout_ms
        ))
    }

    pub(super) fn time_left(&self) -> Duration {
        self.ends_by.saturating_duration_since(Instant::now())
    }
}

/// How long a run that is taken up may go on.
fn time_left(run: &Run, definition: &Definition, now: OffsetDateTime) -> Duration {
    let limit = Duration::from_millis(u64::from(definition.limits.turn_timeout_ms));
    limit.saturating_sub(run.active_time(now))
}

impl Turn {
    /// Does one step after another.
    fn go_on(
        &mut self,
        services: &Services,
        claimed: &Claimed,
        active: &ActiveRun<'_>,
        mut begun: Begun,
    ) -> Result<JobEnd> {
        let mut clients = services
            .idle_clients
            .take(&services.outbound, &services.options);
        let mut schemas = Schemas::default();
        let left = loop {
            let mut attempt = Attempt {
                services,
                run: &self.run,
                lease: self.held.lease,
                definition: &self.definition,
                interrupt: &active.interrupt,
                clients: &mut clients,
                schemas: &mut schemas,
            };
            let performed = attempt.perform(&self.journal, &begun);
            let why = active.interrupt.reason();
            if why == Some(Reason::Lost) {
                break JobEnd::Lost;
            }
            let committed = self.commit(services, claimed, &begun, performed, why)?;
            services.faults.forget(self.run.run_id);
            match committed {
                Committed::Next(next) => begun = next,
                Committed::Done(end) => break end,
            }
        };
        services.idle_clients.give_back(clients);
        Ok(left)
    }

    /// Adds the row and the event of a step that begins.
    pub(super) fn announce(&self, movement: &mut StepCommit, begun: &Begun) {
        let step = self.step_ref(begun);
        movement.events.push(Event::StepStarted(step).row());
        movement.begun = Some(begun.clone());
    }

    /// Keeps the journal in memory as the database has it.
    pub(super) fn begin(&mut self, begun: &Begun, now: OffsetDateTime) {
        self.journal.retain(|step| step.step != begun.step);
        self.journal.push(Step {
            step: begun.step,
            kind: begun.kind,
            name: begun.name.clone(),
            path: begun.path.clone(),
            status: StepStatus::Running,
            attempt: begun.attempt,
            failures: begun.failures,
            request: begun.request.clone(),
            result: None,
            started_at: now,
            completed_at: None,
        });
    }

    pub(super) fn step_ref(&self, begun: &Begun) -> StepRef {
        let call = match begun.kind {
            StepKind::Model => None,
            StepKind::Tool => journal::call_of(&self.journal, &begun.request).ok(),
        };
        StepRef {
            step: begun.step,
            attempt: begun.attempt,
            kind: begun.kind,
            name: begun.name.clone(),
            call_id: call.map(|call| call.id),
        }
    }
}

/// The attempt that a row of the journal says was begun.
fn begun_of(step: &Step) -> Begun {
    Begun {
        step: step.step,
        kind: step.kind,
        name: step.name.clone(),
        path: step.path.clone(),
        attempt: step.attempt,
        failures: step.failures,
        request: step.request.clone(),
    }
}
