//! `/v1/sign-in`: the ways in for a person with a browser.
//!
//! Guarantees: every way in uses [`open`] to open the session. It takes only the person and the most that the session may do,
//! so no way in gives more than another. Every session has a new value, and the browser's previous session ends. An invalid
//! token or code is refused without a reason and not recorded; every other refusal of a token is recorded (section 5.6.3).
//!
//! Not here: where a request may come from (`http::origin`), the way out (`sign_out`), and listing and ending sessions
//! (`sessions`).

use super::arrivals::{self, Arrival, Arrived, Problem as NobodyHere};
use super::tokens::key_role;
use crate::authn::{bearer, public};
use crate::authz::{self, Checker, Stage};
use crate::config::TokenSignIn;
use crate::error::{self, Error, Result};
use crate::http::access::Open;
use crate::http::browser_access::SigningIn;
use crate::http::context::Cx;
use crate::http::flow_cookie::Begun;
use crate::http::input::{Query, SecretBody};
use crate::http::origin::Own;
use crate::http::output::{Found, Session};
use crate::http::route::{Method, Route, route};
use crate::ids::Id;
use crate::log::ErrorValue;
use crate::oidc::Claims;
use crate::proof::{Caller, Capabilities, Key, KeyRole, KnownBy};
use crate::secret::Secret;
use crate::secrets::SecretRef;
use crate::store::identity_providers::{self, IdentityProvider, ManagedBy, Serving};
use crate::store::principals::PrincipalKind;
use crate::store::runs::{self, RequestKey};
use crate::store::sessions::{self, Method as Way};
use crate::store::sign_in_settings::{self, SignInSettings};
use crate::store::tokens::{Known, Owner};
use crate::store::users::{self, TenantRole, User};
use crate::store::{Tx, enrolments, tenants};
use crate::text;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// What sign-in is called in decisions.
const ACTION: &str = "sign-in";

/// Bytes of what a browser calls itself that are kept.
const USER_AGENT_BYTES: usize = 300;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Post};
    vec![
        route(
            Get,
            "/v1/sign-in",
            "signIn.ways",
            "Read in which ways one may sign in with a browser, and at which address",
            ways,
        ),
        route(
            Post,
            "/v1/sign-in/token",
            "signIn.byToken",
            "Sign in with a bearer token: the answer's cookie carries a session, which ends with the token",
            by_token,
        )
        .takes(8192)
        .answers(&[
            error::Code::TokenSignInOff,
            error::Code::TokenSignInNotAllowed,
        ]),
        route(
            Post,
            "/v1/sign-in/enrolment",
            "signIn.byEnrolment",
            "Sign in with an enrolment code, which is taken: the answer's cookie carries a session",
            by_enrolment,
        )
        .takes(4096),
    ]
}

/// Why nobody can sign in by this request's address.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SignInProblem")]
enum Problem {
    /// The server does not know its own address (`SVC_PUBLIC_URL`).
    NotConfigured,
    /// The server is to be opened at its own address.
    OtherAddress,
}

/// The ways in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SignInWays")]
struct Ways {
    /// The server's address as browsers see it, where it is set.
    public_url: Option<String>,
    /// The tenant that the rest is about: the one that was asked for, or the only one. Null: there are several, and
    /// `tenantId` names one.
    tenant_id: Option<Uuid>,
    /// The identity providers by which one may sign in.
    providers: Vec<Provider>,
    /// Who may sign in with a bearer token of their own.
    token_sign_in: TokenSignIn,
    /// In development the console logs in by itself.
    development_login: bool,
    /// Why nobody can sign in by this request's address; null if they can.
    problem: Option<Problem>,
}

/// An identity provider to sign in by.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SignInProvider")]
struct Provider {
    id: Uuid,
    name: String,
}

/// Which tenant's ways.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OfTenant {
    /// The tenant, where the server has several.
    tenant_id: Option<Id>,
}

