//! `/v1/webhook-endpoints`: the receivers of a tenant's events. Specification sections 2.6, 6.1, 6.3.
//!
//! Where no secrets backend is set nothing is sent, and every route says so once the caller is known
//! and may.
//!
//! Not here: deliveries (`webhook_deliveries`), which addresses are refused (`outbound`).

use super::page_query::PageQuery;
use super::request_parts::{given, invalid_body, request_key};
use crate::error::{Code, Error, Result};
use crate::flows::definition::is_flow_id;
use crate::http::access::{MayName, NamingProject, OnTenant};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Body, Name, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::outbound::{Failure, MAX_URL_BYTES, Verdict};
use crate::proof::{Admin, Authorized};
use crate::secrets::{SecretRef, Unreadable};
use crate::store::page::Page;
use crate::store::webhook_endpoints::{self, About, Ending, WebhookEndpoint};
use crate::store::{Find, runs};
use crate::text::beginning;
use crate::webhooks::event::Kind;
use crate::webhooks::reason::Reason;
use crate::webhooks::sign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Flows in a filter at most.
const FLOWS_MOST: usize = 200;

/// How long a look-up of the receiver's name may take when its URL is judged.
const CHECKED_WITHIN: Duration = Duration::from_secs(5);

/// The longest environment and the longest name of a secret.
const SECRET_MOST: (usize, usize) = (100, 128);

const ALL: &str = "/v1/webhook-endpoints";
const ONE: &str = "/v1/webhook-endpoints/{webhookEndpointId}";

/// What judging a receiver's URL and its secret can answer.
const URL_CODES: [Code; 5] = [
    Code::NotConfigured,
    Code::WebhookUrlRefused,
    Code::WebhookSecretNotFound,
    Code::WebhookSecretWeak,
    Code::SecretsUnavailable,
];

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let on = &[Code::NotConfigured];
    vec![
        route(Post, ALL, "webhookEndpoints.create", "Register a receiver of webhooks", create)
            .repeatable("Names the request: a repetition within 24 hours answers with the endpoint that the first one registered.")
            .answers(&URL_CODES)
            .answers(&[
                Code::Conflict,
                Code::NotFound,
                Code::IdempotencyMismatch,
                Code::IdempotencyInFlight,
            ]),
        route(Get, ALL, "webhookEndpoints.list", "List the webhook endpoints", list).answers(on),
        route(
            Post,
            "/v1/webhook-endpoints/check-url",
            "webhookEndpoints.checkUrl", "Say whether webhooks may go to a URL, and which rule refuses which address; nothing is registered",
            check_url,
        )
        .answers(on),
        route(Get, ONE, "webhookEndpoints.get", "Read a webhook endpoint", read).answers(on),
        route(
            Patch,
            ONE,
            "webhookEndpoints.update", "Change a webhook endpoint: what is left out stays, a null filter is removed, another secret signs beside the earlier one for 24 hours",
            change,
        )
        .answers(&URL_CODES),
        route(
            Delete,
            ONE,
            "webhookEndpoints.unregister", "Unregister a webhook endpoint: what waits fails, and the answer comes once nothing is under way",
            unregister,
        )
        .answers(&[Code::NotConfigured, Code::Conflict]),
    ]
}

/// Refuses where nothing is sent.
pub(super) fn is_on(cx: &Cx<'_>) -> Result<()> {
    if cx.secrets().is_on() {
        return Ok(());
    }
    let setting = "SVC_SECRETS_BACKEND";
    Err(Error::new(
        Code::NotConfigured,
        format!(
            "Outbound webhooks are not turned on here: a secrets backend must be set. Set {setting}."
        ),
    )
    .detail("setting", setting))
}

/// Which events of its kinds an endpoint takes. With a filter, dry runs are left out unless asked for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "WebhookFilter")]
struct Filter {
    /// Of `run.finished`: runs of these flows alone, any version of them. It says nothing of other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    flow_ids: Option<Vec<Name>>,
    /// Of this project alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project_id: Option<Id>,
    /// Of `run.finished`: dry runs, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_dry_runs: Option<bool>,
}

/// The filter as it stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookFilterView")]
struct FilterView {
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_dry_runs: Option<bool>,
}

/// How deliveries to an endpoint go.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "WebhookEndpointState")]
enum State {
    /// The newest attempt succeeded, or there was none.
    Healthy,
    /// The newest attempt failed.
    Failing,
}

/// How many deliveries an endpoint has.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookDeliveryCounts")]
struct Counts {
    delivered: i64,
    failed: i64,
    /// 1000 stands for 1000 or more.
    being_sent: i64,
}

/// A secret that signs beside the one that is named now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PreviousWebhookSecret")]
struct PreviousSecret {
    secret_ref: SecretRef,
    signs_until: Timestamp,
}

