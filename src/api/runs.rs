//! `/v1/runs`: read, list, cancel, follow.
//!
//! Not here: starting runs (`run_starts`), and taking failed ones up again (`retries`).

use super::page_query::{PageQuery, page_query, times};
use super::run_overrides::Overrides;
use crate::authz::RunReader;
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::{Name, Nothing, Query};
use crate::http::output::{Accepted, Events, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, RequestId, Timestamp};
use crate::proof::{Authorized, Listing, May, Read, Write};
use crate::runtime::progress::events;
use crate::runtime::step_outcome;
use crate::store::Sql;
use crate::store::events as stored_events;
use crate::store::page::{LIMIT_DEFAULT, LIMIT_MOST, Page, limit, position_id};
use crate::store::runs::{
    self, Branch, Details, Filters, LABELS_MOST, LabelFilter, Labels, Models, Origin, Run, Status,
    Via, WaitingFor,
};
use crate::store::steps::{self, Listed, StepKind, StepOutcome, StepStatus};
use crate::webhooks::event::RunFields;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use uuid::Uuid;

/// A page of events ends with the one that takes it past this many bytes.
const PROGRESS_BYTES: i64 = 4 * 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Post};
    let progress = "/v1/runs/{runId}/progress";
    let stream = "/v1/runs/{runId}/progress/stream";
    vec![
        route(
            Get,
            "/v1/runs",
            "runs.list",
            "List the runs that the caller may read",
            list,
        ),
        route(Get, "/v1/runs/{runId}", "runs.get", "Read a run", read),
        route(
            Get,
            "/v1/runs/{runId}/payload",
            "runs.payload",
            "Read a run's input and output",
            payload,
        ),
        route(
            Get,
            "/v1/runs/{runId}/steps",
            "runs.steps.list",
            "List the steps of a run, with what they answered",
            list_steps,
        ),
        route(
            Post,
            "/v1/runs/{runId}/cancel",
            "runs.cancel",
            "Ask a run to end; a finished run is answered as it is",
            cancel,
        ),
        route(
            Get,
            progress,
            "runs.progress",
            "Read a run's progress: the run, and a page of its events",
            read_progress,
        )
        .cross_origin(),
        route(
            Get,
            stream,
            "runs.follow",
            "Follow a run's progress as server-sent events",
            follow,
        )
        .reads(
            "Last-Event-ID",
            "The number of the last event that the client has; goes before `after`.",
            || json!({"type": "string", "pattern": "^[0-9]+$"}),
        )
        .cross_origin(),
    ]
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Run")]
pub(super) struct View {
    #[serde(flatten)]
    fields: RunFields,
    started_at: Option<Timestamp>,
    /// Who began it: an app, the command line, or another run.
    origin: Origin,
    /// The run that began it; left out of a run that an app or the command line began.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<Uuid>,
    /// The number of its child runs, without those below them. A retry counts those that it takes over. In a list alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    child_count: Option<i64>,
    /// Which branch of a fork, or iteration of a parallel loop, of its parent it is; left out of any other run. In a list alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<Branch>,
    /// The failed run that it takes up.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_of: Option<Uuid>,
    created_by: Uuid,
    /// What it waits for; only while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingFor>,
    /// As the caller gave them at the start.
    labels: Labels,
    /// What it sets in place of its agent's version; left out where it sets nothing, and once its payload was erased. Where one
    /// run is read, but not with its public token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Overrides>")]
    overrides: Option<runs::Overrides>,
    /// Somebody asked it to end.
    cancel_requested: bool,
    /// The number of its newest event.
    last_seq: i64,
    /// When what it was given, said and answered was erased; only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_erased_at: Option<Timestamp>,
}

impl From<Run> for View {
    fn from(run: Run) -> Self {
        Self {
            started_at: run.started_at.map(Into::into),
            origin: run.origin,
            parent_run_id: run.parent.map(|parent| parent.run_id),
            child_count: None,
            branch: None,
            retry_of: run.retry_of,
            created_by: run.created_by,
            waiting_for: run.waiting_for,
            labels: run.labels.clone(),
            overrides: None,
            cancel_requested: run.cancel_requested_at.is_some(),
            last_seq: run.last_seq,
            payload_erased_at: run.payload_erased_at.map(Into::into),
            fields: run.into(),
        }
    }
}