fn ways(cx: &Cx<'_>, _: Open, Query(query): Query<OfTenant>) -> Result<Found<Ways>> {
    let options = cx.authn().sign_in();
    let mut session = cx.store().session()?;
    let tenant_id = match query.tenant_id {
        Some(Id(named)) => Some(named),
        None => tenants::only(&mut session)?,
    };
    let (mut providers, mut settings) = (Vec::new(), SignInSettings::default());
    if let Some(tenant_id) = tenant_id {
        let managed_by = options.providers_managed_by();
        providers = identity_providers::serving(&mut session, tenant_id, managed_by)?;
        settings = sign_in_settings::find(&mut session, tenant_id)?;
    }
    let has_address = options.public_url.is_some() || options.development;
    Ok(Found(Ways {
        public_url: options.public_url.as_ref().map(|url| url.text().to_owned()),
        tenant_id,
        providers: providers.into_iter().map(Provider::from).collect(),
        token_sign_in: options.token_sign_in_of(&settings),
        development_login: options.console_token.is_some(),
        problem: match cx.own_origin() {
            Some(_) => None,
            None if has_address => Some(Problem::OtherAddress),
            None => Some(Problem::NotConfigured),
        },
    }))
}

impl From<Serving> for Provider {
    fn from(provider: Serving) -> Self {
        Self {
            id: provider.identity_provider_id,
            name: provider.name,
        }
    }
}

/// A bearer token to sign in with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"token": "svc_bt_the-token-of-the-person"}))]
struct TokenToSignInWith {
    /// The token. It is kept nowhere.
    #[serde(deserialize_with = "secret")]
    #[schemars(with = "String", length(min = 1, max = 4096), extend("writeOnly" = true))]
    token: Secret,
}

