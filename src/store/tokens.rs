//! Bearer tokens: their digests, never the tokens.

use super::open_sessions::Moment;
use super::page::Request;
use super::readable::has_way;
use super::users::{self, Person, ServiceAccount};
use super::{Columns, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Capabilities, Key, KeyRole, KnownBy, May};
use crate::{list_sql, sql, texts};
use postgres::Row;
use postgres::error::SqlState;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// A bearer token as it may be shown.
#[derive(Debug, Clone)]
pub struct Token {
    /// Its id.
    pub token_id: Uuid,
    /// What its owner called it.
    pub name: String,
    /// Its last four characters.
    pub last_four: String,
    /// It came with the tenant or with a start of the server, and may end with the next start.
    pub seed: bool,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it ends by itself.
    pub expires_at: Option<OffsetDateTime>,
    /// When it was last used, as far as it was written.
    pub last_used_at: Option<OffsetDateTime>,
    /// What it may do at most.
    pub key: Key,
}

texts! {
    /// What a request came with.
    CredentialKind {
        /// A bearer token.
        Token = "token",
        /// The session of a browser.
        Session = "session",
    }
}

impl From<KnownBy> for CredentialKind {
    fn from(known_by: KnownBy) -> Self {
        match known_by {
            KnownBy::Token => Self::Token,
            KnownBy::Session { .. } => Self::Session,
        }
    }
}

/// What a credential stands for.
#[derive(Debug, Clone)]
pub struct Known {
    /// Whose it is.
    pub caller: Caller,
    /// When it ends by itself.
    pub expires_at: Option<OffsetDateTime>,
    /// Of a token: when it was last used, as far as it was written.
    pub used_at: Option<OffsetDateTime>,
    /// It is a session, and no token.
    pub session: Option<OfSession>,
}

/// What a credential says of its session, where it is one.
#[derive(Debug, Clone, Copy)]
pub struct OfSession {
    /// When it was used last, to the minute.
    pub active_at: OffsetDateTime,
    /// When it ends, unless it is used until then.
    pub idle_at: OffsetDateTime,
    /// When the keys end that are minted with it, if they have to.
    pub keys_expire_at: Option<OffsetDateTime>,
}

impl Known {
    /// When the keys end by themselves that are minted with it, if they have to: with a token, not with a session.
    pub fn keys_expire_at(&self) -> Option<OffsetDateTime> {
        match &self.session {
            Some(session) => session.keys_expire_at,
            None => self.expires_at,
        }
    }
}

/// A use of a token.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// Its tenant.
    pub tenant_id: Uuid,
    /// The token.
    pub token_id: Uuid,
    /// When.
    pub at: OffsetDateTime,
}

/// A token to keep.
#[derive(Debug)]
pub struct New<'a> {
    /// Its id.
    pub token_id: Uuid,
    /// Its name.
    pub name: &'a str,
    /// The SHA-256 of the whole token.
    pub digest: [u8; 32],
    /// Its last four characters.
    pub last_four: &'a str,
    /// When it ends by itself.
    pub expires_at: Option<OffsetDateTime>,
}

impl FromRow for Token {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            token_id: row.column("token_id")?,
            name: row.column("name")?,
            last_four: row.column("last_four")?,
            seed: row.column("seed")?,
            created_at: row.column("created_at")?,
            expires_at: row.column("expires_at")?,
            last_used_at: row.column("last_used_at")?,
            key: key(row)?,
        })
    }
}

impl FromRow for Known {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            caller: Caller {
                tenant_id: row.column("tenant_id")?,
                user_id: row.column("user_id")?,
                token_id: row.column("token_id")?,
                known_by: KnownBy::Token,
                key: key(row)?,
            },
            expires_at: row.column("expires_at")?,
            used_at: row.column("last_used_at")?,
            session: None,
        })
    }
}

