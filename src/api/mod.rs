//! The routes: a file a noun, each with its routes, its request and response types and its
//! handlers. A handler reads top to bottom: what it was given, one store or runtime call, the
//! answer.

pub mod projects;
pub mod runs;
pub mod tokens;

use crate::http::route::Route;

/// Every declared route, mounted or not.
pub fn routes() -> Vec<Route> {
    let mut routes = crate::http::docs::routes();
    routes.extend(tokens::routes());
    routes.extend(projects::routes());
    routes.extend(runs::routes());
    routes
}
