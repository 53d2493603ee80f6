//! `/v1/projects/{projectId}/team-grants`: roles of teams on projects (section 4.5).
//! `/v1/teams/{teamId}/project-grants`: the same by team.

use super::access_changes::change_access;
use super::page_query::PageQuery;
use super::request_parts::{SOME_ID, given_role, id_in_path, invalid_body};
use crate::authz::desired_tuples::Object;
use crate::error::{Code, Result};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Capability, Read, Write};
use crate::store::page::Page;
use crate::store::project_memberships::Role;
use crate::store::projects::Project;
use crate::store::team_grants::{self, TeamGrant};
use crate::store::teams::Team;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let all = "/v1/projects/{projectId}/team-grants";
    let one = "/v1/projects/{projectId}/team-grants/{teamId}";
    vec![
        route(
            Post,
            all,
            "projects.teamGrants.add",
            "Give a team a role on a project; the same role once more answers the grant as it is",
            add,
        )
        .needs(Capability::AccessWrite)
        .answers(&[
            Code::RoleNotGiven,
            Code::TeamGrantExists,
            Code::ProjectArchived,
        ]),
        route(
            Get,
            all,
            "projects.teamGrants.list",
            "List the teams with a role on a project",
            list,
        ),
        route(
            Patch,
            one,
            "projects.teamGrants.updateRole",
            "Change a team's role on a project",
            change,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::RoleNotGiven]),
        route(
            Delete,
            one,
            "projects.teamGrants.remove",
            "Take a team's role on a project",
            remove,
        )
        .needs(Capability::AccessWrite),
        route(
            Get,
            "/v1/teams/{teamId}/project-grants",
            "teams.projectGrants.list",
            "List the projects that a team has a role on",
            list_of_team,
        ),
    ]
}

/// A team's role on a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TeamGrant")]
struct View {
    project_id: Uuid,
    project_name: String,
    team_id: Uuid,
    team_name: String,
    #[schemars(schema_with = "team_roles")]
    role: Role,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<TeamGrant> for View {
    fn from(grant: TeamGrant) -> Self {
        Self {
            project_id: grant.project_id,
            project_name: grant.project_name,
            team_id: grant.team_id,
            team_name: grant.team_name,
            role: grant.role,
            created_by: grant.created_by,
            created_at: grant.created_at.into(),
            updated_at: grant.updated_at.into(),
        }
    }
}

/// A team, and the role to give it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"teamId": SOME_ID, "role": "viewer"}))]
struct NewTeamGrant {
    team_id: Id,
    #[schemars(schema_with = "team_roles")]
    role: Role,
}

impl Names<Team> for NewTeamGrant {
    fn named(&self) -> Uuid {
        self.team_id.0
    }
}

/// A team's new role.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"role": "editor"}))]
struct ChangeTeamGrant {
    #[schemars(schema_with = "team_roles")]
    role: Role,
}

/// The project roles that a team may have.
fn team_roles(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "string", "enum": ["admin", "editor", "viewer"]})
}

/// A role that may be given to a team (section 4.5 rule 2).
fn team_role(role: Role) -> Result<Role> {
    match given_role(role)? {
        Role::Owner => Err(invalid_body(
            "$.role",
            "admin, editor or viewer: a team never owns a project",
        )),
        role => Ok(role),
    }
}

fn add(
    cx: &Cx<'_>,
    access: (Authorized<Project, Admin>, BodyOn<NewTeamGrant, Team, Read>),
    _: Nothing,
) -> Result<Created<View>> {
    let (project, BodyOn { body, on: team }) = access;
    let (role, now) = (team_role(body.role)?, cx.now());
    let objects = [Object::Project(project.row().project_id)];
    let granted = change_access(cx, project.caller(), &objects, |tx| {
        team_grants::add(tx, &project, &team, project.caller(), role, now)
    })?;
    Ok(Created(granted.into()))
}

fn list(
    cx: &Cx<'_>,
    project: Authorized<Project, Write>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let binding = ("team grants", project.row().project_id);
    let page = query.page(&binding)?;
    let rows = team_grants::list(&mut cx.store().session()?, &project, &page)?;
    Ok(Found(page.page(rows, |row| row.team_id, View::from)))
}

fn change(
    cx: &Cx<'_>,
    project: Authorized<Project, Admin>,
    Body(new): Body<ChangeTeamGrant>,
) -> Result<Found<View>> {
    let role = team_role(new.role)?;
    let (team_id, now) = (id_in_path(cx, "teamId", "team")?, cx.now());
    let objects = [Object::Project(project.row().project_id)];
    let changed = change_access(cx, project.caller(), &objects, |tx| {
        team_grants::change(tx, &project, team_id, role, now)
    })?;
    Ok(Found(changed.into()))
}

fn remove(cx: &Cx<'_>, project: Authorized<Project, Admin>, _: Nothing) -> Result<Gone> {
    let team_id = id_in_path(cx, "teamId", "team")?;
    let objects = [Object::Project(project.row().project_id)];
    change_access(cx, project.caller(), &objects, |tx| {
        team_grants::remove(tx, &project, team_id)
    })?;
    Ok(Gone)
}

fn list_of_team(
    cx: &Cx<'_>,
    team: Authorized<Team, Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let binding = ("project grants", team.row().team_id);
    let page = query.page(&binding)?;
    let rows = team_grants::list_of_team(&mut cx.store().session()?, &team, &page)?;
    Ok(Found(page.page(rows, |row| row.project_id, View::from)))
}
