//! `/v1/runs/{runId}/retry`: takes a failed run up again, as a new run.

use super::request_parts::request_key;
use super::run_starts::{StartedRun, origin};
use crate::error::{Code, Result};
use crate::http::context::Cx;
use crate::http::input::Body;
use crate::http::output::Accepted;
use crate::http::route::{Method, Route, route};
use crate::proof::{Authorized, Write};
use crate::runtime::{Created, Retry};
use crate::store::runs::{self, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Post,
            "/v1/runs/{runId}/retry",
            "runs.retry",
            "Take a failed run up again: a new run, which goes on after the last step that was done",
            retry,
        )
        .repeatable("Names the request: a repetition within 24 hours answers with the run that the first one made.")
        .reads("Svc-Origin", "`command-line` from the command line.", || {
            json!({"type": "string", "enum": ["app", "command-line"], "default": "app"})
        })
        .answers(&[
            Code::Conflict,
            Code::OutcomeUnknown,
            Code::IdempotencyMismatch,
            Code::IdempotencyInFlight,
            Code::ProjectArchived,
            Code::AgentArchived,
            Code::FlowArchived,
        ]),
    ]
}

/// How a failed run is taken up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({}))]
struct RetryRun {
    /// Have a tool that is not idempotent called again, although it may have done its work: the run ended during the call.
    #[serde(default)]
    repeat_unknown_call: bool,
}

fn retry(
    cx: &Cx<'_>,
    failed: Authorized<Run, Write>,
    Body(body): Body<RetryRun>,
) -> Result<Accepted<StartedRun>> {
    let (run_id, user_id) = (failed.row().run_id, failed.caller().user_id);
    let request = request_key(cx, user_id, &format!("POST /v1/runs/{run_id}/retry"))?;
    let origin = origin(cx)?;
    let run = cx.transact(|tx| {
        let retry = Retry {
            run_id: cx.new_id(),
            origin,
            created_by: user_id,
            created_at: cx.now(),
            started_by: cx.started_by(),
            repeats_unknown: body.repeat_unknown_call,
        };
        let created = cx
            .runtime()
            .retry(tx, &failed, failed.row(), retry, request.as_ref())?;
        match created {
            Created::New(run) => Ok(*run),
            Created::Earlier(earlier) => runs::find(tx, failed.caller().tenant_id, earlier),
        }
    })?;
    cx.runtime().wake();
    StartedRun::new(cx, run).map(Accepted)
}
