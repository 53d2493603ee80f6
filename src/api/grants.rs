//! The caller's identity and what roles allow, and the roles of a user (section 4.2).

use super::page_query::FixedOrderQuery;
use super::project_access::Way as WayView;
use crate::authz::GrantsReader;
use crate::authz::roles::{Action, ObjectKind, Role};
use crate::error::{Error, Result};
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query};
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::proof::{Caller, Capability, KeyRole};
use crate::store::grants::{self, ProjectGrant, SHOWN_MOST};
use crate::store::page::{Order, Request};
use crate::store::principals::PrincipalKind;
use crate::store::project_memberships::Role as ProjectRole;
use crate::store::reviewers;
use crate::store::team_memberships::{self, Role as TeamRole};
use crate::store::users::{self, TenantRole};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::Get;
    vec![
        route(
            Get,
            "/v1/identity/me/permissions",
            "me.permissions",
            "Who the caller is, and what each role allows",
            permissions,
        ),
        route(
            Get,
            "/v1/identity/users/{userId}/grants",
            "users.grants",
            "List the roles that a user has; the projects page",
            grants_of,
        ),
    ]
}

/// The key of the request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "KeyLimits")]
struct KeyView {
    id: Uuid,
    role: KeyRole,
    capabilities: Vec<Capability>,
    /// The one project that the key is limited to.
    project_id: Option<Uuid>,
}

/// What a role allows.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RolePermissions")]
struct RoleView {
    /// What it is a role in: `tenant`, `org`, `team` or `project`; of a reviewer role `reviewer`.
    scope: &'static str,
    role: Cow<'static, str>,
    /// The actions on each kind of object; what belongs to the tenant as a whole is of kind `tenant`. A reviewer role allows
    /// actions on approvals that require it.
    allows: BTreeMap<&'static str, Vec<Action>>,
}

/// Who the caller is, and what each role allows.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Permissions {
    tenant_id: Uuid,
    user_id: Uuid,
    kind: PrincipalKind,
    key: KeyView,
    tenant_role: TenantRole,
    reviewer_roles: Vec<String>,
    /// The caller is in a team.
    in_team: bool,
    /// That the server's license ends within 30 days, or has ended, and what to do. For tenant admins alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    license_warning: Option<String>,
    /// Every role of the tenant, of orgs, of teams and of projects, and the caller's own reviewer roles.
    roles: Vec<RoleView>,
}

/// The kind of object that reviewer roles are about. The authorization model does not know it.
const APPROVAL: &str = "approval";

/// What a reviewer role allows, and no other role does.
fn reviewer_role_view(role: &str) -> RoleView {
    let none = ObjectKind::ALL
        .into_iter()
        .map(|kind| (kind.text(), Vec::new()));
    let own = (APPROVAL, vec![Action::Read, Action::Write]);
    RoleView {
        scope: "reviewer",
        role: Cow::Owned(role.to_owned()),
        allows: none.chain([own]).collect(),
    }
}

fn role_view(role: Role) -> RoleView {
    let (scope, name) = role.texts();
    let allows = ObjectKind::ALL.into_iter().map(|kind| {
        let most = role.most(kind);
        let allowed = Action::ALL.into_iter();
        let actions = allowed.filter(|action| most.is_some_and(|most| *action <= most));
        (kind.text(), actions.collect())
    });
    RoleView {
        scope,
        role: Cow::Borrowed(name),
        allows: allows.chain([(APPROVAL, Vec::new())]).collect(),
    }
}

fn permissions(cx: &Cx<'_>, caller: Caller, _: Nothing) -> Result<Found<Permissions>> {
    let mut session = cx.store().session()?;
    let user = users::find(&mut session, caller.tenant_id, caller.user_id)?
        .ok_or_else(|| Error::not_found("user", caller.user_id))?;
    let is_admin = user.tenant_role == TenantRole::Admin && caller.key.role == KeyRole::Admin;
    let license = cx.license().filter(|_| is_admin);
    let reviewer_roles = reviewers::roles(&mut session, caller.tenant_id, caller.user_id)?;
    let roles = Role::ALL.into_iter().map(role_view);
    let own = reviewer_roles.iter().map(|role| reviewer_role_view(role));
    let roles = roles.chain(own).collect();
    Ok(Found(Permissions {
        license_warning: license.and_then(|license| license.warning(cx.now())),
        tenant_id: caller.tenant_id,
        user_id: caller.user_id,
        kind: user.kind,
        key: KeyView {
            id: caller.token_id,
            role: caller.key.role,
            capabilities: caller.key.capabilities.iter().collect(),
            project_id: caller.key.project_id,
        },
        tenant_role: user.tenant_role,
        reviewer_roles,
        in_team: team_memberships::is_in_any(&mut session, caller.tenant_id, caller.user_id)?,
        roles,
    }))
}

