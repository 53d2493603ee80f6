//! Events, deliveries and attempts, as they are written: by whoever emits, by the delivery's worker, by
//! the end of an endpoint, by the upkeep.
//!
//! A delivery is changed by the holder of its job alone, and the attempt that has no end yet is always
//! number `attempts + 1`. Whatever says when something is due or over is Postgres's clock.
//!
//! Not here: lists for people (`webhook_history`), and endpoints as people change them
//! (`webhook_endpoints`).

use super::webhook_endpoints::Ending;
use super::{Sql, Tx};
use crate::error::Result;
use crate::proof::{Admin, May};
use crate::sql;
use std::net::IpAddr;
use std::time::Duration;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

/// An endpoint that may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// Its newest attempt succeeded, and quickly. Not before its first one.
    pub is_well: bool,
}

/// The tenant's endpoints that are told of such an event.
///
/// # Errors
/// The database's.
pub fn matching(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    kind: &str,
    project_id: Option<Uuid>,
    flow_id: Option<&str>,
    dry_run: bool,
) -> Result<Vec<Registered>> {
    let rows = sql.query(
        sql!("webhook_deliveries/matching"),
        &[&tenant_id, &kind, &project_id, &flow_id, &dry_run],
    )?;
    let registered = |row: &postgres::Row| {
        Ok(Registered {
            endpoint_id: row.try_get(0)?,
            is_well: row.try_get(1)?,
        })
    };
    rows.iter().map(registered).collect()
}

/// The endpoint, if it is registered.
///
/// # Errors
/// The database's.
pub fn registered(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    endpoint_id: Uuid,
) -> Result<Option<Registered>> {
    let row = sql.query_opt(
        sql!("webhook_deliveries/registered"),
        &[&tenant_id, &endpoint_id],
    )?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Registered {
        endpoint_id,
        is_well: row.try_get(0)?,
    }))
}

/// An event to be written.
#[derive(Debug)]
pub struct NewEvent<'a> {
    /// Its id.
    pub event_id: Uuid,
    /// Its `type`.
    pub kind: &'a str,
    /// The whole body.
    pub body: &'a str,
    /// The run that it is about.
    pub run_id: Option<Uuid>,
    /// When.
    pub created_at: OffsetDateTime,
}

/// A delivery to be written, whose job stands.
#[derive(Debug, Clone, Copy)]
pub struct NewDelivery {
    /// Its id.
    pub delivery_id: Uuid,
    /// To whom.
    pub endpoint_id: Uuid,
    /// The job that makes its first attempt.
    pub job_id: i64,
}

/// Columns of new deliveries.
fn columns(deliveries: &[NewDelivery]) -> (Vec<Uuid>, Vec<Uuid>, Vec<i64>) {
    let ids = deliveries.iter().map(|one| one.delivery_id).collect();
    let endpoints = deliveries.iter().map(|one| one.endpoint_id).collect();
    (
        ids,
        endpoints,
        deliveries.iter().map(|one| one.job_id).collect(),
    )
}

/// Writes an event with its deliveries.
///
/// # Errors
/// The database's.
pub fn insert(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    event: &NewEvent<'_>,
    deliveries: &[NewDelivery],
) -> Result<()> {
    let (ids, endpoints, jobs) = columns(deliveries);
    tx.execute(
        sql!("webhook_deliveries/insert"),
        &[
            &tenant_id,
            &event.event_id,
            &event.kind,
            &event.body,
            &event.run_id,
            &event.created_at,
            &ids,
            &endpoints,
            &jobs,
        ],
    )?;
    Ok(())
}

/// Locks a delivery of the endpoint that is to be sent again; whether its event is still kept.
///
/// # Errors
/// The database's.
pub fn lock_for_resend(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    endpoint_id: Uuid,
    delivery_id: Uuid,
) -> Result<Option<bool>> {
    let row = tx.query_opt(
        sql!("webhook_deliveries/lock_for_resend"),
        &[&tenant_id, &endpoint_id, &delivery_id],
    )?;
    row.map(|row| Ok(row.try_get(0)?)).transpose()
}

