//! One attempt of a step: its input and its result.

use crate::failure::Failure;
use crate::log::trace::TraceContext;
use crate::log::{Subsystem, subsystem};
use crate::runtime::active_runs::Interrupt;
use crate::runtime::clients::Clients;
use crate::runtime::journal::decision::ChildRun;
use crate::runtime::program::Program;
use crate::runtime::progress::events::{Event, StepAnswer};
use crate::runtime::services::Services;
use crate::store::run_checks::Checks;
use crate::store::runs::{DatabaseAhead, Lease, Run, Wait};
use crate::store::steps::{Begun, ModelCall, StepKind};
use crate::tools::{Origin, Schemas};
use serde_json::Value;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// What an attempt needs.
pub(in crate::runtime) struct Attempt<'a> {
    pub(in crate::runtime) services: &'a Services,
    pub(in crate::runtime) log: &'a slog::Logger,
    pub(in crate::runtime) run: &'a Run,
    pub(in crate::runtime) lease: Lease,
    /// See [`Held`](crate::store::runs::Held).
    pub(in crate::runtime) database_ahead: DatabaseAhead,
    /// The run's span.
    pub(in crate::runtime) trace: &'a TraceContext,
    pub(in crate::runtime) program: &'a Program,
    pub(in crate::runtime) interrupt: &'a Interrupt,
    /// When the run's time is over.
    pub(in crate::runtime) ends_by: Instant,
    pub(in crate::runtime) clients: &'a mut Clients,
    pub(in crate::runtime) schemas: &'a mut Schemas,
}

/// What came of an attempt.
pub(in crate::runtime) struct Performed {
    /// The model call that it was.
    pub(in crate::runtime) call: Option<ModelCall>,
    /// Text of it may have been written.
    pub(in crate::runtime) has_text: bool,
    /// Events that are written before its end.
    pub(in crate::runtime) events: Vec<Event>,
    /// What guardrails decided.
    pub(in crate::runtime) checks: Checks,
    /// Slots of children whose ends it has read.
    pub(in crate::runtime) taken: Vec<i32>,
    /// Children that begin in places that have come free, if it waits: from this slot on.
    pub(in crate::runtime) begins: (i32, Vec<ChildRun>),
    /// How it ended.
    pub(in crate::runtime) outcome: Outcome,
}

/// How an attempt ended.
pub(in crate::runtime) enum Outcome {
    /// With an answer.
    Done {
        /// For the journal.
        result: Value,
        /// For readers.
        answer: StepAnswer,
    },
    /// With a fault of the other side.
    Failed {
        /// Why. Of a call without its noun: see [`unanswered`](super::kind::unanswered).
        failure: Failure,
        /// Whether another try may help.
        retryable: bool,
        /// How long the other side asks to wait.
        retry_after: Option<Duration>,
        /// Of a call: the other side may have got it, so nobody knows whether it took effect.
        is_unknown: bool,
    },
    /// Child runs of it may not begin: why, as a sentence.
    Refused(String),
    /// Not yet: the run is to be parked, and the same attempt goes on after the next claim.
    Waits(Wait),
    /// It was interrupted.
    Interrupted,
}

impl Attempt<'_> {
    /// The attempt, of a program in place of its own.
    pub(super) fn of_program<'b>(&'b mut self, program: &'b Program) -> Attempt<'b> {
        Attempt {
            services: self.services,
            log: self.log,
            run: self.run,
            lease: self.lease,
            database_ahead: self.database_ahead,
            trace: self.trace,
            program,
            interrupt: self.interrupt,
            ends_by: self.ends_by,
            clients: self.clients,
            schemas: self.schemas,
        }
    }

    /// Where a call of this attempt comes from.
    pub(super) fn origin(&self, begun: &Begun) -> Origin {
        Origin {
            run_id: self.run.run_id,
            step: begun.step,
            attempt: begun.attempt,
            dry_run: self.run.dry_run,
            trace: self.trace.of_attempt(begun.step, begun.attempt),
        }
    }

    /// How long the run may go on.
    pub(super) fn time_left(&self) -> Duration {
        self.ends_by.saturating_duration_since(Instant::now())
    }

    /// How long a call may take that takes `most` at most and ends by `until`. An error: that is over.
    pub(super) fn time_for(
        &self,
        most: Duration,
        until: Option<OffsetDateTime>,
    ) -> Result<Duration, Box<Outcome>> {
        let Some(until) = until else { return Ok(most) };
        let left = Duration::try_from(until - self.services.clock.now()).unwrap_or_default();
        match left.is_zero() {
            true => Err(Box::new(Outcome::refused("Its time was over."))),
            false => Ok(left.min(most)),
        }
    }
}

impl Performed {
    /// Writes a record of a call of a model or a tool. Its fields have the names that OpenTelemetry gives them.
    pub(super) fn note(&self, attempt: &Attempt<'_>, begun: &Begun) {
        let how = match self.outcome {
            Outcome::Done { .. } => "done",
            Outcome::Failed { .. } | Outcome::Refused(_) => "failed",
            Outcome::Waits(_) => "waits",
            Outcome::Interrupted => "interrupted",
        };
        if let Some(call) = &self.call {
            let log = subsystem(attempt.log, Subsystem::RuntimeModel);
            slog::debug!(log, "A model call ended"; "step" => begun.step, "attempt" => begun.attempt, "outcome" => how,
                "gen_ai.request.model" => &call.model,
                "gen_ai.usage.input_tokens" => call.counts.prompt_tokens,
                "gen_ai.usage.output_tokens" => call.counts.completion_tokens);
        } else if begun.kind == StepKind::Tool
            && let Some(tool) = attempt.program.tool(&begun.name)
        {
            let log = subsystem(attempt.log, Subsystem::RuntimeTools);
            slog::debug!(log, "A tool call ended"; "toolId" => %tool.id, "step" => begun.step, "attempt" => begun.attempt,
                "outcome" => how, "gen_ai.tool.name" => &tool.name);
        }
    }
}

impl From<Outcome> for Performed {
    /// No model was called and no child has ended.
    fn from(outcome: Outcome) -> Self {
        Self {
            call: None,
            has_text: false,
            events: Vec::new(),
            checks: Checks::default(),
            taken: Vec::new(),
            begins: (0, Vec::new()),
            outcome,
        }
    }
}

impl Outcome {
    /// A fault that no other try mends, met before anything was sent.
    pub(super) fn refused(failure: impl Into<Failure>) -> Self {
        Self::Failed {
            failure: failure.into(),
            retryable: false,
            retry_after: None,
            is_unknown: false,
        }
    }
}

/// Whether the call is made once more under the key of an earlier step.
pub(super) fn is_repeated(begun: &Begun) -> bool {
    begun.request["isRepeated"] == true
}