impl View {
    /// An item of a list, which has no data of the run.
    fn item(run: Run, details: Details) -> Self {
        Self {
            child_count: Some(details.child_count),
            branch: details.branch,
            fields: RunFields::summary(run.clone()),
            ..run.into()
        }
    }
}

page_query! {
    /// Which runs.
    ListRuns {
        /// In this project.
        project_id: Option<Id>,
        /// Of this agent.
        agent_id: Option<Id>,
        /// In this conversation.
        conversation_id: Option<Id>,
        /// With this status.
        status: Option<Status>,
        /// True: child runs too. False: none of them. Left out: child runs too where `rootRunId`, `parentRunId`, `conversationId` or `requestId` is given, or `origin` is `run`; otherwise none.
        children: Option<bool>,
        /// Begun by this.
        origin: Option<Origin>,
        /// Of this flow, in any version; `agent.turn` for turns of agents.
        flow_id: Option<Name>,
        /// Below this run, at any depth; the run itself is not among them.
        root_run_id: Option<Id>,
        /// Begun by this run.
        parent_run_id: Option<Id>,
        /// That wait for this.
        waiting_for: Option<WaitingFor>,
        /// Turns of agents whose version was chosen so.
        via: Option<Via>,
        /// Dry runs, or those that are none.
        dry_run: Option<bool>,
        /// Created then or later (RFC 3339).
        from: Option<Timestamp>,
        /// Created before then (RFC 3339).
        to: Option<Timestamp>,
        /// That this request created: the header `x-request-id` of its answer. Runs below that run are not among them.
        request_id: Option<RequestId>,
        /// With this label, `key:value`. Given several times: with all of them. The first one leads the search: name the rarest first.
        #[serde(default)]
        #[schemars(length(max = LABELS_MOST))]
        label: Vec<WantedLabel>,
    }
}

impl ListRuns {
    /// Whether child runs are left out. A filter that asks for runs of one tree, conversation or request finds them all.
    fn roots_only(&self) -> bool {
        let names_a_group = self.root_run_id.is_some()
            || self.parent_run_id.is_some()
            || self.conversation_id.is_some()
            || self.request_id.is_some()
            || self.origin == Some(Origin::Run);
        !self.children.unwrap_or(names_a_group)
    }
}

/// A label that is looked for, `key:value`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WantedLabel(String, String);

impl<'de> Deserialize<'de> for WantedLabel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (key, value) = text
            .split_once(':')
            .ok_or_else(|| serde::de::Error::custom("expected key:value"))?;
        Ok(Self(key.to_owned(), value.to_owned()))
    }
}

impl JsonSchema for WantedLabel {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "WantedLabel".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[^:]+:"})
    }
}

/// What a run was given, and what it answered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Payload {
    /// What the run was given: a turn's `message`; null once it was erased.
    input: Value,
    /// What it answered: a turn's `text`, and `json`, the same as a value, if the agent's version has an output schema; null until it is completed, and once it was erased.
    output: Option<Value>,
    /// Of a dry run that was started with fixtures: those.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixtures: Option<Map<String, Value>>,
    /// Of a dry run that was started so as not to ask models: `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<Models>,
    /// When all was erased; only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_at: Option<Timestamp>,
}

/// A step of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunStep")]
struct StepView {
    /// Its number, from 1.
    step: i32,
    kind: StepKind,
    /// The model's or the tool's name.
    name: String,
    /// Where it stands in the run's flow; left out in an agent's turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    status: StepStatus,
    /// What it came to: a completed step may have failed. Null while it is under way, and for a call whose answer was erased.
    outcome: Option<StepOutcome>,
    /// The newest attempt, from 1.
    attempt: i32,
    /// What it answered; null until it is completed, and once it was erased. Of an approval, what everybody may know who may
    /// read the run: `decision` and `approvalId`. Of a model, its `reasoning` too, if it gave any.
    result: Option<Value>,
    /// When the newest attempt began.
    started_at: Timestamp,
    /// When it ended.
    completed_at: Option<Timestamp>,
}