/// An enrolment code to sign in with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({"code": "svc_en_the-code-that-was-shown"}))]
struct CodeToSignInWith {
    /// The code, as it was shown.
    #[serde(deserialize_with = "secret")]
    #[schemars(with = "String", length(min = 1, max = 200), extend("writeOnly" = true))]
    code: Secret,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// Who signs in, and what the session may do at most.
struct SignIn {
    tenant_id: Uuid,
    user_id: Uuid,
    way: Way,
    key: Key,
    /// The token that the session comes from, and ends with.
    token_id: Option<Uuid>,
    /// The identity provider by which they do.
    identity_provider_id: Option<Uuid>,
    /// When what it came from ends, and so every key that is minted with it.
    ends_at: Option<OffsetDateTime>,
    /// The digest of the session that the browser had, where it does not send it.
    before: Option<[u8; 32]>,
    /// For the record.
    by: String,
}

/// A session that was opened.
struct Opened {
    session_id: Uuid,
    value: Secret,
    /// Sessions that ended by it.
    ended: Vec<Uuid>,
}

/// Opens a session: the only way to one. The one that this browser had ends.
fn open(cx: &Cx<'_>, tx: &mut Tx<'_>, own: &Own, sign_in: &SignIn) -> Result<Opened> {
    let (now, options) = (cx.now(), cx.authn().sign_in());
    let (value, session_id) = (bearer::mint_session()?, cx.new_id());
    let settings = sign_in_settings::find(tx, sign_in.tenant_id)?;
    let latest = now + options.life_of(&settings);
    let user_agent = cx.header("user-agent");
    let new = sessions::New {
        session_id,
        digest: bearer::digest(value.expose()),
        method: sign_in.way,
        token_id: sign_in.token_id,
        identity_provider_id: sign_in.identity_provider_id,
        key: sign_in.key,
        keys_expire_at: sign_in.ends_at,
        client_address: cx.client_address(),
        user_agent: user_agent.map(|agent| text::beginning(agent, USER_AGENT_BYTES)),
        expires_at: sign_in.ends_at.map_or(latest, |end| end.min(latest)),
    };
    let before = cx.session_value(own).map(bearer::digest);
    let before = before.or(sign_in.before);
    let owner = Owner::caller(&sign_in.caller(session_id));
    let mut ended = sessions::open(tx, owner, &new, options.moment(now))?;
    if let Some(before) = before {
        ended.extend(sessions::end_by_digest(tx, &before, now)?);
    }
    let checker = cx.checker_of(sign_in.caller(session_id));
    let resource = format!("tenant:{}", sign_in.tenant_id);
    let reason = format!("user:{} signed in with {}", sign_in.user_id, sign_in.by);
    checker.allow(Stage::SignIn, ACTION, &resource, reason)?;
    Ok(Opened {
        session_id,
        value,
        ended,
    })
}

impl SignIn {
    /// Who signs in, by this session.
    fn caller(&self, session_id: Uuid) -> Caller {
        let of_token = self.token_id;
        Caller {
            tenant_id: self.tenant_id,
            user_id: self.user_id,
            token_id: session_id,
            known_by: KnownBy::Session { of_token },
            key: self.key,
        }
    }
}

/// The answer to who signed in, once that is on disk.
fn answer(cx: &Cx<'_>, own: &Own, opened: &Opened) -> Session {
    for session_id in &opened.ended {
        cx.authn().forget(*session_id);
    }
    Session(vec![("set-cookie", own.keep(opened.value.expose()))])
}

/// Counts what came of it: a session in this way, or a refusal. What the server could not decide is neither.
fn counted(
    cx: &Cx<'_>,
    way: Way,
    sign_in: impl FnOnce() -> Result<(Way, Session)>,
) -> Result<Session> {
    let sign_ins = cx.authn().sign_ins();
    match sign_in() {
        Ok((way, session)) => {
            sign_ins.count(way, true);
            Ok(session)
        }
        Err(error) => {
            if [401, 403].contains(&error.code().status()) {
                sign_ins.count(way, false);
            }
            Err(error)
        }
    }
}

fn by_token(
    cx: &Cx<'_>,
    page: SigningIn,
    SecretBody(body): SecretBody<TokenToSignInWith>,
) -> Result<Session> {
    counted(cx, Way::Token, || {
        let sign_in = of_token(cx, &body.token)?;
        let opened = cx.transact(|tx| open(cx, tx, &page.own, &sign_in))?;
        Ok((sign_in.way, answer(cx, &page.own, &opened)))
    })
}

/// Whom a token signs in. The token is looked up first, so that a refusal has somebody to record.
fn of_token(cx: &Cx<'_>, token: &Secret) -> Result<SignIn> {
    if token.expose().starts_with(public::PREFIX) {
        return Err(Error::new(
            error::Code::Unauthenticated,
            "A public run token signs nobody in. Use a bearer token.",
        ));
    }
    let token = token.expose().trim_ascii();
    let known = cx.authn().bearer(token)?;
    let caller = &known.caller;
    let user = users::find(&mut cx.store().session()?, caller.tenant_id, caller.user_id)?
        .ok_or_else(|| Error::not_found("user", caller.user_id))?;
    let handed_out = cx.authn().sign_in().console_token.as_ref();
    let is_handed_out =
        handed_out.is_some_and(|given| bearer::digest(given.expose()) == bearer::digest(token));
    if !is_handed_out {
        let checker = cx.checker_of(caller.clone());
        authz::as_caller(&checker)?;
        may_sign_in(cx, &checker, &known, &user)?;
    }
    let (way, called) = match is_handed_out {
        true => (Way::Development, "development token"),
        false => (Way::Token, "token"),
    };
    Ok(SignIn {
        tenant_id: caller.tenant_id,
        user_id: caller.user_id,
        way,
        key: caller.key,
        token_id: Some(caller.token_id),
        identity_provider_id: None,
        ends_at: known.expires_at,
        before: None,
        by: format!("{called} {}", caller.token_id),
    })
}

/// The refusals of token sign-in that are recorded (section 5.6.3).
fn may_sign_in(cx: &Cx<'_>, checker: &Checker<'_>, known: &Known, user: &User) -> Result<()> {
    use error::Code::{TokenSignInNotAllowed, TokenSignInOff};
    let server = cx.authn().sign_in();
    let of_tenant = sign_in_settings::find(&mut cx.store().session()?, known.caller.tenant_id)?;
    let setting = server.token_sign_in_of(&of_tenant);
    let on = match setting == server.token_sign_in {
        true => "on this server",
        false => "in this tenant",
    };
    let resource = format!("tenant:{}", known.caller.tenant_id);
    let refuse =
        |stage, code, sentence: &str| Err(checker.refuse(stage, ACTION, &resource, sentence, code));
    if setting == TokenSignIn::Off {
        let sentence = format!("Nobody signs in with a token {on}. Sign in another way.");
        return refuse(Stage::TokenSignInOff, TokenSignInOff, &sentence);
    }
    let not_admin = format!("Only tenant admins sign in with a token {on}. Sign in another way.");
    // With authorization off, whoever holds a token may do anything in its tenant. The setting holds all the same.
    let is_limited = checker.enforces();
    let sentence = if is_limited && user.kind == PrincipalKind::ServiceAccount {
        "The token is a service account's, and only people sign in."
    } else if is_limited && known.caller.key.project_id.is_some() {
        "The token is limited to a project. Sign in with one that is not."
    } else if setting == TokenSignIn::Admins && user.tenant_role != TenantRole::Admin {
        not_admin.as_str()
    } else {
        return Ok(());
    };
    refuse(
        Stage::TokenSignInNotAllowed,
        TokenSignInNotAllowed,
        sentence,
    )
}

fn by_enrolment(
    cx: &Cx<'_>,
    page: SigningIn,
    SecretBody(body): SecretBody<CodeToSignInWith>,
) -> Result<Session> {
    counted(cx, Way::Enrolment, || {
        let digest = bearer::digest(body.code.expose().trim_ascii());
        let opened = cx.transact(|tx| {
            let sign_in = of_code(cx, tx, &digest)?;
            open(cx, tx, &page.own, &sign_in)
        })?;
        Ok((Way::Enrolment, answer(cx, &page.own, &opened)))
    })
}

/// Whom a code signs in, which is taken.
fn of_code(cx: &Cx<'_>, tx: &mut Tx<'_>, digest: &[u8; 32]) -> Result<SignIn> {
    let enrolled = enrolments::take(tx, digest, cx.enforces(), cx.now())?.ok_or_else(|| {
        let sentence = "The enrolment code does not hold. Ask a tenant admin for another one.";
        Error::new(error::Code::Unauthenticated, sentence)
    })?;
    Ok(SignIn {
        tenant_id: enrolled.tenant_id,
        user_id: enrolled.user_id,
        way: Way::Enrolment,
        key: Key {
            role: enrolled.key.role.min(key_role(enrolled.tenant_role)),
            ..enrolled.key
        },
        token_id: None,
        identity_provider_id: None,
        ends_at: enrolled.key_expires_at,
        before: None,
        by: enrolled.named(),
    })
}

/// Why a provider's word opens no session.
pub(super) enum NotIn {
    /// This sign-in came back before.
    CameBackBefore,
    /// It names nobody of this tenant.
    NobodyHere(NobodyHere),
}

/// Whether this sign-in comes back for the first time, on whichever replica. A provider may take its code twice, and whoever
/// kept the browser's cookie and the address could come back again. So the nonce is kept for a day, longer than a sign-in may
/// take: it is what the provider signed, and nobody can give another one beside the same code.
fn is_first(tx: &mut Tx<'_>, arrival: &Arrival, begun: &Begun) -> Result<bool> {
    let digest = bearer::digest(begun.flow.nonce.expose());
    let nonce = RequestKey {
        principal: format!("identity-provider:{}", arrival.identity_provider_id),
        route: "GET /sign-in/callback".to_owned(),
        key: URL_SAFE_NO_PAD.encode(digest),
        body_digest: digest,
    };
    let before = runs::remember_key(
        tx,
        arrival.tenant_id,
        &nonce,
        arrival.new_identity_id,
        arrival.now,
    )?;
    Ok(before.is_none())
}

/// Signs in whom a provider names, or says why they are nobody here. The session is the answer's headers. The one that the
/// browser had when it left for the provider ends.
///
/// # Errors
/// `not-found`: the provider was deleted; `unauthenticated`, `audit-unavailable`, `database-unavailable`.
pub(super) fn by_provider(
    cx: &Cx<'_>,
    own: &Own,
    tenant_id: Uuid,
    provider: &IdentityProvider,
    claims: &Claims,
    begun: &Begun,
) -> Result<Result<Session, NotIn>> {
    let arrival = Arrival {
        tenant_id,
        identity_provider_id: provider.identity_provider_id,
        new_user_id: cx.new_id(),
        new_identity_id: cx.new_id(),
        now: cx.now(),
    };
    let come = cx.transact(|tx| {
        if !is_first(tx, &arrival, begun)? {
            return Ok(Err(NotIn::CameBackBefore));
        }
        let arrived = match arrivals::arrive(tx, &arrival, claims)? {
            Ok(arrived) => arrived,
            Err(problem) => return Ok(Err(NotIn::NobodyHere(problem))),
        };
        let sign_in = SignIn {
            before: begun.session,
            ..of_arrived(tenant_id, provider, &arrived)
        };
        let opened = open(cx, tx, own, &sign_in)?;
        let checker = cx.checker_of(sign_in.caller(opened.session_id));
        arrived.record(&checker, provider)?;
        Ok(Ok((arrived, opened)))
    })?;
    let (arrived, opened) = match come {
        Ok(come) => come,
        Err(not_in) => return Ok(Err(not_in)),
    };
    // The change stands and is told later: a person is not kept out because the authorization server is away.
    if let Err(error) = cx.apply_permissions(tenant_id, &arrived.objects) {
        slog::warn!(cx.log(), "Somebody signed in whose teams the authorization server does not know yet";
            "userId" => arrived.user_id.to_string(), "identityProviderId" => provider.identity_provider_id.to_string(),
            ErrorValue(&error));
    }
    Ok(Ok(answer(cx, own, &opened)))
}

/// The secret by which this server is known at a provider; none: a public client.
///
/// # Errors
/// `secrets-unavailable`.
pub(super) fn client_secret(
    cx: &Cx<'_>,
    tenant_id: Uuid,
    provider: &IdentityProvider,
) -> Result<Option<Secret>> {
    if provider.managed_by == ManagedBy::Operator {
        let options = cx.authn().sign_in();
        return Ok(options
            .operator_secret(provider.identity_provider_id)
            .cloned());
    }
    let resolve = |at: &SecretRef| {
        cx.secrets().resolve(tenant_id, at).map_err(|unreadable| {
            Error::new(error::Code::SecretsUnavailable, unreadable.sentence(at))
        })
    };
    provider.client_secret.as_ref().map(resolve).transpose()
}

/// Who arrived signs in: the session may do what the person may at the time of each request.
fn of_arrived(tenant_id: Uuid, provider: &IdentityProvider, arrived: &Arrived) -> SignIn {
    SignIn {
        tenant_id,
        user_id: arrived.user_id,
        way: Way::Provider,
        key: Key {
            role: KeyRole::Admin,
            capabilities: Capabilities::all(),
            project_id: None,
        },
        token_id: None,
        identity_provider_id: Some(provider.identity_provider_id),
        ends_at: None,
        before: None,
        by: format!(
            "identity-provider:{} ({})",
            provider.identity_provider_id, provider.name
        ),
    }
}
