//! The state of synchronization with the authorization server: tenants' stores, objects, and their
//! desired and applied tuples (`postgres-is-the-truth`).
//!
//! Not here: the authorization server itself (`authz`).

pub use super::tenants::lock as lock_tenant;

use super::{Columns, Find, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::ids::whole_ms;
use crate::proof::{Caller, KeyRole};
use crate::{from_row, sql};
use postgres::Row;
use postgres::error::SqlState;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// A tenant's store and the model that its checks name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantStore {
    /// The store.
    pub store_id: String,
    /// The model in it.
    pub model_id: String,
    /// The model's version.
    pub model_version: i32,
    /// SHA-256 of the model.
    pub model_digest: Vec<u8>,
}

/// What a check stands on, as of one moment.
#[derive(Debug)]
pub struct Guard {
    /// The tenant's store.
    pub store_id: String,
    /// The model in it.
    pub model_id: String,
    /// The model's version.
    pub model_version: i32,
    /// Objects that the check depends on and whose changes were not applied yet.
    pub unapplied: Vec<String>,
}

/// What a check stands on, as it was in the statement that found what the check is about.
#[derive(Debug)]
pub struct InSync {
    /// The tenant's store.
    pub store_id: String,
    /// The model in it.
    pub model_id: String,
    /// The model's version.
    pub model_version: i32,
}

/// A row, and beside it the tenant's in_sync: none where the tenant has no store, or changes that were not applied yet. Then
/// [`guard`] tells more.
pub type Beside<T> = (T, Option<InSync>);

/// What the owner of a key is, as of the statement that found what the check is about.
#[derive(Debug)]
pub struct KeyOwner {
    /// An admin of the tenant.
    pub is_tenant_admin: bool,
    /// The highest role beside that: on the org, in the team, or on the project.
    pub other_role: Option<String>,
}

/// What an access check is about, as of one moment.
#[derive(Debug)]
pub struct Found<K> {
    /// The row.
    pub row: K,
    /// As of [`Beside`].
    pub in_sync: Option<InSync>,
    /// Of a member key, where roles are held on what was found.
    pub owner: Option<KeyOwner>,
}

/// An object whose row is locked, and its tenant's store, which stays until the transaction ends.
#[derive(Debug)]
pub struct Held {
    /// Raised by every change.
    pub desired: i64,
    /// As far as the authorization server was told.
    pub applied: i64,
    /// The store.
    pub store_id: String,
    /// The model in it.
    pub model_id: String,
    /// The model's version.
    pub model_version: i32,
}

/// A tuple that there should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    /// `user:<id>`, an object, or `team:<id>#member`.
    pub user: String,
    /// The relation.
    pub relation: String,
    /// The object.
    pub object: String,
}

/// A kind of object that a tenant has many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Many {
    /// Orgs.
    Orgs,
    /// Teams.
    Teams,
    /// Projects.
    Projects,
}

from_row!(TenantStore {
    store_id,
    model_id,
    model_version,
    model_digest
});
from_row!(Guard {
    store_id,
    model_id,
    model_version,
    unapplied
});
from_row!(InSync {
    store_id,
    model_id,
    model_version
});
from_row!(KeyOwner {
    is_tenant_admin,
    other_role
});
from_row!(Held {
    desired,
    applied,
    store_id,
    model_id,
    model_version
});
from_row!(Desired {
    user,
    relation,
    object
});

/// Marks objects, in this order, as changed by this transaction.
pub fn mark(tx: &mut Tx<'_>, tenant_id: Uuid, objects: &[String]) -> Result<()> {
    tx.execute(sql!("authz/mark"), &[&tenant_id, &objects])?;
    Ok(())
}

/// The tenant's store, if it has one.
pub fn tenant_store(sql: &mut impl Sql, tenant_id: Uuid) -> Result<Option<TenantStore>> {
    sql.fetch_optional(sql!("authz/tenant_store"), &[&tenant_id])
}

/// The tenant's store, if it has one, and what of these objects, and of the project's org and
/// teams, is not applied.
pub fn guard(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    objects: &[String],
    project_id: Option<Uuid>,
) -> Result<Option<Guard>> {
    sql.fetch_optional(sql!("authz/guard"), &[&tenant_id, &objects, &project_id])
}

/// What the columns of `authz/in_sync` say.
pub(super) fn in_sync(row: &Row) -> Result<Option<InSync>> {
    let is_in_sync: Option<bool> = row.column("is_in_sync")?;
    if is_in_sync != Some(true) {
        return Ok(None);
    }
    InSync::from_row(row).map(Some)
}

/// The object, if the caller's tenant has it, as of one moment with what the check stands on.
pub fn find<K: Find>(sql: &mut impl Sql, caller: &Caller, id: Uuid) -> Result<Option<Found<K>>> {
    let is_member_key = caller.key.role == KeyRole::Member;
    let beside_owner = K::FINDING.beside_owner.filter(|_| is_member_key);
    let row = match beside_owner {
        Some(statement) => sql.query_opt(statement, &[&caller.tenant_id, &id, &caller.user_id])?,
        None => sql.query_opt(K::FINDING.beside_in_sync, &[&caller.tenant_id, &id])?,
    };
    let Some(row) = row else { return Ok(None) };
    let owner = beside_owner.map(|_| KeyOwner::from_row(&row)).transpose()?;
    let in_sync = in_sync(&row)?;
    Ok(K::read(&row)?.map(|row| Found {
        row,
        in_sync,
        owner,
    }))
}

