//! Pages of runs, by id (so by creation time), in either order.
//!
//! One statement for each index that can lead: the narrowest filter given leads, the others are
//! looked at row by row.

use super::rows::{Origin, Run, Status, run_of};
use crate::error::Result;
use crate::list_sql;
use crate::proof::Listing;
use crate::store::agents::Agent;
use crate::store::conversations::Conversation;
use crate::store::page::{Order, Request};
use crate::store::readable::{Readable, readable};
use crate::store::{Find, Sql};
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
    let tenant_id = listing.caller().tenant_id;
    let (status, origin) = (
        filters.status.map(Status::text),
        filters.origin.map(Origin::text),
    );
    let Some(named) = named_project(sql, listing, filters)? else {
        return Ok(Vec::new());
    };
    let project_id = match readable(sql, listing, named)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::All => None,
        Readable::OfProject(project_id) => Some(project_id),
        Readable::By(user_id) => {
            let rows = sql.query(
                list_sql!("runs/list_reader").by(page.order),
                &[
                    &tenant_id,
                    &user_id,
                    &page.after,
                    &page.rows(),
                    &status,
                    &origin,
                ],
            )?;
            return rows.iter().map(run_of).collect();
        }
    };
    let filters = Filters {
        project_id,
        ..*filters
    };
    let rows = sql.query(
        statement(&filters, page.order),
        &[
            &tenant_id,
            &filters.project_id,
            &filters.agent_id,
            &filters.conversation_id,
            &status,
            &origin,
            &page.after,
            &page.rows(),
        ],
    )?;
    rows.iter().map(run_of).collect()
}

/// The project that the filters name, which an agent and a conversation name too. None: they fit no
/// run.
fn named_project(
    sql: &mut impl Sql,
    listing: &Listing<Run>,
    filters: &Filters,
) -> Result<Option<Option<Uuid>>> {
    let tenant_id = listing.caller().tenant_id;
    let mut named = filters.project_id;
    if let Some(id) = filters.agent_id {
        match Agent::find(sql, tenant_id, id)? {
            Some(agent) if named.is_none_or(|named| named == agent.project_id) => {
                named = Some(agent.project_id);
            }
            _ => return Ok(None),
        }
    }
    if let Some(id) = filters.conversation_id {
        match Conversation::find(sql, tenant_id, id)? {
            Some(found) if named.is_none_or(|named| named == found.project_id) => {
                named = Some(found.project_id);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(named))
}

fn statement(filters: &Filters, order: Order) -> &'static str {
    let list = if filters.conversation_id.is_some() {
        list_sql!("runs/list_conversation")
    } else if filters.agent_id.is_some() {
        list_sql!("runs/list_agent")
    } else if filters.project_id.is_some() {
        list_sql!("runs/list_project")
    } else {
        list_sql!("runs/list_all")
    };
    list.by(order)
}
