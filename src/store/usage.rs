//! What model calls used, summed over a time.
//!
//! Guarantees: each call counts once, with the run that made it, on the day on which that run was created, whenever it is
//! committed. Only runs that the caller may read count.
//!
//! Not here: what one run used, its children included, which its own row says (`runs`).

use super::readable::{Readable, readable};
use super::runs::{Run, Usage, ids_between, usage_of};
use super::{Columns, FromRow, Sql};
use crate::error::Result;
use crate::proof::Listing;
use crate::sql;
use postgres::Row;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

/// Which calls are summed.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    /// Of runs that were created then or later.
    pub from: OffsetDateTime,
    /// And before then.
    pub to: OffsetDateTime,
    /// Of this project.
    pub project_id: Option<Uuid>,
    /// Of this agent.
    pub agent_id: Option<Uuid>,
}

/// What has sums of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Groups {
    /// Each day (UTC).
    pub day: bool,
    /// Each project.
    pub project: bool,
    /// Each agent, and what no agent asked.
    pub agent: bool,
    /// Each model of a provider.
    pub model: bool,
}

/// The sums of a group. What it is not grouped by is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// The day.
    pub day: Option<Date>,
    /// The project.
    pub project_id: Option<Uuid>,
    /// The agent; also absent where it was none.
    pub agent_id: Option<Uuid>,
    /// The model's provider.
    pub model_provider_id: Option<Uuid>,
    /// The model.
    pub model: Option<String>,
    /// What was used.
    pub usage: Usage,
    /// Of the calls, those whose cost is not known.
    pub calls_without_cost: i64,
}

impl FromRow for Sum {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            day: row.column("day")?,
            project_id: row.column("project_id")?,
            agent_id: row.column("agent_id")?,
            model_provider_id: row.column("model_provider_id")?,
            model: row.column("model")?,
            usage: usage_of(row)?,
            calls_without_cost: row.column("calls_without_cost")?,
        })
    }
}

/// The sums, by what they are grouped by, in this order: day, project, agent, model. `most` groups at most.
pub fn sum(
    sql: &mut impl Sql,
    listing: &Listing<Run>,
    filter: &Filter,
    groups: Groups,
    most: i64,
) -> Result<Vec<Sum>> {
    let (project_id, user_id) = match readable(sql, listing, filter.project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::All => (None, None),
        Readable::OfProject(project_id) => (Some(project_id), None),
        Readable::By(user_id) => (None, Some(user_id)),
    };
    let tenant_id = listing.caller().tenant_id;
    let (low, high) = ids_between(Some(filter.from), Some(filter.to));
    sql.fetch_all(
        sql!("usage/sum"),
        &[
            &tenant_id,
            &project_id,
            &user_id,
            &low,
            &high,
            &filter.from,
            &filter.to,
            &groups.day,
            &groups.project,
            &groups.agent,
            &groups.model,
            &filter.agent_id,
            &most,
        ],
    )
}
