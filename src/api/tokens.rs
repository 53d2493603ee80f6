//! `/v1/tokens`: the caller's bearer tokens, and public run tokens.

use super::page_query::PageQuery;
use super::request_parts::{SOME_ID, id_in_path, invalid_body};
use crate::authn::{Credential, PublicToken, bearer, public};
use crate::authz::{self, Checker};
use crate::error::{Code, Error, Result};
use crate::http::access::MayName;
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Action, Caller, Capabilities, Capability, Key, KeyRole, Read, Write};
use crate::secret::Secret;
use crate::store::page::Page;
use crate::store::projects::Project;
use crate::store::runs::Run;
use crate::store::tokens::{self, Owner, Token};
use crate::store::users::{self, TenantRole, User};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    vec![
        route(
            Post,
            "/v1/tokens",
            "tokens.create", "Mint a bearer token, which may do no more than the one that mints it; it is shown once",
            mint,
        )
        .needs(Capability::KeysWrite)
        .answers(&MINT_CODES),
        route(
            Get,
            "/v1/tokens",
            "tokens.list", "List the caller's own bearer tokens; with one that is limited to a project, that project's",
            list,
        ),
        route(
            Delete,
            "/v1/tokens/{tokenId}",
            "tokens.revoke", "Revoke one of the caller's own bearer tokens; any but the request's takes keys:write",
            revoke,
        )
        .answers(&[Code::NotFound]),
        route(
            Post,
            "/v1/tokens/public",
            "tokens.createPublic", "Mint a short-lived, read-only token for following named runs in a browser",
            mint_public,
        )
        .answers(&[Code::NotConfigured, Code::NotFound]),
    ]
}

/// What minting a key for somebody can answer.
pub(super) const MINT_CODES: [Code; 5] = [
    Code::Conflict,
    Code::KeyProjectMismatch,
    Code::NotFound,
    Code::PermissionDenied,
    Code::RoleExceedsPrincipal,
];

/// A bearer token, without its secret part.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Token")]
pub(super) struct View {
    id: Uuid,
    name: String,
    /// The last four characters of the token.
    last_four: String,
    /// The token came with the tenant.
    seed: bool,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    /// When it was last used: to the minute, and up to an hour old, since a further use within an hour is not written.
    last_used_at: Option<Timestamp>,
    role: KeyRole,
    capabilities: Vec<Capability>,
    /// The one project that the token is limited to.
    project_id: Option<Uuid>,
}

impl From<Token> for View {
    fn from(token: Token) -> Self {
        Self {
            id: token.token_id,
            name: token.name,
            last_four: token.last_four,
            seed: token.seed,
            created_at: token.created_at.into(),
            expires_at: token.expires_at.map(Into::into),
            last_used_at: token.last_used_at.map(Into::into),
            role: token.key.role,
            capabilities: token.key.capabilities.iter().collect(),
            project_id: token.key.project_id,
        }
    }
}

impl MayName for NewToken {
    fn project_id(&self) -> Option<Uuid> {
        self.project_id.map(Uuid::from)
    }
}

/// A bearer token to mint. What is left out is as the token has it that mints this one. With
/// authorization on, nothing goes beyond it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"name": "laptop"}))]
pub(super) struct NewToken {
    name: Name,
    /// Not above the owner's role in the tenant.
    role: Option<KeyRole>,
    capabilities: Option<Vec<Capability>>,
    /// The one project that the token is limited to.
    project_id: Option<Id>,
    /// When the token ends by itself.
    expires_at: Option<Timestamp>,
}

/// A bearer token that was minted.
#[derive(Serialize, JsonSchema)]
pub(super) struct MintedToken {
    #[serde(flatten)]
    about: View,
    /// The token itself: shown here, and never again.
    token: String,
}

/// A public run token to mint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"runIds": [SOME_ID], "expiresInSeconds": 300}))]
struct NewPublicToken {
    /// The runs that it opens.
    #[schemars(length(min = 1, max = 50))]
    run_ids: Vec<Id>,
    /// How long it lives, in seconds.
    #[schemars(range(min = 1, max = 900), extend("default" = 900))]
    expires_in_seconds: Option<u32>,
}

/// A public run token that was minted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MintedPublicToken {
    /// The token itself.
    token: String,
    expires_at: Timestamp,
}

/// A token, and what is kept of it.
pub(super) struct Fresh {
    text: Secret,
    digest: [u8; 32],
    last_four: String,
}

impl Fresh {
    /// A fresh one.
    pub(super) fn mint() -> Result<Self> {
        let text = bearer::mint()?;
        Ok(Self {
            digest: bearer::digest(text.expose()),
            last_four: bearer::last_four(&text),
            text,
        })
    }

