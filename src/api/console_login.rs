//! `/__dev/bearer`: in development the console logs in by itself (section 1.3).
//!
//! Whoever can send a request to this host may have the token, so the route is mounted with `SVC_DEV_CONSOLE_LOGIN` alone,
//! which is refused outside development. It answers requests that are addressed to this host by one of three names, whatever
//! their port, since a container's port may be mapped; and no page of another origin, nor a proxy that says that it is one. To
//! anything else it is not there. A proxy that says nothing and changes `Host` is not told apart.

use crate::error::Result;
use crate::http::browser_access::DevelopmentLoopback;
use crate::http::context::Cx;
use crate::http::input::Nothing;
use crate::http::output::Found;
use crate::http::route::{Method, Mount, Operation, Route, route};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Get,
            "/__dev/bearer",
            Operation::Unnamed("for the console in development, no call of a client"),
            "The API token, in development",
            bearer,
        )
        .mounted(Mount::ConsoleLogin),
    ]
}

/// The API token.
#[derive(Serialize, JsonSchema)]
struct ApiToken {
    token: String,
}

fn bearer(cx: &Cx<'_>, _: DevelopmentLoopback, _: Nothing) -> Result<Found<ApiToken>> {
    let token = cx.authn().sign_in().console_token.as_ref();
    let token = token.ok_or_else(crate::http::nothing_here)?;
    Ok(Found(ApiToken {
        token: token.expose().to_owned(),
    }))
}