/// An org that the user is an admin of.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OrgGrant")]
struct OrgView {
    org_id: Uuid,
    org_name: String,
}

/// A team that the user is in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TeamRoleGrant")]
struct TeamView {
    team_id: Uuid,
    team_name: String,
    role: TeamRole,
}

/// A project that the user has ways into.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ProjectGrant")]
struct ProjectView {
    project_id: Uuid,
    project_name: String,
    /// The highest role that any way gives.
    role: ProjectRole,
    via: Vec<WayView>,
}

/// The roles of a user.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Grants {
    user_id: Uuid,
    kind: PrincipalKind,
    /// Absent for a user who was deactivated. An admin is an admin of every project, those that are
    /// not listed included.
    tenant_role: Option<TenantRole>,
    /// Of more than 1,000, the first.
    orgs: Vec<OrgView>,
    orgs_has_more: bool,
    /// Of more than 1,000, the first.
    teams: Vec<TeamView>,
    teams_has_more: bool,
    /// A page of them, each with every way in.
    projects: Vec<ProjectView>,
    reviewer_roles: Vec<String>,
    /// More projects follow.
    has_more: bool,
    /// Give it as `cursor` to read on; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

fn project_view(grant: ProjectGrant, tenant_role: Option<TenantRole>) -> ProjectView {
    let mut role = grant.role;
    let mut via: Vec<WayView> = grant.ways.into_iter().map(WayView::from).collect();
    if tenant_role == Some(TenantRole::Admin) {
        // The highest role is the first.
        role = role.min(ProjectRole::Admin);
        via.push(WayView::TenantAdmin);
    }
    ProjectView {
        project_id: grant.project_id,
        project_name: grant.name,
        role,
        via,
    }
}

fn grants_of(
    cx: &Cx<'_>,
    reader: GrantsReader,
    Query(query): Query<FixedOrderQuery>,
) -> Result<Found<Grants>> {
    let (tenant_id, user) = (reader.tenant_id(), reader.user());
    let user_id = user.user_id;
    let binding = ("grants", user_id);
    let order = Some(Order::Asc);
    let page = Request::new(query.cursor.as_deref(), query.limit, order, &binding)?;
    let mut session = cx.store().session()?;
    let mut orgs = grants::orgs(&mut session, tenant_id, user_id)?;
    let mut teams = grants::teams(&mut session, tenant_id, user_id)?;
    let project_id = reader.project_id();
    let projects = grants::projects(&mut session, tenant_id, user_id, project_id, &page)?;
    let reviewer_roles = reviewers::roles(&mut session, tenant_id, user_id)?;
    drop(session);
    let is_active = user.deactivated_at.is_none();
    let tenant_role = is_active.then_some(user.tenant_role);
    let projects = page.page(
        projects,
        |grant| grant.project_id,
        |grant| project_view(grant, tenant_role),
    );
    let (orgs_has_more, teams_has_more) = (orgs.len() > SHOWN_MOST, teams.len() > SHOWN_MOST);
    orgs.truncate(SHOWN_MOST);
    teams.truncate(SHOWN_MOST);
    let org_view = |org: grants::OrgGrant| OrgView {
        org_id: org.org_id,
        org_name: org.name,
    };
    let team_view = |team: grants::TeamGrant| TeamView {
        team_id: team.team_id,
        team_name: team.name,
        role: team.role,
    };
    Ok(Found(Grants {
        user_id,
        kind: user.kind,
        tenant_role,
        orgs: orgs.into_iter().map(org_view).collect(),
        orgs_has_more,
        teams: teams.into_iter().map(team_view).collect(),
        teams_has_more,
        projects: projects.data,
        reviewer_roles: if is_active {
            reviewer_roles
        } else {
            Vec::new()
        },
        has_more: projects.has_more,
        next_cursor: projects.next_cursor,
    }))
}
