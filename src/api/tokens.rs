//! `/v1/tokens`: bearer tokens of the caller's, and public run tokens.

use crate::authn::{PublicToken, bearer, public};
use crate::authz;
use crate::error::{Code, Error, Result};
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::rfc3339;
use crate::proof::{Caller, Read};
use crate::store::page::{Order, Page, Request};
use crate::store::runs::Run;
use crate::store::tokens::{self, Token};
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
            "Mint a bearer token; it is shown once",
            mint,
        ),
        route(
            Get,
            "/v1/tokens",
            "List the caller's own bearer tokens",
            list,
        ),
        route(
            Delete,
            "/v1/tokens/{tokenId}",
            "Revoke one of the caller's own bearer tokens",
            revoke,
        )
        .answers(&[Code::NotFound]),
        route(
            Post,
            "/v1/tokens/public",
            "Mint a short-lived, read-only token for following named runs in a browser",
            mint_public,
        )
        .answers(&[Code::NotConfigured, Code::NotFound, Code::PermissionDenied]),
    ]
}

/// A bearer token, without its secret part.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Token")]
struct View {
    id: Uuid,
    name: String,
    /// The last four characters of the token.
    last_four: String,
    /// The token came with the tenant.
    seed: bool,
    #[serde(with = "rfc3339")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    created_at: OffsetDateTime,
    #[serde(with = "rfc3339::option")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    expires_at: Option<OffsetDateTime>,
}

impl From<Token> for View {
    fn from(token: Token) -> Self {
        Self {
            id: token.token_id,
            name: token.name,
            last_four: token.last_four,
            seed: token.seed,
            created_at: token.created_at,
            expires_at: token.expires_at,
        }
    }
}

/// A bearer token to mint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewToken {
    name: Name,
    /// When the token ends by itself; never, if left out.
    #[serde(default, with = "rfc3339::option")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    expires_at: Option<OffsetDateTime>,
}

/// A bearer token that was minted.
#[derive(Serialize, JsonSchema)]
struct MintedToken {
    #[serde(flatten)]
    about: View,
    /// The token itself: shown here, and never again.
    token: String,
}

/// Which tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListTokens {
    cursor: Option<String>,
    limit: Option<u16>,
    order: Option<Order>,
}

/// A public run token to mint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewPublicToken {
    /// The runs that it opens.
    #[schemars(length(min = 1, max = 50))]
    run_ids: Vec<Uuid>,
    /// How long it lives, in seconds; 900 if left out, and at most.
    #[schemars(range(min = 1, max = 900))]
    expires_in_seconds: Option<u32>,
}

/// A public run token that was minted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MintedPublicToken {
    /// The token itself.
    token: String,
    #[serde(with = "rfc3339")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    expires_at: OffsetDateTime,
}

fn mint(cx: &Cx<'_>, caller: Caller, Body(new): Body<NewToken>) -> Result<Created<MintedToken>> {
    let now = cx.now();
    if new.expires_at.is_some_and(|end| end <= now) {
        return Err(Error::new(
            Code::InvalidBody,
            "The body's $.expiresAt: expected a time in the future.",
        )
        .detail("path", "$.expiresAt"));
    }
    let token = bearer::mint()?;
    let row = tokens::New {
        token_id: cx.new_id(),
        name: new.name.as_str(),
        digest: bearer::digest(token.expose()),
        last_four: &bearer::last_four(&token),
        expires_at: new.expires_at,
    };
    let kept = cx.transact(|tx| tokens::insert(tx, &caller, &row, now))?;
    Ok(Created(MintedToken {
        about: kept.into(),
        token: token.expose().to_owned(),
    }))
}

fn list(cx: &Cx<'_>, caller: Caller, Query(query): Query<ListTokens>) -> Result<Found<Page<View>>> {
    let binding = ("tokens", caller.user_id);
    let page = Request::new(query.cursor.as_deref(), query.limit, query.order, &binding)?;
    let rows = tokens::list(&mut cx.store().session()?, &caller, &page, cx.now())?;
    Ok(Found(page.page(rows, |row| row.token_id, View::from)))
}

fn revoke(cx: &Cx<'_>, caller: Caller, _: Nothing) -> Result<Gone> {
    let text = cx.parameter("tokenId")?;
    let unknown = || Error::not_found("token", text.chars().take(64).collect::<String>());
    let token_id: Uuid = text.parse().map_err(|_| unknown())?;
    let now = cx.now();
    let revoked = cx.transact(|tx| tokens::revoke(tx, &caller, token_id, now))?;
    if !revoked {
        return Err(unknown());
    }
    cx.authn().forget(token_id);
    Ok(Gone)
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
    let asker = cx.asker()?;
    for run_id in &new.run_ids {
        authz::on_object::<Run, Read>(&asker, *run_id)?;
    }
    public_token(cx, caller.tenant_id, new.run_ids, life)?
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
        expires_at: about.expires_at,
    }))
}