impl From<Listed> for StepView {
    fn from(step: Listed) -> Self {
        Self {
            step: step.step,
            kind: step.kind,
            name: step.name,
            path: step.path,
            status: step.status,
            outcome: step_outcome(step.kind, step.status, step.result.as_ref()),
            attempt: step.attempt,
            result: shown(step.kind, step.result),
            started_at: step.started_at.into(),
            completed_at: step.completed_at.map(Into::into),
        }
    }
}

/// Who decided, and why, is for reviewers, and what a provider is handed back is for the provider. What guardrails decided is in
/// the list of checks.
fn shown(kind: StepKind, result: Option<Value>) -> Option<Value> {
    match (kind, result) {
        (StepKind::Approval, Some(result)) => Some(json!({
            "decision": result["decision"],
            "approvalId": result["approvalId"],
        })),
        (StepKind::Model, Some(Value::Object(mut result))) => {
            result.shift_remove("kept");
            result.shift_remove("checked");
            Some(result.into())
        }
        (_, result) => result,
    }
}

/// From where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadProgress {
    /// Events after this number; 0 begins with the first.
    #[schemars(range(min = 0), extend("default" = 0))]
    after: Option<i64>,
    /// Events at most. A page of long events holds fewer.
    #[schemars(range(min = 1, max = LIMIT_MOST), extend("default" = LIMIT_DEFAULT))]
    limit: Option<u16>,
}

/// From where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FollowProgress {
    /// Events after this number; 0 begins with the first.
    #[schemars(range(min = 0), extend("default" = 0))]
    after: Option<i64>,
    /// What `Last-Event-ID` would say, of a client that cannot set the header. The header takes its place, and it takes that of `after`.
    #[serde(rename = "lastEventId")]
    #[schemars(range(min = 0))]
    last_event_id: Option<i64>,
}

/// A run and a page of its events.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Progress {
    run: View,
    /// The events, in order.
    data: Vec<events::Numbered>,
    /// More events stand already: ask again with `after` the last number.
    has_more: bool,
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Run>,
    Query(query): Query<ListRuns>,
) -> Result<Found<Page<View>>> {
    let of = (query.project_id, query.agent_id, query.conversation_id);
    let flow_id = query.flow_id.as_ref().map(Name::as_str);
    let tree = (query.root_run_id, query.parent_run_id);
    let stands = (query.status, query.waiting_for);
    let began = (query.origin, query.via, query.dry_run, query.children);
    let created = (query.from, query.to);
    let by_request = query.request_id.map(|id| id.0);
    let binding = (
        "runs",
        of,
        tree,
        flow_id,
        stands,
        began,
        created,
        &query.label,
        by_request,
    );
    let page = query.page(&binding)?;
    let (from, to) = times(created)?;
    let filters = Filters {
        project_id: query.project_id.map(Uuid::from),
        agent_id: query.agent_id.map(Uuid::from),
        conversation_id: query.conversation_id.map(Uuid::from),
        status: query.status,
        origin: query.origin,
        flow_id: flow_id.map(str::to_owned),
        root_run_id: query.root_run_id.map(Uuid::from),
        parent_run_id: query.parent_run_id.map(Uuid::from),
        waiting_for: query.waiting_for,
        via: query.via,
        dry_run: query.dry_run,
        from,
        to,
        roots_only: query.roots_only(),
        labels: wanted_labels(query.label)?,
        request_id: by_request,
    };
    let mut session = cx.store().session()?;
    let rows = runs::list(&mut session, &listing, &filters, &page)?;
    let details = runs::details(&mut session, &listing, &rows)?;
    let item = |run: Run| {
        let details = details.get(&run.run_id).cloned();
        View::item(run, details.unwrap_or_default())
    };
    Ok(Found(page.page(rows, |row| row.run_id, item)))
}

