//! Tenants and their users, as far as the server seeds them.

use super::authz::{Beside, in_sync};
use super::principals::PrincipalKind;
use super::{Columns, Sql, Tx};
use crate::error::Result;
use crate::proof::{Kind, Scope};
use crate::{in_sync_sql, sql};
use time::OffsetDateTime;
use uuid::Uuid;

/// A tenant.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its id.
    pub tenant_id: Uuid,
}

impl Kind for Tenant {
    const NAME: &'static str = "tenant";
    fn id(&self) -> Uuid {
        self.tenant_id
    }
    fn scope(&self) -> Scope {
        Scope::Itself
    }
}

/// Makes the tenant. False: it stands already, and stays as it is.
pub fn ensure(tx: &mut Tx<'_>, tenant_id: Uuid, name: &str, now: OffsetDateTime) -> Result<bool> {
    let made = tx.execute(sql!("tenants/ensure"), &[&tenant_id, &name, &now])?;
    Ok(made == 1)
}

/// The tenant, if there is only one. It runs before a tenant is known.
pub fn only(sql: &mut impl Sql) -> Result<Option<Uuid>> {
    let rows = sql.query(sql!("tenants/first_two"), &[])?;
    match rows.as_slice() {
        [one] => Ok(Some(one.only()?)),
        _ => Ok(None),
    }
}

/// Makes the user, a person who is an admin of the tenant, unless it stands. Whoever makes one
/// marks the tenant's permissions.
pub fn ensure_user(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    user_id: Uuid,
    display_name: &str,
    now: OffsetDateTime,
) -> Result<bool> {
    let made = tx.execute(
        sql!("tenants/ensure_user"),
        &[&tenant_id, &user_id, &display_name, &now],
    )?;
    Ok(made == 1)
}

/// What [`raise_user`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raised {
    /// The person was a member, and is an admin of the tenant now.
    Raised,
    /// The person is one already.
    Admin,
    /// The user is deactivated, and stays as it is.
    Deactivated,
    /// It is a service account, which is never an admin.
    ServiceAccount,
}

/// Makes a user that stands an admin of the tenant. Whoever raises one marks the tenant's permissions.
pub fn raise_user(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<Raised> {
    let row = tx.query_one(sql!("tenants/raise_user"), &[&tenant_id, &user_id])?;
    let kind: PrincipalKind = row.column("kind")?;
    if row.column("is_deactivated")? {
        return Ok(Raised::Deactivated);
    }
    Ok(match (kind, row.column("is_raised")?) {
        (PrincipalKind::ServiceAccount, _) => Raised::ServiceAccount,
        (PrincipalKind::User, true) => Raised::Raised,
        (PrincipalKind::User, false) => Raised::Admin,
    })
}

/// Whether the user is an admin of the tenant, as of one moment with the tenant's in_sync.
pub fn is_admin(sql: &mut impl Sql, tenant_id: Uuid, user_id: Uuid) -> Result<Beside<bool>> {
    let row = sql.query_one(in_sync_sql!("tenants/is_admin"), &[&tenant_id, &user_id])?;
    Ok((row.column("is_admin")?, in_sync(&row)?))
}

/// Makes whoever else locks the tenant wait until the transaction ends. False: there is no such
/// tenant.
pub fn lock(tx: &mut Tx<'_>, tenant_id: Uuid) -> Result<bool> {
    Ok(tx.execute(sql!("tenants/lock"), &[&tenant_id])? == 1)
}
