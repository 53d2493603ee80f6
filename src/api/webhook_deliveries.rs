//! `/v1/webhook-endpoints/{webhookEndpointId}/deliveries`: what became of the events of an endpoint,
//! and what a person can do about it. Specification sections 3.4 and 6.4.

use super::page_query::page_query;
use super::request_parts::id_in_path;
use super::webhook_endpoints::is_on;
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing, Query};
use crate::http::output::{Accepted, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::{Timestamp, rfc3339};
use crate::proof::{Admin, Authorized};
use crate::store::page::Page;
use crate::store::webhook_deliveries::{self, Attempt, Delivery, State};
use crate::store::webhook_endpoints::{self, WebhookEndpoint};
use crate::webhooks::event::TEST;
use crate::webhooks::reason::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Deliveries that one request sends again at most.
const RESENT_MOST: u32 = 1_000;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Post};
    let one = "/v1/webhook-endpoints/{webhookEndpointId}/deliveries/{webhookDeliveryId}";
    let on = &[Code::NotConfigured];
    let asks = &[Code::NotConfigured, Code::Conflict];
    vec![
        route(
            Post,
            "/v1/webhook-endpoints/{webhookEndpointId}/test",
            "webhookEndpoints.sendTest", "Send a test to a webhook endpoint, whichever events it takes",
            test,
        )
        .answers(asks),
        route(
            Post,
            "/v1/webhook-endpoints/{webhookEndpointId}/resend",
            "webhookEndpoints.resendFailed", "Send again what failed for good since a time: the oldest 1000 deliveries that were not sent again yet",
            resend_failed,
        )
        .answers(asks),
        route(
            Get,
            "/v1/webhook-endpoints/{webhookEndpointId}/deliveries",
            "webhookEndpoints.deliveries.list", "List the deliveries to a webhook endpoint, newest first unless asked otherwise",
            list,
        )
        .answers(on),
        route(
            Get,
            one,
            "webhookEndpoints.deliveries.get", "Read a delivery with its attempts and its event",
            read,
        )
        .answers(on),
        route(
            Post,
            "/v1/webhook-endpoints/{webhookEndpointId}/deliveries/{webhookDeliveryId}/resend",
            "webhookEndpoints.deliveries.resend", "Send a delivery again: a new delivery of the same event, with the event's id",
            resend,
        )
        .answers(asks),
    ]
}

/// An event on its way to an endpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookDelivery")]
struct View {
    id: Uuid,
    endpoint_id: Uuid,
    /// The event: the header `webhook-id` of every attempt.
    event_id: Uuid,
    /// The event's kind.
    #[serde(rename = "type")]
    kind: String,
    /// A person sent it as a test.
    is_test: bool,
    /// The run that it tells of; only of `run.finished`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<Uuid>,
    /// How that run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_status: Option<String>,
    /// The delivery that this one sends again.
    #[serde(skip_serializing_if = "Option::is_none")]
    resends: Option<Uuid>,
    /// The newest delivery that sends this one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    resent_as: Option<Uuid>,
    state: State,
    /// Its story in a sentence.
    summary: String,
    /// Attempts that have ended.
    attempt_count: i32,
    next_attempt_at: Option<Timestamp>,
    /// Why the newest attempt failed.
    #[schemars(with = "Option<Reason>")]
    last_error: Option<String>,
    /// The HTTP status that the newest attempt was answered with, once delivered a 2xx. Null before
    /// the first attempt, without an answer, and if unregistering the endpoint ended the delivery.
    #[schemars(range(min = 100, max = 999))]
    last_status: Option<i16>,
    created_at: Timestamp,
    /// When it was delivered, or failed for good.
    ended_at: Option<Timestamp>,
}

/// One attempt of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookAttempt")]
struct AttemptView {
    /// From 1.
    attempt: i32,
    begun_at: Timestamp,
    /// Null where the version before began it, and it is under way.
    ended_at: Option<Timestamp>,
    duration_ms: Option<i32>,
    /// Why it failed; null unless it did.
    #[schemars(with = "Option<Reason>")]
    reason: Option<String>,
    /// What went wrong, in words; it names the rule and the address that refuse the receiver.
    message: Option<String>,
    /// The HTTP status of the answer.
    #[schemars(range(min = 100, max = 999))]
    status: Option<i16>,
    /// The address that was connected to, or tried.
    address: Option<String>,
    /// The first 16 KiB of the answer's body; what is no UTF-8 is replaced.
    answer: Option<String>,
}