    /// What is kept of it.
    pub(super) fn row<'a>(
        &'a self,
        token_id: Uuid,
        name: &'a str,
        expires_at: Option<OffsetDateTime>,
    ) -> tokens::New<'a> {
        tokens::New {
            token_id,
            name,
            digest: self.digest,
            last_four: &self.last_four,
            expires_at,
        }
    }

    /// For its one showing.
    pub(super) fn show(&self, kept: Token) -> MintedToken {
        MintedToken {
            about: kept.into(),
            token: self.text.expose().to_owned(),
        }
    }
}

/// When the token ends: not after the one that mints it, where that one's limits hold.
fn end_of(
    checker: &Checker<'_>,
    asked: Option<OffsetDateTime>,
    maker: Option<OffsetDateTime>,
    now: OffsetDateTime,
) -> Result<Option<OffsetDateTime>> {
    if asked.is_some_and(|end| end <= now) {
        return Err(invalid_body("$.expiresAt", "a time in the future"));
    }
    match (asked, maker) {
        (Some(asked), Some(maker)) if asked > maker && checker.enforces() => Err(invalid_body(
            "$.expiresAt",
            "a time that is not after the end of the token that mints this one",
        )),
        (asked, maker) => Ok(asked.or(maker)),
    }
}

/// When the keys end at the latest that the request mints: with its own key, or with the one that its session came from.
pub(super) fn maker_ends(cx: &Cx<'_>) -> Result<Option<OffsetDateTime>> {
    Ok(match cx.credential()? {
        Credential::Bearer(known) | Credential::Session(known) => known.keys_expire_at(),
        Credential::Public(_) => None,
    })
}

/// The most that a key may be of somebody with this role in the tenant.
pub(super) fn key_role(owned: TenantRole) -> KeyRole {
    match owned {
        TenantRole::Admin => KeyRole::Admin,
        TenantRole::Member => KeyRole::Member,
    }
}

/// The role of the token: not above its owner, nor above the token that mints it. With authorization off the holder of any
/// token may do anything, and so may mint any.
fn role_of(checker: &Checker<'_>, asked: Option<KeyRole>, owner: &User) -> Result<KeyRole> {
    let owned = key_role(owner.tenant_role);
    let inherited = checker.caller().key.role.min(owned);
    let most = match checker.enforces() {
        true => inherited,
        false => KeyRole::Admin,
    };
    match asked {
        Some(asked) if asked > most => Err(Error::new(
            Code::RoleExceedsPrincipal,
            format!(
                "The token cannot have the role {}: {} is the most that its owner and the token that mints it have.",
                asked.text(),
                most.text()
            ),
        )
        .detail("mostRole", most.text())),
        asked => Ok(asked.unwrap_or(inherited)),
    }
}

fn capabilities_of(checker: &Checker<'_>, asked: Option<&[Capability]>) -> Result<Capabilities> {
    let Some(asked) = asked else {
        return Ok(checker.caller().key.capabilities);
    };
    let asked = asked.iter().copied().collect();
    checker.gives(asked)?;
    Ok(asked)
}

