//! `/v1/usage`: what model calls used and cost, over a time.

use super::page_query::{invalid, times};
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::Query;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::Listing;
use crate::store::runs::{Run, Usage};
use crate::store::usage::{self, Filter, Groups, Sum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::Duration;
use uuid::Uuid;

/// The longest time, in days.
const DAYS_MOST: i64 = 92;

/// The time that is summed unless the request says otherwise, in days.
const DAYS_DEFAULT: i64 = 30;

/// Groups in an answer, at most.
const GROUPS_MOST: usize = 5000;

pub(super) fn routes() -> Vec<Route> {
    vec![route(
        Method::Get,
        "/v1/usage",
        "usage.sum",
        "Sum what the model calls of the runs used that the caller may read; a run counts on the day on which it was created",
        sum,
    )]
}

/// What has sums of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UsageGroup {
    /// Each day, in UTC.
    Day,
    /// Each project.
    Project,
    /// Each agent, and together what no agent asked.
    Agent,
    /// Each model of each model provider.
    Model,
}

/// Which usage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReadUsage {
    /// What has sums of its own; given several times: each combination that there is. Left out: one sum of all.
    #[serde(default)]
    #[schemars(length(max = 4))]
    by: Vec<UsageGroup>,
    /// Of runs created then or later (RFC 3339); left out: 30 days before `to`. Not more than 92 days before it.
    from: Option<Timestamp>,
    /// Of runs created before then (RFC 3339); left out: now.
    to: Option<Timestamp>,
    /// In this project.
    project_id: Option<Id>,
    /// Of this agent.
    agent_id: Option<Id>,
}

/// What was used in a time.
#[derive(Debug, Serialize, JsonSchema)]
struct UsageReport {
    from: Timestamp,
    to: Timestamp,
    /// The sums, by day, then project, agent and model. What was not used has none.
    data: Vec<UsageSum>,
    /// False, as on the last page of any list: the sums are one page.
    #[serde(rename = "hasMore")]
    has_more: bool,
}

/// The sums of a group.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UsageSum {
    /// The day, such as `2026-01-31`; by day alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// By project alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<Uuid>,
    /// By agent alone, where an agent asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<Uuid>,
    /// By model alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_provider_id: Option<Uuid>,
    /// By model alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(flatten)]
    usage: Usage,
    /// Of the calls, those whose cost is not known: the model had no price, or the call did not say what it used. They count 0.
    calls_without_cost: i64,
}

impl From<Sum> for UsageSum {
    fn from(sum: Sum) -> Self {
        Self {
            day: sum.day.map(|day| day.to_string()),
            project_id: sum.project_id,
            agent_id: sum.agent_id,
            model_provider_id: sum.model_provider_id,
            model: sum.model,
            usage: sum.usage,
            calls_without_cost: sum.calls_without_cost,
        }
    }
}

fn sum(
    cx: &Cx<'_>,
    listing: Listing<Run>,
    Query(query): Query<ReadUsage>,
) -> Result<Found<UsageReport>> {
    let (from, to) = times((query.from, query.to))?;
    let to = to.unwrap_or_else(|| cx.now());
    let from = from.unwrap_or_else(|| to - Duration::days(DAYS_DEFAULT));
    if from > to {
        return Err(invalid("from", "a time that is not in the future"));
    }
    if to - from > Duration::days(DAYS_MOST) {
        return Err(invalid(
            "from",
            "a time that is not more than 92 days before to",
        ));
    }
    let by = |group| query.by.contains(&group);
    let groups = Groups {
        day: by(UsageGroup::Day),
        project: by(UsageGroup::Project),
        agent: by(UsageGroup::Agent),
        model: by(UsageGroup::Model),
    };
    let filter = Filter {
        from,
        to,
        project_id: query.project_id.map(Uuid::from),
        agent_id: query.agent_id.map(Uuid::from),
    };
    let most = i64::try_from(GROUPS_MOST + 1).map_err(Error::internal)?;
    let sums = usage::sum(&mut cx.store().session()?, &listing, &filter, groups, most)?;
    if sums.len() > GROUPS_MOST {
        return Err(Error::new(
            Code::InvalidRequest,
            format!(
                "There are more than {GROUPS_MOST} sums. Ask for a shorter time, for one project or agent, or by less."
            ),
        )
        .detail("parameter", "by"));
    }
    Ok(Found(UsageReport {
        from: from.into(),
        to: to.into(),
        data: sums.into_iter().map(UsageSum::from).collect(),
        has_more: false,
    }))
}
