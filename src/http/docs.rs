//! `/openapi.json`, and at `/docs` a reference UI that works without a network, under a strict
//! content security policy.
//!
//! The UI's files are those of its npm package (`packaging/swagger-ui` takes them); the page and its
//! start script are ours.

use super::access::Open;
use super::context::Cx;
use super::input::Nothing;
use super::output::Asset;
use super::route::{Method, Mount, Operation, Route, route};
use crate::error::Result;
use bytes::Bytes;

const BUNDLE: &[u8] = include_bytes!("../../static/docs/swagger-ui/swagger-ui-bundle.js");
const STYLE: &[u8] = include_bytes!("../../static/docs/swagger-ui/swagger-ui.css");
const PAGE: &[u8] = include_bytes!("../../static/docs/index.html");
const START: &[u8] = include_bytes!("../../static/docs/start.js");
const THEME: &[u8] = include_bytes!("../../static/docs/theme.css");

/// Nothing from elsewhere, nothing inline but styles, which the UI sets on its elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    let page_for_people = || Operation::Unnamed("a page for people, no call of a client");
    let get = |path, summary, handler| {
        route(Method::Get, path, page_for_people(), summary, handler).mounted(Mount::Docs)
    };
    vec![
        route(
            Method::Get,
            "/openapi.json",
            Operation::Unnamed("what clients are made from, no call of theirs"),
            "The API description, OpenAPI 3.1.0",
            description,
        ),
        get("/docs", "The API reference", page),
        get("/docs/start.js", "The API reference's start script", start),
        get("/docs/theme.css", "The API reference's theme", theme),
        get(
            "/docs/swagger-ui-bundle.js",
            "The API reference's program",
            bundle,
        ),
        get("/docs/swagger-ui.css", "The API reference's style", style),
    ]
}

fn description(cx: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
    Ok(Asset {
        content_type: "application/json",
        body: cx.description().clone(),
        headers: Vec::new(),
    })
}

fn asset(content_type: &'static str, body: &'static [u8]) -> Result<Asset> {
    Ok(Asset {
        content_type,
        body: Bytes::from_static(body),
        headers: vec![
            ("content-security-policy", POLICY.to_owned()),
            ("referrer-policy", "no-referrer".to_owned()),
            ("cache-control", "no-cache".to_owned()),
        ],
    })
}

fn page(_: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
    asset("text/html; charset=utf-8", PAGE)
}

fn start(_: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
    asset("text/javascript; charset=utf-8", START)
}

fn theme(_: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
    asset("text/css; charset=utf-8", THEME)
}

fn bundle(_: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
    asset("text/javascript; charset=utf-8", BUNDLE)
}

fn style(_: &Cx<'_>, _: Open, _: Nothing) -> Result<Asset> {
    asset("text/css; charset=utf-8", STYLE)
}
