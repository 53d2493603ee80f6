//! `/v1/projects`.

use super::access_changes::change_access;
use super::page_query::page_query;
use crate::authz::desired_tuples::Object;
use crate::error::Result;
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query};
use crate::http::output::{Created, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Listing, Read, Write};
use crate::store::page::Page;
use crate::store::projects::{self, Project};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Patch, Post};
    vec![
        route(
            Post,
            "/v1/projects",
            "projects.create",
            "Make a project; its creator becomes its owner",
            create,
        ),
        route(
            Get,
            "/v1/projects",
            "projects.list",
            "List the projects that the caller may read",
            list,
        ),
        route(
            Get,
            "/v1/projects/{projectId}",
            "projects.get",
            "Read a project",
            read,
        ),
        route(
            Patch,
            "/v1/projects/{projectId}",
            "projects.update",
            "Rename a project",
            rename,
        ),
    ]
}

/// A project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Project")]
pub(super) struct View {
    id: Uuid,
    name: String,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Since when it is archived; null while it is not.
    archived_at: Option<Timestamp>,
}

impl From<Project> for View {
    fn from(project: Project) -> Self {
        Self {
            id: project.project_id,
            name: project.name,
            created_by: project.created_by,
            created_at: project.created_at.into(),
            updated_at: project.updated_at.into(),
            archived_at: project.archived_at.map(Into::into),
        }
    }
}

/// A project to make, or a project's new name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "Support"}))]
struct ProjectName {
    name: Name,
}

page_query! {
    /// Which projects.
    ListProjects {
        /// True: those alone that are archived. False: the others.
        #[serde(default)]
        archived: bool,
    }
}

fn create(
    cx: &Cx<'_>,
    tenant: OnTenant<Write>,
    Body(new): Body<ProjectName>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let (id, now) = (cx.new_id(), cx.now());
    let project = change_access(cx, may.caller(), &[Object::Project(id)], |tx| {
        projects::insert(tx, &may, may.caller(), id, new.name.as_str(), now)
    })?;
    Ok(Created(project.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Project>,
    Query(query): Query<ListProjects>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&("projects", query.archived))?;
    let mut session = cx.store().session()?;
    let rows = projects::list(&mut session, &listing, query.archived, &page)?;
    Ok(Found(page.page(rows, |row| row.project_id, View::from)))
}

fn read(_: &Cx<'_>, project: Authorized<Project, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(project.into_row().into()))
}

fn rename(
    cx: &Cx<'_>,
    project: Authorized<Project, Admin>,
    Body(new): Body<ProjectName>,
) -> Result<Found<View>> {
    let now = cx.now();
    let renamed = cx.transact(|tx| projects::rename(tx, &project, new.name.as_str(), now))?;
    Ok(Found(renamed.into()))
}
