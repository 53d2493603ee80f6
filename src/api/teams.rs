//! `/v1/teams`: people and service accounts that get roles on projects together (section 4.4).

use super::access_changes::change_access;
use super::page_query::PageQuery;
use crate::authz::desired_tuples::{Object, mark};
use crate::error::{Code, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Capability, Listing, Read};
use crate::store::page::Page;
use crate::store::teams::{self, New, Team};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use uuid::Uuid;

const SLUG_CHARACTERS_MOST: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let (all, one) = ("/v1/teams", "/v1/teams/{teamId}");
    vec![
        route(
            Post,
            all,
            "teams.create",
            "Make a team; its creator becomes its admin",
            create,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::AlreadyExists]),
        route(
            Get,
            all,
            "teams.list",
            "List the teams that the caller may read",
            list,
        ),
        route(Get, one, "teams.get", "Read a team", read),
        route(
            Patch,
            one,
            "teams.update",
            "Change a team's name or description; what is left out stays, and the slug does",
            change,
        )
        .needs(Capability::AccessWrite),
        route(
            Delete,
            one,
            "teams.delete",
            "Delete a team, and with it the access that it gave",
            delete,
        )
        .needs(Capability::AccessWrite),
    ]
}

/// Lowercase letters, digits and hyphens (section 2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slug(String);

impl<'de> Deserialize<'de> for Slug {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fits = (1..=SLUG_CHARACTERS_MOST).contains(&text.len());
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if fits && text.bytes().all(plain) {
            return Ok(Self(text));
        }
        Err(serde::de::Error::custom(format!(
            "expected 1 to {SLUG_CHARACTERS_MOST} lowercase letters a to z, digits and hyphens"
        )))
    }
}

impl JsonSchema for Slug {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Slug".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = format!("^[a-z0-9-]{{1,{SLUG_CHARACTERS_MOST}}}$");
        schemars::json_schema!({"type": "string", "pattern": pattern})
    }
}

/// A team.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Team")]
struct View {
    id: Uuid,
    name: String,
    slug: String,
    description: Option<String>,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Team> for View {
    fn from(team: Team) -> Self {
        Self {
            id: team.team_id,
            name: team.name,
            slug: team.slug,
            description: team.description,
            created_by: team.created_by,
            created_at: team.created_at.into(),
            updated_at: team.updated_at.into(),
        }
    }
}

/// A team to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "Support", "slug": "support", "description": "Answers customers."}))]
struct NewTeam {
    name: Name,
    /// Unique in the tenant. It stays when the team is renamed.
    slug: Slug,
    description: Option<Text<0, 4000>>,
}

/// What to change of a team.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "Customer support"}))]
struct ChangeTeam {
    name: Option<Name>,
    description: Option<Text<0, 4000>>,
}

fn create(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(body): Body<NewTeam>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let (team_id, now) = (cx.new_id(), cx.now());
    let new = New {
        team_id,
        name: body.name.as_str(),
        slug: &body.slug.0,
        description: body.description.as_ref().map(Text::as_str),
    };
    let made = change_access(cx, may.caller(), &[Object::Team(team_id)], |tx| {
        teams::insert(tx, &may, may.caller(), &new, now)
    })?;
    Ok(Created(made.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Team>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&"teams")?;
    let rows = teams::list(&mut cx.store().session()?, &listing, &page)?;
    Ok(Found(page.page(rows, |row| row.team_id, View::from)))
}

fn read(_: &Cx<'_>, team: Authorized<Team, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(team.into_row().into()))
}

fn change(
    cx: &Cx<'_>,
    team: Authorized<Team, Admin>,
    Body(body): Body<ChangeTeam>,
) -> Result<Found<View>> {
    let now = cx.now();
    let name = body.name.as_ref().map(Text::as_str);
    let description = body.description.as_ref().map(Text::as_str);
    let changed = cx.transact(|tx| teams::change(tx, &team, name, description, now))?;
    Ok(Found(changed.into()))
}

fn delete(cx: &Cx<'_>, team: Authorized<Team, Admin>, _: Nothing) -> Result<Gone> {
    let tenant_id = team.caller().tenant_id;
    let objects = cx.transact(|tx| {
        let projects = teams::delete(tx, &team)?;
        let mut objects = vec![Object::Team(team.row().team_id)];
        objects.extend(projects.into_iter().map(Object::Project));
        mark(tx, tenant_id, &objects)?;
        Ok(objects)
    })?;
    cx.apply_permissions(tenant_id, &objects)?;
    Ok(Gone)
}
