//! Webhook events and their deliveries: written by emitters, by unregistering and by maintenance;
//! read by people.
//!
//! Only the holder of its job changes a delivery. PostgreSQL's clock decides when something is due
//! or over.
//!
//! Not here: attempts (`webhook_attempts`), and endpoints as people change them
//! (`webhook_endpoints`).

use super::page::Request;
use super::webhook_endpoints::{Ending, WebhookEndpoint};
use super::{Columns, FromRow, Sql, Tx};
use crate::error::{Error, Result};
use crate::proof::{Admin, May};
use crate::{from_row, list_sql, sql, texts};
use postgres::Row;
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
        is_well: row.column("is_well")?,
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

/// Writes an event with a delivery, and its job, for every endpoint of the tenant that matches; how many match. With
/// fewer ids than that nothing is written. An endpoint that is well has `cap_well` attempts in flight at most, another
/// one.
pub fn emit<J: jobs::Job>(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    event: &NewEvent<'_>,
    about: About<'_>,
    delivery_ids: &[Uuid],
    cap_well: u32,
) -> Result<usize> {
    let whole = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let row = tx.query_one(
        sql!("webhook_deliveries/emit"),
        &[
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
            &whole(cap_well),
            &J::QUEUE,
            &J::NAME,
            &whole(J::MAX_ATTEMPTS),
        ],
    )?;
    let matched: i32 = row.column("matched")?;
    usize::try_from(matched).map_err(Error::internal)
}

/// Writes an event with its deliveries.
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
    row.map(|row| row.column("has_event")).transpose()
}

/// Locks what failed for good since a time and is not being sent again, oldest first.
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
    rows.iter().map(|row| row.column("delivery_id")).collect()
}

/// Writes new deliveries of the events of old ones, each in the place of its old one.
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

/// Fails deliveries of an unregistered endpoint with a reason; none that is in flight, nor one that another transaction has
/// locked, or its job. An attempt that
/// a crash hid is written with the reason `lost`. Answers with their jobs, which are to be removed.
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
    rows.iter().map(|row| row.column("job_id")).collect()
}

/// Makes the partitions around the month of `today`. Safe to repeat, and on several replicas at once.
pub fn attach_partitions(sql: &mut impl Sql, today: Date) -> Result<()> {
    sql.execute(sql!("webhook_deliveries/attach_partitions"), &[&today])?;
    Ok(())
}

/// The months that have partitions, oldest first.
pub fn months(sql: &mut impl Sql) -> Result<Vec<Date>> {
    let rows = sql.query(sql!("webhook_deliveries/months"), &[])?;
    rows.iter().map(|row| row.column("month")).collect()
}

/// Drops a month, unless something that still waits needs it; whether it did.
///
/// # Errors
/// The database's; also when the tables are in use at this moment.
pub fn drop_month(sql: &mut impl Sql, month: Date) -> Result<bool> {
    let row = sql.query_one(sql!("webhook_deliveries/drop_month"), &[&month])?;
    row.column("dropped")
}

/// Endpoints that were unregistered and have deliveries that wait: tenant and endpoint.
pub fn unregistered_waiting(sql: &mut impl Sql, limit: i64) -> Result<Vec<(Uuid, Uuid)>> {
    let rows = sql.query(sql!("webhook_deliveries/unregistered_waiting"), &[&limit])?;
    let pair = |row: &postgres::Row| Ok((row.column("tenant_id")?, row.column("endpoint_id")?));
    rows.iter().map(pair).collect()
}

/// Deletes endpoints that were unregistered before this time and have no delivery left; how many.
pub fn prune_endpoints(sql: &mut impl Sql, before: OffsetDateTime) -> Result<u64> {
    sql.execute(sql!("webhook_deliveries/prune_endpoints"), &[&before])
}

texts! {
    // Specification, section 3.4.
    /// The states of a delivery.
    #[schemars(rename = "WebhookDeliveryState")]
    State {
        /// It waits for an attempt, or one is under way.
        BeingSent = "being-sent",
        /// The receiver answered with a 2xx status.
        Delivered = "delivered",
        /// Nothing more is sent.
        Failed = "failed",
    }
}