/// A delivery with all that is known of it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookDeliveryWithAttempts")]
struct WholeView {
    #[serde(flatten)]
    delivery: View,
    /// Those that have ended, the first one first.
    attempts: Vec<AttemptView>,
    /// The body that is sent; null once it was dropped, with what was sent before.
    event: Option<Value>,
}

page_query! {
    /// Which deliveries.
    ListDeliveries {
        /// In this state alone.
        state: Option<State>,
    }
}

/// From when on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"failedSince": "2026-01-01T00:00:00Z"}))]
struct ResendFailed {
    /// Deliveries that failed for good then or later.
    failed_since: Timestamp,
}

/// What is sent again.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Resent {
    /// Deliveries that are sent again.
    count: u64,
    /// More failed since then: ask again.
    has_more: bool,
}

/// In words; a text that another version wrote stands for itself.
fn sentence(reason: &str, status: Option<i16>) -> String {
    Reason::parse(reason).map_or_else(|| reason.to_owned(), |reason| reason.sentence(status))
}

fn attempts(count: i32) -> String {
    match count {
        1 => "after 1 attempt".to_owned(),
        _ => format!("after {count} attempts"),
    }
}

/// The story of section 6.4, point 3.
fn summary(delivery: &Delivery) -> String {
    let after = attempts(delivery.attempts);
    let why = delivery
        .last_error
        .as_deref()
        .map(|error| sentence(error, delivery.last_status));
    match (delivery.state, why) {
        (State::Delivered, _) => format!("delivered {after}"),
        (State::Failed, Some(why)) if delivery.attempts == 0 => {
            format!("failed before the first attempt: {why}")
        }
        (State::Failed, Some(why)) => format!("failed {after}: {why}"),
        (State::Failed, None) => format!("failed {after}"),
        (State::BeingSent, None) => "being sent for the first time".to_owned(),
        (State::BeingSent, Some(why)) => match delivery.next_attempt_at {
            Some(at) => format!(
                "retrying {after}: {why}, next attempt {}",
                rfc3339::text(at)
            ),
            None => format!("retrying {after}: {why}, an attempt is under way"),
        },
    }
}

impl From<Delivery> for View {
    fn from(delivery: Delivery) -> Self {
        Self {
            summary: summary(&delivery),
            id: delivery.delivery_id,
            endpoint_id: delivery.endpoint_id,
            event_id: delivery.event_id,
            is_test: delivery.kind == TEST,
            kind: delivery.kind,
            run_id: delivery.run_id,
            run_status: delivery.run_status,
            resends: delivery.resends,
            resent_as: delivery.resent_as,
            state: delivery.state,
            attempt_count: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at.map(Into::into),
            last_error: delivery.last_error,
            last_status: delivery.last_status,
            created_at: delivery.created_at.into(),
            ended_at: delivery.ended_at.map(Into::into),
        }
    }
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        let text = |answer: Vec<u8>| String::from_utf8_lossy(&answer).into_owned();
        let in_words = attempt.reason.as_deref();
        let in_words = in_words.map(|reason| sentence(reason, attempt.status));
        Self {
            attempt: attempt.attempt,
            begun_at: attempt.begun_at.into(),
            ended_at: attempt.ended_at.map(Into::into),
            duration_ms: attempt.duration_ms,
            message: attempt.message.or(in_words),
            reason: attempt.reason,
            status: attempt.status,
            address: attempt.address,
            answer: attempt.answer.map(text),
        }
    }
}

type Endpoint = Authorized<WebhookEndpoint, Admin>;

fn test(cx: &Cx<'_>, endpoint: Endpoint, _: Nothing) -> Result<Accepted<View>> {
    is_on(cx)?;
    let (tenant_id, endpoint_id) = (endpoint.caller().tenant_id, endpoint.row().endpoint_id);
    let queued = cx.transact(|tx| {
        webhook_endpoints::has_room(tx, &endpoint)?;
        let id = cx.webhooks().test(tx, tenant_id, endpoint_id)?;
        webhook_deliveries::find(tx, &endpoint, id)
    })?;
    Ok(Accepted(queued.into()))
}

