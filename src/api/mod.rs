//! The routes, one file a noun: its routes, its request and answer types, its handlers. A handler
//! reads from top to bottom: its input, one call of the store or the runtime, the answer.

mod access_changes;
pub mod agents;
mod approval_views;
pub mod approvals;
pub mod archives;
pub mod arrivals;
pub mod audit;
pub mod changes;
pub mod console_login;
pub mod conversations;
pub mod enrolments;
pub mod environments;
mod flow_definitions;
pub mod flows;
pub mod grants;
mod guardrail_fields;
pub mod guardrails;
pub mod identities;
mod identity_provider_checks;
pub mod identity_providers;
pub mod inbox;
mod model_provider_checks;
mod model_provider_options;
mod model_providers;
pub mod orgs;
mod page_query;
pub mod policies;
pub mod project_access;
pub mod project_memberships;
pub mod projects;
pub mod provider_sign_in;
mod request_parts;
pub mod retries;
pub mod reviewers;
pub mod run_checks;
mod run_overrides;
pub mod run_starts;
mod run_state;
pub mod runs;
pub mod secret_uses;
pub mod secrets;
pub mod service_accounts;
pub mod sessions;
pub mod sign_in;
pub mod sign_in_settings;
mod sign_out;
pub mod team_grants;
pub mod team_memberships;
pub mod teams;
pub mod tokens;
mod tool_secrets;
pub mod tools;
pub mod usage;
pub mod users;
mod version_fields;
mod versions;
pub mod webhook_deliveries;
pub mod webhook_endpoints;

use crate::http::route::{Nouns, Route};

/// Each noun and what it is, in the order in which a person meets them.
pub const NOUNS: Nouns = &[
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
        "secret-uses",
        "Where a secret may be sent, by name: to which HTTP servers, for which project.",
    ),
    (
        "environments",
        "Environments and their variables, which flows read. They are no secrets.",
    ),
    (
        "policies",
        "The guardrails of a tenant and of its projects, in versions that never change. No agent takes them away.",
    ),
    (
        "guardrails",
        "Checks of what goes into a run and of what comes out, tried on a text.",
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

/// Every declared route, mounted or not.
pub fn routes() -> Vec<Route> {
    let mut routes = users::routes();
    routes.extend(enrolments::routes());
    routes.extend(sign_in::routes());
    routes.extend(sign_out::routes());
    routes.extend(provider_sign_in::routes());
    routes.extend(sessions::routes());
    routes.extend(identities::routes());
    routes.extend(console_login::routes());
    routes.extend(identity_providers::routes());
    routes.extend(identity_provider_checks::routes());
    routes.extend(sign_in_settings::routes());
    routes.extend(grants::routes());
    routes.extend(service_accounts::routes());
    routes.extend(tokens::routes());
    routes.extend(orgs::routes());
    routes.extend(reviewers::routes());
    routes.extend(projects::routes());
    routes.extend(project_memberships::routes());
    routes.extend(team_grants::routes());
    routes.extend(project_access::routes());
    routes.extend(teams::routes());
    routes.extend(team_memberships::routes());
    routes.extend(secrets::routes());
    routes.extend(secret_uses::routes());
    routes.extend(environments::routes());
    routes.extend(policies::routes());
    routes.extend(guardrails::routes());
    routes.extend(model_providers::routes());
    routes.extend(model_provider_checks::routes());
    routes.extend(tools::routes());
    routes.extend(agents::routes());
    routes.extend(flows::routes());
    routes.extend(archives::routes());
    routes.extend(conversations::routes());
    routes.extend(run_starts::routes());
    routes.extend(runs::routes());
    routes.extend(run_checks::routes());
    routes.extend(run_state::routes());
    routes.extend(retries::routes());
    routes.extend(usage::routes());
    routes.extend(changes::routes());
    routes.extend(approvals::routes());
    routes.extend(inbox::routes());
    routes.extend(webhook_endpoints::routes());
    routes.extend(webhook_deliveries::routes());
    routes.extend(audit::routes());
    routes.extend(crate::http::docs::routes());
    routes.extend(crate::http::console::routes());
    routes
}
