//! Events and deliveries, as they are written: by whoever emits, by the end of an endpoint, by the
//! upkeep.
//!
//! A delivery is changed by the holder of its job alone. Whatever says when something is due or over is
//! Postgres's clock.
//!
//! Not here: attempts (`webhook_attempts`), lists for people (`webhook_history`), and endpoints as people
//! change them (`webhook_endpoints`).

use super::webhook_attempts::{Begun, begun_with};
use super::webhook_endpoints::Ending;
use super::{Parameter, Sql, Tx};
use crate::error::{Error, Result};
use crate::ids::whole_ms;
use crate::proof::{Admin, May};
use crate::sql;
use jobs::protocol::ClaimedRow;
use postgres::Row;
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

/// What the filters of endpoints look at: the rules of specification section 6.3.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Where it happened.
    pub project_id: Option<Uuid>,
    /// Of a run.
    pub flow_id: Option<&'a str>,
    /// Of a run.
    pub dry_run: bool,
}

/// A place for an attempt that begins where its event is emitted.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// This process, for people.
    pub worker: &'a str,
    /// For how long the job's lease stands at least.
    pub lease: Duration,
    /// The endpoints that no attempt may begin at.
    pub not_to: &'a [Uuid],
}

/// Whom an event was told to.
#[derive(Debug)]
pub struct Told {
    /// How many endpoints are told of it.
    pub matched: usize,
    /// The attempt that began with it, at this endpoint, and its job.
    pub begun: Option<(Uuid, ClaimedRow, Begun)>,
}

/// Writes an event with a delivery, and its job, to every endpoint of the tenant that is told of it. If
/// there are fewer ids than endpoints, nothing is written. An endpoint that is well has `cap_well` attempts
/// in flight, another one. Where it is one endpoint that is well, and to which little is under way, its attempt may
/// begin `at_once`.
///
/// # Errors
/// The database's.
pub fn tell<J: jobs::Job>(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    event: &NewEvent<'_>,
    about: About<'_>,
    delivery_ids: &[Uuid],
    cap_well: u32,
    at_once: Option<Place<'_>>,
) -> Result<Told> {
    let whole = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let (cap, max_attempts) = (whole(cap_well), whole(J::MAX_ATTEMPTS));
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &event.kind,
        &about.project_id,
        &about.flow_id,
        &about.dry_run,
        &event.event_id,
        &event.body,
        &event.run_id,
        &event.created_at,
        &delivery_ids,
        &cap,
        &J::QUEUE,
        &J::NAME,
        &max_attempts,
    ];
    let Some(Place {
        worker,
        lease,
        not_to,
    }) = at_once
    else {
        let row = tx.query_one(sql!("webhook_deliveries/emit"), &parameters)?;
        return Ok(Told {
            matched: matched(&row)?,
            begun: None,
        });
    };
    let lease_ms = whole_ms(lease);
    parameters.extend_from_slice(&[&worker, &lease_ms, &not_to]);
    let row = tx.query_one(sql!("webhook_deliveries/tell"), &parameters)?;
    let matched = matched(&row)?;
    let Some(lease_id) = row.try_get(3)? else {
        return Ok(Told {
            matched,
            begun: None,
        });
    };
    let endpoint_id: Uuid = row.try_get(1)?;
    let job = ClaimedRow {
        id: row.try_get(2)?,
        lease_id,
        attempt: 1,
        max_attempts: J::MAX_ATTEMPTS,
        name: J::NAME.to_owned(),
        key: Some(endpoint_id.to_string()),
        key_cap: Some(cap_well),
        payload: row.try_get(4)?,
    };
    let begun = begun_with(&row, 5, event.event_id, 1, event.body.to_owned())?;
    Ok(Told {
        matched,
        begun: Some((endpoint_id, job, begun)),
    })
}

/// How many endpoints an event was told to.
fn matched(row: &Row) -> Result<usize> {
    let matched: i32 = row.try_get(0)?;
    usize::try_from(matched).map_err(Error::internal)
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
/// a crash hid is written with the reason `lost`. Answers with their jobs, which are to be removed.
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
