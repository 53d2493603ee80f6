//! `/v1/tools`: HTTP tools, which the agents of their project may call.
//!
//! A schema of arguments is compiled when it is registered. What it may be is bounded so that to
//! compile it and to check arguments against it takes little time and little stack, whoever wrote it:
//! it stands alone, and its references, followed, make a small tree.

use super::invalid_body;
use crate::error::{Code, Error, Result};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::rfc3339;
use crate::proof::{Admin, Authorized, Listing, Read};
use crate::store::page::{Order, Page, Request};
use crate::store::projects::Project;
use crate::store::tools::{self, Tool};
use jsonschema::{JsonType, PatternOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// The longest schema of arguments, in bytes of JSON.
const SCHEMA_BYTES: usize = 64 * 1024;

/// The deepest nesting of a schema, its references followed: what fits a run thread's stack twice.
const SCHEMA_DEPTH: usize = 32;

/// Values in a schema, its references followed.
const SCHEMA_VALUES: usize = 20_000;

/// A compiled regular expression, in bytes.
const PATTERN_BYTES: usize = 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    vec![
        route(Post, "/v1/tools", "Register an HTTP tool in a project", create)
            .answers(&[Code::AlreadyExists, Code::HostAccessDenied]),
        route(Get, "/v1/tools", "List the HTTP tools that the caller may read", list),
        route(Get, "/v1/tools/{toolId}", "Read an HTTP tool", read),
        route(
            Delete,
            "/v1/tools/{toolId}",
            "Delete an HTTP tool that no version of an agent calls",
            delete,
        )
        .answers(&[Code::Conflict]),
    ]
}