fn resend(cx: &Cx<'_>, endpoint: Endpoint, _: Nothing) -> Result<Accepted<View>> {
    is_on(cx)?;
    let (tenant_id, endpoint_id) = (endpoint.caller().tenant_id, endpoint.row().endpoint_id);
    let delivery_id = id_in_path(cx, "webhookDeliveryId", "webhook-delivery")?;
    let queued = cx.transact(|tx| {
        webhook_endpoints::has_room(tx, &endpoint)?;
        let id = cx
            .webhooks()
            .resend(tx, tenant_id, endpoint_id, delivery_id)?;
        webhook_deliveries::find(tx, &endpoint, id)
    })?;
    Ok(Accepted(queued.into()))
}

fn resend_failed(
    cx: &Cx<'_>,
    endpoint: Endpoint,
    Body(from): Body<ResendFailed>,
) -> Result<Accepted<Resent>> {
    is_on(cx)?;
    let since = from.failed_since.0;
    if !(1970..=9999).contains(&since.year()) {
        let expected = "a time between the years 1970 and 9999";
        return Err(super::request_parts::invalid_body(
            "$.failedSince",
            expected,
        ));
    }
    let (tenant_id, endpoint_id) = (endpoint.caller().tenant_id, endpoint.row().endpoint_id);
    let (count, has_more) = cx.transact(|tx| {
        webhook_endpoints::has_room(tx, &endpoint)?;
        let webhooks = cx.webhooks();
        webhooks.resend_failed(tx, tenant_id, endpoint_id, since, RESENT_MOST)
    })?;
    Ok(Accepted(Resent { count, has_more }))
}

fn list(
    cx: &Cx<'_>,
    endpoint: Endpoint,
    Query(query): Query<ListDeliveries>,
) -> Result<Found<Page<View>>> {
    is_on(cx)?;
    let page = query.page(&(
        "webhook-deliveries",
        endpoint.row().endpoint_id,
        query.state,
    ))?;
    let rows = webhook_deliveries::list(&mut cx.store().session()?, &endpoint, query.state, &page)?;
    Ok(Found(page.page(rows, |row| row.delivery_id, View::from)))
}

fn read(cx: &Cx<'_>, endpoint: Endpoint, _: Nothing) -> Result<Found<WholeView>> {
    is_on(cx)?;
    let delivery_id = id_in_path(cx, "webhookDeliveryId", "webhook-delivery")?;
    let whole = webhook_deliveries::whole(&mut cx.store().session()?, &endpoint, delivery_id)?;
    let event = whole.body.as_deref().map(serde_json::from_str).transpose();
    Ok(Found(WholeView {
        delivery: whole.delivery.into(),
        attempts: whole.attempts.into_iter().map(AttemptView::from).collect(),
        event: event.map_err(Error::internal)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::OffsetDateTime;
    use time::macros::datetime;

    fn story(state: State, attempts: i32, error: Option<(&str, Option<i16>)>) -> String {
        summary(&Delivery {
            delivery_id: Uuid::nil(),
            endpoint_id: Uuid::nil(),
            event_id: Uuid::nil(),
            kind: TEST.to_owned(),
            run_id: None,
            run_status: None,
            resends: None,
            resent_as: None,
            state,
            attempts,
            next_attempt_at: (attempts == 2).then_some(datetime!(2026-01-02 03:04:05 UTC)),
            last_error: error.map(|(error, _)| error.to_owned()),
            last_status: error.and_then(|(_, status)| status),
            created_at: OffsetDateTime::UNIX_EPOCH,
            ended_at: None,
        })
    }

    #[test]
    fn the_story_of_a_delivery() {
        let http = Some(("http-status", Some(503)));
        for (story, expected) in [
            (
                story(State::BeingSent, 0, None),
                "being sent for the first time",
            ),
            (
                story(State::Delivered, 1, None),
                "delivered after 1 attempt",
            ),
            (
                story(State::Delivered, 3, http),
                "delivered after 3 attempts",
            ),
            (
                story(State::BeingSent, 2, http),
                "retrying after 2 attempts: HTTP 503, next attempt 2026-01-02T03:04:05.000Z",
            ),
            (
                story(State::BeingSent, 3, Some(("nothing-listening", None))),
                "retrying after 3 attempts: nothing listening, an attempt is under way",
            ),
            (
                story(State::Failed, 10, Some(("no-answer", None))),
                "failed after 10 attempts: no answer in time",
            ),
            (
                story(State::Failed, 0, Some(("endpoint-unregistered", None))),
                "failed before the first attempt: the endpoint was unregistered",
            ),
        ] {
            assert_eq!(story, expected);
        }
    }
}