/// Keeps what the tenant's store is.
pub fn put_tenant_store(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    tenant_store: &TenantStore,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(
        sql!("authz/put_tenant_store"),
        &[
            &tenant_id,
            &tenant_store.store_id,
            &tenant_store.model_id,
            &tenant_store.model_version,
            &tenant_store.model_digest,
            &now,
        ],
    )?;
    Ok(())
}

/// What there is to lock of an object.
#[derive(Debug)]
pub enum Hold {
    /// It is locked.
    Held(Held),
    /// It has no row: it was never marked, or is gone and that was applied.
    Unmarked,
    /// Its tenant has no store.
    Storeless,
}

/// Locks an object, and makes its row if it has none and is locked `always`. Waits no longer than
/// `wait`.
///
/// # Errors
/// `authorization-unavailable`: another one held it for too long; `database-unavailable`.
pub fn hold(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    object: &str,
    always: bool,
    wait: Duration,
) -> Result<Hold> {
    tx.execute(sql!("authz/limit_wait"), &[&whole_ms(wait)])?;
    let held = hold_in_time(tx, tenant_id, object, always);
    on_violation(held, &SqlState::LOCK_NOT_AVAILABLE, || {
        Error::new(
            Code::AuthorizationUnavailable,
            "FGA Error: Another change of the same object is still being applied. Try again shortly.",
        )
    })
}

fn hold_in_time(tx: &mut Tx<'_>, tenant_id: Uuid, object: &str, always: bool) -> Result<Hold> {
    if let Some(held) = try_hold(tx, tenant_id, object)? {
        return Ok(Hold::Held(held));
    }
    if tenant_store(tx, tenant_id)?.is_none() {
        return Ok(Hold::Storeless);
    }
    if !always {
        return Ok(Hold::Unmarked);
    }
    tx.execute(sql!("authz/ensure_object"), &[&tenant_id, &object])?;
    let held = try_hold(tx, tenant_id, object)?;
    Ok(held.map_or(Hold::Storeless, Hold::Held))
}

/// Locks an object. None: it has no row, or its tenant has no store.
pub fn try_hold(tx: &mut Tx<'_>, tenant_id: Uuid, object: &str) -> Result<Option<Held>> {
    tx.fetch_optional(sql!("authz/lock_object"), &[&tenant_id, &object])
}

/// Says that a held object was applied.
pub fn set_applied(tx: &mut Tx<'_>, tenant_id: Uuid, object: &str) -> Result<()> {
    tx.execute(sql!("authz/set_applied"), &[&tenant_id, &object])?;
    Ok(())
}

/// Forgets a held object, which is gone.
pub fn remove_object(tx: &mut Tx<'_>, tenant_id: Uuid, object: &str) -> Result<()> {
    tx.execute(sql!("authz/remove_object"), &[&tenant_id, &object])?;
    Ok(())
}

/// Objects of any tenant whose changes were not applied, in order.
pub fn unapplied(
    sql: &mut impl Sql,
    after: &(Uuid, String),
    limit: i64,
) -> Result<Vec<(Uuid, String)>> {
    let (tenant_id, object) = after;
    let rows = sql.query(sql!("authz/unapplied"), &[tenant_id, object, &limit])?;
    rows.iter()
        .map(|row| Ok((row.column("tenant_id")?, row.column("object")?)))
        .collect()
}

/// Tenants, in order.
pub fn tenants(sql: &mut impl Sql, after: Uuid, limit: i64) -> Result<Vec<Uuid>> {
    let rows = sql.query(sql!("authz/tenants"), &[&after, &limit])?;
    rows.iter().map(Columns::only).collect()
}

/// Tenants without a store.
pub fn storeless(sql: &mut impl Sql, limit: i64) -> Result<Vec<Uuid>> {
    let rows = sql.query(sql!("authz/storeless"), &[&limit])?;
    rows.iter().map(Columns::only).collect()
}

/// The admin that the tenant has had longest; of `only`, if that is given.
pub fn first_admin(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    only: Option<Uuid>,
) -> Result<Option<Uuid>> {
    let row = sql.query_opt(sql!("authz/first_admin"), &[&tenant_id, &only])?;
    row.as_ref().map(Columns::only).transpose()
}

/// The tuples that there should be of the tenant itself.
pub fn desired_of_tenant(sql: &mut impl Sql, tenant_id: Uuid) -> Result<Vec<Desired>> {
    sql.fetch_all(sql!("authz/tenant_tuples"), &[&tenant_id])
}

/// The tuples that there should be of these objects.
pub fn desired_of(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    kind: Many,
    ids: &[Uuid],
) -> Result<Vec<Desired>> {
    let text = match kind {
        Many::Orgs => sql!("authz/org_tuples"),
        Many::Teams => sql!("authz/team_tuples"),
        Many::Projects => sql!("authz/project_tuples"),
    };
    sql.fetch_all(text, &[&tenant_id, &ids])
}

/// The tenant's objects of a kind, in order.
pub fn ids(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    kind: Many,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Uuid>> {
    let text = match kind {
        Many::Orgs => sql!("authz/org_ids"),
        Many::Teams => sql!("authz/team_ids"),
        Many::Projects => sql!("authz/project_ids"),
    };
    let rows = sql.query(text, &[&tenant_id, &after, &limit])?;
    rows.iter().map(Columns::only).collect()
}
