//! `/v1/sign-in/providers/{identityProviderId}/start` and `/sign-in/callback/{identityProviderId}`: signing in through an
//! identity provider.
//!
//! Guarantees: only a page of this server can begin a sign-in, and a cookie binds it to the browser. The callback requires
//! that cookie, and always clears it; a sign-in that came back once comes back no more, whoever kept the cookie
//! (`sign_in::by_provider`). All requests to the provider share one deadline. The reason of a
//! failed sign-in is in the log; the browser gets only a code. The redirect at the end leads to a page of the console only.
//!
//! Not here: the protocol (`oidc`), who it is (`arrivals`), and opening the session (`sign_in`).

use super::arrivals::{Problem as NobodyHere, groups_fault};
use super::identity_providers::callback_url;
use super::sign_in::{self, NotIn};
use crate::authn::bearer;
use crate::error::{self, Error, Result};
use crate::http::browser_access::{Returning, SigningIn};
use crate::http::context::Cx;
use crate::http::flow_cookie::{self, Begun, Cookie};
use crate::http::input::{Body, Input};
use crate::http::origin::Own;
use crate::http::output::{FoundWithHeaders, GoOn, Session};
use crate::http::route::{Method, Operation, Route, route};
use crate::log::ErrorValue;
use crate::oidc::{Claims, Code, Fault, Issuer};
use crate::outbound::Policy;
use crate::secret::Secret;
use crate::store::identities::GroupsFault;
use crate::store::identity_providers::{self, IdentityProvider, ManagedBy};
use crate::store::sessions::Method as Way;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;
use uuid::Uuid;

/// Where a browser goes on to that names no other page.
const HOME: &str = "/console/";

/// Bytes of a page's address that are kept: five sign-ins have to fit into a request's headers.
const RETURN_TO_BYTES: usize = 512;

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(
            Method::Post,
            "/v1/sign-in/providers/{identityProviderId}/start",
            Operation::Unnamed("for the server's own pages, no call of a client"),
            "Begin to sign in through an identity provider: the address to open, and a cookie that binds what comes back to this browser",
            start,
        )
        .takes(4096)
        .answers(&[error::Code::NotFound, error::Code::ProviderUnavailable]),
        route(
            Method::Get,
            "/sign-in/callback/{identityProviderId}",
            Operation::Unnamed("identity providers send browsers here, no client calls it"),
            "Come back from an identity provider: the answer sends the browser on to the page where it began, with a session, or to the sign-in page with a problem",
            come_back,
        ),
    ]
}

/// How to begin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ProviderSignIn", example = serde_json::json!({"returnTo": "/console/runs"}))]
struct Start {
    /// The page to go on to: a path of this server below `/console/`, of 512 bytes at most. Anything else counts as
    /// `/console/`.
    return_to: Option<String>,
    /// The last try came to nothing: the provider is to ask which account it is to be.
    #[serde(default)]
    again: bool,
}

/// What a browser is to open.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProviderSignInStarted")]
struct Started {
    /// The provider's page.
    url: String,
}

/// The provider that the path names, if it serves.
fn named(cx: &Cx<'_>) -> Result<(Uuid, IdentityProvider)> {
    let id = super::request_parts::id_in_path(cx, "identityProviderId", "identity-provider")?;
    let managed_by = cx.authn().sign_in().providers_managed_by();
    identity_providers::named(&mut cx.store().session()?, id, managed_by)
}

fn unavailable(provider: &IdentityProvider) -> Error {
    let sentence = format!(
        "{} cannot be used to sign in at the moment. Try again, or sign in another way; the log says why.",
        provider.name
    );
    Error::new(error::Code::ProviderUnavailable, sentence)
}