/// Locks what failed for good since a time and is not being sent again, oldest first.
///
/// # Errors
/// The database's.
pub fn failed_since(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    endpoint_id: Uuid,
    since: OffsetDateTime,
    limit: i64,
) -> Result<Vec<Uuid>> {
    let rows = tx.query(
        sql!("webhook_deliveries/failed_since"),
        &[&tenant_id, &endpoint_id, &since, &limit],
    )?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Writes new deliveries of the events of old ones, each in the place of its old one.
///
/// # Errors
/// The database's.
pub fn resend(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    old: &[Uuid],
    new: &[NewDelivery],
    now: OffsetDateTime,
) -> Result<()> {
    let (ids, _, jobs) = columns(new);
    tx.execute(
        sql!("webhook_deliveries/resend"),
        &[&tenant_id, &old, &ids, &jobs, &now],
    )?;
    Ok(())
}

/// How an endpoint is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// The receiver.
    pub url: String,
    /// The secret that signs: environment and name.
    pub secret: (String, String),
    /// The one that signs beside it.
    pub previous_secret: Option<(String, String)>,
}

/// Holds an endpoint while an attempt's row is written: no unregistering goes past it. `None`: it is
/// not registered.
///
/// # Errors
/// The database's.
pub fn hold_endpoint(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    endpoint_id: Uuid,
    now: OffsetDateTime,
) -> Result<Option<Sending>> {
    let row = tx.query_opt(
        sql!("webhook_deliveries/sending"),
        &[&tenant_id, &endpoint_id, &now],
    )?;
    let Some(row) = row else { return Ok(None) };
    let previous: Option<String> = row.try_get(3)?;
    let previous_name: Option<String> = row.try_get(4)?;
    Ok(Some(Sending {
        url: row.try_get(0)?,
        secret: (row.try_get(1)?, row.try_get(2)?),
        previous_secret: previous.zip(previous_name),
    }))
}

/// A delivery that waits, locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its event.
    pub event_id: Uuid,
    /// The attempts that have ended.
    pub attempts: i32,
    /// The event's body; none where it was dropped.
    pub body: Option<String>,
    /// The next attempt has begun and has no end: for how long it may still be in flight.
    pub open: Option<Duration>,
}

/// Locks a delivery that waits under this job. `None`: it has ended, or waits under another.
///
/// # Errors
/// The database's.
pub fn take(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    delivery_id: Uuid,
    job_id: i64,
) -> Result<Option<Waiting>> {
    let row = tx.query_opt(
        sql!("webhook_deliveries/take"),
        &[&tenant_id, &delivery_id, &job_id],
    )?;
    let Some(row) = row else { return Ok(None) };
    let is_open: bool = row.try_get(3)?;
    let left = milliseconds(row.try_get(4)?);
    Ok(Some(Waiting {
        event_id: row.try_get(0)?,
        attempts: row.try_get(1)?,
        body: row.try_get(2)?,
        open: is_open.then_some(left),
    }))
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

fn count_of(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Writes the row of an attempt that is about to begin, and is over `within` this time.
///
/// # Errors
/// The database's.
pub fn begin_attempt(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    (endpoint_id, delivery_id): (Uuid, Uuid),
    attempt: i32,
    within: Duration,
) -> Result<()> {
    let within_ms = count_of(within);
    tx.execute(
        sql!("webhook_deliveries/begin_attempt"),
        &[&tenant_id, &delivery_id, &attempt, &endpoint_id, &within_ms],
    )?;
    Ok(())
}

/// Removes the row of an attempt for which nothing was sent, so that it does not count; the delivery's
/// job is to be put off by `wait`. False: the attempt or the delivery has ended.
///
/// # Errors
/// The database's.
pub fn take_back_attempt(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    delivery_id: Uuid,
    attempt: i32,
    wait: Duration,
) -> Result<bool> {
    let row = tx.query_opt(
        sql!("webhook_deliveries/take_back_attempt"),
        &[&tenant_id, &delivery_id, &attempt, &count_of(wait)],
    )?;
    Ok(row.is_some())
}

/// How an attempt ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// How long it took; unknown after a crash.
    pub duration: Option<Duration>,
    /// That was long.
    pub is_slow: bool,
    /// Why it failed.
    pub reason: Option<&'static str>,
    /// What the receiver answered with.
    pub status: Option<i16>,
    /// What went wrong, for a person.
    pub message: Option<String>,
    /// Whom it connected to, or tried.
    pub address: Option<IpAddr>,
    /// The beginning of the answer's body.
    pub answer: Option<Vec<u8>>,
}

/// What becomes of a delivery whose attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// It is delivered.
    Delivered,
    /// It failed for good.
    Failed,
    /// It is tried again by a new job.
    Waits {
        /// That job.
        job_id: i64,
        /// After this time.
        wait: Duration,
    },
}