/// A key's limits: the columns `role`, `capabilities` and `project_id`.
pub(super) fn key(row: &Row) -> Result<Key> {
    let capabilities: Vec<String> = row.column("capabilities")?;
    Ok(Key {
        // A role that this version does not know allows the least.
        role: KeyRole::parse(row.column("role")?).unwrap_or(KeyRole::Member),
        capabilities: Capabilities::from_texts(&capabilities),
        project_id: row.column("project_id")?,
    })
}

/// Whose token has this digest, unless it was revoked or its owner deactivated. It runs before the
/// tenant is known.
pub fn by_digest(sql: &mut impl Sql, digest: &[u8; 32]) -> Result<Option<Known>> {
    sql.fetch_optional(sql!("tokens/by_digest"), &[&digest.as_slice()])
}

/// Writes uses of tokens, each unless one was written that is not older than so long.
pub fn note_uses(sql: &mut impl Sql, uses: &[Use], every: Duration) -> Result<()> {
    let tenant_ids: Vec<Uuid> = uses.iter().map(|one| one.tenant_id).collect();
    let token_ids: Vec<Uuid> = uses.iter().map(|one| one.token_id).collect();
    let at: Vec<OffsetDateTime> = uses.iter().map(|one| one.at).collect();
    let seconds = every.as_secs_f64();
    sql.execute(
        sql!("tokens/note_uses"),
        &[&tenant_ids, &token_ids, &at, &seconds],
    )?;
    Ok(())
}

/// Whose tokens and sessions somebody may deal with.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    tenant_id: Uuid,
    user_id: Uuid,
    /// Of the tokens and sessions that stand, those limited to this project alone are seen.
    project_id: Option<Uuid>,
}

impl Owner {
    /// The caller's own.
    pub fn caller(caller: &Caller) -> Self {
        Self::user(caller.tenant_id, caller.user_id)
    }

    /// The caller's own, and where the caller's key is limited to a project, that project's alone.
    pub fn reach(caller: &Caller) -> Self {
        Self {
            project_id: caller.key.project_id,
            ..Self::caller(caller)
        }
    }

    /// A service account's, by who decides about it.
    pub fn account(may: &impl May<Admin, ServiceAccount>) -> Self {
        Self::user(may.tenant_id(), may.object_id())
    }

    /// A user's.
    pub(super) fn user(tenant_id: Uuid, user_id: Uuid) -> Self {
        Self {
            tenant_id,
            user_id,
            project_id: None,
        }
    }

    /// A person's, by who decides about them.
    pub fn person(may: &impl May<Admin, Person>) -> Self {
        Self::user(may.tenant_id(), may.object_id())
    }

    /// The tenant.
    pub(super) fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    /// The one project whose tokens and sessions are seen.
    pub(super) fn project_id(&self) -> Option<Uuid> {
        self.project_id
    }

    /// The user.
    pub fn user_id(&self) -> Uuid {
        self.user_id
    }

    /// Whether the owner has a way into the project that is not a tenant admin's.
    pub fn has_way(&self, sql: &mut impl Sql, project_id: Uuid) -> Result<bool> {
        has_way(sql, self.tenant_id, project_id, self.user_id)
    }
}

/// Keeps a token of the owner's, within these limits.
///
/// # Errors
/// `conflict`: the owner was deactivated; `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    owner: Owner,
    new: &New<'_>,
    key: Key,
    now: OffsetDateTime,
) -> Result<Token> {
    users::lock(tx, owner.tenant_id, owner.user_id)?
        .ok_or_else(|| Error::not_found("user", owner.user_id))?
        .active()?;
    tx.fetch_one(
        sql!("tokens/insert"),
        &[
            &owner.tenant_id,
            &new.token_id,
            &owner.user_id,
            &new.name,
            &new.digest.as_slice(),
            &new.last_four,
            &now,
            &new.expires_at,
            &key.role.text(),
            &key.capabilities.texts(),
            &key.project_id,
        ],
    )
}

/// The seed tokens that end when another one comes.
#[derive(Debug, Clone, Copy)]
pub enum Ended<'a> {
    /// Every other one of the tenant.
    All,
    /// The one of this digest, of whichever tenant.
    Only(Option<&'a [u8; 32]>),
}

