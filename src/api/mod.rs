//! The routes, one file a noun: its routes, its request and answer types, its handlers. A handler
//! reads from top to bottom: its input, one call of the store or the runtime, the answer.

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
pub mod identities;
mod identity_provider_checks;
pub mod identity_providers;
pub mod inbox;
mod model_provider_checks;
mod model_provider_options;
mod model_providers;
pub mod orgs;
mod page_query;
pub mod project_access;
pub mod project_memberships;
pub mod projects;
pub mod provider_sign_in;
pub mod retries;
pub mod reviewers;
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

use crate::authz::Stage;
use crate::authz::desired_tuples::{Object, mark};
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::Text;
use crate::http::route::{Nouns, Route};
use crate::ids::{self, Id};
use crate::proof::Caller;
use crate::secrets::SecretRef;
use crate::store::Tx;
use crate::store::principals::Named;
use crate::store::project_memberships::Role;
use crate::store::runs::RequestKey;
use crate::text::trim_ows;
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Stands in examples for an id of the caller's own.
const SOME_ID: &str = "01980000-0000-7000-8000-000000000001";

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
    routes.extend(model_providers::routes());
    routes.extend(model_provider_checks::routes());
    routes.extend(tools::routes());
    routes.extend(agents::routes());
    routes.extend(flows::routes());
    routes.extend(archives::routes());
    routes.extend(conversations::routes());
    routes.extend(run_starts::routes());
    routes.extend(runs::routes());
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

/// Judges a URL that stands at this place of the body. A host that the tenant may not reach is recorded
/// as a refusal to administer `resource`, `<kind>:<id>`.
fn check_url(cx: &Cx<'_>, caller: &Caller, resource: &str, path: &str, url: &str) -> Result<()> {
    cx.check_tenant_url(url).map_err(|error| {
        let named = match error.code() {
            Code::HostAccessDenied => {
                let checker = cx.checker_of(caller.clone());
                checker.refuse_with(Stage::HostAccessDenied, "admin", resource, error)
            }
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

/// Refuses with all faults, if there are any.
fn all_of(faults: impl IntoIterator<Item = (String, &'static str)>) -> Result<()> {
    let with = |all, (path, expected): (String, &str)| {
        both(all, Err(invalid_body(&path, expected))).map(|((), ())| ())
    };
    faults.into_iter().fold(Ok(()), with)
}

/// Tells a null from a field that is left out.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The secret that this place of the body names is there. Whether it can be read is seen at each use.
fn check_secret(cx: &Cx<'_>, tenant_id: Uuid, path: &str, at: &SecretRef) -> Result<()> {
    let said = match cx.secrets().exists(tenant_id, at) {
        Ok(true) => return Ok(()),
        Ok(false) => "There is no such secret. Put it first, then name it here.".to_owned(),
        Err(unreadable) if cx.secrets().is_on() => {
            return Err(Error::new(
                Code::SecretsUnavailable,
                unreadable.sentence(at),
            ));
        }
        Err(unreadable) => unreadable.sentence(at),
    };
    let message = format!("The body's {path}: {said}");
    Err(Error::new(Code::InvalidBody, message).detail("path", path))
}

/// Changes who may do what with these objects, and answers once the authorization server knows of it,
/// also where nothing was left to change: a repeated change may be one that was not applied yet.
fn change_access<T>(
    cx: &Cx<'_>,
    caller: &Caller,
    objects: &[Object],
    work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
) -> Result<T> {
    let changed = cx.transact(|tx| {
        let changed = work(tx)?;
        mark(tx, caller.tenant_id, objects)?;
        Ok(changed)
    })?;
    cx.apply_permissions(caller.tenant_id, objects)?;
    Ok(changed)
}

/// An id from the path that no access check reads. A text that is no id names nothing.
fn id_in_path(cx: &Cx<'_>, parameter: &str, kind: &'static str) -> Result<Uuid> {
    let text = cx.parameter(parameter)?;
    ids::parse(&text)
        .ok_or_else(|| Error::not_found(kind, text.chars().take(64).collect::<String>()))
}

/// The event after which a stream goes on: what `Last-Event-ID` says, else the parameter of this name. An empty header is none.
fn last_event_id(cx: &Cx<'_>, parameter: Option<i64>) -> Result<Option<i64>> {
    match cx.header("last-event-id").map(trim_ows) {
        None | Some("") => Ok(parameter),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Error::new(
                Code::InvalidRequest,
                "Header Last-Event-ID: expected the decimal number of an event.",
            )
        }),
    }
}

/// The request's `Idempotency-Key`, with what it is bound to.
fn request_key(cx: &Cx<'_>, user_id: Uuid, route: &str) -> Result<Option<RequestKey>> {
    let Some(key) = cx.header("idempotency-key") else {
        return Ok(None);
    };
    let length = key.chars().count();
    if !(1..=255).contains(&length) {
        return Err(Error::new(
            Code::InvalidRequest,
            format!("Header Idempotency-Key: expected 1 to 255 characters, got {length}."),
        ));
    }
    Ok(Some(RequestKey {
        principal: format!("user:{user_id}"),
        route: route.to_owned(),
        key: key.to_owned(),
        body_digest: Sha256::digest(cx.body()?).into(),
    }))
}

/// Whom a body names: by `userId` or by `email`.
struct Whom(Option<Id>, Option<Text<1, 320>>);

impl Whom {
    fn named(self) -> Result<Named> {
        match (self.0, self.1) {
            (Some(Id(user_id)), None) => Ok(Named::Id(user_id)),
            (None, Some(email)) => Ok(Named::Email(email.as_str().to_owned())),
            (None, None) => Err(invalid_body("$.userId", "a userId or an email")),
            (Some(_), Some(_)) => Err(invalid_body("$.email", "no email beside a userId")),
        }
    }
}

/// A project role that may be given (section 4.3 rule 2).
fn given_role(role: Role) -> Result<Role> {
    if role == Role::Member {
        return Err(Error::new(
            Code::RoleNotGiven,
            "The project role member is given no more. Use viewer, which grants the same.",
        )
        .detail("path", "$.role"));
    }
    Ok(role)
}

/// The project roles that may be given to a user.
fn given_roles(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "string", "enum": ["owner", "admin", "editor", "viewer"]})
}
