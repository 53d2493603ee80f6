//! `/v1/policies` and `/v1/projects/{projectId}/policies`: the guardrails of a tenant and of a project.
//!
//! What policies say comes before the guardrails of an agent's version, and no version takes it away (`guardrails`, `runtime`).

use super::guardrail_fields::{guardrails_fault, stored};
use super::request_parts::invalid_body;
use crate::error::{Code, Result};
use crate::guardrails::{GUARDRAILS_MOST, Guardrail, Streaming};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing};
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Read};
use crate::store::policies::{self, New, Policy};
use crate::store::projects::Project;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Each guardrail may have a schema of 64 KiB.
const BODY_BYTES: u64 = 2 * 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Put};
    let of_tenant = "/v1/policies";
    let of_project = "/v1/projects/{projectId}/policies";
    vec![
        route(
            Get,
            of_tenant,
            "policies.get",
            "Read the tenant's policy: its newest version",
            read,
        ),
        route(
            Put,
            of_tenant,
            "policies.put",
            "Put the tenant's policy: the next version, which judges from then on, also runs that are under way",
            put,
        )
        .takes(BODY_BYTES)
        .answers(&[Code::Conflict]),
        route(
            Get,
            of_project,
            "projects.policies.get",
            "Read a project's policy: its newest version",
            read_of_project,
        ),
        route(
            Put,
            of_project,
            "projects.policies.put",
            "Put a project's policy: the next version, which judges from then on, also runs that are under way",
            put_of_project,
        )
        .takes(BODY_BYTES)
        .answers(&[Code::Conflict, Code::ProjectArchived]),
    ]
}

/// A policy, in its newest version.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Policy")]
struct View {
    /// Its number, from 1; 0: no version was put yet.
    version: i32,
    /// Its guardrails, in the order in which they judge.
    #[schemars(with = "Vec<Guardrail>")]
    guardrails: Value,
    /// When readers of a stream see text that a guardrail of the policy judges at `output`.
    streaming: Streaming,
    /// Who put it; null: nobody yet.
    created_by: Option<Uuid>,
    /// When it was put; null: not yet.
    created_at: Option<Timestamp>,
}

impl From<Option<Policy>> for View {
    fn from(policy: Option<Policy>) -> Self {
        match policy {
            Some(policy) => Self {
                version: policy.version,
                guardrails: policy.guardrails,
                streaming: policy.streaming,
                created_by: Some(policy.created_by),
                created_at: Some(policy.created_at.into()),
            },
            None => Self {
                version: 0,
                guardrails: json!([]),
                streaming: Streaming::held(),
                created_by: None,
                created_at: None,
            },
        }
    }
}

/// A policy to put. It takes the place of the one that stands, as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({
    "guardrails": [{"builtin": "secrets", "at": ["tool.result", "output"], "action": "redact"}],
    "expectedVersion": 0,
}))]
struct PutPolicy {
    /// Checks of what goes into runs and what comes out, in the order in which they judge. An empty list: none.
    #[schemars(length(max = GUARDRAILS_MOST))]
    guardrails: Vec<Guardrail>,
    /// When readers of a stream see text that a guardrail of the policy judges at `output`. Left out: after the verdict.
    #[serde(default = "Streaming::held")]
    streaming: Streaming,
    /// The version that was read before, 0 if there was none: if another one is the newest, nothing changes and the answer is
    /// `conflict`. Left out: whichever is the newest.
    expected_version: Option<u32>,
}

impl PutPolicy {
    /// Its guardrails as they are stored.
    fn checked(&self) -> Result<Value> {
        match guardrails_fault(&self.guardrails, "$.guardrails") {
            Some((path, expected)) => Err(invalid_body(&path, expected)),
            None => stored(&self.guardrails),
        }
    }

    fn with<'a>(&self, guardrails: &'a Value) -> New<'a> {
        New {
            guardrails,
            streaming: self.streaming,
            expected_version: self.expected_version,
        }
    }
}

fn read(cx: &Cx<'_>, OnTenant(may): OnTenant<Read>, _: Nothing) -> Result<Found<View>> {
    let policy = policies::of_tenant(&mut cx.store().session()?, &may)?;
    Ok(Found(policy.into()))
}

fn put(
    cx: &Cx<'_>,
    OnTenant(may): OnTenant<Admin>,
    Body(body): Body<PutPolicy>,
) -> Result<Found<View>> {
    let guardrails = body.checked()?;
    let new = body.with(&guardrails);
    let now = cx.now();
    let policy = cx.transact(|tx| policies::put_of_tenant(tx, &may, may.caller(), &new, now))?;
    Ok(Found(Some(policy).into()))
}

fn read_of_project(
    cx: &Cx<'_>,
    project: Authorized<Project, Read>,
    _: Nothing,
) -> Result<Found<View>> {
    let policy = policies::of_project(&mut cx.store().session()?, &project)?;
    Ok(Found(policy.into()))
}

fn put_of_project(
    cx: &Cx<'_>,
    project: Authorized<Project, Admin>,
    Body(body): Body<PutPolicy>,
) -> Result<Found<View>> {
    let guardrails = body.checked()?;
    let new = body.with(&guardrails);
    let (caller, now) = (project.caller(), cx.now());
    let policy = cx.transact(|tx| policies::put_of_project(tx, &project, caller, &new, now))?;
    Ok(Found(Some(policy).into()))
}