/// Makes this a seed token of the tenant, and ends others. False: this token was revoked, and stays
/// so.
///
/// # Errors
/// `database-unavailable`; `conflict` when another tenant, or another token, has these very bytes.
pub fn replace_seed(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    user_id: Uuid,
    new: &New<'_>,
    ended: Ended<'_>,
    now: OffsetDateTime,
) -> Result<bool> {
    // Replicas that start at once take turns.
    super::tenants::lock(tx, tenant_id)?;
    let digest = new.digest.as_slice();
    match ended {
        Ended::All => tx.execute(sql!("tokens/retire_seed"), &[&tenant_id, &digest])?,
        Ended::Only(Some(before)) => tx.execute(sql!("tokens/end_seed"), &[&before.as_slice()])?,
        Ended::Only(None) => 0,
    };
    if let Some(row) = tx.query_opt(sql!("tokens/find_seed"), &[&tenant_id, &digest])? {
        let (seed, owner, revoked): (bool, Uuid, bool) = (
            row.column("seed")?,
            row.column("user_id")?,
            row.column("is_revoked")?,
        );
        if revoked {
            return Ok(false);
        }
        if !seed {
            return Err(in_use());
        }
        if owner == user_id {
            return Ok(true);
        }
        tx.execute(sql!("tokens/end_seed"), &[&digest])?;
    }
    let inserted = tx.execute(
        sql!("tokens/insert_seed"),
        &[
            &tenant_id,
            &new.token_id,
            &user_id,
            &new.name,
            &digest,
            &new.last_four,
            &now,
        ],
    );
    on_violation(inserted, &SqlState::UNIQUE_VIOLATION, in_use)?;
    Ok(true)
}

fn in_use() -> Error {
    Error::new(
        Code::Conflict,
        "The seed token is in use in this database already, by another tenant or as a token of its own. Give this tenant another SVC_SEED_TOKEN, or set SVC_TENANT_ID to the tenant whose token it is.",
    )
}

/// The owner's tokens that still hold.
pub fn list(
    sql: &mut impl Sql,
    owner: Owner,
    page: &Request,
    now: OffsetDateTime,
) -> Result<Vec<Token>> {
    let statement = list_sql!("tokens/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &owner.tenant_id,
            &owner.user_id,
            &page.after,
            &page.rows(),
            &now,
            &owner.project_id,
        ],
    )
}

/// Revokes one of the owner's tokens, and ends the sessions that came from it; false if there is none of that id. One
/// that was revoked already stays so.
pub fn revoke(tx: &mut Tx<'_>, owner: Owner, token_id: Uuid, now: OffsetDateTime) -> Result<bool> {
    let touched = tx.execute(
        sql!("tokens/revoke"),
        &[
            &owner.tenant_id,
            &owner.user_id,
            &token_id,
            &now,
            &owner.project_id,
        ],
    )?;
    if touched == 1 {
        // They would be refused anyway, but count among the person's sessions.
        tx.execute(
            sql!("sessions/end_of_token"),
            &[&owner.tenant_id, &owner.user_id, &token_id, &now],
        )?;
    }
    Ok(touched == 1)
}

/// Revokes every token of a user.
pub(super) fn revoke_all(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    user_id: Uuid,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(sql!("tokens/revoke_all"), &[&tenant_id, &user_id, &now])?;
    Ok(())
}

/// Which of these tokens, each of its tenant, were revoked, or belong to a user who was deactivated; sessions among them are
/// those that are over.
pub fn revoked_among(
    sql: &mut impl Sql,
    tokens: &[(Uuid, Uuid)],
    moment: Moment,
) -> Result<Vec<(Uuid, Uuid)>> {
    let (tenant_ids, token_ids): (Vec<Uuid>, Vec<Uuid>) = tokens.iter().copied().unzip();
    let rows = sql.query(
        sql!("tokens/revoked_among"),
        &moment.behind(&[&tenant_ids, &token_ids]),
    )?;
    rows.iter()
        .map(|row| Ok((row.column("tenant_id")?, row.column("token_id")?)))
        .collect()
}