fn wanted_labels(wanted: Vec<WantedLabel>) -> Result<Option<LabelFilter>> {
    let wanted: Vec<_> = wanted.into_iter().map(|one| (one.0, one.1)).collect();
    LabelFilter::new(&wanted).map_err(|fault| {
        Error::new(
            Code::InvalidRequest,
            format!("Query parameter label: {fault}."),
        )
        .detail("parameter", "label")
    })
}

fn read(cx: &Cx<'_>, run: Authorized<Run, Read>, _: Nothing) -> Result<Found<View>> {
    let overrides = match may_set(run.row()) {
        true => overrides(&mut cx.store().session()?, &run)?,
        false => None,
    };
    Ok(Found(View {
        overrides,
        ..run.into_row().into()
    }))
}

/// Whether it may set anything in place of its version's own: it is a turn that no other run began.
fn may_set(run: &Run) -> bool {
    run.agent.is_some() && run.parent.is_none()
}

fn overrides(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Option<runs::Overrides>> {
    let set = runs::overrides(sql, may)?;
    Ok(Some(set).filter(|set| !set.is_empty()))
}

fn payload(cx: &Cx<'_>, run: Authorized<Run, Read>, _: Nothing) -> Result<Found<Payload>> {
    let payload = runs::payload(&mut cx.store().session()?, &run)?;
    Ok(Found(Payload {
        input: payload.input,
        output: payload.output,
        models: Some(payload.options.models).filter(|models| *models != Models::default()),
        fixtures: Some(payload.options.fixtures).filter(|fixtures| !fixtures.is_empty()),
        erased_at: payload.erased_at.map(Into::into),
    }))
}

fn list_steps(
    cx: &Cx<'_>,
    run: Authorized<Run, Read>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<StepView>>> {
    let page = query.page(&("run-steps", run.row().run_id))?;
    let (rows, has_more) = steps::list(&mut cx.store().session()?, &run, &page)?;
    let id = |row: &Listed| position_id(row.step.into());
    Ok(Found(page.ended_page(rows, has_more, id, StepView::from)))
}

fn cancel(cx: &Cx<'_>, run: Authorized<Run, Write>, _: Nothing) -> Result<Accepted<View>> {
    let asked = cx.runtime().cancel(&run, || cx.recorded())?;
    Ok(Accepted(asked.into()))
}

fn read_progress(
    cx: &Cx<'_>,
    reader: RunReader,
    Query(query): Query<ReadProgress>,
) -> Result<Found<Progress>> {
    let after = position(reader.run(), query.after)?;
    let limit = limit(query.limit)?;
    let mut session = cx.store().session()?;
    let found = stored_events::after(&mut session, &reader, after, limit.into(), PROGRESS_BYTES)?;
    let overrides = match may_set(reader.run()) && !reader.is_public() {
        true => overrides(&mut session, &reader)?,
        false => None,
    };
    Ok(Found(Progress {
        data: found
            .events
            .into_iter()
            .map(events::Numbered::from)
            .collect(),
        has_more: found.more,
        run: View {
            overrides,
            ..reader.into_run().into()
        },
    }))
}

fn follow(cx: &Cx<'_>, reader: RunReader, Query(query): Query<FollowProgress>) -> Result<Events> {
    let named = super::request_parts::last_event_id(cx, query.last_event_id)?.or(query.after);
    let after = position(reader.run(), named)?;
    cx.streams().follow(reader, after).map(Events)
}

/// A place in the run's events that exists.
fn position(run: &Run, after: Option<i64>) -> Result<i64> {
    let after = after.unwrap_or(0);
    if (0..=run.last_seq).contains(&after) {
        return Ok(after);
    }
    Err(Error::new(
        Code::InvalidRequest,
        format!(
            "This run has events 1 to {}; there is nothing after {after}. Begin again from 0.",
            run.last_seq
        ),
    )
    .detail("lastSeq", run.last_seq))
}
