//! `/v1/orgs`: orgs, whose admins are admins of every project of the org (section 5.4).

use super::access_changes::change_access;
use super::page_query::PageQuery;
use super::projects::View as ProjectView;
use super::request_parts::{SOME_ID, Whom, id_in_path};
use crate::authz::desired_tuples::Object;
use crate::error::{Code, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Capability, Listing, Read};
use crate::store::orgs::{self, Org, OrgAdmin};
use crate::store::page::Page;
use crate::store::projects;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Patch, Post};
    let (all, one) = ("/v1/orgs", "/v1/orgs/{orgId}");
    let admins = "/v1/orgs/{orgId}/admins";
    let unavailable = Code::AuthorizationUnavailable;
    vec![
        route(Post, all, "orgs.create", "Make an org", create)
            .needs(Capability::AccessWrite)
            .answers(&[Code::AlreadyExists, unavailable]),
        route(
            Get,
            all,
            "orgs.list",
            "List the orgs: a tenant admin's are all, another's those that they are an admin of",
            list,
        ),
        route(Get, one, "orgs.get", "Read an org", read),
        route(Patch, one, "orgs.update", "Rename an org", rename)
            .needs(Capability::AccessWrite)
            .answers(&[Code::AlreadyExists]),
        route(
            Post,
            admins,
            "orgs.admins.add",
            "Make a person an admin of an org; one who is stays as they are",
            add_admin,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::Conflict, unavailable]),
        route(
            Get,
            admins,
            "orgs.admins.list",
            "List the admins of an org",
            list_admins,
        ),
        route(
            Delete,
            "/v1/orgs/{orgId}/admins/{userId}",
            "orgs.admins.remove",
            "Take an org from one of its admins",
            remove_admin,
        )
        .needs(Capability::AccessWrite)
        .answers(&[unavailable]),
        route(
            Post,
            "/v1/orgs/{orgId}/projects",
            "orgs.projects.create",
            "Make a project in an org; its creator becomes its owner",
            create_project,
        )
        .answers(&[unavailable]),
    ]
}

/// An org.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Org")]
struct View {
    id: Uuid,
    name: String,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Org> for View {
    fn from(org: Org) -> Self {
        Self {
            id: org.org_id,
            name: org.name,
            created_by: org.created_by,
            created_at: org.created_at.into(),
            updated_at: org.updated_at.into(),
        }
    }
}

/// An admin of an org.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OrgAdmin")]
struct AdminView {
    org_id: Uuid,
    user_id: Uuid,
    display_name: String,
    primary_email: Option<String>,
    joined_at: Timestamp,
}

fn admin_view(org_id: Uuid, admin: OrgAdmin) -> AdminView {
    AdminView {
        org_id,
        user_id: admin.user_id,
        display_name: admin.display_name,
        primary_email: admin.email,
        joined_at: admin.joined_at.into(),
    }
}

/// An org to make, or its new name: no other org of the tenant has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "Research"}))]
struct OrgName {
    name: Name,
}

/// A project to make in an org.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "Support"}))]
struct NewOrgProject {
    name: Name,
}

/// A person to make an admin: by id or by email.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"userId": SOME_ID}))]
struct AddOrgAdmin {
    user_id: Option<Id>,
    /// In any case.
    email: Option<Text<1, 320>>,
}

fn create(cx: &Cx<'_>, tenant: OnTenant<Admin>, Body(new): Body<OrgName>) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let (caller, id, now) = (may.caller(), cx.new_id(), cx.now());
    let org = change_access(cx, caller, &[Object::Org(id)], |tx| {
        orgs::insert(tx, &may, caller.user_id, id, new.name.as_str(), now)
    })?;
    Ok(Created(org.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Org>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&"orgs")?;
    let rows = orgs::list(&mut cx.store().session()?, &listing, &page)?;
    Ok(Found(page.page(rows, |row| row.org_id, View::from)))
}

fn read(_: &Cx<'_>, org: Authorized<Org, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(org.into_row().into()))
}

fn rename(
    cx: &Cx<'_>,
    org: Authorized<Org, Admin>,
    Body(new): Body<OrgName>,
) -> Result<Found<View>> {
    let now = cx.now();
    let renamed = cx.transact(|tx| orgs::rename(tx, &org, new.name.as_str(), now))?;
    Ok(Found(renamed.into()))
}

fn add_admin(
    cx: &Cx<'_>,
    org: Authorized<Org, Admin>,
    Body(new): Body<AddOrgAdmin>,
) -> Result<Created<AdminView>> {
    let named = Whom(new.user_id, new.email).named()?;
    let (org_id, now) = (org.row().org_id, cx.now());
    let admin = change_access(cx, org.caller(), &[Object::Org(org_id)], |tx| {
        orgs::insert_admin(tx, &org, &named, now)
    })?;
    Ok(Created(admin_view(org_id, admin)))
}

fn list_admins(
    cx: &Cx<'_>,
    org: Authorized<Org, Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<AdminView>>> {
    let org_id = org.row().org_id;
    let binding = ("org-admins", org_id);
    let page = query.page(&binding)?;
    let rows = orgs::list_admins(&mut cx.store().session()?, &org, &page)?;
    let view = |admin| admin_view(org_id, admin);
    Ok(Found(page.page(rows, |row| row.user_id, view)))
}

fn remove_admin(cx: &Cx<'_>, org: Authorized<Org, Admin>, _: Nothing) -> Result<Gone> {
    let user_id = id_in_path(cx, "userId", "user")?;
    let (caller, objects) = (org.caller(), [Object::Org(org.row().org_id)]);
    change_access(cx, caller, &objects, |tx| {
        orgs::delete_admin(tx, &org, user_id)
    })?;
    Ok(Gone)
}

fn create_project(
    cx: &Cx<'_>,
    org: Authorized<Org, Admin>,
    Body(new): Body<NewOrgProject>,
) -> Result<Created<ProjectView>> {
    let (caller, id, now) = (org.caller(), cx.new_id(), cx.now());
    let objects = [Object::Org(org.row().org_id), Object::Project(id)];
    let project = change_access(cx, caller, &objects, |tx| {
        projects::insert_in_org(tx, &org, caller, id, new.name.as_str(), now)
    })?;
    Ok(Created(project.into()))
}
