//! `/v1/service-accounts`: principals for pipelines and apps, and their keys (section 2.1).
//!
//! A service account is a member of the tenant, never an admin, and never a project's owner.

use super::access_changes::change_access;
use super::page_query::{PageQuery, page_query};
use super::request_parts::id_in_path;
use super::tokens::{self as tokens_api, MintedToken, NewToken};
use super::users::{Status, end};
use crate::authz::desired_tuples::Object;
use crate::error::{Code, Result};
use crate::http::access::{NamingProject, OnTenant};
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Capability};
use crate::store::page::Page;
use crate::store::principals::PrincipalKind;
use crate::store::tokens::Owner;
use crate::store::users::{self, Filter, ServiceAccount, User};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Patch, Post};
    let all = "/v1/service-accounts";
    let one = "/v1/service-accounts/{serviceAccountId}";
    let mut routes = vec![
        route(
            Post,
            all,
            "serviceAccounts.create",
            "Add a service account",
            add,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::AlreadyExists, Code::AuthorizationUnavailable]),
        route(
            Get,
            all,
            "serviceAccounts.list",
            "List the tenant's service accounts",
            list,
        ),
        route(
            Get,
            one,
            "serviceAccounts.get",
            "Read a service account",
            read,
        ),
        route(
            Patch,
            one,
            "serviceAccounts.update",
            "Rename a service account",
            rename,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::AlreadyExists, Code::Conflict]),
        route(
            Post,
            "/v1/service-accounts/{serviceAccountId}/deactivate",
            "serviceAccounts.deactivate",
            "Deactivate a service account: its keys and permissions end",
            deactivate,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::LastAdmin, Code::AuthorizationUnavailable]),
    ];
    routes.extend(token_routes());
    routes
}

fn token_routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    let tokens = "/v1/service-accounts/{serviceAccountId}/tokens";
    vec![
        route(
            Post,
            tokens,
            "serviceAccounts.tokens.create",
            "Mint a key of a service account; it is shown once",
            mint,
        )
        .needs(Capability::KeysWrite)
        .answers(&tokens_api::MINT_CODES),
        route(
            Get,
            tokens,
            "serviceAccounts.tokens.list",
            "List the keys of a service account",
            list_tokens,
        ),
        route(
            Delete,
            "/v1/service-accounts/{serviceAccountId}/tokens/{tokenId}",
            "serviceAccounts.tokens.revoke",
            "Revoke a key of a service account",
            revoke,
        )
        .needs(Capability::KeysWrite),
    ]
}

/// A service account.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServiceAccount")]
struct View {
    id: Uuid,
    name: String,
    created_by: Option<Uuid>,
    created_at: Timestamp,
    deactivated_at: Option<Timestamp>,
}

impl From<User> for View {
    fn from(user: User) -> Self {
        Self {
            id: user.user_id,
            name: user.display_name,
            created_by: user.created_by,
            created_at: user.created_at.into(),
            deactivated_at: user.deactivated_at.map(Into::into),
        }
    }
}

/// A service account to add, or its new name: no other active one of the tenant has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "nightly-report"}))]
struct ServiceAccountName {
    name: Name,
}

page_query! {
    /// Which service accounts.
    ListServiceAccounts {
        /// With this status.
        status: Option<Status>,
    }
}

fn add(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(new): Body<ServiceAccountName>,
) -> Result<Created<View>> {
    let OnTenant(may) = tenant;
    let (caller, id, now) = (may.caller(), cx.new_id(), cx.now());
    let objects = [Object::Tenant(caller.tenant_id)];
    let account = change_access(cx, caller, &objects, |tx| {
        users::insert_account(tx, &may, caller.user_id, id, new.name.as_str(), now)
    })?;
    Ok(Created(account.0.into()))
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<ListServiceAccounts>,
) -> Result<Found<Page<View>>> {
    let binding = ("service-accounts", query.status);
    let page = query.page(&binding)?;
    let filter = Filter {
        active: query.status.map(|status| status == Status::Active),
        ..Filter::default()
    };
    let kind = PrincipalKind::ServiceAccount;
    let rows = users::list(&mut cx.store().session()?, &tenant.0, kind, &filter, &page)?;
    Ok(Found(page.page(rows, |row| row.user_id, View::from)))
}

fn read(_: &Cx<'_>, account: Authorized<ServiceAccount, Admin>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(account.into_row().0.into()))
}

fn rename(
    cx: &Cx<'_>,
    account: Authorized<ServiceAccount, Admin>,
    Body(new): Body<ServiceAccountName>,
) -> Result<Found<View>> {
    let renamed = cx.transact(|tx| users::rename_account(tx, &account, new.name.as_str()))?;
    Ok(Found(renamed.0.into()))
}

fn deactivate(
    cx: &Cx<'_>,
    account: Authorized<ServiceAccount, Admin>,
    _: Nothing,
) -> Result<Found<View>> {
    Ok(Found(end(cx, &account)?.into()))
}

fn mint(
    cx: &Cx<'_>,
    account: NamingProject<NewToken, Authorized<ServiceAccount, Admin>>,
    Body(new): Body<NewToken>,
) -> Result<Created<MintedToken>> {
    tokens_api::mint_for(cx, Owner::account(&account.access), new)
}

fn list_tokens(
    cx: &Cx<'_>,
    account: Authorized<ServiceAccount, Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<tokens_api::View>>> {
    tokens_api::list_of(cx, Owner::account(&account), &query)
}

fn revoke(cx: &Cx<'_>, account: Authorized<ServiceAccount, Admin>, _: Nothing) -> Result<Gone> {
    let token_id = id_in_path(cx, "tokenId", "token")?;
    tokens_api::revoke_of(cx, Owner::account(&account), token_id)
}