/// Asks a provider something, by its client's secret and as far as whoever registered it may reach.
///
/// # Errors
/// `provider-unavailable`: the client's secret cannot be read.
fn asked<T>(
    cx: &Cx<'_>,
    tenant_id: Uuid,
    provider: &IdentityProvider,
    ask: impl FnOnce(&Issuer<'_>) -> Result<T, Fault>,
) -> Result<Result<T, Fault>> {
    let secret = sign_in::client_secret(cx, tenant_id, provider).map_err(|error| {
        // Whoever signs in does not learn what secrets are called.
        slog::warn!(cx.log(), "The client secret of an identity provider cannot be read";
            "identityProviderId" => provider.identity_provider_id.to_string(), ErrorValue(&error));
        unavailable(provider)
    })?;
    Ok(ask(&issuer_of(cx, provider, secret.as_ref())))
}

/// A provider as the protocol knows it, with its client's secret.
pub(super) fn issuer_of<'a>(
    cx: &Cx<'_>,
    provider: &'a IdentityProvider,
    client_secret: Option<&'a Secret>,
) -> Issuer<'a> {
    Issuer {
        issuer: &provider.issuer,
        client_id: &provider.client_id,
        client_secret,
        scopes: &provider.scopes,
        groups_claim: provider.groups_claim.as_deref(),
        policy: match provider.managed_by {
            ManagedBy::Tenant => cx.tenant_policy(),
            ManagedBy::Operator => Policy::Operator,
        },
    }
}

fn start(
    cx: &Cx<'_>,
    page: SigningIn,
    Body(body): Body<Start>,
) -> Result<FoundWithHeaders<Started>> {
    let (tenant_id, provider) = named(cx)?;
    let _permit = cx.provider_permit(tenant_id, provider.identity_provider_id)?;
    let callback = callback_url(page.own.text(), provider.identity_provider_id);
    let begun = asked(cx, tenant_id, &provider, |issuer| {
        cx.oidc().begin(issuer, &callback, body.again)
    })?;
    let (url, flow) = begun.map_err(|fault| {
        tell(cx, &provider, &fault, NOBODY);
        unavailable(&provider)
    })?;
    let begun = Begun {
        identity_provider_id: provider.identity_provider_id,
        flow,
        return_to: return_to(&page.own, body.return_to.as_deref()),
        session: cx.session_value(&page.own).map(bearer::digest),
        begun_at: cx.now(),
    };
    let cookies = flow_cookie::keep(&page.own, &begun, cx.flows(&page.own));
    Ok(FoundWithHeaders {
        value: Started { url },
        headers: cookies
            .into_iter()
            .map(|cookie| ("set-cookie", cookie))
            .collect(),
    })
}

/// A page of the console, by its path, query and fragment; anything else is none.
fn return_to(own: &Own, wanted: Option<&str>) -> String {
    let page = wanted.and_then(|wanted| {
        let own = Url::parse(own.text()).ok()?;
        let url = own.join(wanted).ok()?;
        let is_page = url.origin() == own.origin() && url.path().starts_with(HOME);
        is_page.then(|| url[url::Position::BeforePath..].to_owned())
    });
    page.filter(|page| page.len() <= RETURN_TO_BYTES)
        .unwrap_or_else(|| HOME.to_owned())
}

/// What the provider lets a browser bring back. Nothing in it is a fault of the request: whatever is wrong with it, the
/// browser is sent on.
#[derive(Debug, Default)]
struct Brought {
    /// What the sign-in began with.
    state: Option<String>,
    /// What the provider gives for an ID token.
    code: Option<String>,
    /// The issuer (RFC 9207).
    iss: Option<String>,
    /// Why the provider signs nobody in.
    error: Option<String>,
    /// One of them stands twice.
    is_doubled: bool,
}

impl Input for Brought {
    fn read(cx: &Cx<'_>) -> Result<Self> {
        let mut brought = Self::default();
        for (name, value) in url::form_urlencoded::parse(cx.query_text().as_bytes()) {
            let place = match &*name {
                "state" => &mut brought.state,
                "code" => &mut brought.code,
                "iss" => &mut brought.iss,
                "error" => &mut brought.error,
                _ => continue,
            };
            brought.is_doubled |= place.replace(value.into_owned()).is_some();
        }
        Ok(brought)
    }
}

/// Why a browser is sent back to the sign-in page.
enum Problem {
    /// The sign-in is not of this browser, took too long, or came back before.
    FlowExpired,
    /// The provider signs nobody in.
    ProviderRefused,
    /// The provider cannot be asked.
    ProviderUnavailable,
    /// What the provider says is not to be believed.
    ProviderNotBelieved,
    /// The provider names nobody of this tenant.
    NobodyHere(NobodyHere),
    /// It is the server's own.
    Ours(error::Code),
}

