//! Runs: the narrow row that is fenced, its payload, and the lists.
//!
//! A run is carried on by whoever claimed it last: [`claim`] raises the row's lease epoch, and every
//! later write of the holder ([`write`]) carries that epoch and expects the run to be
//! `running`. A write that matches no row changes nothing, and its holder stops. A holder that
//! repeats a write whose answer was lost is fenced from its own earlier try too: each write says how
//! many events the run has by then. A finished state never changes, and a run that was asked to
//! cancel ends in no other way.
//!
//! Not here: what a run does (`runtime`), and the job that carries it on.

mod lists;
mod rows;
pub(super) mod storable;

pub use lists::{Filters, list};
pub use rows::{Agent, Origin, Run, Status, Tokens, Usage, Via};

use super::events::NewEvent;
use super::{Find, Finding, Parameter, Sql, on_violation, sql_state};
use crate::error::{Code, Error, Result};
use crate::proof::{Kind, May, Read, Write};
use crate::{find_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use rows::run_of;
use serde_json::Value;
use std::borrow::Cow;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

/// A run to be created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub run_id: Uuid,
    /// The project that it belongs to.
    pub project_id: Uuid,
    /// What runs: `agent.turn` for an agent's turn.
    pub flow_id: String,
    /// The version of what runs.
    pub flow_version: String,
    /// Who began it.
    pub origin: Origin,
    /// The run that began it, for origin `run`.
    pub parent_run_id: Option<Uuid>,
    /// As the caller said; the runtime passes it on to tools.
    pub dry_run: bool,
    /// For an agent's turn.
    pub agent: Option<Agent>,
    /// What the caller gave; an agent's turn has its text in `message`.
    pub input: Value,
    /// The user message of an agent's turn, written to its conversation if it has one.
    pub message: Option<String>,
    /// The user that created it.
    pub created_by: Uuid,
    /// When.
    pub created_at: OffsetDateTime,
}

/// Input and output of a run.
#[derive(Debug, Clone)]
pub struct Payload {
    /// What the run was given.
    pub input: Value,
    /// What it answered, once it is completed.
    pub output: Option<Value>,
}

/// The hold on a run, since one claim: what every write of its holder carries. Only [`claim`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    tenant_id: Uuid,
    run_id: Uuid,
    epoch: i64,
}

impl Lease {
    /// The tenant.
    pub fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    /// The run.
    pub fn run_id(&self) -> Uuid {
        self.run_id
    }

    /// The claim's number.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }
}

impl May<Read, Run> for Lease {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run_id
    }
}

impl May<Write, Run> for Lease {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run_id
    }
}

/// The job that is to carry a new run on.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its queue.
    pub queue: &'static str,
    /// Its name.
    pub name: &'static str,
    /// JSON text.
    pub payload: String,
    /// How often it may be tried.
    pub max_attempts: i32,
}

/// Creates a run with its job, its first event, its user message and its payload, and returns it. `may` proves
/// that the caller may start runs in the project or with the agent.
///
/// # Errors
/// `conflict` while another turn of the conversation is under way: nothing is to be committed then.
pub fn insert<K: Kind>(
    sql: &mut impl Sql,
    may: &impl May<Write, K>,
    run: &NewRun,
    first: &NewEvent,
    job: &NewJob,
) -> Result<Run> {
    let agent = run.agent.as_ref();
    let conversation_id = agent.and_then(|agent| agent.conversation_id);
    let inserted = sql.query_opt(
        sql!("runs/insert"),
        &[
            &may.tenant_id(),
            &run.run_id,
            &run.project_id,
            &run.flow_id,
            &run.flow_version,
            &run.origin.text(),
            &run.parent_run_id,
            &run.dry_run,
            &agent.map(|agent| agent.id),
            &agent.map(|agent| agent.version.as_str()),
            &conversation_id,
            &agent.map(|agent| agent.via.text()),
            &run.created_by,
            &run.created_at,
            &run.input,
            &first.kind,
            &first.data,
            &run.message.as_deref().unwrap_or_default(),
            &job.queue,
            &job.name,
            &job.payload,
            &job.max_attempts,
        ],
    )?;
    match inserted {
        Some(row) => run_of(&row),
        None => Err(Error::new(
            Code::Conflict,
            "A turn of this conversation is under way. Wait until it has finished, or cancel it.",
        )),
    }
}

impl Find for Run {
    const FINDING: Finding = find_sql!("runs/find");
    fn read(row: &postgres::Row) -> Result<Option<Self>> {
        run_of(row).map(Some)
    }
}

