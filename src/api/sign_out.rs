//! `/v1/sign-out`: the way out for a person with a browser.
//!
//! Guarantees: the session has ended on disk before a provider is asked anything, whatever comes of that. Left out: ending the
//! session at the provider for the person (no ID token is kept), and being told by a provider that one ended there.

use super::provider_sign_in::{issuer_of, tell};
use crate::error::Result;
use crate::http::browser_access::OfSession;
use crate::http::context::Cx;
use crate::http::input::Nothing;
use crate::http::output::FoundWithHeaders;
use crate::http::route::{Method, Route, route};
use crate::store::identity_providers;
use crate::store::sessions::{self, Opener};
use crate::store::tokens::Owner;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![route(
        Method::Post,
        "/v1/sign-out",
        "me.signOut",
        "End the session of the request, and say where one signs out at the identity provider, too",
        sign_out,
    )]
}

/// What is left to do for whoever signed out.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignedOut {
    /// The page of the identity provider at which one signs out there, too. Null: the session came by none, or the provider
    /// has no such page, or is away.
    provider_sign_out_url: Option<String>,
}

fn sign_out(cx: &Cx<'_>, session: OfSession, _: Nothing) -> Result<FoundWithHeaders<SignedOut>> {
    let (caller, now) = (&session.caller, cx.now());
    let opener = cx.transact(|tx| {
        sessions::end(tx, Owner::caller(caller), caller.token_id, now)?;
        sessions::opener(tx, caller.tenant_id, caller.token_id)
    })?;
    cx.authn().forget(caller.token_id);
    Ok(FoundWithHeaders {
        value: SignedOut {
            provider_sign_out_url: opener.and_then(|opener| at_provider(cx, &opener)),
        },
        headers: vec![
            ("set-cookie", session.own.clear()),
            ("clear-site-data", "\"cache\"".to_owned()),
        ],
    })
}

/// Where one signs out at the provider, if it serves still and has such a page.
fn at_provider(cx: &Cx<'_>, opener: &Opener) -> Option<String> {
    let managed_by = cx.authn().sign_in().providers_managed_by();
    let session = cx.store().session();
    let named = session.and_then(|mut session| {
        identity_providers::named(&mut session, opener.identity_provider_id, managed_by)
    });
    let (tenant_id, provider) = named.ok()?;
    let permit = cx.provider_permit(tenant_id, provider.identity_provider_id);
    let _permit = permit.ok()?;
    let issuer = issuer_of(cx, &provider, None);
    let url = cx.oidc().sign_out_url(&issuer, &opener.email);
    url.unwrap_or_else(|fault| {
        tell(
            cx,
            &provider,
            &fault,
            "An identity provider does not say where one signs out",
        );
        None
    })
}