impl Problem {
    /// As the page gets it.
    const fn text(&self) -> &'static str {
        match self {
            Self::FlowExpired => "flow-expired",
            Self::ProviderRefused => "provider-refused",
            Self::ProviderUnavailable => "provider-unavailable",
            Self::ProviderNotBelieved => "provider-not-believed",
            Self::NobodyHere(problem) => problem.code(),
            Self::Ours(code) => code.text(),
        }
    }

    /// Somebody was refused, which is counted. What could not be decided is not.
    const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::ProviderRefused | Self::ProviderNotBelieved | Self::NobodyHere(_)
        )
    }
}

fn come_back(cx: &Cx<'_>, page: Returning, brought: Brought) -> Result<GoOn> {
    let state = brought.state.as_deref().unwrap_or_default();
    let cookie = flow_cookie::of_state(&page.own, state, cx.flows(&page.own));
    let cleared = cookie.as_ref().map(Cookie::clear);
    let come = match begun(cx, state, cookie) {
        Some(begun) => sign_in_as(cx, &page.own, &begun, &brought).map(|session| (begun, session)),
        None => Err(Problem::FlowExpired),
    };
    let sign_ins = cx.authn().sign_ins();
    let (to, mut headers) = match come {
        Ok((begun, Session(headers))) => {
            sign_ins.count(Way::Provider, true);
            // It came out of a cookie.
            (return_to(&page.own, Some(&begun.return_to)), headers)
        }
        Err(problem) => {
            if problem.is_refusal() {
                sign_ins.count(Way::Provider, false);
            }
            let request = cx.started_by().request_id;
            let code = problem.text();
            (
                format!("{HOME}sign-in?problem={code}&request=req-{request}"),
                Vec::new(),
            )
        }
    };
    headers.extend(cleared.map(|cleared| ("set-cookie", cleared)));
    Ok(GoOn { to, headers })
}

/// The sign-in that this browser began, if it is the one that comes back, here and in time.
fn begun(cx: &Cx<'_>, state: &str, cookie: Option<Cookie>) -> Option<Begun> {
    let begun = cookie?.begun?;
    let id =
        super::request_parts::id_in_path(cx, "identityProviderId", "identity-provider").ok()?;
    // Digests: how long the comparison takes says nothing of the values.
    let is_its = bearer::digest(state) == bearer::digest(&begun.flow.state);
    let is_here = begun.identity_provider_id == id;
    (is_its && is_here && begun.is_open(cx.now())).then_some(begun)
}

/// Signs in whom the provider names.
fn sign_in_as(
    cx: &Cx<'_>,
    own: &Own,
    begun: &Begun,
    brought: &Brought,
) -> Result<Session, Problem> {
    let ours = |error: Error| {
        let code = error.code();
        let value = ErrorValue(&error);
        match code {
            error::Code::Internal => {
                slog::error!(cx.log(), "A sign-in through an identity provider failed"; value);
            }
            _ => {
                slog::warn!(cx.log(), "A sign-in through an identity provider could not be completed"; value);
            }
        }
        Problem::Ours(code)
    };
    let (tenant_id, provider) = named(cx).map_err(ours)?;
    let claims = claims(cx, own, &provider, tenant_id, begun, brought).map_err(ours)??;
    let signed_in =
        sign_in::by_provider(cx, own, tenant_id, &provider, &claims, begun).map_err(ours)?;
    if signed_in.is_ok() {
        tell_of_groups(cx, &provider, &claims);
    }
    signed_in.map_err(|not_in| {
        let problem = match not_in {
            NotIn::CameBackBefore => {
                slog::warn!(cx.log(), "A sign-in came back that had come back before";
                    "identityProviderId" => provider.identity_provider_id.to_string());
                return Problem::FlowExpired;
            }
            NotIn::NobodyHere(problem) => problem,
        };
        let reason = problem.code();
        slog::warn!(cx.log(), "An identity provider names nobody who may sign in here";
            "identityProviderId" => provider.identity_provider_id.to_string(), "reason" => reason,
            "subject" => &claims.subject, "email" => claims.email.as_deref().unwrap_or_default());
        Problem::NobodyHere(problem)
    })
}

