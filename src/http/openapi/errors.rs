//! Errors in the description: one answer for each status among the components, to which operations refer.

use crate::error::Code;
use crate::http::route::Route;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

// Specification, section 7.
/// The error body.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
struct ErrorBody {
    error: ErrorContent,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ErrorContent {
    /// A code that programs can rely on.
    code: String,
    /// A sentence that says what is wrong and what to do.
    message: String,
    /// Code-specific details.
    details: Map<String, Value>,
    /// `req-<uuid>`: the log has the cause under it.
    #[schemars(regex(pattern = "^req-[0-9a-f-]{36}$"))]
    request_id: String,
}

/// The codes of errors by their status.
pub(super) fn by_status(codes: impl IntoIterator<Item = Code>) -> BTreeMap<u16, BTreeSet<Code>> {
    let mut statuses: BTreeMap<u16, BTreeSet<Code>> = BTreeMap::new();
    for code in codes {
        statuses.entry(code.status()).or_default().insert(code);
    }
    statuses
}

pub(super) fn listed(codes: &BTreeSet<Code>) -> String {
    let texts: Vec<&str> = codes.iter().map(|code| code.text()).collect();
    texts.join(", ")
}

/// One answer for each status of an error, with every code that some route has for it. An operation refers to it and
/// lists its own codes.
pub(super) fn responses<'a>(
    routes: impl Iterator<Item = &'a Route>,
    generator: &mut SchemaGenerator,
) -> Map<String, Value> {
    let error = generator.subschema_for::<ErrorBody>();
    let codes = routes.flat_map(|route| route.codes.iter().copied());
    let statuses = by_status(codes).into_iter();
    let response = |(status, codes): (u16, BTreeSet<Code>)| {
        let content = json!({"application/json": {"schema": error}});
        let response = json!({"description": listed(&codes), "content": content});
        (name(status).to_owned(), response)
    };
    statuses.map(response).collect()
}

/// The name of a status (RFC 9110), as the answers of the components have it.
pub(super) fn name(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        413 => "ContentTooLarge",
        415 => "UnsupportedMediaType",
        422 => "UnprocessableContent",
        429 => "TooManyRequests",
        431 => "RequestHeaderFieldsTooLarge",
        500 => "InternalServerError",
        501 => "NotImplemented",
        503 => "ServiceUnavailable",
        504 => "GatewayTimeout",
        other => panic!("say in http/openapi what the status {other} is called"),
    }
}
