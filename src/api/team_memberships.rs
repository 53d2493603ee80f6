//! `/v1/teams/{teamId}/memberships`: the members of a team (section 4.4).
//!
//! A plain member may read the team, but not its members.

use super::access_changes::change_access;
use super::page_query::PageQuery;
use super::request_parts::{SOME_ID, Whom, id_in_path};
use crate::authz::desired_tuples::Object;
use crate::error::{Code, Result};
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Capability};
use crate::store::page::Page;
use crate::store::principals::PrincipalKind;
use crate::store::team_memberships::{self, Role, TeamMembership};
use crate::store::teams::Team;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let all = "/v1/teams/{teamId}/memberships";
    let one = "/v1/teams/{teamId}/memberships/{userId}";
    vec![
        route(
            Post,
            all,
            "teams.memberships.add",
            "Add somebody to a team; the same role once more answers the membership as it is",
            add,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::MembershipExists, Code::Conflict]),
        route(
            Get,
            all,
            "teams.memberships.list",
            "List who is in a team",
            list,
        ),
        route(
            Patch,
            one,
            "teams.memberships.updateRole",
            "Change the role of somebody in a team",
            change,
        )
        .needs(Capability::AccessWrite),
        route(
            Delete,
            one,
            "teams.memberships.remove",
            "Remove somebody from a team",
            remove,
        )
        .needs(Capability::AccessWrite),
    ]
}

/// Somebody's membership of a team.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TeamMembership")]
struct View {
    team_id: Uuid,
    user_id: Uuid,
    kind: PrincipalKind,
    display_name: String,
    role: Role,
    joined_at: Timestamp,
    /// The identity provider whose groups gave it, and take it away; absent: somebody gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_provider_id: Option<Uuid>,
    /// Since when the user can do nothing any more, whatever their role.
    #[serde(skip_serializing_if = "Option::is_none")]
    deactivated_at: Option<Timestamp>,
}

impl From<TeamMembership> for View {
    fn from(membership: TeamMembership) -> Self {
        Self {
            team_id: membership.team_id,
            user_id: membership.user_id,
            kind: membership.kind,
            display_name: membership.display_name,
            role: membership.role,
            joined_at: membership.joined_at.into(),
            identity_provider_id: membership.source_provider_id,
            deactivated_at: membership.deactivated_at.map(Into::into),
        }
    }
}

/// Somebody to add: by id, or a person by email.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"userId": SOME_ID, "role": "member"}))]
struct AddTeamMembership {
    user_id: Option<Id>,
    /// Of one of the tenant's people, in any case.
    email: Option<Text<1, 320>>,
    role: Role,
}

/// The new role of somebody in a team.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"role": "admin"}))]
struct ChangeTeamMembership {
    role: Role,
}

fn add(
    cx: &Cx<'_>,
    team: Authorized<Team, Admin>,
    Body(new): Body<AddTeamMembership>,
) -> Result<Created<View>> {
    let named = Whom(new.user_id, new.email).named()?;
    let now = cx.now();
    let objects = [Object::Team(team.row().team_id)];
    let added = change_access(cx, team.caller(), &objects, |tx| {
        team_memberships::add(tx, &team, &named, new.role, now)
    })?;
    Ok(Created(added.into()))
}

fn list(
    cx: &Cx<'_>,
    team: Authorized<Team, Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let binding = ("team memberships", team.row().team_id);
    let page = query.page(&binding)?;
    let rows = team_memberships::list(&mut cx.store().session()?, &team, &page)?;
    Ok(Found(page.page(rows, |row| row.user_id, View::from)))
}

fn change(
    cx: &Cx<'_>,
    team: Authorized<Team, Admin>,
    Body(new): Body<ChangeTeamMembership>,
) -> Result<Found<View>> {
    let user_id = id_in_path(cx, "userId", "user")?;
    let objects = [Object::Team(team.row().team_id)];
    let changed = change_access(cx, team.caller(), &objects, |tx| {
        team_memberships::change(tx, &team, user_id, new.role)
    })?;
    Ok(Found(changed.into()))
}

fn remove(cx: &Cx<'_>, team: Authorized<Team, Admin>, _: Nothing) -> Result<Gone> {
    let user_id = id_in_path(cx, "userId", "user")?;
    let objects = [Object::Team(team.row().team_id)];
    change_access(cx, team.caller(), &objects, |tx| {
        team_memberships::remove(tx, &team, user_id)
    })?;
    Ok(Gone)
}
