//! Pages of runs, by id (so by creation time), in either order.
//!
//! One statement for each index that can lead: the narrowest filter given leads, the others are
//! looked at row by row. Of labels the first one given leads, project by project, unless a conversation does.

use super::labels::LabelFilter;
use super::rows::{Origin, Run, Status, run_of};
use crate::error::Result;
use crate::list_sql;
use crate::proof::Listing;
use crate::store::agents::Agent;
use crate::store::conversations::Conversation;
use crate::store::page::Request;
use crate::store::readable::{Readable, readable};
use crate::store::{Find, Parameter, Sql};
use uuid::Uuid;

/// Which runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// That have these labels.
    pub labels: Option<LabelFilter>,
}

impl Filters {
    fn status(&self) -> Option<&'static str> {
        self.status.map(Status::text)
    }

    fn origin(&self) -> Option<&'static str> {
        self.origin.map(Origin::text)
    }
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
    let Some(named) = named_project(sql, listing, filters)? else {
        return Ok(Vec::new());
    };
    let project_id = match readable(sql, listing, named)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::All => None,
        Readable::OfProject(project_id) => Some(project_id),
        Readable::By(user_id) => return list_reader(sql, tenant_id, user_id, filters, page),
    };
    let (status, origin) = (filters.status(), filters.origin());
    let rows = page.rows();
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &project_id,
        &filters.agent_id,
        &filters.conversation_id,
        &status,
        &origin,
        &page.after,
        &rows,
    ];
    let labels = filters.labels.as_ref();
    let all = labels.map(LabelFilter::all);
    let statement = if filters.conversation_id.is_some() {
        parameters.push(&all);
        list_sql!("runs/list_conversation")
    } else if let Some(labels) = labels {
        parameters.push(&all);
        parameters.extend(labels.first());
        list_sql!("runs/list_label")
    } else if filters.agent_id.is_some() {
        list_sql!("runs/list_agent")
    } else if project_id.is_some() {
        list_sql!("runs/list_project")
    } else {
        list_sql!("runs/list_all")
    };
    let rows = sql.query(statement.by(page.order), &parameters)?;
    rows.iter().map(run_of).collect()
}

/// Of the projects that the user has a way into.
fn list_reader(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    user_id: Uuid,
    filters: &Filters,
    page: &Request,
) -> Result<Vec<Run>> {
    let (status, origin) = (filters.status(), filters.origin());
    let rows = page.rows();
    let mut parameters: Vec<Parameter<'_>> =
        vec![&tenant_id, &user_id, &page.after, &rows, &status, &origin];
    let labels = filters.labels.as_ref();
    let all = labels.map(LabelFilter::all);
    let statement = match labels {
        None => list_sql!("runs/list_reader"),
        Some(labels) => {
            parameters.push(&all);
            parameters.extend(labels.first());
            list_sql!("runs/list_label_reader")
        }
    };
    let rows = sql.query(statement.by(page.order), &parameters)?;
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
