//! `/v1/identity-providers/{identityProviderId}/check`: asks a provider all that a sign-in needs of it, without a person.
//!
//! Guarantees: it reaches what whoever registered the provider may reach, within the time of a sign-in, and changes nothing but
//! what this process keeps of the provider's own document. Not here: the steps (`oidc`).

use super::identity_providers::callback_url;
use super::provider_sign_in::issuer_of;
use super::sign_in::client_secret;
use crate::error::{Code, Result};
use crate::http::context::Cx;
use crate::http::input::Nothing;
use crate::http::output::Found;
use crate::http::route::{Method, Route, route};
use crate::oidc::Step;
use crate::proof::{Admin, Authorized, Capability};
use crate::store::identity_providers::IdentityProvider;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Post,
            "/v1/identity-providers/{identityProviderId}/check",
            "identityProviders.check",
            "Ask an identity provider all that a sign-in needs of it, and say of each step what was found",
            check,
        )
        .needs(Capability::AccessWrite)
        .answers(&[Code::SecretsUnavailable]),
    ]
}

/// What a step found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdentityProviderStep")]
struct StepView {
    /// `discovery`, `issuer`, `endpoints`, `keys`, `algorithms`, `pkce`, `clock` or `callback`.
    step: &'static str,
    /// Whether a sign-in passes it. Null: it could not be looked at, because one before it failed.
    ok: Option<bool>,
    /// What was found, in a sentence.
    value: String,
    /// What to do, in a sentence, if it is not well.
    what_to_do: Option<&'static str>,
}

impl From<Step> for StepView {
    fn from(step: Step) -> Self {
        Self {
            step: step.name,
            ok: step.is_ok,
            value: step.value,
            what_to_do: step.remedy,
        }
    }
}

/// What a provider's check found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct IdentityProviderCheck {
    /// Whether every step is well.
    ok: bool,
    /// In the order of a sign-in.
    steps: Vec<StepView>,
}

fn check(
    cx: &Cx<'_>,
    provider: Authorized<IdentityProvider, Admin>,
    _: Nothing,
) -> Result<Found<IdentityProviderCheck>> {
    let row = provider.row();
    let public = cx.authn().sign_in().public_url.as_ref();
    let own = public.map(|own| own.text().to_owned());
    // In development the address of the request is the server's, too.
    let own = own.or_else(|| cx.own_origin().map(|own| own.text().to_owned()));
    let callback = own.map(|own| callback_url(&own, row.identity_provider_id));
    let tenant_id = provider.caller().tenant_id;
    let secret = client_secret(cx, tenant_id, row)?;
    let _permit = cx.provider_permit(tenant_id, row.identity_provider_id)?;
    let issuer = issuer_of(cx, row, secret.as_ref());
    let steps = cx.oidc().check(&issuer, callback.as_deref());
    Ok(Found(IdentityProviderCheck {
        ok: steps.iter().all(|step| step.is_ok == Some(true)),
        steps: steps.into_iter().map(StepView::from).collect(),
    }))
}
