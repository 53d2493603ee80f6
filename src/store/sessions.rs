//! Sessions: browsers in which a person signed in. Only the digests of their values are stored.
//!
//! Guarantees: a session that came from a token ends with it, and every session with its person, because each look-up
//! joins both. A person has [`MOST`] at most: the oldest ends, first of those that came from the new one's token. Opening locks the person's row, so two that are opened at
//! once count each other.
//!
//! Not here: who may sign in, and how long a session lasts (`authn::session`, `api::sign_in`).

use super::page::Request;
pub use super::tokens::Moment;
use super::tokens::{self, Known, OfSession, Owner};
use super::users::{self, Person};
use super::{Columns, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Key, May};
use crate::{from_row, list_sql, sql, texts};
use std::net::IpAddr;
use time::OffsetDateTime;
use uuid::Uuid;

/// Sessions of one person.
pub const MOST: i64 = 50;

texts! {
    /// How a person signed in.
    Method {
        /// With a bearer token.
        Token = "token",
        /// With an enrolment code.
        Enrolment = "enrolment",
        /// With the token that the server hands to the console in development.
        Development = "development",
        /// Through an identity provider.
        Provider = "provider",
    }
}

/// A session to open.
#[derive(Debug)]
pub struct New<'a> {
    /// Its id.
    pub session_id: Uuid,
    /// The SHA-256 of its whole value.
    pub digest: [u8; 32],
    /// How the person signed in.
    pub method: Method,
    /// The token that it comes from, and ends with.
    pub token_id: Option<Uuid>,
    /// The identity provider by which the person signed in.
    pub identity_provider_id: Option<Uuid>,
    /// What it may do at most.
    pub key: Key,
    /// When the keys end that are minted with it, if they have to.
    pub keys_expire_at: Option<OffsetDateTime>,
    /// The other end of the connection.
    pub client_address: IpAddr,
    /// What the browser calls itself: 300 characters at most.
    pub user_agent: Option<&'a str>,
    /// When it ends at the latest.
    pub expires_at: OffsetDateTime,
}

/// A session as it may be shown.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id.
    pub session_id: Uuid,
    /// How the person signed in.
    pub method: Method,
    /// The other end of the connection then.
    pub client_address: IpAddr,
    /// What the browser called itself then.
    pub user_agent: Option<String>,
    /// When it was opened.
    pub created_at: OffsetDateTime,
    /// When it was used last, to the minute.
    pub active_at: OffsetDateTime,
    /// When it ends at the latest.
    pub expires_at: OffsetDateTime,
}

from_row!(Session {
    session_id,
    method,
    client_address,
    user_agent,
    created_at,
    active_at,
    expires_at
});

/// Whose session has this digest, unless it ended. It runs before the tenant is known. `is_used`: by the person, not by a
/// page that asks by itself; that keeps it open.
///
/// # Errors
/// `database-unavailable`.
pub fn by_digest(
    sql: &mut impl Sql,
    digest: &[u8; 32],
    is_used: bool,
    moment: Moment,
) -> Result<Option<Known>> {
    let Moment { now, active_after } = moment;
    let found = sql.query_opt(
        sql!("sessions/by_digest"),
        &[&digest.as_slice(), &now, &is_used, &active_after],
    )?;
    let Some(row) = found else {
        return Ok(None);
    };
    Ok(Some(Known {
        used_at: None,
        caller: Caller {
            tenant_id: row.column("tenant_id")?,
            user_id: row.column("user_id")?,
            token_id: row.column("session_id")?,
            key: tokens::key(&row)?,
        },
        expires_at: row.column("expires_at")?,
        session: Some(OfSession {
            token_id: row.column("token_id")?,
            active_at: row.column("active_at")?,
            idle_minutes: row.column("session_idle_minutes")?,
            keys_expire_at: row.column("keys_expire_at")?,
        }),
    }))
}