/// A receiver of webhooks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookEndpoint")]
struct View {
    endpoint_id: Uuid,
    url: String,
    #[schemars(with = "Vec<Kind>")]
    events: Vec<String>,
    /// The secret that signs, by name only.
    secret_ref: SecretRef,
    /// For 24 hours after another secret was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret: Option<PreviousSecret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<FilterView>,
    state: State,
    deliveries: Counts,
    /// When an attempt last succeeded.
    last_delivered_at: Option<Timestamp>,
    /// When an attempt last failed.
    last_failed_at: Option<Timestamp>,
    /// Why that attempt failed.
    #[schemars(with = "Option<Reason>")]
    last_error: Option<String>,
    /// The HTTP status that it failed with.
    #[schemars(range(min = 100, max = 999))]
    last_status: Option<i16>,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<WebhookEndpoint> for View {
    fn from(endpoint: WebhookEndpoint) -> Self {
        let previous = |(secret_ref, signs_until): (SecretRef, OffsetDateTime)| PreviousSecret {
            secret_ref,
            signs_until: signs_until.into(),
        };
        Self {
            endpoint_id: endpoint.endpoint_id,
            url: endpoint.url,
            events: endpoint.events,
            secret_ref: endpoint.secret,
            previous_secret: endpoint.previous_secret.map(previous),
            filter: endpoint.filter.map(|filter| FilterView {
                flow_ids: filter.flow_ids,
                project_id: filter.project_id,
                include_dry_runs: filter.include_dry_runs,
            }),
            state: match endpoint.is_failing {
                true => State::Failing,
                false => State::Healthy,
            },
            deliveries: Counts {
                delivered: endpoint.delivered,
                failed: endpoint.failed,
                being_sent: endpoint.being_sent,
            },
            last_delivered_at: endpoint.last_delivered_at.map(Into::into),
            last_failed_at: endpoint.last_failed_at.map(Into::into),
            last_error: endpoint.last_error,
            last_status: endpoint.last_status,
            created_by: endpoint.created_by,
            created_at: endpoint.created_at.into(),
            updated_at: endpoint.updated_at.into(),
        }
    }
}

/// A receiver to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "url": "https://hooks.example.com/agent-runtime",
    "events": ["run.finished"],
    "secretRef": {"envName": "production", "name": "SIGNING"},
}))]
struct NewWebhookEndpoint {
    /// Where events are posted to.
    #[schemars(length(max = MAX_URL_BYTES), extend("format" = "uri"))]
    url: String,
    /// Each kind once.
    #[schemars(length(min = 1, max = 3))]
    events: Vec<Kind>,
    /// The secret that signs: `whsec_` and the base64 of at least 24 bytes.
    secret_ref: SecretRef,
    /// Left out: every event of these kinds.
    filter: Option<Filter>,
}

impl MayName for NewWebhookEndpoint {
    fn project_id(&self) -> Option<Uuid> {
        self.filter.as_ref()?.project_id.map(Uuid::from)
    }
}

/// What to change of a receiver.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"events": ["run.finished", "approval.requested"]}))]
struct ChangeWebhookEndpoint {
    /// What waits goes there, too.
    #[schemars(length(max = MAX_URL_BYTES), extend("format" = "uri"))]
    url: Option<String>,
    #[schemars(length(min = 1, max = 3))]
    events: Option<Vec<Kind>>,
    secret_ref: Option<SecretRef>,
    /// Replaces the one that stands. Null: every event of the endpoint's kinds.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Filter>")]
    filter: Option<Option<Filter>>,
}

impl MayName for ChangeWebhookEndpoint {
    fn project_id(&self) -> Option<Uuid> {
        self.filter.as_ref()?.as_ref()?.project_id.map(Uuid::from)
    }
}

/// A URL to judge.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"url": "https://hooks.example.com/agent-runtime"}))]
struct CheckUrl {
    /// One of more than 2048 bytes is none that can be registered, and the answer says so.
    url: String,
}

/// What is said of a URL.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckedUrl {
    /// As it would be stored; where it is none, as it was given, 2048 bytes of it.
    url: String,
    /// An endpoint with this URL would be registered.
    allowed: bool,
    /// What its host is or resolves to, refused ones included.
    addresses: Vec<IpAddr>,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<UrlRefusal>,
    /// Why no address is known: it is allowed, and each attempt looks its host up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    unresolved: Option<String>,
}

/// Why a URL is refused.
#[derive(Debug, Serialize, JsonSchema)]
struct UrlRefusal {
    /// The rule that refuses.
    rule: String,
    /// The address that it refuses; absent where it refuses the URL itself or its host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    message: String,
}

