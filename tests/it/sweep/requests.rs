//! A request that each route takes, so that nothing but access decides how it is answered.

use super::world::World;
use crate::harness::{Answer, eventually};
use agent_runtime::http::route::Route;
use serde_json::{Value, json};
use uuid::Uuid;

const RESEND_FAILED: &str = "/v1/webhook-endpoints/{webhookEndpointId}/resend";

/// Sends the route's request as this caller.
pub(super) fn send(world: &World, route: &Route, caller: &str) -> Answer {
    let path = path(world, route);
    let body = body(world, route).map(|body| body.to_string());
    world
        .client(caller)
        .send(route.method.text(), &path, body, &[])
}

/// The parameters of a path, in order.
pub(crate) fn parameters(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What a parameter of this route's path is in this world.
pub(crate) fn value(world: &World, route: &Route, parameter: &str) -> String {
    let name = match (parameter, route.path) {
        ("userId", "/v1/identity/users/{userId}/grants") => "viewer",
        ("modelProviderId", _) if route.method.text() == "DELETE" => "spareProviderId",
        ("tokenId", "/v1/service-accounts/{serviceAccountId}/tokens/{tokenId}") => "serviceTokenId",
        ("environment", _) => return "local".to_owned(),
        ("name", _) => return "SECRET".to_owned(),
        ("version", _) => return "1.0.0".to_owned(),
        ("role", _) => return "standard".to_owned(),
        _ => parameter,
    };
    world.id(name).to_string()
}

/// The path with the world's ids.
pub(crate) fn path(world: &World, route: &Route) -> String {
    parameters(route.path).fold(route.path.to_owned(), |path, parameter| {
        path.replace(&format!("{{{parameter}}}"), &value(world, route, parameter))
    })
}

/// A body that the route takes.
pub(crate) fn body(world: &World, route: &Route) -> Option<Value> {
    let id = |name: &str| world.id(name);
    let name = json!({"name": "changed"});
    let body = match (route.method.text(), route.path) {
        ("GET" | "DELETE", _) => return None,
        (_, path)
            if [
                "/cancel",
                "/deactivate",
                "/enrolments",
                "/test",
                "Id}/resend",
            ]
            .iter()
            .any(|end| path.ends_with(end))
                && path != "/v1/identity/enrolments"
                && path != RESEND_FAILED =>
        {
            return None;
        }
        ("POST", "/v1/identity/users") => {
            json!({"email": "new@example.test", "displayName": "New", "tenantRole": "member"})
        }
        ("PATCH", "/v1/identity/users/{userId}") => json!({"tenantRole": "admin"}),
        ("POST", "/v1/identity/enrolments") => json!({"code": world.code()}),
        ("POST", "/v1/orgs/{orgId}/admins") => json!({"userId": id("stranger")}),
        ("POST", "/v1/reviewers") => json!({"userId": id("stranger"), "role": "standard"}),
        ("POST", "/v1/projects/{projectId}/memberships") => {
            json!({"userId": id("stranger"), "role": "viewer"})
        }
        ("PATCH", "/v1/projects/{projectId}/memberships/{userId}") => json!({"role": "editor"}),
        ("POST", "/v1/projects/{projectId}/team-grants") => {
            json!({"teamId": id("grantedTeamId"), "role": "viewer"})
        }
        ("PATCH", "/v1/projects/{projectId}/team-grants/{teamId}") => json!({"role": "viewer"}),
        ("POST", "/v1/teams") => json!({"name": "new", "slug": "new"}),
        ("POST", "/v1/teams/{teamId}/memberships") => {
            json!({"userId": id("stranger"), "role": "member"})
        }
        ("PATCH", "/v1/teams/{teamId}/memberships/{userId}") => json!({"role": "admin"}),
        ("POST", "/v1/tokens/public") => json!({"runIds": [id("runId")]}),
        ("POST", "/v1/webhook-endpoints") => json!({"url": "http://127.0.0.1:9/",
            "events": ["approval.requested"], "secretRef": {"envName": "local", "name": "SIGNING"}}),
        ("POST", "/v1/webhook-endpoints/check-url") => json!({"url": "http://127.0.0.1:9/"}),
        ("PATCH", "/v1/webhook-endpoints/{webhookEndpointId}") => {
            json!({"events": ["improvement-pass.finished"]})
        }
        ("POST", RESEND_FAILED) => json!({"failedSince": "2020-01-01T00:00:00Z"}),
        ("PUT", "/v1/secrets/{environment}/{name}") => json!({"value": "b"}),
        ("POST", "/v1/model-providers") => json!({"name": "new",
            "baseUrl": "http://127.0.0.1:9/v1", "models": [{"name": "m"}]}),
        ("POST", "/v1/tools") => json!({"projectId": id("projectId"), "name": "new",
            "description": "", "argumentsSchema": {"type": "object"}, "url": "http://127.0.0.1:9/"}),
        ("POST", "/v1/agents") => json!({"projectId": id("projectId"), "name": "new"}),
        ("POST", "/v1/agents/{agentId}/versions") => json!({"version": "9.0.0", "instructions": "",
            "model": "m", "modelProviderId": id("modelProviderId"), "toolIds": []}),
        ("POST", "/v1/agents/{agentId}/promote") => json!({"version": "1.0.0"}),
        ("POST", "/v1/conversations") => json!({"agentId": id("agentId")}),
        ("POST", "/v1/runs") => json!({"agentId": id("agentId"), "message": "a"}),
        _ => name,
    };
    Some(body)
}

/// Whether an allowed request leaves something behind.
pub(super) fn changes_something(route: &Route) -> bool {
    // A public token is kept nowhere, and the run is over.
    let leaves_nothing = [
        "/v1/tokens/public",
        "/v1/runs/{runId}/cancel",
        "/v1/webhook-endpoints/check-url",
    ];
    route.method.text() != "GET" && !leaves_nothing.contains(&route.path)
}

/// Waits for what was begun, a run or the first attempt of a delivery: its rows change until then.
pub(crate) fn await_end(world: &World, route: &Route, answer: &Answer) {
    if answer.status != 202 {
        return;
    }
    let mut database = world.database();
    if route.path.starts_with("/v1/webhook-endpoints/") {
        eventually("the first attempts to fail", || {
            let waiting =
                "select 1 from webhook_deliveries where state = 'being-sent' and attempts = 0";
            let waiting = database.query(waiting, &[]).unwrap();
            waiting.is_empty().then_some(())
        });
    }
    if route.path != "/v1/runs" {
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
