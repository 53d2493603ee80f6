//! The nouns, as the description groups its operations: in the order in which a person meets them.

use crate::http::route::Route;
use serde_json::{Value, json};

/// Each noun, and what it is.
const TAGS: [(&str, &str); 24] = [
    (
        "agents",
        "Agents of a project: what each is told, in versions that never change, and which version is live.",
    ),
    (
        "runs",
        "A run is one turn of an agent. Start it, follow it while it goes on, read what came of it, cancel it.",
    ),
    (
        "usage",
        "What model calls used and cost, summed over days, projects, agents and models.",
    ),
    (
        "flows",
        "Flows of a project: what each does, step by step, in versions that never change, and which version is live.",
    ),
    (
        "conversations",
        "Conversations with an agent: runs that know what was said before.",
    ),
    (
        "model-providers",
        "Servers of models that agents use, with their models and prices.",
    ),
    (
        "tools",
        "HTTP tools of a project, which its agents may call.",
    ),
    (
        "projects",
        "Projects hold agents, tools, conversations and runs. Who may do what in them, directly and through teams.",
    ),
    (
        "secrets",
        "Values that model providers and webhooks use by name. They are never shown.",
    ),
    (
        "webhook-endpoints",
        "Receivers of events, and what became of each delivery.",
    ),
    (
        "tokens",
        "The caller's own bearer tokens, and public run tokens for browsers.",
    ),
    (
        "identity",
        "The people of the tenant, their enrolment codes and sessions, and what the caller may do.",
    ),
    (
        "identity-providers",
        "OpenID Connect issuers by which people sign in, the email domains that each speaks for, and the teams of its groups.",
    ),
    (
        "sign-in-settings",
        "Who may sign in with a token, and how long sessions last.",
    ),
    (
        "sign-in",
        "How a person signs in with a browser, on the server's own pages: the answer's cookie carries a session.",
    ),
    ("sign-out", "How a person ends the session of a browser."),
    (
        "service-accounts",
        "Accounts of programs, and their bearer tokens.",
    ),
    (
        "teams",
        "People and service accounts that get roles on projects together.",
    ),
    ("orgs", "Groups of projects with admins of their own."),
    (
        "approvals",
        "What runs ask reviewers, and what these decide.",
    ),
    ("inbox", "What waits for the caller."),
    (
        "changes",
        "Hints that something changed, so that a page reads it again.",
    ),
    ("reviewers", "Who may decide about approvals."),
    ("audit", "The recorded access decisions."),
];

/// The noun of a route: what follows the version in its path.
pub(super) fn tag(route: &Route) -> &'static str {
    let rest = route.path.strip_prefix("/v1/");
    let noun = rest.and_then(|rest| rest.split('/').next());
    noun.unwrap_or(route.path)
}

/// The nouns of these routes.
///
/// # Panics
/// A noun has no text.
pub(super) fn of<'a>(routes: impl Iterator<Item = &'a Route>) -> Vec<Value> {
    let used: Vec<&str> = routes.map(tag).collect();
    for noun in &used {
        assert!(
            TAGS.iter().any(|(name, _)| name == noun),
            "say in http/openapi/tags.rs what {noun} are"
        );
    }
    let described = TAGS.iter().filter(|(name, _)| used.contains(name));
    described
        .map(|(name, text)| json!({"name": name, "description": text}))
        .collect()
}
