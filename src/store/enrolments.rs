//! Enrolment codes, which a person exchanges for a first key, once. Only their digests are stored.
//!
//! Guarantee: creating, using and ending a user's codes locks the user's row first, so these
//! operations are serialized and cannot deadlock.

use super::tokens::{self, Owner};
use super::users::{Person, TenantRole, lock};
use super::{Columns, Sql, Tx};
use crate::error::{Error, Result};
use crate::proof::{Admin, Key, Kind, May};
use crate::sql;
use time::OffsetDateTime;
use uuid::Uuid;

/// An enrolment to keep.
#[derive(Debug)]
pub struct New {
    /// Its id.
    pub enrolment_id: Uuid,
    /// The SHA-256 of the whole code.
    pub digest: [u8; 32],
    /// When it ends by itself; not after `key_expires_at`.
    pub expires_at: OffsetDateTime,
    /// What the key may do at most that it becomes.
    pub key: Key,
    /// When that key ends by itself.
    pub key_expires_at: Option<OffsetDateTime>,
}

/// Keeps an enrolment of a person's; the one that was open ends.
///
/// # Errors
/// `conflict`: the person was deactivated; `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Person>,
    creator: Uuid,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    keep(tx, may.tenant_id(), may.object_id(), creator, new, now)
}

/// As [`insert`], for a person who is added in this transaction.
///
/// # Errors
/// `database-unavailable`.
pub fn insert_first(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    person: &Person,
    creator: Uuid,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    keep(tx, tenant_id, person.id(), creator, new, now)
}

fn keep(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    user_id: Uuid,
    creator: Uuid,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    // Of two that are made at once, one comes first.
    lock(tx, tenant_id, user_id)?
        .ok_or_else(|| Error::not_found(Person::NAME, user_id))?
        .active()?;
    end_open(tx, tenant_id, user_id, now)?;
    tx.execute(
        sql!("enrolments/insert"),
        &[
            &tenant_id,
            &new.enrolment_id,
            &user_id,
            &new.digest.as_slice(),
            &creator,
            &now,
            &new.expires_at,
            &new.key.role.text(),
            &new.key.capabilities.texts(),
            &new.key.project_id,
            &new.key_expires_at,
        ],
    )?;
    Ok(())
}

/// Ends the enrolment that is open for the user, if one is.
///
/// # Errors
/// `database-unavailable`.
pub(super) fn end_open(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    user_id: Uuid,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(sql!("enrolments/end_open"), &[&tenant_id, &user_id, &now])?;
    Ok(())
}

/// Whose code it was.
#[derive(Debug)]
pub struct Enrolled {
    /// The person's tenant.
    pub tenant_id: Uuid,
    /// The person.
    pub user_id: Uuid,
    /// The person's role in the tenant.
    pub tenant_role: TenantRole,
    /// The enrolment.
    pub enrolment_id: Uuid,
    /// What the key may do at most that it becomes.
    pub key: Key,
    /// When that key ends by itself.
    pub key_expires_at: Option<OffsetDateTime>,
}

impl Enrolled {
    /// The person, as the owner of tokens.
    pub fn owner(&self) -> Owner {
        Owner::user(self.tenant_id, self.user_id)
    }
}

/// Takes a code, which nobody can take again. None: it is not known, was taken or replaced, has
/// ended, or the person was deactivated. The person stays as they are until the transaction ends.
///
/// # Errors
/// `database-unavailable`.
pub fn take(tx: &mut Tx<'_>, digest: &[u8; 32], now: OffsetDateTime) -> Result<Option<Enrolled>> {
    let digest = digest.as_slice();
    let Some(owner) = tx.query_opt(sql!("enrolments/owner"), &[&digest])? else {
        return Ok(None);
    };
    let (tenant_id, user_id): (Uuid, Uuid) = (owner.column("tenant_id")?, owner.column("user_id")?);
    let person = lock(tx, tenant_id, user_id)?.filter(|user| user.deactivated_at.is_none());
    let Some(person) = person else {
        return Ok(None);
    };
    let taken = tx.query_opt(
        sql!("enrolments/take"),
        &[&tenant_id, &user_id, &digest, &now],
    )?;
    let Some(row) = taken else {
        return Ok(None);
    };
    Ok(Some(Enrolled {
        tenant_id,
        user_id,
        tenant_role: person.tenant_role,
        enrolment_id: row.column("enrolment_id")?,
        key: tokens::key(&row)?,
        key_expires_at: row.column("key_expires_at")?,
    }))
}
