//! The routes: a file a noun, each with its routes, its request and response types and its
//! handlers. A handler reads top to bottom: what it was given, one store or runtime call, the
//! answer.

pub mod agents;
pub mod audit;
pub mod conversations;
pub mod model_providers;
pub mod projects;
pub mod runs;
pub mod tokens;
pub mod tools;

use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::route::Route;

/// Every declared route, mounted or not.
pub fn routes() -> Vec<Route> {
    let mut routes = tokens::routes();
    routes.extend(projects::routes());
    routes.extend(model_providers::routes());
    routes.extend(tools::routes());
    routes.extend(agents::routes());
    routes.extend(conversations::routes());
    routes.extend(runs::routes());
    routes.extend(audit::routes());
    routes.extend(crate::http::docs::routes());
    routes
}

/// Judges a URL that stands at this place of the body.
fn check_url(cx: &Cx<'_>, path: &str, url: &str) -> Result<()> {
    cx.check_tenant_url(url).map_err(|error| {
        let named = match error.code() {
            Code::InvalidRequest => {
                let message = format!("The body's {path}: {}", error.message());
                Error::new(Code::InvalidBody, message)
            }
            _ => error,
        };
        named.detail("path", path)
    })
}

/// The body has the route's shape, and this place of it is still wrong.
fn invalid_body(path: &str, expected: impl std::fmt::Display) -> Error {
    Error::new(
        Code::InvalidBody,
        format!("The body's {path}: expected {expected}."),
    )
    .detail("path", path)
    .detail("expected", expected.to_string())
}