/// The URL as it is stored, unless it is refused (section 6.1 rules 1 to 3). A host that does not
/// resolve now is the attempts' matter.
fn check_receiver(cx: &Cx<'_>, url: &str) -> Result<String> {
    let failure = match cx.inspect_receiver(url, CHECKED_WITHIN) {
        Ok(inspection) => match inspection.verdict {
            Verdict::Refused(failure) => failure,
            Verdict::Allowed | Verdict::Unresolved(_) => return Ok(inspection.url.into()),
        },
        Err(failure) => failure,
    };
    let refusal = UrlRefusal::of(&failure);
    let message = format!("Webhooks may not go to this URL. {}", refusal.message);
    let error = Error::new(Code::WebhookUrlRefused, message)
        .detail("path", "$.url")
        .detail("rule", refusal.rule);
    Err(match refusal.address {
        Some(address) => error.detail("address", address.to_string()),
        None => error,
    })
}

impl UrlRefusal {
    fn of(failure: &Failure) -> Self {
        let refusal = failure.rule();
        Self {
            // Without a rule of section 6.1 the text is no URL at all.
            rule: refusal.map_or_else(|| "url".to_owned(), |refusal| refusal.rule.to_string()),
            address: refusal.and_then(|refusal| refusal.address),
            message: failure.message().to_owned(),
        }
    }
}

/// The secret is there and strong enough (section 6.1 rule 4, section 8).
fn check_secret(cx: &Cx<'_>, tenant_id: Uuid, at: &SecretRef) -> Result<()> {
    for (field, text, most) in [
        ("envName", &at.environment, SECRET_MOST.0),
        ("name", &at.name, SECRET_MOST.1),
    ] {
        if text.is_empty() || text.len() > most {
            let path = format!("$.secretRef.{field}");
            return Err(invalid_body(&path, format!("1 to {most} characters")));
        }
    }
    let of_it = |code, message| {
        Error::new(code, message)
            .detail("path", "$.secretRef")
            .detail("envName", at.environment.as_str())
            .detail("name", at.name.as_str())
    };
    let secret = cx
        .secrets()
        .resolve(tenant_id, at)
        .map_err(|unreadable| match unreadable {
            Unreadable::NotFound => of_it(
                Code::WebhookSecretNotFound,
                format!(
                    "There is no secret {} in the environment {}. Store the secret first, then register the endpoint.",
                    at.name, at.environment
                ),
            ),
            Unreadable::DatabaseAway(said) => Error::database_unavailable(said),
            Unreadable::Altered(said) | Unreadable::Unavailable(said) => {
                of_it(Code::SecretsUnavailable, said)
            }
        })?;
    sign::check_secret(&secret).map_err(|weak| of_it(Code::WebhookSecretWeak, weak))
}

fn check_events(events: &[Kind]) -> Result<Vec<String>> {
    if events.is_empty() {
        return Err(invalid_body("$.events", "1 to 3 kinds of events"));
    }
    let mut seen = HashSet::new();
    for (index, kind) in events.iter().enumerate() {
        if !seen.insert(kind) {
            let path = format!("$.events[{index}]");
            return Err(invalid_body(&path, "a kind that stands once"));
        }
    }
    Ok(events.iter().map(|kind| kind.text().to_owned()).collect())
}

fn check_filter(filter: Filter) -> Result<webhook_endpoints::Filter> {
    let mut seen = HashSet::new();
    let flows = filter.flow_ids.as_deref();
    if flows.is_some_and(|flows| !(1..=FLOWS_MOST).contains(&flows.len())) {
        let expected = format!("1 to {FLOWS_MOST} flow ids");
        return Err(invalid_body("$.filter.flowIds", expected));
    }
    for (index, flow) in flows.unwrap_or_default().iter().enumerate() {
        let path = format!("$.filter.flowIds[{index}]");
        // No run has another one, so the filter would let nothing through.
        if !is_flow_id(flow.as_str()) {
            let expected =
                "a flow id, namespace.name in lowercase letters, digits and inner hyphens";
            return Err(invalid_body(&path, expected));
        }
        if !seen.insert(flow.as_str()) {
            return Err(invalid_body(&path, "a flow id that stands once"));
        }
    }
    let texts = |flows: &[Name]| flows.iter().map(|flow| flow.as_str().to_owned()).collect();
    Ok(webhook_endpoints::Filter {
        flow_ids: flows.map(texts),
        project_id: filter.project_id.map(Uuid::from),
        include_dry_runs: filter.include_dry_runs,
    })
}

