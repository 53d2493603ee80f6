//! `/v1/inbox`: what waits for the caller.

use super::page_query::FixedOrderQuery;
use crate::authz::Reviewer;
use crate::error::Result;
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query};
use crate::http::output::{Found, Tagged};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::store::approvals::for_reviewers::{self, Waiting};
use crate::store::page::Page;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// Counted no further.
const COUNTED_MOST: i64 = 100;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Get,
            "/v1/inbox",
            "inbox.list",
            "List what waits for the caller: first what is assigned to the caller, then what is assigned to nobody, each by its end",
            list,
        )
        .reads(
            "If-None-Match",
            "The `ETag` of an earlier answer: if nothing has changed since, the answer is 304 without a body.",
            || json!({"type": "string"}),
        ),
        route(
            Method::Get,
            "/v1/inbox/summary",
            "inbox.summary",
            "Count what waits for the caller, by kind",
            summary,
        ),
    ]
}

/// What waits for the caller.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Inbox {
    #[serde(flatten)]
    page: Page<InboxItem>,
    counts: InboxCounts,
}

/// How much the whole inbox holds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InboxCounts {
    /// Assigned to the caller.
    assigned: i64,
    /// Assigned to nobody.
    unassigned: i64,
}

/// How much waits for the caller.
#[derive(Debug, Serialize, JsonSchema)]
struct InboxSummary {
    /// Approvals, those that are assigned to nobody included; 100 stands for 100 or more.
    #[schemars(range(min = 0, max = COUNTED_MOST))]
    approvals: i64,
}

/// Something that waits for the caller.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InboxItem {
    /// What kind of thing `id` names.
    kind: InboxKind,
    id: Uuid,
    project_id: Uuid,
    title: String,
    /// Since when it waits.
    since: Timestamp,
    /// Until when it waits, if it does not wait for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    /// It is assigned to the caller; otherwise to nobody.
    is_assigned: bool,
}

/// What kinds of things wait.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InboxKind {
    /// An approval.
    Approval,
}

impl From<Waiting> for InboxItem {
    fn from(row: Waiting) -> Self {
        Self {
            kind: InboxKind::Approval,
            id: row.approval_id,
            project_id: row.project_id,
            title: row.title,
            since: row.created_at.into(),
            expires_at: Some(row.expires_at.into()),
            is_assigned: row.is_assigned,
        }
    }
}

fn list(
    cx: &Cx<'_>,
    reviewer: Reviewer,
    Query(query): Query<FixedOrderQuery>,
) -> Result<Tagged<Inbox>> {
    let page = query.text_page(&"inbox")?;
    let (mut session, user_id) = (cx.store().session()?, reviewer.user_id());
    let sight = reviewer.sight();
    let counts = for_reviewers::inbox_counts(&mut session, sight, user_id)?;
    let rows = for_reviewers::inbox(&mut session, sight, user_id, &page)?;
    let value = Inbox {
        page: page.page(rows, |row| (&row.place, row.approval_id), InboxItem::from),
        counts: InboxCounts {
            assigned: counts.assigned,
            unassigned: counts.unassigned,
        },
    };
    let if_none_match = cx.header("if-none-match").map(str::to_owned);
    Ok(Tagged {
        value,
        if_none_match,
    })
}

fn summary(cx: &Cx<'_>, reviewer: Reviewer, _: Nothing) -> Result<Found<InboxSummary>> {
    let (sight, user_id) = (reviewer.sight(), reviewer.user_id());
    let mut session = cx.store().session()?;
    let approvals = for_reviewers::inbox_summary(&mut session, sight, user_id, COUNTED_MOST)?;
    Ok(Found(InboxSummary { approvals }))
}
