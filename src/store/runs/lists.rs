//! Pages of runs, by id (so by creation time), in either order.
//!
//! One statement for each index that can lead: the narrowest filter given leads, the others are
//! looked at row by row.

use super::rows::{Origin, Run, Status, run_of};
use crate::error::Result;
use crate::sql;
use crate::store::Sql;
use uuid::Uuid;

/// Which runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filters {
    /// Of this project.
    pub project_id: Option<Uuid>,
    /// Turns of this agent.
    pub agent_id: Option<Uuid>,
    /// Turns of this conversation.
    pub conversation_id: Option<Uuid>,
    /// That stand there.
    pub status: Option<Status>,
    /// Begun by these.
    pub origin: Option<Origin>,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The newest first.
    Newest,
    /// The oldest first.
    Oldest,
}

/// A page, and whether more follows it.
#[derive(Debug, Clone, PartialEq)]
pub struct PageOf<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Whether there are more after the last.
    pub has_more: bool,
}

/// A page of the tenant's runs, after the run `after` in the order given, `limit` at most.
///
/// # Errors
/// The database's.
pub fn list(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    filters: &Filters,
    order: Order,
    after: Option<Uuid>,
    limit: usize,
) -> Result<PageOf<Run>> {
    let one_more = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let rows = sql.query(
        statement(filters, order),
        &[
            &tenant_id,
            &filters.project_id,
            &filters.agent_id,
            &filters.conversation_id,
            &filters.status.map(Status::text),
            &filters.origin.map(Origin::text),
            &after,
            &one_more,
        ],
    )?;
    let data = rows.iter().take(limit).map(run_of).collect::<Result<_>>()?;
    Ok(PageOf {
        data,
        has_more: rows.len() > limit,
    })
}

fn statement(filters: &Filters, order: Order) -> &'static str {
    let [newest, oldest] = if filters.conversation_id.is_some() {
        [
            sql!("runs/list_conversation_newest"),
            sql!("runs/list_conversation_oldest"),
        ]
    } else if filters.agent_id.is_some() {
        [
            sql!("runs/list_agent_newest"),
            sql!("runs/list_agent_oldest"),
        ]
    } else if filters.project_id.is_some() {
        [
            sql!("runs/list_project_newest"),
            sql!("runs/list_project_oldest"),
        ]
    } else {
        [sql!("runs/list_all_newest"), sql!("runs/list_all_oldest")]
    };
    match order {
        Order::Newest => newest,
        Order::Oldest => oldest,
    }
}