fn create(
    cx: &Cx<'_>,
    tenant: NamingProject<NewWebhookEndpoint, OnTenant<Admin>>,
    Body(new): Body<NewWebhookEndpoint>,
) -> Result<Created<View>> {
    is_on(cx)?;
    let OnTenant(may) = tenant.access;
    let caller = may.caller();
    let request = request_key(cx, caller.user_id, "POST /v1/webhook-endpoints")?;
    let filter = new.filter.map(check_filter).transpose();
    let (events, filter) = both(check_events(&new.events), filter)?;
    let mut about = About {
        url: new.url,
        events,
        secret: new.secret_ref,
        filter,
    };
    let permit = cx.external_call_permit(caller.tenant_id)?;
    about.url = check_receiver(cx, &about.url)?;
    check_secret(cx, caller.tenant_id, &about.secret)?;
    drop(permit);
    let (id, now) = (cx.new_id(), cx.now());
    let endpoint = cx.transact(|tx| {
        if let Some(request) = &request
            && let Some(earlier) = runs::remember_key(tx, caller.tenant_id, request, id, now)?
        {
            let found = WebhookEndpoint::find(tx, caller.tenant_id, earlier)?;
            return found.ok_or_else(|| Error::not_found("webhook-endpoint", earlier));
        }
        webhook_endpoints::insert(tx, &may, caller, id, &about, now)
    })?;
    Ok(Created(endpoint.into()))
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    is_on(cx)?;
    let page = query.page(&"webhook-endpoints")?;
    let rows = webhook_endpoints::list(&mut cx.store().session()?, &tenant.0, &page)?;
    Ok(Found(page.page(rows, |row| row.endpoint_id, View::from)))
}

fn check_url(
    cx: &Cx<'_>,
    OnTenant(may): OnTenant<Admin>,
    Body(given): Body<CheckUrl>,
) -> Result<Found<CheckedUrl>> {
    is_on(cx)?;
    let _permit = cx.external_call_permit(may.caller().tenant_id)?;
    let (url, addresses, verdict) = match cx.inspect_receiver(&given.url, CHECKED_WITHIN) {
        Ok(inspection) => (
            inspection.url.into(),
            inspection.addresses,
            inspection.verdict,
        ),
        Err(failure) => {
            let shown = beginning(&given.url, MAX_URL_BYTES).to_owned();
            (shown, Vec::new(), Verdict::Refused(failure))
        }
    };
    let (refusal, unresolved) = match verdict {
        Verdict::Allowed => (None, None),
        Verdict::Refused(failure) => (Some(UrlRefusal::of(&failure)), None),
        Verdict::Unresolved(failure) => (None, Some(failure.message().to_owned())),
    };
    Ok(Found(CheckedUrl {
        url,
        allowed: refusal.is_none(),
        addresses,
        refusal,
        unresolved,
    }))
}

fn read(
    cx: &Cx<'_>,
    endpoint: Authorized<WebhookEndpoint, Admin>,
    _: Nothing,
) -> Result<Found<View>> {
    is_on(cx)?;
    Ok(Found(endpoint.into_row().into()))
}

fn change(
    cx: &Cx<'_>,
    endpoint: NamingProject<ChangeWebhookEndpoint, Authorized<WebhookEndpoint, Admin>>,
    Body(change): Body<ChangeWebhookEndpoint>,
) -> Result<Found<View>> {
    let endpoint = endpoint.access;
    is_on(cx)?;
    let tenant_id = endpoint.caller().tenant_id;
    let events = change.events.as_deref().map(check_events).transpose()?;
    let filter = change
        .filter
        .map(|filter| filter.map(check_filter).transpose());
    let filter = filter.transpose()?;
    // Both ask elsewhere, so no row is held meanwhile.
    let asks = change.url.is_some() || change.secret_ref.is_some();
    let permit = asks.then(|| cx.external_call_permit(tenant_id));
    let permit = permit.transpose()?;
    let url = change.url.as_deref();
    let url = url.map(|url| check_receiver(cx, url)).transpose()?;
    if let Some(at) = &change.secret_ref {
        check_secret(cx, tenant_id, at)?;
    }
    drop(permit);
    let now = cx.now();
    let changed = cx.transact(|tx| {
        // What stays is written again, so nobody may change it meanwhile.
        let before = About::from(webhook_endpoints::lock(tx, &endpoint)?);
        let about = About {
            url: url.unwrap_or(before.url),
            events: events.unwrap_or(before.events),
            secret: change.secret_ref.unwrap_or(before.secret),
            filter: filter.unwrap_or(before.filter),
        };
        webhook_endpoints::update(tx, &endpoint, &about, now)
    })?;
    Ok(Found(changed.into()))
}

fn unregister(cx: &Cx<'_>, endpoint: Authorized<Ending, Admin>, _: Nothing) -> Result<Gone> {
    is_on(cx)?;
    let _permit = cx.external_call_permit(endpoint.caller().tenant_id)?;
    cx.webhooks().unregister(&endpoint, || cx.recorded())?;
    Ok(Gone)
}
