//! Enrolment codes, which a person exchanges for a first key, once. Only their digests are stored.
//!
//! Guarantees: creating, using and ending a user's codes locks the user's row first, so these
//! operations are serialized and cannot deadlock. A code gives no more than its maker could mint at
//! the moment it is taken: it ends with the key that made it, and with its maker's role.

use super::tokens::{self, Owner};
use super::users::{Person, TenantRole, lock};
use super::{Columns, Sql, Tx};
use crate::error::{Error, Result};
use crate::proof::{Admin, Authorized, Caller, Capabilities, Key, KeyRole, Kind};
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
    /// When the key that it becomes ends by itself.
    pub key_expires_at: Option<OffsetDateTime>,
}

/// Keeps an enrolment of a person's, within the limits of the key that makes it; the one that was
/// open ends.
///
/// # Errors
/// `conflict`: the person was deactivated; `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    person: &Authorized<Person, Admin>,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    keep(
        tx,
        person.caller().tenant_id,
        person.row(),
        Some(person.caller()),
        new,
        now,
    )
}

/// As [`insert`], for a person who is added in this transaction.
pub fn insert_first(
    tx: &mut Tx<'_>,
    person: &Person,
    maker: &Caller,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    keep(tx, maker.tenant_id, person, Some(maker), new, now)
}

/// As [`insert`], by the operator of the host: without a maker to end with, and without limits.
///
/// # Errors
/// `conflict`: the person was deactivated; `database-unavailable`.
pub fn insert_by_operator(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    person: &Person,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    keep(tx, tenant_id, person, None, new, now)
}

fn keep(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    person: &Person,
    maker: Option<&Caller>,
    new: &New,
    now: OffsetDateTime,
) -> Result<()> {
    let user_id = person.id();
    let key = maker.map_or(
        Key {
            role: KeyRole::Admin,
            capabilities: Capabilities::all(),
            project_id: None,
        },
        |maker| maker.key,
    );
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
            &maker.map(|maker| maker.user_id),
            &maker.map(|maker| maker.token_id),
            &now,
            &new.expires_at,
            &key.role.text(),
            &key.capabilities.texts(),
            &key.project_id,
            &new.key_expires_at,
        ],
    )?;
    Ok(())
}

/// Ends the enrolment that is open for the user, if one is.
pub(super) fn end_open(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    user_id: Uuid,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(sql!("enrolments/end_open"), &[&tenant_id, &user_id, &now])?;
    Ok(())
}

/// Ends the enrolments that are open and were made by a person who is no admin of the tenant any
/// more, or was signed out: being an admin again does not bring them back.
pub fn end_made_by(
    tx: &mut Tx<'_>,
    maker: &Authorized<Person, Admin>,
    now: OffsetDateTime,
) -> Result<()> {
    let (tenant_id, user_id) = (maker.caller().tenant_id, maker.row().id());
    tx.execute(
        sql!("enrolments/end_made_by"),
        &[&tenant_id, &user_id, &now],
    )?;
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
    /// The operator made it on the host.
    pub is_operator_made: bool,
}

impl Enrolled {
    /// The code, as the record of who took it names it.
    pub fn named(&self) -> String {
        let maker = match self.is_operator_made {
            true => ", which the operator made on the host",
            false => "",
        };
        format!("enrolment {}{maker}", self.enrolment_id)
    }

    /// The person, as the owner of tokens.
    pub fn owner(&self) -> Owner {
        Owner::user(self.tenant_id, self.user_id)
    }
}

/// Takes a code, which nobody can take again. None: it is not known, was taken or replaced, has
/// ended, the person or its maker was deactivated, or the key that made it was revoked; with
/// `enforces`, also where its maker is no tenant admin. The person stays as they are until the
/// transaction ends.
pub fn take(
    tx: &mut Tx<'_>,
    digest: &[u8; 32],
    enforces: bool,
    now: OffsetDateTime,
) -> Result<Option<Enrolled>> {
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
        &[&tenant_id, &user_id, &digest, &now, &enforces],
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
        is_operator_made: row.column("is_operator_made")?,
    }))
}
