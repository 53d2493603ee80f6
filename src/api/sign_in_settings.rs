//! `/v1/sign-in-settings`: what a tenant sets about signing in, and what counts with what the server says.
//!
//! Guarantees: a tenant is never laxer than the server. Tokens are refused only once an admin of the tenant has signed in
//! through an identity provider within 24 hours, so nobody is locked out. What is set reaches sessions that are open: at once
//! by the replica that set it, within a second by the others.

use super::identity_providers::refuse_operator_managed;
use super::request_parts::invalid_body;
use crate::authn::session::minutes;
use crate::config::TokenSignIn;
use crate::error::{Code, Result};
use crate::http::access::OnTenant;
use crate::http::context::Cx;
use crate::http::input::{Body, Nothing};
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::ids::Timestamp;
use crate::proof::{Admin, Capability};
use crate::store::identity_providers::ManagedBy;
use crate::store::sign_in_settings::{self, SignInSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Put};
    let path = "/v1/sign-in-settings";
    vec![
        route(
            Get,
            path,
            "signInSettings.get",
            "Read who may sign in with a token, and how long sessions last",
            read,
        ),
        route(
            Put,
            path,
            "signInSettings.set",
            "Set who may sign in with a token, and how long sessions last: stricter than the server, or as it says",
            set,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::Conflict, Code::IdentityProvidersOperatorManaged]),
    ]
}

/// How people of the tenant sign in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SignInSettings")]
struct View {
    /// What the tenant sets.
    token_sign_in: TokenSignIn,
    /// What the tenant sets; null: as the server says.
    session_idle_minutes: Option<i32>,
    /// What the tenant sets; null: as the server says.
    session_hours: Option<i32>,
    /// What counts: the stricter of the tenant's and the server's.
    effective: Effective,
    /// Who keeps identity providers and these settings.
    managed_by: ManagedBy,
    changed_by: Option<Uuid>,
    changed_at: Option<Timestamp>,
}

/// What counts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EffectiveSignInSettings")]
struct Effective {
    token_sign_in: TokenSignIn,
    session_idle_minutes: u64,
    session_hours: u64,
}

fn view(cx: &Cx<'_>, settings: &SignInSettings) -> View {
    let server = cx.authn().sign_in();
    View {
        token_sign_in: settings.token_sign_in,
        session_idle_minutes: settings.session_idle_minutes,
        session_hours: settings.session_hours,
        effective: Effective {
            token_sign_in: server.token_sign_in_of(settings),
            session_idle_minutes: server.idle_of(settings).as_secs() / 60,
            session_hours: server.life_of(settings).as_secs() / 3600,
        },
        managed_by: server.providers_managed_by(),
        changed_by: settings.changed_by,
        changed_at: settings.changed_at.map(Into::into),
    }
}

/// What to set. It replaces what stands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"tokenSignIn": "on", "sessionIdleMinutes": 30, "sessionHours": 12}))]
struct NewSignInSettings {
    /// It also ends the open sessions that came from tokens which it refuses. Anything narrower than before takes an admin of
    /// the tenant who has signed in through an identity provider within 24 hours.
    token_sign_in: TokenSignIn,
    /// After so many minutes without use a session ends, open ones as well: no more than the server's
    /// (`SVC_SESSION_IDLE_MINUTES`). Null: as the server says.
    #[schemars(range(min = 1, max = 43200))]
    session_idle_minutes: Option<u32>,
    /// After so many hours a session ends, open ones as well: no more than the server's (`SVC_SESSION_HOURS`). Null: as the
    /// server says.
    #[schemars(range(min = 1, max = 720))]
    session_hours: Option<u32>,
}

fn read(cx: &Cx<'_>, tenant: OnTenant<Admin>, _: Nothing) -> Result<Found<View>> {
    let tenant_id = tenant.0.caller().tenant_id;
    let settings = sign_in_settings::find(&mut cx.store().session()?, tenant_id)?;
    Ok(Found(view(cx, &settings)))
}

/// One of the two, which is no longer than the server's.
fn shorter(
    path: &str,
    asked: Option<u32>,
    unit: Duration,
    server: Duration,
) -> Result<Option<i32>> {
    let most = server.as_secs() / unit.as_secs();
    match asked {
        Some(asked) if asked == 0 || u64::from(asked) > most => Err(invalid_body(
            path,
            format!("1 to {most}, which is the server's, or null"),
        )),
        asked => Ok(asked.and_then(|asked| i32::try_from(asked).ok())),
    }
}

fn set(
    cx: &Cx<'_>,
    tenant: OnTenant<Admin>,
    Body(new): Body<NewSignInSettings>,
) -> Result<Found<View>> {
    let OnTenant(may) = tenant;
    refuse_operator_managed(cx, &cx.checker_of(may.caller().clone()))?;
    let server = cx.authn().sign_in();
    let idle = new.session_idle_minutes;
    let settings = SignInSettings {
        token_sign_in: new.token_sign_in,
        session_idle_minutes: shorter("$.sessionIdleMinutes", idle, minutes(1), server.idle)?,
        session_hours: shorter(
            "$.sessionHours",
            new.session_hours,
            minutes(60),
            server.life,
        )?,
        ..SignInSettings::default()
    };
    let (managed_by, moment) = (server.providers_managed_by(), server.moment(cx.now()));
    let held = cx.transact(|tx| {
        sign_in_settings::put(tx, &may, may.caller(), &settings, managed_by, moment)
    })?;
    cx.authn().forget_sessions(may.caller().tenant_id);
    Ok(Found(view(cx, &held)))
}
