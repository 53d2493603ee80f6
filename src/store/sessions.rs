//! Sessions: browsers in which a person signed in. Only the digests of their values are stored.
//!
//! Guarantees: what ends a session stands in one place, the SQL function `open_sessions`, which every look-up reads: a session
//! that came from a token ends with it, and every session with its person; the settings of now shorten what was allowed when
//! it was opened, and lengthen nothing. A person has [`MOST`] at most: the oldest ends, first of those that came from the new
//! one's token. Of those that ended, [`ENDED_MOST`] stay. Opening locks the person's row, so two that are opened at once count
//! each other.
//!
//! Not here: who may sign in, and how long a session lasts (`authn::session`, `api::sign_in`).

use super::open_sessions::Moment;
use super::page::Request;
use super::tokens::{self, Known, OfSession, Owner};
use super::users::{self, Person};
use super::{Columns, Parameter, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, Key, KnownBy, May};
use crate::{from_row, list_sql, sql, texts};
use std::net::IpAddr;
use time::OffsetDateTime;
use uuid::Uuid;

/// Sessions of one person.
pub const MOST: i64 = 50;

/// Sessions of one person that ended.
pub const ENDED_MOST: i64 = 50;

/// Ended ones that are deleted when one is opened: more than one end by it only where they had piled up.
const DELETED_MOST: i64 = 1000;

/// Sessions that are shortened in one statement.
const SHORTENED_MOST: i64 = 1000;

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

/// Whose session has this digest, unless it is over. It runs before the tenant is known. `is_used`: by the person, not by a
/// page that asks by itself; that keeps it open.
pub fn by_digest(
    sql: &mut impl Sql,
    digest: &[u8; 32],
    is_used: bool,
    moment: Moment,
) -> Result<Option<Known>> {
    let digest = digest.as_slice();
    let own: [Parameter<'_>; 2] = [&digest, &is_used];
    let found = sql.query_opt(sql!("sessions/by_digest"), &moment.behind(&own))?;
    let Some(row) = found else {
        return Ok(None);
    };
    let of_token = row.column("token_id")?;
    Ok(Some(Known {
        used_at: None,
        caller: Caller {
            tenant_id: row.column("tenant_id")?,
            user_id: row.column("user_id")?,
            token_id: row.column("session_id")?,
            known_by: KnownBy::Session { of_token },
            key: tokens::key(&row)?,
        },
        expires_at: row.column("expires_at")?,
        session: Some(OfSession {
            active_at: row.column("active_at")?,
            idle_at: row.column("idle_at")?,
            keys_expire_at: row.column("keys_expire_at")?,
        }),
    }))
}

/// Opens a session, and gives those that ended because the person had too many.
///
/// # Errors
/// `unauthenticated`: the person was deactivated; `database-unavailable`.
pub fn open(tx: &mut Tx<'_>, owner: Owner, new: &New<'_>, moment: Moment) -> Result<Vec<Uuid>> {
    let (tenant_id, user_id, now) = (owner.tenant_id(), owner.user_id(), moment.now());
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
            &moment.idle_seconds(),
        ],
    )?;
    let own: [Parameter<'_>; 5] = [&tenant_id, &user_id, &new.session_id, &new.token_id, &MOST];
    let ended = tx.query(sql!("sessions/end_oldest"), &moment.behind(&own))?;
    delete_surplus(tx, owner, now)?;
    ended.iter().map(|row| row.column("session_id")).collect()
}

/// Deletes the oldest of somebody's ended sessions.
fn delete_surplus(tx: &mut Tx<'_>, owner: Owner, now: OffsetDateTime) -> Result<()> {
    tx.execute(
        sql!("sessions/delete_surplus"),
        &[
            &owner.tenant_id(),
            &owner.user_id(),
            &now,
            &ENDED_MOST,
            &DELETED_MOST,
        ],
    )?;
    Ok(())
}

/// Ends the session whose value has this digest, and gives its id. Whoever has the value may end it.
pub fn end_by_digest(
    tx: &mut Tx<'_>,
    digest: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Option<Uuid>> {
    let row = tx.query_opt(sql!("sessions/end_by_digest"), &[&digest.as_slice(), &now])?;
    row.map(|row| row.column("session_id")).transpose()
}

/// A page of somebody's open sessions.
pub fn list(
    sql: &mut impl Sql,
    owner: Owner,
    page: &Request,
    moment: Moment,
) -> Result<Vec<Session>> {
    let statement = list_sql!("sessions/list").by(page.order);
    let (tenant_id, user_id, project_id) = (owner.tenant_id(), owner.user_id(), owner.project_id());
    let rows = page.rows();
    let own: [Parameter<'_>; 5] = [&tenant_id, &user_id, &page.after, &rows, &project_id];
    sql.fetch_all(statement, &moment.behind(&own))
}

/// Ends one of the owner's sessions; false if there is none of that id. One that ended already stays so.
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

/// The identity provider that opened a session.
#[derive(Debug, Clone)]
pub struct Opener {
    /// Its id.
    pub identity_provider_id: Uuid,
    /// The email by which it knows the person.
    pub email: String,
}

/// By which provider a session was opened, if it was, and the person is bound there still.
pub fn opener(sql: &mut impl Sql, tenant_id: Uuid, session_id: Uuid) -> Result<Option<Opener>> {
    let row = sql.query_opt(sql!("sessions/opener"), &[&tenant_id, &session_id])?;
    row.map(|row| {
        Ok(Opener {
            identity_provider_id: row.column("identity_provider_id")?,
            email: row.column("email_then")?,
        })
    })
    .transpose()
}

/// Ends every session of a person.
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

/// Ends what is not open any more, and shortens the rest to what the settings allow now: what they end or shorten stays so
/// whatever they allow later. It concerns one tenant or all, and so many sessions at once; gives whether more may be left.
pub fn shorten(sql: &mut impl Sql, tenant_id: Option<Uuid>, moment: Moment) -> Result<bool> {
    let own: [Parameter<'_>; 2] = [&SHORTENED_MOST, &tenant_id];
    let shortened = sql.execute(sql!("sessions/shorten"), &moment.behind(&own))?;
    Ok(shortened >= SHORTENED_MOST.unsigned_abs())
}

/// How many are open in all tenants, for the operator.
pub fn count(sql: &mut impl Sql, moment: Moment) -> Result<i64> {
    sql.query_one(sql!("sessions/count"), &moment.behind(&[]))?
        .only()
}

/// Deletes some of the sessions that ended before this time, by themselves or not.
pub fn delete_old(sql: &mut impl Sql, before: OffsetDateTime, most: i64) -> Result<u64> {
    sql.execute(sql!("sessions/delete_old"), &[&before, &most])
}
