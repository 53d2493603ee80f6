//! `/v1/environments`: a tenant's environments and their variables, which are no secrets.
//!
//! Flows read the variables of the environment that the server serves: `$runtime.metadata.env` (`runtime::flow`).

use super::page_query::FixedOrderQuery;
use super::request_parts::invalid_body;
use super::secrets::{named, nothing_here};
use crate::error::{Code, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing, Query};
use crate::http::output::{Found, Gone, Put};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Capability, Read};
use crate::secrets;
use crate::store::environments::{self, Named, VALUE_MOST_BYTES, Variable};
use crate::store::page::Page;
use crate::store::secrets::place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A value of 32 KiB, each character of it escaped, and the object around it.
const BODY_BYTES: u64 = 6 * VALUE_MOST_BYTES as u64 + 1024;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get};
    let all = "/v1/environments/{environment}/variables";
    let one = "/v1/environments/{environment}/variables/{name}";
    vec![
        route(
            Get,
            "/v1/environments",
            "environments.list",
            "List the environments by name",
            list,
        ),
        route(
            Get,
            all,
            "environments.variables.list",
            "List the variables of an environment by name",
            variables,
        )
        .answers(&[Code::NotFound]),
        route(
            Method::Put,
            one,
            "environments.variables.put",
            "Put a variable: its value takes the place of the one that stands; runs that began before keep theirs",
            put,
        )
        .takes(BODY_BYTES)
        .needs(Capability::EnvWrite)
        .answers(&[
            Code::AlreadyExists,
            Code::Conflict,
            Code::NotFound,
            Code::SecretsUnavailable,
        ]),
        route(
            Get,
            one,
            "environments.variables.get",
            "Read a variable",
            read,
        )
        .answers(&[Code::NotFound]),
        route(
            Delete,
            one,
            "environments.variables.delete",
            "Delete a variable; runs that began before keep it",
            delete,
        )
        .needs(Capability::EnvWrite)
        .answers(&[Code::NotFound]),
    ]
}

/// An environment: a variable, a secret or the server's setting names it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Environment")]
struct EnvironmentView {
    name: String,
    /// It is the one that the server serves (`SVC_ENVIRONMENT`): flows read its variables, and tools get its secrets.
    is_served: bool,
}

/// A variable.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Variable")]
struct View {
    environment: String,
    name: String,
    value: String,
    /// Who put it first.
    created_by: Uuid,
    created_at: Timestamp,
    /// Who put it last.
    updated_by: Uuid,
    updated_at: Timestamp,
}

impl From<Variable> for View {
    fn from(of: Variable) -> Self {
        Self {
            environment: of.environment,
            name: of.name,
            value: of.value,
            created_by: of.created_by,
            created_at: of.created_at.into(),
            updated_by: of.updated_by,
            updated_at: of.updated_at.into(),
        }
    }
}

/// A variable to put.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"value": "https://api.example.com"}))]
struct PutVariable {
    /// At most 32768 bytes of UTF-8 without NUL. Every member of the tenant can read it.
    #[schemars(length(max = VALUE_MOST_BYTES))]
    value: String,
}

fn list(
    cx: &Cx<'_>,
    OnTenant(may): OnTenant<Read>,
    Query(query): Query<FixedOrderQuery>,
) -> Result<Found<Page<EnvironmentView>>> {
    let page = query.text_page(&"environments")?;
    let served = cx.runtime().environment();
    let names = environments::list(&mut cx.store().session()?, &may, served, &page)?;
    let view = |name: String| EnvironmentView {
        is_served: served == Some(name.as_str()),
        name,
    };
    Ok(Found(page.page(names, |name| (name, Uuid::nil()), view)))
}

fn variables(
    cx: &Cx<'_>,
    OnTenant(may): OnTenant<Read>,
    Query(query): Query<FixedOrderQuery>,
) -> Result<Found<Page<View>>> {
    let environment = cx.parameter("environment")?;
    secrets::check_environment(&environment)?;
    let page = query.text_page(&("variables", &environment))?;
    let rows = environments::variables(&mut cx.store().session()?, &may, &environment, &page)?;
    Ok(Found(page.page(
        rows,
        |row| (row.name.as_str(), Uuid::nil()),
        View::from,
    )))
}

fn put(
    cx: &Cx<'_>,
    OnTenant(may): OnTenant<Admin>,
    Body(new): Body<PutVariable>,
) -> Result<Put<View>> {
    let at = named(cx)?;
    secrets::check(&at)?;
    if new.value.len() > VALUE_MOST_BYTES || new.value.contains('\0') {
        let expected = format!("at most {VALUE_MOST_BYTES} bytes without NUL");
        return Err(invalid_body("$.value", expected));
    }
    let caller = may.caller();
    let now = cx.now();
    let (variable, is_new) = cx.transact(|tx| {
        let put = environments::put(tx, &may, place(&at), &new.value, caller, now)?;
        // The lock on the tenant's names is held by now.
        match cx.secrets().in_files_as(caller.tenant_id, &at)? {
            Some(secret) => Err(environments::taken(place(&at), &secret, Named::Secret)),
            None => Ok(put),
        }
    })?;
    Ok(match is_new {
        true => Put::Made(variable.into()),
        false => Put::Changed(variable.into()),
    })
}

fn read(cx: &Cx<'_>, OnTenant(may): OnTenant<Read>, _: Nothing) -> Result<Found<View>> {
    let at = named(cx)?;
    let found = environments::find(&mut cx.store().session()?, &may, place(&at))?;
    let found = found.ok_or_else(|| nothing_here("variable", &at))?;
    Ok(Found(found.into()))
}

fn delete(cx: &Cx<'_>, OnTenant(may): OnTenant<Admin>, _: Nothing) -> Result<Gone> {
    let at = named(cx)?;
    match cx.transact(|tx| environments::delete(tx, &may, place(&at)))? {
        true => Ok(Gone),
        false => Err(nothing_here("variable", &at)),
    }
}
