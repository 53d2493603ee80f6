//! What the holder of a run writes: one movement at a time, under the fence, whole or not at all.
//!
//! Not here: which movement comes next (`runtime`).

use super::{Lease, Run, Status, storable};
use crate::error::{Code, Error, Result};
use crate::sql;
use crate::store::events::NewEvent;
use crate::store::steps::{Begun, Ended, ModelCall, Prices};
use crate::store::{Parameter, Sql, on_violation, sql_state};
use postgres::error::SqlState;
use serde_json::Value;
use std::borrow::Cow;
use time::OffsetDateTime;

/// One movement of a held run. Everything in it is written, or nothing.
#[derive(Debug, Clone, Default)]
pub struct Movement {
    /// What readers are told, in order.
    pub events: Vec<NewEvent>,
    /// The model call that ended: see [`ModelCall`].
    pub call: Option<ModelCall>,
    /// Streamed text of the run may have been written, which is dropped. What is overlooked is swept once
    /// the run has finished.
    pub has_text: bool,
    /// The step that ended.
    pub ended: Option<Ended>,
    /// The step that begins, or begins again.
    pub begun: Option<Begun>,
    /// The run now waits for its job.
    pub waiting: bool,
    /// The run ends, with the last of the events. Once a cancel was asked for no other movement is written
    /// than one that ends so.
    pub end: Option<End>,
}

/// How many events the holders of a run have written. That of a cancel is written by whoever asks.
pub fn told(run: &Run) -> i64 {
    run.last_seq - i64::from(run.cancel_requested_at.is_some())
}

/// Writes a movement under the fence, after the `told` events that the holder knows of. False when the run
/// is another's, has finished, or has more events by now than the writer knows of; when a cancel was asked
/// for and the movement does not end the run so, and when it does and none was.
///
/// # Errors
/// The database's.
pub fn write(
    sql: &mut impl Sql,
    lease: &Lease,
    told: i64,
    movement: &Movement,
    now: OffsetDateTime,
) -> Result<bool> {
    let written = write_with(sql, (lease, told), movement, now, (None, false))?;
    Ok(written.unwrap_or_default())
}

/// The job of a run that is held: its id and its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldJob {
    /// The job.
    pub job_id: i64,
    /// The claim of it.
    pub lease_id: i64,
}

/// Writes a movement that ends a run, as [`write`] does, and completes its job. `None`, and nothing is written,
/// where `is_told` and the tenant has webhooks for that.
///
/// # Errors
/// `conflict` when the job is another's; then nothing is written.
pub fn end(
    sql: &mut impl Sql,
    (lease, told): (&Lease, i64),
    movement: &Movement,
    now: OffsetDateTime,
    job: HeldJob,
    is_told: bool,
) -> Result<Option<bool>> {
    let written = write_with(sql, (lease, told), movement, now, (Some(job), is_told));
    match on_violation(written, &SqlState::from_code("AR001"), job_lost) {
        Err(error) if sql_state(&error).is_some_and(|state| state.code() == "AR002") => Ok(None),
        written => written,
    }
}

/// The run's job is not this holder's any more.
pub fn job_lost() -> Error {
    Error::new(Code::Conflict, "The run's job is another's now.")
}

/// Writes a movement, with the job where there is one.
fn write_with(
    sql: &mut impl Sql,
    (lease, told): (&Lease, i64),
    movement: &Movement,
    now: OffsetDateTime,
    (job, is_told): (Option<HeldJob>, bool),
) -> Result<Option<bool>> {
    let kinds: Vec<&str> = movement.events.iter().map(|event| event.kind).collect();
    let events = movement.events.iter();
    let data: Vec<Cow<'_, Value>> = events.map(|event| storable::value(&event.data)).collect();
    let data: Vec<&Value> = data.iter().map(AsRef::as_ref).collect();
    let status = match &movement.end {
        Some(end) => end.status(),
        None if movement.waiting => Status::Waiting,
        None => Status::Running,
    };
    let (failure, output, message) = movement.end.as_ref().map_or((None, None, None), End::parts);
    let (ended, begun) = (movement.ended.as_ref(), movement.begun.as_ref());
    let result = ended.and_then(|step| step.result.as_ref().map(storable::value));
    let name = begun.map(|step| storable::text(&step.name));
    let request = begun.map(|step| storable::value(&step.request));
    let parameters: [Parameter<'_>; 22] = [
        &lease.tenant_id,
        &lease.run_id,
        &lease.epoch,
        &told,
        &now,
        &status.text(),
        &kinds,
        &data,
        &ended.map(|step| step.step),
        &ended.map(|step| step.status.text()),
        &result.as_deref(),
        &ended.map(|step| step.failures),
        &begun.map(|step| step.step),
        &begun.map(|step| step.kind.text()),
        &name.as_deref(),
        &begun.map(|step| step.attempt),
        &begun.map(|step| step.failures),
        &request.as_deref(),
        &failure.as_deref(),
        &output.as_deref(),
        &message.as_deref(),
        &movement.has_text,
    ];
    with_call(movement.call.as_ref(), |call| {
        let job_id = job.map(|job| job.job_id);
        let lease_id = job.map(|job| job.lease_id);
        let job: [Parameter<'_>; 3] = [&job_id, &lease_id, &is_told];
        let parameters = [&parameters[..], call, &job].concat();
        let row = sql.query_one(sql!("runs/write"), &parameters)?;
        Ok(row.try_get(0)?)
    })
}

/// A model call as the parameters of a movement; nulls without one.
fn with_call<T>(
    call: Option<&ModelCall>,
    write: impl FnOnce(&[Parameter<'_>]) -> Result<T>,
) -> Result<T> {
    let failure = call.and_then(|call| call.failure.as_deref());
    let counts = call.map(|call| call.counts).unwrap_or_default();
    let none = Prices::default();
    let prices = call.map_or(&none, |call| &call.prices);
    write(&[
        &call.map(|call| call.step),
        &call.map(|call| call.attempt),
        &call.map(|call| call.model_provider_id),
        &call.map(|call| storable::text(&call.model)).as_deref(),
        &call.map(|call| call.outcome.text()),
        &failure.map(storable::text).as_deref(),
        &counts.prompt_tokens,
        &counts.completion_tokens,
        &counts.cache_read_tokens,
        &counts.cache_write_tokens,
        &counts.reasoning_tokens,
        &prices.prompt_price,
        &prices.completion_price,
        &prices.cache_read_price,
        &prices.cache_write_price,
        &prices.reasoning_price,
        &call.map(|call| call.started_at),
    ])
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With an output, and for an agent's turn with the assistant's message.
    Completed {
        /// The run's output.
        output: Value,
        /// What the assistant said.
        message: Option<String>,
    },
    /// With a sentence that says why.
    Failed {
        /// The sentence.
        failure_message: String,
    },
    /// Because it was asked to.
    Cancelled,
}

/// Failure, output and assistant's message of an end, as Postgres takes them.
type EndParts<'a> = (
    Option<Cow<'a, str>>,
    Option<Cow<'a, Value>>,
    Option<Cow<'a, str>>,
);

impl End {
    fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Failed,
            Self::Cancelled => Status::Cancelled,
        }
    }

    fn parts(&self) -> EndParts<'_> {
        match self {
            Self::Completed { output, message } => (
                None,
                Some(storable::value(output)),
                message.as_deref().map(storable::text),
            ),
            Self::Failed { failure_message } => (Some(storable::text(failure_message)), None, None),
            Self::Cancelled => (None, None, None),
        }
    }
}
