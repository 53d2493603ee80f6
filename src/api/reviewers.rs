//! `/v1/reviewers`: the people who review, and their roles (section 5.2).

use super::page_query::PageQuery;
use super::request_parts::{SOME_ID, Whom, invalid_body};
use crate::error::{Code, Error, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Id;
use crate::proof::{Admin, Authorized, Capability};
use crate::store::page::Page;
use crate::store::reviewers::{self, Reviewer, is_role};
use crate::store::users::Person;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    let all = "/v1/reviewers";
    vec![
        route(
            Post,
            all,
            "reviewers.register",
            "Give a person a reviewer role; one that is held stays",
            register,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::Conflict, Code::NotFound]),
        route(
            Get,
            all,
            "reviewers.list",
            "List the reviewers with their roles",
            list,
        ),
        route(
            Delete,
            "/v1/reviewers/{userId}/{role}",
            "reviewers.remove",
            "Take a reviewer role away",
            remove,
        )
        .needs(Capability::AccessWrite),
    ]
}

/// A person with reviewer roles.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Reviewer")]
struct View {
    user_id: Uuid,
    display_name: String,
    primary_email: Option<String>,
    /// In the order of their texts.
    roles: Vec<String>,
}

impl From<Reviewer> for View {
    fn from(reviewer: Reviewer) -> Self {
        Self {
            user_id: reviewer.user_id,
            display_name: reviewer.display_name,
            primary_email: reviewer.email,
            roles: reviewer.roles,
        }
    }
}

/// A role to give a person, who is named by id or by email.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"userId": SOME_ID, "role": "standard"}))]
struct RegisterReviewer {
    user_id: Option<Id>,
    /// In any case.
    email: Option<Text<1, 320>>,
    /// Such as `standard`: 1 to 40 lowercase letters, digits and hyphens, no hyphen first.
    role: Text<1, 40>,
}

fn register(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(new): Body<RegisterReviewer>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let (role, now) = (new.role.as_str(), cx.now());
    if !is_role(role) {
        let expected = "1 to 40 lowercase letters, digits and hyphens, no hyphen first";
        return Err(invalid_body("$.role", expected));
    }
    let named = Whom(new.user_id, new.email).named()?;
    let creator = may.caller().user_id;
    let held = cx.transact(|tx| reviewers::insert(tx, &may, creator, &named, role, now))?;
    Ok(Created(held.into()))
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&"reviewers")?;
    let rows = reviewers::list(&mut cx.store().session()?, &tenant.0, &page)?;
    Ok(Found(page.page(rows, |row| row.user_id, View::from)))
}

fn remove(cx: &Cx<'_>, person: Authorized<Person, Admin>, _: Nothing) -> Result<Gone> {
    let role = cx.parameter("role")?;
    if !is_role(&role) {
        let named = role.chars().take(64).collect::<String>();
        return Err(Error::not_found("reviewer role", named));
    }
    cx.transact(|tx| reviewers::delete(tx, &person, &role))?;
    Ok(Gone)
}
