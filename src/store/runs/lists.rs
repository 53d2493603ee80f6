//! Pages of runs, by id (so by creation time), in either order.
//!
//! One statement for each index that can lead: the narrowest filter given leads, the others are
//! looked at row by row. A tree of runs leads before all else. Of labels the first one given leads, project by project, unless
//! a tree or a conversation does.

use super::labels::LabelFilter;
use super::rows::{Origin, Run, Status, WaitingFor, run_of};
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
    /// Of this flow, in any version.
    pub flow_id: Option<String>,
    /// Below this root, at any depth.
    pub root_run_id: Option<Uuid>,
    /// Begun by this run.
    pub parent_run_id: Option<Uuid>,
    /// That wait for this.
    pub waiting_for: Option<WaitingFor>,
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

    fn waiting_for(&self) -> Option<&'static str> {
        self.waiting_for.map(WaitingFor::text)
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
    let Some(named) = named(sql, listing, filters)? else {
        return Ok(Vec::new());
    };
    let project_id = match readable(sql, listing, named.project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::All => None,
        Readable::OfProject(project_id) => Some(project_id),
        Readable::By(user_id) => return list_reader(sql, tenant_id, user_id, filters, page),
    };
    let (status, origin) = (filters.status(), filters.origin());
    let (waiting_for, rows) = (filters.waiting_for(), page.rows());
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &project_id,
        &filters.agent_id,
        &filters.conversation_id,
        &status,
        &origin,
        &page.after,
        &rows,
        &filters.flow_id,
        &waiting_for,
    ];
    let labels = filters.labels.as_ref();
    let all = labels.map(LabelFilter::all);
    let statement = if named.root_run_id.is_some() {
        parameters.push(&all);
        parameters.push(&named.root_run_id);
        parameters.push(&filters.parent_run_id);
        list_sql!("runs/list_tree")
    } else if filters.conversation_id.is_some() {
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
    let (waiting_for, rows) = (filters.waiting_for(), page.rows());
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &user_id,
        &page.after,
        &rows,
        &status,
        &origin,
        &filters.flow_id,
        &waiting_for,
    ];
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

/// What the filters name, by themselves or by an object that they name.
struct Named {
    project_id: Option<Uuid>,
    root_run_id: Option<Uuid>,
}

/// What the filters name: an agent, a conversation and a run name their project too, a parent its root. None: they fit
/// no run.
fn named(sql: &mut impl Sql, listing: &Listing<Run>, filters: &Filters) -> Result<Option<Named>> {
    let tenant_id = listing.caller().tenant_id;
    let mut named = Named {
        project_id: filters.project_id,
        root_run_id: filters.root_run_id,
    };
    let mut projects = Vec::new();
    if let Some(id) = filters.agent_id {
        projects.push(Agent::find(sql, tenant_id, id)?.map(|agent| agent.project_id));
    }
    if let Some(id) = filters.conversation_id {
        projects.push(Conversation::find(sql, tenant_id, id)?.map(|found| found.project_id));
    }
    if let Some(id) = filters.root_run_id {
        projects.push(Run::find(sql, tenant_id, id)?.map(|root| root.project_id));
    }
    if let Some(id) = filters.parent_run_id {
        let parent = Run::find(sql, tenant_id, id)?;
        let root_id = parent.as_ref().map(|parent| parent.root_run_id);
        if !agrees(&mut named.root_run_id, root_id) {
            return Ok(None);
        }
        projects.push(parent.map(|parent| parent.project_id));
    }
    let agree = projects
        .into_iter()
        .all(|found| agrees(&mut named.project_id, found));
    Ok(agree.then_some(named))
}

/// Whether this was found, and is what is named so far; it is named from then on.
fn agrees(named: &mut Option<Uuid>, found: Option<Uuid>) -> bool {
    found.is_some_and(|found| *named.get_or_insert(found) == found)
}