/// An event on its way to an endpoint.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its id.
    pub delivery_id: Uuid,
    /// Where to.
    pub endpoint_id: Uuid,
    /// The event: the `webhook-id` of every attempt.
    pub event_id: Uuid,
    /// The event's kind.
    pub kind: String,
    /// The run that it tells of.
    pub run_id: Option<Uuid>,
    /// How that run ended.
    pub run_status: Option<String>,
    /// The delivery that this one sends again.
    pub resends: Option<Uuid>,
    /// The newest delivery that sends this one again.
    pub resent_as: Option<Uuid>,
    /// What became of it.
    pub state: State,
    /// Attempts that have ended.
    pub attempts: i32,
    /// When the next one is due.
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Why the newest attempt failed.
    pub last_error: Option<String>,
    /// The status that it failed with.
    pub last_status: Option<i16>,
    /// When it was queued.
    pub created_at: OffsetDateTime,
    /// When it was delivered, or failed for good.
    pub ended_at: Option<OffsetDateTime>,
}

/// One attempt of a delivery.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: i32,
    /// When it began.
    pub begun_at: OffsetDateTime,
    /// When it ended; none: it is under way.
    pub ended_at: Option<OffsetDateTime>,
    /// How long it took.
    pub duration_ms: Option<i32>,
    /// Why it failed; none: it was delivered, or has not ended.
    pub reason: Option<String>,
    /// What the receiver answered with.
    pub status: Option<i16>,
    /// What went wrong, in a sentence.
    pub message: Option<String>,
    /// The address that was connected to, or tried.
    pub address: Option<String>,
    /// The beginning of what the receiver answered.
    pub answer: Option<Vec<u8>>,
}

/// A delivery, its attempts in order, and the body that is sent; none once that was dropped.
#[derive(Debug, Clone)]
pub struct Whole {
    /// The delivery.
    pub delivery: Delivery,
    /// Its attempts, the first one first.
    pub attempts: Vec<Attempt>,
    /// The event as it is sent.
    pub body: Option<String>,
}

from_row!(Delivery {
    delivery_id,
    endpoint_id,
    event_id,
    kind,
    run_id,
    run_status,
    resends,
    resent_as,
    state,
    attempts,
    next_attempt_at,
    last_error,
    last_status,
    created_at,
    ended_at,
});

from_row!(Attempt {
    attempt,
    begun_at,
    ended_at,
    duration_ms,
    reason,
    status,
    message,
    address,
    answer,
});

/// A page of an endpoint's deliveries; with `state`, of those alone.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Admin, WebhookEndpoint>,
    state: Option<State>,
    page: &Request,
) -> Result<Vec<Delivery>> {
    let (tenant_id, endpoint_id, rows) = (may.tenant_id(), may.object_id(), page.rows());
    let states = match &state {
        None => State::ALL.as_slice(),
        Some(state) => std::slice::from_ref(state),
    };
    let states: Vec<&str> = states.iter().map(|state| state.text()).collect();
    sql.fetch_all(
        list_sql!("webhook_deliveries/list").by(page.order),
        &[&tenant_id, &endpoint_id, &page.after, &rows, &states],
    )
}

fn row(
    sql: &mut impl Sql,
    may: &impl May<Admin, WebhookEndpoint>,
    delivery_id: Uuid,
) -> Result<Row> {
    let row = sql.query_opt(
        sql!("webhook_deliveries/find"),
        &[&may.tenant_id(), &may.object_id(), &delivery_id],
    )?;
    row.ok_or_else(|| Error::not_found("webhook-delivery", delivery_id))
}

/// A delivery of the endpoint.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn find(
    sql: &mut impl Sql,
    may: &impl May<Admin, WebhookEndpoint>,
    delivery_id: Uuid,
) -> Result<Delivery> {
    Delivery::from_row(&row(sql, may, delivery_id)?)
}

/// A delivery of the endpoint with all that is known of it.
///
/// # Errors
/// `not-found`, `database-unavailable`.
pub fn whole(
    sql: &mut impl Sql,
    may: &impl May<Admin, WebhookEndpoint>,
    delivery_id: Uuid,
) -> Result<Whole> {
    let found = row(sql, may, delivery_id)?;
    let attempts = sql.fetch_all(
        sql!("webhook_deliveries/attempts"),
        &[&may.tenant_id(), &delivery_id],
    )?;
    Ok(Whole {
        delivery: Delivery::from_row(&found)?,
        attempts,
        body: found.column("body")?,
    })
}
