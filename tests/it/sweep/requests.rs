//! A request that each route takes, so that nothing but access decides how it is answered.

use super::table::{Line, Table};
use super::world::World;
use crate::harness::{Answer, Client, OWN_PAGE, eventually};
use agent_runtime::http::access::Rule;
use agent_runtime::http::route::Route;
use serde_json::Value;
use std::sync::LazyLock;
use uuid::Uuid;

static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// Sends the request of a line by this client, from a page of the server where the route is for one alone.
pub(super) fn send(world: &World, line: &Line, route: &Route, client: &Client) -> Answer {
    let path = path(world, route);
    let body = line.body(world).map(|body| body.to_string());
    let headers: &[_] = match route.rule {
        Rule::SigningIn => &[OWN_PAGE],
        _ => &[],
    };
    client.send(route.method.text(), &path, body, headers)
}

/// The parameters of a path, in order.
pub(crate) fn parameters(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What a parameter of this route's path is in this world.
pub(crate) fn value(world: &World, route: &Route, parameter: &str) -> String {
    let fixed = match parameter {
        "environment" => "local",
        "name" if route.path.starts_with("/v1/environments/") => "VARIABLE",
        "name" => "SECRET",
        "version" => "1.0.0",
        "role" => "standard",
        "*page" => "runs",
        _ => {
            let named = TABLE.line(route).id(parameter);
            return world.id(named.unwrap_or(parameter)).to_string();
        }
    };
    fixed.to_owned()
}

/// The path with the world's ids.
pub(crate) fn path(world: &World, route: &Route) -> String {
    parameters(route.path).fold(route.path.to_owned(), |path, parameter| {
        path.replace(&format!("{{{parameter}}}"), &value(world, route, parameter))
    })
}

/// A body that the route takes.
pub(crate) fn body(world: &World, route: &Route) -> Option<Value> {
    TABLE.line(route).body(world)
}

/// Whether an allowed request leaves something behind.
pub(super) fn changes_something(route: &Route) -> bool {
    // A public token is kept nowhere, a definition and a provider are checked alone, the run is over, and a browser keeps what
    // it began.
    let leaves_nothing = [
        "/v1/tokens/public",
        "/v1/flows/validate",
        "/v1/guardrails/try",
        "/v1/identity-providers/{identityProviderId}/check",
        "/v1/model-providers/{modelProviderId}/check",
        "/v1/runs/{runId}/cancel",
        "/v1/webhook-endpoints/check-url",
        "/v1/sign-in/providers/{identityProviderId}/start",
    ];
    route.method.text() != "GET" && !leaves_nothing.contains(&route.path)
}

/// Waits for what was begun, a run, the first attempt of a delivery or an erasure: its rows change until then.
pub(crate) fn await_end(world: &World, route: &Route, answer: &Answer) {
    // An escalation is told to an endpoint.
    let is_told = answer.status == 201 && route.path.ends_with("/escalate");
    if answer.status != 202 && !is_told {
        return;
    }
    let mut database = world.database();
    if is_told || route.path.starts_with("/v1/webhook-endpoints/") {
        eventually("the first attempts to fail", || {
            let waiting =
                "select 1 from webhook_deliveries where state = 'being-sent' and attempts = 0";
            let waiting = database.query(waiting, &[]).unwrap();
            waiting.is_empty().then_some(())
        });
    }
    if route.path.starts_with("/v1/conversations/") {
        eventually("the conversation to be erased", || {
            let left = "select 1 from conversations where erasure_requested_at is not null and erased_at is null";
            database.query(left, &[]).unwrap().is_empty().then_some(())
        });
    }
    if !["/v1/runs", "/v1/runs/{runId}/retry"].contains(&route.path) {
        return;
    }
    let run: Uuid = answer.json()["run"]["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    eventually("the run to finish", || {
        let ended = "select 1 from runs where run_id = $1 and completed_at is not null";
        database.query_opt(ended, &[&run]).unwrap()
    });
}