/// Ends an attempt; false: it is not the delivery's next one, or the delivery has ended.
///
/// # Errors
/// The database's.
pub fn end_attempt(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    delivery_id: Uuid,
    attempt: i32,
    ended: &Ended,
    becomes: Becomes,
) -> Result<bool> {
    let duration_ms = ended
        .duration
        .map(|time| i32::try_from(time.as_millis()).unwrap_or(i32::MAX));
    let (state, job_id, wait) = match becomes {
        Becomes::Delivered => ("delivered", None, Duration::ZERO),
        Becomes::Failed => ("failed", None, Duration::ZERO),
        Becomes::Waits { job_id, wait } => ("being-sent", Some(job_id), wait),
    };
    let wait_ms = count_of(wait);
    let row = tx.query_opt(
        sql!("webhook_deliveries/end_attempt"),
        &[
            &tenant_id,
            &delivery_id,
            &attempt,
            &duration_ms,
            &ended.reason,
            &ended.status,
            &ended.message,
            &ended.address,
            &ended.answer,
            &state,
            &job_id,
            &wait_ms,
            &ended.is_slow,
        ],
    )?;
    Ok(row.is_some())
}

/// Unregisters an endpoint: from the commit on no attempt at it begins. Nothing changes where it was.
///
/// # Errors
/// The database's.
pub fn unregister(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Ending>,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(
        sql!("webhook_deliveries/unregister"),
        &[&may.tenant_id(), &may.object_id(), &now],
    )?;
    Ok(())
}

/// Which deliveries of an unregistered endpoint are to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToFail {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// One of its deliveries alone.
    pub delivery_id: Option<Uuid>,
    /// At most this many.
    pub limit: i64,
}

/// Fails deliveries of an unregistered endpoint with a reason; none that is in flight. An attempt that
/// a crash left open ends with the reason `lost`. Answers with their jobs, which are to be removed.
///
/// # Errors
/// The database's.
pub fn fail_waiting(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    to_fail: ToFail,
    reason: &str,
    lost: &str,
) -> Result<Vec<Option<i64>>> {
    let rows = tx.query(
        sql!("webhook_deliveries/fail_waiting"),
        &[
            &tenant_id,
            &to_fail.endpoint_id,
            &to_fail.delivery_id,
            &to_fail.limit,
            &reason,
            &lost,
        ],
    )?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// For how long an attempt at the endpoint may still be in flight; zero: none is.
///
/// # Errors
/// The database's.
pub fn in_flight(sql: &mut impl Sql, tenant_id: Uuid, endpoint_id: Uuid) -> Result<Duration> {
    let row = sql.query_one(
        sql!("webhook_deliveries/in_flight"),
        &[&tenant_id, &endpoint_id],
    )?;
    Ok(milliseconds(row.try_get(0)?))
}

/// Makes the partitions around the month of `today`. Safe to repeat, and on several replicas at once.
///
/// # Errors
/// The database's.
pub fn attach_partitions(sql: &mut impl Sql, today: Date) -> Result<()> {
    sql.execute(sql!("webhook_deliveries/attach_partitions"), &[&today])?;
    Ok(())
}

/// The months that have partitions, oldest first.
///
/// # Errors
/// The database's.
pub fn months(sql: &mut impl Sql) -> Result<Vec<Date>> {
    let rows = sql.query(sql!("webhook_deliveries/months"), &[])?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Drops a month, unless something that still waits needs it; whether it did.
///
/// # Errors
/// The database's; also when the tables are in use at this moment.
pub fn drop_month(sql: &mut impl Sql, month: Date) -> Result<bool> {
    let row = sql.query_one(sql!("webhook_deliveries/drop_month"), &[&month])?;
    Ok(row.try_get(0)?)
}

/// Endpoints that were unregistered and have deliveries that wait: tenant and endpoint.
///
/// # Errors
/// The database's.
pub fn unregistered_waiting(sql: &mut impl Sql, limit: i64) -> Result<Vec<(Uuid, Uuid)>> {
    let rows = sql.query(sql!("webhook_deliveries/unregistered_waiting"), &[&limit])?;
    let pair = |row: &postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(pair).collect()
}

/// Deletes endpoints that were unregistered before this time and have no delivery left; how many.
///
/// # Errors
/// The database's.
pub fn prune_endpoints(sql: &mut impl Sql, before: OffsetDateTime) -> Result<u64> {
    sql.execute(sql!("webhook_deliveries/prune_endpoints"), &[&before])
}