/// The project that the token is limited to, which the caller and the owner read.
fn project_of(
    cx: &Cx<'_>,
    checker: &Checker<'_>,
    owner: Owner,
    asked: Option<Uuid>,
) -> Result<Option<Uuid>> {
    let caller = checker.caller();
    let project_id = match (caller.key.project_id, asked) {
        (Some(own), None) => own,
        (own, Some(asked)) => {
            if own != Some(asked) {
                authz::on_object::<Project, Read>(checker, asked)?;
            }
            asked
        }
        (None, None) => return Ok(None),
    };
    let is_others = owner.user_id() != caller.user_id;
    if is_others && checker.enforces() && !owner.has_way(&mut cx.store().session()?, project_id)? {
        let message =
            format!("The service account has no role on project {project_id}. Give it one first.");
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(Some(project_id))
}

/// Mints a key for its owner, with authorization on within what the key of the request may do.
pub(super) fn mint_for(cx: &Cx<'_>, owner: Owner, new: NewToken) -> Result<Created<MintedToken>> {
    let (checker, now) = (cx.checker()?, cx.now());
    let project_id = new.project_id.map(Uuid::from);
    if let Some(project_id) = project_id {
        checker.names_project(Write::NAME, project_id)?;
    }
    let expires_at = end_of(
        &checker,
        new.expires_at.map(|at| at.0),
        maker_ends(cx)?,
        now,
    )?;
    let caller = checker.caller();
    let user = users::find(
        &mut cx.store().session()?,
        caller.tenant_id,
        owner.user_id(),
    )?
    .ok_or_else(|| Error::not_found("user", owner.user_id()))?;
    let key = Key {
        role: role_of(&checker, new.role, &user)?,
        capabilities: capabilities_of(&checker, new.capabilities.as_deref())?,
        project_id: project_of(cx, &checker, owner, project_id)?,
    };
    let fresh = Fresh::mint()?;
    let row = fresh.row(cx.new_id(), new.name.as_str(), expires_at);
    let kept = cx.transact(|tx| tokens::insert(tx, owner, &row, key, now))?;
    Ok(Created(fresh.show(kept)))
}

/// A page of the owner's keys.
pub(super) fn list_of(cx: &Cx<'_>, owner: Owner, query: &PageQuery) -> Result<Found<Page<View>>> {
    let binding = ("tokens", owner.user_id());
    let page = query.page(&binding)?;
    let rows = tokens::list(&mut cx.store().session()?, owner, &page, cx.now())?;
    Ok(Found(page.page(rows, |row| row.token_id, View::from)))
}

/// Revokes one of the owner's keys.
pub(super) fn revoke_of(cx: &Cx<'_>, owner: Owner, token_id: Uuid) -> Result<Gone> {
    let now = cx.now();
    let revoked = cx.transact(|tx| tokens::revoke(tx, owner, token_id, now))?;
    if !revoked {
        return Err(Error::not_found("token", token_id));
    }
    cx.authn().forget(token_id);
    Ok(Gone)
}

fn mint(cx: &Cx<'_>, caller: Caller, Body(new): Body<NewToken>) -> Result<Created<MintedToken>> {
    mint_for(cx, Owner::caller(&caller), new)
}

fn list(cx: &Cx<'_>, caller: Caller, Query(query): Query<PageQuery>) -> Result<Found<Page<View>>> {
    list_of(cx, reach(&cx.checker_of(caller)), &query)
}

fn revoke(cx: &Cx<'_>, caller: Caller, _: Nothing) -> Result<Gone> {
    let token_id = id_in_path(cx, "tokenId", "token")?;
    let checker = cx.checker_of(caller);
    if token_id != checker.caller().token_id {
        checker.needs(Capability::KeysWrite)?;
    }
    revoke_of(cx, reach(&checker), token_id)
}

/// Which of the caller's tokens and sessions the credential of the request reaches: its limits are rules of
/// authorization.
pub(super) fn reach(checker: &Checker<'_>) -> Owner {
    match checker.enforces() {
        true => Owner::reach(checker.caller()),
        false => Owner::caller(checker.caller()),
    }
}

fn mint_public(
    cx: &Cx<'_>,
    caller: Caller,
    Body(new): Body<NewPublicToken>,
) -> Result<Created<MintedPublicToken>> {
    let life = new.expires_in_seconds.unwrap_or(900);
    let fault = if new.run_ids.is_empty() || new.run_ids.len() > public::RUNS_MOST {
        Some(("$.runIds", "1 to 50 run ids"))
    } else if !(1..=900).contains(&life) {
        Some(("$.expiresInSeconds", "1 to 900 seconds"))
    } else {
        None
    };
    if let Some((path, expected)) = fault {
        return Err(Error::new(
            Code::InvalidBody,
            format!("The body's {path}: expected {expected}."),
        )
        .detail("path", path)
        .detail("expected", expected));
    }
    let checker = cx.checker()?;
    let run_ids: Vec<Uuid> = new.run_ids.into_iter().map(Uuid::from).collect();
    for run_id in &run_ids {
        authz::on_object::<Run, Read>(&checker, *run_id)?;
    }
    public_token(cx, caller.tenant_id, run_ids, life)?
        .map(Created)
        .ok_or_else(|| {
            Error::new(
                Code::NotConfigured,
                "Public run tokens are off on this server: set SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH.",
            )
        })
}

/// A public token for these runs; none where they are off.
pub(super) fn public_token(
    cx: &Cx<'_>,
    tenant_id: Uuid,
    run_ids: Vec<Uuid>,
    life_seconds: u32,
) -> Result<Option<MintedPublicToken>> {
    let Some(signer) = cx.authn().signer() else {
        return Ok(None);
    };
    let life = Duration::from_secs(u64::from(life_seconds)).min(public::LIFE_MOST);
    let about = PublicToken {
        tenant_id,
        run_ids,
        expires_at: cx.now() + life,
    };
    let token = signer.mint(&about)?;
    Ok(Some(MintedPublicToken {
        token: token.expose().to_owned(),
        expires_at: about.expires_at.into(),
    }))
}
