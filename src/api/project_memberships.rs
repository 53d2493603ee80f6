//! `/v1/projects/{projectId}/memberships`: direct roles on a project (section 4.3).

use super::access_changes::change_access;
use super::page_query::PageQuery;
use super::request_parts::{SOME_ID, Whom, given_role, given_roles, id_in_path};
use crate::authz::desired_tuples::Object;
use crate::error::{Code, Result};
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Capability, Write};
use crate::store::page::Page;
use crate::store::principals::PrincipalKind;
use crate::store::project_access;
use crate::store::project_memberships::{self, Membership, Role};
use crate::store::projects::Project;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let all = "/v1/projects/{projectId}/memberships";
    let one = "/v1/projects/{projectId}/memberships/{userId}";
    vec![
        route(
            Post,
            all,
            "projects.memberships.add",
            "Add somebody to a project; the same role once more answers the membership as it is",
            add,
        )
        .needs(Capability::AccessWrite)
        .answers(&[
            Code::RoleNotGiven,
            Code::MembershipExists,
            Code::ProjectArchived,
            Code::LastOwner,
            Code::Conflict,
        ]),
        route(
            Get,
            all,
            "projects.memberships.list",
            "List the members of a project",
            list,
        ),
        route(
            Patch,
            one,
            "projects.memberships.updateRole",
            "Change a member's role",
            change,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::RoleNotGiven, Code::LastOwner]),
        route(
            Delete,
            one,
            "projects.memberships.remove",
            "Remove a member from a project",
            remove,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::LastOwner]),
    ]
}

/// Somebody's membership of a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Membership")]
struct View {
    project_id: Uuid,
    user_id: Uuid,
    kind: PrincipalKind,
    display_name: String,
    /// A person's email; for the project's admins alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_email: Option<String>,
    role: Role,
    joined_at: Timestamp,
    /// Since when the user can do nothing any more, whatever their role.
    #[serde(skip_serializing_if = "Option::is_none")]
    deactivated_at: Option<Timestamp>,
}

/// Of a project, to somebody who may see emails or not.
fn view(project_id: Uuid, sees_emails: bool, membership: Membership) -> View {
    View {
        project_id,
        user_id: membership.user_id,
        kind: membership.kind,
        display_name: membership.display_name,
        primary_email: membership.primary_email.filter(|_| sees_emails),
        role: membership.role,
        joined_at: membership.joined_at.into(),
        deactivated_at: membership.deactivated_at.map(Into::into),
    }
}

/// Somebody to add: by id, or a person by email.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"userId": SOME_ID, "role": "editor"}))]
struct AddMembership {
    user_id: Option<Id>,
    /// Of one of the tenant's people, in any case.
    email: Option<Text<1, 320>>,
    #[schemars(schema_with = "given_roles")]
    role: Role,
}

/// A member's new role.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"role": "viewer"}))]
struct ChangeMembership {
    #[schemars(schema_with = "given_roles")]
    role: Role,
}

fn add(
    cx: &Cx<'_>,
    project: Authorized<Project, Admin>,
    Body(new): Body<AddMembership>,
) -> Result<Created<View>> {
    let role = given_role(new.role)?;
    let named = Whom(new.user_id, new.email).named()?;
    let (project_id, now) = (project.row().project_id, cx.now());
    let objects = [Object::Project(project_id)];
    let added = change_access(cx, project.caller(), &objects, |tx| {
        project_memberships::add(tx, &project, &named, role, now)
    })?;
    Ok(Created(view(project_id, true, added)))
}

fn list(
    cx: &Cx<'_>,
    project: Authorized<Project, Write>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let project_id = project.row().project_id;
    let binding = ("memberships", project_id);
    let page = query.page(&binding)?;
    let mut session = cx.store().session()?;
    let rows = project_memberships::list(&mut session, &project, &page)?;
    let sees_emails =
        !cx.checker()?.enforces() || project_access::administers(&mut session, &project)?;
    let show = |row| view(project_id, sees_emails, row);
    Ok(Found(page.page(rows, |row| row.user_id, show)))
}

fn change(
    cx: &Cx<'_>,
    project: Authorized<Project, Admin>,
    Body(new): Body<ChangeMembership>,
) -> Result<Found<View>> {
    let role = given_role(new.role)?;
    let user_id = id_in_path(cx, "userId", "user")?;
    let project_id = project.row().project_id;
    let objects = [Object::Project(project_id)];
    let changed = change_access(cx, project.caller(), &objects, |tx| {
        project_memberships::change(tx, &project, user_id, role)
    })?;
    Ok(Found(view(project_id, true, changed)))
}

fn remove(cx: &Cx<'_>, project: Authorized<Project, Admin>, _: Nothing) -> Result<Gone> {
    let user_id = id_in_path(cx, "userId", "user")?;
    let objects = [Object::Project(project.row().project_id)];
    change_access(cx, project.caller(), &objects, |tx| {
        project_memberships::remove(tx, &project, user_id)
    })?;
    Ok(Gone)
}