/// Opens a session, and gives those that ended because the person had too many.
///
/// # Errors
/// `unauthenticated`: the person was deactivated; `database-unavailable`.
pub fn open(tx: &mut Tx<'_>, owner: Owner, new: &New<'_>, moment: Moment) -> Result<Vec<Uuid>> {
    let (tenant_id, user_id, now) = (owner.tenant_id(), owner.user_id(), moment.now);
    users::lock(tx, tenant_id, user_id)?
        .filter(|user| user.deactivated_at.is_none())
        .ok_or_else(|| Error::new(Code::Unauthenticated, "This person was deactivated."))?;
    tx.execute(
        sql!("sessions/insert"),
        &[
            &tenant_id,
            &new.session_id,
            &user_id,
            &new.digest.as_slice(),
            &new.method,
            &new.token_id,
            &new.key.role.text(),
            &new.key.capabilities.texts(),
            &new.key.project_id,
            &new.keys_expire_at,
            &new.client_address,
            &new.user_agent,
            &now,
            &new.expires_at,
            &new.identity_provider_id,
        ],
    )?;
    let ended = tx.query(
        sql!("sessions/end_oldest"),
        &[
            &tenant_id,
            &user_id,
            &now,
            &moment.active_after,
            &MOST,
            &new.session_id,
            &new.token_id,
        ],
    )?;
    ended.iter().map(|row| row.column("session_id")).collect()
}

/// Ends the session whose value has this digest, and gives its id. Whoever has the value may end it.
///
/// # Errors
/// `database-unavailable`.
pub fn end_by_digest(
    tx: &mut Tx<'_>,
    digest: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Option<Uuid>> {
    let row = tx.query_opt(sql!("sessions/end_by_digest"), &[&digest.as_slice(), &now])?;
    row.map(|row| row.column("session_id")).transpose()
}

/// A page of somebody's open sessions.
///
/// # Errors
/// `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    owner: Owner,
    page: &Request,
    moment: Moment,
) -> Result<Vec<Session>> {
    let statement = list_sql!("sessions/list").by(page.order);
    sql.fetch_all(
        statement,
        &[
            &owner.tenant_id(),
            &owner.user_id(),
            &page.after,
            &page.rows(),
            &moment.now,
            &moment.active_after,
            &owner.project_id(),
        ],
    )
}

/// Ends one of the owner's sessions; false if there is none of that id. One that ended already stays so.
///
/// # Errors
/// `database-unavailable`.
pub fn end(tx: &mut Tx<'_>, owner: Owner, session_id: Uuid, now: OffsetDateTime) -> Result<bool> {
    let touched = tx.execute(
        sql!("sessions/end"),
        &[
            &owner.tenant_id(),
            &owner.user_id(),
            &session_id,
            &now,
            &owner.project_id(),
        ],
    )?;
    Ok(touched == 1)
}

/// Ends every session of a person.
///
/// # Errors
/// `database-unavailable`.
pub fn end_all(
    tx: &mut Tx<'_>,
    person: &impl May<Admin, Person>,
    now: OffsetDateTime,
) -> Result<()> {
    let (tenant_id, user_id) = (person.tenant_id(), person.object_id());
    tx.execute(sql!("sessions/end_all"), &[&tenant_id, &user_id, &now])?;
    Ok(())
}

/// Ends the sessions that a provider opened, of one user or of all, and gives whose they were.
pub(super) fn end_of_provider(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    identity_provider_id: Uuid,
    user_id: Option<Uuid>,
    now: OffsetDateTime,
) -> Result<Vec<Uuid>> {
    let rows = tx.query(
        sql!("sessions/end_of_provider"),
        &[&tenant_id, &identity_provider_id, &user_id, &now],
    )?;
    rows.iter().map(Columns::only).collect()
}

/// Deletes some of the sessions that ended at the latest before this time.
///
/// # Errors
/// `database-unavailable`.
pub fn delete_expired(sql: &mut impl Sql, before: OffsetDateTime, most: i64) -> Result<u64> {
    sql.execute(sql!("sessions/delete_expired"), &[&before, &most])
}
