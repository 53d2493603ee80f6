//! `/v1/identity/users/{userId}/identities`: whom a person is at identity providers.
//!
//! Guarantee: an identity that is unlinked ends the sessions that its person opened by that provider, and the team memberships
//! that its groups gave, in the same transaction. The next subject with the person's email is bound to the person, and gets a
//! session of theirs: so unlinking takes `keys:write` besides `access:write`.

use super::identity_providers::{ended_objects, forget};
use super::page_query::PageQuery;
use super::request_parts::id_in_path;
use crate::authz::desired_tuples::mark;
use crate::error::{Code, Result};
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query};
use crate::http::output::{Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Capability, Kind};
use crate::store::identities::{self, Identity};
use crate::store::page::Page;
use crate::store::users::Person;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get};
    vec![
        route(
            Get,
            "/v1/identity/users/{userId}/identities",
            "users.identities.list",
            "List whom a person is at identity providers",
            list,
        ),
        route(
            Delete,
            "/v1/identity/users/{userId}/identities/{identityId}",
            "users.identities.unlink",
            "Take an identity from a person: the sessions that they opened by it end",
            unlink,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::AuthorizationUnavailable]),
    ]
}

/// Whom a person is at an identity provider.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Identity")]
struct View {
    id: Uuid,
    identity_provider_id: Uuid,
    /// What the provider is called.
    provider_name: String,
    /// What the provider calls the person, for good.
    subject: String,
    /// The email by which it was bound. It counts no more.
    email_then: String,
    bound_at: Timestamp,
    last_used_at: Timestamp,
}

impl From<Identity> for View {
    fn from(identity: Identity) -> Self {
        Self {
            id: identity.identity_id,
            identity_provider_id: identity.identity_provider_id,
            provider_name: identity.provider_name,
            subject: identity.subject,
            email_then: identity.email_then,
            bound_at: identity.bound_at.into(),
            last_used_at: identity.last_used_at.into(),
        }
    }
}

fn list(
    cx: &Cx<'_>,
    person: Authorized<Person, Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let page = query.page(&("identities", person.row().id()))?;
    let rows = identities::list(&mut cx.store().session()?, &person, &page)?;
    Ok(Found(page.page(rows, |row| row.identity_id, View::from)))
}

fn unlink(cx: &Cx<'_>, person: Authorized<Person, Admin>, _: Nothing) -> Result<Gone> {
    cx.checker_of(person.caller().clone())
        .needs(Capability::KeysWrite)?;
    let identity_id = id_in_path(cx, "identityId", "identity")?;
    let (tenant_id, now) = (person.caller().tenant_id, cx.now());
    let (ended, objects) = cx.transact(|tx| {
        let ended = identities::unlink(tx, &person, identity_id, now)?;
        let objects = ended_objects(&ended);
        mark(tx, tenant_id, &objects)?;
        Ok((ended, objects))
    })?;
    forget(cx, tenant_id, &ended);
    cx.apply_permissions(tenant_id, &objects)?;
    Ok(Gone)
}
