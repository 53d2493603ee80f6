//! The job that carries a run on.

use crate::error::{Error, Result};
use crate::log::trace::TraceContext;
use crate::store::runs::{ChildJob, NewJob};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Carries one run on, to its end or its next wait. What is here beside the ids of tenant and run is for the log, whose
/// records may be written before the run is read, or where it cannot be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Advance {
    pub(super) tenant_id: Uuid,
    pub(super) run_id: Uuid,
    pub(super) project_id: Uuid,
    /// Of an agent's turn.
    pub(super) agent_id: Option<Uuid>,
    pub(super) started_by: StartedBy,
}

/// The request that started a run. A child run has its parent's, and the span of its parent's step.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedBy {
    /// The request's id.
    pub request_id: Uuid,
    /// Its trace, and the span there that started the run, as the header of that name.
    pub traceparent: String,
}

impl jobs::Job for Advance {
    const NAME: &'static str = "run.advance";
    const QUEUE: &'static str = QUEUE;
    // The run itself is ended long before, with a message: see `driver`.
    const MAX_ATTEMPTS: u32 = 1_000_000;
}

/// The queue of runs.
pub(super) const QUEUE: &str = "runs";

impl slog::KV for Advance {
    fn serialize(&self, _: &slog::Record<'_>, out: &mut dyn slog::Serializer) -> slog::Result {
        if let Some(agent_id) = self.agent_id {
            out.emit_arguments("agentId", &format_args!("{agent_id}"))?;
        }
        out.emit_arguments("runId", &format_args!("{}", self.run_id))?;
        out.emit_arguments("projectId", &format_args!("{}", self.project_id))?;
        out.emit_arguments("tenantId", &format_args!("{}", self.tenant_id))?;
        out.emit_arguments(
            "requestId",
            &format_args!("req-{}", self.started_by.request_id),
        )
    }
}

impl Advance {
    /// The run's span, in the trace of the request that started it.
    pub(super) fn trace(&self) -> TraceContext {
        TraceContext::of_run(&self.started_by.traceparent, self.run_id)
    }

    /// A logger for the run: its records carry its ids and its span, and the id of the request that started it.
    pub(super) fn log(&self, log: &slog::Logger) -> slog::Logger {
        log.new(slog::o!(self.clone(), self.trace()))
    }

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
