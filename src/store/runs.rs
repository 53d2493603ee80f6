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
mod movement;
mod rows;
pub(super) mod storable;

pub use lists::{Filters, list};
pub use movement::{End, HeldJob, Movement, end, job_lost, told, write};
pub use rows::{Agent, Origin, Run, Status, Tokens, Usage, Via};

use super::events::NewEvent;
use super::{Find, Finding, Parameter, Sql, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Kind, May, Read, Write};
use crate::{find_sql, sql};
use postgres::Row;
use postgres::error::SqlState;
use rows::run_of;
use serde_json::Value;
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

impl NewRun {
    /// The run as it is read once it is created.
    fn created(&self, tenant_id: Uuid) -> Run {
        Run {
            tenant_id,
            run_id: self.run_id,
            project_id: self.project_id,
            flow_id: self.flow_id.clone(),
            flow_version: self.flow_version.clone(),
            status: Status::Queued,
            origin: self.origin,
            parent_run_id: self.parent_run_id,
            dry_run: self.dry_run,
            agent: self.agent.clone(),
            failure_message: None,
            cancel_requested_at: None,
            created_by: self.created_by,
            created_at: storable::moment(self.created_at),
            started_at: None,
            completed_at: None,
            last_seq: 1,
            usage: Usage::default(),
        }
    }
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

/// Creates a run with its job, its first event, its user message and its payload, in one statement, and returns it. `may` proves
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
    let tenant_id = may.tenant_id();
    let (origin, via) = (run.origin.text(), agent.map(|agent| agent.via.text()));
    let (agent_id, version) = (
        agent.map(|agent| agent.id),
        agent.map(|agent| &agent.version),
    );
    let message = run.message.as_deref().unwrap_or_default();
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &run.run_id,
        &run.project_id,
        &run.flow_id,
        &run.flow_version,
        &origin,
        &run.parent_run_id,
        &run.dry_run,
        &agent_id,
        &version,
        &conversation_id,
        &via,
        &run.created_by,
        &run.created_at,
        &run.input,
        &first.kind,
        &first.data,
        &job.queue,
        &job.name,
        &job.payload,
        &job.max_attempts,
    ];
    let inserted = match conversation_id {
        None => sql.execute(sql!("runs/insert"), &parameters)?,
        Some(_) => {
            parameters.push(&message);
            sql.execute(sql!("runs/insert_in_conversation"), &parameters)?
        }
    };
    if inserted == 0 {
        return Err(Error::new(
            Code::Conflict,
            "A turn of this conversation is under way. Wait until it has finished, or cancel it.",
        ));
    }
    Ok(run.created(tenant_id))
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

/// Reads a run that was just claimed, and the hold on it.
fn claimed_of(row: &Row) -> Result<(Run, Lease)> {
    let run = run_of(row)?;
    let lease = Lease {
        tenant_id: run.tenant_id,
        run_id: run.run_id,
        epoch: row.try_get(rows::COLUMNS)?,
    };
    Ok((run, lease))
}

/// How many columns of a statement's answer [`begun_of`] reads.
pub(super) const BEGUN_COLUMNS: usize = 12;

/// Reads a run of this flow that was begun just now, and the hold on it.
pub(super) fn begun_of(
    row: &Row,
    (tenant_id, run_id): (Uuid, Uuid),
    flow_id: &str,
    now: OffsetDateTime,
) -> Result<(Run, Lease)> {
    let run = Run {
        tenant_id,
        run_id,
        project_id: row.try_get(0)?,
        flow_id: flow_id.to_owned(),
        flow_version: row.try_get(1)?,
        status: Status::Running,
        origin: rows::origin_of(row.try_get(2)?)?,
        parent_run_id: row.try_get(3)?,
        dry_run: row.try_get(4)?,
        agent: rows::agent_of(row, 5)?,
        failure_message: None,
        cancel_requested_at: None,
        created_by: row.try_get(9)?,
        created_at: row.try_get(10)?,
        started_at: Some(storable::moment(now)),
        completed_at: None,
        last_seq: 1,
        usage: Usage::default(),
    };
    let lease = Lease {
        tenant_id,
        run_id,
        epoch: row.try_get(11)?,
    };
    Ok((run, lease))
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
