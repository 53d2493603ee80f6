//! A held run as its holder knows it, kept equal to the database.

use crate::log::trace::TraceContext;
use crate::runtime::job::{Advance, StartedBy};
use crate::runtime::journal;
use crate::runtime::program::{Loaded, Program};
use crate::runtime::services::Services;
use crate::runtime::spans::Attempted;
use crate::runtime::steps::attempt::Performed;
use crate::store::events::StoredEvent;
use crate::store::runs::{Held, Run, StepCommit};
use crate::store::steps::{Begun, Step, StepStatus};
use crate::traces::Span;
use serde_json::Value;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// How a run's job ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobEnd {
    /// In the commit that ended or parked the run.
    Committed,
    /// The run had finished before: nothing was to be done.
    Finished,
    /// The run is another's now, or the job is.
    Lost,
    /// The server is stopping: the next step is another's.
    Stopping,
    /// It is not this run's turn.
    Later,
}

/// A run that this thread carries on.
pub(super) struct State {
    pub(super) run: Run,
    /// What started it, for its children.
    pub(super) started_by: StartedBy,
    /// Its span.
    pub(super) trace: TraceContext,
    pub(super) held: Held,
    pub(super) program: Program,
    pub(super) journal: Vec<Step>,
    /// What the steps answered, in bytes.
    pub(super) answer_bytes: usize,
    /// When its time is over. A wall clock that is set meanwhile does not move it.
    pub(super) ends_by: Instant,
}

impl State {
    /// The run as it was claimed at `now`.
    pub(super) fn new(
        (run, job): (Run, &Advance),
        held: Held,
        (program, journal): Loaded,
        now: OffsetDateTime,
    ) -> Self {
        let time_left = program.time_limit().saturating_sub(run.active_time(now));
        Self {
            ends_by: Instant::now() + time_left,
            answer_bytes: journal.iter().map(journal::bytes_of).sum(),
            run,
            started_by: job.started_by.clone(),
            trace: job.trace(),
            held,
            program,
            journal,
        }
    }

    /// An attempt of it, for its span.
    pub(super) fn attempted<'a>(&'a self, row: &'a Step, ended: OffsetDateTime) -> Attempted<'a> {
        Attempted {
            trace: &self.trace,
            run: &self.run,
            program: &self.program,
            kind: row.kind,
            name: &row.name,
            step: row.step,
            attempt: row.attempt,
            began: row.started_at,
            ended,
        }
    }

    /// What is recorded of an attempt, if its trace is.
    pub(super) fn span_of(
        &self,
        services: &Services,
        begun: &Begun,
        performed: &Performed,
    ) -> Option<Span> {
        if !services.traces.takes(&self.trace) {
            return None;
        }
        let row = self.journal.last().filter(|row| row.step == begun.step)?;
        let now = services.clock.now();
        self.attempted(row, now).performed(performed)
    }

    /// How long it may go on.
    pub(super) fn time_left(&self) -> Duration {
        self.ends_by.saturating_duration_since(Instant::now())
    }

    /// How long the attempt of the journal's last row has taken. Nothing, where the clock was set back meanwhile.
    pub(super) fn last_duration(&self, now: OffsetDateTime) -> Duration {
        let began = self.journal.last().map_or(now, |last| last.started_at);
        Duration::try_from(now - began).unwrap_or_default()
    }

    /// The step of the journal's last row is done. To be called before its commit, which says what follows
    /// from it; a commit that is not written ends the hold on the run or the run.
    pub(super) fn complete(&mut self, result: Value) {
        self.answer_bytes += journal::bytes(&result);
        if let Some(last) = self.journal.last_mut() {
            last.status = StepStatus::Completed;
            last.result = Some(result);
        }
    }

    /// The step of the journal's last row has failed for good, which its program handles. Otherwise as
    /// [`State::complete`].
    pub(super) fn fail(&mut self, failure: Value) {
        if let Some(last) = self.journal.last_mut() {
            last.status = StepStatus::Failed;
            last.result = Some(failure);
        }
    }

    /// A commit is written. Says the events that readers are to be shown. Not for a commit that ends a run
    /// which was asked to cancel: the event of the cancel takes a number too, nobody here knows which.
    pub(super) fn committed(
        &mut self,
        commit: &StepCommit,
        now: OffsetDateTime,
    ) -> Vec<StoredEvent> {
        let numbered = (self.held.events_written + 1..).zip(&commit.events);
        let events: Vec<StoredEvent> = numbered
            .map(|(seq, event)| event.stored(seq, now))
            .collect();
        self.held.events_written += i64::try_from(events.len()).unwrap_or(i64::MAX);
        self.held.has_children |= commit.children.is_some();
        if let Some(state) = &commit.flow_state {
            self.program.begun_with(state);
        }
        self.program.asked(&commit.approvals);
        let input = commit.checks.input.as_ref();
        if let Some(text) = input.and_then(|input| input.text.as_deref()) {
            self.program.input_became(text);
        }
        if let Some(begun) = &commit.begun {
            self.begin(begun, now);
        }
        events
    }

    fn begin(&mut self, begun: &Begun, now: OffsetDateTime) {
        if self.program.is_flow() {
            self.journal.clear();
            self.answer_bytes = 0;
        }
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
}