/// Says in the log that groups were asked for and none were named, so that nothing changes.
fn tell_of_groups(cx: &Cx<'_>, provider: &IdentityProvider, claims: &Claims) {
    let Some(why) = groups_fault(provider, claims) else {
        return;
    };
    let remedy = match why {
        GroupsFault::LeftOut => {
            "The person is in more groups than the provider names. Let it name only those that are registered here."
        }
        GroupsFault::Absent => {
            "Let the provider put the claim into the ID token or userinfo, also where the person is in no group; some \
             providers take a scope for it."
        }
    };
    slog::warn!(cx.log(), "An identity provider does not name a person's groups, so their teams stay as they are";
        "identityProviderId" => provider.identity_provider_id.to_string(), "provider" => &provider.name,
        "groupsClaim" => provider.groups_claim.as_deref(), "reason" => why.text(), "remedy" => remedy,
        "subject" => &claims.subject);
}

/// What the provider says of whoever comes back.
fn claims(
    cx: &Cx<'_>,
    own: &Own,
    provider: &IdentityProvider,
    tenant_id: Uuid,
    begun: &Begun,
    brought: &Brought,
) -> Result<Result<Claims, Problem>> {
    let code = match (&brought.code, &brought.error) {
        (Some(code), None) if !brought.is_doubled => code,
        (_, error) => {
            // Of what it brings a word at most is repeated.
            let said = crate::oidc::shown(error.as_deref().unwrap_or("none"));
            slog::warn!(cx.log(), "An identity provider sent a browser back without a code";
                "identityProviderId" => provider.identity_provider_id.to_string(), "providerError" => said);
            return Ok(Err(Problem::ProviderRefused));
        }
    };
    let _permit = cx.provider_permit(tenant_id, provider.identity_provider_id)?;
    let callback = callback_url(own.text(), provider.identity_provider_id);
    let iss = brought.iss.as_deref();
    let done = asked(cx, tenant_id, provider, |issuer| {
        cx.oidc()
            .complete(issuer, &callback, &begun.flow, code, iss)
    })?;
    Ok(done.map_err(|fault| {
        tell(cx, provider, &fault, NOBODY);
        match fault.code() {
            Code::Unavailable | Code::NoRandomness => Problem::ProviderUnavailable,
            _ => Problem::ProviderNotBelieved,
        }
    }))
}

/// What the log says of a sign-in that came to nothing at the provider.
const NOBODY: &str = "An identity provider signed nobody in";

/// Says in the log why a provider is of no use, and what to do.
pub(super) fn tell(cx: &Cx<'_>, provider: &IdentityProvider, fault: &Fault, what: &str) {
    let (reason, remedy) = (fault.code().text(), fault.remedy());
    slog::warn!(cx.log(), "{}", what;
        "identityProviderId" => provider.identity_provider_id.to_string(), "provider" => &provider.name,
        "reason" => reason, "remedy" => remedy, ErrorValue(fault));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_goes_on_to_a_page_of_the_console_alone() {
        let own = Own::for_tests("https://agents.example.com:8443");
        for (wanted, page) in [
            ("/console/", "/console/"),
            ("/console/runs/1?tab=steps#4", "/console/runs/1?tab=steps#4"),
            ("https://agents.example.com:8443/console/a", "/console/a"),
            ("/console/a/../b", "/console/b"),
            ("/console/%0d%0aset-cookie:a", "/console/%0d%0aset-cookie:a"),
            ("/console/\r\nset-cookie:a", "/console/set-cookie:a"),
        ] {
            assert_eq!(return_to(&own, Some(wanted)), page, "{wanted}");
        }
        let long = format!("/console/{}", "a".repeat(RETURN_TO_BYTES));
        for wanted in [
            "",
            "/",
            "/console",
            "/consoles/",
            "/v1/projects",
            "/console/../v1/projects",
            "/console/%2e%2e/v1/projects",
            "/console/..\\v1",
            "//evil.example/console/",
            "/\\evil.example/console/",
            "https://evil.example/console/",
            "https://agents.example.com/console/",
            "http://agents.example.com:8443/console/",
            "https://agents.example.com:8443@evil.example/console/",
            "javascript:alert(1)//console/",
            "data:text/html,/console/",
            &long,
        ] {
            assert_eq!(return_to(&own, Some(wanted)), HOME, "{wanted}");
        }
        assert_eq!(return_to(&own, None), HOME);
    }
}