/// The run as it stands.
///
/// # Errors
/// `not-found` when the tenant has no such run.
pub fn find(sql: &mut impl Sql, tenant_id: Uuid, run_id: Uuid) -> Result<Run> {
    Run::find(sql, tenant_id, run_id)?.ok_or_else(|| Error::not_found("run", run_id))
}

/// Input and output.
///
/// # Errors
/// `not-found` when the payload was dropped by retention.
pub fn payload(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Payload> {
    let row = sql.query_opt(sql!("runs/payload"), &[&may.tenant_id(), &may.object_id()])?;
    let row = row.ok_or_else(|| Error::not_found("payload of run", may.object_id()))?;
    Ok(Payload {
        input: row.try_get(0)?,
        output: row.try_get(1)?,
    })
}

/// What a cancel met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// Nobody carried it on: it ended at once. The job that waited for it is to be removed.
    AtOnce {
        /// That job.
        job_id: Option<i64>,
    },
    /// It is carried on: its holder, or the next one, ends it.
    Asked {
        /// The job that carries it on, or waits for its turn after a fault.
        job_id: Option<i64>,
    },
    /// It had finished.
    Finished,
}

/// Asks a run to end. Readers are told one of the two kinds of event: that it ended, or that it was asked to.
///
/// # Errors
/// The database's.
pub fn cancel(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    (ended, asked): (&str, &str),
    now: OffsetDateTime,
) -> Result<Cancelled> {
    let row = sql.query_opt(
        sql!("runs/cancel"),
        &[&may.tenant_id(), &may.object_id(), &now, &ended, &asked],
    )?;
    let Some(row) = row else {
        return Ok(Cancelled::Finished);
    };
    Ok(match row.try_get::<_, &str>(0)? {
        "cancelled" => Cancelled::AtOnce {
            job_id: row.try_get(1)?,
        },
        _ => Cancelled::Asked {
            job_id: row.try_get(1)?,
        },
    })
}

/// Takes a run over. `None` when it has finished.
///
/// # Errors
/// The database's.
pub fn claim(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    run_id: Uuid,
    now: OffsetDateTime,
) -> Result<Option<(Run, Lease)>> {
    let row = sql.query_opt(sql!("runs/claim"), &[&tenant_id, &run_id, &now])?;
    row.map(|row| claimed_of(&row)).transpose()
}

/// How many columns of a statement's answer [`claimed_of`] reads.
pub(super) const CLAIMED_COLUMNS: usize = rows::COLUMNS + 1;

/// Reads a run that was just claimed, and the hold on it.
pub(super) fn claimed_of(row: &Row) -> Result<(Run, Lease)> {
    let run = run_of(row)?;
    let lease = Lease {
        tenant_id: run.tenant_id,
        run_id: run.run_id,
        epoch: row.try_get(rows::COLUMNS)?,
    };
    Ok((run, lease))
}

