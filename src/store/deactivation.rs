//! Deactivates a user, and with the user their keys, open enrolments and roles.
//!
//! Guarantees: it waits for concurrent grants of a role to that user, so no role is left behind; a
//! tenant keeps an active admin.
//!
//! Not here: creating and changing users (`users`).

use super::users::{TenantRole, User, refuse_last_admin};
use super::{Columns, FromRow, Sql, Tx, enrolments, tenants, tokens};
use crate::error::{Error, Result};
use crate::proof::{Admin, Kind, May};
use crate::sql;
use postgres::Row;
use time::OffsetDateTime;
use uuid::Uuid;

/// Where a user has a role of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleScope {
    /// An org.
    Org(Uuid),
    /// A team.
    Team(Uuid),
    /// A project.
    Project(Uuid),
}

impl FromRow for RoleScope {
    fn from_row(row: &Row) -> Result<Self> {
        let id = row.column("id")?;
        Ok(match row.column("kind")? {
            "org" => Self::Org(id),
            "team" => Self::Team(id),
            _ => Self::Project(id),
        })
    }
}

/// A user who was deactivated.
#[derive(Debug)]
pub struct Deactivated {
    /// The user.
    pub user: User,
    /// Where they have roles, which count no longer.
    pub role_scopes: Vec<RoleScope>,
    /// It happened now; otherwise they were deactivated already.
    pub changed: bool,
}

/// Deactivates a user: their keys, open enrolments and roles end.
///
/// # Errors
/// `last-admin`; `database-unavailable`.
pub fn deactivate<K: Kind>(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, K>,
    now: OffsetDateTime,
) -> Result<Deactivated> {
    let (tenant_id, user_id) = (may.tenant_id(), may.object_id());
    tenants::lock(tx, tenant_id)?;
    let mut held: User = tx
        .fetch_optional(sql!("users/lock_to_end"), &[&tenant_id, &user_id])?
        .ok_or_else(|| Error::not_found(K::NAME, user_id))?;
    let changed = held.deactivated_at.is_none();
    if changed {
        if held.tenant_role == TenantRole::Admin {
            refuse_last_admin(tx, tenant_id, user_id)?;
        }
        held = tx.fetch_one(sql!("users/deactivate"), &[&tenant_id, &user_id, &now])?;
        tokens::revoke_all(tx, tenant_id, user_id, now)?;
        enrolments::end_open(tx, tenant_id, user_id, now)?;
    }
    Ok(Deactivated {
        user: held,
        role_scopes: tx.fetch_all(sql!("users/role_scopes"), &[&tenant_id, &user_id])?,
        changed,
    })
}
