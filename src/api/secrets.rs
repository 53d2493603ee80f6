//! `/v1/secrets`: a tenant's secrets. Values enter and never leave.

use super::request_parts::invalid_body;
use crate::error::{Code, Error, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query, SecretBody};
use crate::http::output::{Found, Gone, Put};
use crate::http::route::{Method, Mount, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Capability};
use crate::secret::Secret;
use crate::secrets::{self, OVERLAP, SecretRef, VALUE_MAX_BYTES};
use crate::store::environments;
use crate::store::page::{LIMIT_DEFAULT, LIMIT_MOST, Order, Page};
use crate::store::secrets::{Described, ListRequest, place};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// A value of 64 KiB, each character of it escaped, and the object around it.
const BODY_BYTES: u64 = 6 * VALUE_MAX_BYTES as u64 + 1024;

pub(super) fn routes() -> Vec<Route> {
    let (all, one) = ("/v1/secrets", "/v1/secrets/{environment}/{name}");
    let routes = vec![
        route(
            Method::Put,
            one,
            "secrets.put",
            "Put a secret: its value takes the place of the one that stands",
            put,
        )
        .takes(BODY_BYTES)
        .needs(Capability::SecretsWrite)
        .answers(&[Code::AlreadyExists, Code::Conflict, Code::NotFound]),
        route(
            Method::Get,
            all,
            "secrets.list",
            "List the secrets by environment and name, without their values",
            list,
        ),
        route(
            Method::Get,
            one,
            "secrets.get",
            "Read what is known of a secret, without its value",
            read,
        )
        .answers(&[Code::NotFound]),
        route(
            Method::Delete,
            one,
            "secrets.delete",
            "Delete a secret with its versions",
            delete,
        )
        .needs(Capability::SecretsWrite)
        .answers(&[Code::NotFound]),
    ];
    let needed = [Code::SecretsUnavailable, Code::NotConfigured];
    routes
        .into_iter()
        .map(|route| route.mounted(Mount::Secrets).answers(&needed))
        .collect()
}

/// A secret to put.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"value": "whsec_dGhlIGV4YW1wbGUgb2YgYSBzaWduaW5nIHNlY3JldA=="}))]
struct PutSecret {
    /// 1 to 65536 bytes of UTF-8 without NUL. It is never shown again.
    #[serde(deserialize_with = "secret")]
    #[schemars(with = "String", length(min = 1, max = 65536), extend("writeOnly" = true))]
    value: Secret,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// A version of a secret.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SecretVersion {
    version: i32,
    created_at: Timestamp,
    /// Until when it still signs webhooks, beside the version that stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// A secret, without its value.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Secret")]
struct View {
    environment: String,
    name: String,
    /// The version that stands.
    version: i32,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Who put it first; null in env files, which do not say.
    created_by: Option<Uuid>,
    /// The versions that are kept, the newest first: the one that stands and the one before it.
    versions: Vec<SecretVersion>,
}

impl From<Described> for View {
    fn from(secret: Described) -> Self {
        let mut versions = Vec::with_capacity(secret.versions.len());
        let mut superseded_at: Option<OffsetDateTime> = None;
        for (version, created_at) in secret.versions {
            versions.push(SecretVersion {
                version,
                created_at: created_at.into(),
                expires_at: superseded_at
                    .and_then(|at| at.checked_add(OVERLAP))
                    .map(Timestamp::from),
            });
            superseded_at = Some(created_at);
        }
        Self {
            environment: secret.at.environment,
            name: secret.at.name,
            version: secret.version,
            created_at: secret.created_at.into(),
            updated_at: secret.updated_at.into(),
            created_by: secret.created_by,
            versions,
        }
    }
}

/// Which secrets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListSecrets {
    /// Of this environment alone.
    environment: Option<String>,
    /// The `nextCursor` of the page before; left out for the first page.
    #[schemars(length(min = 1))]
    cursor: Option<String>,
    /// Rows at most.
    #[schemars(range(min = 1, max = LIMIT_MOST), extend("default" = LIMIT_DEFAULT))]
    limit: Option<u16>,
    /// By name; the first comes first unless asked otherwise.
    order: Option<Order>,
}

/// What the path names, of secrets and of variables.
pub(super) fn named(cx: &Cx<'_>) -> Result<SecretRef> {
    Ok(SecretRef {
        environment: cx.parameter("environment")?,
        name: cx.parameter("name")?,
    })
}

/// There is none of this noun.
pub(super) fn nothing_here(noun: &str, at: &SecretRef) -> Error {
    let short = |text: &str| text.chars().take(128).collect::<String>();
    let (name, environment) = (short(&at.name), short(&at.environment));
    let said = format!("There is no {noun} {name} in the environment {environment} here.");
    Error::new(Code::NotFound, said)
}

fn put(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    SecretBody(new): SecretBody<PutSecret>,
) -> Result<Put<View>> {
    let OnTenant(may) = tenant;
    let at = named(cx)?;
    secrets::check(&at)?;
    let bytes = new.value.expose().len();
    if bytes == 0 || bytes > VALUE_MAX_BYTES || new.value.expose().contains('\0') {
        let expected = format!("1 to {VALUE_MAX_BYTES} bytes without NUL");
        return Err(invalid_body("$.value", expected));
    }
    let waits = cx.secrets().is_wrapped_elsewhere();
    let caller = may.caller();
    let permit = waits.then(|| cx.external_call_permit(caller.tenant_id));
    let _permit = permit.transpose()?;
    cx.recorded()?;
    let author = caller.user_id;
    let put = || cx.secrets().put(&may, author, &at, &new.value);
    let (secret, is_new) = match cx.secrets().is_in_files() {
        // The lock on the tenant's names is held until the file is written.
        true => cx.transact(|tx| {
            environments::check_secret(tx, caller.tenant_id, place(&at))?;
            put()
        })?,
        false => put()?,
    };
    Ok(match is_new {
        true => Put::Made(secret.into()),
        false => Put::Changed(secret.into()),
    })
}

fn list(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Query(query): Query<ListSecrets>,
) -> Result<Found<Page<View>>> {
    let cursor = query.cursor.as_deref();
    let page = ListRequest::new(query.environment, cursor, query.limit, query.order)?;
    let rows = cx.secrets().list(&tenant.0, &page)?;
    Ok(Found(page.page(rows, View::from)))
}

fn read(cx: &Cx<'_>, tenant: OnTenant<Admin>, _: Nothing) -> Result<Found<View>> {
    let at = named(cx)?;
    match cx.secrets().find(&tenant.0, &at)? {
        Some(secret) => Ok(Found(secret.into())),
        None => Err(nothing_here("secret", &at)),
    }
}

fn delete(cx: &Cx<'_>, tenant: OnTenant<Admin>, _: Nothing) -> Result<Gone> {
    let at = named(cx)?;
    cx.recorded()?;
    match cx.secrets().delete(&tenant.0, &at)? {
        true => Ok(Gone),
        false => Err(nothing_here("secret", &at)),
    }
}
