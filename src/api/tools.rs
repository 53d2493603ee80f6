//! `/v1/tools`: HTTP tools, which the agents of their project may call.

use super::page_query::page_query;
use super::{SOME_ID, check_url, invalid_body};
use crate::error::{Code, Result};
use crate::http::access::{Access, BodyOn, Names, OnTenant};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Capability, Listing, Read};
use crate::runtime::tool_approvals;
use crate::secrets;
use crate::store::page::Page;
use crate::store::projects::Project;
use crate::store::tool_approvals::ToolApproval;
use crate::store::tools::{self, Tool};
use crate::tools::{header_fault, is_prefix, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use uuid::Uuid;

const TIMEOUT_MS_DEFAULT: i32 = 30_000;
const TIMEOUT_MS_MOST: i32 = 600_000;
const HEADERS_MOST: usize = 8;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    let one = "/v1/tools/{toolId}";
    vec![
        route(
            Post,
            "/v1/tools",
            "tools.register",
            "Register an HTTP tool in a project",
            create,
        )
        .answers(&[
            Code::AlreadyExists,
            Code::HostAccessDenied,
            Code::ProjectArchived,
        ]),
        route(
            Get,
            "/v1/tools",
            "tools.list",
            "List the HTTP tools that the caller may read",
            list,
        ),
        route(Get, one, "tools.get", "Read an HTTP tool", read),
        route(
            Delete,
            one,
            "tools.delete",
            "Delete an HTTP tool that no version of an agent or of a flow calls",
            delete,
        )
        .answers(&[Code::Conflict]),
    ]
}

/// A header of each call whose value is a secret.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ToolHeader")]
struct Header {
    /// Its name: not one that the service sends itself, such as `Content-Type`, and none that a proxy takes for itself.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// The name of the secret, found under the environment that the server serves (`SVC_ENVIRONMENT`).
    #[schemars(length(min = 1, max = 128))]
    secret: String,
    /// What stands before the value, such as `Bearer ` with its space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    prefix: Option<String>,
}

/// An HTTP tool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Tool")]
struct View {
    id: Uuid,
    project_id: Uuid,
    name: String,
    description: String,
    #[schemars(with = "Map<String, Value>")]
    arguments_schema: Value,
    url: String,
    timeout_ms: i32,
    idempotent: bool,
    #[schemars(with = "Vec<Header>")]
    headers: Value,
    signing_secret: Option<String>,
    /// What each call asks a reviewer before it is made; null: nothing.
    #[schemars(with = "Option<ToolApproval>")]
    approval: Option<Value>,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<Tool> for View {
    fn from(tool: Tool) -> Self {
        Self {
            id: tool.tool_id,
            project_id: tool.project_id,
            name: tool.name,
            description: tool.description,
            arguments_schema: tool.arguments_schema,
            url: tool.url,
            timeout_ms: tool.timeout_ms,
            idempotent: tool.idempotent,
            headers: tool.secret_headers,
            signing_secret: tool.signing_secret,
            approval: tool.approval,
            created_by: tool.created_by,
            created_at: tool.created_at.into(),
        }
    }
}

/// An HTTP tool to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "projectId": SOME_ID,
    "name": "order_status",
    "description": "Says where an order is.",
    "argumentsSchema": {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
    },
    "url": "https://tools.example.com/order-status",
}))]
struct NewTool {
    project_id: Id,
    /// What the model calls it by: letters, digits, `_` and `-`; unique in the project.
    #[schemars(regex(pattern = "^[a-zA-Z0-9_-]{1,64}$"))]
    name: String,
    /// What the model is told of it.
    description: Text<0, 4000>,
    /// The JSON Schema of the arguments object: 64 KiB at most, with references into itself alone. Its fields keep their order.
    #[schemars(with = "Map<String, Value>")]
    arguments_schema: Value,
    /// Where it is called, with POST.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    url: String,
    /// How long a call may take.
    #[schemars(range(min = 1, max = TIMEOUT_MS_MOST), extend("default" = TIMEOUT_MS_DEFAULT))]
    timeout_ms: Option<i32>,
    /// It may be called again when a crash or a lost connection leaves it open whether it was called.
    #[serde(default)]
    idempotent: bool,
    /// Headers of each call whose values are secrets. Naming one takes a tenant admin and a key with `secrets:write`.
    #[serde(default)]
    #[schemars(length(max = HEADERS_MOST))]
    headers: Vec<Header>,
    /// The name of the secret that signs each call, as Standard Webhooks says. Naming one takes the same.
    #[schemars(length(min = 1, max = 128))]
    signing_secret: Option<String>,
    /// Each call waits until a reviewer has approved it.
    approval: Option<ToolApproval>,
}

impl Names<Project> for NewTool {
    fn named(&self) -> Uuid {
        self.project_id.0
    }
}

page_query! {
    /// Which HTTP tools.
    ListTools {
        /// In this project.
        project_id: Option<Id>,
    }
}

fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// What its schema does not say, or the access check reads the body too early to say.
fn check(body: &NewTool) -> Result<()> {
    let name = match is_tool_name(&body.name) {
        true => Ok(()),
        false => {
            let expected = "1 to 64 letters, digits, underscores and hyphens";
            Err(invalid_body("$.name", expected))
        }
    };
    let timeout_ms = body.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT);
    let timeout = match (1..=TIMEOUT_MS_MOST).contains(&timeout_ms) {
        true => Ok(()),
        false => Err(invalid_body(
            "$.timeoutMs",
            format!("1 to {TIMEOUT_MS_MOST}"),
        )),
    };
    let arguments = schema::compile(&body.arguments_schema).map_err(|fault| {
        let path = format!("$.argumentsSchema{}", fault.path);
        invalid_body(&path, fault.expected)
    });
    let named = both(check_names(body), check_approval(body));
    both(both(both(name, timeout), arguments), named).map(|_| ())
}

fn check_approval(body: &NewTool) -> Result<()> {
    let approval = body.approval.as_ref();
    let faults = approval.map(tool_approvals::faults).unwrap_or_default();
    all_of(
        faults
            .into_iter()
            .map(|(path, expected)| (format!("$.approval{path}"), expected)),
    )
}

/// Refuses with all faults, if there are any.
fn all_of(faults: impl IntoIterator<Item = (String, &'static str)>) -> Result<()> {
    let told = |all, (path, expected): (String, &str)| {
        both(all, Err(invalid_body(&path, expected))).map(|((), ())| ())
    };
    faults.into_iter().fold(Ok(()), told)
}

/// The headers and secrets that it names have the form of one.
fn check_names(body: &NewTool) -> Result<()> {
    let a_secret = "the name of a secret: 1 to 128 letters, digits and underscores, no digit first, and not the prefix SVC_";
    let mut faults = Vec::new();
    if body.headers.len() > HEADERS_MOST {
        let expected = format!("{HEADERS_MOST} headers at most");
        return Err(invalid_body("$.headers", expected));
    }
    let mut seen = HashSet::new();
    for (index, header) in body.headers.iter().enumerate() {
        let at = |field: &str| format!("$.headers[{index}].{field}");
        if let Some(expected) = header_fault(&header.name) {
            faults.push((at("name"), expected));
        } else if !seen.insert(header.name.to_ascii_lowercase()) {
            faults.push((at("name"), "a header that stands once"));
        }
        if !secrets::is_name(&header.secret) {
            faults.push((at("secret"), a_secret));
        }
        if !header.prefix.as_deref().is_none_or(is_prefix) {
            let expected = "64 printable ASCII characters at most, the first one no space";
            faults.push((at("prefix"), expected));
        }
    }
    if !body.signing_secret.as_deref().is_none_or(secrets::is_name) {
        faults.push(("$.signingSecret".to_owned(), a_secret));
    }
    all_of(faults)
}

/// Whoever says where a secret is sent can read it, so naming one takes what putting one takes.
fn check_right(cx: &Cx<'_>, body: &NewTool) -> Result<()> {
    if body.headers.is_empty() && body.signing_secret.is_none() {
        return Ok(());
    }
    OnTenant::<Admin>::check(cx)?;
    cx.checker()?.needs(Capability::SecretsWrite)
}

fn create(
    cx: &Cx<'_>,
    access: BodyOn<NewTool, Project, Admin>,
    _: Nothing,
) -> Result<Created<View>> {
    let BodyOn { body, on } = access;
    check_right(cx, &body)?;
    let project = format!("project:{}", on.row().project_id);
    let url = check_url(cx, on.caller(), &project, "$.url", &body.url);
    both(check(&body), url)?;
    let new = tools::New {
        tool_id: cx.new_id(),
        name: &body.name,
        description: body.description.as_str(),
        arguments_schema: &body.arguments_schema,
        url: &body.url,
        timeout_ms: body.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT),
        idempotent: body.idempotent,
        secret_headers: &json!(body.headers),
        signing_secret: body.signing_secret.as_deref(),
        approval: body.approval.as_ref(),
    };
    let now = cx.now();
    let tool = cx.transact(|tx| tools::insert(tx, &on, on.caller(), &new, now))?;
    Ok(Created(tool.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Tool>,
    Query(query): Query<ListTools>,
) -> Result<Found<Page<View>>> {
    let binding = ("tools", query.project_id);
    let page = query.page(&binding)?;
    let rows = tools::list(
        &mut cx.store().session()?,
        &listing,
        query.project_id.map(Uuid::from),
        &page,
    )?;
    Ok(Found(page.page(rows, |row| row.tool_id, View::from)))
}

fn read(_: &Cx<'_>, tool: Authorized<Tool, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(tool.into_row().into()))
}

fn delete(cx: &Cx<'_>, tool: Authorized<Tool, Admin>, _: Nothing) -> Result<Gone> {
    cx.transact(|tx| tools::delete(tx, &tool))?;
    Ok(Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_providers_take() {
        let long = "a".repeat(64);
        for good in ["a", "get_weather-2", &long] {
            assert!(is_tool_name(good), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in ["", "a b", "a.b", "é", "a\n", &too_long] {
            assert!(!is_tool_name(bad), "{bad:?}");
        }
    }
}
