//! `/v1/sign-in`: the ways in for a person with a browser, and the way out.
//!
//! Guarantees: whatever the way in, [`open`] opens the session: it asks for nothing but who it is and what the session may do
//! at most, so no way in gives more than another. Every session has a value of its own, and the one that the browser had
//! before ends. A token or code that does not hold is refused without a reason and not recorded; every other refusal of a
//! token is recorded (section 5.6.3).
//!
//! Not here: where a request may come from (`http::origin`), and listing and ending sessions (`sessions`).

use super::tokens::key_role;
use crate::authn::{bearer, public};
use crate::authz::{self, Checker, Stage};
use crate::config::TokenSignIn;
use crate::error::{self, Error, Result};
use crate::http::access::Open;
use crate::http::browser_access::{OfSession, SigningIn};
use crate::http::context::Cx;
use crate::http::input::{Nothing, SecretBody};
use crate::http::origin::Own;
use crate::http::output::{Found, Session};
use crate::http::route::{Method, Operation, Route, route};
use crate::proof::{Caller, Key};
use crate::secret::Secret;
use crate::store::principals::PrincipalKind;
use crate::store::sessions::{self, Method as Way};
use crate::store::tokens::{Known, Owner};
use crate::store::users::{self, TenantRole, User};
use crate::store::{Tx, enrolments};
use crate::text;
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
    let for_pages = || Operation::Unnamed("for the server's own pages, no call of a client");
    vec![
        route(
            Get,
            "/v1/sign-in",
            for_pages(),
            "Read in which ways one may sign in with a browser, and at which address",
            ways,
        ),
        route(
            Post,
            "/v1/sign-in/token",
            for_pages(),
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
            for_pages(),
            "Sign in with an enrolment code, which is taken: the answer's cookie carries a session",
            by_enrolment,
        )
        .takes(4096),
        route(
            Post,
            "/v1/sign-out",
            for_pages(),
            "End the session of the request",
            sign_out,
        ),
    ]
}

/// Why nobody can sign in by this request's address.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Problem {
    /// The server does not know its own address (`SVC_PUBLIC_URL`).
    NotConfigured,
    /// The server is to be opened at its own address.
    OtherAddress,
}

/// Who may sign in with a bearer token of their own.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TokenSignInSetting")]
enum ByToken {
    /// Everybody.
    On,
    /// Tenant admins.
    Admins,
    /// Nobody.
    Off,
}

/// The ways in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Ways {
    /// The server's address as browsers see it, where it is set.
    public_url: Option<String>,
    /// Who may sign in with a bearer token of their own.
    token_sign_in: ByToken,
    /// In development the console logs in by itself.
    development_login: bool,
    /// Why nobody can sign in by this request's address; null if they can.
    problem: Option<Problem>,
}

fn ways(cx: &Cx<'_>, _: Open, _: Nothing) -> Result<Found<Ways>> {
    let options = cx.authn().sign_in();
    let has_address = options.public_url.is_some() || options.development;
    Ok(Found(Ways {
        public_url: options.public_url.as_ref().map(|url| url.text().to_owned()),
        token_sign_in: match options.token_sign_in {
            TokenSignIn::On => ByToken::On,
            TokenSignIn::Admins => ByToken::Admins,
            TokenSignIn::Off => ByToken::Off,
        },
        development_login: options.console_token.is_some(),
        problem: match cx.own_origin() {
            Some(_) => None,
            None if has_address => Some(Problem::OtherAddress),
            None => Some(Problem::NotConfigured),
        },
    }))
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
    /// When what it came from ends, and so every key that is minted with it.
    ends_at: Option<OffsetDateTime>,
    /// For the record.
    by: String,
}

/// A session that was opened.
struct Opened {
    value: Secret,
    /// Sessions that ended by it.
    ended: Vec<Uuid>,
}

/// Opens a session: the only way to one. The one that this browser had ends.
fn open(cx: &Cx<'_>, tx: &mut Tx<'_>, own: &Own, sign_in: &SignIn) -> Result<Opened> {
    let (now, options) = (cx.now(), cx.authn().sign_in());
    let (value, session_id) = (bearer::mint_session()?, cx.new_id());
    let latest = now + options.life;
    let user_agent = cx.header("user-agent");
    let new = sessions::New {
        session_id,
        digest: bearer::digest(value.expose()),
        method: sign_in.way,
        token_id: sign_in.token_id,
        key: sign_in.key,
        keys_expire_at: sign_in.ends_at,
        client_address: cx.client_address(),
        user_agent: user_agent.map(|agent| text::beginning(agent, USER_AGENT_BYTES)),
        expires_at: sign_in.ends_at.map_or(latest, |end| end.min(latest)),
    };
    let before = cx.session_value(own).map(bearer::digest);
    let owner = Owner::caller(&sign_in.caller(session_id));
    let mut ended = sessions::open(tx, owner, &new, options.moment(now))?;
    if let Some(before) = before {
        ended.extend(sessions::end_by_digest(tx, &before, now)?);
    }
    let checker = cx.checker_of(sign_in.caller(session_id));
    let resource = format!("tenant:{}", sign_in.tenant_id);
    let reason = format!("user:{} signed in with {}", sign_in.user_id, sign_in.by);
    checker.allow(Stage::SignIn, ACTION, &resource, reason)?;
    Ok(Opened { value, ended })
}

impl SignIn {
    /// Who signs in, by this credential.
    fn caller(&self, token_id: Uuid) -> Caller {
        Caller {
            tenant_id: self.tenant_id,
            user_id: self.user_id,
            token_id,
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
    let token = token.expose().trim();
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
        ends_at: known.expires_at,
        by: format!("{called} {}", caller.token_id),
    })
}

/// The refusals of token sign-in that are recorded (section 5.6.3).
fn may_sign_in(cx: &Cx<'_>, checker: &Checker<'_>, known: &Known, user: &User) -> Result<()> {
    use error::Code::{TokenSignInNotAllowed, TokenSignInOff};
    let setting = cx.authn().sign_in().token_sign_in;
    let resource = format!("tenant:{}", known.caller.tenant_id);
    let refuse =
        |stage, code, sentence: &str| Err(checker.refuse(stage, ACTION, &resource, sentence, code));
    if setting == TokenSignIn::Off {
        let sentence = "Nobody signs in with a token on this server. Sign in another way.";
        return refuse(Stage::TokenSignInOff, TokenSignInOff, sentence);
    }
    let sentence = if user.kind == PrincipalKind::ServiceAccount {
        "The token is a service account's, and only people sign in."
    } else if known.caller.key.project_id.is_some() {
        "The token is limited to a project. Sign in with one that is not."
    } else if setting == TokenSignIn::Admins && user.tenant_role != TenantRole::Admin {
        "Only tenant admins sign in with a token on this server. Sign in another way."
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
        let digest = bearer::digest(body.code.expose().trim());
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
        ends_at: enrolled.key_expires_at,
        by: enrolled.named(),
    })
}

fn sign_out(cx: &Cx<'_>, session: OfSession, _: Nothing) -> Result<Session> {
    let (caller, now) = (&session.caller, cx.now());
    let owner = Owner::caller(caller);
    cx.transact(|tx| sessions::end(tx, owner, caller.token_id, now))?;
    cx.authn().forget(caller.token_id);
    Ok(Session(vec![
        ("set-cookie", session.own.clear()),
        ("clear-site-data", "\"cache\"".to_owned()),
    ]))
}