/// One movement of a held run. Everything in it is written, or nothing.
#[derive(Debug, Clone, Default)]
pub struct Movement {
    /// What readers are told, in order.
    pub events: Vec<NewEvent>,
    /// The model call that ended: see [`super::steps::ModelCall`].
    pub call: Option<super::steps::ModelCall>,
    /// The step that ended.
    pub ended: Option<super::steps::Ended>,
    /// The step that begins, or begins again.
    pub begun: Option<super::steps::Begun>,
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
    with_parameters(lease, told, movement, now, |parameters| {
        let row = sql.query_one(sql!("runs/write"), parameters)?;
        Ok(row.try_get(0)?)
    })
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
    let row = with_parameters(lease, told, movement, now, |parameters| {
        let mut parameters = parameters.to_vec();
        parameters.extend([&job.job_id as Parameter<'_>, &job.lease_id, &is_told]);
        sql.query_one(sql!("runs/end"), &parameters)
    });
    match on_violation(row, &SqlState::from_code("AR001"), job_lost) {
        Ok(row) => Ok(row.try_get(0)?),
        Err(error) if sql_state(&error).is_some_and(|state| state.code() == "AR002") => Ok(None),
        Err(error) => Err(error),
    }
}

/// The run's job is not this holder's any more.
pub fn job_lost() -> Error {
    Error::new(Code::Conflict, "The run's job is another's now.")
}

/// A movement as the parameters of the statements that write it.
fn with_parameters<T>(
    lease: &Lease,
    told: i64,
    movement: &Movement,
    now: OffsetDateTime,
    write: impl FnOnce(&[Parameter<'_>]) -> Result<T>,
) -> Result<T> {
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
    let result = ended.and_then(|step| step.result.as_ref());
    write(&[
        &lease.tenant_id,
        &lease.run_id,
        &lease.epoch,
        &told,
        &now,
        &status.text(),
        &kinds,
        &data,
        &json(&movement.call)?,
        &ended.map(|step| step.step),
        &ended.map(|step| step.status.text()),
        &result.map(storable::value).as_deref(),
        &ended.map(|step| step.failures),
        &begun.map(|step| step.step),
        &begun.map(|step| step.kind.text()),
        &begun.map(|step| storable::text(&step.name)).as_deref(),
        &begun.map(|step| step.attempt),
        &begun.map(|step| step.failures),
        &begun.map(|step| storable::value(&step.request)).as_deref(),
        &failure.as_deref(),
        &output.as_deref(),
        &message.as_deref(),
    ])
}

fn json<T: serde::Serialize>(part: &Option<T>) -> Result<Option<Value>> {
    let Some(part) = part else { return Ok(None) };
    let value = serde_json::to_value(part).map_err(Error::internal)?;
    Ok(Some(storable::value(&value).into_owned()))
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

/// Of the runs that are held, those that should stop: cancelled, or taken over by another.
///
/// # Errors
/// The database's.
pub fn interrupted(sql: &mut impl Sql, held: &[Lease]) -> Result<Vec<Lease>> {
    let tenants: Vec<Uuid> = held.iter().map(|lease| lease.tenant_id).collect();
    let runs: Vec<Uuid> = held.iter().map(|lease| lease.run_id).collect();
    let epochs: Vec<i64> = held.iter().map(|lease| lease.epoch).collect();
    let rows = sql.query(sql!("runs/interrupted"), &[&tenants, &runs, &epochs])?;
    let mut interrupted = Vec::with_capacity(rows.len());
    for row in &rows {
        let (run_id, epoch): (Uuid, i64) = (row.try_get(0)?, row.try_get(1)?);
        let is_it = |lease: &&Lease| (lease.run_id, lease.epoch) == (run_id, epoch);
        interrupted.extend(held.iter().find(is_it));
    }
    Ok(interrupted)
}

/// Makes the partitions around the month of `today`. Safe to repeat, and on several replicas at once.
///
/// # Errors
/// The database's.
pub fn attach_partitions(sql: &mut impl Sql, today: Date) -> Result<()> {
    sql.execute(sql!("runs/attach_partitions"), &[&today])?;
    Ok(())
}

/// A request that names itself, so that its repetition makes nothing new.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// The caller.
    pub principal: String,
    /// The route.
    pub route: String,
    /// The caller's own key.
    pub key: String,
    /// SHA-256 of the request's body.
    pub body_digest: [u8; 32],
}

/// Keeps a request's key beside the object that it makes, in the transaction that makes it. A
/// concurrent request of the same key waits here until that transaction ends, as long as statements
/// wait for locks. `Some` is the object that an earlier request made.
///
/// # Errors
/// `idempotency-mismatch` when the earlier request had another body, `idempotency-in-flight` when it
/// did not end in time.
pub fn remember_key(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    request: &RequestKey,
    object_id: Uuid,
    now: OffsetDateTime,
) -> Result<Option<Uuid>> {
    let digest = request.body_digest.as_slice();
    let (principal, route, key) = (&request.principal, &request.route, &request.key);
    let added = sql.execute(
        sql!("runs/remember_key"),
        &[&tenant_id, principal, route, key, &digest, &object_id, &now],
    );
    let added = on_violation(added, &SqlState::LOCK_NOT_AVAILABLE, || {
        Error::new(
            Code::IdempotencyInFlight,
            "A request with this Idempotency-Key is still being worked on. Repeat this one shortly.",
        )
    })?;
    if added == 1 {
        return Ok(None);
    }
    let row = sql.query_one(sql!("runs/find_key"), &[&tenant_id, principal, route, key])?;
    if row.try_get::<_, &[u8]>(0)? != digest {
        return Err(Error::new(
            Code::IdempotencyMismatch,
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
        ));
    }
    Ok(Some(row.try_get(1)?))
}

/// Deletes at most `limit` keys older than `before`; says how many.
///
/// # Errors
/// The database's.
pub fn forget_keys(sql: &mut impl Sql, before: OffsetDateTime, limit: i64) -> Result<u64> {
    sql.execute(sql!("runs/forget_keys"), &[&before, &limit])
}
