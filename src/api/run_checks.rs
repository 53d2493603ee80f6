//! `/v1/runs/{runId}/checks`: what guardrails decided of a run, for whoever may read the run. Nothing of the text is in it.

use super::page_query::PageQuery;
use crate::error::Result;
use crate::guardrails::{CheckOrigin, OnError, Point, Verdict};
use crate::http::context::Cx;
use crate::http::input::Query;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Authorized, Read};
use crate::store::page::Page;
use crate::store::run_checks::{self, RunCheck};
use crate::store::runs::Run;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![route(
        Method::Get,
        "/v1/runs/{runId}/checks",
        "runs.checks.list",
        "List the checks that guardrails made of a run, in the order of steps, attempts and checks; never the text",
        list,
    )]
}

/// A check that a guardrail made of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunCheck")]
struct View {
    /// The step that it belongs to.
    step: i32,
    /// Its attempt, from 1.
    attempt: i32,
    /// Which of the attempt's checks, from 0.
    ordinal: i32,
    point: Point,
    /// At `tool.arguments`: which of the calls of the model's answer, from 0. Otherwise null.
    call: Option<i32>,
    /// The guardrail's name.
    name: String,
    /// What judged, such as `builtin:pii`.
    evaluator: String,
    origin: CheckOrigin,
    /// The version of the tenant's or the project's policy; null for a guardrail of the agent's version.
    policy_version: Option<i32>,
    verdict: Verdict,
    /// What was found, in a word, such as `card`; `failed` if the check itself failed; null if nothing was found.
    code: Option<String>,
    /// What was found, or why the check failed, in a sentence that never quotes the text. Null if nothing was found, and once the
    /// run's payload was erased.
    reason: Option<String>,
    /// Of a check that failed: what became of the text. Otherwise null.
    on_error: Option<OnError>,
    /// Microseconds that it took.
    duration_us: i64,
    /// SHA-256 of the text that was judged, in hexadecimal.
    digest: String,
    created_at: Timestamp,
}

impl From<RunCheck> for View {
    fn from(of: RunCheck) -> Self {
        let made = of.made;
        Self {
            step: of.step,
            attempt: of.attempt,
            ordinal: of.ordinal,
            point: made.point,
            call: of.call,
            name: made.name,
            evaluator: made.evaluator,
            origin: made.origin,
            policy_version: made.policy_version,
            verdict: made.verdict,
            code: made.code,
            reason: made.reason,
            on_error: made.on_error,
            duration_us: made.duration_us,
            digest: made.digest,
            created_at: of.created_at.into(),
        }
    }
}

fn list(
    cx: &Cx<'_>,
    run: Authorized<Run, Read>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&("run-checks", run.row().run_id))?;
    let rows = run_checks::list(&mut cx.store().session()?, &run, &page)?;
    Ok(Found(page.page(rows, RunCheck::position_id, View::from)))
}
