//! `/v1/audit/authz`: the recorded access decisions (specification sections 2.5 and 4.6).

use super::page_query::{invalid, times};
use super::request_parts::id_in_path;
use crate::audit::Record;
use crate::error::{Code, Error, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query};
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, RequestId, Timestamp};
use crate::proof::Admin;
use crate::store::audit::Outcome;
use crate::store::audit::pages::{self, Filter};
use crate::store::page::{self, LIMIT_DEFAULT, LIMIT_MOST, Order, Page};
use schemars::JsonSchema;
use serde::Deserialize;

/// The longest text of a filter, in characters.
const TEXT_MOST: usize = 400;

pub(super) fn routes() -> Vec<Route> {
    use Method::Get;
    vec![
        route(
            Get,
            "/v1/audit/authz",
            "audit.authz",
            "List the tenant's access decisions, oldest first unless asked otherwise",
            list,
        ),
        route(
            Get,
            "/v1/audit/authz/{decisionId}",
            "audit.decision",
            "Read one of the tenant's access decisions",
            read,
        )
        .answers(&[Code::NotFound]),
    ]
}

/// Which decisions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListDecisions {
    /// Of this actor, as `user:<user id>`.
    #[schemars(length(max = TEXT_MOST))]
    actor_subject: Option<String>,
    /// Of this action: `read`, `write`, `admin` or `sign-in`.
    #[schemars(length(max = TEXT_MOST))]
    action: Option<String>,
    /// On this resource, as `<kind>:<id>`.
    #[schemars(length(max = TEXT_MOST))]
    resource: Option<String>,
    /// With this outcome.
    outcome: Option<Outcome>,
    /// Decided then or later (RFC 3339).
    from: Option<Timestamp>,
    /// Decided before then (RFC 3339).
    to: Option<Timestamp>,
    /// About this run.
    run_id: Option<Id>,
    /// Of this request: the `requestId` of an error, or the header `x-request-id` of an answer.
    request_id: Option<RequestId>,
    /// The direction.
    #[schemars(extend("default" = Order::Asc))]
    order: Option<Order>,
    /// The `nextCursor` of the page before; left out for the first page.
    #[schemars(length(min = 1))]
    cursor: Option<String>,
    /// Rows at most.
    #[schemars(range(min = 1, max = LIMIT_MOST), extend("default" = LIMIT_DEFAULT))]
    limit: Option<u16>,
}

fn list(
    cx: &Cx<'_>,
    OnTenant(admin): OnTenant<Admin>,
    Query(query): Query<ListDecisions>,
) -> Result<Found<Page<Record>>> {
    let limit = page::limit(query.limit)?;
    let order = query.order.unwrap_or(Order::Asc);
    let cursor = query.cursor.clone();
    let filter = query.filter()?;
    let mut session = cx.store().session()?;
    let found = pages::list(
        &mut session,
        &admin,
        &filter,
        (order, limit),
        cursor.as_deref(),
    )?;
    Ok(Found(Page {
        data: found.rows.into_iter().map(Record::from).collect(),
        has_more: found.next_cursor.is_some(),
        next_cursor: found.next_cursor,
    }))
}

fn read(cx: &Cx<'_>, OnTenant(admin): OnTenant<Admin>, _: Nothing) -> Result<Found<Record>> {
    let id = id_in_path(cx, "decisionId", "decision")?;
    let found = pages::find(&mut cx.store().session()?, &admin, id)?;
    let row = found.ok_or_else(|| Error::not_found("decision", id))?;
    Ok(Found(row.into()))
}

impl ListDecisions {
    fn filter(self) -> Result<Filter> {
        let subject = self.actor_subject.as_deref();
        let is_subject = |text: &str| text.starts_with("user:") && text.len() > 5;
        if !subject.is_none_or(|text| is_subject(text) && fits(text)) {
            return Err(invalid("actorSubject", "user: and the id of a user"));
        }
        let resource = self.resource.as_deref();
        let is_resource = |text: &str| {
            text.split_once(':')
                .is_some_and(|(a, b)| !a.is_empty() && !b.is_empty())
        };
        if !resource.is_none_or(|text| is_resource(text) && fits(text)) {
            return Err(invalid(
                "resource",
                "<kind>:<id>, such as project:<project id>",
            ));
        }
        let action = self.action.as_deref();
        if !action.is_none_or(|text| !text.is_empty() && fits(text)) {
            return Err(invalid("action", "an action such as read, write or admin"));
        }
        let (from, to) = times((self.from, self.to))?;
        Ok(Filter {
            actor_subject: self.actor_subject,
            action: self.action,
            resource: self.resource,
            outcome: self.outcome,
            from,
            to,
            run_id: self.run_id.map(Into::into),
            request_id: self.request_id.map(|id| id.0),
        })
    }
}

fn fits(text: &str) -> bool {
    text.chars().count() <= TEXT_MOST
}
