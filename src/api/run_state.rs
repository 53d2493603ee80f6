//! `/v1/runs/{runId}/state`: where a run stands, to find out why it goes on no further.

use crate::error::{Code, Result};
use crate::http::context::Cx;
use crate::http::input::Nothing;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Authorized, Read};
use crate::runtime::FlowPosition;
use crate::store::flow_states;
use crate::store::runs::{Run, Status, WaitingFor};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Get,
            "/v1/runs/{runId}/state",
            "runs.state",
            "Read where a run stands: what it waits for, and of a flow the tasks under way with their data",
            state,
        )
        .answers(&[Code::NewerFormat]),
    ]
}

/// Where a run stands. For people who look into a run: a later version may keep, and show, something else.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RunState {
    status: Status,
    /// What it waits for; only while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingFor>,
    /// Since when; only while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_since: Option<Timestamp>,
    /// When it goes on at the latest; only while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_at: Option<Timestamp>,
    /// The newest step; null before the first one.
    step: Option<i32>,
    /// When the newest attempt of that began.
    step_started_at: Option<Timestamp>,
    /// Where that stands in the run's flow, as a JSON pointer: the run's place in its program. Left out in an agent's turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    /// Of a flow, where it stood as that step began; null before the first step, and once it was erased.
    flow: Option<FlowPosition>,
}

fn state(cx: &Cx<'_>, run: Authorized<Run, Read>, _: Nothing) -> Result<Found<RunState>> {
    let stands = flow_states::stands(&mut cx.store().session()?, &run)?;
    let flow = stands.state.as_ref();
    let flow = flow.map(|state| FlowPosition::of(state, &stands.path));
    Ok(Found(RunState {
        status: stands.status,
        waiting_for: stands.waiting_for,
        waiting_since: stands.waiting_since.map(Into::into),
        wake_at: stands.wake_at.map(Into::into),
        step: stands.step,
        step_started_at: stands.step_started_at.map(Into::into),
        path: stands.path,
        flow: flow.transpose()?,
    }))
}
