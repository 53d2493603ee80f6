//! Pages of runs, by id (so by creation time), in either order.
//!
//! One statement for each index that can lead: the narrowest filter given leads, the others are
//! looked at row by row.

use super::rows::{Origin, Run, Status, run_of};
use crate::error::Result;
use crate::proof::Listing;
use crate::sql;
use crate::store::Sql;
use crate::store::page::{Order, Request};
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

/// A page of the tenant's runs.
///
/// # Errors
/// `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Run>,
    filters: &Filters,
    page: &Request,
) -> Result<Vec<Run>> {
    let rows = sql.query(
        statement(filters, page.order),
        &[
            &listing.caller().tenant_id,
            &filters.project_id,
            &filters.agent_id,
            &filters.conversation_id,
            &filters.status.map(Status::text),
            &filters.origin.map(Origin::text),
            &page.after,
            &page.rows(),
        ],
    )?;
    rows.iter().map(run_of).collect()
}

fn statement(filters: &Filters, order: Order) -> &'static str {
    let [desc, asc] = if filters.conversation_id.is_some() {
        [
            sql!("runs/list_conversation_desc"),
            sql!("runs/list_conversation_asc"),
        ]
    } else if filters.agent_id.is_some() {
        [sql!("runs/list_agent_desc"), sql!("runs/list_agent_asc")]
    } else if filters.project_id.is_some() {
        [
            sql!("runs/list_project_desc"),
            sql!("runs/list_project_asc"),
        ]
    } else {
        [sql!("runs/list_all_desc"), sql!("runs/list_all_asc")]
    };
    match order {
        Order::Desc => desc,
        Order::Asc => asc,
    }
}
