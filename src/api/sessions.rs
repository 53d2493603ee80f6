//! `/v1/identity/me`, and sessions: the caller's own, and those of a person by who decides about them.
//!
//! Guarantees: a session that was ended is refused at once by the replica that ended it, and by the others within a second;
//! its streams end at their next re-check. Ending another session than the request's takes what revoking another key takes.
//! A credential that is limited to a project reaches the sessions of that project alone.

use super::page_query::PageQuery;
use super::request_parts::id_in_path;
use super::tokens::reach;
use crate::authn::Credential;
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query};
use crate::http::output::{Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Authorized, Caller, Capability, KeyRole, Kind};
use crate::store::page::Page;
use crate::store::principals::PrincipalKind;
use crate::store::sessions::{self, Method as Way, Session};
use crate::store::tokens::{CredentialKind, Owner};
use crate::store::users::{self, Person, TenantRole};
use crate::store::{enrolments, reviewers, team_memberships};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    vec![
        route(
            Get,
            "/v1/identity/me",
            "me.get",
            "Read who the caller is, and by which credential",
            me,
        ),
        route(
            Get,
            "/v1/identity/me/sessions",
            "me.sessions.list",
            "List the caller's own sessions that are open",
            list,
        ),
        route(
            Delete,
            "/v1/identity/me/sessions/{sessionId}",
            "me.sessions.end",
            "End one of the caller's own sessions; any but the request's takes keys:write",
            end,
        )
        .answers(&[Code::NotFound]),
        route(
            Get,
            "/v1/identity/users/{userId}/sessions",
            "users.sessions.list",
            "List a person's sessions that are open",
            list_of_person,
        ),
        route(
            Post,
            "/v1/identity/users/{userId}/sign-out",
            "users.signOut",
            "End every session of a person, and the enrolment codes that they made; their keys go on",
            sign_out_person,
        )
        .needs(Capability::AccessWrite),
    ]
}

/// The credential of the request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RequestCredential")]
struct CredentialView {
    kind: CredentialKind,
    id: Uuid,
    /// When it ends at the latest.
    expires_at: Option<Timestamp>,
    /// What it may do at most, whatever its owner may.
    role: KeyRole,
    capabilities: Vec<Capability>,
    /// The one project that it is limited to.
    project_id: Option<Uuid>,
}

/// Who the caller is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Me {
    id: Uuid,
    tenant_id: Uuid,
    kind: PrincipalKind,
    /// As it was given. The seed user and service accounts have none.
    email: Option<String>,
    display_name: String,
    tenant_role: TenantRole,
    reviewer_roles: Vec<String>,
    /// The caller is in a team.
    in_team: bool,
    credential: CredentialView,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Session")]
struct View {
    id: Uuid,
    /// How the person signed in.
    method: Way,
    /// It is the session of the request.
    current: bool,
    /// The address from which the person signed in: behind a proxy, the proxy's.
    client_address: String,
    /// What the browser called itself then.
    user_agent: Option<String>,
    created_at: Timestamp,
    /// When it was used last, to the minute.
    active_at: Timestamp,
    /// When it ends at the latest.
    expires_at: Timestamp,
}

fn view(session: Session, credential_id: Uuid) -> View {
    View {
        current: session.session_id == credential_id,
        id: session.session_id,
        method: session.method,
        client_address: session.client_address.to_string(),
        user_agent: session.user_agent,
        created_at: session.created_at.into(),
        active_at: session.active_at.into(),
        expires_at: session.expires_at.into(),
    }
}

fn me(cx: &Cx<'_>, caller: Caller, _: Nothing) -> Result<Found<Me>> {
    let known = match cx.credential()? {
        Credential::Bearer(known) | Credential::Session(known) => known,
        Credential::Public(_) => return Err(Error::internal("a public run token has no caller")),
    };
    let (tenant_id, user_id) = (caller.tenant_id, caller.user_id);
    let mut session = cx.store().session()?;
    let user = users::find(&mut session, tenant_id, user_id)?
        .ok_or_else(|| Error::not_found("user", user_id))?;
    let reviewer_roles = reviewers::roles(&mut session, tenant_id, user_id)?;
    let in_team = team_memberships::is_in_any(&mut session, tenant_id, user_id)?;
    drop(session);
    Ok(Found(Me {
        id: user.user_id,
        tenant_id,
        kind: user.kind,
        email: user.email,
        display_name: user.display_name,
        tenant_role: user.tenant_role,
        reviewer_roles,
        in_team,
        credential: CredentialView {
            kind: caller.known_by.into(),
            id: caller.token_id,
            expires_at: known.expires_at.map(Into::into),
            role: caller.key.role,
            capabilities: caller.key.capabilities.iter().collect(),
            project_id: caller.key.project_id,
        },
    }))
}

fn page_of(
    cx: &Cx<'_>,
    owner: Owner,
    credential_id: Uuid,
    query: &PageQuery,
) -> Result<Found<Page<View>>> {
    let page = query.page(&("sessions", owner.user_id()))?;
    let moment = cx.authn().sign_in().moment(cx.now());
    let rows = sessions::list(&mut cx.store().session()?, owner, &page, moment)?;
    let view = |session| view(session, credential_id);
    Ok(Found(page.page(rows, |row| row.session_id, view)))
}

fn list(cx: &Cx<'_>, caller: Caller, Query(query): Query<PageQuery>) -> Result<Found<Page<View>>> {
    let credential_id = caller.token_id;
    page_of(cx, reach(&cx.checker_of(caller)), credential_id, &query)
}

fn end(cx: &Cx<'_>, caller: Caller, _: Nothing) -> Result<Gone> {
    let session_id = id_in_path(cx, "sessionId", "session")?;
    let (checker, now) = (cx.checker_of(caller), cx.now());
    if session_id != checker.caller().token_id {
        checker.needs(Capability::KeysWrite)?;
    }
    let owner = reach(&checker);
    if !cx.transact(|tx| sessions::end(tx, owner, session_id, now))? {
        return Err(Error::not_found("session", session_id));
    }
    cx.authn().forget(session_id);
    Ok(Gone)
}

fn list_of_person(
    cx: &Cx<'_>,
    person: Authorized<Person, Admin>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<View>>> {
    let credential_id = person.caller().token_id;
    page_of(cx, Owner::person(&person), credential_id, &query)
}

fn sign_out_person(cx: &Cx<'_>, person: Authorized<Person, Admin>, _: Nothing) -> Result<Gone> {
    let (tenant_id, user_id) = (person.caller().tenant_id, person.row().id());
    let now = cx.now();
    cx.transact(|tx| {
        // In the order in which a sign-in with a code takes these rows.
        enrolments::end_made_by(tx, &person, now)?;
        sessions::end_all(tx, &person, now)
    })?;
    cx.authn().forget_user(tenant_id, user_id);
    Ok(Gone)
}
