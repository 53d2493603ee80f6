//! What became of a webhook endpoint's events: its deliveries with their attempts, read.
//!
//! Not here: every write of them (`webhook_deliveries`).

use super::Sql;
use super::page::{Order, Request};
use super::webhook_endpoints::WebhookEndpoint;
use crate::error::{Error, Result};
use crate::proof::{Admin, May};
use crate::sql;
use postgres::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// The states of a delivery (specification section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WebhookDeliveryState")]
pub enum State {
    /// It waits for an attempt, or one is under way.
    BeingSent,
    /// The receiver answered with a 2xx status.
    Delivered,
    /// Nothing more is sent.
    Failed,
}

impl State {
    const ALL: [Self; 3] = [Self::BeingSent, Self::Delivered, Self::Failed];

    /// As it is stored.
    pub const fn text(self) -> &'static str {
        match self {
            Self::BeingSent => "being-sent",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
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
    /// When it ended; none: the version before began it, and it is under way.
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

fn delivery(row: &Row) -> Result<Delivery> {
    let state: &str = row.get(7);
    let known = State::ALL.into_iter().find(|known| known.text() == state);
    Ok(Delivery {
        delivery_id: row.get(0),
        endpoint_id: row.get(1),
        event_id: row.get(2),
        kind: row.get(3),
        run_id: row.get(4),
        resends: row.get(5),
        resent_as: row.get(6),
        state: known.ok_or_else(|| Error::internal(format!("a delivery is {state}")))?,
        attempts: row.get(8),
        next_attempt_at: row.get(9),
        last_error: row.get(10),
        last_status: row.get(11),
        created_at: row.get(12),
        ended_at: row.get(13),
        run_status: row.get(14),
    })
}

fn attempt(row: &Row) -> Attempt {
    Attempt {
        attempt: row.get(0),
        begun_at: row.get(1),
        ended_at: row.get(2),
        duration_ms: row.get(3),
        reason: row.get(4),
        status: row.get(5),
        message: row.get(6),
        address: row.get(7),
        answer: row.get(8),
    }
}

/// A page of an endpoint's deliveries; with `state`, of those alone.
///
/// # Errors
/// `database-unavailable`.
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
    let statement = match page.order {
        Order::Asc => sql!("webhook_history/list_asc"),
        Order::Desc => sql!("webhook_history/list_desc"),
    };
    let rows = sql.query(
        statement,
        &[&tenant_id, &endpoint_id, &page.after, &rows, &states],
    )?;
    rows.iter().map(delivery).collect()
}

fn row(
    sql: &mut impl Sql,
    may: &impl May<Admin, WebhookEndpoint>,
    delivery_id: Uuid,
) -> Result<Row> {
    let row = sql.query_opt(
        sql!("webhook_history/find"),
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
    delivery(&row(sql, may, delivery_id)?)
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
    let attempts = sql.query(
        sql!("webhook_history/attempts"),
        &[&may.tenant_id(), &delivery_id],
    )?;
    Ok(Whole {
        delivery: delivery(&found)?,
        attempts: attempts.iter().map(attempt).collect(),
        body: found.get(15),
    })
}
